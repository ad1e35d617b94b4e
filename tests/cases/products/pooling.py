"""Pooling by windows, and adaptive pooling."""

from __future__ import annotations

import numpy as np

from aot.opset.products.adaptive_pooling import AdaptiveAvgPool, AdaptiveMaxPool
from aot.opset.products.pool_windows import AutoPad, Rounding
from aot.opset.products.pooling import AvgPool, AvgPool_16, DilatedMaxPool, MaxPool, MaxPool_8
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, I32, U8, I8 = DType.F32, DType.F16, DType.I32, DType.U8, DType.I8
CEIL, TORCH, UPPER, LOWER = Rounding.CEIL, Rounding.CEIL_TORCH, AutoPad.SAME_UPPER, AutoPad.SAME_LOWER
TWO, ONE = (2, 2), (1, 1)
DATA = (F32, (2, 3, 7, 8))
RUN_TIME = (F32, ("n=2", 3, "h=7", "w=6"))
SPATIAL = np.array([3, 5], np.int64)

CASES = [
    Case(AvgPool(TWO, kernel=TWO), [DATA]),
    Case(AvgPool(kernel=(7, 8)), [DATA]),
    Case(AvgPool(ONE, ONE, ONE, (3, 3), exclude_pad=True), [DATA]),
    Case(AvgPool(ONE, ONE, ONE, (3, 3), exclude_pad=False), [DATA]),
    Case(AvgPool(TWO, (0, 0), ONE, (3, 2), CEIL, exclude_pad=True), [DATA]),
    Case(AvgPool(TWO, ONE, ONE, (3, 3), TORCH, exclude_pad=False), [DATA]),
    Case(AvgPool(TWO, kernel=(3, 3), auto_pad=UPPER), [DATA]),
    Case(AvgPool(TWO, kernel=(3, 3), auto_pad=LOWER, exclude_pad=False), [DATA]),
    Case(AvgPool((2,), (1,), (1,), (3,)), [(F32, (1, 2, 9))]),
    Case(AvgPool((1, 2, 1), kernel=(2, 2, 2)), [(F32, (1, 2, 3, 4, 5))]),
    Case(AvgPool(ONE, ONE, ONE, (3, 3)), [RUN_TIME]),
    Case(AvgPool(TWO, ONE, ONE, (3, 3), TORCH), [RUN_TIME]),
    Case(AvgPool(TWO, kernel=(2, 3)), [(U8, (1, 2, 6, 7))], EXACT, high=255),
    Case(AvgPool(TWO, kernel=(2, 3)), [(F16, (1, 2, 6, 7))]),
    Case(AvgPool_16(ONE, ONE, ONE, (3, 2), dilations=(2, 3)), [DATA]),
    Case(MaxPool(TWO, kernel=TWO), [DATA], EXACT),
    Case(MaxPool(TWO, ONE, ONE, (3, 3), CEIL), [DATA], EXACT),
    Case(MaxPool(TWO, kernel=(3, 3), auto_pad=LOWER), [DATA], EXACT),
    Case(MaxPool(TWO, ONE, ONE, (3, 3)), [RUN_TIME], EXACT),
    Case(MaxPool((2,), (1,), (1,), (3,)), [(I8, (1, 2, 9))], EXACT, low=-128, high=-1),
    Case(MaxPool((1, 2, 1), kernel=(2, 2, 2)), [(F32, (1, 2, 3, 4, 5))], EXACT),
    Case(MaxPool_8(TWO, ONE, ONE, (3, 3), TORCH), [DATA], EXACT, outputs=2),
    Case(MaxPool_8(ONE, ONE, (0, 0), TWO, dilations=(2, 1), axis=2), [(I32, (2, 3, 7, 8))], EXACT, outputs=2),
    Case(MaxPool_8(kernel=ONE, index_element_type=DType.I32), [(F32, (1, 2, 3, 3))], EXACT, outputs=2),
    Case(MaxPool_8(TWO, kernel=TWO, axis=1), [RUN_TIME], EXACT, outputs=2),
    Case(DilatedMaxPool(ONE, ONE, ONE, TWO, dilations=(2, 3)), [DATA], EXACT),
    Case(AdaptiveAvgPool(), [DATA, np.array([1, 1], np.int64)], CLOSE),
    Case(AdaptiveAvgPool(), [DATA, SPATIAL], CLOSE),
    Case(AdaptiveAvgPool(), [(F32, (1, 2, 9)), np.array([3], np.int64)], CLOSE),
    Case(AdaptiveAvgPool(), [RUN_TIME, SPATIAL], CLOSE),
    Case(AdaptiveMaxPool(), [DATA, SPATIAL], EXACT, outputs=2),
    *(Case(AdaptiveMaxPool(), [(t, (1, 2, 7, 5)), SPATIAL], EXACT, outputs=2) for t in (U8, DType.I64)),
    *(Case(AdaptiveAvgPool(), [(t, (1, 2, 7, 5)), SPATIAL], EXACT) for t in (U8, DType.I64)),
    Case(AdaptiveMaxPool(DType.I32), [(F32, (1, 2, 4, 6, 5)), np.array([2, 3, 4], np.int64)], EXACT, outputs=2),
    Case(MaxPool((3, 2), kernel=ONE, rounding_type=CEIL, auto_pad=UPPER), [(F32, (1, 2, 6, 8))], EXACT),
    Case(AvgPool((3, 2), kernel=ONE, rounding_type=CEIL, auto_pad=LOWER), [(F32, (1, 2, 6, 8))]),
    *(Case(MaxPool_8(ONE, kernel=TWO, axis=a), [(U8, (2, 3, 4, 5))], EXACT, low=0, high=1, outputs=2) for a in (-1, 2)),
    Case(MaxPool_8((2, 2), kernel=ONE, rounding_type=CEIL), [(F32, (1, 2, 6, 8))], EXACT, outputs=2),
]
