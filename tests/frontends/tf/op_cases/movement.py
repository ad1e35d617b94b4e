"""Data that moves."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(6)
A, INTS = N.f32(2, 3, 4), N.ints(4, 5)
X = N.f32(2, 4, 6, 3)


def i32(*values):
    return Known(np.array(values, np.int32))


def pairs(*values):
    return Known(np.array(values, np.int32).reshape(-1, 2))


CASES = [
    case("Transpose", A, i32(2, 0, 1)),
    case("Transpose", INTS, Known([1, 0], np.int64)),
    case("Transpose", N.bools(2, 3), i32(1, 0)),
    case("Tile", A, i32(1, 2, 3)),
    case("Tile", INTS, Known([2, 1], np.int64)),
    case("Tile", INTS, np.array([2, 2], np.int32), dynamic=False),
    case("Reverse", A, Known([True, False, True])),
    case("ReverseV2", A, i32(1)),
    case("ReverseV2", A, i32(-1, 0)),
    case("ReverseV2", INTS, i32()),
    case("ReverseSequence", N.f32(3, 5, 2), np.array([2, 5, 0], np.int64), seq_dim=1, batch_dim=0),
    case("ReverseSequence", N.f32(5, 3), np.array([2, 5, 1], np.int32), seq_dim=0, batch_dim=1),
    case("Roll", A, Known(1, np.int32), Known(2, np.int32)),
    case("Roll", INTS, i32(1, -2), i32(0, 1)),
    case("Roll", INTS, i32(2, 1), i32(1, 1)),
    case("Roll", INTS, np.int32(3), Known(0, np.int32)),
    case("Pad", A, pairs(0, 1, 1, 0, 2, 2)),
    case("PadV2", A, pairs(0, 1, 1, 0, 2, 2), Known(-1.5, np.float32)),
    case("PadV2", INTS, pairs(1, 1, 0, 2), np.int32(7)),
    case("Pad", INTS, np.array([[1, 0], [0, 2]], np.int32), dynamic=False),
    case("MirrorPad", A, pairs(1, 0, 2, 1, 0, 3), mode="REFLECT"),
    case("MirrorPad", A, pairs(1, 2, 0, 3, 4, 0), mode="SYMMETRIC"),
    case("MirrorPad", INTS, pairs(1, 1, 2, 2), mode="REFLECT"),
    case("SpaceToDepth", X, block_size=2),
    case("DepthToSpace", N.f32(2, 2, 3, 8), block_size=2),
    case("SpaceToDepth", N.f32(1, 6, 6, 1), block_size=3),
    case("DepthToSpace", N.ints(1, 2, 2, 9), block_size=3),
    case("SpaceToBatchND", X, i32(2, 3), pairs(0, 0, 0, 0)),
    case("SpaceToBatchND", X, i32(2, 2), pairs(1, 1, 2, 0)),
    case("SpaceToBatchND", N.f32(2, 6, 2), i32(3), pairs(1, 2)),
    case("SpaceToBatchND", N.f32(1, 4, 4, 2, 3), i32(2, 2), pairs(0, 0, 0, 0)),
    case("BatchToSpaceND", N.f32(8, 2, 3, 2), i32(2, 2), pairs(0, 1, 1, 1)),
    case("BatchToSpaceND", N.f32(6, 3, 2), i32(3), pairs(1, 2)),
    case("BatchToSpaceND", N.f32(8, 2, 3, 2), i32(2, 2), pairs(0, 0, 0, 0)),
    case("SpaceToBatch", X, pairs(0, 0, 0, 0), block_size=2),
    case("BatchToSpace", N.f32(4, 2, 3, 2), pairs(1, 0, 0, 1), block_size=2),
    case("DataFormatDimMap", np.array([0, 3, -1, 2], np.int32)),
    case("DataFormatVecPermute", np.array([1, 5, 6, 3], np.int32)),
    case("DataFormatVecPermute", np.array([1, 5, 6, 3], np.int32), src_format="NCHW", dst_format="NHWC"),
    case("DataFormatVecPermute", np.array([5, 6], np.int32), dynamic=False),
    case("Pad", N.bools(2, 3), pairs(0, 1, 1, 0)),
    case("Transpose", N.ints(2, 3, dtype=np.int8), i32(1, 0)),
    case("Tile", N.bools(2, 3), i32(2, 1)),
    case("ReverseV2", N.f32(2, 3).astype(np.float16), i32(1)),
]
