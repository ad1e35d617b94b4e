"""Inputs and outputs of language models, by the names that OpenVINO's exporters write."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from runtime.arrays.tensors import Array

IDS, MASK, PLACES, ROWS = "input_ids", "attention_mask", "position_ids", "beam_idx"
NAMES = frozenset((IDS, MASK, PLACES, ROWS))
INPUTS = f"{IDS}, {MASK}, {PLACES} and {ROWS}"
LOGITS = "logits"


def step_inputs(ids: Sequence[int], past: int, names: Collection[str]) -> dict[str, Array]:
    """Return the inputs, those of `names`, for tokens behind `past` others."""
    every = {
        IDS: np.array([ids], np.int64),
        MASK: np.ones((1, past + len(ids)), np.int64),
        PLACES: np.arange(past, past + len(ids), dtype=np.int64)[None],
        ROWS: np.zeros(1, np.int32),
    }
    return {name: a for name, a in every.items() if name in names}
