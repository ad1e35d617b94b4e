"""Tokenizers: from `tokenizer.json`, by the package tokenizers, or from the metadata of a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.container import Metadata, read_header
from aot.frontends.kinds import is_gguf
from aot.runtime.arrays.files import is_compiled
from aot.runtime.errors import CorruptError, MissingError, UnsupportedError, UsageError
from aot.runtime.loading.binary_file import FIRST_BYTES
from aot.runtime.loading.library import read_manifest
from aot.runtime.loading.manifest import Manifest
from aot.runtime.regular import open_file
from aot.text.library_texts import (
    CHAT_TEMPLATE,
    CONTEXT_LENGTH,
    ENTRY,
    FOLDER,
    SETTINGS,
    STOP,
    TOKENIZER,
    metadata_in,
    read_text,
)
from aot.text.template import ChatTemplate
from aot.text.tokenizers.byte_level import ByteLevel, Cut
from aot.text.tokenizers.ends import HOLES, ends_of
from aot.text.tokenizers.packaged import Packaged, checked
from aot.text.tokenizers.pieces import PIECES, Pieces
from aot.text.tokenizers.scored import Scored
from aot.text.tokenizers.vocabulary import CONTROL, NORMAL, Vocabulary, numbered

SCORED, LETTERS = "llama", "gpt2"  # `tokenizer.ggml.model` of SentencePiece's BPE and of byte-level BPE
NAMED = ("bos", "eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")  # all but the first end a text
USUAL = {"bos": 1, "eos": 2}  # SentencePiece's tokens, where metadata name none
MAX_NUMBER = 1e30  # largest score, and largest number of a type
NEXT = "give --tokenizer tokenizer.json, or compile a GGUF file"


class Words(Protocol):
    """Texts to numbers of tokens and back; `begins`: the tokens are the first ones of a text."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int], *, begins: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Text to tokens and back. `stop`: the tokens that end a text.

    `template`: source of the chat template, None without one; `marks`: texts of tokens that templates may name;
    `first`: a token that each text begins with; `context`: the most tokens that the model was trained on.
    """

    inner: Words
    stop: tuple[int, ...]
    template: str | None = None
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    first: int | None = None
    context: int | None = None

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text)

    def begin(self, text: str) -> list[int]:
        """Return the tokens of a text that begins a sequence."""
        tokens = self.encode(text)
        return tokens if self.first is None or tokens[:1] == [self.first] else [self.first, *tokens]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become replacement characters."""
        return self.inner.decode(ids, begins=True)

    def after(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text of tokens that follow others; `before` has the last ones of these."""
        known = self.inner.decode(before, begins=False)
        return self.inner.decode([*before, *ids], begins=False)[len(known) :]

    def chat_template(self) -> ChatTemplate:
        """Return the template of the model's file; UsageError without one."""
        if self.template is None:
            rule = "the model's file must have a chat template, got none"
            raise UsageError(f"chat: {rule}; next: give a text to aot generate, or --template chat_template.jinja")
        return ChatTemplate(self.template, self.marks)


def read_tokenizer(path: Path) -> Tokenizer:
    """Read the tokenizer of a GGUF file, of a library that was compiled from one, or a `tokenizer.json`.

    Beside a tokenizer.json, tokenizer_config.json and chat_template.jinja are read. MissingError without the package
    tokenizers where it is needed, CorruptError for a damaged file, UnsupportedError for another kind.
    """
    with open_file(path, "tokenizer") as file:
        head = file.read(4)
    if is_gguf(head):
        metadata = read_header(path).metadata
        _check_merges(metadata, path.name)
        return of_metadata(metadata, path.name)
    if head.startswith(FIRST_BYTES):
        return stored_tokenizer(read_manifest(path), path.name)
    beside = {name: read_text(other) for name in (SETTINGS, CHAT_TEMPLATE) if (other := path.with_name(name)).is_file()}
    return _of_texts({TOKENIZER: read_text(path), **beside}, path.name)


def stored_tokenizer(manifest: Manifest, name: str) -> Tokenizer:
    """Return the tokenizer that a compiled model keeps; UsageError without one.

    `manifest`: of a library, or of a model that was compiled in memory; `name`: of the model, for errors.
    """
    metadata = metadata_in(manifest.json, name)
    if metadata is None:
        raise UsageError(f"{name}: tokenizer: {NEXT}, got a library without one")
    texts = metadata.get(FOLDER)
    return of_metadata(metadata, name) if texts is None else _of_texts(texts, name)


def has_tokenizer(path: Path) -> bool:
    """True if a library keeps the tokenizer of the model that it was compiled from."""
    return path.is_file() and is_compiled(path) and ENTRY in read_manifest(path).json


def _of_texts(texts: object, file: str) -> Tokenizer:
    """Build a tokenizer from the texts of a folder, by the names of their files."""
    if not isinstance(texts, dict) or set(map(type, cast("dict[object, object]", texts).values())) - {str}:
        raise CorruptError(f"{file}: tokenizer: must be texts by name, got {type(texts).__name__}")
    entries = cast("dict[str, str]", texts)
    package = _package(file)
    with checked(file):
        inner = package.Tokenizer.from_str(entries.get(TOKENIZER, ""))
    config = _json(entries.get(SETTINGS, "{}"), SETTINGS)
    settings = cast("dict[str, object]", config) if isinstance(config, dict) else {}
    marks = {name: _mark(settings.get(name)) for name in ("bos_token", "eos_token")}
    marks = {name: text for name, text in marks.items() if text}
    begin = inner.token_to_id(marks["bos_token"]) if "bos_token" in marks else None
    source = entries.get(CHAT_TEMPLATE, settings.get("chat_template"))
    ends = _json(entries.get(STOP, "[]"), STOP)
    own = [n for n in cast("list[object]", ends) if isinstance(n, int)] if isinstance(ends, list) else []
    named: list[int | None] = [inner.token_to_id(marks["eos_token"])] if "eos_token" in marks else []
    stop = dict.fromkeys(n for n in (*own, *named, *ends_of(inner.token_to_id)) if n is not None)
    length = _json(entries.get(CONTEXT_LENGTH, "null"), CONTEXT_LENGTH)
    context = length if isinstance(length, int) else None
    return Tokenizer(
        Packaged(inner, begin), tuple(stop), source if isinstance(source, str) else None, marks, context=context
    )


def _json(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{name}: tokenizer: must be JSON, got {str(error)[:80]}") from None


def _package(file: str) -> Any:
    if find_spec("tokenizers") is None:
        raise MissingError(f"{file}: text needs the package tokenizers: pip install 'aot[text]'")
    return import_module("tokenizers")  # the package is optional


def _mark(value: object) -> str:
    """Return the text of a token, which is a text or an object with it."""
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("content")
    return value if isinstance(value, str) else ""


def of_metadata(metadata: Metadata, file: str) -> Tokenizer:
    """Build a tokenizer from the metadata of a GGUF file."""
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    pieces = PIECES.get(pre) if isinstance(pre, str) else None
    if kind != SCORED and (kind != LETTERS or pieces is None):
        rule = f"scored BPE ({SCORED}) and byte-level BPE ({LETTERS}) with pieces {', '.join(PIECES)} can be read"
        error = UnsupportedError(f"{file}: tokenizer: {rule}, got {str(kind)[:40]}, {str(pre)[:40]}")
        error.add_note("give the tokenizer.json of the model: --tokenizer tokenizer.json")
        raise error
    words = _texts(metadata, "tokens", file)
    types = [int(t) for t in _numbers(metadata, "token_type", words, file, None if kind == SCORED else NORMAL)]
    ids = numbered(words)
    ends = ends_of(ids.get)
    for n in (*ends, *(ids[word] for word in HOLES if word in ids)):
        types[n] = CONTROL
    inner: Vocabulary
    if kind == LETTERS and pieces is not None:
        merges = _texts(metadata, "merges", file)
        inner = ByteLevel(words, types, ids, merges, _cut(pieces, file), whole=pieces.whole)
    else:
        scores = _numbers(metadata, "scores", words, file)
        prefix = metadata.get("tokenizer.ggml.add_space_prefix") is not False
        inner = Scored(words, types, ids, scores, prefix=prefix)
    usual = USUAL if kind == SCORED else {}
    known = {n: _token(metadata, f"tokenizer.ggml.{n}_token_id", words, usual.get(n)) for n in NAMED}
    marks = {f"{name}_token": words[n] for name in ("bos", "eos", "eot") if (n := known[name]) is not None}
    stop = dict.fromkeys(n for n in (*(known[name] for name in NAMED[1:]), *ends) if n is not None)
    template = metadata.get("tokenizer.chat_template")
    begins = metadata.get("tokenizer.ggml.add_bos_token", pieces.begins if kind == LETTERS and pieces else True)
    lengths = [v for k, v in metadata.items() if k.endswith(".context_length") and isinstance(v, int)]
    source, first = template if isinstance(template, str) else None, known["bos"] if begins is True else None
    return Tokenizer(inner, tuple(stop), source, marks, first, next(iter(lengths), None))


def _token(metadata: Metadata, key: str, words: Sequence[str], default: int | None) -> int | None:
    value = metadata.get(key, default)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words) else None


def _cut(pieces: Pieces, file: str) -> Cut:
    """Return the function that cuts a text into pieces."""
    package = _package(file)
    cutters = package.pre_tokenizers
    cutter = cutters.Sequence([cutters.Split(package.Regex(pattern), "isolated") for pattern in pieces.patterns])
    return lambda text: [piece for piece, _ in cutter.pre_tokenize_str(text)]


def _check_merges(metadata: Metadata, file: str) -> None:
    """Raise CorruptError for merges that make no tokens."""
    if metadata.get("tokenizer.ggml.model") != LETTERS:
        return
    words = frozenset(_texts(metadata, "tokens", file))
    if not all(" " in m[1:-1] and m.replace(" ", "", 1) in words for m in _texts(metadata, "merges", file)):
        raise CorruptError(f"{file}: tokenizer: merges must be pairs of tokens that make tokens, got others")


def _numbers(
    metadata: Metadata, name: str, words: Sequence[str], file: str, default: int | None = None
) -> Sequence[float]:
    """Return a number for each word; `default` if metadata have none, CorruptError for others."""
    numbers = metadata.get(f"tokenizer.ggml.{name}")
    if numbers is None and default is not None:
        return [default] * len(words)
    values = cast("list[float]", numbers) if isinstance(numbers, list) else []
    finite = set(map(type, values)) <= {int, float} and all(-MAX_NUMBER < v < MAX_NUMBER for v in values)
    if not finite or len(values) != len(words):
        got = len(values) if finite else "others"
        raise CorruptError(f"{file}: tokenizer: {name} must be a list of {len(words)} numbers, got {got}")
    return values


def _texts(metadata: Metadata, name: str, file: str) -> list[str]:
    key = f"tokenizer.ggml.{name}"
    values = metadata.get(key)
    if not isinstance(values, list) or not set(map(type, cast("list[object]", values))) <= {str}:
        raise CorruptError(f"{file}: tokenizer: {key} must be a list of texts, got {str(metadata.get(key))[:40]}")
    return cast("list[str]", values)
