"""Values that mix numbers and symbols: inference computes of them what the operation computes of the numbers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np
import pytest

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Expr, Var
from aot.ir.inference import infer_outputs
from aot.ir.op import Op, Stateful
from aot.ir.operand import Operand
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.symbolic import MAX_PARTS, as_numbers, as_stored, symbols_in
from aot.opset.control.generators import Range
from aot.opset.elementwise.binary import Add, Divide, FloorMod, Mod, Multiply, Power, Subtract
from aot.opset.elementwise.comparison import BitwiseAnd, BitwiseRightShift, Equal, Less
from aot.opset.elementwise.conversion import Convert
from aot.opset.elementwise.unary import Abs, Negative, Sign, Sqrt
from aot.opset.movement.gather import Gather
from aot.opset.reduction.scan import CumSum
from aot.runtime.abi import DType
from aot.runtime.errors import AotError
from tests.cases import Case, tables
from tests.codegen.interpreter import Interpreter

N = Var("n", None)


@dataclass
class Marked:
    """The operands of a case, half of the elements of input `which` as symbols; `sizes` are their values."""

    operands: list[Operand | None]
    sizes: dict[Expr, Expr]


def marked(case: Case, which: int) -> Marked:
    rng, sizes = np.random.default_rng(zlib.crc32(case.name.encode()) + which), dict[Expr, Expr]()
    found = [o and replace(o, value=a) for o, a in zip(case.static_operands(), case.arrays, strict=True)]
    given = found[which]
    if given is not None and given.value is not None and given.dtype.is_integer and given.dtype.bits >= 8:
        value = given.value.astype(object)
        for at in np.ndindex(*value.shape):
            if rng.random() < 0.5:
                continue
            symbol = Var("_".join(map(str, ("s", *at))), 64, -8 if given.dtype.is_signed else 0)
            sizes[symbol] = Const(int(value[at]))
            value[at] = symbol
        found[which] = Operand(given.type, value)
    return Marked(found, sizes)


def numbers(value: Array, sizes: dict[Expr, Expr], dtype: DType) -> Array:
    """The value with numbers for symbols."""
    each = [Interpreter().value(rewrite(v, sizes)) if isinstance(v, Expr) else v for v in value.flat]
    return np.array(each, object).reshape(value.shape).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("name", sorted(tables()))
def test_folding_with_symbols_agrees_with_the_reference(name: str) -> None:
    for case in tables()[name]:
        for which in range(len(case.inputs)):
            made = marked(case, which)
            if not made.sizes or isinstance(case.op, Stateful):
                continue
            expected = case.op.evaluate(*case.arrays)
            try:
                found = infer_outputs(case.op, made.operands, {})
            except AotError:  # a symbol where a number is needed
                continue
            for one, want in zip(found, expected, strict=True):
                if one.value is not None:
                    assert np.array_equal(numbers(one.value, made.sizes, one.dtype), want), f"{case.name}, {which}"
                    assert one.value.dtype in (object, numpy_dtype(one.dtype)), f"{case.name}, {which}"


def known(dtype: DType, *values: object) -> Operand:
    return Operand(TensorType(dtype, (len(values),)), np.array([*values, None], object)[:-1])


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        (Divide(m_pythondiv=False), 7, 2, 3),
        (Divide(m_pythondiv=False), -7, 2, -3),
        (Divide(), -7, 2, -4),
        (Mod(), -7, 2, -1),
        (FloorMod(), -7, 2, 1),
        (Multiply(), 1 << 20, 1 << 12, 0),
        (Subtract(), -(1 << 31), 1, (1 << 31) - 1),
        (Power(), 3, 4, 81),
        (BitwiseAnd(), 6, 3, 2),
        (BitwiseRightShift(), -8, 1, -4),
        (Equal(), 3, 3, True),
        (Less(), 3, 3, False),
        (Abs(), -3, None, 3),
        (Negative(), 3, None, -3),
        (Sign(), -3, None, -1),
        (Sqrt(), 9, None, 3),
        (Convert(destination_type=DType.I8), 300, None, 44),
    ],
)
def test_numbers_that_were_beside_symbols_are_those_of_their_type(
    op: Op, a: int, b: int | None, expected: object
) -> None:
    """An array that a Gather took the numbers out of holds numbers of the tensor's type, not objects."""
    beside = [known(DType.I32, N, v) for v in (a, b) if v is not None]
    picked = [Operand(TensorType(DType.I32, (1,)), Gather().fold(o, *_SECOND)[0]) for o in beside]  # type: ignore[index]
    assert all(p.value is not None and p.value.dtype == np.int32 for p in picked)
    (found,) = infer_outputs(op, picked, {})
    assert found.value is not None
    assert found.value.tolist() == [expected]
    (mixed,) = infer_outputs(op, beside, {})
    assert mixed.value is None or mixed.value[1] == expected


_SECOND = [Operand(TensorType(DType.I64, s), np.array(v)) for s, v in (((1,), [1]), ((), 0))]


def test_a_result_that_may_not_fit_its_type_is_left_to_kernels() -> None:
    small = Var("small", 1 << 12)
    assert as_stored(np.array([small * small, None], object)[:-1], DType.I32) is not None
    assert as_stored(np.array([small * small * small, None], object)[:-1], DType.I32) is None
    assert as_stored(np.array([N - 1, None], object)[:-1], DType.U64) is None
    assert as_stored(np.array([N * 4, None], object)[:-1], DType.I32) is not None


def test_numbers_of_an_array_of_objects_wrap() -> None:
    assert as_numbers(np.array([300, -1], object), DType.U8).tolist() == [44, 255]
    found = as_stored(np.array([N, 1 << 33], object), DType.I32)
    assert found is not None
    assert symbols_in(found).tolist() == [True, False]
    assert found[1] == 0


def test_shape_arithmetic_is_bounded_by_the_size_of_its_tree() -> None:
    value = known(DType.I64, N, 3)
    for step in range(200):
        op = (Multiply(), Divide(m_pythondiv=False), Add(), FloorMod())[step % 4]
        (found,) = infer_outputs(op, [value, value if step % 4 == 0 else known(DType.I64, 7)], {})
        if found.value is None:
            assert step > 8
            return
        value = found
    pytest.fail(f"no step passed the limit of {MAX_PARTS} parts")


def test_a_range_to_a_number_that_was_beside_a_symbol() -> None:
    zero, one = (Operand(TensorType(DType.I64, ()), np.array(v)) for v in (0, 1))
    stop = Operand(TensorType(DType.I64, ()), np.array(9, object))
    (found,) = infer_outputs(Range(), [zero, stop, one], {})
    assert found.shape == (9,)


def test_a_cumulative_sum_of_symbols_is_left_to_kernels() -> None:
    assert CumSum().fold(known(DType.I64, N, 3), Operand(TensorType(DType.I64, ()), np.array(0))) is None
