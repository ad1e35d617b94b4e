"""Colour images between RGB or BGR and planes of brightness and colour differences (BT.601, 8 bits).

NV12   one plane Y [N, H, W, 1], one of pairs (U, V) [N, H/2, W/2, 2]; or both in one tensor [N, 3H/2, W, 1]
I420   three planes Y, U, V; or all in one tensor
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Expr, Var, cast, prim, select
from aot.ir.conditions import Condition, alike
from aot.ir.op import ComputeOp, Element, Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, simplify
from aot.opset.signal.fourier import indices
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

Y_SCALE, V_RED, V_GREEN, U_GREEN, U_BLUE = 1.164, 1.596, -0.813, -0.391, 2.018
T = TypeVar("T")
# Factors of R, G, B and 1 for Y, U and V
TO_YUV = ((0.257, 0.504, 0.098, 16.0), (-0.148, -0.291, 0.439, 128.0), (0.439, -0.368, -0.071, 128.0))


def _sum(parts: Sequence[tuple[Expr, float]]) -> Expr:
    """Return the sum of values times factors, each product and each sum rounded to f32."""
    total, *products = (prim("exact_mul", value, factor) for value, factor in parts)
    for product in products:
        total = prim("exact_add", total, product)
    return total


def _reference_sum(parts: Sequence[tuple[Array, float]]) -> Array:
    """Return the result of `_sum`, by NumPy."""
    total, *products = (value.astype(np.float32) * np.float32(factor) for value, factor in parts)
    for product in products:
        total = total + product
    return total


def _stored(value: Expr, dtype: DType) -> Expr:
    """Clip to 0..255 and convert to `dtype`; integers are rounded."""
    value = prim("min", prim("max", value, 0.0), 255.0)
    return cast(value if dtype.is_float else prim("round_away", value), dtype)


def _clipped(value: Array, dtype: np.dtype[np.generic]) -> Array:
    value = np.clip(value, 0, 255)
    return (np.floor(value) + (value % 1 >= 0.5) if dtype.kind in "iu" else value).astype(dtype)


def _colours(light: T, du: T, dv: T) -> tuple[tuple[tuple[T, float], ...], ...]:
    """Return red, green and blue as sums of values and their factors."""
    y = (light, Y_SCALE)
    return (y, (dv, V_RED)), (y, (du, U_GREEN), (dv, V_GREEN)), (y, (du, U_BLUE))


@dataclass(frozen=True)
class FromPlanes(ComputeOp):
    """Base of conversions from one, two or three planes to [N, H, W, 3]."""

    elements = Elements.NUMBER

    bgr = False
    planes = 2  # number of planes, unless one tensor holds all

    def infer(self, y: Operand, u: Operand | None = None, v: Operand | None = None) -> TensorType:
        inputs = [p for p in (y, u, v) if p is not None]
        if len(inputs) not in (1, self.planes):
            raise ShapeError(f"{self.type}: there must be 1 or {self.planes} planes, got {len(inputs)}")
        if any(p.rank != 4 or p.dtype is not y.dtype for p in inputs):
            types = ", ".join(str(p.type) for p in inputs)
            raise ShapeError(f"{self.type}: planes must have rank 4 and one type, got {types}")
        height = y.shape[1] if len(inputs) > 1 else simplify(y.shape[1] * 2 // 3)
        return TensorType(y.dtype, (y.shape[0], height, y.shape[2], 3))

    def conditions(self, y: Operand, u: Operand | None = None, v: Operand | None = None) -> Sequence[Condition]:
        n, height, width, channels = y.shape
        rules = [(channels, 1, "the first plane has one channel"), (simplify(width % 2), 0, "the width must be even")]
        if u is None:
            return [*rules, (simplify(height % 3), 0, "the height must be a multiple of 3")]
        expected = (n, simplify(height // 2), simplify(width // 2), 2 if self.planes == 2 else 1)
        pairs = [c for p in (u, v) if p is not None for c in alike("planes must fit each other", p.shape, expected)]
        return [*rules, (simplify(height % 2), 0, "the height must be even"), *pairs]

    def compute(self, out: TensorType, y: Input, u: Input | None = None, v: Input | None = None) -> Element:
        height, width = out.shape[1:3]

        def chroma(n: Expr, h: Expr, w: Expr, part: int) -> Expr:
            """Return U (part 0) or V (part 1) of a pixel."""
            i, j = h // 2, w // 2
            if u is not None:
                if self.planes == 2:
                    return u(n, i, j, part)
                plane = u if part == 0 else v
                assert plane is not None
                return plane(n, i, j, 0)
            if self.planes == 2:
                return y(n, height + i, j * 2 + part, 0)
            position = i * (width // 2) + j + (height * width // 4 if part else 0)
            return y(n, height + position // width, position % width, 0)

        def element(n: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
            light = cast(y(n, h, w, 0), DType.F32) - 16.0
            du, dv = (cast(chroma(n, h, w, p), DType.F32) - 128.0 for p in (0, 1))
            red, green, blue = (_sum(parts) for parts in _colours(light, du, dv))
            first, last = (blue, red) if self.bgr else (red, blue)
            return _stored(select(prim("eq", c, 0), first, select(prim("eq", c, 1), green, last)), out.dtype)

        return element

    def reference(self, y: Array, u: Array | None = None, v: Array | None = None) -> Array:
        if u is None:
            height, width = y.shape[1] * 2 // 3, y.shape[2]
            flat = y[:, height:].reshape(len(y), -1)
            y = y[:, :height]
            if self.planes == 2:
                u = flat.reshape(len(y), height // 2, width // 2, 2)
            else:
                u, v = (p.reshape(len(y), height // 2, width // 2, 1) for p in np.split(flat, 2, 1))
        both = u if v is None else np.concatenate([u, v], -1)
        both = both.astype(np.float32).repeat(2, 1).repeat(2, 2) - 128
        light, du, dv = y[..., 0].astype(np.float32) - 16, both[..., 0], both[..., 1]
        parts = [_reference_sum(parts) for parts in _colours(light, du, dv)]
        return _clipped(np.stack(parts[::-1] if self.bgr else parts, -1), y.dtype)


@op("opset8")
class NV12toRGB(FromPlanes):
    """Planes Y and UV to RGB."""


@op("opset8")
class NV12toBGR(FromPlanes):
    """Planes Y and UV to BGR."""

    bgr = True


@op("opset8")
class I420toRGB(FromPlanes):
    """Planes Y, U and V to RGB."""

    planes = 3


@op("opset8")
class I420toBGR(FromPlanes):
    """Planes Y, U and V to BGR."""

    bgr = True
    planes = 3


@dataclass(frozen=True)
class ToPlanes(LoopOp):
    """Base of conversions from [N, H, W, 3] to Y of each pixel, U and V of the means of 2 x 2 pixels."""

    elements = Elements.NUMBER

    single_plane: bool = True
    bgr = False

    def infer(self, x: Operand) -> TensorType | tuple[TensorType, ...]:
        if x.rank != 4:
            raise ShapeError(f"{self.type}: the input must be an image [N, H, W, 3], got {x.type}")
        n, height, width, _ = x.shape
        if self.single_plane:
            return TensorType(x.dtype, (n, height * 3 // 2, width, 1))
        return TensorType(x.dtype, (n, height, width, 1)), TensorType(x.dtype, (n, height // 2, width // 2, 2))

    def conditions(self, x: Operand) -> Sequence[Condition]:
        rests = [(simplify(n % 2), 0, "height and width must be even") for n in x.shape[1:3]]
        return [*rests, (x.shape[3], 3, "pixels are 3 numbers")]

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        n, height, width, _ = x.shape

        def mixed(factors: tuple[float, ...], at: tuple[Expr, ...]) -> Expr:
            order = (2, 1, 0) if self.bgr else (0, 1, 2)
            return _sum([(cast(x(*at, c), DType.F32), f) for c, f in zip(order, factors, strict=False)])

        (*axes, _), (b, i, j, _) = _axes(n, height, width)
        light = _stored(mixed(TO_YUV[0], (b, i, j)) + TO_YUV[0][3], x.dtype)
        first = Definition(outs[0], tuple(axes), light, (b, i, j, Const(0)))
        over, (b, i, j, c) = _axes(n, height // 2, width // 2)
        parts: list[Expr] = []
        for factors in TO_YUV[1:]:
            corners = [mixed(factors, (b, i * 2 + r, j * 2 + s)) + factors[3] for r in (0, 1) for s in (0, 1)]
            parts.append((corners[0] + corners[1] + corners[2] + corners[3]) * 0.25)
        colour = _stored(select(prim("eq", c, 0), *parts), x.dtype)
        target = (b, height + i, j * 2 + c, Const(0)) if self.single_plane else (b, i, j, c)
        return first, Definition(outs[-1], over, colour, target)

    def reference(self, x: Array) -> Array | tuple[Array, ...]:
        n, height, width, _ = x.shape
        rgb = np.moveaxis(x[..., ::-1] if self.bgr else x, -1, 0)
        light, u, v = (_reference_sum(list(zip(rgb, f[:3], strict=True))) + np.float32(f[3]) for f in TO_YUV)
        squares = [p.reshape(n, height // 2, 2, width // 2, 2) for p in (u, v)]
        means = [sum(p[:, :, r, :, s] for r in (0, 1) for s in (0, 1)) * np.float32(0.25) for p in squares]
        light, colour = _clipped(light, x.dtype)[..., None], _clipped(np.stack(means, -1), x.dtype)
        if not self.single_plane:
            return light, colour
        return np.concatenate([light, colour.reshape(n, height // 2, width, 1)], 1)


def _axes(*shape: Dim) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    return indices((*shape, 2))


@op("opset17")
class RGBtoNV12(ToPlanes):
    """RGB to planes Y and UV."""


@op("opset17")
class BGRtoNV12(ToPlanes):
    """BGR to planes Y and UV."""

    bgr = True
