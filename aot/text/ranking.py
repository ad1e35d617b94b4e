"""Scores of pairs of texts, by an encoder with a head that was compiled from a folder of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.generation.interface import IDS, MASK
from aot.runtime.loading.manifest import Manifest
from aot.runtime.model import CompiledModel
from aot.text.embedding import batches_of, is_ranker
from aot.text.library_texts import LABELS, PAIR_SCORES, TOKEN_TYPES, folder_texts, json_of
from aot.text.tokenizers.packaged import Packaged
from aot.text.tokenizers.tokenizer import Tokenizer

Pair = tuple[list[int], list[int]]  # tokens and their types


@dataclass(frozen=True, slots=True)
class Pairs:
    """Tokens of pairs of texts, and the numbers of those that are computed together."""

    tokens: list[Pair]
    batches: list[list[int]]

    def inputs(self, numbers: Sequence[int], manifest: Manifest) -> dict[str, Array]:
        """Return the inputs of a library for some pairs of one length."""
        ids, types = (np.array([self.tokens[n][part] for n in numbers], np.int64) for part in (0, 1))
        inputs = {IDS: ids, MASK: np.ones_like(ids), TOKEN_TYPES: types}
        return {tensor.name: inputs[tensor.name] for tensor in manifest.inputs}

    @property
    def count(self) -> int:
        """The number of tokens of all pairs."""
        return sum(len(ids) for ids, _ in self.tokens)


def check_ranker(manifest: Manifest, name: str) -> None:
    """Raise UsageError for a library that scores no pairs of texts."""
    if not is_ranker(manifest):
        got = ", ".join(tensor.name for tensor in (*manifest.inputs, *manifest.outputs))
        raise UsageError(f"{name}: must be a reranker, with {IDS}, {MASK} and {PAIR_SCORES}, got one with {got}")


def labels_of(manifest: Manifest, name: str) -> list[str]:
    """Return the names of the scores that a compiled model keeps; CorruptError for another thing."""
    labels = folder_texts(manifest.json, name).get(LABELS)
    names = json_of(labels)
    if not isinstance(names, list) or not names:
        raise CorruptError(f"{name}: tokenizer: {LABELS} must be a list of names, got {str(labels)[:40]}")
    return list(map(str, cast("list[object]", names)))


def pairs_of(tokenizer: Tokenizer, pairs: Iterable[tuple[str, str | None]]) -> Pairs:
    """Return the tokens of pairs of texts, or single ones; UsageError for a pair without any."""
    inner = tokenizer.inner
    if not isinstance(inner, Packaged):
        raise UsageError("tokenizer: must be a tokenizer.json, which joins two texts, got one of GGUF")
    pairs_of_tokens = [inner.pair(first, second) for first, second in pairs]
    tokens = [ids for ids, _ in pairs_of_tokens]
    if not all(tokens):
        raise UsageError(f"text {tokens.index([])}: must have a token, got none")
    return Pairs(pairs_of_tokens, batches_of(tokens))


def scores_of(model: CompiledModel, tokenizer: Tokenizer, pairs: Iterable[tuple[str, str | None]]) -> list[Array]:
    """Return the scores of each pair of texts, one for each label; None as second text: of the first one alone."""
    read = pairs_of(tokenizer, pairs)
    scores: dict[int, Array] = {}
    for numbers in read.batches:
        scores |= zip(numbers, model(read.inputs(numbers, model.manifest))[PAIR_SCORES], strict=True)
    return [scores[n] for n in range(len(read.tokens))]


def ranked(scores: Sequence[Array]) -> list[tuple[int, float]]:
    """Return the numbers of texts and their scores of one label, the best first; equal ones stay in order."""
    values = [(n, float(str(score[0]))) for n, score in enumerate(scores)]
    return sorted(values, key=lambda one: -one[1])
