"""Products of matrices and vectors."""

from __future__ import annotations

from aot.frontends.conversion.node_context import StaticSequence
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort


@paddle("matmul")
def matmul(
    node: PaddleNode,
    x: OutPort,
    y: OutPort,
    *,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
) -> OutPort:
    product = node.build.MatMul(x, y, transpose_a=transpose_x, transpose_b=transpose_y)
    return product if alpha == 1 else node.build.Multiply(product, node.like(alpha, product))


@paddle("matrix_product")
def matrix_product(
    node: PaddleNode, x: OutPort, y: OutPort, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1
) -> OutPort:
    """Multiply matrices that the first axes and the others are flattened to: `mul` of version 2."""
    build = node.build
    node.refuse(y.type.rank != 2 or y_num_col_dims != 1, f"weights are a matrix, got {y.type}")
    flat = x
    if x_num_col_dims != x.type.rank - 1:
        flat = build.Reshape(x, node.list([*[0] * x_num_col_dims, -1]), special_zero=True)
    return build.MatMul(flat, y)


@paddle("bmm")
def bmm(node: PaddleNode, x: OutPort, y: OutPort) -> OutPort:
    return node.build.MatMul(x, y)


@paddle("addmm")
def addmm(node: PaddleNode, c: OutPort, x: OutPort, y: OutPort, *, alpha: float = 1.0, beta: float = 1.0) -> OutPort:
    """Return beta c + alpha x y."""
    build, product = node.build, node.build.MatMul(x, y)
    product = product if alpha == 1 else build.Multiply(product, node.like(alpha, product))
    return build.Add(c if beta == 1 else build.Multiply(c, node.like(beta, c)), product)


@paddle("dot")
def dot(node: PaddleNode, x: OutPort, y: OutPort) -> OutPort:
    return node.build.ReduceSum(node.build.Multiply(x, y), node.list([x.type.rank - 1]))


@paddle("mv")
def mv(node: PaddleNode, x: OutPort, vector: OutPort) -> OutPort:
    return node.build.MatMul(x, vector)


@paddle("einsum")
def einsum(node: PaddleNode, xs: OutPort | StaticSequence, *, equation: str) -> OutPort:
    return node.onnx("Einsum", *(xs if isinstance(xs, tuple) else (xs,)), equation=equation)
