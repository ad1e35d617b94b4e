"""Cases of aot/opset/movement/slicing.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.slicing import Slice, StridedSlice
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, U8 = DType.F32, DType.F16, DType.I32, DType.U8
DATA = (F32, (3, 8, 5))
FAR = (1 << 31) - 1


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    Case(Slice(), [DATA, at(1, 2), at(3, 7), at(1, 2)], EXACT),
    Case(Slice(), [DATA, at(-4), at(FAR), at(3), at(1)], EXACT),
    Case(Slice(), [DATA, at(-1, 6), at(-FAR, 1), at(-1, -2), at(-1, 1)], EXACT),
    Case(Slice(), [DATA, at(5), at(2), at(1), at(1)], EXACT),
    Case(Slice(), [(U8, (4, "n=7")), at(2), at(FAR), at(1), at(1)], EXACT),
    Case(Slice(), [(I32, ("n=7",)), at(-3), at(-1), at(1), at(0)], EXACT),
    Case(Slice(), [(F16, ("n=6", 2)), at(0), at(1 << 40), at(2), at(0)], EXACT),
    Case(Slice(), [(F32, (3, "n=5")), at(4), at(0), at(-1), at(1)], EXACT),
    Case(Slice(), [(F32, ("n=5",)), at(-2), at(-9), at(-2), at(0)], EXACT),
    Case(Slice(), [(F32, ("n=5",)), at(9), at(1), at(-3), at(0)], EXACT),
    Case(StridedSlice(), [DATA, at(0, 2, 1), at(2, 8, 4), at(1, 3, 1)], EXACT),
    Case(StridedSlice((1, 0), (0, 1)), [DATA, at(9, -3), at(2, 0)], EXACT),
    Case(StridedSlice(shrink_axis_mask=(0, 1)), [DATA, at(0, -2), at(3, 0), at(1, 1)], EXACT),
    Case(StridedSlice(new_axis_mask=(0, 1, 0)), [DATA, at(1, 0, 2), at(3, 0, 6), at(1, 1, 1)], EXACT),
    Case(StridedSlice(ellipsis_mask=(0, 1, 0)), [(F32, (2, 3, 4, 5)), at(1, 0, 1), at(2, 0, 4), at(1, 1, 2)], EXACT),
    Case(StridedSlice(ellipsis_mask=(1,), new_axis_mask=(0, 1)), [DATA, at(0, 0), at(0, 0)], EXACT),
    Case(StridedSlice((1, 1), (1, 1)), [DATA, at(0, 0), at(0, 0), at(-1, -3)], EXACT),
    Case(StridedSlice(shrink_axis_mask=(1, 1, 1)), [DATA, at(2, 1, -1), at(0, 0, 0)], EXACT),
    Case(StridedSlice(), [(U8, ("n=5", 4)), at(1, 0), at(1 << 40, 3)], EXACT),
    Case(StridedSlice(end_mask=(0, 1), shrink_axis_mask=(1,)), [(F32, (3, "n=4")), at(-1, 2), at(0, 0)], EXACT),
    Case(StridedSlice((0,), (1,)), [(F32, (4,)), at(-9), at(0), at(-1)], EXACT),
    Case(StridedSlice((0,), (1,)), [(F32, ("n=4",)), at(-9), at(0), at(-1)], EXACT),
    *(Case(Slice(), [(F32, (n,)), at(-9), at(-20), at(-1)], EXACT) for n in (4, "n=4", 0, "n=0")),
]
