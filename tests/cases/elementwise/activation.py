"""Cases of aot/opset/elementwise/activation.py."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.activation import (
    Approximation,
    Clamp,
    Elu,
    Gelu,
    Gelu_2,
    HardSigmoid,
    HSigmoid,
    HSwish,
    Identity,
    Mish,
    PRelu,
    Relu,
    Selu,
    Sigmoid,
    SoftPlus,
    SoftSign,
    Swish,
)
from aot.opset.elementwise.unary import Real
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, BF16, F64, I8, I32 = DType.F32, DType.F16, DType.BF16, DType.F64, DType.I8, DType.I32
TANH = Gelu(approximation_mode=Approximation.TANH)
FAR = np.array([-1e4, -100.0, -50.0, -20.0, -1e-6, 0.0, 1e-6, 20.0, 50.0, 100.0, 1e4], np.float32)
ALPHA, BETA = np.array(0.2, np.float32), np.array([0.5], np.float32)
EVERY = (
    Elu(alpha=0.7),
    Gelu_2(),
    Gelu(),
    TANH,
    HSigmoid(),
    HSwish(),
    Mish(),
    Relu(),
    Sigmoid(),
    SoftPlus(),
    SoftSign(),
    Swish(),
)

CASES = [
    *(Case(op, [(dtype, ("n=3", 5))]) for op in EVERY for dtype in (F32, F16)),
    *(Case(op, [FAR]) for op in EVERY),
    *(Case(op, [(BF16, (7,))]) for op in (Relu(), Sigmoid())),
    *(Case(op, [(F64, (7,))]) for op in (Mish(), SoftPlus())),
    *(Case(Relu(), [(dtype, (7,))], EXACT) for dtype in (I8, I32, DType.U8)),
    *(Case(op, [(dtype, (9,))], EXACT) for op in EVERY if isinstance(op, Real) for dtype in (I8, I32, DType.U8)),
    Case(Clamp(min=-1.5, max=2.5), [(F32, ("n=3", 4))], EXACT),
    *(Case(Clamp(min=-1.5, max=2.5), [(dtype, (9,))], EXACT) for dtype in (I8, DType.U8, DType.I64)),
    Case(Clamp(min=-1e30, max=1e30), [(I32, (5,))], EXACT),
    Case(HardSigmoid(), [(F32, (2, 3)), ALPHA, BETA]),
    Case(HardSigmoid(), [(F16, (2, 3)), (F16, ()), (F16, (1,))]),
    Case(Selu(), [(F32, (2, 3)), np.array(1.6, np.float32), np.array([1.05], np.float32)]),
    Case(Swish(), [(F32, (2, 3)), (F32, ())]),
    *(Case(Identity(), [(dtype, (2, "n=3"))], EXACT) for dtype in (F32, DType.BOOL)),
    Case(Identity(), [(F32, ())], EXACT),
    Case(PRelu(), [(F32, (2, 3, 4)), (F32, (3,))]),
    Case(PRelu(), [(F32, (2, "c=3", 3)), (F32, ("c=3",))]),
    Case(PRelu(), [(F32, (2, 3, 4)), (F32, (3, 1))]),
    Case(PRelu(), [(F32, (2, 3, 4)), (F32, (4,))]),
    Case(PRelu(), [(F16, (5,)), (F16, (1,))]),
    Case(PRelu(), [(I32, (2, 3, 4)), (I32, (3,))]),
]
