"""The greatest value of an index over axes of known extents, from all of its values.

(c // 4 * 4 + (c % 4 * 3 + h) // 2) // 2     the quotients are not at their ends together, so that ends of its parts,
                                             as in `reach`, give more than it reaches
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Const, Expr, Prim, Var

MAX_POINTS = 1 << 22  # most points that are evaluated
Array = np.ndarray[Any, np.dtype[np.int64]]


def _divided(a: Array, b: Array) -> Array:
    return a // np.maximum(b, 1)


def _remainder(a: Array, b: Array) -> Array:
    return a % np.maximum(b, 1)


_CALLS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "neg": np.negative,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "floordiv": _divided,
    "mod": _remainder,
}


def greatest(index: Expr) -> int | None:
    """Return the greatest value of `index`; None if an extent is not known, or there are too many points."""
    axes = sorted(variables(index), key=lambda v: v.name)
    extents = [v.extent - v.low for v in axes if isinstance(v.extent, int)]
    if len(extents) < len(axes) or not 0 < prod(extents) <= MAX_POINTS:
        return None
    axis_values = {
        v: np.arange(n, dtype=np.int64).reshape([n if k == j else 1 for j in range(len(axes))]) + v.low
        for k, (v, n) in enumerate(zip(axes, extents, strict=True))
    }
    values = _values(index, axis_values)
    return None if values is None else int(values.max())


def _values(e: Expr, axis_values: Mapping[Var, Array]) -> Array | None:
    match e:
        case Var():
            return axis_values[e]
        case Const(value):
            return np.array(int(value), np.int64)
        case Prim(fn, args) if fn in _CALLS:
            parts = [p for a in args if (p := _values(a, axis_values)) is not None]
            return _CALLS[fn](*parts) if len(parts) == len(args) else None
        case _:
            return None
