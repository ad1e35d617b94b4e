"""Elements that are read and written by index, and indices found by value."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.case import case, known, row
from tests.frontends.onnx.models import Numbers, i64

N = Numbers(3)
A, TALL = N.f32(2, 3, 4), N.f32(4, 3)
SORTED = np.array([[3, 1, 2, 3], [0, 3, 1, 1]], np.float32)
PLACES = np.array([[0, 2, 1], [1, 0, -1]], np.int64)
BOXES, SCORES = np.abs(N.f32(2, 5, 4)), np.abs(N.f32(2, 3, 5))
HOW = ("none", "add", "mul", "min", "max")

CASES = [
    case("Gather", TALL, PLACES),
    case("Gather", A, PLACES, axis=1),
    case("Gather", A, i64(1).reshape(()), axis=-1),
    case("GatherElements", A[0], PLACES[:, :3].repeat(2, 0)[:3].repeat(2, 1)[:, :4] % 3, axis=0),
    case("GatherElements", TALL, i64(0, 2, 1).reshape(1, 3), axis=-1),
    case("GatherND", A, row(i64(0, 1, 1, 2).reshape(2, 2))),
    case("GatherND", A, row(i64(1, 0).reshape(2, 1)), batch_dims=1),
    case("OneHot", i64(1, -1, 2), known(4), known([2.0, 5.0], np.float32)),
    case("OneHot", i64(1, 0, 9).reshape(3, 1), known([3]), known([0, 1], np.int64), axis=0),
    case("TopK", A, known([2]), outputs=2),
    case("TopK", A, known([2]), axis=1, largest=0, outputs=2),
    case("TopK", SORTED, known([3]), outputs=2),
    case("TopK", A, version=9, k=2, axis=1, outputs=2),
    case("TopK", A, version=6, k=2, axis=0, outputs=2),
    case("Compress", A, np.array([True, False, True]), axis=1),
    case("Compress", A, np.array([True, False, True, True, False])),
    case("NonZero", PLACES),
    case("NonZero", A > 0),
    case("Unique", N.rng.integers(0, 4, (3, 4)), outputs=4),
    case("Unique", N.rng.integers(0, 2, (6, 2)), axis=0, outputs=4),
    case("Unique", SORTED, sorted=0, outputs=4),
    case("NonMaxSuppression", BOXES, SCORES, known([2]), known([0.3], np.float32), known([0.5], np.float32)),
    case("NonMaxSuppression", BOXES, SCORES, known([3]), known([0.5], np.float32), center_point_box=1),
    *(case("ScatterElements", TALL, PLACES, N.f32(2, 3), axis=0, reduction=how) for how in HOW),
    case("ScatterElements", TALL, i64(2, 0).reshape(2, 1), N.f32(2, 1), axis=-1),
    case("Scatter", TALL, PLACES, N.f32(2, 3), version=10, axis=0),
    *(case("ScatterND", TALL, row(i64(1, 3).reshape(2, 1)), N.f32(2, 3), reduction=how) for how in HOW),
    case("ScatterND", A, row(i64(0, 1, 1, 2).reshape(2, 2)), N.f32(2, 4)),
    case("TensorScatter", N.f32(2, 5, 3), N.f32(2, 2, 3), i64(1, 3)),
    case("TensorScatter", N.f32(2, 5, 3), N.f32(2, 2, 3), i64(4, 3), mode="circular"),
    case("TensorScatter", N.f32(2, 5, 3), N.f32(2, 2, 3)),
    case("ReverseSequence", N.f32(4, 3, 2), i64(3, 1, 4), time_axis=0, batch_axis=1),
    case("ReverseSequence", N.f32(3, 4, 2), i64(3, 1, 4), time_axis=1, batch_axis=0),
]
