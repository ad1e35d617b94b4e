"""Cases of aot/opset/detection/prior_boxes.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.prior_boxes import (
    ExperimentalDetectronPriorGridGenerator,
    PriorBox,
    PriorBox_1,
    PriorBoxClustered,
)
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32, I64 = DType.F32, DType.I64
GRID, IMAGE = np.array([3, 4]), np.array([60, 100])
FOUR = (0.1, 0.1, 0.2, 0.2)

CASES = [
    *(
        Case(op(0.5, (0.1,), clip, (16.0,), (38.0,), (2.0,), flip, step), [GRID, (I64, (2,))], LOOSE, low=50, high=90)
        for op in (PriorBox, PriorBox_1)
        for clip, flip, step in ((False, True, 0.0), (True, False, 16.0))
    ),
    *(
        Case(PriorBox(0.5, FOUR, False, (0.2, 0.3), (0.5,), (3.0,), True, step, False), [GRID, IMAGE], LOOSE)
        for step in (-1.0, 0.1)
    ),
    Case(
        PriorBox(0.5, FOUR, False, (16.0,), (38.0,), (2.0,), True, 16.0, min_max_aspect_ratios_order=False),
        [GRID, IMAGE],
        LOOSE,
    ),
    Case(PriorBox(0.5, fixed_size=(32.0, 64.0), density=(2.0, 1.0), step=16.0), [GRID, IMAGE], LOOSE),
    Case(PriorBox(0.5, fixed_size=(32.0,), fixed_ratio=(1.0, 2.0), density=(2.0,)), [GRID, IMAGE], LOOSE),
    *(
        Case(
            PriorBoxClustered(0.5, (0.1,), clip, (16.0, 30.0), (20.0, 8.0), step),
            [GRID, (I64, (2,))],
            LOOSE,
            low=50,
            high=90,
        )
        for clip, step in ((False, 8.0), (True, 0.0))
    ),
    *(
        Case(
            ExperimentalDetectronPriorGridGenerator(flat, stride_x=s, stride_y=s),
            [(F32, (3, 4)), (F32, (1, 2, 3, 5)), (F32, (1, 3, 48, 64))],
            LOOSE,
        )
        for flat in (True, False)
        for s in (0.0, 16.0)
    ),
]
