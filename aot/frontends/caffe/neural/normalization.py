"""Normalisation."""

from __future__ import annotations

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.opset.reduction.normalization import Inside
from aot.runtime.abi import DType


@caffe("BatchNorm", param="batch_norm_param")
def batch_norm(node: CaffeNode, x: OutPort, mean: OutPort, variance: OutPort, count: OutPort | None = None) -> OutPort:
    """(x - mean / count) / sqrt(variance / count + eps)"""
    node.refuse(not node.flag("use_global_stats", True), "statistics are those of the file, got use_global_stats false")
    mean, variance = node.flat(mean), node.flat(variance)
    if count is not None:
        divisor = float(node.known(count, "the number of batches").reshape(-1)[0])
        factor = 1 / divisor if divisor else 0.0
        mean, variance = (node.build.Multiply(p, factor) for p in (mean, variance))
    ones = node.build.Broadcast(node.like(1, x), node.build.ShapeOf(mean))
    zeros = node.build.Broadcast(node.like(0, x), node.build.ShapeOf(mean))
    return node.build.BatchNormInference(x, ones, zeros, mean, variance, epsilon=node.number("eps"))


@caffe("BN", param="bn_param")
def bn(node: CaffeNode, x: OutPort, scale: OutPort, shift: OutPort, mean: OutPort, variance: OutPort) -> OutPort:
    """SegNet's and PSPNet's: scale (x - mean) / sqrt(variance + eps) + shift"""
    statistics = (node.flat(p) for p in (scale, shift, mean, variance))
    return node.build.BatchNormInference(x, *statistics, epsilon=node.number("eps"))


@caffe("LRN", param="lrn_param")
def lrn(
    node: CaffeNode, x: OutPort, *, local_size: int, alpha: float, beta: float, k: float, norm_region: str
) -> OutPort:
    """x / (k + alpha / n sum of squares)^beta over channels; within one: x / (1 + alpha mean of squares)^beta"""
    if norm_region == "ACROSS_CHANNELS":
        return node.onnx("LRN", x, size=local_size, alpha=alpha, beta=beta, bias=k)
    build, pad = node.build, (local_size - 1) // 2
    mean = node.onnx(
        "AveragePool", build.Multiply(x, x), kernel_shape=[local_size] * 2, pads=[pad] * 4, count_include_pad=1
    )
    return build.Multiply(x, build.Power(build.Add(build.Multiply(mean, alpha), 1.0), -beta))


@caffe("MVN", param="mvn_param")
def mvn(node: CaffeNode, x: OutPort, *, normalize_variance: bool, across_channels: bool, eps: float) -> OutPort:
    axes = node.list(range(1 if across_channels else 2, x.type.rank))
    mode = Inside.OUTSIDE_SQRT
    return node.build.MVN(x, axes, normalize_variance=normalize_variance, eps=eps, eps_mode=mode)


@caffe("Normalize", param="norm_param")
def normalize(node: CaffeNode, x: OutPort, scale: OutPort, *, across_spatial: bool, eps: float) -> OutPort:
    """scale x / sqrt(sum of squares + eps), the sum over channels, or over all of an image."""
    axes = node.list(range(1, x.type.rank) if across_spatial else [1])
    y = node.build.NormalizeL2(x, axes, eps=eps)
    flat = node.flat(scale)
    return node.build.Multiply(y, flat if flat.shape == (1,) else node.along(flat, 1, x.type.rank))


@caffe("GRN", param="grn_param")
def grn(node: CaffeNode, x: OutPort, *, bias: float) -> OutPort:
    return node.build.GRN(x, bias=bias)


@caffe("Softmax", param="softmax_param")
def softmax(node: CaffeNode, x: OutPort, *, axis: int) -> OutPort:
    return node.build.Softmax(x, axis=node.axis(axis, x.type.rank))


@caffe("Dropout", param="dropout_param")
def dropout(node: CaffeNode, x: OutPort) -> OutPort:
    """Drop nothing: it is for training."""
    del node
    return x


@caffe("ArgMax", param="argmax_param")
def arg_max(node: CaffeNode, x: OutPort, *, out_max_val: bool, top_k: int, axis: int | None = None) -> OutPort:
    """Find the largest elements of an axis, or of an image: places, values, or both in two rows.

    Of equal ones the last counts: the axis is reversed before the search.
    """
    build = node.build
    data = build.Reshape(x, node.list([0, 1, -1]), special_zero=True) if axis is None else x
    along = 2 if axis is None else node.axis(axis, x.type.rank)
    port = build.TopK(build.Reverse(data, node.list([along])), top_k, axis=along, outputs=2)
    if out_max_val and axis is not None:
        return port
    last = build.Subtract(node.size(data, along), 1)
    positions = node.cast(build.Subtract(last, node.cast(port.node.out_port(1), DType.I64)), DType.F32)
    return build.Concat(positions, port, axis=1) if out_max_val else positions
