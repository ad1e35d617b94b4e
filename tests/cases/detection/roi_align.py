"""Cases of aot/opset/detection/roi_align.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.roi_align import Aligned, CornerMaxAlign, Pooling, ROIAlign, ROIAlign_3, ROIAlignRotated
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32, F16 = DType.F32, DType.F16
ROIS = np.array([[1, 2, 8, 9], [-3, 0, 30, 7.5], [4, 4, 4.5, 4.2]], np.float32)
TURNED = np.array([[5, 4, 6, 3, 0.7], [1, 1, 12, 5, -2]], np.float32)
BATCHES = np.array([1, 0, 1], np.int32)

CASES = [
    *(
        Case(ROIAlign(3, 2, ratio, 0.75, how, mode), [(F32, (2, 3, 10, 8)), ROIS, BATCHES], LOOSE)
        for ratio in (0, 2)
        for how in Pooling
        for mode in Aligned
    ),
    *(Case(ROIAlign(2, 2, 2, 1.0, how), [(F32, (2, 83, 10, 8)), ROIS, BATCHES], LOOSE, long=True) for how in Pooling),
    *(
        Case(CornerMaxAlign(2, 3, n), [(F32, (2, c, 10, 8)), ROIS, BATCHES], LOOSE, long=c > 3)
        for n, c in ((0, 3), (2, 83))
    ),
    Case(ROIAlign(2, 2, 2, 1.0), [(F32, (2, "c=21", 10, 8)), ROIS, BATCHES], LOOSE),
    *(
        Case(ROIAlign_3(2, 2, 2, 1.0, how), [(F16, (2, 3, 10, 8)), ROIS.astype(np.float16), BATCHES], LOOSE)
        for how in Pooling
    ),
    *(
        Case(ROIAlignRotated(2, 3, ratio, 1.0, clockwise), [(F32, (2, 3, 10, 8)), TURNED, BATCHES[:2]], LOOSE)
        for ratio in (0, 2)
        for clockwise in (False, True)
    ),
]
