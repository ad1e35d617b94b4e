"""Arithmetic, comparisons, booleans and activations, element by element."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node

from tests.frontends.onnx.case import case, known
from tests.frontends.onnx.models import Numbers

N = Numbers(1)
A, B, WIDE = N.f32(2, 3, 4), N.f32(3, 1), N.f32(2, 3, 4, size=40.0)
POSITIVE, SMALL = np.abs(A) + 0.1, np.tanh(A)
INTS, MORE = N.rng.integers(-9, 10, (2, 3, 4)).astype(np.int32), N.rng.integers(1, 9, (3, 1)).astype(np.int32)
FLAGS, OTHERS = A > 0, B > 0
ODD = np.array([-np.inf, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, np.inf, np.nan], np.float32)
HALVES = A.astype(np.float16)
BYTES = N.u8(2, 3, 4)
COUNTS = N.rng.integers(0, 8, (2, 3, 4)).astype(np.uint8)

CASES = [
    *(
        case(op, A)
        for op in (
            "Abs", "Atan", "Asinh", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Sigmoid", "Sign", "Sin", "Sinh",
            "Cosh", "Tan", "Tanh", "Relu", "Softplus", "Softsign", "Round", "HardSwish", "Mish", "Gelu", "Selu", "Elu",
            "Celu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Shrink", "Reciprocal", "Identity",
        )
    ),
    *(case(op, SMALL) for op in ("Acos", "Asin", "Atanh")),
    *(case(op, POSITIVE) for op in ("Log", "Sqrt")),
    case("Acosh", POSITIVE + 1),
    *(case(op, INTS) for op in ("Abs", "Neg", "Sign", "BitwiseNot")),
    *(case(op, ODD) for op in ("IsNaN", "IsInf", "Round", "Floor", "Ceil", "Abs", "Neg", "Sign", "Tanh", "Exp")),
    case("Not", FLAGS),
    *(case(op, A, B) for op in ("Add", "Sub", "Mul", "Div", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")),
    *(case(op, INTS, MORE) for op in ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "LessOrEqual")),
    *(case(op, INTS, MORE) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(case(op, FLAGS, OTHERS) for op in ("And", "Or", "Xor", "Equal")),
    case("Equal", A, A[0]),
    case("Pow", POSITIVE, B),
    case("Pow", A, known(2, np.int64)),
    case("Pow", INTS, known([2.0, 3.0, 0.0, 1.0], np.float32)),
    case("Pow", INTS, known([2, 3, 0, 1], np.int32)),
    case("Mod", INTS, MORE),
    case("Mod", -INTS, -MORE),
    case("Mod", INTS, MORE, fmod=1),
    case("Mod", A, B, fmod=1),
    case("Mod", BYTES, known(7, np.uint8)),
    *(case(op, A, B, N.f32(4)) for op in ("Max", "Min", "Sum", "Mean")),
    *(case(op, A) for op in ("Max", "Min", "Sum", "Mean")),
    *(case(op, INTS, MORE) for op in ("Max", "Min")),
    *(case(op, ODD, known(1.0, np.float32)) for op in ("Max", "Min")),
    case("Clip", A, known(-0.5, np.float32), known(0.75, np.float32)),
    case("Clip", A, None, known(0.75, np.float32)),
    case("Clip", A, known(0.25, np.float32)),
    case("Clip", A),
    case("Clip", A, np.float32(0.5), np.float32(-0.25)),
    case("Clip", ODD, known(-1.0, np.float32), known(1.0, np.float32)),
    case("Clip", INTS, known(-3, np.int32), known(4, np.int32)),
    case("Clip", A, version=10, min=-0.5, max=0.25),
    case("Clip", A, version=10, max=0.25),
    case("Elu", A, alpha=0.5),
    case("Celu", A, alpha=0.5),
    case("Celu", A, alpha=2.0),
    case("Selu", A, alpha=1.5, gamma=2.0),
    case("LeakyRelu", A, alpha=0.3),
    case("PRelu", A, B),
    case("PRelu", A, known(0.25, np.float32).value.reshape(1)),
    case("PRelu", A, N.f32(3), version=6, open=False, by_evaluator=True),
    case("HardSigmoid", A, alpha=0.5, beta=0.3),
    case("ThresholdedRelu", A, alpha=0.5),
    case("Shrink", A, bias=0.25, lambd=0.75),
    case("Gelu", A, approximate="tanh"),
    case("Swish", A, by_evaluator=True),
    case("Swish", A, alpha=0.5, by_evaluator=True),
    *(case("BitShift", BYTES, COUNTS, direction=d) for d in ("LEFT", "RIGHT")),
    case("IsInf", ODD, detect_negative=0),
    case("IsInf", ODD, detect_positive=0),
    case("Where", FLAGS, A, B),
    case("Where", OTHERS, INTS, MORE),
    case("Dropout", A),
    case("Dropout", A, version=7, ratio=0.5),
    case("Dropout", A, known(0.5, np.float32), outputs=2),
    *(case("Cast", WIDE, to=t) for t in (T.INT32, T.INT64, T.FLOAT16, T.DOUBLE)),
    *(case("Cast", INTS, to=t) for t in (T.FLOAT, T.BOOL, T.INT8, T.UINT8)),
    *(
        case("Cast", WIDE, to=t, saturate=s, by_evaluator=True)
        for t in (T.FLOAT8E4M3FN, T.FLOAT8E5M2)
        for s in (0, 1)
    ),
    case("Cast", WIDE, to=T.BFLOAT16, by_evaluator=True),
    case(
        "Cast", A * 3, nodes=[make_node("Cast", ["x0"], ["i"], to=T.INT4), make_node("Cast", ["i"], ["y0"], to=T.INT32)]
    ),
    case("Cast", FLAGS, to=T.FLOAT),
    case("CastLike", A, known([0], np.int32)),
    case("BitCast", A, to=T.INT32),
    *(case(op, HALVES) for op in ("Abs", "Relu", "Sigmoid", "Exp", "Tanh")),
    *(case(op, HALVES, HALVES[0]) for op in ("Add", "Mul")),
    case("Add", A.astype(np.float64), B.astype(np.float64)),
    case("Celu", A.astype(ml_dtypes.bfloat16), alpha=0.5, by_evaluator=True),
]  # fmt: skip
