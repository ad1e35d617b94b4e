"""Logits of a language model by the references of the opset, after all passes: its graph, without compiling it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aot import stages
from aot.runtime.arrays.tensors import Array
from tests.inferred import results_of


def inputs(ids: list[int], past: int) -> dict[str, np.ndarray]:
    """Return the inputs of a chunk of tokens after `past` others."""
    return {
        "input_ids": np.array([ids], np.int64),
        "attention_mask": np.ones((1, past + len(ids)), np.int64),
        "position_ids": np.arange(past, past + len(ids))[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def logits_by_references(model: Path, tokens: list[int], cut: int) -> Array:
    """Return the logits of each token; those from `cut` on are a second chunk. Types that are inferred hold."""
    graph = stages(model, level=None, activations="f32", last_logits=False).optimized
    state, found = dict[str, np.ndarray](), list[Array]()
    for feed in (inputs(tokens[:cut], 0), inputs(tokens[cut:], cut)):
        found.append(results_of(graph, [feed[node.name] for node in graph.parameters], state=state)[0][0])
    return np.concatenate(found)
