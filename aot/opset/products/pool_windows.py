"""Windows that slide over the spatial axes of an [N, C, ...] tensor: the geometry of convolution and pooling.

element k of window i is at     i * stride + k * dilation - before        (outside of 0 .. extent: padding)
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Buffer, Expr, Reduce, Space, Var, as_expr, cast, dense, prim
from aot.ir.conditions import Condition, at_least
from aot.ir.operand import Input
from aot.ir.types import Array, Dim, Shape, dim_text, simplify
from aot.opset.base.families import axis
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

AXIS_NAMES = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}


class AutoPad(StrEnum):
    """Source of padding: the attributes, the output's size (odd remainder at the end or at the start), or none."""

    EXPLICIT = "explicit"
    NOTSET = "notset"
    SAME_UPPER = "same_upper"
    SAME_LOWER = "same_lower"
    VALID = "valid"


class Rounding(StrEnum):
    """Rounding of the number of windows; with CEIL_TORCH none starts in the padding at the end."""

    FLOOR = "floor"
    CEIL = "ceil"
    CEIL_TORCH = "ceil_torch"


@dataclass(frozen=True, slots=True)
class Windows:
    """Geometry of windows, with one entry for each spatial axis."""

    extents: Shape
    kernel: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: Shape
    after: Shape
    rounding: Rounding = Rounding.FLOOR

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def counts(self) -> Shape:
        """Number of windows along each axis."""
        return tuple(map(self._count, range(self.rank)))

    def _count(self, a: int) -> Dim:
        reach = (self.kernel[a] - 1) * self.dilations[a] + 1
        room = simplify(self.extents[a] + self.before[a] + self.after[a] - reach)
        stride = self.strides[a]
        if self.rounding is Rounding.FLOOR:
            return room // stride + 1
        count = (room + stride - 1) // stride + 1
        if self.rounding is Rounding.CEIL:
            return count
        return smaller(count, (self.extents[a] + self.before[a] - 1) // stride + 1)

    @property
    def sizes(self) -> list[int]:
        """`counts` as numbers, for references."""
        return [_int(n) for n in self.counts]

    def fitting(self) -> list[Condition]:
        """Require at least one window along each axis of dynamic size."""
        rule = "the kernel must not be larger than the padded input"
        return [at_least(rule, n, 1) for n in self.counts if not isinstance(n, int)]

    def position(self, a: int, window: Expr, element: Expr | int) -> Expr:
        place = window * self.strides[a] + element * self.dilations[a] - self.before[a]
        return as_expr(place, DType.I64)

    @property
    def is_padded(self) -> bool:
        """True if a window may reach outside of the tensor."""
        inside = all(isinstance(p, int) and p <= 0 for p in (*self.before, *self.after))
        return not inside or self.rounding is not Rounding.FLOOR

    def read(self, x: Input, outer: Sequence[Expr | int], positions: Sequence[Expr], fill: float = 0.0) -> Expr:
        """Return x[outer, places], or `fill` in the padding."""
        return self.guard(x(*outer, *positions), positions, fill)

    def guard(self, value: Expr, positions: Sequence[Expr], fill: float) -> Expr:
        """Return `value` for an element, `fill` for padding."""
        if self.is_padded:
            for i, n in zip(positions, self.extents, strict=True):
                low, high = bounds(normal(i, {}))
                if low < 0 or not isinstance(n, int) or high >= n:
                    value = prim("within", i, as_expr(n, DType.I64), value, fill)
        return value

    def padding(self, counts: Sequence[int]) -> list[tuple[int, int]]:
        """Return the padding of each axis that encloses all windows, for references; negative to crop."""
        pads: list[tuple[int, int]] = []
        for a, (n, before) in enumerate(zip(self.extents, self.before, strict=True)):
            last = (counts[a] - 1) * self.strides[a] + (_int(self.kernel[a]) - 1) * self.dilations[a] + 1
            pads.append((_int(before), last - _int(n) - _int(before)))
        return pads

    @property
    def declared(self) -> list[tuple[int, int]]:
        """`before` and `after` as numbers, for references."""
        return [(_int(b), _int(e)) for b, e in zip(self.before, self.after, strict=True)]

    def slices(self, counts: Sequence[int], element: Sequence[int]) -> tuple[slice, ...]:
        """Return the slices of element `element` of all windows, after `padding`; for references."""
        starts = [k * d for k, d in zip(element, self.dilations, strict=True)]
        return tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(starts, counts, self.strides, strict=True))


def windows(
    what: str,
    extents: Shape,
    kernel: Shape,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: tuple[Sequence[int], Sequence[int]],
    auto_pad: AutoPad,
    rounding: Rounding = Rounding.FLOOR,
) -> Windows:
    """Return the geometry that attributes describe; empty lists mean ones, or zeros for padding."""
    rank = len(extents)
    if rank not in AXIS_NAMES:
        raise ShapeError(f"{what}: there must be 1 to 3 spatial axes, got {rank}")
    if len(kernel) != rank:
        raise ShapeError(f"{what}: the kernel must have {rank} spatial axes, got {len(kernel)}")
    steps, spread = entries(what, "strides", strides, rank, 1), entries(what, "dilations", dilations, rank, 1)
    if min((*steps, *spread)) < 1:
        raise ShapeError(f"{what}: strides and dilations must be positive, got {steps} and {spread}")
    before: Shape = (0,) * rank
    after: Shape = (0,) * rank
    if auto_pad in (AutoPad.EXPLICIT, AutoPad.NOTSET):
        before = entries(what, "pads_begin", pads[0], rank, 0)
        after = entries(what, "pads_end", pads[1], rank, 0)
    elif auto_pad is not AutoPad.VALID:
        pairs = [same(n, k, s, d, auto_pad) for n, k, s, d in zip(extents, kernel, steps, spread, strict=True)]
        before, after = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    result = Windows(extents, kernel, steps, spread, before, after, rounding)
    for n, count in zip(extents, result.counts, strict=True):
        if isinstance(count, int) and count < 1:
            raise ShapeError(f"{what}: the kernel must fit into the padded input, got an input of {dim_text(n)}")
    return result


def same(n: Dim, kernel: Dim, stride: int, dilation: int, auto_pad: AutoPad) -> tuple[Dim, Dim]:
    """Return the padding that gives ceil(n / stride) windows."""
    windows = (n + stride - 1) // stride
    total = larger(simplify((windows - 1) * stride + (kernel - 1) * dilation + 1 - n), 0)
    half = simplify(total // 2)
    rest = simplify(total - half)
    return (half, rest) if auto_pad is AutoPad.SAME_UPPER else (rest, half)


def entries(what: str, name: str, values: Sequence[int], rank: int, default: int) -> tuple[int, ...]:
    """Return an attribute with one number for each of `rank` axes."""
    if values and len(values) != rank:
        raise ShapeError(f"{what}: {name} must have {rank} entries, got {len(values)}")
    return tuple(values) or (default,) * rank


def larger(a: Dim, b: Dim) -> Dim:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else prim("max", a, b)


def smaller(a: Dim, b: Dim) -> Dim:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else prim("min", a, b)


def reduction_axis(name: str, extent: Dim) -> Var | int:
    """Return an axis to reduce over; the index 0 if it has one entry, so that neither a loop nor a term remains."""
    return 0 if extent == 1 else axis(name, extent)


def kernel_axes(kernel: Shape) -> tuple[Var | int, ...]:
    return tuple(reduction_axis(f"k{name}", n) for name, n in zip(AXIS_NAMES[len(kernel)], kernel, strict=True))


def reduce_over(fn: str, axes: Sequence[Var | int], body: Expr) -> Expr:
    """Return the `fn`-reduction over those axes that are loops; `body` itself if there are none."""
    loops = tuple(a for a in axes if isinstance(a, Var))
    return Reduce(fn, loops, body) if loops else body


def channels_last(x: Input, name: str, dtype: DType) -> tuple[Buffer, Definition]:
    """Return a copy of x [N, C, H, W] as [N, H, W, C], for data-dependent reads: channels are vectors."""
    n, c, h, w = axes = tuple(Var(k, extent) for k, extent in zip("nchw", x.shape, strict=True))
    pixels = dense(name, *(x.shape[k] for k in (0, 2, 3, 1)), space=Space.ARENA, dtype=dtype)
    return pixels, Definition(pixels, axes, cast(x(n, c, h, w), dtype), (n, h, w, c))


def pad_spatial(x: Array, pads: Sequence[tuple[int, int]], fill: float) -> Array:
    """Pad or crop the spatial axes, which are the last ones; for references."""
    grown = np.pad(x, [(0, 0)] * (x.ndim - len(pads)) + [(max(a, 0), max(b, 0)) for a, b in pads], constant_values=fill)
    ends = [slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pads, grown.shape[-len(pads) :], strict=True)]
    return grown[(..., *ends)]


def _int(n: Dim) -> int:
    assert isinstance(n, int | np.integer), "references see numbers"
    return int(n)
