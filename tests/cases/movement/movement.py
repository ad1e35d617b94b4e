"""Cases of aot/opset/movement/movement.py."""

from __future__ import annotations

import itertools

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.movement import (
    Concat,
    Reverse,
    ReverseMode,
    ReverseSequence,
    Roll,
    Split,
    Transpose,
    VariadicSplit,
)
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, I64, U8, BOOL = DType.F32, DType.F16, DType.I32, DType.I64, DType.U8, DType.BOOL
DATA = (F32, (2, 3, 4))


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    *(Case(Transpose(), [DATA, at(*order)], EXACT) for order in itertools.permutations(range(3))),
    Case(Transpose(), [(U8, (2, "n=3", 1, 4)), at(0, 3, 1, 2)], EXACT),
    Case(Transpose(), [(BOOL, (2, 3)), at()], EXACT),
    Case(Transpose(), [(F32, (9, 17)), at(1, 0)], EXACT),
    Case(Concat(1), [DATA, (F32, (2, 1, 4)), (F32, (2, 5, 4))], EXACT),
    Case(Concat(-1), [(F16, (2, "n=3")), (F16, (2, "m=2"))], EXACT),
    Case(Concat(0), [(I64, (3,)), np.array([7, 8])], EXACT),
    Case(Concat(0), [(I32, (0, 2)), (I32, (1, 2))], EXACT),
    Case(Split(3), [DATA, np.array(1)], EXACT, outputs=3),
    Case(Split(2), [(U8, ("n=4", 3)), np.array(-2)], EXACT, outputs=2),
    Case(VariadicSplit(), [(F32, (2, 7, 3)), np.array(1), at(2, 1, 4)], EXACT, outputs=3),
    Case(VariadicSplit(), [(F32, (7, 2)), np.array(-2), at(3, -1)], EXACT, outputs=2),
    Case(VariadicSplit(), [(F32, ("n=7",)), np.array(0), at(-1, 2)], EXACT, outputs=2),
    Case(VariadicSplit(), [(F32, (4,)), np.array(0), at(0, 4)], EXACT, outputs=2),
    Case(Reverse(), [DATA, at(0, -1)], EXACT),
    Case(Reverse(), [(I32, ("n=5", 2)), at(0)], EXACT),
    Case(Reverse(ReverseMode.MASK), [DATA, np.array([False, True, True])], EXACT),
    Case(ReverseSequence(), [(F32, (3, 5, 2)), np.array([2, 5, 1], np.int32)], EXACT),
    Case(ReverseSequence(-1, 0), [(U8, (5, 3)), np.array([4, 0, 5])], EXACT),
    Case(ReverseSequence(1, 0), [(F32, ("n=4", 2)), (I32, (2,))], EXACT, low=1, high=4),
    Case(Roll(), [DATA, np.array(2), np.array(1)], EXACT),
    Case(Roll(), [DATA, np.array(0), np.array(1)], EXACT),
    Case(Roll(), [(F32, (3, "n=5")), at(1, 7), at(0, 1)], EXACT),
    Case(Roll(), [DATA, at(-3, 1), at(-1, 0)], EXACT),
    Case(Roll(), [(I32, ("n=5", 2)), at(2, 5), at(0, 0)], EXACT),
    Case(Roll(), [(F32, (4, 5)), (I32, (2,)), at(0, 1)], EXACT),
]
