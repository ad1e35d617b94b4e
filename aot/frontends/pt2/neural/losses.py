"""Losses, for programs that return them."""

from __future__ import annotations

from collections.abc import Callable

from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

NONE, MEAN, SUM = 0, 1, 2  # by PyTorch's numbers


def reduced(node: AtenNode, loss: OutPort, reduction: int) -> OutPort:
    """Return the loss, its mean or its sum."""
    node.refuse(reduction not in (NONE, MEAN, SUM), f"reduction is 0 to 2, got {reduction}")
    if reduction == NONE:
        return loss
    axes = node.list(range(loss.type.rank))
    return (node.build.ReduceMean if reduction == MEAN else node.build.ReduceSum)(loss, axes)


@aten("mse_loss.default", "l1_loss.default")
def distance_loss(node: AtenNode, x: OutPort, target: OutPort, reduction: int = MEAN) -> OutPort:
    a, b = node.promoted(x, target, floats=True)
    gap = node.build.Subtract(a, b)
    each = node.build.Multiply(gap, gap) if node.kind.startswith("mse") else node.build.Abs(gap)
    return reduced(node, each, reduction)


@aten("smooth_l1_loss.default", "huber_loss.default")
def huber(
    node: AtenNode, x: OutPort, target: OutPort, reduction: int = MEAN, beta: float = 1.0, delta: float = 1.0
) -> OutPort:
    """Squares near 0, lines beyond `beta` or `delta`."""
    build, smooth = node.build, node.kind.startswith("smooth")
    a, b = node.promoted(x, target, floats=True)
    gap = build.Abs(build.Subtract(a, b))
    end = beta if smooth else delta
    square = build.Multiply(build.Multiply(gap, gap), node.like(0.5 / end if smooth and end else 0.5, gap))
    line = build.Subtract(gap, node.like(0.5 * end, gap))
    line = line if smooth else build.Multiply(line, node.like(end, gap))
    return reduced(node, build.Select(build.Less(gap, node.like(end, gap)), square, line), reduction)


@aten("binary_cross_entropy.default")
def binary_cross_entropy(
    node: AtenNode, x: OutPort, target: OutPort, weight: OutPort | None = None, reduction: int = MEAN
) -> OutPort:
    """Logarithms are at least -100."""
    build, least = node.build, node.like(-100, x)
    one = node.like(1, x)
    logs = [build.Maximum(build.Log(p), least) for p in (x, build.Subtract(one, x))]
    parts = [build.Multiply(target, logs[0]), build.Multiply(build.Subtract(one, target), logs[1])]
    each = build.Negative(build.Add(*parts))
    return reduced(node, each if weight is None else build.Multiply(each, weight), reduction)


@aten("binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    node: AtenNode,
    x: OutPort,
    target: OutPort,
    weight: OutPort | None = None,
    pos_weight: OutPort | None = None,
    reduction: int = MEAN,
) -> OutPort:
    """(1 - t) x + (1 + (w - 1) t) log(1 + e^-x)"""
    build, one = node.build, node.like(1, x)
    soft = build.SoftPlus(build.Negative(x))
    if pos_weight is not None:
        factor = build.Add(build.Multiply(build.Subtract(pos_weight, one), target), one)
        soft = build.Multiply(soft, factor)
    each = build.Add(build.Multiply(build.Subtract(one, target), x), soft)
    return reduced(node, each if weight is None else build.Multiply(each, weight), reduction)


@aten("kl_div.default")
def kl_div(node: AtenNode, x: OutPort, target: OutPort, reduction: int = MEAN, log_target: bool = False) -> OutPort:
    build = node.build
    if log_target:
        each = build.Multiply(build.Exp(target), build.Subtract(target, x))
    else:
        each = build.Subtract(node.tf("Xlogy", target, target), build.Multiply(target, x))
    return reduced(node, each, reduction)


@aten("soft_margin_loss.default")
def soft_margin(node: AtenNode, x: OutPort, target: OutPort, reduction: int = MEAN) -> OutPort:
    return reduced(node, node.build.SoftPlus(node.build.Negative(node.build.Multiply(x, target))), reduction)


@aten("nll_loss.default", "nll_loss_nd.default", "nll_loss_forward.default")
@aten("nll_loss2d.default", "nll_loss2d_forward.default")
def nll(
    node: AtenNode,
    x: OutPort,
    target: OutPort,
    weight: OutPort | None = None,
    reduction: int = MEAN,
    ignore_index: Size = -100,
) -> tuple[OutPort, ...]:
    """-x at the classes of targets [N, C, ..], weighted by class; the mean is by the sum of weights."""
    build = node.build
    alone = x.type.rank == 1
    if alone:
        x, target = build.Unsqueeze(x, node.list([0])), build.Unsqueeze(target, node.list([0]))
    target = node.cast(target, DType.I64)
    used = build.NotEqual(target, node.port(ignore_index, DType.I64))
    class_index = build.Select(used, target, node.scalar(0))
    near = build.GatherElements(x, build.Unsqueeze(class_index, node.list([1])), axis=1)
    share = node.cast(used, x.type.dtype)
    if weight is not None:
        share = build.Multiply(share, build.Gather(weight, class_index, node.scalar(0)))
    picked = build.Squeeze(near, node.list([1]))
    each = build.Select(used, build.Negative(build.Multiply(picked, share)), node.like(0, x))
    axes = node.list(range(target.type.rank))
    total = build.ReduceSum(share, axes)
    if reduction == NONE:
        loss = build.Squeeze(each, node.list([0])) if alone else each
    else:
        loss = build.ReduceSum(each, axes)
        loss = build.Divide(loss, total) if reduction == MEAN else loss
    return (loss, total)[: len(node.outputs)]


@aten("cross_entropy_loss.default")
def cross_entropy(
    node: AtenNode,
    x: OutPort,
    target: OutPort,
    weight: OutPort | None = None,
    reduction: int = MEAN,
    ignore_index: Size = -100,
    label_smoothing: float = 0.0,
) -> OutPort:
    """Targets are classes, or probabilities of all of them."""
    build = node.build
    axis = 0 if x.type.rank == 1 else 1
    logs = build.LogSoftmax(x, axis=axis)
    if not target.type.dtype.is_float:
        node.refuse(label_smoothing != 0, "smoothed classes are not supported")
        return nll(node, logs, target, weight, reduction, ignore_index)[0]
    if label_smoothing:
        even = build.Divide(node.like(label_smoothing, x), node.cast(node.size(x, axis), x.type.dtype))
        target = build.Add(build.Multiply(target, node.like(1 - label_smoothing, x)), even)
    if weight is not None:
        logs = build.Multiply(logs, build.Reshape(weight, node.list([-1, *[1] * (x.type.rank - 1 - axis)])))
    each = build.Negative(build.ReduceSum(build.Multiply(target, logs), node.list([axis])))
    if reduction != MEAN:
        return reduced(node, each, reduction)
    count = node.build.ReduceProd(node.dims(x, [k for k in range(x.type.rank) if k != axis]), node.list([0]))
    total = build.ReduceSum(each, node.list(range(each.type.rank)))
    return build.Divide(total, node.cast(count, x.type.dtype)) if x.type.rank > 1 else total


def paired(node: AtenNode, step: Callable[..., OutPort], x: OutPort, y: OutPort) -> OutPort:
    """Apply `step` to two tensors, converted to one type."""
    return step(*node.promoted(x, y, floats=True))


@aten("margin_ranking_loss.default")
def margin_ranking(
    node: AtenNode, x: OutPort, input2: OutPort, target: OutPort, margin: float = 0.0, reduction: int = MEAN
) -> OutPort:
    """max(0, margin - t (x1 - x2))"""
    build = node.build
    gap = paired(node, build.Subtract, x, input2)
    each = build.Subtract(node.like(margin, gap), paired(node, build.Multiply, target, gap))
    return reduced(node, build.Relu(each), reduction)
