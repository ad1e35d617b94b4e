"""Cases of aot/opset/movement/padding.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.padding import Pad, PadMode
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, U8 = DType.F32, DType.F16, DType.I32, DType.U8


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    *(Case(Pad(mode), [(F32, (3, 4, 5)), at(1, 0, 2), at(0, 3, 1)], EXACT) for mode in PadMode),
    *(Case(Pad(mode), [(I32, ("n=4", 5)), at(1, 2), at(2, 0)], EXACT) for mode in PadMode),
    *(Case(Pad(mode), [(F32, (6, 7)), at(-1, -2), at(2, -3)], EXACT) for mode in (PadMode.CONSTANT, PadMode.EDGE)),
    Case(Pad(), [(F16, (2, 3)), at(1, 1), at(0, 2), np.array(2.5, np.float16)], EXACT),
    Case(Pad(), [(U8, (2, 3)), at(1, 1), at(0, 2), (U8, ())], EXACT),
    Case(Pad(), [(F32, (2, "n=3")), at(0, 1), at(1, 0), (F32, ())], EXACT),
    Case(Pad(PadMode.REFLECT), [(F32, (5,)), at(4), at(4)], EXACT),
    Case(Pad(PadMode.SYMMETRIC), [(F32, (5,)), at(5), at(5)], EXACT),
    *(Case(Pad(mode), [(F32, (6, 7)), at(-3, 4), at(4, -3)], EXACT) for mode in (PadMode.REFLECT, PadMode.SYMMETRIC)),
]
