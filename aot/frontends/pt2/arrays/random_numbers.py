"""Random numbers of the right distribution, but not those of PyTorch. The user must give a seed."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.arrays.generators import node_type
from aot.frontends.pt2.arrays.sorting import ranked
from aot.frontends.pt2.registry import SHORT_FLOATS, AtenNode, Number, Size, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

DRAWN = (*SHORT_FLOATS, DType.F32, DType.F64)


def drawn(node: AtenNode, sizes: OutPort, normal: bool = False, dtype: DType = DType.F32) -> OutPort:
    """Uniform numbers in 0..1, 1 excluded, or normal ones of mean 0 and deviation 1."""
    like = node.build.Broadcast(node.build.const(0, dtype), sizes)
    return node.onnx("RandomNormalLike" if normal else "RandomUniformLike", like)


def shape_of(node: AtenNode, x: OutPort) -> OutPort:
    return node.dims(x, range(x.type.rank))


def _of_type(node: AtenNode, sizes: OutPort, normal: bool, dtype: DType) -> OutPort:
    node.refuse(dtype not in DRAWN, f"numbers of floating point are drawn, got {dtype.value}")
    return drawn(node, sizes, normal, dtype)


@aten("rand.default", "randn.default")
def rand(node: AtenNode, size: Sequence[Size], dtype: DType | None = None) -> OutPort:
    return _of_type(node, node.vector(size), node.kind.startswith("randn."), node.dtype())


@aten("rand_like.default", "randn_like.default")
def rand_like(node: AtenNode, x: OutPort, dtype: DType | None = None) -> OutPort:
    return _of_type(node, shape_of(node, x), node.kind.startswith("randn_"), node.dtype())


def whole(node: AtenNode, sizes: OutPort, low: Number, high: Number) -> OutPort:
    """Integers from `low` to below `high`, all as likely."""
    build = node.build
    unit = drawn(node, sizes, dtype=DType.F64)
    first, last = (node.port(v, DType.F64) for v in (low, high))
    return build.Floor(build.Add(build.Multiply(unit, build.Subtract(last, first)), first))


@aten("randint.default", "randint.low")
def randint(
    node: AtenNode, low: Size = 0, high: Size | None = None, size: Sequence[Size] = (), dtype: DType | None = None
) -> OutPort:
    """Integers from `low` to below `high`; one number alone is the end."""
    ends = (0, low) if high is None else (low, high)
    return whole(node, node.vector(size), *ends)


@aten("randint_like.default", "randint_like.low_dtype")
def randint_like(node: AtenNode, x: OutPort, high: Size, low: Size = 0, dtype: DType | None = None) -> OutPort:
    return whole(node, shape_of(node, x), low, high)


@aten("randperm.default")
def randperm(node: AtenNode, n: Size, dtype: DType | None = None) -> OutPort:
    """The order of random numbers."""
    keys = drawn(node, node.vector([n]), dtype=DType.F64)
    return ranked(node, keys, node.port(n), 0, False)[1]


@aten("bernoulli.default", "bernoulli.p", "bernoulli.Tensor")
def bernoulli(node: AtenNode, x: OutPort, p: OutPort | float | None = None) -> OutPort:
    """1 with a probability, that in `x` unless one is given."""
    chance = x if p is None else node.port(p, DType.F32)
    return node.build.Less(drawn(node, shape_of(node, x)), node.cast(chance, DType.F32))


@aten("uniform.default")
def uniform(node: AtenNode, x: OutPort, from_: float = 0.0, to: float = 1.0) -> OutPort:
    unit = _of_type(node, shape_of(node, x), False, node_type(node, x))
    return node.build.Add(node.build.Multiply(unit, node.like(to - from_, unit)), node.like(from_, unit))


@aten("normal.default", "normal_functional.default")
def normal(node: AtenNode, x: OutPort, mean: float = 0.0, std: float = 1.0) -> OutPort:
    unit = _of_type(node, shape_of(node, x), True, node_type(node, x))
    return node.build.Add(node.build.Multiply(unit, node.like(std, unit)), node.like(mean, unit))


@aten("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor")
def normal_of(node: AtenNode, x: OutPort | float, std: OutPort | float = 1.0) -> OutPort:
    """Means, deviations or both are tensors."""
    build, dtype = node.build, node.dtype()
    mean, spread = node.port(x, dtype), node.port(std, dtype)
    unit = _of_type(node, shape_of(node, build.Add(mean, spread)), True, dtype)
    return build.Add(build.Multiply(unit, spread), mean)


@aten("exponential.default")
def exponential(node: AtenNode, x: OutPort, lambd: float = 1.0) -> OutPort:
    """-log(1 - u) / lambd"""
    unit = _of_type(node, shape_of(node, x), False, node_type(node, x))
    build = node.build
    return build.Divide(build.Log(build.Subtract(node.like(1, unit), unit)), node.like(-lambd, unit))


@aten("multinomial.default")
def multinomial(node: AtenNode, x: OutPort, num_samples: int, replacement: bool = False) -> OutPort:
    """Classes by their weights; without replacement the largest of u^(1 / weight), Efraimidis and Spirakis 2006."""
    build = node.build
    if not replacement:
        unit = drawn(node, shape_of(node, x))
        keys = build.Divide(build.Log(unit), node.cast(x, DType.F32))
        return ranked(node, keys, node.scalar(num_samples), x.type.rank - 1, True)[1]
    rows = build.Unsqueeze(x, node.list([0])) if x.type.rank == 1 else x
    ends = build.CumSum(node.cast(rows, DType.F32), node.scalar(1))
    total = build.ReduceMax(ends, node.list([1]), keep_dims=True)
    sizes = build.Concat(node.dims(rows, [0]), node.list([num_samples]), axis=0)
    positions = build.SearchSorted(
        build.Divide(ends, total), drawn(node, sizes), right_mode=True, output_type=DType.I64
    )
    return build.Squeeze(positions, node.list([0])) if x.type.rank == 1 else positions
