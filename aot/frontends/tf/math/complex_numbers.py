"""Complex numbers as two tensors, of real and imaginary parts.

Conversions that only move elements or add them are applied to both parts: `by_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import CompositeTensor, NodeContext
from aot.frontends.tf.registry import Conversion, TfNode, mark_complex, takes_complex_numbers, tf
from aot.ir.graph import OutPort
from aot.opset.elementwise.broadcasting import BroadcastMode
from aot.runtime.abi import DType

C = TypeVar("C", bound=Callable[..., Any])
COMPLEX = {"complex64": DType.F32, "complex128": DType.F64}


@dataclass(frozen=True, slots=True)
class Complex(CompositeTensor):
    """A complex tensor; both parts have one type."""

    label: ClassVar[str] = "complex numbers"

    real: OutPort
    imag: OutPort

    @property
    def ports(self) -> tuple[OutPort, ...]:
        return self.real, self.imag

    def with_ports(self, ports: Sequence[OutPort]) -> Complex:
        return Complex(*ports)


Number = OutPort | Complex


def part_type(node: TfNode, name: str) -> DType | None:
    """Return the type of the parts if an attribute names a complex type; None if it does not."""
    return COMPLEX.get(node.text(name, "float32"))


def by_parts(function: C) -> C:
    """Convert real and imaginary parts one after the other, where inputs are complex."""

    @wraps(function)
    def lifted(node: TfNode, *inputs: Any) -> Any:
        if not any(isinstance(x, Complex) for x in inputs):
            return function(node, *inputs)
        real, imag = (function(node, *(_part(x, k) for x in inputs)) for k in ("real", "imag"))
        if isinstance(real, OutPort):
            return Complex(real, imag)
        return tuple(a if a is None else Complex(a, b) for a, b in zip(real, imag, strict=True))

    mark_complex(lifted)
    return cast(C, lifted)


def refuse_complex(node: NodeContext, function: Conversion | None) -> None:
    """UnsupportedError if an input is complex and the conversion is one of real numbers."""
    if function is None or not any(isinstance(x, Complex) for x in node.inputs):
        return
    node.refuse(not takes_complex_numbers(function), "complex numbers are not supported")


def _part(x: Any, name: str) -> Any:
    return getattr(x, name) if isinstance(x, Complex) else x


def parts_of(node: TfNode, x: Number) -> Complex:
    """Return a number as a complex one."""
    if isinstance(x, Complex):
        return x
    return Complex(x, zeros(node, x))


def zeros(node: NodeContext, x: OutPort) -> OutPort:
    """0 in the shape of `x`."""
    return node.build.Broadcast(node.like(0, x), node.dims(x, range(x.type.rank)))


@tf("Complex")
def complex_(node: TfNode, real: OutPort, imag: OutPort) -> Complex:
    """Both parts get the shape that they broadcast to."""
    if real.type.is_static and real.type.dims == imag.type.dims:
        return Complex(real, imag)
    shapes = [node.dims(p, range(p.type.rank)) for p in (imag, real)]
    both = (
        node.build.Broadcast(p, s, mode=BroadcastMode.BIDIRECTIONAL) for p, s in zip((real, imag), shapes, strict=True)
    )
    return Complex(*both)


@tf("Real", "Imag", takes_complex=True)
def part(node: TfNode, x: Number) -> OutPort:
    if isinstance(x, Complex):
        return x.real if node.kind == "Real" else x.imag
    return x if node.kind == "Real" else zeros(node, x)


@tf("Conj", takes_complex=True)
def conj(node: TfNode, x: Number) -> Number:
    return Complex(x.real, node.build.Negative(x.imag)) if isinstance(x, Complex) else x


@tf("ConjugateTranspose", takes_complex=True)
def conjugate_transpose(node: TfNode, x: Number, order: OutPort) -> Number:
    build = node.build
    if isinstance(x, Complex):
        return Complex(build.Transpose(x.real, order), build.Negative(build.Transpose(x.imag, order)))
    return build.Transpose(x, order)


@tf("ComplexAbs", takes_complex=True)
def complex_abs(node: TfNode, number: Number) -> OutPort:
    build, x = node.build, parts_of(node, number)
    return build.Sqrt(build.Add(build.Multiply(x.real, x.real), build.Multiply(x.imag, x.imag)))


@tf("Add", "AddV2", "Sub", takes_complex=True)
def add(node: TfNode, a: Number, b: Number) -> Number:
    step = node.build.Subtract if node.kind == "Sub" else node.build.Add
    if isinstance(a, OutPort) and isinstance(b, OutPort):
        return step(a, b)
    a, b = parts_of(node, a), parts_of(node, b)
    return Complex(step(a.real, b.real), step(a.imag, b.imag))


@tf("Neg")
@by_parts
def neg(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Negative(x)


@tf("Exp", takes_complex=True)
def exp(node: TfNode, x: Number) -> Number:
    """e^(a + bi) = e^a (cos b + i sin b)"""
    if not isinstance(x, Complex):
        return node.build.Exp(x)
    size = node.build.Exp(x.real)
    return Complex(node.build.Multiply(size, node.build.Cos(x.imag)), node.build.Multiply(size, node.build.Sin(x.imag)))


@tf("Mul", takes_complex=True)
def mul(node: TfNode, a: Number, b: Number) -> Number:
    if isinstance(a, OutPort) and isinstance(b, OutPort):
        return node.build.Multiply(a, b)
    return product(node, parts_of(node, a), parts_of(node, b))


def product(node: NodeContext, a: Complex, b: Complex) -> Complex:
    build = node.build
    real = build.Subtract(build.Multiply(a.real, b.real), build.Multiply(a.imag, b.imag))
    return Complex(real, build.Add(build.Multiply(a.real, b.imag), build.Multiply(a.imag, b.real)))


@tf("RealDiv", "Div", takes_complex=True)
def div(node: TfNode, a: Number, b: Number) -> Number:
    """Integers are truncated."""
    build = node.build
    if isinstance(a, OutPort) and isinstance(b, OutPort):
        return build.Divide(a, b, m_pythondiv=False)
    a, b = parts_of(node, a), parts_of(node, b)
    size = build.Add(build.Multiply(b.real, b.real), build.Multiply(b.imag, b.imag))
    found = product(node, a, Complex(b.real, build.Negative(b.imag)))
    return Complex(build.Divide(found.real, size), build.Divide(found.imag, size))


@tf("Cast", takes_complex=True)
def cast_(node: TfNode, x: Number) -> Number:
    """Floats become integers by truncation; complex numbers keep their real part."""
    to = part_type(node, "DstT")
    if to is not None:
        parts = parts_of(node, x)
        return Complex(node.cast(parts.real, to), node.cast(parts.imag, to))
    real = x.real if isinstance(x, Complex) else x
    target = node.dtype("DstT")
    node.refuse(DType.STRING in (real.type.dtype, target), "strings cannot be converted")
    if target is DType.BOOL and real.type.dtype is not DType.BOOL:
        return node.build.NotEqual(real, node.like(0, real))
    return node.cast(real, target)


@tf("OnesLike", "ZerosLike", takes_complex=True)
def filled_like(node: TfNode, x: Number) -> Number:
    real = x.real if isinstance(x, Complex) else x
    node.refuse(real.type.dtype is DType.STRING, "strings have neither zero nor one")
    shape = node.dims(real, range(real.type.rank))
    value = np.array(node.kind == "OnesLike")
    port = node.build.Broadcast(node.like(float(value), real), shape)
    return Complex(port, node.build.Broadcast(node.like(0, real), shape)) if isinstance(x, Complex) else port
