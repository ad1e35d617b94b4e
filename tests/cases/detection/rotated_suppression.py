"""Cases of aot/opset/detection/suppression/rotated_suppression.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.suppression.rotated_suppression import NMSRotated, PaddedNMSRotated
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, I32 = DType.F32, DType.I32
LIMITS = [np.array(6), np.array(0.3, np.float32), np.array(0.1, np.float32)]
FAR = np.random.default_rng(4).uniform(-1, 1, (2, 14, 5)).astype(np.float32)
BOXES = FAR * np.array([4, 4, 1, 2, 3], np.float32) + np.array([0, 0, 2, 4, 0], np.float32)
SAME = np.repeat(BOXES[:1, :3], 3, 1)  # boxes that lie on each other, side on side

CASES = [
    *(
        Case(NMSRotated(descending, I32, way), [BOXES, (F32, (2, 3, 14)), *LIMITS], EXACT, low=0, high=1, outputs=3)
        for descending in (True, False)
        for way in (True, False)
    ),
    Case(NMSRotated(), [SAME, (F32, (1, 2, 9)), *LIMITS], EXACT, low=0, high=1, outputs=3),
    Case(PaddedNMSRotated(), [BOXES[:1], (F32, (1, "n=3", 14)), *LIMITS], EXACT, low=0, high=1, outputs=3),
]
