"""Corners of boxes in the encodings of NonMaxSuppression."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from aot.codegen.ir.loops import Buffer, Expr, prim
from aot.codegen.script.script import Scripted
from aot.ir.types import Array


class Encoding(StrEnum):
    """Encoding of a box: two opposite corners (y, x, y, x), or (centre x, centre y, width, height)."""

    CORNER = "corner"
    CENTER = "center"


def corner_array(boxes: Array, encoding: Encoding) -> Array:
    """Return boxes [..., 4] as (low, low, high, high) corners; for references."""
    if encoding is Encoding.CENTER:
        middle, half = boxes[..., [1, 0]], boxes[..., [3, 2]] / 2
        return np.concatenate([middle - half, middle + half], -1)
    return np.concatenate([np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def corners_of(encoding: Encoding, boxes: Buffer, n: Expr, i: Scripted) -> tuple[Expr, Expr, Expr, Expr]:
    """Return the corners (low, low, high, high) of box `i` of image `n`."""
    a, b, c, d = (boxes[n, i, k] for k in range(4))
    if encoding is Encoding.CENTER:
        return b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0
    return prim("min", a, c), prim("min", b, d), prim("max", a, c), prim("max", b, d)
