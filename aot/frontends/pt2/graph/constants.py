"""Numbers of a file as arrays."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array


def array_of(value: float | bool) -> Array:
    """Return a number as an array without axes: i64, f32 or boolean, as PyTorch has it."""
    if isinstance(value, float):
        return np.array(value, np.float32)
    return np.array(value)
