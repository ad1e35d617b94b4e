"""Inputs and outputs of language models, by the names that OpenVINO's exporters write."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.loading.manifest import Manifest

IDS, MASK, PLACES, ROWS = "input_ids", "attention_mask", "position_ids", "beam_idx"
NAMES = frozenset((IDS, MASK, PLACES, ROWS))
INPUTS = f"{IDS}, {MASK}, {PLACES} and {ROWS}"
LORA = LORA_A, LORA_B = "lora_a", "lora_b"  # inputs of an adapter
LOGITS = "logits"
EMBEDDING = "sentence_embedding"  # output of an encoder, a vector of each text, as exporters call it
CHUNK = 128  # tokens of a prompt at a time: each reads the keys before it only, and scores stay in the caches


def logits_of(manifest: Manifest) -> int:
    """Return the index of the output with the logits."""
    return next((i for i, t in enumerate(manifest.outputs) if t.name == LOGITS), 0)


def has_row_lengths(manifest: Manifest) -> bool:
    """True if rows of a batch may have lengths of their own."""
    options = manifest.json.get("options")
    return isinstance(options, dict) and cast("dict[str, object]", options).get("row_lengths") is True


def step_inputs(ids: Sequence[int], past: int, names: Collection[str]) -> dict[str, Array]:
    """Return the inputs, those of `names`, for tokens after `past` others."""
    values = {
        IDS: np.array([ids], np.int64),
        MASK: np.ones((1, past + len(ids)), np.int64),
        PLACES: np.arange(past, past + len(ids), dtype=np.int64)[None],
        ROWS: np.zeros(1, np.int32),
    }
    return {name: a for name, a in values.items() if name in names}
