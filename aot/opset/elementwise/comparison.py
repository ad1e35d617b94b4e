"""Comparisons, logic of booleans, logic of bits, and the choice between two tensors."""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr, prim, select
from aot.ir.op import Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, TensorType
from aot.opset.base.families import Elementwise
from aot.opset.elementwise.binary import PDPD_ALIGNED, START_AXIS, AutoBroadcast, Binary, read_aligned
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class Comparison(Binary):
    """Base of comparisons: a boolean from an element of `a` and one of `b`."""

    elements = Elements.ANY

    def result(self, dtype: DType) -> DType:
        return DType.BOOL

    def has_jumps(self, result: DType) -> bool:
        return True

    def reference(self, a: Array, b: Array) -> Array:
        return np.asarray(self.numpy(a, self.auto_broadcast.fit(b, a.shape, self.start_axis)), np.bool_)


@op("opset1")
class Equal(Comparison):
    """a == b"""

    fn, numpy = "eq", np.equal


@op("opset1")
class NotEqual(Comparison):
    """a != b; true for NaN."""

    fn, numpy = "ne", np.not_equal


@op("opset1")
class Less(Comparison):
    """a < b"""

    fn, numpy = "lt", np.less


@op("opset1")
class LessEqual(Comparison):
    """a <= b"""

    fn, numpy = "le", np.less_equal


@op("opset1")
class Greater(Comparison):
    """a > b"""

    fn, numpy = "gt", np.greater


@op("opset1")
class GreaterEqual(Comparison):
    """a >= b"""

    fn, numpy = "ge", np.greater_equal


@dataclass(frozen=True)
class Logical(Binary):
    """Base of logic: a boolean from two booleans."""

    elements = Elements.BOOLEAN

    def result(self, dtype: DType) -> DType:
        if dtype is not DType.BOOL:
            raise ShapeError(f"{self.type}: inputs must be boolean, got {dtype.value}")
        return dtype


@op("opset1")
class LogicalAnd(Logical):
    """a and b"""

    fn, numpy = "and", np.logical_and


@op("opset1")
class LogicalOr(Logical):
    """a or b"""

    fn, numpy = "or", np.logical_or


@op("opset1")
class LogicalXor(Logical):
    """Exactly one of a and b."""

    fn, numpy = "xor", np.logical_xor


@op("opset1")
class Xor(Logical):
    """Exactly one of a and b: the old name of LogicalXor."""

    fn, numpy = "xor", np.logical_xor


@op("opset1")
class LogicalNot(Elementwise):
    """not x"""

    elements = Elements.BOOLEAN

    def infer(self, x: Operand) -> TensorType:
        if x.dtype is not DType.BOOL:
            raise ShapeError(f"LogicalNot: the input must be boolean, got {x.dtype.value}")
        return x.type

    def scalar(self, x: Expr) -> Expr:
        return prim("not", x)

    def reference(self, x: Array) -> Array:
        return np.logical_not(x)


@dataclass(frozen=True)
class Bitwise(Binary):
    """Base of logic on the bits of two integers."""

    elements = Elements.BITS

    def result(self, dtype: DType) -> DType:
        if dtype.is_float:
            raise ShapeError(f"{self.type}: inputs must be integers, got {dtype.value}")
        return dtype


@op("opset13")
class BitwiseAnd(Bitwise):
    """a & b"""

    fn, numpy = "and", np.bitwise_and


@op("opset13")
class BitwiseOr(Bitwise):
    """a | b"""

    fn, numpy = "or", np.bitwise_or


@op("opset13")
class BitwiseXor(Bitwise):
    """a ^ b"""

    fn, numpy = "xor", np.bitwise_xor


@op("opset15")
class BitwiseLeftShift(Bitwise):
    """a << b; 0 where b is negative, or all bits or more."""

    fn, numpy = "shl", np.left_shift


@op("opset15")
class BitwiseRightShift(Bitwise):
    """a >> b; the sign of a signed number fills in, all bits where b is negative, or all bits or more."""

    fn, numpy = "shr", np.right_shift


@op("opset13")
class BitwiseNot(Elementwise):
    """~x; `not x` of a boolean."""

    elements = Elements.BITS

    def scalar(self, x: Expr) -> Expr:
        return prim("not", x)

    def reference(self, x: Array) -> Array:
        return np.invert(x)


@dataclass(frozen=True)
class Test(Elementwise):
    """Base of tests: a boolean from one float."""

    elements = Elements.FLOAT

    def infer(self, x: Operand) -> TensorType:
        return TensorType(DType.BOOL, x.shape)

    def has_jumps(self, result: DType) -> bool:
        return True


@op("opset10")
class IsFinite(Test):
    """True unless infinite or NaN."""

    def scalar(self, x: Expr) -> Expr:
        return prim("lt", prim("abs", x), float("inf"))

    def reference(self, x: Array) -> Array:
        return np.isfinite(x)


@op("opset10")
class IsInf(Test):
    """True for -inf if `detect_negative`, and for inf if `detect_positive`."""

    detect_negative: bool = True
    detect_positive: bool = True

    def scalar(self, x: Expr) -> Expr:
        if self.detect_negative and self.detect_positive:
            return prim("eq", prim("abs", x), float("inf"))
        if not self.detect_negative and not self.detect_positive:
            return Const(0, DType.BOOL)
        return prim("eq", x, float("-inf" if self.detect_negative else "inf"))

    def reference(self, x: Array) -> Array:
        detected = np.where(np.signbit(x.astype(np.float32)), self.detect_negative, self.detect_positive)
        return np.isinf(x) & detected


@op("opset10")
class IsNaN(Test):
    """x != x"""

    def scalar(self, x: Expr) -> Expr:
        return prim("ne", x, x)

    def reference(self, x: Array) -> Array:
        return np.isnan(x)


@op("opset1")
class Select(Elementwise):
    """a where the condition holds, else b; a and b broadcast to each other, the condition to their shape."""

    symbolic, moved = True, (1, 2)

    auto_broadcast: AutoBroadcast = AutoBroadcast.NUMPY
    start_axis: int = attr(default=-1, xml=START_AXIS, only=PDPD_ALIGNED)

    def infer(self, condition: Operand, a: Operand, b: Operand) -> TensorType:
        if condition.dtype is not DType.BOOL:
            raise ShapeError(f"Select: the condition must be boolean, got {condition.dtype.value}")
        if a.dtype is not b.dtype:
            raise ShapeError(f"Select: element types must be equal, got {a.dtype.value} and {b.dtype.value}")
        both = self.auto_broadcast.shape(a.shape, b.shape, self.start_axis, "Select")
        return TensorType(a.dtype, self.auto_broadcast.shape(both, condition.shape, self.start_axis, "Select"))

    def compute(self, out: TensorType, condition: Input, a: Input, b: Input) -> Element:
        of_condition, of_b = (self.auto_broadcast.aligned(out.shape, x.shape, self.start_axis) for x in (condition, b))

        def element(*index: Expr) -> Expr:
            yes, no = read_aligned(a, a.shape, index), read_aligned(b, of_b, index)
            return self.scalar(read_aligned(condition, of_condition, index), yes, no)

        return element

    def scalar(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        return select(condition, a, b)

    def reference(self, condition: Array, a: Array, b: Array) -> Array:
        shape = self.auto_broadcast.shape(a.shape, b.shape, self.start_axis, "Select")
        chosen, no = (self.auto_broadcast.fit(x, shape, self.start_axis) for x in (condition, b))
        return np.where(chosen, a, no)
