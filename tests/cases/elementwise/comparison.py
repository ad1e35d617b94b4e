"""Cases of aot/opset/elementwise/comparison.py."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.comparison import (
    BitwiseAnd,
    BitwiseLeftShift,
    BitwiseNot,
    BitwiseOr,
    BitwiseRightShift,
    BitwiseXor,
    Equal,
    Greater,
    GreaterEqual,
    IsFinite,
    IsInf,
    IsNaN,
    Less,
    LessEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
    NotEqual,
    Select,
    Xor,
)
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, I8, I32, BOOL = DType.F32, DType.I8, DType.I32, DType.BOOL
COMPARISONS = (Equal(), NotEqual(), Less(), LessEqual(), Greater(), GreaterEqual())
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, 1e-45], np.float32)

CASES = [
    *(Case(op, [(dtype, (3, 5)), (dtype, ("n=3", 1))], EXACT) for op in COMPARISONS for dtype in (F32, I8, DType.U8)),
    *(Case(op, [ODD, ODD], EXACT) for op in COMPARISONS),
    Case(Equal(), [(BOOL, (3, 5)), (BOOL, (5,))], EXACT),
    Case(Less(), [(DType.BF16, (9,)), (DType.BF16, (9,))], EXACT),
    *(Case(op, [(BOOL, (3, 5)), (BOOL, (5,))], EXACT) for op in (LogicalAnd(), LogicalOr(), LogicalXor(), Xor())),
    Case(LogicalNot(), [(BOOL, (3, "n=5"))], EXACT),
    *(
        Case(op, [(dtype, (3, 4)), (dtype, (4,))], EXACT)
        for op in (BitwiseAnd(), BitwiseOr(), BitwiseXor())
        for dtype in (I8, I32, DType.U8, DType.I64, BOOL)
    ),
    *(Case(BitwiseNot(), [(dtype, (9,))], EXACT) for dtype in (I8, DType.U16, BOOL)),
    *(
        Case(op, [(dtype, (9,)), np.arange(9) % 5], EXACT)
        for op in (BitwiseLeftShift(), BitwiseRightShift())
        for dtype in (DType.I64,)
    ),
    *(  # by less than none, and by all bits and more
        Case(op, [(dtype, (6,)), by], EXACT, low=-12, high=70)
        for op in (BitwiseLeftShift(), BitwiseRightShift())
        for dtype, numbers in ((I8, np.int8), (I32, np.int32), (DType.I64, np.int64))
        for by in ((dtype, (6,)), np.array([-1, 0, 7, 8, 32, 64], numbers))
    ),
    Case(BitwiseRightShift(), [np.array([-5, 5, -128], np.int8), np.array([1, 1, 7], np.int8)], EXACT),
    *(Case(op, [ODD], EXACT) for op in (IsNaN(), IsFinite())),
    *(Case(IsInf(detect_negative=n, detect_positive=p), [ODD], EXACT) for n in (True, False) for p in (True, False)),
    *(Case(IsNaN(), [(dtype, (3, 4))], EXACT) for dtype in (DType.F16, DType.BF16)),
    Case(Select(), [(BOOL, (3, 1)), (F32, (1, 4)), (F32, (2, 1, 1))], EXACT),
    Case(Select(), [(BOOL, (2, 3)), (I32, ()), (I32, ("n=2", 1))], EXACT),
    Case(Select(auto_broadcast=AutoBroadcast.NONE), [(BOOL, (2, 3)), (BOOL, (2, 3)), (BOOL, (2, 3))], EXACT),
    Case(Select(auto_broadcast=AutoBroadcast.PDPD), [(BOOL, (2, 3, 4)), (F32, (2, 3, 4)), (F32, (3, 4))], EXACT),
]
