"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.math.arithmetic import combined, times
from aot.frontends.pt2.registry import AtenNode, Number, Size, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@aten("mm.default", "bmm.default", "mv.default", "dot.default", "vdot.default", "inner.default")
@aten("matmul.default", "linalg_matmul.default")
def matmul(
    node: AtenNode,
    x: OutPort,
    mat2: OutPort | None = None,
    other: OutPort | None = None,
    vec: OutPort | None = None,
    tensor: OutPort | None = None,
) -> OutPort:
    second = node.operand(mat2, other, vec, tensor)
    if node.kind.startswith("inner") and not (x.type.rank and second.type.rank):
        return node.build.Multiply(x, second)
    if node.kind.startswith("inner") and second.type.rank > 1:
        return node.build.MatMul(x, second, transpose_b=True)
    return node.build.MatMul(x, second)


@aten("linear.default")
def linear(node: AtenNode, x: OutPort, weight: OutPort, bias: OutPort | None = None) -> OutPort:
    y = node.build.MatMul(x, weight, transpose_b=weight.type.rank > 1)
    return y if bias is None else node.build.Add(y, bias)


@aten("addmm.default", "baddbmm.default", "addmv.default", "addbmm.default")
def addmm(
    node: AtenNode,
    x: OutPort,
    mat1: OutPort | None = None,
    mat2: OutPort | None = None,
    batch1: OutPort | None = None,
    batch2: OutPort | None = None,
    mat: OutPort | None = None,
    vec: OutPort | None = None,
    beta: Number = 1,
    alpha: Number = 1,
) -> OutPort:
    """beta x + alpha mat1 mat2; beta 0: `x` counts for nothing, not even its NaN. `addbmm` sums over the batch."""
    build, first, second = node.build, node.operand(mat1, batch1, mat), node.operand(mat2, batch2, vec)
    product = build.MatMul(first, second)
    if node.kind.startswith("addbmm"):
        product = build.ReduceSum(product, node.list([0]))
    product = times(node, alpha, product)
    return product if beta == 0 else build.Add(times(node, beta, x), product)


@aten("outer.default", "ger.default")
def outer(node: AtenNode, x: OutPort, vec2: OutPort) -> OutPort:
    a, b = node.promoted(x, vec2)
    return combined(node, "Multiply", node.build.Unsqueeze(a, node.list([1])), b)


@aten("einsum.default")
def einsum(node: AtenNode, equation: str, tensors: Sequence[OutPort], path: Sequence[int] | None = None) -> OutPort:
    """Axes of `...` that the result does not have are summed up."""
    build, equation = node.build, equation.replace(" ", "")
    front, arrow, result = equation.partition("->")
    if not arrow or "..." in result or "..." not in front:
        return build.Einsum(*node.promoted(*tensors), equation=equation)
    port = build.Einsum(*node.promoted(*tensors), equation=f"{front}->...{result}")
    return build.ReduceSum(port, node.list(range(port.type.rank - len(result))))


@aten("bilinear.default")
def bilinear(node: AtenNode, x: OutPort, input2: OutPort, weight: OutPort, bias: OutPort | None = None) -> OutPort:
    """out[.., o] = sum of x[.., i] weight[o, i, j] input2[.., j]"""
    y = node.build.Einsum(x, weight, input2, equation="...i,oij,...j->...o")
    return y if bias is None else node.build.Add(y, bias)


@aten("linalg_vecdot.default")
def vecdot(node: AtenNode, x: OutPort, y: OutPort, dim: int = -1) -> OutPort:
    a, b = node.promoted(x, y)
    product = node.build.Multiply(a, b)
    return node.build.ReduceSum(product, node.list([node.axis(dim, product.type.rank)]))


@aten("linalg_cross.default", "cross.default")
def cross(node: AtenNode, x: OutPort, other: OutPort, dim: int | None = -1) -> OutPort:
    """The cross product along an axis of size 3."""
    build = node.build
    a, b = node.promoted(x, other)
    axis = next((k for k, n in enumerate(a.shape) if n == 3), 0) if dim is None else node.axis(dim, a.type.rank)

    def turned(p: OutPort, *places: int) -> OutPort:
        return build.Gather(p, node.list(places), node.scalar(axis))

    one = build.Multiply(turned(a, 1, 2, 0), turned(b, 2, 0, 1))
    return build.Subtract(one, build.Multiply(turned(a, 2, 0, 1), turned(b, 1, 2, 0)))


@aten("linalg_det.default", "_linalg_det.default")
def det(node: AtenNode, x: OutPort) -> tuple[OutPort, ...]:
    node.refuse(any(node.outputs[1:]), "outputs behind the determinant are not supported")
    return (node.build.Det(x),)


@aten("linalg_inv.default", "inverse.default", "linalg_inv_ex.default")
def inverse(node: AtenNode, x: OutPort, check_errors: bool = False) -> tuple[OutPort, ...]:
    """The inverse; the second output, 0 for a matrix that has one, is not read."""
    node.refuse(any(node.outputs[1:]), "the test for a singular matrix is not supported")
    return (node.build.Inverse(x, adjoint=False),)


@aten("_cdist_forward.default", "cdist.default")
def cdist(node: AtenNode, x: OutPort, x2: OutPort, p: float = 2.0, compute_mode: Size | None = None) -> OutPort:
    """Distances of all pairs of rows of x [.., n, k] and x2 [.., m, k]."""
    build = node.build
    rank = x.type.rank
    gap = build.Abs(
        build.Subtract(build.Unsqueeze(x, node.list([rank - 1])), build.Unsqueeze(x2, node.list([rank - 2])))
    )
    last = node.list([-1])
    if p == 2:
        return build.Sqrt(build.ReduceSum(build.Multiply(gap, gap), last))
    if p == 1:
        return build.ReduceSum(gap, last)
    if p == float("inf"):
        return build.ReduceMax(gap, last)
    if p == 0:
        return build.ReduceSum(node.cast(build.NotEqual(gap, node.like(0, gap)), gap.type.dtype), last)
    return build.Power(build.ReduceSum(build.Power(gap, node.like(p, gap)), last), node.like(1 / p, gap))


@aten("transformers::grouped_mm_fallback.default", "_grouped_mm.default")
def grouped_mm(
    node: AtenNode,
    x: OutPort,
    weight: OutPort | None = None,
    mat2: OutPort | None = None,
    offs: OutPort | None = None,
    bias: OutPort | None = None,
    out_dtype: DType | None = None,
) -> OutPort:
    """Rows, sorted by group, times the matrix of their group [G, K, N]; rows after the last group are 0."""
    matrices = node.operand(weight, mat2)
    ranks = (x.type.rank, matrices.type.rank)
    node.refuse(ranks != (2 + (offs is None), 3), f"groups of rows [S, K] times [G, K, N], got ranks {ranks}")
    transposed = node.build.Transpose(matrices, node.list([0, 2, 1]))
    y = node.build.GroupedMatMul(x, transposed) if offs is None else node.build.GroupedMatMul(x, transposed, offs)
    return y if bias is None else node.build.Add(y, bias)
