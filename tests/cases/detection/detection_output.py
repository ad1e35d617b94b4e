"""Cases of aot/opset/detection/detection_output.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.detection.detection_output import Code, DetectionOutput, DetectionOutput_1
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32 = DType.F32
PRIORS, CLASSES, IMAGES = 10, 3, 2
_rng = np.random.default_rng(5)
_low = _rng.uniform(0, 0.6, (PRIORS, 2))
BOXES = np.concatenate([_low, _low + _rng.uniform(0.2, 0.4, (PRIORS, 2))], 1).reshape(1, 1, -1).astype(np.float32)
WITH_VARIANCE = np.concatenate([BOXES, np.full_like(BOXES, 0.1)], 1)
PIXELS = np.concatenate([np.zeros((PRIORS, 1)), BOXES.reshape(PRIORS, 4) * 100], 1).reshape(1, 1, -1).astype(np.float32)


def case(op: DetectionOutput | DetectionOutput_1, priors: Array, first: bool = False) -> Case:
    places = 1 if op.share_location else CLASSES
    inputs = [(F32, (IMAGES, PRIORS * places * 4)), (F32, (IMAGES, PRIORS * CLASSES)), priors]
    inputs += [(F32, (IMAGES, PRIORS * 2)), (F32, (IMAGES, PRIORS * places * 4))] if first else []
    return Case(op, inputs, LOOSE, low=0, high=1)


COMMON = {"nms_threshold": 0.4, "confidence_threshold": 0.3}
CASES = [
    *(
        case(DetectionOutput(0, top, False, (keep,), code, (k + n) % 2 == 0, normalized=True, **COMMON), WITH_VARIANCE)
        for k, (top, keep) in enumerate(((-1, 6), (4, -1), (-1, 200)))
        for n, code in enumerate(Code)
    ),
    case(
        DetectionOutput_1(
            0, 5, True, (7,), Code.CENTER_SIZE, normalized=True, clip_before_nms=True, num_classes=3, **COMMON
        ),
        BOXES,
    ),
    case(DetectionOutput(0, 5, True, (7,), input_height=100, input_width=100, clip_after_nms=True, **COMMON), PIXELS),
    case(DetectionOutput(0, 8, False, (7,), normalized=True, decrease_label_id=True, **COMMON), WITH_VARIANCE),
    case(DetectionOutput(0, -1, False, (7,), normalized=True, objectness_score=0.4, **COMMON), WITH_VARIANCE, True),
]
