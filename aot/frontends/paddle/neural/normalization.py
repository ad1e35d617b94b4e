"""Normalisation."""

from __future__ import annotations

from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.opset.reduction.normalization import Inside


@paddle("batch_norm")
def batch_norm(
    node: PaddleNode,
    x: OutPort,
    mean: OutPort,
    variance: OutPort,
    scale: OutPort | None = None,
    bias: OutPort | None = None,
    *,
    epsilon: float = 1e-5,
    is_test: bool = False,
    use_global_stats: bool = False,
    data_format: str = "NCHW",
) -> tuple[OutPort, ...]:
    """Return (x - mean) / sqrt(variance + eps) scale + bias, and the statistics as they are."""
    node.refuse(
        not (is_test or use_global_stats), "the network is exported for training: call eval() before it is saved"
    )
    build = node.build
    rank, last = x.type.rank, data_format in ("NHWC", "NLC", "NDHWC")
    data = node.to_channels_first(x) if last and rank > 2 else x
    ones, zeros = (build.Broadcast(node.like(n, mean), build.ShapeOf(mean)) for n in (1, 0))
    y = build.BatchNormInference(data, scale or ones, bias or zeros, mean, variance, epsilon=epsilon)
    return (node.to_channels_last(y) if last and rank > 2 else y), mean, variance


@paddle("layer_norm")
def layer_norm(
    node: PaddleNode,
    x: OutPort,
    scale: OutPort | None = None,
    bias: OutPort | None = None,
    *,
    epsilon: float = 1e-5,
    begin_norm_axis: int = 1,
) -> OutPort:
    """Normalise all axes from one on; scales have a number for each element of these."""
    build, first = node.build, node.axis(begin_norm_axis, x.type.rank)
    axes = list(range(first, x.type.rank))
    y = build.MVN(x, node.list(axes), normalize_variance=True, eps=epsilon, eps_mode=Inside.INSIDE_SQRT)
    shape = node.dims(x, axes) if len(axes) > 1 else None
    for parameter, combine in ((scale, build.Multiply), (bias, build.Add)):
        if parameter is not None:
            y = combine(y, node.cast(parameter if shape is None else build.Reshape(parameter, shape), y.type.dtype))
    return y


@paddle("group_norm")
def group_norm(
    node: PaddleNode,
    x: OutPort,
    scale: OutPort | None = None,
    bias: OutPort | None = None,
    *,
    epsilon: float = 1e-5,
    groups: int = 1,
    data_format: str = "NCHW",
) -> OutPort:
    build, last = node.build, data_format == "NHWC"
    data = node.to_channels_first(x) if last else x
    ones, zeros = (build.Broadcast(node.like(n, x), node.dims(data, [1])) for n in (1, 0))
    y = build.GroupNormalization(data, scale or ones, bias or zeros, num_groups=groups, epsilon=epsilon)
    return node.to_channels_last(y) if last else y


@paddle("instance_norm")
def instance_norm(
    node: PaddleNode, x: OutPort, scale: OutPort | None = None, bias: OutPort | None = None, *, epsilon: float = 1e-5
) -> OutPort:
    build = node.build
    ones, zeros = (build.Broadcast(node.like(n, x), node.dims(x, [1])) for n in (1, 0))
    return node.onnx("InstanceNormalization", x, scale or ones, bias or zeros, epsilon=epsilon)
