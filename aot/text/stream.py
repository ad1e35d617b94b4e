"""Tokens as they come: text is written once its characters are whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aot.runtime.arrays.files import is_compiled
from aot.runtime.errors import UsageError
from aot.runtime.generation.generator import check_inputs
from aot.runtime.loading.library import read_manifest
from aot.runtime.loading.manifest import Manifest
from aot.text.encoder_decoder_loop import is_text_to_text
from aot.text.library_texts import ENTRY
from aot.text.tokenizers.tokenizer import Tokenizer, has_tokenizer, read_tokenizer, stored_tokenizer

BROKEN = "\N{REPLACEMENT CHARACTER}"


class Stream:
    """Writes the text of tokens that follow a prompt, or without a tokenizer their numbers."""

    def __init__(self, tokenizer: Tokenizer | None, write: Callable[[str], object], *, begins: bool = False) -> None:
        """`begins`: the tokens begin a text."""
        self._tokenizer, self._write, self._begins = tokenizer, write, begins
        self._before, self._new = list[int](), list[int]()  # tokens that were written last, and the tokens after them
        self._count = 0

    def add(self, token: int) -> None:
        """Take a token, and write the characters that are complete: one may need the bytes of several tokens."""
        self._count += 1
        self._new.append(token)
        if self._tokenizer is None:
            self._write(f"{',' if self._count > 1 else ''}{token}")
        elif (text := self.rest()) and not text.endswith(BROKEN):
            self._write(text)
            self._before = self._new
            self._new = []

    def rest(self) -> str:
        """Return the text that has not been written yet."""
        if self._tokenizer is None:
            return ""
        if self._begins and not self._before:
            return self._tokenizer.decode(self._new)
        return self._tokenizer.after(self._before, self._new)


def ids_of(text: str, option: str = "--ids") -> list[int]:
    """Read numbers of tokens, `5,1,40`, that an option takes; UsageError for others."""
    parts = [p.strip() for p in text.split(",")]
    if not all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):
        raise UsageError(f"{option}: must be numbers of tokens, as in 5,1,40, got {text[:40]!r}")
    return [int(p) for p in parts]


def tokenizer_of(source: Path, tokenizer: Path | None, manifest: Manifest) -> Tokenizer:
    """Return the tokenizer of a compiled model; of `source` if one is named or the model has none.

    A folder's own has the tokens that end an answer, which lie in other files than its tokenizer.json.
    """
    is_stored = tokenizer is None and ENTRY in manifest.json
    return stored_tokenizer(manifest, source.name) if is_stored else read_tokenizer(source)


def text_source(model: Path, tokenizer: Path | None) -> Path:
    """Return the file with the tokenizer: the one that is named, that in the model if it has one, or one beside it.

    UsageError if there is none, or if a library is none of a language model.
    """
    if tokenizer is not None:
        return tokenizer
    name, where = "tokenizer.json", "in" if model.is_dir() else "beside"
    beside = (model / name,) if model.is_dir() else (model.with_suffix(".gguf"), model.with_name(name))
    source = model if has_tokenizer(model) else next((p for p in beside if p.is_file()), None)
    if source is None:
        if is_compiled(model) and not is_text_to_text(manifest := read_manifest(model)):
            check_inputs([tensor.name for tensor in manifest.inputs])
        rule = "give --tokenizer tokenizer.json or --tokenizer m.gguf, or --ids and numbers"
        missing = " and ".join(f"no {path.name}" for path in beside)
        raise UsageError(f"generate: {rule}: {missing} lies {where} {model.name}")
    return source
