"""Complex numbers as two tensors, of real and imaginary parts.

Operations that only move elements, or add them, are converted twice: for the real and for the imaginary parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from aot.frontends.conversion.node_context import CompositeTensor, Value
from aot.frontends.pt2.files.element_types import COMPLEX, PARTS
from aot.frontends.pt2.math.arithmetic import hypotenuse
from aot.frontends.pt2.registry import AtenNode, Complex, Number, Outputs, Symbol, aten, aten_complex, conversion_of
from aot.frontends.tf.math.complex_numbers import product, zeros
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError

PART_TYPES: dict[Any, DType] = {COMPLEX[code]: PARTS[code] for code in COMPLEX}
ALIASES = (
    "alias clone contiguous detach lift lift_fresh lift_fresh_copy alias_copy detach_copy resolve_conj resolve_neg "
    "positive"
)
SHAPES = (
    "view view_copy _unsafe_view _reshape_alias reshape view_as reshape_as flatten.using_ints ravel unflatten.int "
    "unsqueeze unsqueeze_copy squeeze squeeze.dim squeeze.dims squeeze_copy squeeze_copy.dim squeeze_copy.dims expand "
    "expand_as expand_copy broadcast_to broadcast_tensors meshgrid meshgrid.indexing repeat tile "
    "repeat_interleave.self_int repeat_interleave.self_Tensor as_strided as_strided_copy atleast_1d atleast_2d "
    "atleast_3d resize pixel_shuffle pixel_unshuffle channel_shuffle"
)
MOVES = (
    "permute permute_copy transpose.int transpose_copy.int swapaxes swapdims t t_copy numpy_T mT movedim.int "
    "movedim.intlist moveaxis.int moveaxis.intlist select.int select_copy.int slice.Tensor slice_copy.Tensor narrow "
    "narrow_copy chunk unsafe_chunk split.Tensor split.sizes split_copy.Tensor split_with_sizes "
    "split_with_sizes_copy unsafe_split.Tensor unsafe_split_with_sizes tensor_split.sections tensor_split.indices "
    "hsplit.int hsplit.array vsplit.int vsplit.array dsplit.int dsplit.array unbind.int unbind_copy.int flip fliplr "
    "flipud rot90 roll unfold unfold_copy im2col col2im index_select gather take take_along_dim index.Tensor "
    "_unsafe_index.Tensor masked_select diagonal diagonal_copy linalg_diagonal diag diagflat diag_embed tril triu "
    "fft_fftshift fft_ifftshift slice_scatter select_scatter diagonal_scatter index_put _unsafe_index_put index_copy "
    "index_add index_fill.int_Scalar index_fill.int_Tensor scatter.src scatter.value scatter_add put masked_scatter "
    "masked_fill.Scalar masked_fill.Tensor constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d "
    "replication_pad1d replication_pad2d replication_pad3d cartesian_prod combinations block_diag"
)
SUMS = (
    "neg sum sum.dim_IntList sum_to_size mean mean.dim cumsum cat concat concatenate stack hstack vstack dstack "
    "column_stack add.Tensor sub.Tensor subtract.Tensor rsub.Tensor rsub.Scalar trace diff lerp.Scalar trapezoid.dx "
    "trapz.dx where.self"
)
FILLED = "full full_like new_full fill.Scalar scalar_tensor"
BLANK = "zeros zeros_like new_zeros zero empty.memory_format empty_like new_empty empty_strided new_empty_strided"
RANGES = "linspace linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor"
BY_PARTS = f"{ALIASES} {SHAPES} {MOVES} {SUMS} {FILLED} {BLANK} {RANGES}".split()
# Operations whose real operands have imaginary parts of 0.
MIXED = (
    "cat concat concatenate stack hstack vstack dstack column_stack add sub subtract rsub where masked_fill diff "
    "block_diag cartesian_prod linspace"
).split()
# Numbers that have real and imaginary parts, too.
NUMBERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "subtract", "rsub"), ("other",)),
    **dict.fromkeys(("constant_pad_nd", "pad", "masked_fill", "index_fill", "scatter", "fill"), ("value",)),
    **dict.fromkeys(("full", "full_like", "new_full"), ("fill_value",)),
    "linspace": ("start", "end"),
    "scalar_tensor": ("s",),
}
ONES = "ones ones_like new_ones eye eye.m arange arange.start arange.start_step"


Scalar = Number | complex
Operand = Complex | OutPort | Scalar


def parts_of(node: AtenNode, x: Operand | Value) -> Complex:
    """Return a value as a complex number."""
    if isinstance(x, Complex):
        return x
    if isinstance(x, complex):
        return Complex(node.port(x.real), node.port(x.imag))
    if isinstance(x, (CompositeTensor, tuple)) or x is None:
        raise ModelError(f"{node.kind}: operands must be tensors and numbers, got another value")
    port = node.real(node.port(x))
    return Complex(port, zeros(node, port))


def paired_up(node: AtenNode, *values: Operand) -> list[Complex]:
    """Return values as complex numbers of the type that the widest of their parts has."""
    parts = [parts_of(node, x) for x in values]
    dtype = max((p.real.type.dtype for p, x in zip(parts, values, strict=True) if _counts(x)), key=lambda t: t.bits)
    return [Complex(node.cast(p.real, dtype), node.cast(p.imag, dtype)) for p in parts]


def _counts(x: Operand) -> bool:
    """True for tensors, the types of which count; numbers take the type of the tensors beside them."""
    return isinstance(x, Complex | OutPort)


def _output_types(node: AtenNode) -> tuple[DType | None, ...]:
    """Return element types of the outputs, those of the parts for complex ones."""
    return tuple(PART_TYPES.get(t, t) for t in node.attrs.get("given", ()))


def _part(node: AtenNode, name: str) -> Sequence[Any]:
    """Return the outputs of an operation on one part of its complex inputs."""
    mixed = node.kind.partition(".")[0] in MIXED or not any(isinstance(x, Complex) for x in node.inputs)

    def of(x: Any) -> Any:
        if isinstance(x, Complex):
            return x.real if name == "real" else x.imag
        blank = mixed and name == "imag" and isinstance(x, OutPort) and x.type.dtype is not DType.BOOL
        return zeros(node, x) if blank else x

    split = NUMBERS.get(node.kind.partition(".")[0], ())
    numbers = {n: _part_of_number(v, name) for n, v in node.arguments.items() if n in split}
    return on_real(node, [of(x) for x in node.inputs], numbers)


def on_real(node: AtenNode, inputs: Sequence[Any], named: Mapping[str, Any] | None = None) -> Sequence[Any]:
    """Return the outputs of a node's operation of real numbers, on real inputs in place of its own.

    `named`: arguments in place of the node's.
    """
    function = conversion_of(node.kind)
    if function is None:
        raise UnsupportedError(f"{node.kind}: there is no conversion for it")
    arguments = tuple(
        (n, PART_TYPES.get(v, v) if isinstance(v, str) else v) for n, v in {**node.arguments, **(named or {})}.items()
    )
    made = replace(
        node, attrs={**node.attrs, "given": _output_types(node), "arguments": arguments}, inputs=list(inputs)
    )
    found = function(made, *inputs)
    if isinstance(found, Outputs):
        found = found.values
    return cast("Sequence[Any]", found if isinstance(found, Sequence) else (found,))


def _part_of_number(value: Any, name: str) -> Any:
    """Return the real or imaginary part of an argument if it is a number; others stand for tensors, and stay."""
    if not isinstance(value, int | float | complex):
        return value
    return value.real if name == "real" else value.imag


def kinds(names: str | Sequence[str]) -> list[str]:
    """Return the kinds of operations; `default` is the overload of names that have none."""
    listed = names.split() if isinstance(names, str) else names
    return [name if "." in name else f"{name}.default" for name in listed]


@aten_complex(*kinds(BY_PARTS))
def by_parts(node: AtenNode, *arguments: Any, **named: Any) -> tuple[Complex, ...]:
    return tuple(Complex(a, b) for a, b in zip(_part(node, "real"), _part(node, "imag"), strict=True))


@aten_complex(*kinds(ONES))
def of_real_numbers(node: AtenNode, *arguments: Any, **named: Any) -> Complex:
    """Complex numbers with imaginary parts 0."""
    inputs = [x.real if isinstance(x, Complex) else x for x in node.inputs]
    (found,) = on_real(node, inputs)
    return Complex(found, zeros(node, found))


# ---- made of real tensors, and back


@aten("complex.default")
def complex_(node: AtenNode, x: OutPort, imag: OutPort) -> Complex:
    shape = node.build.Add(x, imag)
    sizes = node.dims(shape, range(shape.type.rank))
    return Complex(node.build.Broadcast(x, sizes), node.build.Broadcast(imag, sizes))


@aten("polar.default")
def polar(node: AtenNode, x: OutPort, angle: OutPort) -> Complex:
    build = node.build
    return Complex(build.Multiply(x, build.Cos(angle)), build.Multiply(x, build.Sin(angle)))


@aten("view_as_complex.default")
def view_as_complex(node: AtenNode, x: OutPort) -> Complex:
    """[.., 2]"""
    parts = (node.build.Gather(x, node.scalar(k), node.scalar(-1)) for k in range(2))
    return Complex(*parts)


def paired(node: AtenNode, x: Complex) -> OutPort:
    """[.., 2]"""
    rank = x.real.type.rank
    return node.build.Concat(*(node.build.Unsqueeze(p, node.list([rank])) for p in x.ports), axis=rank)


@aten_complex("view_as_real.default")
def view_as_real(node: AtenNode, x: Complex) -> OutPort:
    return paired(node, x)


@aten_complex("real.default", "imag.default")
def part(node: AtenNode, x: Complex) -> OutPort:
    return x.real if node.kind.startswith("real") else x.imag


@aten("real.default")
def real(node: AtenNode, x: OutPort) -> OutPort:
    return x


@aten_complex("_conj.default", "conj.default", "conj_physical.default", "_conj_physical.default")
def conj(node: AtenNode, x: Complex) -> Complex:
    return Complex(x.real, node.build.Negative(x.imag))


@aten("conj_physical.default", "_conj_physical.default", "conj_physical_copy.default")
def conj_physical(node: AtenNode, x: OutPort) -> OutPort:
    return x


@aten_complex("abs.default")
def magnitude(node: AtenNode, x: Complex) -> OutPort:
    return hypotenuse(node, x.real, x.imag)


@aten_complex("angle.default")
def angle(node: AtenNode, x: Complex) -> OutPort:
    return node.tf("Atan2", x.imag, x.real)


@aten("angle.default")
def angle_of_real(node: AtenNode, x: OutPort) -> OutPort:
    """0 for positive numbers, pi for negative ones."""
    build, x = node.build, node.real(x)
    port = build.Select(build.Less(x, node.like(0, x)), node.like(3.141592653589793, x), node.like(0, x))
    return build.Select(build.IsNaN(x), x, port)


# ---- arithmetic


def scaled(node: AtenNode, x: Complex, factor: OutPort | Number) -> Complex:
    """Return a complex number times a real one."""
    factor = node.same(factor, x.real)
    return Complex(node.build.Multiply(x.real, factor), node.build.Multiply(x.imag, factor))


def added(node: AtenNode, x: Complex, y: Complex) -> Complex:
    return Complex(node.build.Add(x.real, y.real), node.build.Add(x.imag, y.imag))


def times(node: AtenNode, x: Operand, y: Operand) -> Complex:
    """Return the product of two numbers; at least one is complex."""
    if isinstance(x, Complex) and isinstance(y, OutPort | int | float | Symbol):
        return scaled(node, x, y)
    if isinstance(y, Complex) and isinstance(x, OutPort | int | float | Symbol):
        return scaled(node, y, x)
    return product(node, *paired_up(node, x, y))


def quotient(node: AtenNode, x: Operand, y: Operand) -> Complex:
    """Return the quotient of two numbers; one is complex. The larger part of `y` is divided by first."""
    build = node.build
    if isinstance(x, Complex) and isinstance(y, OutPort | int | float | Symbol):
        divisor = node.same(y, x.real)
        return Complex(build.Divide(x.real, divisor), build.Divide(x.imag, divisor))
    a, b = paired_up(node, x, y)
    size = build.Maximum(build.Abs(b.real), build.Abs(b.imag))
    size = build.Select(build.Equal(size, node.like(0, size)), node.like(1, size), size)
    b = Complex(build.Divide(b.real, size), build.Divide(b.imag, size))
    square = build.Multiply(build.Add(build.Multiply(b.real, b.real), build.Multiply(b.imag, b.imag)), size)
    found = product(node, a, conj(node, b))
    return Complex(build.Divide(found.real, square), build.Divide(found.imag, square))


@aten_complex("mul.Tensor", "mul.Scalar", "multiply.Tensor")
def mul(node: AtenNode, x: Operand, other: Operand) -> Complex:
    return times(node, x, other)


@aten_complex("div.Tensor", "div.Scalar", "true_divide.Tensor", "divide.Tensor")
def div(node: AtenNode, x: Operand, other: Operand) -> Complex:
    return quotient(node, x, other)


@aten_complex("reciprocal.default")
def reciprocal(node: AtenNode, x: Complex) -> Complex:
    return quotient(node, 1, x)


@aten_complex("square.default")
def square(node: AtenNode, x: Complex) -> Complex:
    return product(node, x, x)


@aten_complex("eq.Tensor", "ne.Tensor", "eq.Scalar", "ne.Scalar")
def equal(node: AtenNode, x: Operand, other: Operand) -> OutPort:
    build, (a, b) = node.build, paired_up(node, x, other)
    same = build.LogicalAnd(build.Equal(a.real, b.real), build.Equal(a.imag, b.imag))
    return same if node.kind.startswith("eq") else build.LogicalNot(same)


@aten_complex(*kinds("_to_copy to.dtype to.dtype_layout to.other to.device to.prim_Device type_as copy"))
def converted(node: AtenNode, x: Complex | OutPort, *rest: Any, **named: Any) -> Complex | OutPort:
    """Another type: complex numbers keep their parts, real ones are the real parts of complex ones."""
    if node.kind.startswith("copy"):
        x = named["src"]
    dtype = node.attrs["given"][0]
    if dtype in PART_TYPES:
        return Complex(*(node.cast(p, PART_TYPES[dtype]) for p in parts_of(node, x).ports))
    return x.real if isinstance(x, Complex) else x


@aten_complex("sym_size.int")
def sym_size(node: AtenNode, x: Complex, dim: int) -> OutPort:
    return node.size(x.real, node.axis(dim, x.real.type.rank))


@aten("is_complex.default")
def is_complex(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.const(False, DType.BOOL)
