"""Normalisation: by given statistics, by those of layers, groups and instances."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import SHORT_FLOATS, AtenNode, Number, Size, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


def along(node: AtenNode, v: OutPort, x: OutPort) -> OutPort:
    """Reshape a vector of channels so that it broadcasts to `x`."""
    return node.reshape(v, (v.shape[0], *[1] * (x.type.rank - 2)))


def scaled(node: AtenNode, y: OutPort, weight: OutPort | None, bias: OutPort | None) -> OutPort:
    """Return `y weight + bias`, in the type of the vectors: data of autocast is shorter than they are."""
    for operation, vector in (("Multiply", weight), ("Add", bias)):
        y = y if vector is None else getattr(node.build, operation)(node.cast(y, vector.type.dtype), vector)
    return y


def filled(node: AtenNode, v: OutPort | None, x: OutPort, value: float) -> OutPort:
    """Return a vector of channels, full of `value` if there is none."""
    return v if v is not None else node.build.Broadcast(node.like(value, x), node.dims(x, [1]))


@aten("batch_norm.default")
def batch_norm(
    node: AtenNode,
    x: OutPort,
    weight: OutPort | None = None,
    bias: OutPort | None = None,
    running_mean: OutPort | None = None,
    running_var: OutPort | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> OutPort:
    if not training and running_mean is not None and running_var is not None:
        vectors = [filled(node, weight, x, 1), filled(node, bias, x, 0), running_mean, running_var]
        return node.build.BatchNormInference(x, *(node.cast(v, x.type.dtype) for v in vectors), epsilon=eps)
    y = normalized(node, x, [0, *range(2, x.type.rank)], eps)[0]
    vectors = [None if v is None else along(node, node.cast(v, x.type.dtype), x) for v in (weight, bias)]
    return scaled(node, y, vectors[0], vectors[1])


@aten("_native_batch_norm_legit.default", "native_batch_norm.default", "_batch_norm_with_update.default")
@aten("_native_batch_norm_legit.no_stats", "_batch_norm_no_update.default")
def native_batch_norm(
    node: AtenNode,
    x: OutPort,
    weight: OutPort | None = None,
    bias: OutPort | None = None,
    running_mean: OutPort | None = None,
    running_var: OutPort | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[OutPort, ...]:
    """The saved statistics are those of the batch, empty ones if running statistics are used."""
    update = running_mean is not None and (training or "with_update" in node.kind)
    node.refuse(update, "running statistics that the inference changes are not supported: export model.eval()")
    if not training and running_mean is not None:
        return batch_norm_no_training(node, x, weight, bias, running_mean, running_var, momentum, eps)
    y, mean, scale = normalized(node, x, [0, *range(2, x.type.rank)], eps)
    vectors = [None if v is None else along(node, node.cast(v, x.type.dtype), x) for v in (weight, bias)]
    saved = (node.build.Reshape(p, node.list([-1])) for p in (mean, scale))
    return (scaled(node, y, vectors[0], vectors[1]), *saved)


@aten("_native_batch_norm_legit_no_training.default")
def batch_norm_no_training(
    node: AtenNode,
    x: OutPort,
    weight: OutPort | None,
    bias: OutPort | None,
    running_mean: OutPort | None,
    running_var: OutPort | None,
    momentum: float,
    eps: float,
) -> tuple[OutPort, ...]:
    """The saved statistics are empty."""
    y = batch_norm(node, x, weight, bias, running_mean, running_var, False, momentum, eps)
    empty = node.build.const([], node.dtype(1))
    return y, empty, empty


def normalized(node: AtenNode, x: OutPort, axes: Sequence[int], eps: float) -> tuple[OutPort, OutPort, OutPort]:
    """`x` with mean 0 and deviation 1 over axes; the mean, and 1 / deviation, with axes of size 1."""
    build, dtype, wide = node.build, x.type.dtype, x
    if dtype in SHORT_FLOATS:
        wide = node.cast(x, DType.F32)
    at = node.list(axes)
    y = node.cast(build.MVN(wide, at, eps=eps), dtype)
    if len(node.outputs) == 1 or not any(node.outputs[1:]):
        return y, y, y
    mean = build.ReduceMean(wide, at, keep_dims=True)
    gap = build.Subtract(wide, mean)
    spread = build.Sqrt(build.Add(build.ReduceMean(build.Multiply(gap, gap), at, keep_dims=True), node.like(eps, wide)))
    return y, mean, build.Divide(node.like(1, wide), spread)


@aten("layer_norm.default", "native_layer_norm.default")
def layer_norm(
    node: AtenNode,
    x: OutPort,
    normalized_shape: Sequence[Size],
    weight: OutPort | None = None,
    bias: OutPort | None = None,
    eps: float = 1e-5,
) -> tuple[OutPort, ...]:
    rank = x.type.rank
    y, mean, scale = normalized(node, x, range(rank - len(normalized_shape), rank), eps)
    return (scaled(node, y, weight, bias), mean, scale)[: len(node.outputs)]


@aten("group_norm.default")
def group_norm(
    node: AtenNode,
    x: OutPort,
    num_groups: int,
    weight: OutPort | None = None,
    bias: OutPort | None = None,
    eps: float = 1e-5,
) -> OutPort:
    vectors = [node.cast(filled(node, v, x, n), x.type.dtype) for v, n in ((weight, 1), (bias, 0))]
    return node.build.GroupNormalization(x, *vectors, num_groups=num_groups, epsilon=eps)


@aten("native_group_norm.default")
def native_group_norm(
    node: AtenNode,
    x: OutPort,
    weight: OutPort | None,
    bias: OutPort | None,
    n: Size,
    c: Size,
    hxw: Size,
    group: int,
    eps: float,
) -> tuple[OutPort, ...]:
    """The result; mean and 1 / deviation of each group [N, group]."""
    y = group_norm(node, x, group, weight, bias, eps)
    if not any(node.outputs[1:]):
        return y, y, y
    build = node.build
    parts = build.Reshape(x, build.Concat(node.dims(x, [0]), node.list([group, -1]), axis=0))
    _, mean, scale = normalized(node, parts, [2], eps)
    return y, build.Squeeze(mean, node.list([2])), build.Squeeze(scale, node.list([2]))


@aten("instance_norm.default")
def instance_norm(
    node: AtenNode,
    x: OutPort,
    weight: OutPort | None = None,
    bias: OutPort | None = None,
    running_mean: OutPort | None = None,
    running_var: OutPort | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> OutPort:
    if not use_input_stats:
        return batch_norm(node, x, weight, bias, running_mean, running_var, False, momentum, eps)
    y = normalized(node, x, range(2, x.type.rank), eps)[0]
    vectors = [None if v is None else along(node, node.cast(v, x.type.dtype), x) for v in (weight, bias)]
    return scaled(node, y, vectors[0], vectors[1])


@aten("rms_norm.default")
def rms_norm(
    node: AtenNode,
    x: OutPort,
    normalized_shape: Sequence[Size],
    weight: OutPort | None = None,
    eps: Number | None = None,
) -> OutPort:
    """x / root of the mean square, in f32 for short floats; without `eps`, that of the type computed in."""
    build, dtype = node.build, x.type.dtype
    wide = node.wide(x)
    axes = node.list(range(x.type.rank - len(normalized_shape), x.type.rank))
    least = eps if eps is not None else 2.0**-52 if dtype is DType.F64 else 2.0**-23
    mean = build.ReduceMean(build.Multiply(wide, wide), axes, keep_dims=True)
    y = build.Divide(wide, build.Sqrt(build.Add(mean, node.same(least, wide))))
    y = y if weight is None else build.Multiply(y, node.cast(weight, y.type.dtype))
    return node.cast(y, dtype)
