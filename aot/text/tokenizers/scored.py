"""SentencePiece's BPE, from the metadata of a GGUF file (`tokenizer.ggml.model` is `llama`).

text -> spaces as ▁ -> characters -> the two neighbours whose token has the greatest score are joined, again and again
                                     -> characters without a token as tokens of their bytes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot.text.tokenizers.joining import joined
from aot.text.tokenizers.vocabulary import BYTE, CONTROL, UNKNOWN, Vocabulary

SPACE = "\u2581"


class Scored(Vocabulary):
    """Tokens with scores, which are finite."""

    def __init__(
        self,
        words: Sequence[str],
        types: Sequence[int],
        ids: Mapping[str, int],
        scores: Sequence[float],
        *,
        prefix: bool,
    ) -> None:
        """`prefix`: a space is written before each text."""
        super().__init__(words, types, ids)
        self._scores, self._prefix = scores, prefix
        self._unknown = next((n for n, kind in enumerate(types) if kind == UNKNOWN), None)

    def decode(self, ids: Sequence[int], *, begins: bool) -> str:
        text = super().decode(ids, begins=begins)
        return text.removeprefix(" ") if begins and self._prefix else text

    def _tokens(self, text: str) -> list[int]:
        numbers: list[int] = []
        for part in joined((" " * self._prefix + text).replace(" ", SPACE), self._rank):
            tokens = [self.ids[part]] if part in self.ids else self._in_bytes(part)
            numbers += tokens if tokens != [self._unknown] or numbers[-1:] != tokens else []
        return numbers

    def _rank(self, left: str, right: str) -> float | None:
        token = self.ids.get(left + right)
        if token is None or self.types[token] in (UNKNOWN, CONTROL, BYTE):
            return None
        return -self._scores[token]

    def _in_bytes(self, part: str) -> list[int]:
        """Return tokens of the bytes of a character, or the unknown one if there are none."""
        numbers = [self.ids.get(f"<0x{b:02X}>") for b in part.encode()]
        known = [token for token in numbers if token is not None]
        if len(known) == len(numbers):
            return known
        return [] if self._unknown is None else [self._unknown]

    def _spelled(self, word: str) -> bytes:
        return word.replace(SPACE, " ").encode("utf-8", "replace")
