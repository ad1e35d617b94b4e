"""Vectors of texts, by an encoder that was compiled from a folder of Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from aot.frontends.kinds import is_language_model
from aot.ir.types import Array
from aot.runtime.arrays.files import is_compiled
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import EMBEDDING, IDS, MASK
from aot.runtime.loading.library import read_manifest
from aot.runtime.loading.manifest import Manifest
from aot.runtime.model import CompiledModel
from aot.text.library_texts import PAIR_SCORES, TOKEN_TYPES
from aot.text.tokenizers.tokenizer import Tokenizer

MAX_TOGETHER = 16  # texts of one length that are computed in one call


def is_encoder(manifest: Manifest) -> bool:
    """True if a library makes vectors of texts."""
    inputs, outputs = ({tensor.name for tensor in tensors} for tensors in (manifest.inputs, manifest.outputs))
    return inputs == {IDS, MASK} and EMBEDDING in outputs and not manifest.variables


def check_encoder(manifest: Manifest, name: str) -> None:
    """Raise UsageError for a library that makes no vectors of texts."""
    if not is_encoder(manifest):
        got = ", ".join(tensor.name for tensor in (*manifest.inputs, *manifest.outputs))
        raise UsageError(f"{name}: must be an encoder, with {IDS}, {MASK} and {EMBEDDING}, got one with {got}")


def is_ranker(manifest: Manifest) -> bool:
    """True if a library scores texts or pairs of them."""
    inputs, outputs = ({tensor.name for tensor in tensors} for tensors in (manifest.inputs, manifest.outputs))
    return {IDS, MASK} == inputs - {TOKEN_TYPES} and PAIR_SCORES in outputs and not manifest.variables


def is_encoder_folder(path: Path) -> bool:
    """True for a folder of Hugging Face with an encoder."""
    if not is_language_model(path):
        return False
    reader = import_module("aot.frontends.huggingface.reader")  # libraries do without it
    return reader.read_json(path / "config.json").get("model_type") in reader.ENCODERS


def check_speaks(path: Path) -> None:
    """Raise UsageError for the library or the folder of an encoder, which makes no tokens."""
    rule = f"{path.name}: must be a language model, got an encoder"
    if is_encoder_folder(path):
        library = f"{path.resolve().name}.so"
        step = f"aot compile {path} -o {library}; aot embed {library} TEXT, or aot rerank {library} QUERY TEXT"
        raise UsageError(rule, advice=step)
    manifest = read_manifest(path) if is_compiled(path) else None
    if manifest is not None and is_encoder(manifest):
        raise UsageError(f"{rule}, which makes vectors of texts", advice=f"aot embed {path} TEXT")
    if manifest is not None and is_ranker(manifest):
        raise UsageError(f"{rule}, which scores pairs of texts", advice=f"aot rerank {path} QUERY TEXT")


def tokens_of(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of texts, which the tokenizer of an encoder cuts; UsageError for a text without any."""
    tokens = [tokenizer.encode(text) for text in texts]
    if not all(tokens):
        raise UsageError(f"text {tokens.index([])}: must have a token, got none")
    return tokens


def batches_of(tokens: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the numbers of texts that are computed together.

    These have one length: no text is filled up, so it has the bits that it has alone.
    """
    by_length: dict[int, list[int]] = {}
    for n, ids in enumerate(tokens):
        by_length.setdefault(len(ids), []).append(n)
    groups = by_length.values()
    return [group[at : at + MAX_TOGETHER] for group in groups for at in range(0, len(group), MAX_TOGETHER)]


def inputs_of(tokens: Sequence[Sequence[int]]) -> dict[str, Array]:
    """Return the inputs for texts of one length."""
    ids = np.array(tokens, np.int64)
    return {IDS: ids, MASK: np.ones_like(ids)}


def vectors_of(model: CompiledModel, tokenizer: Tokenizer, texts: Sequence[str]) -> list[Array]:
    """Return the vector of each text."""
    tokens = tokens_of(tokenizer, texts)
    vectors: dict[int, Array] = {}
    for numbers in batches_of(tokens):
        vectors |= zip(numbers, model(inputs_of([tokens[n] for n in numbers]))[EMBEDDING], strict=True)
    return [vectors[n] for n in range(len(texts))]
