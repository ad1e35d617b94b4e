"""Cases of aot/opset/reduction/reduction.py."""

from __future__ import annotations

import numpy as np

from aot.opset.reduction.reduction import (
    ReduceL1,
    ReduceL2,
    ReduceLogicalAnd,
    ReduceLogicalOr,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, I32, I8, U8, BOOL = DType.F32, DType.F16, DType.I32, DType.I8, DType.U8, DType.BOOL
LOGIC, BOTH = (ReduceLogicalAnd, ReduceLogicalOr), (False, True)
OPS = (ReduceSum, ReduceProd, ReduceMax, ReduceMin, ReduceMean, ReduceL1, ReduceL2)
LAST, TWO, ALL, NONE = (np.array(a, np.int64) for a in ([-1], [2, 0], [0, 1, 2], []))

CASES = [
    *(Case(op(keep_dims=k), [(F32, (2, 3, 4)), a]) for op in OPS for k in BOTH for a in (LAST, TWO, ALL, NONE)),
    *(Case(op(), [(dtype, (3, 4)), LAST], EXACT) for op in OPS for dtype in (I32, I8, U8)),
    *(Case(op(), [(F16, (3, 4)), np.array(1, np.int32)], CLOSE) for op in OPS),
    *(Case(op(keep_dims=True), [(F32, ("n=3", 4)), LAST]) for op in OPS),
    *(Case(op(), [(F32, ("n=3", 4)), np.array([0])]) for op in OPS),
    *(Case(op(keep_dims=k), [(BOOL, (3, 4)), LAST], EXACT) for op in LOGIC for k in BOTH),
    *(Case(op(), [(BOOL, (3, 4)), NONE], EXACT) for op in LOGIC),
    *(Case(op(keep_dims=k), [(F32, ()), np.array([a])]) for op in OPS for k in BOTH for a in (0, -1)),
]
