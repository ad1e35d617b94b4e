"""Words of a `tokenizer.json`, by the package tokenizers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from aot.runtime.errors import CorruptError, UsageError

MAX_TOKENS = 1 << 32  # the package numbers tokens in 32 bits


class Packaged:
    """A tokenizer of the package."""

    def __init__(self, inner: Any, begin: int | None = None) -> None:
        """`begin`: the token that begins a text, which chat templates write and the package adds again."""
        self._inner, self._begin = inner, begin
        self._stand_in: list[int] | None = None

    @property
    def source(self) -> str:
        """The text of the tokenizer.json."""
        return str(self._inner.to_str())

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; UsageError for a text that is no Unicode, CorruptError for a damaged file."""
        tokens = self.tokens(text, marks=True)
        return tokens[1:] if self._begin is not None and tokens[:2] == [self._begin] * 2 else tokens

    def decode(self, ids: Sequence[int], *, begins: bool) -> str:
        """Return the text of tokens; `begins`: they are the first ones of a text.

        Decoders change the beginning of their input, so other text is decoded after a word that is removed again.
        """
        if begins:
            return self._text(ids)
        if self._stand_in is None:
            self._stand_in = self.tokens("a", marks=False)
        before, whole = self._text(self._stand_in), self._text([*self._stand_in, *ids])
        return whole[len(before) :] if before and whole.startswith(before) else self._text(ids)

    def tokens(self, text: str, *, marks: bool) -> list[int]:
        """Return the tokens of a text; `marks`: with those that begin and end it."""
        _check_unicode(text)
        with checked("tokenizer.json"):
            return list(self._inner.encode(text, add_special_tokens=marks).ids)

    def pair(self, first: str, second: str | None) -> tuple[list[int], list[int]]:
        """Return the tokens of two texts, or of one, as the file's template joins them, and the type of each token."""
        for text in (first, second or ""):
            _check_unicode(text)
        with checked("tokenizer.json"):
            encoding = self._inner.encode(first, second)
            return list(encoding.ids), list(encoding.type_ids)

    def _text(self, ids: Sequence[int]) -> str:
        with checked("tokenizer.json"):
            return str(self._inner.decode([n for n in ids if 0 <= n < MAX_TOKENS]))


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"text: must be Unicode, got half of a surrogate pair at {error.start}") from None


@contextmanager
def checked(file: str) -> Generator[None]:
    """Raise CorruptError if the package raises Exception itself, or panics by a BaseException of a hidden module."""
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__module__ != "pyo3_runtime":
            raise
        rule = "tokenizer: must be a tokenizer.json whose parts fit each other"
        raise CorruptError(f"{file}: {rule}, got {str(error)[:120]}") from error
