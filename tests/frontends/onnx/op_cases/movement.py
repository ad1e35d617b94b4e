"""Operations that only move data, and shapes."""

from __future__ import annotations

import numpy as np
from onnx.numpy_helper import from_array

from tests.frontends.onnx.case import case, known, row
from tests.frontends.onnx.models import Numbers, i64

N = Numbers(4)
A, FLAT, ONES = N.f32(2, 3, 4), N.f32(4, 5), N.f32(1, 3, 1, 4)
IMAGE = N.f32(2, 8, 2, 3)

CASES = [
    case("Transpose", A),
    case("Transpose", A, perm=[1, 2, 0]),
    case("Concat", A, A[:1], N.f32(3, 3, 4), axis=0),
    case("Concat", A, A, axis=-1),
    case("Concat", A, axis=1),
    case("Split", A, known([1, 2]), axis=1, outputs=2),
    case("Split", FLAT, axis=1, num_outputs=2, outputs=2),
    case("Split", FLAT, axis=0, num_outputs=2, outputs=2),
    case("Split", FLAT, version=11, axis=1, split=[2, 3], outputs=2),
    case("Split", FLAT, version=13, axis=0, outputs=2),
    case("Slice", FLAT, known([-1, 1]), known([-9, 4]), known([0, 1]), known([-1, 2])),
    case("Slice", FLAT, known([1, 0]), known([3, 2**62])),
    case("Slice", FLAT, i64(1), i64(9), i64(1), i64(2), open=False),
    case("Slice", FLAT, version=9, starts=[1, 0], ends=[3, -1], axes=[0, 1]),
    case("Slice", FLAT, version=9, starts=[1], ends=[100]),
    *(case("Pad", FLAT, known([0, 1, 1, 2]), mode=m) for m in ("constant", "reflect", "edge", "wrap")),
    case("Pad", FLAT, known([0, 1, 1, 2]), known(1.5, np.float32)),
    case("Pad", FLAT, known([1, 2]), None, known([1]), mode="constant"),
    case("Pad", FLAT, known([-1, 1, 0, -2])),
    case("Pad", FLAT, version=10, pads=[0, 1, 1, 2], value=2.0),
    case("Pad", FLAT, version=10, pads=[0, 1, 1, 2], mode="reflect"),
    case("Tile", FLAT, known([2, 3])),
    case("Tile", FLAT, row(i64(1, 2))),
    case("DepthToSpace", IMAGE, blocksize=2),
    case("DepthToSpace", IMAGE, blocksize=2, mode="CRD"),
    case("SpaceToDepth", N.f32(1, 2, 4, 6), blocksize=2),
    case("Trilu", A),
    case("Trilu", A, known(1), upper=0),
    case("Trilu", A, known(-1)),
    case("CenterCropPad", FLAT, known([2, 8])),
    case("CenterCropPad", A, known([5]), axes=[1]),
    case("Identity", A),
    case("Shape", A),
    case("Shape", A, start=1),
    case("Shape", A, start=-2, end=-1),
    case("Size", A),
    case("Reshape", A, known([0, -1])),
    case("Reshape", A, known([4, 6])),
    case("Reshape", np.zeros((0, 3), np.float32), known([3, 0]), allowzero=1),
    *(case("Flatten", A, axis=axis) for axis in (0, 1, 2, -1, 3)),
    case("Squeeze", ONES, known([2])),
    case("Squeeze", ONES, open=False),
    case("Squeeze", ONES, version=12, axes=[0, -2]),
    case("Unsqueeze", FLAT, known([0, -1])),
    case("Unsqueeze", FLAT, version=12, axes=[1, 0]),
    case("Expand", N.f32(3, 1), known([2, 1, 4])),
    case("Expand", N.f32(3, 1), row(i64(2, 3, 1))),
    case("ConstantOfShape", known([2, 3])),
    case("ConstantOfShape", row(i64(2, 3)), value=from_array(np.array([7], np.int32))),
    case("EyeLike", FLAT, k=1, open=False),
    case("EyeLike", FLAT, dtype=6, open=False),
    case("Range", i64(2).reshape(()), i64(11).reshape(()), known(3)),
    case("Range", known(1.0, np.float32), known(0.0, np.float32), known(-0.3, np.float32)),
    *(case(op, known(7)) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")),
    *(case(op, i64(8).reshape(()), periodic=0) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")),
    case("HannWindow", known(5), output_datatype=11),
    case(
        "MelWeightMatrix", known(8), known(16), known(8192), known(0.0, np.float32), known(4096.0, np.float32),
        tolerance=1e-4,
    ),
]  # fmt: skip
