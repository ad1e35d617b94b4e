"""Activation functions, element by element."""

from __future__ import annotations

import math
from enum import StrEnum
from itertools import zip_longest

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr, prim, select
from aot.ir.conditions import Condition
from aot.ir.op import Element, Elements, ViewOp
from aot.ir.operand import Input, Operand, Piece
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, differs
from aot.opset.base.families import Elementwise, rounded_once
from aot.opset.elementwise.unary import Real, Unary
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

_INTEGERS = {
    DType.I8: (-(2**7), 2**7 - 1), DType.U8: (0, 2**8 - 1), DType.I16: (-(2**15), 2**15 - 1), DType.U16: (0, 2**16 - 1),
    DType.I32: (-(2**31), 2**31 - 1), DType.U32: (0, 2**32 - 1), DType.I64: (-(2**63), 2**63 - 1),
    DType.U64: (0, 2**64 - 1),
}  # fmt: skip


@op("opset1")
class Clamp(Elementwise):
    """min(max(x, min), max); for integers the bounds are rounded inwards."""

    elements = Elements.NUMBER

    min: float = 0.0
    max: float = 0.0

    def infer(self, x: Operand) -> TensorType:
        if self.min > self.max:
            raise ShapeError(f"Clamp: min must not be above max, got {self.min} and {self.max}")
        return x.type

    def scalar(self, x: Expr) -> Expr:
        if x.dtype.is_float:
            return prim("min", prim("max", x, self.min), self.max)
        low, high = (_inwards(self.min, x.dtype, math.ceil), _inwards(self.max, x.dtype, math.floor))
        return prim("min", prim("max", x, Const(low, x.dtype)), Const(high, x.dtype))

    def reference(self, x: Array) -> Array:
        if x.dtype.kind not in "iu":
            return rounded_once(self._clipped, x)
        info = np.iinfo(x.dtype)
        low = min(max(math.ceil(max(self.min, -(2.0**64))), info.min), info.max)
        high = min(max(math.floor(min(self.max, 2.0**64)), info.min), info.max)
        return np.clip(x, x.dtype.type(low), x.dtype.type(high))

    def _clipped(self, x: Array) -> Array:
        return np.clip(x, x.dtype.type(self.min), x.dtype.type(self.max))


def _inwards(bound: float, dtype: DType, towards: object) -> int:
    low, high = _INTEGERS[dtype]
    if bound <= low or bound >= high:
        return low if bound <= low else high
    return math.ceil(bound) if towards is math.ceil else math.floor(bound)


@op("opset1")
class Elu(Real):
    """x where x > 0, else alpha (e^x - 1)"""

    alpha: float = 1.0

    def real(self, x: Expr) -> Expr:
        return select(prim("gt", x, 0.0), x, (prim("exp", x) - 1.0) * self.alpha)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return np.where(x > 0, x, self.alpha * np.expm1(x))


@op("opset2", type="Gelu")
class Gelu_2(Unary):
    """x (1 + erf(x / sqrt(2))) / 2"""

    elements = Elements.FLOAT

    def scalar(self, x: Expr) -> Expr:
        return x * 0.5 * (prim("erf", x * math.sqrt(0.5)) + 1.0)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        normal = np.frompyfunc(lambda v: math.erfc(-v / math.sqrt(2)) / 2, 1, 1)(x.astype(np.float64))
        return x * np.asarray(normal).astype(x.dtype)


class Approximation(StrEnum):
    ERF = "ERF"
    TANH = "TANH"


@op("opset7")
class Gelu(Gelu_2):
    """x (1 + erf(x / sqrt(2))) / 2, or x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2"""

    approximation_mode: Approximation = Approximation.ERF

    def scalar(self, x: Expr) -> Expr:
        if self.approximation_mode is Approximation.ERF:
            return super().scalar(x)
        inner = x * (x * x * 0.044715 + 1.0) * math.sqrt(2 / math.pi)
        return x * 0.5 * (prim("tanh", inner) + 1.0)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        if self.approximation_mode is Approximation.ERF:
            return super().numpy(x)
        return x * (1 + np.tanh(np.sqrt(x.dtype.type(2 / np.pi)) * (x + x.dtype.type(0.044715) * x**3))) / 2


@op("opset5")
class HSigmoid(Real):
    """min(max(x + 3, 0), 6) / 6"""

    def real(self, x: Expr) -> Expr:
        return prim("min", prim("max", x + 3.0, 0.0), 6.0) * (1 / 6)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return np.clip(x + 3, 0, 6) / 6


@op("opset4")
class HSwish(Real):
    """x min(max(x + 3, 0), 6) / 6"""

    def real(self, x: Expr) -> Expr:
        return x * prim("min", prim("max", x + 3.0, 0.0), 6.0) * (1 / 6)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return x * np.clip(x + 3, 0, 6) / 6


@dataclass(frozen=True)
class WithScalars(Elementwise):
    """Base of operations on the first input; further inputs are parameters, single numbers."""

    elements = Elements.FLOAT

    def infer(self, x: Operand, *parameters: Operand) -> TensorType:
        for p in parameters:
            if p.dtype is not x.dtype or any(isinstance(d, int) and d != 1 for d in p.shape):
                raise ShapeError(f"{self.type}: parameters must be single numbers, {x.dtype.value}, got {p.type}")
        return x.type

    def conditions(self, x: Operand, *parameters: Operand) -> list[Condition]:
        return [(n, 1, "parameters must be single numbers") for p in parameters for n in p.shape]

    def compute(self, out: TensorType, x: Input, *parameters: Input) -> Element:
        return lambda *index: self.scalar(x(*index), *(p(*[0] * p.rank) for p in parameters))


@op("opset1")
class HardSigmoid(WithScalars):
    """max(0, min(1, alpha x + beta)); alpha and beta are inputs."""

    def scalar(self, x: Expr, alpha: Expr, beta: Expr) -> Expr:
        return prim("max", prim("min", alpha * x + beta, 1.0), 0.0)

    def reference(self, x: Array, alpha: Array, beta: Array) -> Array:
        return rounded_once(self._clipped, x, alpha.reshape(()), beta.reshape(()))

    @staticmethod
    def _clipped(x: Array, alpha: Array, beta: Array) -> Array:
        return np.clip(alpha * x + beta, 0, 1)


@op("opset1")
class Selu(WithScalars):
    """lambda x where x > 0, else lambda alpha (e^x - 1); alpha and lambda are inputs."""

    def scalar(self, x: Expr, alpha: Expr, scale: Expr) -> Expr:
        return scale * select(prim("gt", x, 0.0), x, alpha * (prim("exp", x) - 1.0))

    def reference(self, x: Array, alpha: Array, scale: Array) -> Array:
        def selu(v: Array, a: Array, s: Array) -> Array:
            return s * np.where(v > 0, v, a * np.expm1(v))

        return rounded_once(selu, x, alpha.reshape(()), scale.reshape(()))


@op("opset4")
class Swish(WithScalars):
    """x / (1 + e^(-beta x)); beta is an optional input, 1 without it."""

    def infer(self, x: Operand, beta: Operand | None = None) -> TensorType:
        return super().infer(x, *([] if beta is None else [beta]))

    def scalar(self, x: Expr, beta: Expr | None = None) -> Expr:
        return x / (prim("exp_normal", -x if beta is None else -(beta * x)) + 1.0)

    def reference(self, x: Array, beta: Array | None = None) -> Array:
        scale = np.ones((), x.dtype) if beta is None else beta.reshape(())
        return rounded_once(self._swish, x, scale)

    @staticmethod
    def _swish(x: Array, beta: Array) -> Array:
        return x / (1 + np.exp(-beta * x))


@op("opset16")
class Identity(ViewOp):
    """x"""

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        return (Piece(0, (0,) * x.rank, x.shape, lambda *index: index),)

    def reference(self, x: Array) -> Array:
        return x.copy()


@op("opset4")
class Mish(Unary):
    """x tanh(ln(1 + e^x))"""

    elements = Elements.FLOAT

    def scalar(self, x: Expr) -> Expr:
        # tanh(ln(1 + e)) = n / (n + 2) with n = e (e + 2); above 20 that is 1, and n would overflow
        e = prim("exp_normal", prim("min", x, 20.0))
        n = e * (e + 2.0)
        return x * (n / (n + 2.0))

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return x * np.tanh(np.logaddexp(x, 0, dtype=x.dtype))


@op("opset1", xml="PReLU")
class PRelu(Elementwise):
    """x where x >= 0, else slope x; a slope with as many numbers as channels is per channel."""

    elements = Elements.NUMBER

    def infer(self, x: Operand, slope: Operand) -> TensorType:
        if len(slope.shape) != 1 or not self._is_by_channel(x.shape, slope.shape[0]):
            wide = super().infer(x, slope)
            pairs = zip_longest(x.shape, wide.shape)
            if wide.rank > x.rank or any(isinstance(m, int) and differs(n, m) for n, m in pairs):
                raise ShapeError(f"PRelu: the slope must broadcast to {x.type}, got {slope.type}")
        return x.type

    def conditions(self, x: Operand, slope: Operand) -> list[Condition]:
        """Return the conditions that the slope broadcasts to the data, or is 1-D with one entry per channel."""
        if slope.rank != 1 or not self._is_by_channel(x.shape, slope.shape[0]):
            pairs = zip(reversed(slope.shape), reversed(x.shape), strict=False)
            rule = "each size of the slope must be 1 or that of the data"
            return [((n - m) * (n - 1), 0, rule) for n, m in pairs if n not in (1, m)]
        if (count := slope.shape[0]) == x.shape[1]:
            return []
        fitting = (count - x.shape[1]) * (count - 1) * (count - x.shape[-1] if x.rank > 2 else 1)
        return [(fitting, 0, "slopes must be one, one for each channel, or one for each element of the last dimension")]

    @staticmethod
    def _is_by_channel(data: Shape, count: Dim) -> bool:
        """True if `count` may be the number of channels."""
        return len(data) > 1 and (count == data[1] or isinstance(count, Expr) or isinstance(data[1], Expr))

    def compute(self, out: TensorType, x: Input, slope: Input) -> Element:
        if slope.rank != 1 or not self._is_by_channel(x.shape, slope.shape[0]):
            return super().compute(out, x, slope)
        count, channels = slope.shape[0], x.shape[1]

        def element(*index: Expr) -> Expr:
            if count == channels:
                return self.scalar(x(*index), slope(index[1]))
            last = prim("min", index[-1], count - 1)  # 0 if the slope has one element
            position = select(prim("eq", count, channels), index[1], last) if x.rank > 2 else last
            return self.scalar(x(*index), slope(position))

        return element

    def scalar(self, x: Expr, slope: Expr) -> Expr:
        return select(prim("lt", x, 0), x * slope, x)

    def reference(self, x: Array, slope: Array) -> Array:
        if slope.ndim == 1 and self._is_by_channel(x.shape, slope.size):
            slope = slope.reshape((-1,) + (1,) * (x.ndim - 2))
        if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
            raise ShapeError(f"PRelu: the slope must broadcast to {list(x.shape)}, got {list(slope.shape)}")
        return rounded_once(self._kinked, x, slope)

    @staticmethod
    def _kinked(x: Array, slope: Array) -> Array:
        return np.where(x < 0, x * slope, x)


@op("opset1", xml="ReLU")
class Relu(Unary):
    """max(x, 0)"""

    elements = Elements.NUMBER

    def scalar(self, x: Expr) -> Expr:
        return prim("max", x, 0)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return np.maximum(x, x.dtype.type(0))


@op("opset1")
class Sigmoid(Real):
    """1 / (1 + e^-x)"""

    def real(self, x: Expr) -> Expr:
        return 1.0 / (prim("exp_normal", -x) + 1.0)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return 1 / (1 + np.exp(-x))


@op("opset4")
class SoftPlus(Unary):
    """ln(1 + e^x)"""

    elements = Elements.FLOAT

    def scalar(self, x: Expr) -> Expr:
        return prim("max", x, 0.0) + log1p(prim("exp", -prim("abs", x)))

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return np.logaddexp(x, 0, dtype=x.dtype)


def log1p(x: Expr) -> Expr:
    """Return ln(1 + x) for 0 <= x <= 1, precise near 0 too: the rounding of 1 + x cancels."""
    u = prim("exact_add", x, 1.0)
    rest = prim("exact_sub", u, 1.0)
    return select(prim("eq", rest, 0.0), x, prim("log", u) * (x / rest))


@op("opset9")
class SoftSign(Unary):
    """x / (1 + |x|)"""

    elements = Elements.FLOAT

    def scalar(self, x: Expr) -> Expr:
        return x / (prim("abs", x) + 1.0)

    def numpy(self, x: Array) -> Array:  # type: ignore[override]
        return x / (1 + np.abs(x))
