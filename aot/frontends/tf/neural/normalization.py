"""Normalisation, softmax and losses."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.tf.neural.layout import is_channels_last, to_channels_first, to_channels_last
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tf("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(
    node: TfNode, x: OutPort, scale: OutPort, offset: OutPort, mean: OutPort, variance: OutPort
) -> tuple[OutPort | None, ...]:
    """By the given mean and variance, or, in training, by those of the batch, which are outputs then."""
    wide = node.cast(x, scale.type.dtype)
    epsilon, training = node.number("epsilon"), node.flag("is_training")
    if training:
        return _by_batch(node, x, wide, (scale, offset, mean, variance), epsilon)
    y = normalised(node, wide, (scale, offset, mean, variance), epsilon)
    return node.cast(y, x.type.dtype), mean, variance, mean, variance


def normalised(node: TfNode, x: OutPort, statistics: Sequence[OutPort], epsilon: float) -> OutPort:
    """By scale, offset, mean and variance."""
    return to_channels_last(
        node, node.build.BatchNormInference(to_channels_first(node, x), *statistics, epsilon=epsilon)
    )


def _by_batch(
    node: TfNode, x: OutPort, wide: OutPort, parameters: tuple[OutPort, ...], epsilon: float
) -> tuple[OutPort | None, ...]:
    """Normalise by the batch. The variance has Bessel's correction; old statistics count 1 - exponential_avg_factor."""
    build, rank = node.build, x.type.rank
    channel = rank - 1 if is_channels_last(node, rank) else 1
    axes = node.list([a for a in range(rank) if a != channel])
    scale, offset, old_mean, old_variance = parameters
    mean = build.ReduceMean(wide, axes, keep_dims=True)
    centred = build.Subtract(wide, mean)
    variance = build.ReduceMean(build.Multiply(centred, centred), axes, keep_dims=True)

    def along(p: OutPort) -> OutPort:
        return build.Unsqueeze(p, node.list(range(1, rank - 1))) if channel == 1 else p

    normal = build.Divide(centred, build.Sqrt(build.Add(variance, epsilon)))
    y = build.Add(build.Multiply(normal, along(scale)), along(offset))
    count = build.ReduceProd(node.dims(x, [a for a in range(rank) if a != channel]), node.list([0]))
    degrees = node.cast(build.Maximum(build.Subtract(count, 1), 1), wide.type.dtype)
    mean, variance = (build.Squeeze(p, axes) for p in (mean, variance))
    whole = build.Multiply(variance, build.Divide(node.cast(count, wide.type.dtype), degrees))
    share = node.number("exponential_avg_factor")
    shown = [mean, whole]
    if share != 1:
        pairs = zip((old_mean, old_variance), shown, strict=True)
        shown = [build.Add(build.Multiply(old, 1 - share), build.Multiply(new, share)) for old, new in pairs]
    return node.cast(y, x.type.dtype), *shown, mean, variance


@tf("LRN")
def lrn(node: TfNode, x: OutPort) -> OutPort:
    """x / (bias + alpha * sum of squares of the channels around)^beta"""
    size = 2 * node.integer("depth_radius") + 1
    alpha, beta, bias = node.number("alpha"), node.number("beta"), node.number("bias")
    y = node.build.LRN(
        to_channels_first(node, x, True), node.list([1]), size=size, alpha=alpha * size, beta=beta, bias=bias
    )
    return to_channels_last(node, y, True)


@tf("Softmax", "LogSoftmax")
def softmax(node: TfNode, x: OutPort) -> OutPort:
    return getattr(node.build, node.kind)(x, axis=x.type.rank - 1)


@tf("SoftmaxCrossEntropyWithLogits")
def cross_entropy(node: TfNode, logits: OutPort, labels: OutPort) -> tuple[OutPort, OutPort]:
    """The loss of each row, and its gradient."""
    build = node.build
    logs = build.LogSoftmax(logits, axis=1)
    loss = build.Negative(build.ReduceSum(build.Multiply(labels, logs), node.list([1])))
    return loss, build.Subtract(build.Softmax(logits, axis=1), labels)


@tf("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(node: TfNode, logits: OutPort, labels: OutPort) -> tuple[OutPort, OutPort]:
    """The loss of each row, and its gradient; a number gives the row's class."""
    build = node.build
    column = build.Unsqueeze(labels, node.list([1]))
    logs = build.Gather(build.LogSoftmax(logits, axis=1), column, node.scalar(1), batch_dims=1)
    positions = build.Range(node.scalar(0), node.size(logits, 1), node.scalar(1), output_type=DType.I64)
    here = build.Equal(node.cast(column, DType.I64), positions)
    one, zero = node.like(1, logits), node.like(0, logits)
    gradient = build.Subtract(build.Softmax(logits, axis=1), build.Select(here, one, zero))
    return build.Negative(build.Squeeze(logs, node.list([1]))), gradient
