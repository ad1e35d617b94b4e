"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


def along(node: OnnxNode, v: OutPort, x: OutPort, axis: int = 1) -> OutPort:
    """Reshape a vector to broadcast along one axis of `x`."""
    return node.reshape(v, (v.shape[0], *[1] * (x.type.rank - axis - 1))) if v.type.rank == 1 else v


@onnx("BatchNormalization")
def batch_normalization(
    node: OnnxNode, x: OutPort, scale: OutPort, bias: OutPort, mean: OutPort, variance: OutPort
) -> tuple[OutPort, ...]:
    """Normalise by the given statistics, or in training mode by the batch's statistics."""
    build, eps, dtype = node.build, node.number("epsilon", 1e-5), x.type.dtype
    if not node.flag("training_mode"):
        node.refuse(any(node.outputs[1:]), "training mode is not supported: export the model for inference")
        vectors = [node.cast(p, dtype) for p in (scale, bias, mean, variance)]
        if not node.flag("spatial", True):
            return (_per_feature(node, x, vectors, eps),)
        return (build.BatchNormInference(x, *vectors, epsilon=eps),)
    axes = node.list([0, *range(2, x.type.rank)])
    batch_mean = build.ReduceMean(x, axes, keep_dims=True)
    gap = build.Subtract(x, batch_mean)
    spread = build.ReduceMean(build.Multiply(gap, gap), axes, keep_dims=True)
    y = build.Divide(gap, build.Sqrt(build.Add(spread, eps)))
    y = build.Add(build.Multiply(y, along(node, scale, x)), along(node, bias, x))
    momentum = node.number("momentum", 0.9)

    def running(old: OutPort, new: OutPort) -> OutPort:
        flat = node.cast(build.Squeeze(new, axes), old.type.dtype)
        return build.Add(build.Multiply(old, momentum), build.Multiply(flat, 1 - momentum))

    return y, running(mean, batch_mean), running(variance, spread)


def _per_feature(node: OnnxNode, x: OutPort, parameters: Sequence[OutPort], eps: float) -> OutPort:
    """Normalise with spatial=0, before opset 9: scale, bias, mean and variance [C, D1, ...] per feature of a sample."""
    build, rank = node.build, x.type.rank - 1
    for p in parameters:
        node.refuse(p.type.rank != rank, f"spatial=0 takes parameters of rank {rank}, got {p.type}")
    scale, bias, mean, variance = parameters
    factor = build.Divide(scale, build.Sqrt(build.Add(variance, eps)))
    return build.Add(build.Multiply(build.Subtract(x, mean), factor), bias)


@onnx("InstanceNormalization")
def instance_normalization(
    node: OnnxNode, x: OutPort, scale: OutPort, bias: OutPort, *, epsilon: float = 1e-5
) -> OutPort:
    build = node.build
    y = build.MVN(x, node.list(range(2, x.type.rank)), eps=epsilon)
    return build.Add(build.Multiply(y, along(node, scale, x)), along(node, bias, x))


@onnx("LayerNormalization")
def layer_normalization(
    node: OnnxNode, x: OutPort, scale: OutPort, bias: OutPort | None = None, *, axis: int = -1, epsilon: float = 1e-5
) -> tuple[OutPort, ...]:
    """The normalised tensor, the mean, and 1 / deviation in the type of `stash_type`."""
    return layer_normalized(node, x, scale, bias, node.axis(axis, x.type.rank), epsilon)


def layer_normalized(
    node: OnnxNode, x: OutPort, scale: OutPort, bias: OutPort | None, first: int, eps: float
) -> tuple[OutPort, ...]:
    build, dtype, axes = node.build, x.type.dtype, node.list(range(first, x.type.rank))
    y = build.Multiply(build.MVN(x, axes, eps=eps), scale)
    y = y if bias is None else build.Add(y, bias)
    if not any(node.outputs[1:3]):
        return (y,)
    wide = node.cast(x, DType.F32) if dtype in (DType.F16, DType.BF16) else x
    mean = build.ReduceMean(wide, axes, keep_dims=True)
    gap = build.Subtract(wide, mean)
    variance = build.ReduceMean(build.Multiply(gap, gap), axes, keep_dims=True)
    return y, mean, build.Divide(node.like(1, wide), build.Sqrt(build.Add(variance, eps)))


@onnx("RMSNormalization")
def rms_normalization(node: OnnxNode, x: OutPort, scale: OutPort, *, axis: int = -1, epsilon: float = 1e-5) -> OutPort:
    return rms_normalized(node, x, scale, node.axis(axis, x.type.rank), epsilon)


def rms_normalized(node: OnnxNode, x: OutPort, scale: OutPort, first: int, eps: float) -> OutPort:
    """Return x / sqrt(mean(x x) + eps) scale."""
    build, dtype, axes = node.build, x.type.dtype, node.list(range(first, x.type.rank))
    wide = node.cast(x, DType.F32) if dtype in (DType.F16, DType.BF16) else x
    square = build.ReduceMean(build.Multiply(wide, wide), axes, keep_dims=True)
    y = build.Divide(wide, build.Sqrt(build.Add(square, eps)))
    return build.Multiply(node.cast(y, scale.type.dtype), scale)


@onnx("GroupNormalization")
def group_normalization(
    node: OnnxNode, x: OutPort, scale: OutPort, bias: OutPort, *, num_groups: int, epsilon: float = 1e-5
) -> OutPort:
    """Normalise groups; scales are per channel, before opset 21 per group."""
    build = node.build
    if node.opset < 21:
        count = x.shape[1] // num_groups
        whole = [node.reshape(p, (num_groups, 1)) for p in (scale, bias)]
        scale, bias = (node.reshape(build.Tile(p, node.list([1, _int(node, count)])), (-1,)) for p in whole)
    return build.GroupNormalization(x, scale, bias, num_groups=num_groups, epsilon=epsilon)


def _int(node: OnnxNode, dim: object) -> int:
    node.refuse(not isinstance(dim, int), "channels must be known at compile time")
    return dim if isinstance(dim, int) else 0


@onnx("LRN")
def lrn(
    node: OnnxNode, x: OutPort, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> OutPort:
    """x / (bias + alpha / size * sum of squares of `size` channels)^beta; of an even number, one more after."""
    build = node.build
    if size % 2 or size < 1:
        return build.LRN(x, node.list([1]), alpha=alpha, beta=beta, bias=bias, size=size)
    rest = (0,) * (x.type.rank - 2)
    ones = (1,) * (x.type.rank - 1)
    squares = build.Unsqueeze(build.Multiply(x, x), node.list([1]))
    fields = {"strides": ones, "pads_begin": ((size - 1) // 2, *rest), "pads_end": (size // 2, *rest)}
    mean = build.AvgPool(squares, kernel=(size, *ones[1:]), exclude_pad=False, **fields)
    total = build.Add(build.Multiply(build.Squeeze(mean, node.list([1])), alpha), bias)
    return build.Divide(x, build.Power(total, beta))


@onnx("LpNormalization")
def lp_normalization(node: OnnxNode, x: OutPort, *, axis: int = -1, p: int = 2) -> OutPort:
    """x / |x|_p; 0 where the norm is 0."""
    build, axes = node.build, node.list([axis])
    norm = build.ReduceL1 if p == 1 else build.ReduceL2
    size = norm(x, axes, keep_dims=True)
    zero = build.Equal(size, node.like(0, x))
    return build.Divide(x, build.Select(zero, node.like(1, x), size))


@onnx("MeanVarianceNormalization")
def mean_variance_normalization(node: OnnxNode, x: OutPort, *, axes: Sequence[int] = (0, 2, 3)) -> OutPort:
    """(x - mean) / (sqrt(variance) + 1e-9)"""
    return node.build.MVN(x, node.list(axes), eps=1e-9)
