"""Normalisation, softmax and attention."""

from __future__ import annotations

import numpy as np

from aot.opset.products.attention import ScaledDotProductAttention
from aot.opset.reduction.normalization import (
    GRN,
    LRN,
    MVN,
    MVN_1,
    BatchNormInference,
    BatchNormInference_1,
    EpsMode,
    GroupNormalization,
    Inside,
    NormalizeL2,
)
from aot.opset.reduction.softmax import LogSoftmax, Softmax
from aot.runtime.abi import DType
from tests.cases import CLOSE, LOOSE, Case, Spec

F32, F16 = DType.F32, DType.F16
DATA: Spec = (F32, (2, 4, 3, 5))
RUN_TIME: Spec = (F32, ("n=2", 4, "h=3", 5))
VARIANCE = np.array([0.5, 1.5, 2.0, 0.25], np.float32)
VECTOR: Spec = (F32, (4,))


def axes(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def attention(*batch: int | str, rows: int | str = 3, keys: int | str = 5) -> list[Spec]:
    return [(F32, (*batch, rows, 8)), (F32, (*batch, keys, 8)), (F32, (*batch, keys, 6))]


CASES = [
    Case(BatchNormInference(1e-3), [DATA, VECTOR, VECTOR, VECTOR, VARIANCE], LOOSE),
    Case(BatchNormInference(1e-3), [(F32, (2, 4)), VECTOR, VECTOR, VECTOR, VARIANCE], LOOSE),
    Case(BatchNormInference_1(1e-3), [VECTOR, VECTOR, RUN_TIME, VECTOR, VARIANCE], LOOSE),
    Case(MVN(True, 1e-5), [DATA, axes(1, 2, 3)], LOOSE),
    Case(MVN(True, 1e-2, Inside.OUTSIDE_SQRT), [DATA, axes(-1)], LOOSE),
    Case(MVN(False), [DATA, axes(2, 3)], LOOSE),
    Case(MVN(True, 1e-5), [RUN_TIME, axes(2, 3)], LOOSE),
    Case(MVN(True, 1e-5), [(F16, (2, 4, 8)), axes(2)], LOOSE),
    Case(MVN_1(False, True, 1e-5), [DATA], LOOSE),
    Case(MVN_1(True, True, 1e-5), [DATA], LOOSE),
    Case(MVN_1(reduction_axes=(2,)), [DATA], LOOSE),
    Case(NormalizeL2(1e-6), [DATA, axes(1)], LOOSE),
    Case(NormalizeL2(0.5, EpsMode.MAX), [DATA, axes(2, -1)], LOOSE),
    Case(NormalizeL2(0.5), [DATA, axes()], LOOSE),
    Case(GRN(0.5), [DATA], LOOSE),
    Case(GRN(0.5), [(F32, (3, 4))], LOOSE),
    Case(GroupNormalization(2, 1e-5), [DATA, VECTOR, VECTOR], LOOSE),
    Case(GroupNormalization(4, 1e-5), [RUN_TIME, VECTOR, VECTOR], LOOSE),
    Case(LRN(0.1, 0.75, 1.0, 3), [DATA, axes(1)], LOOSE),
    Case(LRN(0.1, 0.5, 2.0, 3), [RUN_TIME, axes(2, 3)], LOOSE),
    Case(Softmax(1), [DATA], CLOSE),
    Case(Softmax(-1), [RUN_TIME], CLOSE),
    Case(Softmax(0), [(F16, (3, 7))], CLOSE),
    Case(Softmax(-1), [(F32, (2, 9))], CLOSE, low=-90, high=90),
    Case(LogSoftmax(-1), [(F32, (2, 9))], LOOSE),
    Case(LogSoftmax(1), [RUN_TIME], LOOSE),
    Case(ScaledDotProductAttention(), attention(2, 3), LOOSE),
    Case(ScaledDotProductAttention(causal=True), attention(2, rows=5), LOOSE),
    Case(ScaledDotProductAttention(causal=True), attention("n=2", rows="l=4", keys="l=4"), LOOSE),
    Case(ScaledDotProductAttention(), [*attention(2, 3), (F32, (1, 1, 3, 5))], LOOSE),
    Case(ScaledDotProductAttention(), [*attention(2), np.tri(3, 5, 1, np.bool_)], LOOSE),
    Case(ScaledDotProductAttention(), [*attention(2), np.array(0, np.float32), np.array(0.3, np.float32)], LOOSE),
    Case(ScaledDotProductAttention(), [*attention(1, 2), None, np.array(0.5, np.float32), (F32, (1, 2, 3, 1))], LOOSE),
]
