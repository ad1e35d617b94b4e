"""Cases of aot/opset/detection/proposals/generate_proposals.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.proposals.generate_proposals import GenerateProposals
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32, I32, I64 = DType.F32, DType.I32, DType.I64
IMAGES = np.array([[64, 80, 1.5], [48, 50, 1.0]], np.float32)
BOTH = np.array([[64, 80, 1.5, 1.2], [48, 50, 1.0, 4.0]], np.float32)
ANCHORS = np.random.default_rng(3).uniform(0, 30, (3, 4, 2, 4)).astype(np.float32) + np.array([0, 0, 30, 30], "f4")
DELTAS, SCORES = (F32, (2, 8, 3, 4)), (F32, (2, 2, 3, 4))
FORMS = [(14, 6, True, 1.0, I64), (50, 30, False, 0.8, I32), (0, 5, True, 1.0, I64)]

CASES = [
    *(
        Case(
            GenerateProposals(10.0, 0.7, most, keep, normalized, eta, number),
            [images, ANCHORS, DELTAS, SCORES],
            LOOSE,
            low=-1,
            high=1,
            outputs=3,
        )
        for most, keep, normalized, eta, number in FORMS
        for images in (IMAGES, BOTH)
    ),
    Case(
        GenerateProposals(2.0, 0.6, 20, 8),
        [IMAGES[:1], ANCHORS, (F32, ("n=1", 8, 3, 4)), (F32, ("n=1", 2, 3, 4))],
        LOOSE,
        low=-1,
        high=1,
        outputs=3,
    ),
    Case(
        GenerateProposals(0.0, 0.6, 20, 8),
        [(F32, ("n=2", "k=4")), ANCHORS, (F32, ("n=2", 8, 3, 4)), (F32, ("n=2", 2, 3, 4))],
        LOOSE,
        low=0.5,
        high=1,
        outputs=3,
    ),
]
