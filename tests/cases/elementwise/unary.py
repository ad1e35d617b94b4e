"""Cases of aot/opset/elementwise/unary.py."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceiling,
    Cos,
    Cosh,
    Erf,
    ErfInv,
    Exp,
    Floor,
    Log,
    Negative,
    Round,
    Rounding,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, BF16, F64 = DType.F32, DType.F16, DType.BF16, DType.F64
AWAY = Round(mode=Rounding.HALF_AWAY_FROM_ZERO)
HALVES = np.array([-2.5, -1.5, -0.5, -0.49999997, 0.0, 0.49999997, 0.5, 1.5, 2.5, 1e10, np.inf, np.nan], np.float32)

CASES = [
    *(Case(op, [(F32, (3, 5))]) for op in (Exp(), Sin(), Cos(), Tan(), Sinh(), Cosh(), Tanh(), Asinh(), Atan(), Erf())),
    *(Case(op, [(F32, (3, 5))], low=0.0) for op in (Log(), Sqrt())),
    *(Case(op, [(F32, ("n=3", 5))], low=-1.0, high=1.0) for op in (Asin(), Acos(), Atanh(), ErfInv())),
    Case(Acosh(), [(F32, (7,))], low=1.0, high=9.0),
    *(Case(op, [(dtype, (17,))]) for op in (Exp(), Tanh(), Erf()) for dtype in (F16, BF16, F64)),
    *(Case(op, [(F32, (2, 3))], EXACT) for op in (Abs(), Negative(), Sign(), Ceiling(), Floor(), Round())),
    *(Case(op, [(DType.I8, (2, 3))], EXACT) for op in (Abs(), Negative(), Sign(), Ceiling(), Floor(), Round())),
    *(Case(op, [(DType.U8, (2, 3))], EXACT) for op in (Abs(), Sign())),
    Case(Exp(), [(DType.I32, (5,))], EXACT),
    Case(Sqrt(), [(DType.I32, (5,))], EXACT, low=0.0, high=99.0),
    *(Case(op, [HALVES], EXACT) for op in (Round(), AWAY, Ceiling(), Floor(), Sign())),
    *(Case(op, [np.array([-np.inf, np.inf, np.nan, 0.0, -200.0, 200.0], np.float32)]) for op in (Exp(), Tanh(), Log())),
    Case(ErfInv(), [np.array([-1.0, 1.0, 2.0, 0.0, 1e-7, 0.9999, -0.99999], np.float32)]),
    Case(ErfInv(), [(F64, (5,))], CLOSE, low=-0.9, high=0.9),
]
