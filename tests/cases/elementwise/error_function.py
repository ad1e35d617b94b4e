"""Cases of aot/opset/elementwise/error_function.py."""

from __future__ import annotations

import numpy as np

from aot.opset.elementwise.error_function import Erfc
from aot.runtime.abi import DType
from tests.cases import CLOSE, Case

FAR = np.array([-6, -2.5, -0.5, 0, 0.49, 0.51, 1, 3, 6, 9, np.inf, -np.inf], np.float32)
CASES = [
    Case(Erfc(), [FAR], CLOSE),
    Case(Erfc(), [(DType.F32, ("n=3", 5))], CLOSE),
    *(Case(Erfc(), [(dtype, (17,))]) for dtype in (DType.F16, DType.BF16)),
]
