"""Cases of aot/opset/recurrent/ctc.py."""

from __future__ import annotations

import numpy as np

from aot.opset.recurrent.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case

F32, I32, I64 = DType.F32, DType.I32, DType.I64
MASK = np.array([[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]], np.float32).T
LENGTHS = np.array([8, 5], np.int32)
LABELS = np.array([[1, 1, 2, 1, 0, 0, 0, 0], [3, 2, 2, 0, 0, 0, 0, 0]], np.int32)
TIES = np.random.default_rng(1).integers(0, 3, (2, 8, 50)).astype(np.float32)  # the first one of equals is best
COUNTS = np.array([4, 3], np.int32)
LONG, MANY = np.array([60, 51, 40], np.int32), np.random.default_rng(2).integers(0, 8, (3, 60)).astype(np.int32)

CASES = [
    *(Case(CTCGreedyDecoder(m), [(F32, (8, 2, 3)), MASK], EXACT) for m in (True, False)),
    *(Case(CTCGreedyDecoder(), [(F32, (8, 2, n)), MASK], EXACT) for n in (15, 16, 37)),
    Case(CTCGreedyDecoder(), [(F32, (8, 2, "c=40")), MASK], EXACT),
    Case(CTCGreedyDecoder(), [(DType.F64, (8, 2, 21)), MASK.astype(np.float64)], EXACT),
    Case(CTCGreedyDecoderSeqLen(), [TIES, LENGTHS, (I32, (1,))], EXACT, outputs=2, low=20, high=21),
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
    *(
        Case(CTCLoss(ctc_merge_repeated=merge), [(F32, (3, "t=60", 9)), LONG, MANY, LONG // 3], LOOSE, long=True)
        for merge in (True, False)
    ),
    Case(CTCLoss(), [(F32, (2, 8, 5)), LENGTHS, LABELS, np.array([0, 1], np.int32)], LOOSE),
]
