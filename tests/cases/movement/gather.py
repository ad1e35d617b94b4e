"""Cases of aot/opset/movement/gather.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.gather import (
    Gather,
    Gather_1,
    Gather_7,
    GatherElements,
    GatherND,
    GatherND_5,
    GatherTree,
    NegativeIndices,
    OneHot,
    OneHot_1,
)
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, I64, U8 = DType.F32, DType.F16, DType.I32, DType.I64, DType.U8
DATA = (F32, (3, 4, 5))
STEPS, BEAMS = (I32, (5, 2, 3)), (F32, (4, 1, 2))


def at(*values: int) -> Array:
    return np.array(values, np.int64)


DEPTH, ON, OFF = np.array(6), np.array(2.5, np.float32), np.array(-1, np.float32)

CASES = [
    Case(Gather(), [DATA, (I32, (2, 3)), at(1)], EXACT, low=-4, high=3),
    Case(Gather(), [DATA, (I64, (2,)), at(-1)], EXACT, low=-7, high=7),
    Case(Gather(), [(U8, (3, "n=4")), (I64, ()), at(0)], EXACT, high=2),
    Case(Gather(), [DATA, at(2, 0), at(0)], EXACT),
    Case(Gather(), [DATA, at(-1, 1, 9), at(2)], EXACT),
    Case(Gather(), [DATA, np.array(1), at(1)], EXACT),
    Case(Gather(batch_dims=1), [DATA, (I32, (3, 2)), at(2)], EXACT, high=4),
    Case(Gather(batch_dims=-1), [(F16, (2, 3, 4)), (I32, (2, 3)), at(1)], EXACT, low=-3, high=2),
    Case(Gather_7(batch_dims=2), [(F32, (3, 4, 5)), (I32, (3, 4, 2)), at(2)], EXACT, low=0),
    Case(Gather_1(), [(F32, ("n=5", 3)), (I32, (2, 2)), at(0)], EXACT, low=0),
    Case(GatherElements(axis=1), [DATA, (I32, (3, 7, 5))], EXACT, low=-4, high=3),
    Case(GatherElements(axis=-1), [DATA, (I64, (3, 4, 2))], EXACT),
    Case(GatherElements(), [(I32, (3, 4)), (I32, ("n=5", 4))], EXACT, low=-3, high=2),
    Case(GatherND(), [DATA, (I32, (2, 2))], EXACT, low=-3, high=2),
    Case(GatherND(), [DATA, (I32, (4, 2, 3))], EXACT),
    Case(GatherND(batch_dims=1), [DATA, (I64, (3, 2, 1))], EXACT, low=0, high=3),
    Case(GatherND(batch_dims=2), [DATA, (I64, (3, 4, 1))], EXACT, low=0, high=4),
    Case(GatherND_5(), [DATA, (I32, ("n=2", 3))], EXACT, low=0, high=2),
    Case(GatherND_5(batch_dims=2), [(F32, (3, 2, 4, 2)), (I64, (3, 2, 5, 1))], EXACT, low=0, high=3),
    Case(GatherTree(), [STEPS, STEPS, np.array([4, 5], np.int32), np.array(3, np.int32)], EXACT, low=0),
    Case(GatherTree(), [BEAMS, BEAMS, np.array([9], np.float32), np.array(8, np.float32)], EXACT, low=0, high=1),
    Case(OneHot_1(axis=-1), [(I64, (2, 3)), DEPTH, ON, OFF], EXACT, high=7),
    Case(OneHot_1(axis=0), [(I32, ()), DEPTH, np.array(True), np.array(False)], EXACT, low=0),
    Case(OneHot_1(axis=1), [(I32, ("n=2", 3)), DEPTH, np.array(7, np.uint8), np.array(1, np.uint8)], EXACT),
    Case(OneHot(1, NegativeIndices.NORMALIZE), [(I32, (2, 3)), DEPTH, ON, OFF], EXACT, low=-7),
]
