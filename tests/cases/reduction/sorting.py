"""Cases of aot/opset/reduction/sorting.py."""

from __future__ import annotations

import numpy as np

from aot.opset.reduction.sorting import Mode, Order, TopK, TopK_1, TopK_3
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, I64, U8 = DType.F32, DType.F16, DType.I32, DType.I64, DType.U8
LONG, SHORT = np.array(12), np.array([3], np.int32)

CASES = [
    *(
        Case(TopK(axis, mode, sort), [(F32, (2, 20, 3)), k], EXACT, outputs=2)
        for mode in Mode
        for sort in (Order.VALUE, Order.INDEX)
        for axis, k in ((1, LONG), (1, SHORT))
    ),
    *(  # rows side by side in vectors
        Case(TopK(axis, mode, sort), [(dtype, shape), SHORT], EXACT, outputs=2)
        for mode, sort in ((Mode.MAX, Order.VALUE), (Mode.MIN, Order.INDEX))
        for dtype in (F32, F16, U8, I64)
        for axis, shape in ((1, (2, 9, 21)), (0, (3, 4, 7)), (1, ("n=2", "m=15", 16)))
    ),
    *(  # as many of them as run time tells
        Case(TopK(len(rows), Mode.MAX, sort), [(F32, (*rows, 9, f"m={m}")), SHORT], EXACT, outputs=2)
        for sort in (Order.VALUE, Order.INDEX)
        for rows, m in ((("n=2",), 1), (("n=2",), 3), (("n=2",), 16), (("n=2",), 23), ((), 39))
    ),
    Case(TopK(1, Mode.MAX, Order.VALUE), [(I64, (2, 9, 5)), SHORT], EXACT, low=0, high=2, outputs=2),  # many are equal
    Case(TopK(-1, Mode.MAX, Order.VALUE, I64, stable=True), [(I32, (3, 40)), LONG], EXACT, outputs=2),
    Case(TopK(0, Mode.MIN, Order.VALUE), [(U8, (30, 2)), LONG], EXACT, outputs=2),
    Case(TopK(0, Mode.MIN, Order.INDEX), [(F16, (30, 2)), LONG], EXACT, outputs=2),
    Case(TopK(1, Mode.MAX, Order.VALUE), [(F32, ("n=2", "m=15")), LONG], EXACT, outputs=2),
    Case(TopK(0, Mode.MAX, Order.NONE), [(I64, (9,)), np.array(1)], EXACT, outputs=2),
    Case(TopK(0, Mode.MAX, Order.VALUE), [(F32, (17,)), np.array(17)], EXACT, outputs=2),
    Case(TopK_3(1, Mode.MAX, Order.VALUE, I64), [(F32, (2, 6, 2)), np.array(6)], EXACT, outputs=2),
    Case(TopK_1(-1, Mode.MIN, Order.VALUE), [(F32, (4, 5)), SHORT], EXACT, outputs=2),
]
