"""Weights of small networks of VITS, which follow from the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.frontends.huggingface.folders import Array, weight

QUIET, LONG = 1 / 16, -1.25  # factor of the last weights: the audio is not cut off; where durations begin


def weights(shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    """Return the tensors of these names and shapes."""
    found = {key: weight(key, shape, 1.0) for key, shape in shapes.items()}
    found["decoder.conv_post.weight"] *= np.float32(QUIET)
    if "duration_predictor.flows.0.translate" in found:
        found["duration_predictor.flows.0.translate"] += np.float32(LONG)
    return found
