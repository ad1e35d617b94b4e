"""Boxes without those that overlap better ones."""

import numpy as np
from make_op_cases import Known, Numbers, Row, case

N = Numbers(16)
CORNERS = N.f32(12, 2, low=0, high=8)
BOXES = np.concatenate([CORNERS, CORNERS + N.f32(12, 2, low=1, high=4)], 1)
BOXES[3] = BOXES[3][[2, 3, 0, 1]]
SCORES = (np.random.default_rng(3).permutation(12) / 12).astype(np.float32)
MOST, SHARE, LEAST = Known(6, np.int32), Known(0.3, np.float32), Known(0.25, np.float32)
MANY = (np.stack([BOXES, BOXES[::-1]]) / 12).astype(np.float32)  # [2, 12, 4]
CLASSES = (np.random.default_rng(4).permutation(72).reshape(2, 12, 3) / 72).astype(np.float32)
OWN = np.stack([MANY, MANY[:, ::-1], MANY + 0.05], 2).astype(np.float32)
LIMITS = [Known(4, np.int32), Known(7, np.int32), SHARE, LEAST]

CASES = [
    case("NonMaxSuppression", BOXES, SCORES, MOST, iou_threshold=0.3),
    case("NonMaxSuppressionV2", BOXES, SCORES, MOST, SHARE),
    case("NonMaxSuppressionV3", BOXES, SCORES, MOST, SHARE, LEAST),
    case("NonMaxSuppressionV3", BOXES, SCORES, np.int32(3), np.float32(0.5), np.float32(0.125)),
    case("NonMaxSuppressionV4", BOXES, SCORES, Known(10, np.int32), SHARE, LEAST),
    case("NonMaxSuppressionV4", BOXES, SCORES, Known(15, np.int32), SHARE, LEAST, pad_to_max_output_size=True),
    case("NonMaxSuppressionV5", BOXES, SCORES, MOST, SHARE, LEAST, Known(0.0, np.float32)),
    case(
        "NonMaxSuppressionV5", BOXES, SCORES, Known(10, np.int32), Known(0.9, np.float32), LEAST, Known(0.5, np.float32)
    ),
    case(
        "NonMaxSuppressionV5",
        BOXES,
        SCORES,
        Known(15, np.int32),
        SHARE,
        LEAST,
        Known(0.0, np.float32),
        pad_to_max_output_size=True,
    ),
    case("CombinedNonMaxSuppression", Row(MANY[:, :, None], 2), CLASSES, *LIMITS),
    case(
        "CombinedNonMaxSuppression",
        Row(MANY[:, :, None], 2),
        CLASSES,
        Known(4, np.int32),
        Known(20, np.int32),
        SHARE,
        LEAST,
    ),
    case(
        "CombinedNonMaxSuppression",
        Row(MANY[:, :, None], 2),
        CLASSES,
        Known(4, np.int32),
        Known(50, np.int32),
        SHARE,
        LEAST,
        pad_per_class=True,
        clip_boxes=False,
    ),
    case("CombinedNonMaxSuppression", Row(OWN, 2), CLASSES, *LIMITS),
]
