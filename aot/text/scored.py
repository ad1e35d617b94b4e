"""Tokenizers of SentencePiece's BPE, from the metadata of a GGUF file (`tokenizer.ggml.model` is `llama`).

text -> spaces as ▁ -> characters -> the two neighbours whose token has the greatest score are joined, again and again
                                     -> characters without a token as tokens of their bytes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, cast

from aot.frontends.gguf.container import Metadata
from runtime.errors import CorruptError

SPACE = "\u2581"
UNKNOWN, CONTROL, OWN, BYTE = 2, 3, 4, 6  # types of tokens; others are normal, or unused
MOST_CHARACTERS = 128  # of a token that others are joined to: SentencePiece makes none of more than 16 by itself


def scored(package: Any, metadata: Metadata, words: Sequence[str], file: str) -> Any:
    """Build a tokenizer; CorruptError for scores and types that do not fit the words."""
    scores = _numbers(metadata, "scores", words, file)
    types = [int(t) for t in _numbers(metadata, "token_type", words, file)]
    vocabulary = {word: n for n, word in enumerate(words)}
    unknown = next((word for word, t in zip(words, types, strict=True) if t == UNKNOWN), None)
    model = package.models.BPE(
        vocab=vocabulary,
        merges=_merges(vocabulary, scores, types),
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=True,
    )
    found = package.Tokenizer(model)
    prefix = metadata.get("tokenizer.ggml.add_space_prefix") is not False
    normal, decoders = package.normalizers, package.decoders
    steps = [normal.Replace(" ", SPACE)]
    found.normalizer = normal.Sequence([normal.Prepend(SPACE), *steps] if prefix else steps)
    parts = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    found.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)] if prefix else parts)
    alone = [(w, t) for w, t in zip(words, types, strict=True) if t in (CONTROL, OWN, UNKNOWN)]
    found.add_special_tokens([package.AddedToken(w, normalized=False, special=True) for w, t in alone if t != OWN])
    found.add_tokens([package.AddedToken(w, normalized=False) for w, t in alone if t == OWN])
    return found


def _numbers(metadata: Metadata, key: str, words: Sequence[str], file: str) -> list[float]:
    found = metadata.get(f"tokenizer.ggml.{key}")
    values = cast("list[object]", found) if isinstance(found, list) else []
    numbers = [float(v) for v in values if isinstance(v, int | float) and isfinite(v)]
    if len(numbers) != len(words):
        raise CorruptError(f"{file}: tokenizer: {key} is a list of {len(words)} numbers, got {len(numbers)}")
    return numbers


def _merges(vocabulary: Mapping[str, int], scores: Sequence[float], types: Sequence[int]) -> list[tuple[str, str]]:
    """Return the pairs of tokens that make a token, those of the greatest score first."""
    found: list[tuple[float, int, str, str]] = []
    for word, n in vocabulary.items():
        if types[n] in (UNKNOWN, CONTROL, BYTE) or not 1 < len(word) <= MOST_CHARACTERS:
            continue
        halves = ((word[:k], word[k:]) for k in range(1, len(word)))
        found += [(-scores[n], n, a, b) for a, b in halves if a in vocabulary and b in vocabulary]
    return [(a, b) for _, _, a, b in sorted(found)]
