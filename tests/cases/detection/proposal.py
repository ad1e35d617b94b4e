"""Cases of aot/opset/detection/proposals/proposal.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.proposals.proposal import Proposal, Proposal_1
from aot.opset.detection.proposals.single_image import ExperimentalDetectronGenerateProposalsSingleImage
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32 = DType.F32
SHAPES = [(F32, (2, 12, 3, 4)), (F32, (2, 24, 3, 4))]
IMAGE, BOTH = np.array([64, 80, 1.5], np.float32), np.array([[64, 80, 1.5, 1.2]], np.float32)
ANCHORS = np.random.default_rng(3).uniform(0, 30, (24, 4)).astype(np.float32) + np.array([0, 0, 30, 30], np.float32)

CASES = [
    *(
        Case(
            Proposal(16, 20, keep, 0.5, 16, 4, (0.5, 1.0, 2.0), (1.0, 2.0), clip, not clip, clip, 2.0, 3.0, name),
            [*SHAPES, image],
            LOOSE,
            low=-1,
            high=1,
        )
        for name in ("", "tensorflow")
        for clip in (True, False)
        for keep, image in ((8, IMAGE), (30, BOTH))
    ),
    Case(Proposal_1(16, 50, 8, 0.6, 16, 4, (0.5, 1.0, 2.0), (1.0, 2.0)), [*SHAPES, IMAGE], LOOSE, low=-1, high=1),
    *(
        Case(
            ExperimentalDetectronGenerateProposalsSingleImage(2.0, 0.6, keep, 14),
            [IMAGE, ANCHORS, (F32, (8, 3, 4)), (F32, (2, 3, 4))],
            LOOSE,
            low=-1,
            high=1,
        )
        for keep in (4, 20)
    ),
]
