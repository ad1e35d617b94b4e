"""Cases of aot/opset/detectron.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detectron import ExperimentalDetectronROIFeatureExtractor, ExperimentalDetectronTopKROIs
from runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case

F32 = DType.F32
ROIS = np.array([[1, 2, 80, 90], [-30, 0, 300, 175], [4, 4, 4, 9], [0, 0, 30, 20], [9, 9, 600, 600]], np.float32)

CASES = [
    Case(ExperimentalDetectronTopKROIs(4), [(F32, (10, 4)), (F32, (10,))], EXACT),
    *(
        Case(
            ExperimentalDetectronROIFeatureExtractor(3, ratio, (4, 8, 16), aligned),
            [ROIS, (F32, (1, 3, 16, 16)), (F32, (1, 3, 8, 8)), (F32, (1, 3, 4, 4))],
            LOOSE,
            outputs=2,
        )
        for aligned in (False, True)
        for ratio in (0, 2)
    ),
]
