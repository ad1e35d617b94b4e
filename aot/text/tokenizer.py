"""Tokenizers, by the package tokenizers: from `tokenizer.json`, or from the metadata of a GGUF file.

Byte-level BPE: text -> pieces by a pattern -> bytes as letters -> merges by rank -> ids; SentencePiece's: `scored`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from aot.frontends.gguf.container import Metadata, read_container
from aot.frontends.kinds import is_gguf
from aot.text.kept import ENTRY, metadata_in
from aot.text.scored import CONTROL, OWN, scored
from aot.text.template import ChatTemplate
from runtime.arrays.files import is_compiled
from runtime.errors import CorruptError, MissingError, UnsupportedError, UsageError
from runtime.loading.library import read_manifest
from runtime.regular import open_file, read_file

SCORED = "llama"  # `tokenizer.ggml.model` of SentencePiece's BPE
WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MARKS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# How text is cut into pieces before merges, by `tokenizer.ggml.pre`. Source: the tokenizers of these models.
PIECES = {
    "default": (WORDS,),
    "gpt-2": (WORDS,),
    "smollm": (r"\p{N}", WORDS),
    "qwen2": (MARKS % r"\p{N}",),
    "llama-bpe": (MARKS % r"\p{N}{1,3}",),
}
NEXT = "give --tokenizer tokenizer.json, or compile a GGUF file"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Text to tokens and back. `stop`: the tokens that end a text, where the file names them.

    `template`: source of the chat template, None without one; `marks`: texts of tokens that templates may name;
    `first`: a token that each text begins with; `context`: the most tokens that the model was trained on.
    """

    inner: Any
    stop: tuple[int, ...]
    template: str | None = None
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    first: int | None = None
    context: int | None = None

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text).ids)

    def begin(self, text: str) -> list[int]:
        """Return the tokens of a text that begins a sequence."""
        found = self.encode(text)
        return found if self.first is None or found[:1] == [self.first] else [self.first, *found]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become replacement characters."""
        return str(self.inner.decode(list(ids)))

    def chat_template(self) -> ChatTemplate:
        """Return the template of the model's file; UsageError without one."""
        if self.template is None:
            rule = "the model's file must have a chat template, got none"
            raise UsageError(f"chat: {rule}; next: give a text to aot generate, or --template chat_template.jinja")
        return ChatTemplate(self.template, self.marks)


def read_tokenizer(path: Path) -> Tokenizer:
    """Read the tokenizer of a GGUF file, of a library that was compiled from one, or a `tokenizer.json`.

    Beside a tokenizer.json, tokenizer_config.json and chat_template.jinja are read. MissingError without the package
    tokenizers, CorruptError for a damaged file, UnsupportedError for another kind.
    """
    if find_spec("tokenizers") is None:
        raise MissingError(f"{path.name}: text needs the package tokenizers: pip install 'aot[text]'")
    package = import_module("tokenizers")  # the package is optional
    with open_file(path, "tokenizer") as file:
        head = file.read(4)
    if is_gguf(head):
        return _of_metadata(package, read_container(path).metadata, path.name)
    if head == b"\x7fELF":
        metadata = metadata_in(read_manifest(path).json, path.name)
        if metadata is None:
            raise UsageError(f"{path.name}: tokenizer: {NEXT}, got a library without one")
        return _of_metadata(package, metadata, path.name)
    try:
        inner = package.Tokenizer.from_str(read_file(path, "tokenizer").decode())
    except Exception as error:  # the package raises Exception itself
        if type(error) is not Exception and not isinstance(error, UnicodeDecodeError):
            raise
        raise CorruptError(f"{path.name}: tokenizer: must be a tokenizer.json, got {str(error)[:120]}") from error
    return _beside(inner, path)


def has_tokenizer(path: Path) -> bool:
    """True if a library keeps the tokenizer of the model that it was compiled from."""
    return path.is_file() and is_compiled(path) and ENTRY in read_manifest(path).json


def _beside(inner: Any, path: Path) -> Tokenizer:
    """Return a tokenizer with the settings of files beside a tokenizer.json."""
    config: dict[str, object] = {}
    other, template = path.with_name("tokenizer_config.json"), path.with_name("chat_template.jinja")
    if other.is_file():
        try:
            tree: object = json.loads(read_file(other, "tokenizer"))
        except (ValueError, RecursionError) as error:
            raise CorruptError(f"{other.name}: tokenizer: must be JSON, got {str(error)[:80]}") from None
        config = cast("dict[str, object]", tree) if isinstance(tree, dict) else {}
    marks = {name: _mark(config.get(name)) for name in ("bos_token", "eos_token")}
    marks = {name: text for name, text in marks.items() if text}
    source = template.read_text("utf-8") if template.is_file() else config.get("chat_template")
    end = inner.token_to_id(marks["eos_token"]) if "eos_token" in marks else None
    return Tokenizer(inner, () if end is None else (end,), source if isinstance(source, str) else None, marks)


def _mark(value: object) -> str:
    """Return the text of a token, which is a text or an object with it."""
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("content")
    return value if isinstance(value, str) else ""


def _of_metadata(package: Any, metadata: Metadata, file: str) -> Tokenizer:
    """Build a tokenizer from the metadata of a GGUF file."""
    words = _texts(metadata, "tokenizer.ggml.tokens", file)
    by_scores = metadata.get("tokenizer.ggml.model") == SCORED
    inner = (scored if by_scores else _byte_level)(package, metadata, words, file)
    known = {name: _token(metadata, f"tokenizer.ggml.{name}_token_id", words) for name in ("bos", "eos", "eot")}
    marks = {f"{name}_token": words[n] for name, n in known.items() if n is not None}
    stop = tuple(dict.fromkeys(n for name in ("eos", "eot") if (n := known[name]) is not None))
    template = metadata.get("tokenizer.chat_template")
    first = known["bos"] if metadata.get("tokenizer.ggml.add_bos_token", by_scores) is True else None
    lengths = [v for k, v in metadata.items() if k.endswith(".context_length") and isinstance(v, int)]
    source = template if isinstance(template, str) else None
    return Tokenizer(inner, stop, source, marks, first, next(iter(lengths), None))


def _token(metadata: Metadata, key: str, words: Sequence[str]) -> int | None:
    found = metadata.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < len(words) else None


def _byte_level(package: Any, metadata: Metadata, words: Sequence[str], file: str) -> Any:
    """Build a tokenizer of byte-level BPE from metadata."""
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in PIECES:
        rule = f"scored BPE ({SCORED}) and byte-level BPE (gpt2) with pieces {', '.join(PIECES)} can be read"
        error = UnsupportedError(f"{file}: tokenizer: {rule}, got {str(kind)[:40]}, {str(pre)[:40]}")
        error.add_note("give the tokenizer.json of the model: --tokenizer tokenizer.json")
        raise error
    merges = _texts(metadata, "tokenizer.ggml.merges", file)
    pairs = [tuple(m.split(" ", 1)) for m in merges]
    vocabulary = {word: n for n, word in enumerate(words)}
    if not all(len(p) == 2 and p[0] in vocabulary and p[1] in vocabulary and "".join(p) in vocabulary for p in pairs):
        raise CorruptError(f"{file}: tokenizer: merges are pairs of tokens that make tokens, got others")
    found = package.Tokenizer(package.models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=pre == "llama-bpe"))
    cuts = [package.pre_tokenizers.Split(package.Regex(p), "isolated") for p in PIECES[str(pre)]]
    letters = package.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    found.pre_tokenizer = package.pre_tokenizers.Sequence([*cuts, letters])
    found.decoder = package.decoders.ByteLevel()
    types = metadata.get("tokenizer.ggml.token_type")
    if isinstance(types, list):
        kinds = cast("list[object]", types)
        alone = [w for w, t in zip(words, kinds, strict=False) if t in (CONTROL, OWN)]
        found.add_special_tokens([package.AddedToken(w, normalized=False, special=True) for w in alone])
    return found


def _texts(metadata: Metadata, key: str, file: str) -> list[str]:
    found = metadata.get(key)
    texts = [v for v in cast("list[object]", found) if isinstance(v, str)] if isinstance(found, list) else []
    if not isinstance(found, list) or len(texts) != len(cast("list[object]", found)):
        raise CorruptError(f"{file}: tokenizer: {key} is a list of texts, got {str(metadata.get(key))[:40]}")
    return texts
