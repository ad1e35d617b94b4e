"""GridSample: an image sampled at data-dependent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Var, as_expr, cast, prim, select
from aot.ir.conditions import Condition, alike
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.opset.products.pool_windows import channels_last
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

CUBIC_COEFFICIENT = -0.75  # the `a` of Keys' cubic convolution
MIN_VECTOR_CHANNELS = 8  # least number of channels that fill vectors
MAX_POSITION = 1e9  # limit of places: beyond any image, and sums with it stay exact integers

Pixel = Callable[[Expr, Expr], Expr]


class SampleMode(StrEnum):
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    NEAREST = "nearest"


class Outside(StrEnum):
    """Values read outside of the image."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


@op("opset9")
class GridSample(LoopOp):
    """out[n, c, i, j] = image[n, c] at (y, x) = (grid[n, i, j, 1], grid[n, i, j, 0]), where -1 and 1 are its ends.

    The ends are the outer edges of the outermost pixels, or with `align_corners` their centres.
    """

    elements = Elements.NUMBER

    align_corners: bool = False
    mode: SampleMode = SampleMode.BILINEAR
    padding_mode: Outside = Outside.ZEROS

    def infer(self, image: Operand, grid: Operand) -> TensorType:
        if image.rank != 4 or grid.rank != 4:
            expected = "image [N, C, H, W] and grid [N, H', W', 2] are needed"
            raise ShapeError(f"GridSample: {expected}, got {image.type} and {grid.type}")
        return TensorType(image.dtype, (*image.shape[:2], *grid.shape[1:3]))

    def conditions(self, image: Operand, grid: Operand) -> Sequence[Condition]:
        return alike("batches must be equal, places are 2 numbers", (grid.shape[0], grid.shape[3]), (image.shape[0], 2))

    def nest(self, outs: tuple[Buffer, ...], image: Input, grid: Input) -> tuple[Work, ...]:
        n, c, i, j = axes = tuple(Var(name, extent) for name, extent in zip("ncij", outs[0].shape, strict=True))
        pixels, works = image.buffer, tuple[Work, ...]()
        rows = self._gathers_rows(image.shape, grid.shape)
        if rows:
            pixels, copied = channels_last(image, "pixels", image.dtype)
            works = (copied,)

        x, y = self._place(grid(n, i, j, 0), image.shape[3]), self._place(grid(n, i, j, 1), image.shape[2])

        def read(row: Expr, column: Expr) -> Expr:
            return pixels[(n, row, column, c) if rows else (n, c, row, column)]

        def pixel(row: Expr, column: Expr) -> Expr:
            return self._pixel(read, image.shape[2:], row, column)

        if self.mode is SampleMode.NEAREST:
            value = pixel(_index(prim("round_even", y)), _index(prim("round_even", x)))
        else:
            value = cast(_weighted(y, x, self.mode is SampleMode.BICUBIC, pixel), outs[0].dtype)
        return (*works, Definition(outs[0], axes, value))

    def _gathers_rows(self, image: Shape, grid: Shape) -> bool:
        """True if channels fill vectors, and enough pixels are read that a copy with channels last pays."""
        _, channels, height, width = image
        taps = {SampleMode.NEAREST: 1, SampleMode.BILINEAR: 4, SampleMode.BICUBIC: 16}[self.mode]
        size, reads = height * width, grid[1] * grid[2] * taps
        small = not (isinstance(size, int) and isinstance(reads, int)) or size <= reads
        return isinstance(channels, int) and channels >= MIN_VECTOR_CHANNELS and small

    def _place(self, coordinate: Expr, extent: Dim) -> Expr:
        """Map a coordinate from -1..1 to pixels, within `MAX_POSITION`."""
        size = cast(as_expr(extent, DType.I64), coordinate.dtype)
        corner = (coordinate + 1.0) * (size - 1.0) if self.align_corners else (coordinate + 1.0) * size - 1.0
        pixel = corner / 2.0
        return prim("min", prim("max", pixel, -MAX_POSITION), MAX_POSITION)

    def _pixel(self, read: Pixel, extents: Shape, row: Expr, column: Expr) -> Expr:
        height, width = extents
        if self.padding_mode is not Outside.ZEROS:
            row, column = self._inside(row, height), self._inside(column, width)
        sizes = ((row, height), (column, width))
        within = [prim("lt", cast(i, DType.U64), cast(as_expr(n, DType.I64), DType.U64)) for i, n in sizes]
        if not all(isinstance(n, int) and n for _, n in sizes):  # there may be no pixel to read
            outside = select(prim("and", *within), as_expr(0, DType.I64), 1)
            return prim("within", outside, 1, read(row, column), 0)
        if self.padding_mode is not Outside.ZEROS:
            return read(row, column)
        value = read(*(prim("max", prim("min", i, n - 1), 0) for i, n in sizes))
        return select(prim("and", *within), value, as_expr(0, value.dtype))

    def _inside(self, i: Expr, n: Dim) -> Expr:
        if self.padding_mode is Outside.BORDER:
            return prim("max", prim("min", i, n - 1), 0)
        if n == 1:
            return as_expr(0, DType.I64)
        period = (n - 1) * 2 if self.align_corners else n * 2
        if not isinstance(n, int):
            period = prim("max", as_expr(period, DType.I64), 1)
        folded = i % period
        return prim("min", folded, (period if self.align_corners else period - 1) - folded)

    def reference(self, image: Array, grid: Array) -> Array:
        height, width = image.shape[2:]
        coordinates = grid.astype(np.float64 if grid.dtype == np.float64 else np.float32)
        x, y = self._pixels(coordinates[..., 0], width), self._pixels(coordinates[..., 1], height)
        if self.mode is SampleMode.NEAREST:
            return self._read(image, np.rint(y), np.rint(x))
        taps, weights = (range(-1, 3), _keys) if self.mode is SampleMode.BICUBIC else (range(2), _linear)
        total = np.zeros((image.shape[0], image.shape[1], *x.shape[1:]), np.float64)
        for wy, dy in zip(weights(y - np.floor(y)), taps, strict=True):
            for wx, dx in zip(weights(x - np.floor(x)), taps, strict=True):
                pixels = self._read(image, np.floor(y) + dy, np.floor(x) + dx).astype(np.float64)
                total += (wy.astype(np.float64) * wx)[:, None] * pixels
        return total.astype(image.dtype)

    def _pixels(self, coordinate: Array, extent: int) -> Array:
        one, two = coordinate.dtype.type(1), coordinate.dtype.type(2)
        if self.align_corners:
            return (coordinate + one) * coordinate.dtype.type(extent - 1) / two
        return ((coordinate + one) * coordinate.dtype.type(extent) - one) / two

    def _read(self, image: Array, row: Array, column: Array) -> Array:
        """Return image[n, :, row[n], column[n]], by `padding_mode` outside of the image."""
        valid = np.ones(row.shape, np.bool_)
        indices: list[Array] = []
        for i, n in ((row.astype(np.int64), image.shape[2]), (column.astype(np.int64), image.shape[3])):
            if self.padding_mode is Outside.BORDER:
                i = np.clip(i, 0, n - 1)
            elif self.padding_mode is Outside.REFLECTION:
                bounce = [*range(n), *(range(n - 2, 0, -1) if self.align_corners else range(n - 1, -1, -1))]
                i = np.array(bounce)[i % len(bounce)]
            valid &= (i >= 0) & (i < n)
            indices.append(np.clip(i, 0, n - 1))
        batch = np.expand_dims(np.arange(image.shape[0], dtype=np.int64), (1, 2))
        pixels = np.moveaxis(image[batch, :, indices[0], indices[1]], -1, 1)
        return np.where(valid[:, None], pixels, np.zeros((), image.dtype))


def _index(coordinate: Expr) -> Expr:
    """Convert a whole number within `MAX_POSITION` by way of 32 bits, which every target can convert in vectors."""
    return cast(cast(coordinate, DType.I32), DType.I64)


def _weighted(y: Expr, x: Expr, cubic: bool, pixel: Pixel) -> Expr:
    """Return the weighted sum over the pixels around (y, x)."""
    top, left = prim("floor", y), prim("floor", x)
    row, column = _index(top), _index(left)
    down, right = y - top, x - left
    first = -1 if cubic else 0
    across = _cubic(right) if cubic else [1.0 - right, right]
    total: Expr | None = None
    for dy, wy in enumerate(_cubic(down) if cubic else [1.0 - down, down]):
        line: Expr | None = None
        for dx, wx in enumerate(across):
            term = cast(pixel(row + (first + dy), column + (first + dx)), wx.dtype) * wx
            line = term if line is None else line + term
        assert line is not None
        total = line * wy if total is None else total + line * wy
    assert total is not None
    return total


def _cubic(s: Expr) -> list[Expr]:
    """Return the weights of the pixels at -1, 0, 1, 2 for a place at distance s after pixel 0."""
    a = CUBIC_COEFFICIENT

    def near(d: Expr) -> Expr:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0

    def far(d: Expr) -> Expr:
        return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a

    return [far(s + 1.0), near(s), near(1.0 - s), far(2.0 - s)]


def _linear(s: Array) -> tuple[Array, ...]:
    return np.asarray(1 - s), s


def _keys(s: Array) -> tuple[Array, ...]:
    a, t = CUBIC_COEFFICIENT, 1 - s
    outer = [a * d * (1 - d) ** 2 for d in (s, t)]
    inner = [1 + d * d * ((a + 2) * d - (a + 3)) for d in (s, t)]
    return outer[0], inner[0], inner[1], outer[1]
