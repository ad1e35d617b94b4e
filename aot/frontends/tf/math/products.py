"""Products of matrices, and matrices of their own."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import Complex, Number, parts_of
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tf("MatMul", "SparseMatMul", takes_complex=True)
def matmul(node: TfNode, a: Number, b: Number) -> Number:
    return multiplied(node, a, b, node.flag("transpose_a"), node.flag("transpose_b"))


@tf("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", takes_complex=True)
def batch_matmul(node: TfNode, a: Number, b: Number) -> Number:
    """V3 may declare another type than its operands have; sums are made in that type."""
    if node.kind == "BatchMatMulV3" and isinstance(a, OutPort) and isinstance(b, OutPort):
        wide = node.dtype("Tout", a.type.dtype)
        a, b = node.cast(a, wide), node.cast(b, wide)
    return multiplied(node, a, b, node.flag("adj_x"), node.flag("adj_y"), conjugate=True)


def multiplied(node: TfNode, a: Number, b: Number, turn_a: bool, turn_b: bool, conjugate: bool = False) -> Number:
    build = node.build

    def times(x: OutPort, y: OutPort) -> OutPort:
        return build.MatMul(x, y, transpose_a=turn_a, transpose_b=turn_b)

    if isinstance(a, OutPort) and isinstance(b, OutPort):
        return times(a, b)
    a, b = parts_of(node, a), parts_of(node, b)
    a = Complex(a.real, build.Negative(a.imag)) if turn_a and conjugate else a
    b = Complex(b.real, build.Negative(b.imag)) if turn_b and conjugate else b
    real = build.Subtract(times(a.real, b.real), times(a.imag, b.imag))
    return Complex(real, build.Add(times(a.real, b.imag), times(a.imag, b.real)))


@tf("Einsum")
def einsum(node: TfNode, *xs: OutPort) -> OutPort:
    return node.build.Einsum(*xs, equation=node.text("equation").replace(" ", ""))


@tf("MatrixInverse", "BatchMatrixInverse")
def inverse(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Inverse(x, adjoint=node.flag("adjoint"))


@tf("Cholesky")
def cholesky(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Cholesky(x)


@tf("MatrixDeterminant", "BatchMatrixDeterminant")
def determinant(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Det(x)


@tf("MatrixSolve", "BatchMatrixSolve")
def solve(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    return node.build.MatMul(node.build.Inverse(a, adjoint=node.flag("adjoint")), b)


@tf("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular_solve(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    """By the inverse of the lower or of the upper triangle."""
    build, zero = node.build, node.scalar(0)
    rows, columns = (
        build.Range(zero, node.size(a, k), node.scalar(1), output_type=DType.I64)
        for k in (a.type.rank - 2, a.type.rank - 1)
    )
    gap = build.Subtract(build.Unsqueeze(rows, node.list([1])), columns)
    inside = build.GreaterEqual(gap, zero) if node.flag("lower") else build.LessEqual(gap, zero)
    triangle = build.Select(inside, a, node.like(0, a))
    return build.MatMul(build.Inverse(triangle, adjoint=node.flag("adjoint")), b)


@tf("Cross")
def cross(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    """The vector product of the last axis, of three elements."""
    build, last = node.build, node.scalar(a.type.rank - 1)

    def turned(x: OutPort, *order: int) -> OutPort:
        return build.Gather(x, node.list(order), last)

    first = build.Multiply(turned(a, 1, 2, 0), turned(b, 2, 0, 1))
    return build.Subtract(first, build.Multiply(turned(a, 2, 0, 1), turned(b, 1, 2, 0)))
