"""Normalisation by the mean and variance, or by the norm, over some axes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, Reduce, prim
from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import OutPort
from aot.ir.op import ComputeOp, DecomposedOp, Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, TensorType
from aot.opset.base.decomposition import ARITHMETIC, along_channels, narrowed, numbers, reshaped, wide, widened
from aot.opset.base.families import axis
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class BatchNormalization(DecomposedOp):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, per channel; all vectors are [C]."""

    elements = Elements.FLOAT

    epsilon: float = attr(1e-5)

    def checked(self, x: Operand, *vectors: Operand) -> TensorType:
        if x.rank < 2:
            raise ShapeError(f"{self.type}: the data's rank must be at least 2, got {x.rank}")
        for v in vectors:
            if v.rank != 1 or (isinstance(v.shape[0], int) and isinstance(x.shape[1], int) and v.shape != x.shape[1:2]):
                raise ShapeError(f"{self.type}: vectors must have one entry for each channel, got {v.type}")
        return x.type

    def normalize(
        self, build: Builder, x: OutPort, gamma: OutPort, beta: OutPort, mean: OutPort, variance: OutPort
    ) -> OutPort:
        """Build x * scale + shift with one factor and one term per channel, which are usually constants."""
        data, *vectors = [widened(build, p) for p in (x, gamma, beta, mean, variance)]
        scale, shift = self._scale_and_shift(build, *vectors)
        scaled = build.Multiply(data, along_channels(build, scale, x.type.rank))
        return narrowed(build, build.Add(scaled, along_channels(build, shift, x.type.rank)), x.type.dtype)

    def _scale_and_shift(
        self, build: Builder, gamma: OutPort, beta: OutPort, mean: OutPort, variance: OutPort
    ) -> tuple[OutPort, OutPort]:
        known: tuple[Any, Any, Any, Any] = (gamma.value, beta.value, mean.value, variance.value)
        if any(value is None or value.dtype == object for value in known):
            return self._factors(build, gamma, beta, mean, variance, self.epsilon)
        scale, shift = self._factors(ARITHMETIC, *known, np.asarray(self.epsilon).astype(known[3].dtype))
        return build.const(scale, gamma.type.dtype), build.const(shift, gamma.type.dtype)

    @staticmethod
    def _factors(make: Any, gamma: Any, beta: Any, mean: Any, variance: Any, epsilon: Any) -> tuple[Any, Any]:
        """Make the scale and the shift: nodes, or arrays if all is known."""
        scale = make.Divide(gamma, make.Sqrt(make.Add(variance, epsilon)))
        return scale, make.Subtract(beta, make.Multiply(mean, scale))

    def value(self, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> Array:
        shape = (-1, *[1] * (x.ndim - 2))
        g, b, m, v = (wide(a).reshape(shape) for a in (gamma, beta, mean, variance))
        return (g * (wide(x) - m) / np.sqrt(v + self.epsilon) + b).astype(x.dtype)


@op("opset5")
class BatchNormInference(BatchNormalization):
    """BatchNormalization with inputs data, gamma, beta, mean, variance."""

    def infer(self, x: Operand, gamma: Operand, beta: Operand, mean: Operand, variance: Operand) -> TensorType:
        return self.checked(x, gamma, beta, mean, variance)

    def decompose(
        self, build: Builder, x: OutPort, gamma: OutPort, beta: OutPort, mean: OutPort, variance: OutPort
    ) -> OutPort:
        return self.normalize(build, x, gamma, beta, mean, variance)

    def reference(self, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> Array:
        return self.value(x, gamma, beta, mean, variance)


@op("opset1", type="BatchNormInference")
class BatchNormInference_1(BatchNormalization):
    """BatchNormalization with inputs gamma, beta, data, mean, variance."""

    def infer(self, gamma: Operand, beta: Operand, x: Operand, mean: Operand, variance: Operand) -> TensorType:
        return self.checked(x, gamma, beta, mean, variance)

    def decompose(
        self, build: Builder, gamma: OutPort, beta: OutPort, x: OutPort, mean: OutPort, variance: OutPort
    ) -> OutPort:
        return self.normalize(build, x, gamma, beta, mean, variance)

    def reference(self, gamma: Array, beta: Array, x: Array, mean: Array, variance: Array) -> Array:
        return self.value(x, gamma, beta, mean, variance)


class Inside(StrEnum):
    """Place where MVN adds eps: inside or outside of the square root."""

    INSIDE_SQRT = "inside_sqrt"
    OUTSIDE_SQRT = "outside_sqrt"


def centered(build: Builder, x: OutPort, axes: OutPort) -> OutPort:
    return build.Subtract(x, build.ReduceMean(x, axes, keep_dims=True))


def mean_variance(build: Builder, x: OutPort, axes: OutPort, eps: float, where: Inside) -> OutPort:
    """Build (x - mean) / sqrt(variance + eps), or / (sqrt(variance) + eps)."""
    gap = centered(build, x, axes)
    variance = build.ReduceMean(build.Multiply(gap, gap), axes, keep_dims=True)
    inside = where is Inside.INSIDE_SQRT
    deviation = build.Sqrt(build.Add(variance, eps)) if inside else build.Add(build.Sqrt(variance), eps)
    return build.Divide(gap, deviation)


def normalized(x: Array, axes: tuple[int, ...], eps: float, where: Inside, variance: bool = True) -> Array:
    """Compute `mean_variance` in double precision, for references."""
    gap = wide(x) - wide(x).mean(axes, keepdims=True)
    if not variance:
        return gap
    square = (gap * gap).mean(axes, keepdims=True)
    return gap / (np.sqrt(square + eps) if where is Inside.INSIDE_SQRT else np.sqrt(square) + eps)


@op("opset6")
class MVN(DecomposedOp):
    """(x - mean(x)) / sqrt(variance(x) + eps) over the axes that the second input names."""

    elements = Elements.FLOAT

    normalize_variance: bool = True
    eps: float = 1e-9
    eps_mode: Inside = Inside.INSIDE_SQRT

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        for a in axes.ints("MVN: axes"):
            axis_of(a, x.rank, "MVN")
        return x.type

    def decompose(self, build: Builder, x: OutPort, axes: OutPort) -> OutPort:
        data = widened(build, x)
        if not self.normalize_variance:
            return narrowed(build, centered(build, data, axes), x.type.dtype)
        return narrowed(build, mean_variance(build, data, axes, self.eps, self.eps_mode), x.type.dtype)

    def reference(self, x: Array, axes: Array) -> Array:
        dims = tuple(int(a) for a in axes.reshape(-1))
        return normalized(x, dims, self.eps, self.eps_mode, self.normalize_variance).astype(x.dtype)


@op("opset2", type="MVN")
class MVN_1(DecomposedOp):
    """(x - mean(x)) / sqrt(variance(x) + eps) over the spatial axes, or the channels too, or `reduction_axes`."""

    elements = Elements.FLOAT

    across_channels: bool = True
    normalize_variance: bool = True
    eps: float = 1e-9
    reduction_axes: tuple[int, ...] = ()

    def infer(self, x: Operand) -> TensorType:
        self.axes(x.rank)
        return x.type

    def axes(self, rank: int) -> tuple[int, ...]:
        if self.reduction_axes:
            return tuple(axis_of(a, rank, "MVN") for a in self.reduction_axes)
        return tuple(range(1 if self.across_channels else 2, rank))

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        newer = MVN(self.normalize_variance, self.eps, Inside.INSIDE_SQRT)
        return build(newer, x, numbers(build, self.axes(x.type.rank)))

    def reference(self, x: Array) -> Array:
        return normalized(x, self.axes(x.ndim), self.eps, Inside.INSIDE_SQRT, self.normalize_variance).astype(x.dtype)


class EpsMode(StrEnum):
    """Guard of NormalizeL2 against division by zero: sum + eps, or max(sum, eps)."""

    ADD = "add"
    MAX = "max"


@op("opset1")
class NormalizeL2(DecomposedOp):
    """x / sqrt(sum(x * x) + eps), or / sqrt(max(sum(x * x), eps)), over the axes that the second input names."""

    elements = Elements.FLOAT

    eps: float = attr(1e-9)
    eps_mode: EpsMode = EpsMode.ADD

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        for a in axes.ints("NormalizeL2: axes"):
            axis_of(a, x.rank, "NormalizeL2")
        return x.type

    def decompose(self, build: Builder, x: OutPort, axes: OutPort) -> OutPort:
        data = widened(build, x)
        square = build.Multiply(data, data)
        if axes.type.shape != (0,):  # no axes: each element is its own sum
            square = build.ReduceSum(square, axes, keep_dims=True)
        bound = build.Add(square, self.eps) if self.eps_mode is EpsMode.ADD else build.Maximum(square, self.eps)
        return narrowed(build, build.Divide(data, build.Sqrt(bound)), x.type.dtype)

    def reference(self, x: Array, axes: Array) -> Array:
        square = (wide(x) ** 2).sum(tuple(int(a) for a in axes.reshape(-1)), keepdims=True)
        bound = square + self.eps if self.eps_mode is EpsMode.ADD else np.maximum(square, self.eps)
        return (x / np.sqrt(bound)).astype(x.dtype)


@op("opset1")
class GRN(DecomposedOp):
    """Global response normalisation: x / sqrt(sum over channels of x * x + bias)."""

    elements = Elements.FLOAT

    bias: float = 1.0

    def infer(self, x: Operand) -> TensorType:
        if not 2 <= x.rank <= 4:
            raise ShapeError(f"GRN: the data's rank must be 2, 3 or 4, got {x.rank}")
        return x.type

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        data = widened(build, x)
        total = build.ReduceSum(build.Multiply(data, data), numbers(build, (1,)), keep_dims=True)
        return narrowed(build, build.Divide(data, build.Sqrt(build.Add(total, self.bias))), x.type.dtype)

    def reference(self, x: Array) -> Array:
        return (x / np.sqrt((wide(x) ** 2).sum(1, keepdims=True) + self.bias)).astype(x.dtype)


@op("opset12")
class GroupNormalization(DecomposedOp):
    """Mean-variance normalisation of each of `num_groups` groups of channels, then scale[C] and bias[C]."""

    elements = Elements.FLOAT

    num_groups: int = 1
    epsilon: float = 1e-5

    def infer(self, x: Operand, scale: Operand, bias: Operand) -> TensorType:
        channels = x.shape[1]
        if self.num_groups < 1 or (isinstance(channels, int) and channels % self.num_groups):
            raise ShapeError(f"GroupNormalization: groups must divide the channels: {self.num_groups} and {channels}")
        for v in (scale, bias):
            if v.rank != 1 or (isinstance(v.shape[0], int) and isinstance(channels, int) and v.shape[0] != channels):
                raise ShapeError(f"GroupNormalization: scale and bias must be [C], got {v.type}")
        return x.type

    def decompose(self, build: Builder, x: OutPort, scale: OutPort, bias: OutPort) -> OutPort:
        """Average each channel, then each group: the data is never reshaped, so that its layout stays free."""
        rank, dtype = x.type.rank, x.type.dtype
        data, gain, shift = (widened(build, p) for p in (x, scale, bias))
        mean = self._mean(build, data)
        variance = self._mean(build, build.SquaredDifference(data, mean))
        deviation = build.Sqrt(build.Add(variance, self.epsilon))
        factor = build.Divide(along_channels(build, gain, rank), deviation)
        scaled = build.Multiply(build.Subtract(data, mean), factor)
        return narrowed(build, build.Add(scaled, along_channels(build, shift, rank)), dtype)

    def _mean(self, build: Builder, x: OutPort) -> OutPort:
        """Return the mean of each channel's group: [N, C, 1, 1, ..]."""
        rank, channels = x.type.rank, x.type.shape[1]
        each = build.ReduceMean(x, numbers(build, range(2, rank)), keep_dims=True) if rank > 2 else x
        if channels == self.num_groups:
            return each
        rows = reshaped(build, each, (0, self.num_groups, -1))
        spread = build.Broadcast(build.ReduceMean(rows, numbers(build, (2,)), keep_dims=True), build.ShapeOf(rows))
        return reshaped(build, spread, (0, -1, *[1] * (rank - 2)))

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        rows = x.reshape(x.shape[0], self.num_groups, x[:1].size // self.num_groups if x.size else 0)
        back = normalized(rows, (2,), self.epsilon, Inside.INSIDE_SQRT).reshape(x.shape)
        shape = (-1, *[1] * (x.ndim - 2))
        return (back * wide(scale).reshape(shape) + wide(bias).reshape(shape)).astype(x.dtype)


def _raised(x: Expr, exponent: float) -> Expr:
    """Return x^exponent for x >= 0; multiples of 1/4, as the usual 0.75, by square roots, which round correctly."""
    quarters = exponent * 4
    if quarters not in (1, 2, 3, 4):
        return prim("pow", x, exponent)
    root = prim("sqrt", x)
    parts = {1: (prim("sqrt", root),), 2: (root,), 3: (root, prim("sqrt", root)), 4: (x,)}[int(quarters)]
    return parts[0] * parts[1] if len(parts) > 1 else parts[0]


@op("opset1")
class LRN(ComputeOp):
    """x / (bias + alpha / size^n * sum of x * x over a region of `size` elements along each of the n axes)^beta."""

    elements = Elements.FLOAT

    alpha: float = attr(1e-4)
    beta: float = attr(0.75)
    bias: float = attr(1.0)
    size: int = attr(1)

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        if self.size < 1:
            raise ShapeError(f"LRN: size must be positive, got {self.size}")
        self.axes(x.rank, axes.ints("LRN: axes"))
        return x.type

    def axes(self, rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(axis_of(a, rank, "LRN") for a in axes))

    def compute(self, out: TensorType, x: Input, axes: Input) -> Element:
        dims = self.axes(x.rank, axes.operand().ints("LRN: axes"))
        half = self.size // 2
        inner = {a: axis(f"r{a}", 2 * half + 1) for a in dims}

        def element(*index: Expr) -> Expr:
            at = [i + inner[a] - half if a in inner else i for a, i in enumerate(index)]
            value = x.padded(*at)
            total = Reduce("add", tuple(inner.values()), value * value) if inner else value * value
            return x(*index) / _raised(total * (self.alpha / self.size ** len(dims)) + self.bias, self.beta)

        return element

    def reference(self, x: Array, axes: Array) -> Array:
        dims = self.axes(x.ndim, tuple(int(a) for a in axes.reshape(-1)))
        half, total = self.size // 2, wide(x) ** 2
        for a in dims:
            widths = [(half, half) if d == a else (0, 0) for d in range(x.ndim)]
            total = np.lib.stride_tricks.sliding_window_view(np.pad(total, widths), 2 * half + 1, a).sum(-1)
        return (x / (self.bias + self.alpha / self.size ** len(dims) * total) ** self.beta).astype(x.dtype)
