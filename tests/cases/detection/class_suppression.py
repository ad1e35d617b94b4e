"""Cases of aot/opset/detection/suppression/class_suppression.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.suppression.class_suppression import Decay, MatrixNms, MulticlassNms
from aot.opset.detection.suppression.selection import Sorting
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, LOOSE, Case

F32, I32 = DType.F32, DType.I32
CORNERS = np.random.default_rng(5).uniform(0, 5, (2, 12, 2))
BOXES = np.concatenate([CORNERS, CORNERS + np.random.default_rng(6).uniform(1, 4, (2, 12, 2))], 2).astype(np.float32)
OWN = BOXES.reshape(3, 8, 4)
CROWD = np.random.default_rng(7).uniform(0, 4, (1, 90, 4)).astype(np.float32) + np.array([0, 0, 3, 3], np.float32)
SCORES, NUMBERS = (F32, (2, 3, 12)), np.array([3, 0, 4], np.int32)

CASES = [
    *(
        Case(MatrixNms(s, across, I32, 0.2, 9, keep, 1, across, d), [BOXES, SCORES], LOOSE, low=0, high=1, outputs=3)
        for s in Sorting
        for across, keep, d in ((True, -1, Decay.GAUSSIAN), (False, 5, Decay.LINEAR))
    ),
    Case(MatrixNms(post_threshold=0.3), [BOXES, SCORES], CLOSE, low=0, high=1, outputs=3),
    *(
        Case(
            MulticlassNms(
                s,
                across,
                score_threshold=0.2,
                nms_top_k=9,
                keep_top_k=keep,
                normalized=across,
                iou_threshold=0.6,
                nms_eta=eta,
            ),
            [BOXES, SCORES],
            EXACT,
            low=0,
            high=1,
            outputs=3,
        )
        for s in Sorting
        for across, keep, eta in ((True, -1, 0.8), (False, 5, 1.0))
    ),
    Case(MulticlassNms(iou_threshold=0.3), [OWN, (F32, (3, 8)), NUMBERS], EXACT, low=0, high=1, outputs=3),
    Case(MulticlassNms(iou_threshold=0.3), [BOXES[:1], (F32, ("n=1", 3, 12))], EXACT, low=0, high=1, outputs=3),
    *(
        Case(kind(nms_top_k=60), [CROWD, (F32, (1, 2, 90))], LOOSE, low=0, high=1, outputs=3)
        for kind in (MatrixNms, MulticlassNms)
    ),
    Case(MatrixNms(score_threshold=2.0), [BOXES, SCORES], EXACT, low=0, high=1, outputs=3),
]
