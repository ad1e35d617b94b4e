"""Cases of aot/opset/reduction/segments.py."""

from __future__ import annotations

import numpy as np

from aot.opset.reduction.segments import Fill, GroupedMatMul, SegmentMax
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, I32 = DType.F32, DType.F16, DType.I32
IDS = np.array([0, 0, 2, 2, 2, 5], np.int32)

CASES = [
    *(Case(SegmentMax(f), [(t, (6, 3)), IDS], EXACT) for f in Fill for t in (F32, I32, F16)),
    *(Case(SegmentMax(f), [(F32, (6,)), IDS, np.array(n)], EXACT) for f in Fill for n in (3, 8)),
    Case(GroupedMatMul(), [(F32, (3, 6, 4)), (F32, (3, 5, 4))], CLOSE),
    Case(GroupedMatMul(), [(F32, (7, 4)), (F32, (3, 5, 4)), np.array([2, 2, 7], np.int32)], CLOSE),
    Case(GroupedMatMul(), [(F32, (7, 4)), (F32, (3, 5, 4)), np.array([1, 4, 5])], CLOSE),
]
