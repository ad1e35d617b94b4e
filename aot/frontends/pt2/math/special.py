"""Special functions and rarer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aot.frontends.conversion.special_functions import log_gamma
from aot.frontends.pt2.arrays.indexing import scatter
from aot.frontends.pt2.math.arithmetic import combined, pow_, times
from aot.frontends.pt2.math.products import outer
from aot.frontends.pt2.math.reduction import INFINITY, norm
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@aten("lgamma.default", "special_gammaln.default")
def lgamma(node: AtenNode, x: OutPort) -> OutPort:
    return node.cast(log_gamma(node, node.cast(x, DType.F64)), node.dtype())


@aten("float_power.Tensor_Tensor", "float_power.Scalar")
def float_power(node: AtenNode, x: OutPort | Number, exponent: OutPort | Number) -> OutPort:
    """In f64."""
    return pow_(node, node.port(x, DType.F64), node.port(exponent, DType.F64))


@aten("heaviside.default")
def heaviside(node: AtenNode, x: OutPort, values: OutPort) -> OutPort:
    """0 below 0, 1 above it, a value at 0."""
    build = node.build
    a, b = node.promoted(x, values)
    if a.type.dtype is DType.BOOL:
        return build.LogicalOr(a, b)
    step = node.cast(build.Greater(a, node.like(0, a)), a.type.dtype)
    return build.Select(build.Equal(a, node.like(0, a)), b, step)


@aten("ldexp.Tensor")
def ldexp(node: AtenNode, x: OutPort, other: OutPort) -> OutPort:
    """x 2^other"""
    a, b = node.promoted(x, other, floats=True)
    return node.build.Multiply(a, node.build.Power(node.like(2, a), b))


@aten("special_entr.default")
def entr(node: AtenNode, x: OutPort) -> OutPort:
    """-x ln x; minus infinity below 0."""
    build, x = node.build, node.real(x)
    port = build.Negative(node.tf("Xlogy", x, x))
    return build.Select(build.Less(x, node.like(0, x)), node.like(-INFINITY, x), port)


@aten("special_ndtr.default")
def ndtr(node: AtenNode, x: OutPort) -> OutPort:
    """The share of a normal distribution below x."""
    build, x = node.build, node.real(x)
    part = build.Erf(build.Multiply(x, node.like(math.sqrt(0.5), x)))
    return build.Multiply(build.Add(part, node.like(1, x)), node.like(0.5, x))


@aten("special_xlog1py.default", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar")
def xlog1py(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    a, b = node.promoted(x, other, floats=True)
    return node.build.Select(node.build.IsNaN(b), b, node.tf("Xlog1py", a, b))


@aten("isreal.default")
def isreal(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.Broadcast(node.build.const(True, DType.BOOL), node.dims(x, range(x.type.rank)))


@aten("nanmean.default")
def nanmean(
    node: AtenNode,
    x: OutPort,
    dim: Sequence[int] | int | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> OutPort:
    build = node.build
    axes = node.list(node.axes(None if dim == () else dim, x.type.rank))
    absent = build.IsNaN(x)
    total = build.ReduceSum(build.Select(absent, node.like(0, x), x), axes, keep_dims=keepdim)
    count = build.ReduceSum(node.cast(build.LogicalNot(absent), x.type.dtype), axes, keep_dims=keepdim)
    return build.Divide(total, count)


# ---- matrices


@aten("addr.default")
def addr(node: AtenNode, x: OutPort, vec1: OutPort, vec2: OutPort, beta: Number = 1, alpha: Number = 1) -> OutPort:
    """beta x + alpha (vec1 outer vec2)"""
    dtype = node.dtype()
    product = times(node, alpha, node.cast(outer(node, vec1, vec2), dtype))
    if beta == 0:
        return product
    scaled = times(node, beta, node.cast(x, dtype))
    return (node.build.LogicalOr if dtype is DType.BOOL else node.build.Add)(scaled, product)


@aten("tensordot.default")
def tensordot(
    node: AtenNode, x: OutPort, other: OutPort, dims_self: Sequence[int], dims_other: Sequence[int]
) -> OutPort:
    """Sums of products over pairs of axes."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(x.type.rank)]
    right = [next(letters) for _ in range(other.type.rank)]
    own_axes, other_axes = node.axes(dims_self, x.type.rank), node.axes(dims_other, other.type.rank)
    for a, b in zip(own_axes, other_axes, strict=True):
        right[b] = left[a]
    rest = [c for k, c in enumerate(left) if k not in own_axes] + [
        c for k, c in enumerate(right) if k not in other_axes
    ]
    return node.build.Einsum(x, other, equation=f"{''.join(left)},{''.join(right)}->{''.join(rest)}")


@aten("kron.default")
def kron(node: AtenNode, x: OutPort, other: OutPort) -> OutPort:
    """Each element times the whole of `other`."""
    build = node.build
    a, b = node.promoted(x, other)
    rank = max(a.type.rank, b.type.rank)
    if not rank:
        return combined(node, "Multiply", a, b)
    a, b = (build.Unsqueeze(p, node.list(range(rank - p.type.rank))) if p.type.rank < rank else p for p in (a, b))
    sizes = build.Multiply(node.dims(a, range(rank)), node.dims(b, range(rank)))
    wide = build.Unsqueeze(a, node.list(range(1, 2 * rank, 2)))
    product = combined(node, "Multiply", wide, build.Unsqueeze(b, node.list(range(0, 2 * rank, 2))))
    return build.Reshape(product, sizes)


@aten("linalg_matrix_power.default", "matrix_power.default")
def matrix_power(node: AtenNode, x: OutPort, n: int) -> OutPort:
    """By squares; of the inverse for negative powers."""
    build = node.build
    node.refuse(abs(n) > 1 << 16, f"powers up to {1 << 16}, got {n}")
    if n < 0:
        x, n = build.Inverse(x, adjoint=False), -n
    if n == 0:
        size = node.size(x, x.type.rank - 1)
        eye = node.cast(build.Eye(size, size, node.scalar(0), output_type=DType.I32), x.type.dtype)
        return build.Broadcast(eye, node.dims(x, range(x.type.rank)))
    port: OutPort | None = None
    while n:
        if n & 1:
            port = x if port is None else build.MatMul(port, x)
        n >>= 1
        x = build.MatMul(x, x) if n else x
    assert port is not None
    return port


@aten("linalg_multi_dot.default", "chain_matmul.default")
def multi_dot(node: AtenNode, tensors: Sequence[OutPort]) -> OutPort:
    return node.chain("MatMul", tensors)


@aten("logdet.default", "linalg_slogdet.default", "slogdet.default")
def logdet(node: AtenNode, x: OutPort) -> tuple[OutPort, ...]:
    """The logarithm of the determinant; `slogdet`: its sign, and the logarithm of its size."""
    build, value = node.build, node.build.Det(x)
    if node.kind.startswith("logdet"):
        return (build.Log(value),)
    return build.Sign(value), build.Log(build.Abs(value))


@aten("linalg_solve.default", "_linalg_solve_ex.default", "linalg_solve_ex.default")
def solve(node: AtenNode, x: OutPort, b: OutPort, left: bool = True, check_errors: bool = False) -> tuple[OutPort, ...]:
    """The inverse times `b`."""
    build = node.build
    node.refuse(any(node.outputs[1:]), "outputs behind the solution are not supported")
    inverse = build.Inverse(x, adjoint=False)
    if b.type.rank == 1 or (b.type.rank == x.type.rank - 1 and b.shape == x.shape[:-1]):
        column = build.MatMul(inverse, build.Unsqueeze(b, node.list([-1])))
        return (build.Squeeze(column, node.list([-1])),)
    return (build.MatMul(inverse, b) if left else build.MatMul(b, inverse),)


@aten("linalg_matrix_norm.default", "linalg_matrix_norm.str_ord", "linalg_norm.default", "linalg_norm.ord_str")
@aten("frobenius_norm.dim")
def matrix_norm(
    node: AtenNode,
    x: OutPort,
    ord: Number | str | None = None,
    dim: Sequence[int] | int | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> OutPort:
    """The root of the sum of squares, or the largest or smallest sum of sizes over rows or columns."""
    build, rank = node.build, x.type.rank
    if "matrix" in node.kind and dim is None:
        dim = (-2, -1)
    x = node.cast(node.real(x), dtype) if dtype is not None else node.real(x)
    pair = node.axes(dim, rank) if dim not in (None, ()) else list(range(rank))
    if ord in (None, "fro") or len(pair) == 1:
        if isinstance(ord, str) and ord != "fro":
            raise ModelError(f"{node.kind}: ord of a vector must be a number, got {ord!r}")
        return norm(node, x, None if isinstance(ord, str) else ord, None, tuple(pair), keepdim)
    node.refuse(ord not in (1, -1, INFINITY, -INFINITY), f"norms by singular values are not supported, got ord {ord}")
    assert isinstance(ord, int | float)
    rows, columns = pair
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    total = build.ReduceSum(build.Abs(x), node.list([summed]), keep_dims=True)
    largest = (build.ReduceMax if ord > 0 else build.ReduceMin)(total, node.list([other]), keep_dims=True)
    return largest if keepdim else build.Squeeze(largest, node.list(pair))


# ---- writes


@aten("index_reduce.default")
def index_reduce(
    node: AtenNode, x: OutPort, dim: int, index: OutPort, source: OutPort, reduce: str, include_self: bool = True
) -> OutPort:
    """Slices of `source` combined with those of `x` at the places of an index."""
    build = node.build
    if not x.type.rank:
        index, source = (build.Reshape(p, node.list([])) for p in (index, source))
        return scatter(node, x, 0, index, source, None, reduce, include_self)
    axis = node.axis(dim, x.type.rank)
    positions = build.Reshape(index, node.list([-1, *[1] * (x.type.rank - 1 - axis)]))
    positions = build.Broadcast(positions, node.dims(source, range(source.type.rank)))
    return scatter(node, x, axis, positions, source, None, reduce, include_self)


@aten("put.default")
def put(node: AtenNode, x: OutPort, index: OutPort, source: OutPort, accumulate: bool = False) -> OutPort:
    """Elements at places in the flattened tensor."""
    build, flat = node.build, node.list([-1])
    parts = [build.Reshape(p, flat) for p in (x, index, source)]
    port = scatter(node, parts[0], 0, parts[1], parts[2], None, "sum" if accumulate else None)
    return build.Reshape(port, node.dims(x, range(x.type.rank))) if x.type.rank else build.Squeeze(port, node.list([0]))
