"""Cases of aot/opset/reduction/nonzero.py."""

from __future__ import annotations

import numpy as np

from aot.opset.reduction.nonzero import NonZero, Unique
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, I32, I64, BOOL = DType.F32, DType.I32, DType.I64, DType.BOOL
AXES = [[], [np.array(0)], [np.array(-1)]]

CASES = [
    *(Case(NonZero(t), [(F32, (3, 4, 2))], EXACT, low=0, high=1) for t in (I32, I64)),
    Case(NonZero(), [(BOOL, (7,))], EXACT),
    Case(NonZero(), [(I32, ("n=5", 3))], EXACT, low=0, high=1),
    Case(NonZero(), [(F32, ("n=3", 4, "m=7"))], EXACT, low=0, high=1),
    Case(NonZero(), [(F32, ("n=3", "m=5"))], EXACT, low=0, high=0),
    *(Case(Unique(s), [(I32, (5, 4)), *a], EXACT, low=0, high=1, outputs=4) for s in (True, False) for a in AXES),
    Case(Unique(index_element_type=I32, count_element_type=I32), [(F32, (9,))], EXACT, low=0, high=1, outputs=4),
    *(Case(Unique(s), [(BOOL, (5, 4)), *a], EXACT, low=0, high=1, outputs=4) for s in (True, False) for a in AXES),
    Case(NonZero(), [(F32, ())], EXACT),
    Case(NonZero(), [(I32, ())], EXACT, low=0, high=0),
]
