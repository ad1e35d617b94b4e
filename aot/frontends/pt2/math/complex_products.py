"""Products of complex tensors: operations that are linear in two operands are computed for their parts.

(a + bi) (c + di) = (ac - bd) + (ad + bc)i, for each product that there is: of matrices, convolutions, cross products
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aot.frontends.pt2.math.complex_numbers import (
    Operand,
    Scalar,
    added,
    conj,
    kinds,
    on_real,
    parts_of,
    quotient,
    times,
)
from aot.frontends.pt2.math.products import einsum
from aot.frontends.pt2.math.products import matmul as real_matmul
from aot.frontends.pt2.registry import Argument, AtenNode, Complex, aten_complex
from aot.ir.graph import OutPort

PRODUCTS = (
    "mm bmm mv dot matmul linalg_matmul inner outer ger kron tensordot linear cross linalg_cross conv1d conv1d.padding "
    "conv2d conv2d.padding conv3d conv3d.padding conv_transpose1d conv_transpose2d.input conv_transpose3d.input "
    "convolution"
)
SCALED_SUMS = "addmm addmv addbmm baddbmm"


def of_parts(node: AtenNode, a: Complex, b: Complex, multiply: Callable[[OutPort, OutPort], OutPort]) -> Complex:
    """Return a product that is linear in both operands."""
    build = node.build
    real = build.Subtract(multiply(a.real, b.real), multiply(a.imag, b.imag))
    return Complex(real, build.Add(multiply(a.real, b.imag), multiply(a.imag, b.real)))


@aten_complex(*kinds(PRODUCTS))
def bilinear(node: AtenNode, *arguments: Any, **named: Any) -> Complex:
    """The first two inputs are multiplied; a third one is added along the axis of channels or features."""
    a, b, *bias = (parts_of(node, x) for x in node.inputs)
    without = {n: None for n, v in node.arguments.items() if isinstance(v, Argument) and v.index > 1}

    def run(p: OutPort, q: OutPort, *added: OutPort) -> OutPort:
        (result,) = on_real(node, [p, q, *added], {} if added else without)
        return result

    build, reals, imags = node.build, [x.real for x in bias], [x.imag for x in bias]
    real = build.Subtract(run(a.real, b.real, *reals), run(a.imag, b.imag))
    return Complex(real, build.Add(run(a.real, b.imag, *imags), run(a.imag, b.real)))


@aten_complex("vdot.default", "linalg_vecdot.default")
def of_conjugate(node: AtenNode, x: Operand, *arguments: Any, **named: Any) -> Complex:
    first, second = (parts_of(node, v) for v in node.inputs)

    def run(p: OutPort, q: OutPort) -> OutPort:
        (result,) = on_real(node, [p, q])
        return result

    return of_parts(node, conj(node, first), second, run)


@aten_complex("einsum.default")
def complex_einsum(
    node: AtenNode, equation: str, tensors: Sequence[Complex | OutPort], path: Sequence[int] | None = None
) -> Complex:
    node.refuse(len(tensors) != 2, "sums of products of two complex tensors are supported")
    a, b = (parts_of(node, t) for t in tensors)

    def run(p: OutPort, q: OutPort) -> OutPort:
        return einsum(node, equation, (p, q))

    return of_parts(node, a, b, run)


@aten_complex(*kinds(SCALED_SUMS), "addr.default")
def scaled_sum(
    node: AtenNode, x: Operand, *factors: Operand, beta: Scalar = 1, alpha: Scalar = 1, **named: Any
) -> Complex:
    """beta x + alpha a b; beta 0: `x` counts for nothing."""
    build = node.build
    _, a, b = (parts_of(node, v) for v in node.inputs)

    def run(p: OutPort, q: OutPort) -> OutPort:
        if node.kind.startswith("addr"):
            return build.Multiply(build.Unsqueeze(p, node.list([1])), q)
        found = real_matmul(node, p, q)
        return build.ReduceSum(found, node.list([0])) if node.kind.startswith("addbmm") else found

    found = of_parts(node, a, b, run)
    found = found if alpha == 1 else times(node, alpha, found)
    return found if beta == 0 else added(node, parts_of(node, x) if beta == 1 else times(node, beta, x), found)


@aten_complex("addcmul.default", "addcdiv.default")
def addcmul(node: AtenNode, x: Operand, tensor1: Operand, tensor2: Operand, value: Scalar = 1) -> Complex:
    part = (times if node.kind.startswith("addcmul") else quotient)(node, tensor1, tensor2)
    return added(node, parts_of(node, x), part if value == 1 else times(node, value, part))
