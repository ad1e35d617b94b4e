"""Anchors moved by deltas, and the search for the best of them."""

from __future__ import annotations

from functools import partial
from math import log

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, Size, Space, dense, prim
from aot.codegen.script.script import Scripted, loops, parallel
from aot.ir.types import Array, Dim
from aot.opset.detection.boxes import Measure, Ranking, greedy, keep_apart, overlap, room_for
from aot.runtime.abi import DType

LOG_LIMIT = log(1000 / 16)  # largest logarithm of a ratio of sizes


@dataclass(frozen=True)
class Search:
    """Numbers of boxes considered and kept, and the overlap threshold."""

    images: Dim
    boxes: Dim
    most: int
    keep: int
    threshold: float
    offset: float


@loops
def search_boxes(
    boxes: Scripted, scores: Scripted, order: Scripted, held: Scripted, kept: Scripted, counts: Scripted, s: Scripted
) -> None:
    """Write kept[image, 0..count - 1]: the best boxes that do not overlap better ones."""
    for n in parallel(s.images):
        for m in range(s.boxes):
            order[n, m] = m
        span = (s.boxes, min(s.boxes, s.most), s.keep)
        measure = Measure(partial(corners, boxes, n), partial(overlap, offset=s.offset), held)
        keep_apart(Ranking(order, (n,), scores, (n,)), kept, counts, span, measure, s.threshold)


def corners(boxes: Buffer, n: Expr, i: Expr) -> tuple[Expr, ...]:
    """Return (y0, x0, y1, x1)."""
    return tuple(boxes[n, i, c] for c in (1, 0, 3, 2))


def temporaries(s: Search) -> tuple[Buffer, ...]:
    return (
        dense("boxes", s.images, s.boxes, 4, space=Space.ARENA),
        dense("scores", s.images, s.boxes, space=Space.ARENA),
        dense("order", s.images, s.boxes, space=Space.ARENA, dtype=DType.I64),
        room_for(4, s.keep, s.images),
        dense("kept", s.images, s.keep, space=Space.ARENA, dtype=DType.I64),
        dense("counts", s.images, space=Space.ARENA, dtype=DType.I64),
    )


def searched(boxes: Array, scores: Array, s: Search) -> list[int]:
    order = np.lexsort((np.arange(len(scores)), -scores))[: s.most]
    return greedy(boxes[:, [1, 0, 3, 2]], order, s.threshold, s.keep, s.offset)


@loops
def moved_corners(corners: Scripted, delta: Scripted, offset: float, back: float) -> Scripted:
    """Return (x0, y0, x1, y1) moved by (dx, dy, log w, log h); `back` is subtracted from the high corners."""
    size = [corners[k + 2] - corners[k] + offset for k in (0, 1)]
    middle = [corners[k] + size[k] * 0.5 + delta[k] * size[k] for k in (0, 1)]
    half = [prim("exp", delta[k + 2]) * size[k] * 0.5 for k in (0, 1)]
    return [middle[0] - half[0], middle[1] - half[1], middle[0] + half[0] - back, middle[1] + half[1] - back]


def moved_array(corners: Array, delta: Array, offset: float, back: float) -> Array:
    """Return boxes [n, 4] moved by `delta` [n, 4], as `moved_corners` does; for references."""
    size = corners[:, 2:] - corners[:, :2] + offset
    middle, half = corners[:, :2] + size * 0.5 + delta[:, :2] * size, np.exp(delta[:, 2:]) * size * 0.5
    return np.concatenate([middle - half, middle + half - back], 1)


def within(v: Expr, most: Expr) -> Expr:
    """Return `v` clamped to 0 .. `most`."""
    return prim("max", prim("min", v, most), 0.0)


class Image:
    """Height, width and scales of the input image, read from memory; `last`: place of the first coordinate's scale."""

    def __init__(self, buffer: Buffer, last: Size, upright_first: bool = False) -> None:
        self.buffer, self.last, self.upright_first = buffer, last, upright_first

    def __call__(self, k: Size) -> Expr:
        index = (0, k) if len(self.buffer.shape) == 2 else (k,)
        return self.buffer[index]

    def limit(self, axis: int) -> Expr:
        """Return the size along the first or second coordinate of boxes: width, height, or the other way round."""
        return self(axis if self.upright_first else 1 - axis)

    def scale(self, axis: int) -> Expr:
        return self(self.last if axis == 0 else 2)
