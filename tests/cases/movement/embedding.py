"""Cases of aot/opset/movement/embedding.py."""

from __future__ import annotations

import numpy as np

from aot.opset.movement.embedding import (
    Bag,
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
)
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

F32, F16, I32, I64 = DType.F32, DType.F16, DType.I32, DType.I64
TABLE = (F32, (8, 3))
PLACES = np.array([1, 7, 0, 3, 3], np.int32)
OFFSETS, IDS = np.array([0, 2, 2, 4], np.int32), np.array([0, 0, 2, 2, 3], np.int32)
SPARE = np.array(5, np.int32)

CASES = [
    Case(EmbeddingBagPackedSum(), [TABLE, np.array([[1, 2], [7, 0], [3, 3]])], CLOSE),
    Case(EmbeddingBagPackedSum(), [(F32, (8, 3, 2)), (I64, (3, 2)), (F32, (3, 2))], CLOSE, low=0, high=7),
    Case(EmbeddingBagPacked(Bag.MEAN), [(F16, (8, 3)), (I32, (4, 3))], CLOSE, low=0, high=7),
    Case(EmbeddingBagPacked(Bag.SUM), [TABLE, ((I32), ("b=3", 2)), (F32, ("b=3", 2))], CLOSE, low=0, high=7),
    Case(EmbeddingBagOffsetsSum(), [TABLE, PLACES, OFFSETS], CLOSE),
    Case(EmbeddingBagOffsetsSum(), [TABLE, PLACES, OFFSETS, SPARE, (F32, (5,))], CLOSE),
    Case(EmbeddingBagOffsets(Bag.MEAN), [(F32, (8, 3, 2)), PLACES, OFFSETS, np.array(-1, np.int32)], CLOSE),
    Case(EmbeddingBagOffsets(Bag.MEAN), [(F16, (8, 3)), PLACES, OFFSETS, SPARE], CLOSE),
    Case(EmbeddingBagOffsetsSum(), [(I32, (8, 2)), (I64, (6,)), np.array([0, 0, 3])], EXACT, low=0, high=7),
    Case(EmbeddingSegmentsSum(), [TABLE, PLACES, IDS, np.array(5, np.int32)], CLOSE),
    Case(EmbeddingSegmentsSum(), [TABLE, PLACES, IDS, np.array(5, np.int32), SPARE, (F32, (5,))], CLOSE),
    Case(EmbeddingSegmentsSum(), [TABLE, PLACES, IDS, np.array(2, np.int32), SPARE], CLOSE),
]
