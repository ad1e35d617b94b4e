"""Products of matrices and vectors."""

from __future__ import annotations

from aot.frontends.pt2.registry import Call, Number, aten
from aot.ir.graph import OutPort


@aten("mm.default", "bmm.default", "matmul.default")
def matmul(node: Call, x: OutPort, mat2: OutPort | None = None, other: OutPort | None = None) -> OutPort:
    second = mat2 if mat2 is not None else other
    assert second is not None
    return node.build.MatMul(x, second)


@aten("linear.default")
def linear(node: Call, x: OutPort, weight: OutPort, bias: OutPort | None = None) -> OutPort:
    y = node.build.MatMul(x, weight, transpose_b=True)
    return y if bias is None else node.build.Add(y, bias)


@aten("addmm.default", "baddbmm.default")
def addmm(
    node: Call,
    x: OutPort,
    mat1: OutPort | None = None,
    mat2: OutPort | None = None,
    batch1: OutPort | None = None,
    batch2: OutPort | None = None,
    beta: Number = 1,
    alpha: Number = 1,
) -> OutPort:
    """beta x + alpha mat1 mat2; beta 0: `x` counts for nothing, not even its NaN."""
    build, first, second = node.build, mat1 or batch1, mat2 or batch2
    product = build.MatMul(first, second)
    if alpha != 1:
        product = build.Multiply(product, node.same(alpha, product))
    if beta == 0:
        return product
    return build.Add(x if beta == 1 else build.Multiply(x, node.same(beta, x)), product)
