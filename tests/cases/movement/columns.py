"""Cases of aot/opset/movement/columns.py."""

from __future__ import annotations

import numpy as np

from aot.opset.movement.columns import Col2Im
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, I32 = DType.F32, DType.I32
SIZE, KERNEL = np.array([5, 6]), np.array([2, 3])

CASES = [
    Case(Col2Im(), [(F32, (2, 12, 16)), SIZE, KERNEL], CLOSE),
    Case(Col2Im(), [(I32, (12, 16)), SIZE, KERNEL], EXACT),
    Case(Col2Im((2, 2), (2, 1), (1, 0), (0, 2)), [(F32, ("n=2", 6, 6)), SIZE, KERNEL], CLOSE),
    Case(Col2Im(strides=(3, 2), pads_begin=(2, 1), pads_end=(1, 1)), [(F32, (1, "c=18", 9)), SIZE, KERNEL], CLOSE),
]
