"""Cases of aot/opset/elementwise/binary.py."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.binary import (
    Add,
    AutoBroadcast,
    Divide,
    FloorMod,
    Maximum,
    Minimum,
    Mod,
    Multiply,
    Power,
    SquaredDifference,
    Subtract,
)
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, BF16, I8, I32, U8 = DType.F32, DType.F16, DType.BF16, DType.I8, DType.I32, DType.U8
PDPD, NONE = AutoBroadcast.PDPD, AutoBroadcast.NONE
ALL = (Add, Subtract, Multiply, Divide, Maximum, Minimum, Mod, FloorMod, SquaredDifference)
SIGNS = [np.array([7, -7, 7, -7, 6, -8], np.int32), np.array([2, 2, -2, -2, 3, 4], np.int32)]

CASES = [
    *(Case(op(), [(F32, (2, 1, 5)), (F32, ("n=4", 1))]) for op in ALL),
    *(Case(op(), [(dtype, (3, 4)), (dtype, ())], EXACT, low=1) for op in ALL for dtype in (I8, U8)),
    *(Case(op(), [(F16, (6,)), (F16, (6,))]) for op in (Add, Divide, Mod, FloorMod)),
    *(Case(op(), SIGNS, EXACT) for op in (Divide, Mod, FloorMod, Power)),
    Case(Divide(m_pythondiv=False), SIGNS, EXACT),
    *(Case(op(), [a.astype(np.float32) for a in SIGNS], EXACT) for op in (Divide, Mod, FloorMod)),
    Case(Add(auto_broadcast=PDPD), [(F32, (2, 3, 4, 5)), (F32, (4, 5))]),
    Case(Multiply(auto_broadcast=NONE), [(BF16, ("n=2", 3)), (BF16, ("n=2", 3))]),
    Case(Power(), [(F32, (3, 4)), (F32, (4,))], low=0.1),
    Case(Power(), [(I32, (3, 7)), (I32, (7,))], EXACT),
    Case(Power(), [(U8, (9,)), (U8, (9,))], EXACT),
    Case(Maximum(), [np.array([np.nan, 1.0, -0.0], np.float32), np.array([1.0, np.nan, 0.0], np.float32)], EXACT),
]
