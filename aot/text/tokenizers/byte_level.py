"""Byte-level BPE, from the metadata of a GGUF file (`tokenizer.ggml.model` is `gpt2`).

text -> pieces by patterns -> bytes as letters -> neighbours are joined in the order of merges -> ids
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from aot.text.tokenizers.joining import joined
from aot.text.tokenizers.vocabulary import Vocabulary, numbered

_PLAIN = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes whose letters are their own characters
_OTHERS = [b for b in range(256) if b not in _PLAIN]
LETTERS = {b: chr(b) for b in _PLAIN} | {b: chr(256 + n) for n, b in enumerate(_OTHERS)}
BYTES = {ord(letter): b for b, letter in LETTERS.items()}
KNOWN = 1 << 14  # pieces whose tokens are kept
LONGEST = 64  # letters of them

Cut = Callable[[str], Sequence[str]]


class ByteLevel(Vocabulary):
    """Tokens that are written in letters for bytes."""

    def __init__(
        self,
        words: Sequence[str],
        types: Sequence[int],
        ids: Mapping[str, int],
        merges: Sequence[str],
        cut: Cut,
        *,
        whole: bool,
    ) -> None:
        """`merges`: two tokens and a space between them, those to join first come first. `cut`: gives pieces of a text.

        `whole`: a piece that is a token stays one.
        """
        super().__init__(words, types, ids)
        self._ranks = numbered(merges)
        self._cut_pieces, self._keeps_whole = cut, whole
        self._known = lru_cache(KNOWN)(self._joined)

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = []
        for piece in self._cut_pieces(text):
            letters = piece.encode().decode("latin-1").translate(LETTERS)
            tokens += self._known(letters) if len(letters) <= LONGEST else self._joined(letters)
        return tokens

    def _joined(self, letters: str) -> list[int]:
        if self._keeps_whole and letters in self.ids:
            return [self.ids[letters]]
        parts = joined(letters, self._rank)
        return [self.ids[one] for part in parts for one in ([part] if part in self.ids else part) if one in self.ids]

    def _rank(self, left: str, right: str) -> int | None:
        return self._ranks.get(f"{left} {right}")

    def _spelled(self, word: str) -> bytes:
        try:
            return word.translate(BYTES).encode("latin-1") if BYTES.keys() >= set(map(ord, word)) else word.encode()
        except UnicodeEncodeError:
            return word.encode("utf-8", "replace")
