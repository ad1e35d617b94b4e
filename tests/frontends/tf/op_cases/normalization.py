"""Normalisation, softmax, losses."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(13)
X = N.f32(2, 4, 5, 3)
P = [Known(N.f32(3, low=0.5, high=2)), Known(N.f32(3)), Known(N.f32(3)), Known(N.f32(3, low=0.5, high=3))]
NONE = Known(np.zeros(0, np.float32))
KINDS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
LABELS = np.array([2, 0, 3], np.int32)

CASES = [
    *(case(op, X, *P, is_training=False, epsilon=1e-3, outputs=[0]) for op in KINDS),
    case("FusedBatchNormV3", X, *P, is_training=False, outputs=[0]),
    *(case(op, X, P[0], P[1], NONE, NONE, is_training=True, epsilon=1e-3, outputs=[0, 1, 2]) for op in KINDS),
    case("FusedBatchNormV3", X, *P, is_training=True, exponential_avg_factor=0.25, outputs=[0, 1, 2]),
    case("FusedBatchNormV3", X.astype(np.float16), *P, is_training=False, outputs=[0]),
    case("LRN", N.f32(2, 3, 3, 9)),
    case("LRN", N.f32(1, 2, 2, 7), depth_radius=2, bias=2.0, alpha=0.5, beta=0.75),
    *(case(op, N.f32(*s)) for op in ("Softmax", "LogSoftmax") for s in ((3, 4), (2, 3, 4))),
    case("Softmax", N.f32(3, 4).astype(np.float16)),
    case(
        "SoftmaxCrossEntropyWithLogits",
        N.f32(3, 4),
        np.array([[0, 1, 0, 0], [0.25, 0.25, 0.5, 0], [1, 0, 0, 0]], np.float32),
    ),
    case("SparseSoftmaxCrossEntropyWithLogits", N.f32(3, 4), LABELS),
    case("SparseSoftmaxCrossEntropyWithLogits", N.f32(3, 4), LABELS.astype(np.int64)),
    case("Softmax", N.f32(3, 4).astype(np.float64)),
    case("LogSoftmax", N.f32(3, 4).astype(np.float64)),
]
