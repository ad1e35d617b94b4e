"""Elements at fractional coordinates: the form of Interpolate once its pads and scales are known.

Coordinates are fractions (i * p + q) / r of integers, so that a factor of 2 is i // 2 and nothing is rounded twice;
dynamic sizes take part in them as expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr, as_expr, cast, prim, select
from aot.ir.conditions import Condition, at_most_equal
from aot.ir.op import ComputeOp, Element, ViewOp
from aot.ir.operand import Input, Operand, Piece
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, simplify
from aot.opset.base.index_maps import whole
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding, applied, coordinates, cubic, linear, nearest
from aot.runtime.abi import DType

Taps = list[tuple[Expr, Expr | None]]  # index and weight; None is 1


@dataclass(frozen=True, slots=True)
class Place:
    """The coordinate (i * p + q) / r of element i of m, on an axis of n input elements."""

    p: Dim
    q: Dim
    r: Dim
    n: Dim
    m: Dim

    def ends(self) -> tuple[int, int] | None:
        """Return the numerators of the first and the last element; None unless they are numbers."""
        if isinstance(self.p, int) and isinstance(self.q, int) and isinstance(self.m, int):
            return self.q, self.p * (self.m - 1) + self.q
        return None

    def floor(self, i: Expr, shift: Dim = 0, times: int = 1) -> Expr:
        """Return floor(coordinate + shift / (times * r)), not yet clamped to the axis."""
        p, q, r = (simplify(v) for v in (self.p * times, self.q * times + shift, self.r * times))
        if isinstance(p, int) and isinstance(r, int) and isinstance(q, int) and (g := math.gcd(p, r)) > 1:
            p, q, r = p // g, q // g, r // g  # exact: q loses less than 1 / r
        return (i * p + q) // r

    def clamped(self, index: Expr, low: int | None, high: int | None) -> Expr:
        """Clamp `index` to 0..n - 1; the bounds that its known extremes low and high satisfy are left out."""
        if low is None or low < 0:
            index = prim("max", index, 0)
        if high is None or not isinstance(self.n, int) or high >= self.n:
            index = prim("min", index, simplify(self.n - 1))
        return index


def place_of(kind: Coordinates, n: Dim, m: Dim, ratio: tuple[int, int] | None) -> Place:
    """Return the coordinates of an axis; `ratio`: result / input as given, None: m / n. If n is m, the identity."""
    if n == m:
        return Place(1, 0, 1, n, m)
    up, down = ratio or (m, n)
    match kind:
        case Coordinates.ALIGN_CORNERS:
            p, q, r = n - 1, 0, prim("max", m - 1, 1) if isinstance(m, Expr) else max(m - 1, 1)
        case Coordinates.ASYMMETRIC:
            p, q, r = down, 0, up
        case Coordinates.TF_HALF_PIXEL_FOR_NN:
            p, q, r = 2 * down, down, 2 * up
        case _:
            p, q, r = 2 * down, down - up, 2 * up
    if kind is Coordinates.PYTORCH_HALF_PIXEL and m == 1:
        p, q, r = 0, 0, 1
    elif kind is Coordinates.PYTORCH_HALF_PIXEL and isinstance(m, Expr):
        q = as_expr(q, DType.I64) * prim("min", m - 1, 1)  # 0 for one element
    if isinstance(p, int) and isinstance(q, int) and isinstance(r, int):
        g = math.gcd(p, q, r) or 1
        p, q, r = p // g, q // g, r // g
    if _can_stay(kind, n, m, ratio):
        unchanged = prim("eq", as_expr(n, DType.I64), m)
        p, q, r = (simplify(select(unchanged, own, v)) for own, v in ((1, p), (0, q), (1, r)))
    return Place(p, q, r, n, m)


def _can_stay(kind: Coordinates, n: Dim, m: Dim, ratio: tuple[int, int] | None) -> bool:
    """True if a dynamic size may equal the input's while the formula would move its elements."""
    if isinstance(n, int) and isinstance(m, int):
        return False
    if ratio is None:
        return kind is Coordinates.TF_HALF_PIXEL_FOR_NN
    up, down = ratio  # floor(n * scale) = n: for n = 1 the element stays anyway, n > 1 needs 1 < scale < 3/2
    return kind is not Coordinates.ALIGN_CORNERS and down < up < 2 * down and 2 * up < 3 * down


@dataclass(frozen=True)
class Resampling:
    """Attributes of resampling. `scales`: numerator and denominator of each axis; if empty, input 1 holds the sizes."""

    stands_for: ClassVar[str] = "Interpolate"

    axes: tuple[int, ...] = ()
    coordinate_transformation_mode: Coordinates = Coordinates.HALF_PIXEL
    scales: tuple[int, ...] = ()

    def infer(self, x: Operand, sizes: Operand | None = None) -> TensorType:
        shape = list(x.shape)
        target = None if sizes is None or self.scales else sizes.dims(f"{type(self).__name__}: sizes")
        for k, a in enumerate(self.axes):
            up, down = self.ratio(k) or (1, 1)
            shape[a] = target[k] if target is not None else simplify(shape[a] * up // down)
        return TensorType(x.dtype, tuple(shape))

    def conditions(self, x: Operand, sizes: Operand | None = None) -> list[Condition]:
        """Require that an axis resized to a nonzero size is not empty."""
        target = () if sizes is None or self.scales else sizes.dims(f"{type(self).__name__}: sizes")
        some = [min(m, 1) if isinstance(m, int) else prim("min", m, 1) for m in target]
        pairs = zip(some, self.axes, strict=False)
        return [at_most_equal("an axis that is stretched has elements", m, x.shape[a]) for m, a in pairs]

    def ratio(self, k: int) -> tuple[int, int] | None:
        return (self.scales[2 * k], self.scales[2 * k + 1]) if self.scales else None

    def places(self, x: TensorType, out: TensorType) -> list[Place]:
        kind = self.coordinate_transformation_mode
        return [place_of(kind, x.shape[a], out.shape[a], self.ratio(k)) for k, a in enumerate(self.axes)]

    def matrices(self, x: Array, sizes: Array | None, weights: Callable[[Array, int, bool], Array]) -> list[Array]:
        """Return `weights(coordinates, n, smaller)` for each axis, for references."""
        matrices: list[Array] = []
        for k, a in enumerate(self.axes):
            n = x.shape[a]
            m = int(sizes[k]) if sizes is not None and not self.scales else 0
            up, down = self.ratio(k) or (m, n)
            m = m or n * up // down
            stays = np.arange(n, dtype=np.float64)
            at = stays if m == n else coordinates(self.coordinate_transformation_mode, n, m, up, down)
            matrices.append(weights(at, n, up < down))
        return matrices


@op()
class NearestResize(Resampling, ViewOp):
    """Copies of the nearest elements. Internal: it has no spelling in IR files."""

    nearest_mode: Rounding = Rounding.ROUND_PREFER_FLOOR

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, sizes: Operand | None = None) -> tuple[Piece, ...]:
        place_of_axis = dict(zip(self.axes, self.places(x.type, outs[0]), strict=True))
        ratios = {a: self.ratio(k) or (outs[0].shape[a], x.shape[a]) for k, a in enumerate(self.axes)}

        def index(*at: Expr) -> tuple[Expr, ...]:
            return tuple(
                self._index(place_of_axis[k], *ratios[k], i) if k in place_of_axis else i for k, i in enumerate(at)
            )

        return (whole(outs[0], index),)

    def _index(self, coordinate: Place, up: Dim, down: Dim, i: Expr) -> Expr:
        def near(j: Expr) -> Expr:
            match self.nearest_mode:
                case Rounding.ROUND_PREFER_FLOOR:
                    return coordinate.floor(j, coordinate.r - 1, 2)
                case Rounding.ROUND_PREFER_CEIL:
                    return coordinate.floor(j, coordinate.r, 2)
                case Rounding.FLOOR:
                    return coordinate.floor(j)
                case Rounding.CEIL:
                    return coordinate.floor(j, coordinate.r - 1)
                case Rounding.SIMPLE if isinstance(up, int) and isinstance(down, int):
                    return coordinate.floor(
                        j, coordinate.r - 1 if up < down else 0
                    )  # negative coordinates become 0 in any case
                case Rounding.SIMPLE:
                    return select(
                        prim("lt", as_expr(up, DType.I64), down),
                        coordinate.floor(j, coordinate.r - 1),
                        coordinate.floor(j),
                    )

        ends = [simplify(near(Const(v))) if isinstance(v, int) else None for v in (0, simplify(coordinate.m - 1))]
        low, high = (e if isinstance(e, int) else None for e in ends)
        return coordinate.clamped(near(i), low, high)

    def reference(self, x: Array, sizes: Array | None = None) -> Array:
        chosen = self.matrices(x, sizes, lambda at, n, smaller: nearest(at, self.nearest_mode, n, smaller))
        for a, index in zip(self.axes, chosen, strict=True):
            x = np.take(x, index, a)
        return x


@op()
class WeightedResize(Resampling, ComputeOp):
    """Weighted sums of 2 (linear) or 4 (cubic) elements along each axis. Internal: it has no spelling in IR files."""

    mode: Mode = Mode.LINEAR
    cube_coeff: float = -0.75

    def compute(self, out: TensorType, x: Input, sizes: Input | None = None) -> Element:
        wide = x.dtype.compute if x.dtype.is_float else DType.F32
        axis_places = self.places(x.type, out)

        def element(*index: Expr) -> Expr:
            taps = [self._taps(p, index[a], wide) for a, p in zip(self.axes, axis_places, strict=True)]
            total = self._sum(x, list(index), list(zip(self.axes, taps, strict=True)), wide)
            return total if x.dtype.is_float else cast(prim("round_even", total), x.dtype)

        return element

    def _sum(self, x: Input, index: list[Expr], rest: list[tuple[int, Taps]], wide: DType) -> Expr:
        if not rest:
            return cast(x(*index), wide)
        (axis, taps), *others = rest
        total: Expr | None = None
        for tap, weight in taps:
            index[axis] = tap
            term = self._sum(x, index, others, wide)
            term = term if weight is None else term * weight
            total = term if total is None else total + term
        assert total is not None
        return total

    def _taps(self, coordinate: Place, i: Expr, wide: DType) -> Taps:
        return self._cubic(coordinate, i, wide) if self.mode is Mode.CUBIC else self._linear(coordinate, i, wide)

    @staticmethod
    def _linear(coordinate: Place, i: Expr, wide: DType) -> Taps:
        ends, last = coordinate.ends(), simplify((coordinate.n - 1) * coordinate.r)
        numerator = i * coordinate.p + coordinate.q
        if ends is None or ends[0] < 0:
            numerator = prim("max", numerator, 0)
        if ends is None or not isinstance(last, int) or ends[1] > last:
            numerator = prim("min", numerator, last)
        if coordinate.r == 1:
            return [(numerator, None)]
        first = numerator // coordinate.r
        share = cast(numerator - first * coordinate.r, wide) / cast(coordinate.r, wide)
        return [(first, 1.0 - share), (prim("min", first + 1, simplify(coordinate.n - 1)), share)]

    def _cubic(self, coordinate: Place, i: Expr, wide: DType) -> Taps:
        if coordinate.r == 1:
            return self._linear(coordinate, i, wide)
        numerator = i * coordinate.p + coordinate.q
        first, a = numerator // coordinate.r, self.cube_coeff
        t = cast(numerator - first * coordinate.r, wide) / cast(coordinate.r, wide)
        u = 1.0 - t
        weights = [
            t * u * u * a,
            ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
            ((a + 2.0) * u - (a + 3.0)) * u * u + 1.0,
            t * t * u * a,
        ]
        return [(coordinate.clamped(first + k, None, None), w) for k, w in zip(range(-1, 3), weights, strict=True)]

    def reference(self, x: Array, sizes: Array | None = None) -> Array:
        def weights(at: Array, n: int, smaller: bool) -> Array:
            return cubic(at, n, self.cube_coeff) if self.mode is Mode.CUBIC else linear(at, n)

        return applied(x, self.axes, self.matrices(x, sizes, weights))
