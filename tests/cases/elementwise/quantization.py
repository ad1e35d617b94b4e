"""Cases of aot/opset/elementwise/quantization.py."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.quantization import FakeConvert, FakeQuantize, FixedPointProduct, Float8
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16 = DType.F32, DType.F16


def limits(*values: float) -> list[np.ndarray]:
    return [np.array(v, np.float32) for v in values]


CHANNELS = [np.linspace(a, a + 1, 3, dtype=np.float32).reshape(3, 1) for a in (-3, 2, -1, 1)]
EDGES = np.array(
    [447, 449, 464, 500, 6e4, 7e4, 2**-9, 2**-10, 1.5 * 2**-10, 2**-17, np.inf, -np.inf, np.nan, 0], np.float32
)

SUMS = np.array([[0, 1, -1, 127, -128, 5_000, -5_001, 1 << 20, -(1 << 20), (1 << 31) - 1, -(1 << 31)]], np.int32).T
SHIFTS = np.array([0, 1, 2, 7, 8, 9, 15, 16, 17, 30, 31], np.int32)  # halves are rounded away from zero
FACTORS = np.array([1 << 30, (1 << 31) - 1, 1_518_500_250], np.int32)
NONE = np.array(0, np.int32)

CASES = [
    Case(FixedPointProduct(), [SUMS, FACTORS, NONE], EXACT),
    Case(FixedPointProduct(), [SUMS, FACTORS[:1] + 1, SHIFTS], EXACT),
    Case(FixedPointProduct(), [(DType.I32, (2, "n=5")), FACTORS[:1], NONE], EXACT),
    Case(FakeQuantize(levels=256), [(F32, (2, 3, 4)), *limits(-3, 3, -3, 3)]),
    Case(FakeQuantize(levels=16), [(F32, ("n=2", 3, 4)), *CHANNELS]),
    Case(FakeQuantize(levels=2), [(F32, (5,)), *limits(0, 0, -1, 1)]),
    Case(FakeQuantize(levels=5, auto_broadcast=AutoBroadcast.PDPD), [(F32, (2, 3, 1)), *CHANNELS]),
    Case(FakeQuantize(levels=255), [(F16, (2, 3)), *([(F16, ())] * 4)]),
    *(Case(FakeConvert(destination_type=t), [EDGES, np.float32([1])], EXACT) for t in Float8),
    *(Case(FakeConvert(destination_type=t), [(F32, (3, 9)), (F32, (1, 9)), (F32, (1, 9))], low=0.5) for t in Float8),
    *(Case(FakeConvert(destination_type=t), [(F16, (3, 9)), (F16, ())], low=0.5) for t in Float8),
]
