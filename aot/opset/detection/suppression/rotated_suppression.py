"""NMSRotated: non-maximum suppression of rotated boxes."""

from __future__ import annotations

from functools import partial

import numpy as np

from aot.codegen.ir.loops import Buffer, Expr, prim
from aot.codegen.script.script import Scripted, array, loops, select, var
from aot.ir.op import Elements
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.detection.selected_rows import SelectedRows
from aot.opset.detection.suppression.suppression import NonMaxSuppressionBase
from aot.runtime.abi import DType

CORNERS = ((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5))  # corners of a box, in widths and heights
MAX_POINTS = 20  # cutting by a line adds at most one point per two points: 4, 6, 9, 13, 19


@op("opset13")
class NMSRotated(SelectedRows):
    """Boxes [N, B, 5] (centre x, y, width, height, angle in radians); outputs as NonMaxSuppression, without a sigma."""

    arity = (2, 5)
    elements = Elements.FLOAT
    uniform = (0, 1)

    sort_result_descending: bool = True
    output_type: DType = DType.I64
    clockwise: bool = True

    @property
    def padded(self) -> PaddedNMSRotated:
        return PaddedNMSRotated(**vars(self))

    def infer(self, boxes: Operand, scores: Operand, *limits: Operand) -> tuple[TensorType, ...]:
        return self.row_types(boxes, scores, *limits)


@op()
class PaddedNMSRotated(NonMaxSuppressionBase):
    """NMSRotated with outputs sized for the most rows, and -1 after the last."""

    arity = (5, 5)
    name = "NMSRotated"
    numbers = 5
    held = 6

    sort_result_descending: bool = True
    output_type: DType = DType.I64
    clockwise: bool = True

    @property
    def order(self) -> tuple[bool, DType]:
        return self.sort_result_descending, self.output_type

    def measure(self, held: Buffer) -> Scripted:
        return partial(_numbers, 1.0 if self.clockwise else -1.0), _overlapping, held

    def chosen(self, boxes: Array, scores: Array, most: int, *limits: float) -> list[tuple[int, float]]:
        indices = list[int]()
        for i in (int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > limits[1]):
            if len(indices) < most and all(_iou(boxes[i], boxes[j], self.clockwise) <= limits[0] for j in indices):
                indices.append(i)
        return [(i, scores[i]) for i in indices]


def _rotated(x: Scripted, y: Scripted, angle: tuple[Scripted, Scripted]) -> tuple[Scripted, Scripted]:
    """Return (x, y) rotated by an angle, given as its cosine and sine."""
    cosine, sine = angle
    return cosine * x - sine * y, sine * x + cosine * y


def _numbers(way: float, boxes: Buffer, n: Expr, i: Expr) -> tuple[Expr, ...]:
    """Return centre, size, and cosine and sine of the angle times `way`: 1 if y grows downwards."""
    angle = boxes[n, i, 4] * way
    return (*(boxes[n, i, k] for k in range(4)), prim("cos", angle), prim("sin", angle))


@loops
def _overlapping(a: Scripted, b: Scripted) -> Scripted:
    """Return intersection over union: the corners of `a` in the coordinates of `b`, cut by the four sides of `b`."""
    middle = [a[k] - b[k] for k in (0, 1)]
    width, height = a[2], a[3]
    size = [b[2], b[3]]
    points = array(MAX_POINTS, 2)
    cut = array(MAX_POINTS, 2)
    for k, (right, up) in enumerate(CORNERS):
        corner = _rotated(width * right, height * up, (a[4], a[5]))
        seen = _rotated(corner[0] + middle[0], corner[1] + middle[1], (b[4], 0.0 - b[5]))
        points[k, 0] = seen[0]
        points[k, 1] = seen[1]
    number = var(4, DType.I64)
    for axis in (0, 1):
        number = _cut(points, cut, number, axis, 1.0, size[axis] * 0.5)
        number = _cut(cut, points, number, axis, -1.0, size[axis] * 0.5)
    area = var(0.0)
    for i in range(number):
        j = select(i + 1 < number, i + 1, 0)
        area += points[i, 0] * points[j, 1] - points[j, 0] * points[i, 1]
    common = abs(area) * 0.5
    areas = (width * height, size[0] * size[1])
    real = prim("and", prim("gt", areas[0], 0.0), prim("gt", areas[1], 0.0))
    return select(real, common / select(real, areas[0] + areas[1] - common, 1.0), 0.0)


@loops
def _cut(points: Scripted, out: Scripted, number: Scripted, axis: int, side: float, limit: Scripted) -> Scripted:
    """Cut a polygon to side * coordinate <= limit; returns the number of its points."""
    total = var(0, DType.I64)
    for i in range(number):
        j = select(i + 1 < number, i + 1, 0)
        inside = limit - points[i, axis] * side
        after = limit - points[j, axis] * side
        if inside >= 0.0:
            for k in (0, 1):
                out[total, k] = points[i, k]
            total += 1
        if inside * after < 0.0:
            share = inside / (inside - after)
            for k in (0, 1):
                out[total, k] = points[i, k] + (points[j, k] - points[i, k]) * share
            total += 1
    return total


def _iou(a: Array, b: Array, clockwise: bool) -> float:
    """Return the intersection over union, for references."""
    way = 1.0 if clockwise else -1.0  # y grows downwards
    own, other = (np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) for t in (a[4] * way, -b[4] * way))
    corners: Array = (np.array(CORNERS) * a[2:4] @ own.T + a[:2] - b[:2]) @ other.T
    points = list[Array](corners)
    for axis, side in ((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)):
        left: list[Array] = []
        for p, q in zip(points, points[1:] + points[:1], strict=True):
            inside, after = (b[2 + axis] / 2 - v[axis] * side for v in (p, q))
            left += [p] if inside >= 0 else []
            left += [p + (q - p) * (inside / (inside - after))] if inside * after < 0 else []
        points = left
    following = points[1:] + points[:1]
    common = abs(sum(float(p[0] * q[1] - q[0] * p[1]) for p, q in zip(points, following, strict=True))) / 2
    areas = float(a[2] * a[3]), float(b[2] * b[3])
    return common / (sum(areas) - common) if min(areas) > 0 else 0.0
