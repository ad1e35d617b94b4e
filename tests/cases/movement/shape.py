"""Cases of aot/opset/movement/shape.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.shape import Reshape, ShapeOf, ShapeOf_1, Squeeze, Squeeze_15, Unsqueeze
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, I64, U8, BOOL = DType.F32, DType.F16, DType.I32, DType.I64, DType.U8, DType.BOOL


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    *(
        Case(Reshape(), [(F32, (2, 3, 4)), at(*target)], EXACT)
        for target in ((6, 4), (2, -1), (4, 3, 2), (1, 2, 12, 1), (-1,))
    ),
    Case(Reshape(True), [(U8, (2, 12, 5)), at(0, 0, -1)], EXACT),
    Case(Reshape(True), [(F32, ("n=2", 12, 5)), at(0, 3, 4, -1)], EXACT),
    Case(Reshape(), [(F32, ("n=2", 3, "m=4")), at(-1)], EXACT),
    Case(Reshape(), [(F32, ("n=2", 3, 4)), at(-1, 6, 2)], EXACT),
    Case(Reshape(), [(F32, (1, 1)), at()], EXACT),
    Case(Reshape(), [(F32, ()), at(1, 1, 1)], EXACT),
    Case(Reshape(), [(F16, (6, 1, 35)), at(2, 15, 7)], EXACT),
    Case(Squeeze(), [(F32, (1, 3, 1, 2))], EXACT),
    Case(Squeeze(), [(F32, (1, 3, 1, 2)), at(-2)], EXACT),
    Case(Squeeze(), [(BOOL, (1, "n=1", 4)), at(0, 1)], EXACT),
    Case(Squeeze(), [(F32, (1,)), np.array(0)], EXACT),
    Case(Squeeze_15(True), [(F32, (1, 3, 1)), at(0, 1)], EXACT),
    Case(Squeeze_15(), [(F32, (1, 3, 1)), at(-1)], EXACT),
    Case(Unsqueeze(), [(F32, (2, 3)), at(0, -1)], EXACT),
    Case(Unsqueeze(), [(I32, ("n=4",)), at(1, 2)], EXACT),
    Case(Unsqueeze(), [(F32, ()), np.array(0)], EXACT),
    Case(ShapeOf(), [(F32, (2, "n=3", 4))], EXACT),
    Case(ShapeOf(I32), [(U8, (5, 1))], EXACT),
    Case(ShapeOf(), [(F32, ())], EXACT),
    Case(ShapeOf_1(), [(F32, ("n=2", "m=3"))], EXACT),
]
