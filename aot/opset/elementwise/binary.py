"""Arithmetic of two numbers, element by element."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr, prim, select
from aot.ir.op import Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, Shape, TensorType
from aot.opset.base.families import Elementwise, broadcast, pdpd_shape, rounded_once, stretched
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

START_AXIS = "auto_broadcast.auto_broadcast_axis"  # attribute: axis at which the second input's dimensions begin


class AutoBroadcast(StrEnum):
    """Rule of broadcasting."""

    NONE = "none"  # equal shapes
    EXPLICIT = "explicit"  # old spelling of `none`
    NUMPY = "numpy"  # shapes are aligned at the end, 1 stretches
    PDPD = "pdpd"  # the second shape is a run of the first's dimensions

    def shape(self, a: Shape, b: Shape, start: int, what: str) -> Shape:
        """Return the result's shape or raise ShapeError. `start`: first axis of PDPD's run; -1: aligned at the end."""
        if self is AutoBroadcast.NUMPY:
            return broadcast(a, b, what=what)
        if self is AutoBroadcast.PDPD:
            return self._same(a, broadcast(a, self.aligned(a, b, start), what=what), what)
        return self._same(a, b, what)

    def aligned(self, a: Shape, b: Shape, start: int) -> Shape:
        """Return `b` with the ones that NumPy's rule needs to align it with `a`."""
        return pdpd_shape(a, b, start) if self is AutoBroadcast.PDPD and len(b) <= len(a) else b

    def fit(self, x: Array, shape: Shape, start: int) -> Array:
        """Reshape `x` so that NumPy's rule broadcasts it to `shape`; raise ShapeError if it does not fit."""
        if self is AutoBroadcast.NUMPY:
            return x
        if self.shape(shape, x.shape, start, "broadcast") != shape:
            raise ShapeError(f"broadcast: {list(x.shape)} must fit in {list(shape)}")
        return x.reshape([int(n) for n in self.aligned(shape, x.shape, start) if isinstance(n, int)])

    @staticmethod
    def _same(a: Shape, b: Shape, what: str) -> Shape:
        differ = any(isinstance(m, int) and isinstance(n, int) and m != n for m, n in zip(a, b, strict=False))
        if len(a) != len(b) or differ:
            raise ShapeError(f"{what}: shapes must be equal without broadcasting, got {list(a)} and {list(b)}")
        return tuple(m if isinstance(m, int) else n for m, n in zip(a, b, strict=True))


def read_aligned(x: Input, shape: Shape, index: tuple[Expr, ...]) -> Expr:
    """Return the element at `index` of `x` read as `shape`, which has the dimensions of `x` and further ones."""
    own = iter(index[len(index) - len(shape) :])
    dims = [i for i, n in zip(own, shape, strict=True) if n != 1]
    values = iter(dims)
    return x(*(0 if n == 1 else stretched(next(values), n) for n in x.shape))


PDPD_ALIGNED = ("auto_broadcast", AutoBroadcast.PDPD)  # other rules of broadcasting have no axis in files


@dataclass(frozen=True)
class Binary(Elementwise):
    """`fn` of an element of `a` and one of `b`."""

    elements = Elements.NUMBER

    auto_broadcast: AutoBroadcast = AutoBroadcast.NUMPY
    start_axis: int = attr(default=-1, xml=START_AXIS, only=PDPD_ALIGNED)

    fn: ClassVar[str]
    numpy: ClassVar[Callable[..., Any]]

    def infer(self, a: Operand, b: Operand) -> TensorType:
        if a.dtype is not b.dtype:
            raise ShapeError(f"{self.type}: element types must be equal, got {a.dtype.value} and {b.dtype.value}")
        return TensorType(self.result(a.dtype), self.auto_broadcast.shape(a.shape, b.shape, self.start_axis, self.type))

    def result(self, dtype: DType) -> DType:
        """Return the element type of the output."""
        return dtype

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return prim(self.fn, a, b)

    def compute(self, out: TensorType, a: Input, b: Input) -> Element:
        aligned = self.auto_broadcast.aligned(a.shape, b.shape, self.start_axis)
        return lambda *index: self.scalar(read_aligned(a, a.shape, index), read_aligned(b, aligned, index))

    def reference(self, a: Array, b: Array) -> Array:
        return rounded_once(self.numpy, a, self.auto_broadcast.fit(b, a.shape, self.start_axis))


@op("opset1")
class Add(Binary):
    """a + b"""

    fn, numpy, symbolic = "add", np.add, True


@op("opset1")
class Subtract(Binary):
    """a - b"""

    fn, numpy, symbolic = "sub", np.subtract, True


@op("opset1")
class Multiply(Binary):
    """a * b"""

    fn, numpy, symbolic = "mul", np.multiply, True


@op("opset1")
class Divide(Binary):
    """a / b; integers round down, or towards zero if `m_pythondiv` is false."""

    m_pythondiv: bool = True

    symbolic = True

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return prim("div" if a.dtype.is_float or not self.m_pythondiv else "floordiv", a, b)

    def numpy(self, a: Array, b: Array) -> Array:  # type: ignore[override]
        if a.dtype.kind not in "iu":
            return a / b
        return np.floor_divide(a if self.m_pythondiv else a - np.fmod(a, b), b)


@op("opset1")
class Maximum(Binary):
    """The larger one; NaN if either is."""

    fn, numpy, symbolic = "max", np.maximum, True


@op("opset1")
class Minimum(Binary):
    """The smaller one; NaN if either is."""

    fn, numpy, symbolic = "min", np.minimum, True


@op("opset1")
class Mod(Binary):
    """Remainder of the division that rounds towards zero; it has the sign of `a`."""

    fn, numpy = "rem", np.fmod

    def has_jumps(self, result: DType) -> bool:
        return True


@op("opset1")
class FloorMod(Binary):
    """Remainder of the division that rounds down; it has the sign of `b`."""

    symbolic = True
    numpy = np.mod

    def has_jumps(self, result: DType) -> bool:
        return True

    def scalar(self, a: Expr, b: Expr) -> Expr:
        if not a.dtype.is_float:
            return prim("mod", a, b)
        rest = prim("rem", a, b)
        wrong_side = prim("ne", prim("lt", rest, 0.0), prim("lt", b, 0.0))
        return select(prim("and", prim("ne", rest, 0.0), wrong_side), rest + b, rest)


@op("opset1")
class SquaredDifference(Binary):
    """(a - b)^2"""

    def scalar(self, a: Expr, b: Expr) -> Expr:
        gap = a - b
        return gap * gap

    def numpy(self, a: Array, b: Array) -> Array:  # type: ignore[override]
        return np.square(a - b)


@op("opset1")
class Power(Binary):
    """a^b; integers wrap, and negative exponents give the quotient 1 / a^-b rounded towards zero."""

    def scalar(self, a: Expr, b: Expr) -> Expr:
        if a.dtype.is_float or not a.dtype.is_signed:
            return prim("pow", a, b)
        one, zero = Const(1, a.dtype), Const(0, a.dtype)
        parity = one - (prim("and", b, 1) * 2)
        inverse = select(prim("eq", a, 1), one, select(prim("eq", a, -1), parity, zero))
        return select(prim("lt", b, 0), inverse, prim("pow", a, prim("max", b, 0)))

    def numpy(self, a: Array, b: Array) -> Array:  # type: ignore[override]
        if a.dtype.kind not in "iu":
            return np.power(a, b)
        units = np.where(a == 1, 1, np.where(a == np.array(-1).astype(a.dtype), 1 - 2 * (b & 1), 0))
        return np.where(b < 0, units, np.power(a, np.maximum(b, 0)))
