"""Cases of aot/opset/movement/sparse.py."""

from __future__ import annotations

import numpy as np

from aot.opset.movement.sparse import SparseFillEmptyRows
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, I32, I64 = DType.F32, DType.I32, DType.I64
SHAPE = np.array([5, 4], np.int64)

CASES = [
    Case(SparseFillEmptyRows(), [(F32, (6,)), SHAPE, (I64, (6, 2)), (F32, ())], EXACT, low=0, high=3, outputs=3),
    Case(SparseFillEmptyRows(), [(I32, (3,)), SHAPE, (I64, (3, 2)), (I32, ())], EXACT, low=0, high=4, outputs=3),
]
