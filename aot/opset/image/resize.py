"""Interpolate: tensors stretched or shrunk along some axes.

pad -> NearestResize | WeightedResize | for each axis: Gather neighbours, times constant weights, ReduceSum
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial, reduce

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, late_symbol
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, simplify
from aot.opset.base.decomposition import narrowed, numbers
from aot.opset.control.demands import InRange
from aot.opset.elementwise.unary import Rounding as NearestInteger
from aot.opset.image.resampling import NearestResize, WeightedResize
from aot.opset.image.resize_taps import Sampling, axes_of, resampled
from aot.opset.image.resize_weights import (
    Coordinates,
    Mode,
    Rounding,
    Weights,
    applied,
    coordinates,
    linear,
    pillow,
    rational,
    taps,
)
from aot.opset.movement.shape import volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

CUBIC_MODES = (Mode.CUBIC, Mode.BICUBIC_PILLOW)
PILLOW_MODES = (Mode.BILINEAR_PILLOW, Mode.BICUBIC_PILLOW)
BYTE_TYPES = (DType.U8, DType.I8)
MAX_AXIS_SIZE = (1 << 31) - 1  # elements of an axis


class ShapeFrom(StrEnum):
    """Input that determines the output's shape."""

    SIZES = "sizes"
    SCALES = "scales"


@dataclass(frozen=True, slots=True)
class Plan:
    """An Interpolate with sizes, or exact fractions for scales; sizes from dynamic scales are symbols."""

    axes: tuple[int, ...]
    sizes: Shape
    scales: tuple[tuple[int, int], ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    is_dynamic: bool = False

    def shape(self, shape: Sequence[Dim]) -> Shape:
        """Return the output's shape."""
        padded = [simplify(n + b + e) for n, b, e in zip(shape, self.begins, self.ends, strict=True)]
        for k, a in enumerate(self.axes):
            up, down = self.scales[k] if self.scales else (1, 1)
            padded[a] = simplify(padded[a] * up // down) if self.scales else self.sizes[k]
        return tuple(padded)

    @property
    def flat_scales(self) -> tuple[int, ...]:
        return tuple(v for pair in self.scales for v in pair)


@dataclass(frozen=True)
class Interpolation(DecomposedOp, ABC):
    """Base of all versions of Interpolate, which differ in `plan` and `kind`."""

    elements = Elements.NUMBER

    mode: Mode = Mode.NEAREST
    antialias: bool = False
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()

    @property
    def is_antialiased(self) -> bool:
        return self.antialias

    @abstractmethod
    def plan(self, x: Operand, *inputs: Operand | None) -> Plan: ...

    @abstractmethod
    def kind(self) -> tuple[Coordinates, Rounding, float]:
        """Return the coordinate mode, the rounding and the coefficient of cubic interpolation."""

    def _plan(self, x: Operand, axes: Sequence[int], sizes: Operand | None, scales: Operand | None) -> Plan:
        """Make a Plan from either sizes or scales."""
        dims = tuple(axis_of(a, x.rank, "Interpolate") for a in axes)
        wanted = sizes.dims("Interpolate: sizes") if sizes is not None else ()
        fractions: tuple[tuple[int, int], ...] = ()
        is_dynamic = scales is not None and scales.value is None
        if scales is not None and is_dynamic:  # `decompose` computes the sizes
            count = volume(scales.shape)
            wanted = tuple(
                late_symbol(self, f"d{k}", None, x, scales) for k in range(count if isinstance(count, int) else 0)
            )
        elif scales is not None:
            fractions = tuple(rational(float(s)) for s in scales.known("Interpolate: scales").reshape(-1))
        count = len(wanted) + len(fractions)
        if len(set(dims)) != len(dims) or count != len(dims):
            raise ShapeError(
                f"Interpolate: there must be one size for each axis, got {count} sizes and axes {list(dims)}"
            )
        if any(up <= 0 for up, _ in fractions):
            raise ShapeError(f"Interpolate: scales must be positive, got {[u / d for u, d in fractions]}")
        begins, ends = (tuple(p[: x.rank]) + (0,) * (x.rank - len(p)) for p in (self.pads_begin, self.pads_end))
        return Plan(dims, wanted, fractions, begins, ends, is_dynamic)

    def infer(self, x: Operand, *inputs: Operand | None) -> TensorType:
        return TensorType(x.dtype, self.plan(x, *inputs).shape(x.shape))

    def decompose(self, build: Builder, x: OutPort, *inputs: OutPort | None) -> OutPort:
        operands = [None if p is None else Operand(p.type, p.symbolic_value, p) for p in (x, *inputs)]
        plan = self.plan(*operands)  # type: ignore[arg-type]
        if any(plan.begins) or any(plan.ends):
            x = build.Pad(x, numbers(build, plan.begins), numbers(build, plan.ends), 0)
        if plan.is_dynamic or (self._has_many_taps and not self._has_constant_weights(plan, x.shape)):
            wanted = inputs[0] if plan.sizes and not plan.is_dynamic else self.scales(*inputs)
            assert wanted is not None
            return self._at_run_time(build, x, plan, wanted)
        if self._needs_tables(plan, x.type):
            return self._tables(build, x, plan)
        resampling, sizes = self._resampling(plan), None
        if not plan.scales:
            sizes = inputs[0]
            if all(isinstance(n, int) for n in plan.sizes):
                sizes = numbers(build, (n for n in plan.sizes if isinstance(n, int)))
        return build(resampling, x, sizes) if sizes is not None else build(resampling, x)

    @property
    def _has_many_taps(self) -> bool:
        """True for modes that may weight many neighbours."""
        return self.mode in PILLOW_MODES or (self.mode is Mode.LINEAR and self.is_antialiased)

    @staticmethod
    def _has_constant_weights(plan: Plan, shape: Shape) -> bool:
        """True if the weights of all axes are known at compile time."""
        return all(isinstance(n, int) for n in (*plan.sizes, *(shape[a] for a in plan.axes)))

    def scales(self, *inputs: OutPort | None) -> OutPort | None:
        """Return the input that holds the scales."""
        return inputs[0]

    def _at_run_time(self, build: Builder, x: OutPort, plan: Plan, target: OutPort) -> OutPort:
        """Build weights that the inference computes, in f64."""
        dtype, sized = x.type.dtype, not plan.is_dynamic and not plan.scales
        if plan.is_dynamic:
            target = self._checked(build, target)
        elif sized and target.value is None:
            demand = InRange(operation="Interpolate", rule="sizes must be positive")
            target = build(
                demand, target, build.const(1, target.type.dtype), build.const(MAX_AXIS_SIZE, target.type.dtype)
            )
        axes = axes_of(build, x, plan.axes, target, sized, None, single=True)
        kind, rounding, coefficient = self.kind()
        coordinate_mode, mode, steep = kind.value, "cubic" if self.mode in CUBIC_MODES else "linear", None
        if self.mode in PILLOW_MODES:
            coordinate_mode = Coordinates.HALF_PIXEL.value
            axes = [replace(a, scale=build.Divide(a.made, a.extent)) for a in axes]
        elif self._has_many_taps:
            smaller = reduce(build.LogicalOr, (build.Less(a.scale, 1.0) for a in axes))
            steep = partial(_steepness, build, smaller)
        mode = "nearest" if self.mode is Mode.NEAREST else mode
        how = Sampling(
            mode,
            coordinate_mode,
            rounding.value,
            coefficient,
            self._has_many_taps,
            False,
            0.0,
            inside=True,
            steep=steep,
        )
        rounds = [[a] for a in reversed(axes)] if self.mode in PILLOW_MODES and dtype in BYTE_TYPES else [axes]
        total = x
        for some in rounds:
            total = resampled(build, total, some, how)
            total = total if dtype.is_float or mode == "nearest" else _rounded(build, total, dtype)
        return narrowed(build, total, dtype)

    def _checked(self, build: Builder, scales: OutPort) -> OutPort:
        one = build.const(1, DType.I64)
        positive = build.LogicalAnd(build.IsFinite(scales), build.Greater(scales, 0))
        all_positive = build.ReduceLogicalAnd(positive, numbers(build, [0]))
        demand = InRange(operation="Interpolate", rule="scales must be positive and finite")
        return build(demand, build.Convert(all_positive, destination_type=DType.I64), one, one, scales)

    def _resampling(self, plan: Plan) -> NearestResize | WeightedResize:
        kind, rounding, coefficient = self.kind()
        if self.mode is Mode.AREA:
            raise UnsupportedError("Interpolate: mode area is not supported")
        if self.mode is Mode.NEAREST:
            return NearestResize(plan.axes, kind, plan.flat_scales, rounding)
        mode = Mode.CUBIC if self.mode is Mode.CUBIC else Mode.LINEAR
        return WeightedResize(plan.axes, kind, plan.flat_scales, mode, coefficient)

    def _needs_tables(self, plan: Plan, x: TensorType) -> bool:
        """True if elements may depend on many neighbours."""
        if self.mode in PILLOW_MODES:
            return True
        return self.mode is Mode.LINEAR and self.is_antialiased and self._shrinks(plan, x.shape)

    def _shrinks(self, plan: Plan, shape: Shape) -> bool:
        if plan.scales:
            return any(up < down for up, down in plan.scales)
        pairs = [(n, shape[a]) for n, a in zip(plan.sizes, plan.axes, strict=True)]
        return any(isinstance(m, int) and isinstance(n, int) and m < n for m, n in pairs)

    def _matrices(self, plan: Plan, shape: tuple[int, ...]) -> list[Weights]:
        """Return weights for the axes of a padded input, for modes with many neighbours."""
        kind, _, coefficient = self.kind()
        matrices: list[Weights] = []
        for k, a in enumerate(plan.axes):
            n = shape[a]
            size = plan.sizes[k] if plan.sizes else n * plan.scales[k][0] // plan.scales[k][1]
            assert isinstance(size, int), "sizes are numbers here"
            up, down = plan.scales[k] if plan.scales else (size, n)
            if self.mode in PILLOW_MODES:
                matrices.append(pillow(self.mode, n, size, coefficient))
            elif size == n:
                matrices.append(np.eye(n))
            else:
                matrices.append(linear(coordinates(kind, n, size, up, down), n, up / down))
        return matrices

    def _tables(self, build: Builder, x: OutPort, plan: Plan) -> OutPort:
        dtype = x.type.dtype
        wide = dtype.compute if dtype.is_float else DType.F32
        total = x if dtype is wide else build.Convert(x, destination_type=wide)
        extents = TensorType(dtype, tuple(x.shape[a] for a in plan.axes)).static_shape
        shape = [1] * x.type.rank
        for a, n in zip(plan.axes, extents, strict=True):
            shape[a] = n
        matrices = zip(plan.axes, self._matrices(plan, tuple(shape)), strict=True)
        for a, matrix in sorted(matrices, key=lambda pair: -pair[0]):
            indices, shares = taps(matrix)
            near = build.Gather(total, build.const(indices, DType.I64), numbers(build, [a]))
            weights = build.const(shares.reshape(*shares.shape, *[1] * (len(shape) - a - 1)), wide)
            total = build.ReduceSum(build.Multiply(near, weights), numbers(build, [a + 1]))
            if self.mode in PILLOW_MODES and dtype in BYTE_TYPES:
                total = _rounded(build, total, dtype)
        return narrowed(build, total if dtype.is_float else _rounded(build, total, dtype), dtype)

    def reference(self, x: Array, *inputs: Array | None) -> Array:
        operands = [None if a is None else Operand(TensorType(DType.I64, a.shape), a) for a in (x, *inputs)]
        plan = self.plan(*operands)  # type: ignore[arg-type]
        padded = np.pad(x, list(zip(plan.begins, plan.ends, strict=True)))
        if self._needs_tables(plan, TensorType(DType.I64, padded.shape)):
            matrices = list(zip(plan.axes, self._matrices(plan, padded.shape), strict=True))
            if self.mode not in PILLOW_MODES or x.dtype.itemsize > 1:
                return applied(padded, plan.axes, [m for _, m in matrices])
            for a, matrix in sorted(matrices, key=lambda pair: -pair[0]):  # bytes are rounded after each axis
                padded = applied(padded, [a], [matrix])
            return padded
        return self._resampling(plan).reference(padded, np.array(plan.sizes) if plan.sizes else None)


def _steepness(build: Builder, smaller: OutPort, scale: OutPort) -> OutPort:
    """Return the scale if any axis becomes smaller, else 1."""
    return build.Select(smaller, scale, build.const(1.0, DType.F64))


def _rounded(build: Builder, x: OutPort, dtype: DType) -> OutPort:
    """Round to the values of the integer type `dtype`."""
    bits = dtype.bits - dtype.is_signed
    low, high = -float(1 << bits) if dtype.is_signed else 0.0, float((1 << bits) - 1)
    return build.Clamp(build.Round(x, mode=NearestInteger.HALF_TO_EVEN), min=low, max=high)


@dataclass(frozen=True)
class ModernInterpolation(Interpolation):
    """Base of the versions with modes for coordinates and rounding."""

    shape_calculation_mode: ShapeFrom = ShapeFrom.SIZES
    coordinate_transformation_mode: Coordinates = Coordinates.HALF_PIXEL
    nearest_mode: Rounding = Rounding.ROUND_PREFER_FLOOR
    cube_coeff: float = -0.75

    def kind(self) -> tuple[Coordinates, Rounding, float]:
        return self.coordinate_transformation_mode, self.nearest_mode, self.cube_coeff

    def axes(self, x: Operand, axes: Operand | None) -> Sequence[int]:
        return range(x.rank) if axes is None else axes.ints("Interpolate: axes")


@op("opset11", type="Interpolate")
class Interpolate_11(ModernInterpolation):
    """Interpolate with inputs data, sizes or scales along the axes, and axes (default: all)."""

    arity = (2, 3)

    def plan(self, x: Operand, *inputs: Operand | None) -> Plan:
        sizes_or_scales, axes = (*inputs, None)[:2]
        sized = self.shape_calculation_mode is ShapeFrom.SIZES
        return self._plan(x, self.axes(x, axes), sizes_or_scales if sized else None, None if sized else sizes_or_scales)


@op("opset4", type="Interpolate")
class Interpolate_4(ModernInterpolation):
    """Interpolate with inputs data, sizes, scales, axes (default: all); `shape_calculation_mode` selects one."""

    arity = (3, 4)

    def scales(self, *inputs: OutPort | None) -> OutPort | None:
        return inputs[1]

    def plan(self, x: Operand, *inputs: Operand | None) -> Plan:
        sizes, scales, axes = (*inputs, None)[:3]
        sized = self.shape_calculation_mode is ShapeFrom.SIZES
        return self._plan(x, self.axes(x, axes), sizes if sized else None, None if sized else scales)


@op("opset1", type="Interpolate")
class Interpolate_1(Interpolation):
    """Interpolate with inputs data and sizes along `axes`. Without `align_corners`, element i is at i / scale.

    `antialias` has no formula in this version, and no effect.
    """

    arity = (2, 2)

    axes: tuple[int, ...] = ()
    align_corners: bool = True

    @property
    def is_antialiased(self) -> bool:
        return False

    def kind(self) -> tuple[Coordinates, Rounding, float]:
        return Coordinates.ALIGN_CORNERS if self.align_corners else Coordinates.ASYMMETRIC, Rounding.SIMPLE, -0.75

    def plan(self, x: Operand, *inputs: Operand | None) -> Plan:
        return self._plan(x, self.axes, inputs[0], None)
