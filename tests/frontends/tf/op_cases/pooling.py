"""Pooling and bias."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(12)
X, DEEP = N.f32(2, 7, 6, 3), N.f32(1, 4, 5, 6, 2)
WINDOWS = [
    ([1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
    ([1, 3, 3, 1], [1, 2, 2, 1], "SAME"),
    ([1, 3, 2, 1], [1, 1, 1, 1], "SAME"),
    ([1, 2, 2, 1], [1, 3, 3, 1], "SAME"),
]
UNIQUE = np.random.default_rng(0).permutation(2 * 7 * 6 * 3).reshape(2, 7, 6, 3).astype(np.float32)

CASES = [
    *(case(op, X, ksize=k, strides=s, padding=p) for op in ("MaxPool", "AvgPool") for k, s, p in WINDOWS),
    case(
        "MaxPool",
        X,
        ksize=[1, 3, 3, 1],
        strides=[1, 2, 2, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0],
    ),
    case("MaxPool", N.ints(1, 4, 4, 2), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
    *(case("MaxPoolV2", X, Known(k, np.int32), Known(s, np.int32), padding=p) for k, s, p in WINDOWS[:2]),
    *(
        case(op, DEEP, ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding=p)
        for op in ("MaxPool3D", "AvgPool3D")
        for p in ("SAME", "VALID")
    ),
    *(
        case("MaxPoolWithArgmax", UNIQUE, ksize=k, strides=s, padding=p, include_batch_in_index=b, Targmax=t)
        for (k, s, p), b, t in zip(WINDOWS, (False, True) * 2, (np.int64, np.int64, np.int32, np.int64), strict=True)
    ),
    case("BiasAdd", X, N.f32(3)),
    case("BiasAdd", N.f32(2, 3), N.f32(3)),
    case("BiasAdd", N.f32(2, 3, 4, 5), N.f32(3), data_format="NCHW"),
    case("BiasAdd", N.f32(2, 3, 4), N.f32(3), data_format="NCHW"),
    case("BiasAddV1", N.f32(2, 3), N.f32(3)),
    case("MaxPool", X.astype(np.float16), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
    case("AvgPool", X.astype(np.float64), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
    case("MaxPool", N.ints(1, 4, 4, 2, dtype=np.int64), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME"),
    case("BiasAdd", N.ints(2, 3), N.ints(3)),
]
