"""Cases of aot/opset/ctc.py."""

from __future__ import annotations

import numpy as np

from aot.opset.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss
from runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case

F32, I64 = DType.F32, DType.I64
MASK = np.array([[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]], np.float32).T
LENGTHS = np.array([8, 5], np.int32)
LABELS = np.array([[1, 1, 2, 1, 0, 0, 0, 0], [3, 2, 2, 0, 0, 0, 0, 0]], np.int32)
COUNTS = np.array([4, 3], np.int32)

CASES = [
    *(Case(CTCGreedyDecoder(m), [(F32, (8, 2, 3)), MASK], EXACT) for m in (True, False)),
    *(
        Case(CTCGreedyDecoderSeqLen(m, I64), [(F32, (2, 8, 4)), LENGTHS, b], EXACT, outputs=2)
        for m in (True, False)
        for b in (None, np.array([0], np.int32))
    ),
    *(
        Case(CTCLoss(collapse, merge, unique), [(F32, (2, 8, 5)), LENGTHS, LABELS, COUNTS, blank], LOOSE)
        for collapse in (True, False)
        for merge in (True, False)
        for unique in (True, False)
        for blank in (None, np.array(4, np.int32))
    ),
    Case(CTCLoss(), [(F32, (2, 8, 5)), LENGTHS, LABELS, np.array([0, 1], np.int32)], LOOSE),
]
