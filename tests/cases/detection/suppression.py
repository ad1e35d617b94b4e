"""Cases of aot/opset/detection/suppression/suppression.py."""

from __future__ import annotations

import numpy as np

from aot.opset.detection.suppression.corners import Encoding
from aot.opset.detection.suppression.suppression import (
    NonMaxSuppression,
    NonMaxSuppression_1,
    NonMaxSuppression_3,
    NonMaxSuppression_4,
    PaddedNonMaxSuppression,
)
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, I32 = DType.F32, DType.I32
MOST, LEAST = np.array(3), np.array(0.3, np.float32)
OVERLAP, SIGMA = np.array(0.2, np.float32), np.array(0.5, np.float32)
INPUTS = [(F32, (2, 12, 4)), (F32, (2, 3, 12)), MOST, OVERLAP, LEAST]
CROWD = np.random.default_rng(3).uniform(0, 1, (1, 150, 4)).astype(np.float32)
EQUAL = (np.random.default_rng(4).integers(-3, 9, (1, 2, 150)) / 8).astype(np.float32)  # many boxes have one score
LIMITS = np.array(0.5, np.float32), np.array(-0.2, np.float32)

CASES = [
    *(Case(NonMaxSuppression_4(e, s, I32), INPUTS, EXACT, low=0.1, high=1) for e in Encoding for s in (True, False)),
    *(
        Case(NonMaxSuppression_3(e), [(F32, (1, 12, 4)), (F32, (1, 3, 12)), MOST, OVERLAP], EXACT, low=0, high=1)
        for e in Encoding
    ),
    *(Case(NonMaxSuppression(e), INPUTS, EXACT, low=0.1, high=1, outputs=3) for e in Encoding),
    Case(NonMaxSuppression(), [*INPUTS, SIGMA], CLOSE, low=0.1, high=1, outputs=3),
    *(Case(PaddedNonMaxSuppression(e, False, I32), INPUTS, EXACT, low=0.1, high=1, outputs=3) for e in Encoding),
    Case(PaddedNonMaxSuppression(), [*INPUTS, SIGMA], CLOSE, low=0.1, high=1, outputs=3),
    *(Case(NonMaxSuppression(), [CROWD, EQUAL, np.array(n), *LIMITS], EXACT, outputs=3) for n in (7, 150)),
    Case(
        NonMaxSuppression_4(),
        [(F32, (1, "n=60", 4)), (F32, (1, 2, "n=60")), np.array(40), *LIMITS],
        EXACT,
        low=0.1,
        high=1,
    ),
    Case(NonMaxSuppression_1(), [(F32, (1, 12, 4)), (F32, (1, 1, 12)), np.array(20)], EXACT, low=0, high=1),
]
