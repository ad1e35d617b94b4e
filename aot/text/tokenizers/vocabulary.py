"""Tokens of a GGUF file: a text becomes numbers of tokens, and these bytes.

text -> tokens that stand for themselves, and the texts between them -> pieces -> characters -> neighbours are joined
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from aot.runtime.errors import UsageError

NORMAL, UNKNOWN, CONTROL, OWN, BYTE = 1, 2, 3, 4, 6  # types of tokens; others are not used
BYTE_WORD = re.compile("<0x([0-9A-Fa-f]{2})>")
WHOLE = (UNKNOWN, CONTROL, OWN)  # never made of neighbours, but found in the text


class Vocabulary(ABC):
    """Words by number, with their types."""

    def __init__(self, words: Sequence[str], types: Sequence[int], ids: Mapping[str, int]) -> None:
        """`ids`: numbers of the words."""
        self.words, self.types, self.ids = words, types, ids
        whole = {word for word, kind in zip(words, types, strict=True) if kind in WHOLE and word}
        self._whole = sorted(whole, key=lambda word: (-len(word.encode("utf-8", "replace")), word))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; UsageError for a text that is no Unicode."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"text: must be Unicode, got half of a surrogate pair at {error.start}") from None
        numbers: list[int] = []
        for part in self._parts(text):
            numbers += [part] if isinstance(part, int) else self._tokens(part)
        return numbers

    def decode(self, ids: Sequence[int], *, begins: bool) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become replacement characters.

        `begins`: they are the first ones of a text.
        """
        del begins
        return b"".join(map(self.bytes_of, ids)).decode("utf-8", "replace")

    def _parts(self, text: str) -> list[str | int]:
        """Cut a text at tokens that stand for themselves, the longest ones first."""
        parts: list[str | int] = [text]
        for word in self._whole:
            if word in text:
                parts = [p for part in parts for p in ([part] if isinstance(part, int) else self._cut(part, word))]
        return [part for part in parts if part != ""]

    def _cut(self, text: str, word: str) -> Iterator[str | int]:
        first, *others = text.split(word)
        yield first
        for other in others:
            yield self.ids[word]
            yield other

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of a token; none for marks, and for numbers that are no tokens."""
        if not 0 <= token < len(self.words):
            return b""
        word, kind = self.words[token], self.types[token]
        if kind == BYTE:
            return byte_of(word)
        return self._spelled(word) if kind == NORMAL else word.encode("utf-8", "replace") if kind == OWN else b""

    @abstractmethod
    def _tokens(self, text: str) -> list[int]:
        """Return the tokens of a text without tokens that stand for themselves."""

    @abstractmethod
    def _spelled(self, word: str) -> bytes:
        """Return the bytes of a normal token."""


def numbered(words: Sequence[str]) -> dict[str, int]:
    """Return the place of each word, the first one of equal words."""
    return dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))


def byte_of(word: str) -> bytes:
    """Return the byte of a word such as <0x0A>, or the word if it is none."""
    match = BYTE_WORD.fullmatch(word)
    return word.encode("utf-8", "replace") if match is None else bytes.fromhex(match[1])
