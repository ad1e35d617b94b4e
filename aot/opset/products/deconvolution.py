"""Transposed convolutions, as a gather: which kernel element `k` and input element reach output element i.

    i + pad = input * stride + k * dilation     with g = gcd(stride, dilation), all of it divided by g:
    k = k0(i) + q * stride / g,  q = 0, 1, ...        k0 solves the equation modulo stride / g

A kernel as large as its stride leaves one q: a plain product with k = i % stride, input = i // stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Expr, Var, as_expr, prim, select
from aot.ir.conditions import Condition
from aot.ir.op import ComputeOp, Element
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, simplify
from aot.opset.products.convolution import CHANNELS_RULE, Windowed, accumulator, check_data
from aot.opset.products.pool_windows import AXIS_NAMES, AutoPad, entries, larger, reduce_over, reduction_axis
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Spread:
    """Geometry of a spatial axis: input element j adds to output element j * stride + k * dilation - before."""

    extent: Dim
    kernel: Dim
    stride: int
    dilation: int
    before: Dim
    count: Dim

    @property
    def common(self) -> int:
        return gcd(self.stride, self.dilation)

    @property
    def phases(self) -> Dim:
        """Greatest number of kernel elements that reach one output element."""
        step = self.stride // self.common
        return (self.kernel + step - 1) // step

    def sources(self, i: Expr, q: Var | int) -> tuple[Expr, Expr]:
        """Return kernel and input element that reach output element `i` in phase `q`; either may be out of range."""
        step, dilation = self.stride // self.common, self.dilation // self.common
        position = (i + self.before) // self.common
        inverse = pow(dilation, -1, step) if step > 1 else 0
        k = (position * inverse) % step + q * step
        return as_expr(k, DType.I64), as_expr(simplify((position - k * dilation) // step), DType.I64)

    def weight(self, value: Expr, k: Expr) -> Expr:
        """Return the weight `value`, 0 if `k` is beyond the kernel's end."""
        whole = isinstance(self.kernel, int) and self.kernel % (self.stride // self.common) == 0
        return value if whole else prim("within", k, as_expr(self.kernel, DType.I64), value, 0)

    def data(self, value: Expr, position: Expr) -> Expr:
        """Return the input element `value`, 0 if `position` is outside of the input."""
        low, high = bounds(normal(position, {}))
        inside = low >= 0 and isinstance(self.extent, int) and high < self.extent
        whole = self.before == 0 and self.count == simplify(self.extent * self.stride)
        tiled = whole and self.phases == 1 and self.common == 1
        return value if inside or tiled else prim("within", position, as_expr(self.extent, DType.I64), value, 0)

    def reached(self, i: Expr) -> Expr | None:
        """Return the condition that any input reaches output element `i`; None: always."""
        return prim("eq", (i + self.before) % self.common, 0) if self.common > 1 else None


@dataclass(frozen=True)
class Transposed(Windowed):
    """Base of both transposed convolutions."""

    output_padding: tuple[int, ...] = ()

    def spreads(self, extents: Shape, kernel: Shape, target: Shape | None) -> tuple[Spread, ...]:
        """Return each axis' geometry; a `wanted` output shape decides the padding, which `auto_pad` distributes."""
        rank = len(extents)
        strides = entries(self.type, "strides", self.strides, rank, 1)
        dilations = entries(self.type, "dilations", self.dilations, rank, 1)
        extra = entries(self.type, "output_padding", self.output_padding, rank, 0)
        if target is not None and len(target) != rank:
            raise ShapeError(f"{self.type}: output_shape must have {rank} entries, got {len(target)}")
        if min((*strides, *dilations)) < 1:
            raise ShapeError(f"{self.type}: strides and dilations must be positive, got {strides} and {dilations}")
        explicit = self.auto_pad in (AutoPad.EXPLICIT, AutoPad.NOTSET)
        begin = entries(self.type, "pads_begin", self.pads_begin if explicit else (), rank, 0)
        end = entries(self.type, "pads_end", self.pads_end if explicit else (), rank, 0)
        spreads: list[Spread] = []
        for a, (n, k, s, d) in enumerate(zip(extents, kernel, strides, dilations, strict=True)):
            full = (n - 1) * s + (k - 1) * d + 1 + extra[a]
            before: Dim = begin[a]
            count = full - begin[a] - end[a]
            if target is not None:
                count = target[a]
                total = larger(simplify(full - count), 0)
                before = total - total // 2 if self.auto_pad is AutoPad.SAME_UPPER else total // 2
            spreads.append(Spread(n, k, s, d, simplify(before), simplify(count)))
        return tuple(spreads)

    def result(self, x: Operand, channels: Dim, kernel: Shape, output_shape: Operand | None) -> TensorType:
        target = None if output_shape is None else output_shape.dims(f"{self.type}: output_shape")
        spreads = self.spreads(x.shape[2:], kernel, target)
        for s in spreads:
            if isinstance(s.count, int) and s.count < 1:
                raise ShapeError(f"{self.type}: output must not be empty, got {s.count}")
        return TensorType(x.dtype, (x.shape[0], channels, *(s.count for s in spreads)))

    def wanted(self, out: Shape, output_shape: Input | Array | None) -> Shape | None:
        return None if output_shape is None else out


@op("opset1")
class ConvolutionBackpropData(Transposed, ComputeOp):
    """Data [N, IC, spatial...], weights [IC, OC, kernel...], perhaps the output's spatial shape, give [N, OC, ...]."""

    def infer(self, x: Operand, w: Operand, output_shape: Operand | None = None) -> TensorType:
        check_data(self.type, x, w, x.rank)
        return self.result(x, w.shape[1], w.shape[2:], output_shape)

    def conditions(self, x: Operand, w: Operand, output_shape: Operand | None = None) -> Sequence[Condition]:
        return [(x.shape[1], w.shape[0], CHANNELS_RULE)]

    def compute(self, out: TensorType, x: Input, w: Input, output_shape: Input | None = None) -> Element:
        spreads = self.spreads(x.shape[2:], w.shape[2:], self.wanted(out.shape[2:], output_shape))
        ic, phases = reduction_axis("ic", w.shape[0]), phase_axes(spreads)

        def element(n: Expr, o: Expr, *at: Expr) -> Expr:
            ks, positions, reached = gather(spreads, at, phases)
            product = guarded(spreads, x(n, ic, *positions), w(ic, o, *ks), ks, positions)
            return where_reached(reached, reduce_over("add", (ic, *phases), product))

        return element

    def reference(self, x: Array, w: Array, output_shape: Array | None = None) -> Array:
        return scatter(self.spreads(x.shape[2:], w.shape[2:], _numbers(output_shape)), x, w[None])


@op("opset1")
class GroupConvolutionBackpropData(Transposed, ComputeOp):
    """Data [N, G * IC, spatial...], weights [G, IC, OC, kernel...], perhaps the shape, give [N, G * OC, ...]."""

    def infer(self, x: Operand, w: Operand, output_shape: Operand | None = None) -> TensorType:
        check_data(self.type, x, w, x.rank + 1)
        return self.result(x, w.shape[0] * w.shape[2], w.shape[3:], output_shape)

    def conditions(self, x: Operand, w: Operand, output_shape: Operand | None = None) -> Sequence[Condition]:
        return [(x.shape[1], simplify(w.shape[0] * w.shape[1]), CHANNELS_RULE)]

    def compute(self, out: TensorType, x: Input, w: Input, output_shape: Input | None = None) -> Element:
        spreads = self.spreads(x.shape[2:], w.shape[3:], self.wanted(out.shape[2:], output_shape))
        icg, oc = w.shape[1:3]
        ic, phases = reduction_axis("ic", icg), phase_axes(spreads)

        def element(n: Expr, c: Expr, *at: Expr) -> Expr:
            ks, positions, reached = gather(spreads, at, phases)
            group = c // oc
            value = x(n, group * icg + ic, *positions)
            product = guarded(spreads, value, w(group, ic, c % oc, *ks), ks, positions)
            return where_reached(reached, reduce_over("add", (ic, *phases), product))

        return element

    def reference(self, x: Array, w: Array, output_shape: Array | None = None) -> Array:
        return scatter(self.spreads(x.shape[2:], w.shape[3:], _numbers(output_shape)), x, w)


def phase_axes(spreads: tuple[Spread, ...]) -> tuple[Var | int, ...]:
    return tuple(
        reduction_axis(f"q{name}", s.phases) for name, s in zip(AXIS_NAMES[len(spreads)], spreads, strict=True)
    )


def gather(
    spreads: tuple[Spread, ...], at: tuple[Expr, ...], phases: tuple[Var | int, ...]
) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """Return kernel index, input index, and the conditions that any input reaches the output element."""
    pairs = [s.sources(i, q) for s, i, q in zip(spreads, at, phases, strict=True)]
    conditions = [c for s, i in zip(spreads, at, strict=True) if (c := s.reached(i)) is not None]
    return [k for k, _ in pairs], [j for _, j in pairs], conditions


def guarded(spreads: tuple[Spread, ...], value: Expr, weight: Expr, ks: list[Expr], positions: list[Expr]) -> Expr:
    """Return input element times weight, each 0 if it is out of range."""
    for s, k, position in zip(spreads, ks, positions, strict=True):
        value, weight = s.data(value, position), s.weight(weight, k)
    return value * weight


def where_reached(conditions: list[Expr], value: Expr) -> Expr:
    for condition in conditions:
        value = select(condition, value, 0)
    return value


def scatter(spreads: tuple[Spread, ...], x: Array, w: Array) -> Array:
    """Scatter data [N, G * IC, ...] by weights [G, IC, OC, kernel...], for references: inputs add to all they reach."""
    groups, ic, oc = w.shape[:3]
    wide = accumulator(x.dtype)
    data = x.reshape(x.shape[0], groups, ic, *x.shape[2:]).astype(wide)
    full = [int((s.extent - 1) * s.stride + (s.kernel - 1) * s.dilation + 1) for s in spreads]  # type: ignore[arg-type]
    ends = [int(s.before + s.count) for s in spreads]  # type: ignore[arg-type]
    total = np.zeros((x.shape[0], groups, oc, *map(max, full, ends)), wide)
    for k in np.ndindex(*w.shape[3:]):
        starts = [e * s.dilation for e, s in zip(k, spreads, strict=True)]
        counts = zip(starts, x.shape[2:], spreads, strict=True)
        slices = [slice(b, b + (n - 1) * s.stride + 1, s.stride) for b, n, s in counts]
        total[(..., *slices)] += np.einsum("ngi...,gio->ngo...", data, w[(slice(None),) * 3 + k].astype(wide))
    cropped = total[(..., *(slice(int(s.before), e) for s, e in zip(spreads, ends, strict=True)))]  # type: ignore[arg-type]
    return cropped.reshape(x.shape[0], groups * oc, *cropped.shape[3:]).astype(x.dtype)


def _numbers(shape: Array | None) -> Shape | None:
    return None if shape is None else tuple(int(n) for n in shape.reshape(-1))
