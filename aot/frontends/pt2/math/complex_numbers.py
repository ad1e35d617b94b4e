"""Complex numbers as two tensors, of real and imaginary parts.

Operations that only move elements, or add them, are converted twice: for the real and for the imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from aot.frontends.pt2.files.element_types import COMPLEX, PARTS
from aot.frontends.pt2.math.arithmetic import hypotenuse
from aot.frontends.pt2.math.products import einsum, matmul
from aot.frontends.pt2.registry import Call, Complex, Number, Outputs, aten, aten_complex, conversion_of
from aot.frontends.tf.math.complex_numbers import product, zeros
from aot.ir.graph import OutPort
from runtime.abi import DType
from runtime.errors import UnsupportedError

PART_TYPES: dict[Any, DType] = {COMPLEX[code]: PARTS[code] for code in COMPLEX}
ALIASES = "alias clone contiguous detach lift_fresh_copy alias_copy resolve_conj resolve_neg"
SHAPES = (
    "view _unsafe_view reshape view_as reshape_as flatten.using_ints ravel unflatten.int unsqueeze squeeze squeeze.dim "
    "squeeze.dims expand expand_as repeat tile repeat_interleave.self_int repeat_interleave.self_Tensor as_strided"
)
MOVES = (
    "permute transpose.int swapaxes swapdims t numpy_T mT movedim.int movedim.intlist moveaxis.int select.int "
    "slice.Tensor narrow chunk split.Tensor split.sizes split_with_sizes tensor_split.sections unbind.int flip roll "
    "unfold index_select gather take index.Tensor diagonal diag_embed tril triu constant_pad_nd pad fft_fftshift "
    "fft_ifftshift slice_scatter select_scatter"
)
SUMS = "neg sum sum.dim_IntList mean mean.dim cumsum cat stack hstack vstack add.Tensor sub.Tensor trace where.self"
BY_PARTS = f"{ALIASES} {SHAPES} {MOVES} {SUMS}".split()
MIXED = ("cat", "stack", "hstack", "vstack", "add", "sub", "where")  # whose real operands have imaginary parts of 0
NUMBERS = {"add": "other", "sub": "other", "constant_pad_nd": "value", "pad": "value"}  # arguments that are complex too


def parts_of(node: Call, x: Complex | OutPort | Number) -> Complex:
    """A value as a complex number."""
    if isinstance(x, Complex):
        return x
    port = node.port(x)
    port = node.real(port)
    return Complex(port, zeros(node, port))


def _given(node: Call) -> tuple[DType | None, ...]:
    """Element types of the outputs, those of the parts for complex ones."""
    return tuple(PART_TYPES.get(t, t) for t in node.attrs.get("given", ()))


def _part(node: Call, name: str) -> Sequence[Any]:
    """The outputs of an operation on one part of its complex inputs."""
    mixed = name == "imag" and node.kind.partition(".")[0] in MIXED

    def of(x: Any) -> Any:
        if isinstance(x, Complex):
            return x.real if name == "real" else x.imag
        return zeros(node, x) if mixed and isinstance(x, OutPort) and x.type.dtype is not DType.BOOL else x

    function = conversion_of(node.kind)
    if function is None:
        raise UnsupportedError(f"{node.kind}: there is no conversion for it")
    inputs = [of(x) for x in node.inputs]
    number = NUMBERS.get(node.kind.partition(".")[0])
    arguments = tuple(
        (n, PART_TYPES.get(v, v) if isinstance(v, str) else _part_of_number(v, name) if n == number else v)
        for n, v in node.arguments.items()
    )
    made = replace(node, attrs={**node.attrs, "given": _given(node), "arguments": arguments}, inputs=inputs)
    found = function(made, *inputs)
    return cast("Sequence[Any]", found.values if isinstance(found, Outputs) else (found,))


def _part_of_number(value: Any, name: str) -> Any:
    """The real or imaginary part of an argument if it is a number; of others, which stand for tensors, the argument."""
    if isinstance(value, bool) or not isinstance(value, int | float | complex):
        return value
    return value.real if name == "real" else value.imag


@aten_complex(*(name if "." in name else f"{name}.default" for name in BY_PARTS))
def by_parts(node: Call, *arguments: Any, **named: Any) -> tuple[Complex, ...]:
    return tuple(Complex(a, b) for a, b in zip(_part(node, "real"), _part(node, "imag"), strict=True))


# ---- made of real tensors, and back


@aten("complex.default")
def complex_(node: Call, x: OutPort, imag: OutPort) -> Complex:
    shape = node.build.Add(x, imag)
    sizes = node.dims(shape, range(shape.type.rank))
    return Complex(node.build.Broadcast(x, sizes), node.build.Broadcast(imag, sizes))


@aten("polar.default")
def polar(node: Call, x: OutPort, angle: OutPort) -> Complex:
    build = node.build
    return Complex(build.Multiply(x, build.Cos(angle)), build.Multiply(x, build.Sin(angle)))


@aten("view_as_complex.default")
def view_as_complex(node: Call, x: OutPort) -> Complex:
    """[.., 2]"""
    parts = (node.build.Gather(x, node.scalar(k), node.scalar(-1)) for k in range(2))
    return Complex(*parts)


def paired(node: Call, x: Complex) -> OutPort:
    """[.., 2]"""
    rank = x.real.type.rank
    return node.build.Concat(*(node.build.Unsqueeze(p, node.list([rank])) for p in x.ports), axis=rank)


@aten_complex("view_as_real.default")
def view_as_real(node: Call, x: Complex) -> OutPort:
    return paired(node, x)


@aten_complex("real.default", "imag.default")
def part(node: Call, x: Complex) -> OutPort:
    return x.real if node.kind.startswith("real") else x.imag


@aten("real.default")
def real(node: Call, x: OutPort) -> OutPort:
    return x


@aten_complex("_conj.default", "conj.default", "conj_physical.default", "_conj_physical.default")
def conj(node: Call, x: Complex) -> Complex:
    return Complex(x.real, node.build.Negative(x.imag))


@aten("conj_physical.default", "_conj_physical.default", "conj_physical_copy.default")
def conj_physical(node: Call, x: OutPort) -> OutPort:
    return x


@aten_complex("abs.default")
def magnitude(node: Call, x: Complex) -> OutPort:
    return hypotenuse(node, x.real, x.imag)


@aten_complex("angle.default")
def angle(node: Call, x: Complex) -> OutPort:
    return node.tf("Atan2", x.imag, x.real)


@aten("angle.default")
def angle_of_real(node: Call, x: OutPort) -> OutPort:
    """0 for positive numbers, pi for negative ones."""
    build, x = node.build, node.real(x)
    found = build.Select(build.Less(x, node.like(0, x)), node.like(3.141592653589793, x), node.like(0, x))
    return build.Select(build.IsNaN(x), x, found)


# ---- arithmetic


def _scaled(node: Call, x: Complex, factor: OutPort) -> Complex:
    """A complex number times a real one."""
    factor = node.cast(factor, x.real.type.dtype)
    return Complex(node.build.Multiply(x.real, factor), node.build.Multiply(x.imag, factor))


@aten_complex("mul.Tensor", "mul.Scalar", "multiply.Tensor")
def mul(node: Call, x: Complex | OutPort, other: Complex | OutPort | Number) -> Complex:
    if isinstance(x, Complex) and isinstance(other, Complex):
        return product(node, x, other)
    whole, factor = (x, other) if isinstance(x, Complex) else (other, x)
    assert isinstance(whole, Complex) and not isinstance(factor, Complex)
    return _scaled(node, whole, node.port(factor))


@aten_complex("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(node: Call, x: Complex | OutPort, other: Complex | OutPort | Number) -> Complex:
    build = node.build
    if not isinstance(other, Complex):
        assert isinstance(x, Complex)
        factor = node.same(other, x.real)
        return Complex(build.Divide(x.real, factor), build.Divide(x.imag, factor))
    size = build.Add(build.Multiply(other.real, other.real), build.Multiply(other.imag, other.imag))
    found = product(node, parts_of(node, x), conj(node, other))
    return Complex(build.Divide(found.real, size), build.Divide(found.imag, size))


@aten_complex("reciprocal.default")
def reciprocal(node: Call, x: Complex) -> Complex:
    return div(node, node.like(1, x.real), x)


@aten_complex("square.default")
def square(node: Call, x: Complex) -> Complex:
    return product(node, x, x)


@aten_complex("pow.Tensor_Scalar")
def power(node: Call, x: Complex, exponent: Number) -> Complex:
    node.refuse(exponent != 2, f"a complex number to the power of 2, got {exponent}")
    return product(node, x, x)


@aten_complex("exp.default")
def exp(node: Call, x: Complex) -> Complex:
    """e^(a + bi) = e^a (cos b + i sin b)"""
    return polar(node, node.build.Exp(x.real), x.imag)


@aten_complex("eq.Tensor", "ne.Tensor")
def equal(node: Call, x: Complex | OutPort, other: Complex | OutPort) -> OutPort:
    build, a, b = node.build, parts_of(node, x), parts_of(node, other)
    same = build.LogicalAnd(build.Equal(a.real, b.real), build.Equal(a.imag, b.imag))
    return same if node.kind.startswith("eq") else build.LogicalNot(same)


@aten_complex("mm.default", "bmm.default", "matmul.default", "mv.default")
def complex_matmul(
    node: Call,
    x: Complex | OutPort,
    mat2: Complex | OutPort | None = None,
    other: Complex | OutPort | None = None,
    vec: Complex | OutPort | None = None,
) -> Complex:
    second = next(p for p in (mat2, other, vec) if p is not None)
    a, b = parts_of(node, x), parts_of(node, second)
    return _bilinear(node, a, b, partial(matmul, node))


@aten_complex("einsum.default")
def complex_einsum(
    node: Call, equation: str, tensors: Sequence[Complex | OutPort], path: Sequence[int] | None = None
) -> Complex:
    node.refuse(len(tensors) != 2, "sums of products of two complex tensors are supported")
    a, b = (parts_of(node, t) for t in tensors)

    def times(p: OutPort, q: OutPort) -> OutPort:
        return einsum(node, equation, (p, q))

    return _bilinear(node, a, b, times)


def _bilinear(node: Call, a: Complex, b: Complex, times: Callable[[OutPort, OutPort], OutPort]) -> Complex:
    """A product that is linear in both operands, by those of their parts."""
    build = node.build
    real = build.Subtract(times(a.real, b.real), times(a.imag, b.imag))
    return Complex(real, build.Add(times(a.real, b.imag), times(a.imag, b.real)))


@aten_complex("ones_like.default", "zeros_like.default", "empty_like.default")
def complex_like(node: Call, x: Complex, **rest: Any) -> Complex:
    value = node.like(1 if node.kind.startswith("ones") else 0, x.real)
    blank = zeros(node, x.real)
    return Complex(node.build.Add(blank, value), blank)


@aten_complex("_to_copy.default", "to.dtype")
def converted(node: Call, x: Complex, **rest: Any) -> Complex | OutPort:
    """Another complex type, or the real part."""
    wanted = node.attrs["given"][0]
    if wanted not in PART_TYPES:
        return x.real
    return Complex(*(node.cast(p, PART_TYPES[wanted]) for p in x.ports))


@aten_complex("sym_size.int")
def sym_size(node: Call, x: Complex, dim: int) -> OutPort:
    return node.size(x.real, node.axis(dim, x.real.type.rank))


@aten("is_complex.default")
def is_complex(node: Call, x: OutPort) -> OutPort:
    return node.build.const(False, DType.BOOL)
