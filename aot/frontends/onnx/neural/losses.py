"""Losses."""

from __future__ import annotations

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@onnx("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(node: OnnxNode, x: OutPort, target: OutPort, weight: OutPort | None = None) -> OutPort:
    return _loss(node, x, target, weight)


@onnx("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    node: OnnxNode, scores: OutPort, labels: OutPort, weights: OutPort | None = None
) -> tuple[OutPort, ...]:
    """The loss, and the log-probabilities."""
    logs = node.build.LogSoftmax(scores, axis=1)
    return _loss(node, logs, labels, weights), logs


def _loss(node: OnnxNode, logs: OutPort, target: OutPort, weight: OutPort | None) -> OutPort:
    """Return -logs[target] weight[target]; the mean is over the weights."""
    build, one, dtype = node.build, node.list([1]), logs.type.dtype
    ignored = node.has("ignore_index")
    position = node.cast(target, DType.I64)
    counted: OutPort | None = None
    if ignored:
        counted = build.NotEqual(position, node.scalar(node.integer("ignore_index")))
        position = build.Select(counted, position, node.scalar(0))
    picked = build.Negative(build.Squeeze(build.GatherElements(logs, build.Unsqueeze(position, one), axis=1), one))
    factor = None if weight is None else build.Gather(weight, position, node.scalar(0))
    if counted is not None:
        mask = node.cast(counted, dtype)
        factor = mask if factor is None else build.Multiply(factor, mask)
    losses = picked if factor is None else build.Multiply(picked, factor)
    reduction, axes = node.text("reduction", "mean"), node.list(range(losses.type.rank))
    if reduction == "none":
        return losses
    total = build.ReduceSum(losses, axes)
    if reduction == "sum":
        return total
    return build.ReduceMean(losses, axes) if factor is None else build.Divide(total, build.ReduceSum(factor, axes))
