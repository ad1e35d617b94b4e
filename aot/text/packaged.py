"""Words of a `tokenizer.json`, by the package tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.errors import CorruptError, UsageError


class Packaged:
    """A tokenizer of the package."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._stand_in: list[int] | None = None

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; UsageError for a text that is no Unicode, CorruptError for a damaged file."""
        return self._tokens(text, marks=True)

    def decode(self, ids: Sequence[int], *, begins: bool) -> str:
        """Return the text of tokens; `begins`: they are the first ones of a text.

        Decoders change the beginning of what they are given, so other text is behind a word that is left out again.
        """
        if begins:
            return self._text(ids)
        if self._stand_in is None:
            self._stand_in = self._tokens("a", marks=False)
        before, whole = self._text(self._stand_in), self._text([*self._stand_in, *ids])
        return whole[len(before) :] if before and whole.startswith(before) else self._text(ids)

    def _tokens(self, text: str, *, marks: bool) -> list[int]:
        """`marks`: with the tokens that begin and end a text."""
        try:
            text.encode()
            return list(self._inner.encode(text, add_special_tokens=marks).ids)
        except UnicodeEncodeError as error:
            raise UsageError(f"text: must be Unicode, got half of a surrogate pair at {error.start}") from None
        except Exception as error:
            raise _damaged(error) from error

    def _text(self, ids: Sequence[int]) -> str:
        try:
            return str(self._inner.decode(list(ids)))
        except Exception as error:
            raise _damaged(error) from error


def _damaged(error: Exception) -> Exception:
    """Return the error of a file whose parts do not fit each other: the package raises Exception itself."""
    if type(error) is not Exception:
        return error
    return CorruptError(f"tokenizer.json: must have parts that fit each other, got {str(error)[:120]}")
