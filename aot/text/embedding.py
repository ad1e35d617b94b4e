"""Vectors of texts, by an encoder that was compiled from a folder of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from aot.ir.types import Array
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import EMBEDDING, IDS, MASK
from aot.runtime.loading.manifest import Manifest
from aot.text.tokenizer import Tokenizer

TYPES = "token_type_ids"  # 0 for each token of a single text
MOST_TOGETHER = 16  # texts of one length that are computed in one call

Infer = Callable[[Mapping[str, Array]], Array]


def is_encoder(manifest: Manifest) -> bool:
    """True if a library makes a vector of the tokens of a text."""
    names = {tensor.name for tensor in manifest.inputs}
    return (
        {IDS, MASK} <= names <= {IDS, MASK, TYPES}
        and not manifest.variables
        and any(tensor.name == EMBEDDING for tensor in manifest.outputs)
    )


def check_encoder(manifest: Manifest, name: str) -> None:
    """Raise UsageError for a library that is no encoder."""
    if not is_encoder(manifest):
        rule = f"inputs {IDS} and {MASK}, output {EMBEDDING} and no state"
        raise UsageError(f"{name}: must be an encoder, with {rule}, got another network")


def tokens_of(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of texts, cut where they are longer than the network sees; UsageError for one without any."""
    found = [tokenizer.encode(text) for text in texts]
    if not all(found):
        raise UsageError("text: must have a token, got none")
    return found


def batches_of(tokens: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the numbers of texts that are computed together.

    All have one length, so that no text is filled up, and none has other bits than alone.
    """
    by_length: dict[int, list[int]] = {}
    for n, ids in enumerate(tokens):
        by_length.setdefault(len(ids), []).append(n)
    return [same[at : at + MOST_TOGETHER] for same in by_length.values() for at in range(0, len(same), MOST_TOGETHER)]


def inputs_of(manifest: Manifest, tokens: Sequence[Sequence[int]]) -> dict[str, Array]:
    """Return the inputs for texts of one length."""
    ids = np.array(tokens, np.int64)
    every = {IDS: ids, MASK: np.ones_like(ids), TYPES: np.zeros_like(ids)}
    return {tensor.name: every[tensor.name] for tensor in manifest.inputs}
