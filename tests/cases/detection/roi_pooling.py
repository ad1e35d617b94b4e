"""Cases of aot/opset/detection/roi_pooling.py and deformable_pooling.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.deformable_pooling import DeformablePSROIPooling
from aot.opset.detection.roi_pooling import Method, Positioned, PSROIPooling, ROIPooling
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32, F16 = DType.F32, DType.F16
ROIS = np.array([[0, 1, 2, 30, 36.3], [1, -5, 0, 60, 22], [0, 16, 16, 16, 17]], np.float32)
SHARES = np.array([[0, 0.1, 0.2, 0.7, 0.9], [1, 0, 0, 1, 0.5], [0, 0.5, 0.5, 1.4, 0.6]], np.float32)

CASES = [
    *(
        Case(ROIPooling((2, 3), (), 2, 3, 0.25), [(t, (2, 3, 10, 12)), ROIS.astype(n)], LOOSE)
        for t, n in ((F32, "f4"), (F16, "f2"))
    ),
    *(Case(ROIPooling((h, 2), (), h, 2, 1.0, Method.BILINEAR), [(F32, (2, 3, 10, 12)), SHARES], LOOSE) for h in (1, 3)),
    *(Case(PSROIPooling(2, 0.25, n), [(F32, (2, 2 * n * n, 10, 12)), ROIS], LOOSE) for n in (1, 3)),
    *(
        Case(PSROIPooling(2, 1.0, n, 3, 2, Positioned.BILINEAR), [(F32, (2, 12, 10, 12)), SHARES], LOOSE)
        for n in (1, 3)
    ),
    Case(DeformablePSROIPooling(2, 0.25, 3, spatial_bins_x=2, spatial_bins_y=3), [(F32, (2, 18, 10, 12)), ROIS], LOOSE),
    *(
        Case(
            DeformablePSROIPooling(2, 0.25, 3, spatial_bins_x=2, spatial_bins_y=2, trans_std=0.1, part_size=3),
            [(F32, (2, 18, 10, 12)), ROIS, (F32, (3, parts, 3, 3))],
            LOOSE,
        )
        for parts in (2, 4, "p=2", "p=4")
    ),
    Case(PSROIPooling(2, 1.0, 3), [(F32, (1, 18, 7, 7)), np.array([[0, 4.6, 0.7, 7, 8]], np.float32)], LOOSE),
]
