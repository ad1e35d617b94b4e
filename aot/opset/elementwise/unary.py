"""Arithmetic of one number, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr, cast, prim, select
from aot.ir.op import Elements
from aot.ir.registry import op
from aot.ir.types import Array, dtype_of
from aot.opset.base.families import Elementwise, rounded_once
from aot.opset.elementwise.conversion import converted
from aot.runtime.abi import DType

ArrayFunction = Callable[..., Any]


@dataclass(frozen=True)
class Unary(Elementwise):
    """`fn` of each element."""

    fn: ClassVar[str]
    numpy: ClassVar[ArrayFunction]

    def scalar(self, x: Expr) -> Expr:
        return prim(self.fn, x)

    def reference(self, x: Array) -> Array:
        return rounded_once(self.numpy, x)


@dataclass(frozen=True)
class Real(Unary):
    """`fn` of each element; integers go through f32 and are rounded to the nearest one, halves to even."""

    elements = Elements.NUMBER

    def scalar(self, x: Expr) -> Expr:
        if x.dtype.is_float:
            return self.real(x)
        return cast(prim("round_even", self.real(cast(x, DType.F32))), x.dtype)

    def real(self, x: Expr) -> Expr:
        return prim(self.fn, x)

    def reference(self, x: Array) -> Array:
        if x.dtype.kind not in "iu":
            return rounded_once(self.numpy, x)
        return converted(np.rint(rounded_once(self.numpy, x.astype(np.float32))), dtype_of(x))


@dataclass(frozen=True)
class ToInteger(Unary):
    """`fn` of each float; integers stay as they are."""

    elements = Elements.NUMBER

    def has_jumps(self, result: DType) -> bool:
        return True

    def scalar(self, x: Expr) -> Expr:
        return prim(self.fn, x) if x.dtype.is_float else x

    def reference(self, x: Array) -> Array:
        return x.copy() if x.dtype.kind in "iu" else rounded_once(self.numpy, x)


def _each(function: Callable[[float], float]) -> ArrayFunction:
    """Return a function of Python floats as one of arrays; the result has the array's type."""
    over = np.frompyfunc(function, 1, 1)

    def each(x: Array) -> Array:
        return np.asarray(over(x.astype(np.float64))).astype(x.dtype)

    return each


@op("opset1")
class Abs(Unary):
    """|x|; the smallest signed integer stays itself."""

    elements = Elements.NUMBER

    fn, numpy, symbolic = "abs", np.abs, True

    def scalar(self, x: Expr) -> Expr:
        return prim("abs", x) if x.dtype.is_signed else x


@op("opset1")
class Negative(Unary):
    """-x"""

    elements = Elements.NUMBER

    fn, numpy, symbolic = "neg", np.negative, True


@op("opset1")
class Sign(Unary):
    """-1, 0 or 1; NaN stays NaN."""

    elements = Elements.NUMBER

    fn, numpy = "sign", np.sign

    def has_jumps(self, result: DType) -> bool:
        return True

    def scalar(self, x: Expr) -> Expr:
        if x.dtype.is_signed:
            return prim("sign", x)
        return select(prim("eq", x, 0), Const(0, x.dtype), Const(1, x.dtype))


@op("opset1")
class Ceiling(ToInteger):
    """The smallest integer >= x."""

    fn, numpy = "ceil", np.ceil


@op("opset1")
class Floor(ToInteger):
    """The largest integer <= x."""

    fn, numpy = "floor", np.floor


class Rounding(StrEnum):
    HALF_TO_EVEN = "half_to_even"
    HALF_AWAY_FROM_ZERO = "half_away_from_zero"


@op("opset5")
class Round(ToInteger):
    """The nearest integer; `mode` says which one where two are equally near."""

    mode: Rounding = Rounding.HALF_TO_EVEN

    @property
    def fn(self) -> str:  # type: ignore[override]
        return "round_even" if self.mode is Rounding.HALF_TO_EVEN else "round_away"

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        if self.mode is Rounding.HALF_TO_EVEN:
            return np.rint(x)
        truncated = np.trunc(x)
        return np.where(np.abs(x - truncated) >= 0.5, truncated + np.sign(x), truncated)


@op("opset1")
class Exp(Real):
    """e^x"""

    fn, numpy = "exp", np.exp


@op("opset1")
class Log(Real):
    """ln x; NaN below 0."""

    fn, numpy = "log", np.log


@op("opset1")
class Sqrt(Real):
    """The square root; NaN below 0."""

    fn, numpy = "sqrt", np.sqrt


@op("opset1")
class Sin(Real):
    """sin x"""

    fn, numpy = "sin", np.sin


@op("opset1")
class Cos(Real):
    """cos x"""

    fn, numpy = "cos", np.cos


@op("opset1")
class Tan(Real):
    """tan x"""

    fn, numpy = "tan", np.tan


@op("opset1")
class Asin(Real):
    """The angle in -pi/2..pi/2 with sine x."""

    fn, numpy = "asin", np.arcsin


@op("opset1")
class Acos(Real):
    """The angle in 0..pi with cosine x."""

    fn, numpy = "acos", np.arccos


@op("opset1")
class Atan(Real):
    """The angle in -pi/2..pi/2 with tangent x."""

    fn, numpy = "atan", np.arctan


@op("opset1")
class Sinh(Real):
    """(e^x - e^-x) / 2"""

    fn, numpy = "sinh", np.sinh


@op("opset1")
class Cosh(Real):
    """(e^x + e^-x) / 2"""

    fn, numpy = "cosh", np.cosh


@op("opset1")
class Tanh(Real):
    """(e^x - e^-x) / (e^x + e^-x)"""

    fn, numpy = "tanh", np.tanh


@op("opset4")
class Asinh(Real):
    """The inverse hyperbolic sine of x."""

    fn, numpy = "asinh", np.arcsinh


@op("opset4")
class Acosh(Real):
    """The inverse hyperbolic cosine of x, at least 0; NaN below 1."""

    fn, numpy = "acosh", np.arccosh


@op("opset4")
class Atanh(Real):
    """The inverse hyperbolic tangent of x."""

    fn, numpy = "atanh", np.arctanh


@op("opset1")
class Erf(Real):
    """2/sqrt(pi) integral of e^(-t^2) over 0..x"""

    fn, numpy = "erf", staticmethod(_each(math.erf))


# M. Giles, Approximating the erfinv function, 2010: single precision, highest power first
_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


def _erfinv(x: float) -> float:
    if not -1 < x < 1:
        return x * math.inf if abs(x) == 1 else math.nan
    y = NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2) if abs(x) > 1e-3 else x * math.sqrt(math.pi) / 2
    for _ in range(3):
        error = math.erf(y) - x if abs(x) < 0.5 else math.copysign(math.erfc(abs(y)) - (1 - abs(x)), -x)
        y -= error * math.exp(y * y) * math.sqrt(math.pi) / 2
    return y


@op("opset17")
class ErfInv(Real):
    """y with erf(y) = x; infinite at -1 and 1, NaN outside."""

    numpy: ClassVar[Callable[..., Array]] = staticmethod(_each(_erfinv))

    def real(self, x: Expr) -> Expr:
        w = -prim("log", (1.0 - x) * (1.0 + x))
        polynomial = select(prim("lt", w, 5.0), _horner(_CENTRAL, w - 2.5), _horner(_TAIL, prim("sqrt", w) - 3.0))
        y = polynomial * x
        if x.dtype is DType.F64:
            for _ in range(2):  # Newton: the polynomials have single precision
                y = y - (prim("erf", y) - x) * prim("exp", y * y) * (math.sqrt(math.pi) / 2)
        return select(prim("eq", prim("abs", x), 1.0), x * math.inf, y)


def _horner(coefficients: tuple[float, ...], x: Expr) -> Expr:
    total: Expr = Const(coefficients[0], x.dtype)
    for c in coefficients[1:]:
        total = total * x + c
    return total
