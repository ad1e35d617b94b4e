"""Cases of aot/opset/movement/scatter.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.scatter import Combination, ScatterElementsUpdate, ScatterNDUpdate, ScatterUpdate, SliceScatter
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, I32, I64, I8, U8, BOOL = DType.F32, DType.F16, DType.I32, DType.I64, DType.I8, DType.U8, DType.BOOL
DATA = (F32, (3, 4, 5))
C = Combination


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    Case(ScatterUpdate(), [DATA, (I32, (2, 3)), (F32, (3, 2, 3, 5)), at(1)], EXACT, low=-4, high=3),
    Case(ScatterUpdate(), [DATA, at(2, -1, 2), (F32, (3, 4, 3)), np.array(-1)], EXACT),
    Case(ScatterUpdate(), [(I64, ("n=4", 3)), (I64, ()), (I64, (3,)), at(0)], EXACT, low=0, high=3),
    Case(ScatterUpdate(), [(U8, (6,)), (I32, (4,)), (U8, (4,)), at(0)], EXACT, low=-8, high=8),
    *(
        Case(ScatterElementsUpdate(how, init), [DATA, (I32, (3, 7, 4)), (F32, (3, 7, 4)), at(1)], CLOSE, low=-4, high=3)
        for how in Combination
        if how is not C.SUB
        for init in (True, False)
    ),
    *(
        Case(ScatterElementsUpdate(how, how is C.MEAN), [(t, (4, 3)), (I64, (6, 2)), (t, (6, 2)), at(0)], EXACT, high=3)
        for how in (C.SUM, C.PROD, C.MIN, C.MAX, C.MEAN)
        for t in (I8, U8)
    ),
    *(
        Case(ScatterElementsUpdate(how, True), [(BOOL, (4,)), (I32, (6,)), (BOOL, (6,)), at(0)], EXACT, high=3)
        for how in (C.NONE, C.SUM, C.PROD)
    ),
    Case(ScatterElementsUpdate(C.MEAN), [(F16, (4, 3)), (I32, (2, 5)), (F16, (2, 5)), at(-1)], CLOSE, low=-3, high=2),
    Case(ScatterElementsUpdate(), [(F32, ("n=3", 4)), (I32, ("m=2", 3)), (F32, ("m=2", 3)), at(1)], EXACT, low=-5),
    *(
        Case(ScatterNDUpdate(how), [DATA, (I32, (6, 2)), (F32, (6, 5))], CLOSE, low=-3, high=2)
        for how in Combination
        if how is not C.MEAN
    ),
    Case(ScatterNDUpdate(), [DATA, (I64, (2, 4, 3)), (F32, (2, 4))], EXACT),
    Case(ScatterNDUpdate(), [DATA, (I64, (2, 1)), (F32, (2, 4, 5))], EXACT),
    Case(ScatterNDUpdate(), [(I32, (5,)), at(-2), (I32, (1,))], EXACT),
    Case(ScatterNDUpdate(C.SUM), [(F32, (4, 5)), (I32, ("n=3", "k=1")), (F32, ("n=3", 5))], CLOSE),
    Case(ScatterNDUpdate(C.SUB), [(BOOL, (3, 2)), (I32, ("n=4", 2)), (BOOL, ("n=4",))], EXACT, low=-2, high=1),
    Case(SliceScatter(), [DATA, (F32, (3, 2, 5)), at(1), at(3), at(1), at(1)], EXACT),
    Case(SliceScatter(), [DATA, (F32, (2, 2, 5)), at(0, -9), at(9, 4), at(2, 2)], EXACT),
    Case(SliceScatter(), [(I32, (7,)), (I32, (3,)), at(5), at(-10), at(-2), at(0)], EXACT),
    Case(SliceScatter(), [(F32, ("n=4", 6)), (F32, ("n=4", 5)), at(1), at(1 << 40), at(1), at(-1)], EXACT),
]
