"""Cases of aot/opset/reduction/scan.py."""

from __future__ import annotations

import numpy as np

from aot.opset.reduction.scan import CumProd, CumSum
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

CASES = [
    *(
        Case(CumSum(exclusive=e, reverse=r), [(DType.F32, (2, "n=3", 4)), np.array(a)])
        for e in (False, True)
        for r in (False, True)
        for a in (0, 1, -1)
    ),
    *(Case(CumProd(e, r), [(DType.F32, (2, "n=3", 4)), np.array(1)]) for e in (False, True) for r in (False, True)),
    Case(CumProd(), [np.array([[1, 2, 3], [4, 5, 6]]), np.array(0, np.int32)], EXACT),
    Case(CumSum(), [(DType.I8, (4, 5))], EXACT),
    *(
        Case(CumSum(exclusive=e, reverse=not e), [(DType.F32, shape), np.array(a)])
        for e in (False, True)
        for shape, a in (((3, 1300), 0), ((2, 5, "n=60", 16), 1), (("n=2", 3, 7, 9), -3), ((4, 131), 0))
    ),
    Case(CumSum(), [(DType.F16, (4, 5)), np.array([1], np.int32)]),
]
