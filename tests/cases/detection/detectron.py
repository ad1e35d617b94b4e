"""Cases of aot/opset/detection/detectron.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import numpy_dtype
from aot.opset.detection.detectron import (
    ExperimentalDetectronDetectionOutput,
    ExperimentalDetectronROIFeatureExtractor,
    ExperimentalDetectronTopKROIs,
)
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case

F32, F64 = DType.F32, DType.F64
ODD = np.resize([0.5, -0.0, np.inf, -1.5, 0.0, np.nan, -np.inf, 0.25, 1e-40], 40)  # equal ones, and none
ROIS = np.array([[1, 2, 80, 90], [-30, 0, 300, 175], [4, 4, 4, 9], [0, 0, 30, 20], [9, 9, 600, 600]], np.float32)
PICTURE = np.array([[40, 50, 1]], np.float32)


def output(most: int, per_class: int = 5) -> ExperimentalDetectronDetectionOutput:
    return ExperimentalDetectronDetectionOutput(0.3, 0.4, 4, per_class, most, 2.0, (10.0, 10.0, 5.0, 5.0))


CASES = [
    *(
        Case(output(*most), [ROIS, (F32, (5, 16)), (F32, (5, 4)), PICTURE], LOOSE, outputs=3)
        for most in ((4,), (30,), (30, 1))
    ),
    Case(output(6), [(F32, ("n=9", 4)), (F32, ("n=9", 16)), (F32, ("n=9", 4)), PICTURE], LOOSE, outputs=3),
    *(Case(ExperimentalDetectronTopKROIs(n), [(F32, (10, 4)), (F32, (10,))], EXACT) for n in (4, 13)),
    *(Case(ExperimentalDetectronTopKROIs(30), [(t, (40, 4)), ODD.astype(numpy_dtype(t))], EXACT) for t in (F32, F64)),
    Case(ExperimentalDetectronTopKROIs(12), [(F32, ("n=9", 4)), (F32, ("n=9",))], EXACT),
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
