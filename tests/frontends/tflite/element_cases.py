"""Element by element, and reductions."""

from __future__ import annotations

import numpy as np

from tests.frontends.tflite.case import b, c, case, f, i
from tests.frontends.tflite.models import Tensor

# ---- element by element

for kind, low in [
    ("ABS", -2),
    ("CEIL", -2),
    ("COS", -4),
    ("ELU", -2),
    ("EXP", -2),
    ("FLOOR", -2),
    ("HARD_SWISH", -4),
    ("LOG", 0.1),
    ("LOGISTIC", -4),
    ("NEG", -2),
    ("RELU", -2),
    ("RELU6", -2),
    ("RELU_N1_TO_1", -2),
    ("RELU_0_TO_1", -2),
    ("ROUND", -3),
    ("RSQRT", 0.1),
    ("SIN", -4),
    ("SQRT", 0.0),
    ("SQUARE", -2),
    ("TANH", -3),
    ("SIGN", -2),
]:
    case(kind.lower(), kind, f(2, 5, 3, low=low, high=8.0 if kind.startswith("RELU") else 3.0))
case("round_halves", "ROUND", np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32))
case("abs_i32", "ABS", i(3, 4), outputs=["i32"])
case("neg_i32", "NEG", i(3, 4), outputs=["i32"])
case("gelu", "GELU", f(3, 4), options="Gelu", Approximate=False)
case("gelu_approximate", "GELU", f(3, 4), options="Gelu", Approximate=True)
case("leaky_relu", "LEAKY_RELU", f(3, 4), options="LeakyRelu", Alpha=0.3)
case("prelu", "PRELU", f(1, 3, 2, 4), c(f(1, 1, 4), np.float32))
case("prelu_full", "PRELU", f(1, 3, 2, 4), c(f(1, 3, 2, 4), np.float32))
case("logical_not", "LOGICAL_NOT", b(3, 4), outputs=["boolean"])
for act in range(4):
    case(f"add_fused_{act}", "ADD", f(2, 3, 4, low=-9, high=9), f(2, 3, 4), options="Add", FusedActivationFunction=act)
case("add_broadcast", "ADD", f(2, 3, 4), f(3, 1), options="Add")
case("add_i32", "ADD", i(2, 3), i(2, 3), outputs=["i32"], options="Add")
case("add_i64", "ADD", i(2, 3, dtype=np.int64), i(3, dtype=np.int64), outputs=["i64"], options="Add")
case("sub", "SUB", f(2, 3, 4), f(4), options="Sub", FusedActivationFunction=1)
case("mul", "MUL", f(2, 3, 4), f(1, 3, 1), options="Mul", FusedActivationFunction=3)
case("mul_i32", "MUL", i(2, 3), i(2, 3), outputs=["i32"], options="Mul")
case("div", "DIV", f(2, 3), f(2, 3, low=0.5), options="Div")
case("div_i32", "DIV", i(4, 5), i(4, 5, low=1), outputs=["i32"], options="Div")
case("floor_div", "FLOOR_DIV", f(2, 3), f(2, 3, low=0.5), options="FloorDiv")
case("floor_div_i32", "FLOOR_DIV", i(4, 5), np.where(b(4, 5), 3, -4).astype(np.int32), outputs=["i32"])
case("floor_mod", "FLOOR_MOD", f(2, 3), f(2, 3, low=0.5))
case("floor_mod_i32", "FLOOR_MOD", i(4, 5), np.where(b(4, 5), 3, -4).astype(np.int32), outputs=["i32"])
case("pow", "POW", f(2, 3, low=0.1), f(2, 3))
case("atan2", "ATAN2", f(4, 4), f(4, 4))
for kind in ("MAXIMUM", "MINIMUM"):
    case(kind.lower(), kind, f(2, 3), f(3), options="MaximumMinimum")
    case(f"{kind.lower()}_i32", kind, i(2, 3), i(3), outputs=["i32"], options="MaximumMinimum")
case("squared_difference", "SQUARED_DIFFERENCE", f(2, 3), f(2, 3))
for kind in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
    case(kind.lower(), kind, i(3, 4, high=-5), i(4, high=-5), outputs=["boolean"])
    case(f"{kind.lower()}_f32", kind, f(3, 4), f(3, 4), outputs=["boolean"])
for kind in ("LOGICAL_AND", "LOGICAL_OR"):
    case(kind.lower(), kind, b(3, 4), b(4), outputs=["boolean"])
case("bitwise_xor", "BITWISE_XOR", i(3, 4), i(3, 4), outputs=["i32"])
case("right_shift", "RIGHT_SHIFT", i(3, 4, low=-999, high=999), i(3, 4, low=0, high=5), outputs=["i32"])
case("add_n", "ADD_N", f(2, 3), f(2, 3), f(2, 3))
case("select", "SELECT", b(3), f(3, 4), f(3, 4))
case("select_v2", "SELECT_V2", b(3, 1), f(3, 4), f(4))
for a, z in (
    ("f32", "i32"),
    ("i32", "f32"),
    ("f32", "boolean"),
    ("boolean", "f32"),
    ("i64", "i32"),
    ("f32", "u8"),
    ("i32", "i64"),
):
    made = {"f32": f(3, 4, low=0.0, high=3.9), "i32": i(3, 4), "i64": i(3, 4, dtype=np.int64), "boolean": b(3, 4)}[a]
    case(f"cast_{a}_{z}", "CAST", made, outputs=[z])
case("bitcast", "BITCAST", f(3, 4), outputs=[Tensor("y", "i32", [3, 4])])
case("zeros_like", "ZEROS_LIKE", f(3, 4))
case("fake_quant", "FAKE_QUANT", f(4, 8), options="FakeQuant", Min=-1.2, Max=1.7, NumBits=8, NarrowRange=False)

# ---- reductions

for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    for axes, keep in (([1, 2], False), ([-1], True), ([0, 1, 2, 3], False), ([3], False)):
        case(
            f"{kind.lower()}_{len(axes)}_{axes[0]}_{keep}",
            kind,
            f(2, 3, 4, 5),
            c(axes),
            options="Reducer",
            KeepDims=keep,
        )
case("sum_i32", "SUM", i(2, 3, 4), c([1]), outputs=["i32"], options="Reducer")
for kind in ("REDUCE_ANY", "REDUCE_ALL"):
    case(kind.lower(), kind, b(2, 3, 4), c([1]), outputs=["boolean"], options="Reducer")
case("arg_max", "ARG_MAX", f(2, 3, 4), c(1), outputs=["i32"], options="ArgMax", OutputType=2)
case("arg_min", "ARG_MIN", f(2, 3, 4), c(-1), outputs=["i64"], options="ArgMin", OutputType=4)
case("cumsum", "CUMSUM", f(2, 3, 4), c(1), options="Cumsum", Exclusive=True, Reverse=True)
case("topk", "TOPK_V2", f(2, 9), c(4), outputs=["f32", "i32"])
case("topk_ties", "TOPK_V2", i(2, 9, low=0, high=3), c(5), outputs=["i32", "i32"])
