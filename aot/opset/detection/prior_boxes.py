"""Prior boxes at every cell of a grid: PriorBox, PriorBoxClustered, anchors of a feature map.

Outputs of the first two: [2, 4 * H * W * boxes]; row 0 holds corners (x0, y0, x1, y1) relative to the image size,
row 1 variances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import sqrt

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, Space, as_expr, cast, dense, prim, select
from aot.ir.conditions import Condition, alike, at_least
from aot.ir.op import ComputeOp, Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, differs
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, ShapeError


@dataclass(frozen=True)
class Prior:
    """A box around the centre of a cell, shifted by (x, y), with half width w and half height h; in pixels.

    `scaled`: w and h are fractions of the image's height. `clip`: low corners are at least 0, high ones at most 1.
    """

    w: float
    h: float
    x: float = 0.0
    y: float = 0.0
    scaled: bool = False
    clip: bool = False


@dataclass(frozen=True)
class GridOfPriors(ComputeOp, ABC):
    """Base of both; inputs: size of the grid and size of the image, each (height, width)."""

    offset: float = 0.0
    variance: tuple[float, ...] = ()
    clip: bool = False

    @abstractmethod
    def priors(self) -> tuple[Prior, ...]: ...

    @abstractmethod
    def steps(self, grid: tuple[Expr, Expr], image: tuple[Expr, Expr]) -> tuple[tuple[Expr, Expr], float]:
        """Return the distance of cells (y, x) in pixels, and the offset of the first centre in cells."""

    @abstractmethod
    def distances(self, grid: Array, image: Array) -> tuple[tuple[float, float], float]:
        """Return `steps` as numbers, for references."""

    def infer(self, grid: Operand, image: Operand) -> TensorType:
        for x in (grid, image):
            if not x.dtype.is_integer or x.rank != 1 or differs(x.shape[0], 2):
                raise ShapeError(f"{self.type}: sizes must be two integers, got {x.type}")
        if len(self.variance) not in (0, 1, 4):
            raise ModelError(f"{self.type}: there must be 1 or 4 variances, got {len(self.variance)}")
        height, width = grid.dims(f"{self.type}: size of the grid")
        return TensorType(DType.F32, (2, height * width * 4 * len(self.priors())))

    def conditions(self, grid: Operand, image: Operand) -> Sequence[Condition]:
        sizes = grid.dims(f"{self.type}: size of the grid")
        two = alike("sizes must be two integers", (*grid.shape, *image.shape), (2, 2))
        return [*two, *(at_least("the sizes of the grid must not be negative", n, 0) for n in sizes)]

    def compute(self, out: TensorType, grid: Input, image: Input) -> Element:
        priors, (_, columns) = self.priors(), grid.operand().dims(f"{self.type}: size of the grid")
        table = [[getattr(p, n) for n in ("w", "h", "x", "y", "scaled", "clip")] for p in priors]
        values = tuple(float(v) for row in table for v in row)
        priors_table = dense("priors", len(priors), 6, space=Space.TABLE, values=values)
        spread = self.variance or (0.1,)
        variances = dense("variances", 4, space=Space.TABLE, values=spread * (4 // len(spread)))
        sizes = _number(image(0)), _number(image(1))
        (step_y, step_x), before = self.steps((_number(grid(0)), _number(grid(1))), sizes)

        def element(row: Expr, place: Expr) -> Expr:
            which = place // 4 % len(priors)
            cell = place // (4 * len(priors))
            upright, high = prim("eq", place % 2, 1), prim("ge", place % 4, 2)
            middle = _number(select(upright, cell // columns, cell % columns)) + before
            middle = middle * select(upright, step_y, step_x) + select(
                upright, priors_table[which, 3], priors_table[which, 2]
            )
            half = select(upright, priors_table[which, 1], priors_table[which, 0])
            half = half * select(prim("ne", priors_table[which, 4], 0.0), sizes[0], 1.0)
            corner = (middle + select(high, half, 0.0 - half)) / select(upright, *sizes)
            cut = prim("ne", priors_table[which, 5], 0.0)
            clipped = select(high, prim("min", corner, 1.0), prim("max", corner, 0.0))
            corner = select(cut, clipped, corner)
            corner = prim("min", prim("max", corner, 0.0), 1.0) if self.clip else corner
            return select(prim("eq", row, 0), corner, variances[place % 4])

        return element

    def reference(self, grid: Array, image: Array) -> Array:
        (step_y, step_x), before = self.distances(grid.astype(np.float64), image.astype(np.float64))
        boxes = np.zeros((int(grid[0]), int(grid[1]), len(self.priors()), 4))
        for k, p in enumerate(self.priors()):
            scale = float(image[0]) if p.scaled else 1.0
            x = (np.arange(boxes.shape[1]) + before) * step_x + p.x
            y = (np.arange(boxes.shape[0])[:, None] + before) * step_y + p.y
            parts = [x - p.w * scale, y - p.h * scale, x + p.w * scale, y + p.h * scale]
            for c, v in enumerate(parts):
                share = v / float(image[1 - c % 2])
                share = (np.maximum(share, 0) if c < 2 else np.minimum(share, 1)) if p.clip else share
                boxes[:, :, k, c] = share
        flat = (np.clip(boxes, 0, 1) if self.clip else boxes).reshape(-1)
        spread = self.variance or (0.1,)
        return np.stack([flat, np.tile(spread * (4 // len(spread)), len(flat) // 4)]).astype(np.float32)


def _number(x: Expr | Dim) -> Expr:
    return cast(as_expr(x, DType.I64), DType.F32)


@dataclass(frozen=True)
class Priors(GridOfPriors):
    """Prior boxes of several sizes and aspect ratios."""

    elements = Elements.INTEGER

    min_size: tuple[float, ...] = ()
    max_size: tuple[float, ...] = ()
    aspect_ratio: tuple[float, ...] = ()
    flip: bool = False
    step: float = 0.0
    scale_all_sizes: bool = True
    fixed_ratio: tuple[float, ...] = ()
    fixed_size: tuple[float, ...] = ()
    density: tuple[float, ...] = ()

    @property
    def ratios(self) -> list[float]:
        """Aspect ratios other than 1, without repetitions, each with its inverse if `flip`."""
        ratios = [1.0]
        for r in self.aspect_ratio:
            if all(abs(r - f) >= 1e-6 for f in ratios):
                ratios += [r, 1 / r] if self.flip else [r]
        return [r for r in ratios[1:] if abs(r - 1) >= 1e-6]

    def priors(self) -> tuple[Prior, ...]:
        if self.fixed_size and len(self.density) not in (0, len(self.fixed_size)):
            raise ModelError(f"{self.type}: there must be a density for each fixed size, got {len(self.density)}")
        boxes = [p for s, size in enumerate(self.fixed_size) for p in self._dense(size, s)]
        for k, size in enumerate(self.min_size):
            boxes += self._around(k, size)
        return tuple(boxes)

    def _dense(self, size: float, s: int) -> list[Prior]:
        """Return boxes of a fixed size on a grid inside of the cell."""
        density = int(self.density[s]) if self.density else 1
        shift, half = int(size / density), int(size)
        ratios = list(self.fixed_ratio) or ([1.0] if self.density else []) + (self.ratios if self.density else [])
        marks = [n * shift + shift / 2 - half // 2 for n in range(density)]
        positions = [(x, y) for y in marks for x in marks]
        halves = [(size * 0.5 * sqrt(r), size * 0.5 / sqrt(r)) for r in ratios]
        return [Prior(w, h, x, y, clip=True) for w, h in halves for x, y in positions]

    def _around(self, k: int, size: float) -> list[Prior]:
        scaled = not self.scale_all_sizes
        first = [Prior(size / 2, size / 2, scaled=scaled)]
        middle: list[Prior] = []
        if k < len(self.max_size):
            # Only the smaller size is relative to the image's height.
            half = sqrt(size * self.max_size[k]) / 2
            middle = [Prior(half, half, scaled=scaled)]
        last: list[Prior] = []
        if self.scale_all_sizes or k == len(self.min_size) - 1:
            s = self.min_size[k if self.scale_all_sizes else 0] / 2
            last = [Prior(s * sqrt(r), s / sqrt(r), scaled=scaled) for r in self.ratios]
        return first + (middle + last if getattr(self, "min_max_aspect_ratios_order", True) else last + middle)

    def steps(self, grid: tuple[Expr, Expr], image: tuple[Expr, Expr]) -> tuple[tuple[Expr, Expr], float]:
        if self.step == 0:
            return (image[0] / grid[0], image[1] / grid[1]), 0.5
        if self.scale_all_sizes:
            step = as_expr(float(self.step), DType.F32)
        else:
            step = image[0] / grid[0] if self.step == -1 else image[0] * self.step
        return (step, step), self.offset

    def distances(self, grid: Array, image: Array) -> tuple[tuple[float, float], float]:
        if self.step == 0:
            return (float(image[0] / grid[0]), float(image[1] / grid[1])), 0.5
        scaled = float(image[0] / grid[0]) if self.step == -1 else float(self.step * image[0])
        step = self.step if self.scale_all_sizes else scaled
        return (step, step), self.offset


@op("opset8")
class PriorBox(Priors):
    """Prior boxes; `min_max_aspect_ratios_order`: the box between min and max size precedes those of other ratios."""

    min_max_aspect_ratios_order: bool = True


@op("opset1", type="PriorBox")
class PriorBox_1(Priors):
    """Prior boxes in the order min size, max size, ratios."""


@op("opset1")
class PriorBoxClustered(GridOfPriors):
    """Prior boxes with the widths and heights of the attributes."""

    clip: bool = True
    width: tuple[float, ...] = ()
    height: tuple[float, ...] = ()
    step: float = 0.0
    step_w: float = 0.0
    step_h: float = 0.0

    def priors(self) -> tuple[Prior, ...]:
        if len(self.width) != len(self.height):
            counts = f"{len(self.width)} and {len(self.height)}"
            raise ModelError(f"PriorBoxClustered: there must be as many widths as heights, got {counts}")
        return tuple(Prior(w / 2, h / 2) for w, h in zip(self.width, self.height, strict=True))

    @property
    def given(self) -> tuple[float, float] | None:
        steps = self.step_h or self.step, self.step_w or self.step
        return steps if any(steps) else None

    def steps(self, grid: tuple[Expr, Expr], image: tuple[Expr, Expr]) -> tuple[tuple[Expr, Expr], float]:
        if self.given is None:
            return (image[0] / grid[0], image[1] / grid[1]), self.offset
        return (as_expr(self.given[0], DType.F32), as_expr(self.given[1], DType.F32)), self.offset

    def distances(self, grid: Array, image: Array) -> tuple[tuple[float, float], float]:
        if self.given is None:
            return (float(image[0] / grid[0]), float(image[1] / grid[1])), self.offset
        return self.given, self.offset


@op("opset6")
class ExperimentalDetectronPriorGridGenerator(ComputeOp):
    """Anchors [P, 4] at the centre of every cell of a feature map: [H * W * P, 4], or [H, W, P, 4] unless `flatten`.

    h, w: grid size if not 0, else that of the feature map; strides likewise, else image size / grid size.
    """

    elements = Elements.FLOAT

    flatten: bool = True
    h: int = 0
    w: int = 0
    stride_x: float = 0.0
    stride_y: float = 0.0

    def _grid(self, features: Operand) -> tuple[Dim, Dim]:
        return self.h or features.shape[2], self.w or features.shape[3]

    def infer(self, priors: Operand, features: Operand, image: Operand) -> TensorType:
        if priors.rank != 2 or differs(priors.shape[1], 4) or features.rank != 4 or image.rank != 4:
            types = f"{priors.type}, {features.type}"
            raise ShapeError(f"{self.type}: inputs must be anchors [P, 4], a feature map and an image, got {types}")
        h, w = self._grid(features)
        count = priors.shape[0]
        return TensorType(priors.dtype, (h * w * count, 4) if self.flatten else (h, w, count, 4))

    def conditions(self, priors: Operand, features: Operand, image: Operand) -> Sequence[Condition]:
        return alike("anchors must have four numbers", priors.shape[1:], (4,))

    def compute(self, out: TensorType, priors: Input, features: Input, image: Input) -> Element:
        (h, w), count = self._grid(features.operand()), priors.shape[0]
        strides = [
            as_expr(stride, DType.F32) if stride else _number(image.shape[k]) / _number(n)
            for stride, k, n in ((self.stride_y, 2, h), (self.stride_x, 3, w))
        ]

        def element(*index: Expr) -> Expr:
            if self.flatten:
                row, k = index
                p, i, j = row % count, row // count // w, row // count % w
            else:
                i, j, p, k = index
            upright = prim("eq", k % 2, 1)
            middle = (_number(select(upright, i, j)) + 0.5) * select(upright, *strides)
            return priors(p, k) + cast(middle, out.dtype.compute)

        return element

    def reference(self, priors: Array, features: Array, image: Array) -> Array:
        h, w = self.h or features.shape[2], self.w or features.shape[3]
        y = (np.arange(h) + 0.5) * (self.stride_y or image.shape[2] / h)
        x = (np.arange(w) + 0.5) * (self.stride_x or image.shape[3] / w)
        middles = np.stack(np.broadcast_arrays(x[None], y[:, None], x[None], y[:, None]), -1)
        boxes = priors.astype(np.float64) + middles[:, :, None]
        return (boxes.reshape(-1, 4) if self.flatten else boxes).astype(priors.dtype)
