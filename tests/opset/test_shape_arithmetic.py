"""Values that hold run-time dimensions: what inference computes with them, and what it leaves to run time."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.loops import Var, prim
from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.types import TensorType, simplify
from aot.opset.control.generators import Range, Range_1
from aot.opset.elementwise.binary import Add, Divide, Maximum, Multiply, Subtract
from aot.opset.elementwise.comparison import Equal, Select
from aot.opset.elementwise.conversion import Convert
from aot.opset.elementwise.unary import Exp
from aot.opset.reduction.reduction import ReduceMax, ReduceProd, ReduceSum
from aot.runtime.abi import DType

N = Var("n", 65)


def known(*dims: object, scalar: bool = False, dtype: DType = DType.I64) -> Operand:
    value = np.array(dims, object).reshape(() if scalar else (len(dims),))
    return Operand(TensorType(dtype, value.shape), value)


def folded(op: Op, *operands: Operand) -> list[object] | None:
    found = op.fold(*operands)
    return None if found is None else found[0].reshape(-1).tolist()


SHAPE, TWO = known(N, 3), known(2)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Add(), [N + 2, 5]),
        (Subtract(), [N - 2, 1]),
        (Multiply(), [N * 2, 6]),
        (Divide(), [N // 2, 1]),
        (Maximum(), [prim("max", N, 2), 3]),
    ],
)
def test_arithmetic_of_dimensions(op: Op, expected: list[object]) -> None:
    assert folded(op, SHAPE, TWO) == [simplify(e) for e in expected]  # type: ignore[arg-type]


def test_reductions_of_dimensions() -> None:
    axes = Operand(TensorType(DType.I64, (1,)), np.array([0]))
    assert folded(ReduceProd(), SHAPE, axes) == [N * 3]
    assert folded(ReduceSum(), SHAPE, axes) == [N + 3]
    assert ReduceMax().fold(SHAPE, axes) is None


def test_a_comparison_with_a_dimension_is_left_to_run_time() -> None:
    assert Equal().fold(SHAPE, TWO) is None
    assert folded(Equal(), known(3, 2), TWO) == [False, True]


def test_a_known_condition_chooses_between_dimensions() -> None:
    condition = Operand(TensorType(DType.BOOL, (2,)), np.array([True, False]))
    assert folded(Select(), condition, SHAPE, known(7)) == [N, 7]


def test_conversion_keeps_dimensions_only_as_integers() -> None:
    assert folded(Convert(destination_type=DType.I32), SHAPE) == [N, 3]
    assert Convert(destination_type=DType.F32).fold(SHAPE) is None
    assert Exp().fold(SHAPE) is None


def test_a_range_up_to_a_dimension() -> None:
    start, stop, step = (known(v, scalar=True) for v in (1, N, 2))
    (length,) = Range(output_type=DType.I32).infer(start, stop, step).shape
    assert length == simplify((N - 1 + 1) // 2)
    assert Range_1().fold(start, stop, step) is None


def test_packed_codes_of_nf4_are_decoded() -> None:
    codes = Operand(TensorType(DType.NF4, (3,)), np.array([0, 7, 15], np.uint8))
    assert folded(Convert(), codes) == [-1.0, 0.0, 1.0]
