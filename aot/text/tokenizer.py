"""Tokenizers, by the package tokenizers: from `tokenizer.json`, or from the metadata of a GGUF file.

Byte-level BPE: text -> pieces by a pattern -> bytes as letters -> merges by rank -> ids
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from aot.frontends.gguf.container import Metadata, read_container
from aot.frontends.kinds import is_gguf
from runtime.errors import CorruptError, MissingError, UnsupportedError
from runtime.regular import open_file, read_file

CONTROL, OWN = 3, 4  # types of tokens that no merge makes: marks of the format, and added ones
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
END = "tokenizer.ggml.eos_token_id"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Text to tokens and back. `stop`: the tokens that end a text, where the file names them."""

    inner: Any
    stop: tuple[int, ...]

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become replacement characters."""
        return str(self.inner.decode(list(ids)))


def read_tokenizer(path: Path) -> Tokenizer:
    """Read the tokenizer of a GGUF file, or a `tokenizer.json`.

    MissingError without the package tokenizers, CorruptError for a damaged file, UnsupportedError for another kind.
    """
    if find_spec("tokenizers") is None:
        raise MissingError(f"{path.name}: text needs the package tokenizers: pip install 'aot[text]'")
    package = import_module("tokenizers")  # the package is optional
    with open_file(path, "tokenizer") as file:
        head = file.read(4)
    if is_gguf(head):
        metadata = read_container(path).metadata
        end = metadata.get(END)
        return Tokenizer(_byte_level(package, metadata, path.name), (end,) if isinstance(end, int) else ())
    try:
        return Tokenizer(package.Tokenizer.from_str(read_file(path, "tokenizer").decode()), ())
    except Exception as error:  # the package raises Exception itself
        if type(error) is not Exception and not isinstance(error, UnicodeDecodeError):
            raise
        raise CorruptError(f"{path.name}: tokenizer: a tokenizer.json is read, got {str(error)[:120]}") from error


def _byte_level(package: Any, metadata: Metadata, file: str) -> Any:
    """Build a tokenizer of byte-level BPE from metadata."""
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in PIECES:
        rule = f"byte-level BPE (gpt2) with pieces {', '.join(PIECES)} can be read"
        error = UnsupportedError(f"{file}: tokenizer: {rule}, got {str(kind)[:40]}, {str(pre)[:40]}")
        error.add_note("give the tokenizer.json of the model: --tokenizer tokenizer.json")
        raise error
    words, merges = (_texts(metadata, f"tokenizer.ggml.{key}", file) for key in ("tokens", "merges"))
    pairs = [tuple(m.split(" ", 1)) for m in merges]
    vocabulary = {word: n for n, word in enumerate(words)}
    if any(len(p) != 2 or {*p, "".join(p)} - vocabulary.keys() for p in pairs):
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
