"""Products of matrices."""

from __future__ import annotations

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.errors import ModelError


@onnx("MatMul")
def matmul(node: OnnxNode, a: OutPort, b: OutPort) -> OutPort:
    return node.build.MatMul(a, b)


@onnx("Gemm")
def gemm(node: OnnxNode, a: OutPort, b: OutPort, c: OutPort | None = None) -> OutPort:
    """alpha a b + beta c"""
    if a.type.rank != 2 or b.type.rank != 2:
        raise ModelError(f"Gemm: inputs must have rank 2, got {a.type} and {b.type}")
    build, alpha, beta = node.build, node.number("alpha", 1.0), node.number("beta", 1.0)
    product = build.MatMul(a, b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    if alpha != 1:
        product = build.Multiply(product, node.like(alpha, product))
    if c is None or beta == 0:
        return product
    return build.Add(product, c if beta == 1 else build.Multiply(c, node.like(beta, c)))


@onnx("Det")
def det(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.Det(x)


@onnx("Einsum")
def einsum(node: OnnxNode, *xs: OutPort, equation: str) -> OutPort:
    return node.build.Einsum(*xs, equation=equation.replace(" ", ""))
