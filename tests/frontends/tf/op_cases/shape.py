"""Shapes, slices, concatenation, numbers from nothing."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(5)
A, INTS = N.f32(2, 3, 4), N.ints(4, 5)


def i32(*values):
    return Known(np.array(values, np.int32))


def i64(*values):
    return Known(np.array(values, np.int64))


EMPTY = np.zeros((2, 0, 3), np.float32)
SLICES = [
    ((0, 1, 0), (2, 3, 3), (1, 1, 2), {}),
    ((-1, 1, 0), (-3, 3, 3), (-1, 1, 2), {}),
    ((0, 0, 3), (9, 9, -9), (1, 2, -2), {}),
    ((1,), (2,), (1,), {"shrink_axis_mask": 1}),
    ((0, -1), (0, 0), (1, 1), {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}),
    ((0, 0, 1), (0, 0, 3), (1, 1, 1), {"ellipsis_mask": 2, "begin_mask": 1, "end_mask": 1}),
    ((0, 0, 0), (0, 0, 0), (1, 1, 1), {"new_axis_mask": 2, "begin_mask": 5, "end_mask": 5}),
    ((0, 0, 1), (0, 0, 2), (1, 1, 1), {"ellipsis_mask": 1, "new_axis_mask": 2}),
    ((0, 0, 2), (0, 0, 3), (1, 1, 1), {"ellipsis_mask": 1, "shrink_axis_mask": 4, "new_axis_mask": 2}),
    ((0, 1), (1, 2), (1, 1), {"new_axis_mask": 1, "shrink_axis_mask": 3}),
    ((1, 0, 0), (0, 3, 4), (1, 1, 1), {}),
]

CASES = [
    case("Identity", A),
    case("IdentityN", [A, INTS]),
    case("StopGradient", A),
    case("PreventGradient", A),
    case("Snapshot", A),
    case("CheckNumerics", A, message="m"),
    case("CheckNumericsV2", A, message="m"),
    case("EnsureShape", A, shape=[None, 3, 4]),
    case("PlaceholderWithDefault", Known(A), shape=A.shape, dynamic=False),
    *(case("Shape", A, out_type=t) for t in (np.int32, np.int64)),
    case("ShapeN", [INTS, N.ints(2)]),
    case("Size", A),
    case("Size", A, out_type=np.int64),
    case("Rank", A),
    case("Shape", np.float32(3)),
    case("Size", EMPTY),
    case("Reshape", A, i32(6, 4)),
    case("Reshape", A, i64(-1, 2)),
    case("Reshape", N.f32(1, 1), i32()),
    case("Reshape", A, np.array([4, 6], np.int32), dynamic=False),
    case("Reshape", EMPTY, i32(0, 5)),
    case("Squeeze", N.f32(1, 3, 1, 4), dynamic=False),
    case("Squeeze", N.f32(1, 3, 1, 4), squeeze_dims=[0]),
    case("Squeeze", N.f32(1, 3, 1, 4), squeeze_dims=[-2, 0]),
    case("ExpandDims", A, Known(0, np.int32)),
    case("ExpandDims", A, Known(-1, np.int32)),
    case("ExpandDims", A, Known(-2, np.int64)),
    case("ExpandDims", A, i32(1)),
    case("BroadcastTo", N.f32(3, 1), i32(2, 3, 4)),
    case("BroadcastTo", INTS, i64(2, 4, 5)),
    case("BroadcastTo", N.f32(3, 1), np.array([2, 3, 4], np.int32), dynamic=False),
    case("BroadcastArgs", i32(3, 1), i32(2, 1, 4)),
    case("BroadcastArgs", np.array([3, 1], np.int32), np.array([2, 1, 4], np.int32), dynamic=False),
    case("Fill", i32(2, 3), Known(1.5, np.float32)),
    case("Fill", i64(2, 3), np.int32(7)),
    case("Fill", np.array([2, 0], np.int32), np.float32(1), dynamic=False),
    case("Pack", [A, A], axis=0),
    case("Pack", [A, A, A], axis=-1),
    case("Pack", [np.float32(1), np.float32(2)]),
    case("Pack", [INTS], axis=1),
    case("Unpack", A, axis=1, num=3),
    case("Unpack", A, axis=-1, num=4),
    case("Unpack", INTS, num=4),
    case("Concat", Known(1, np.int32), [A, N.f32(2, 1, 4)]),
    case("ConcatV2", [A, N.f32(2, 3, 2)], Known(-1, np.int32)),
    case("ConcatV2", [INTS, INTS], Known(0, np.int64)),
    case("ConcatV2", [EMPTY, N.f32(2, 2, 3)], Known(1, np.int32)),
    case("ConcatOffset", Known(1, np.int32), [i32(2, 3, 4), i32(2, 1, 4)], outputs=[0, 1], dynamic=False),
    case("Split", Known(1, np.int32), N.f32(2, 6, 2), num_split=3),
    case("Split", Known(-1, np.int32), A, num_split=2),
    case("Split", Known(0, np.int32), A, num_split=1),
    case("SplitV", N.f32(2, 6, 2), i64(1, 3, 2), Known(1, np.int32), num_split=3),
    case("SplitV", N.f32(2, 6), i32(4, -1), Known(-1, np.int32), num_split=2),
    case("SplitV", N.f32(2, 6), i32(2, 0, 4), Known(1, np.int32), num_split=3),
    case("Slice", A, i32(0, 1, 0), i32(2, -1, 2)),
    case("Slice", A, i64(1, 0, 3), i64(-1, -1, 1)),
    case("Slice", INTS, np.array([1, 2], np.int32), i32(2, 2)),
    case("Slice", INTS, np.array([1, 2], np.int32), np.array([3, -1], np.int32), dynamic=False),
    case("Slice", A, i32(0, 3, 0), i32(2, 0, 4)),
    *(case("StridedSlice", A, i32(*b), i32(*e), i32(*s), **m) for b, e, s, m in SLICES),
    case("StridedSlice", INTS, np.array([1, 0], np.int32), np.array([4, 5], np.int32), i32(2, 1), dynamic=False),
    case("StridedSlice", INTS, i64(1), i64(3), i64(1)),
    case("DynamicPartition", N.f32(5, 2), np.array([0, 2, 0, 1, 2], np.int32), num_partitions=3),
    case("DynamicPartition", N.f32(2, 3, 2), np.array([[0, 1, 0], [1, 1, 0]], np.int32), num_partitions=2),
    case("DynamicPartition", N.ints(4), np.array([0, 0, 0, 0], np.int32), num_partitions=2),
    case("DynamicStitch", [i32(0, 2), i32(1, 3)], [N.f32(2, 3), N.f32(2, 3)]),
    case("DynamicStitch", [np.array([0, 2], np.int32), np.array([[1], [3]], np.int32)], [N.f32(2, 3), N.f32(2, 1, 3)]),
    case(
        "ParallelDynamicStitch",
        [np.array([0, 1], np.int32), np.array([1, 2], np.int32)],
        [N.ints(2), N.ints(2)],
        dynamic=False,
    ),
    case("Range", Known(1, np.int32), Known(10, np.int32), Known(3, np.int32)),
    case("Range", Known(1.0, np.float32), Known(-1.0, np.float32), Known(-0.25, np.float32)),
    case("Range", np.int32(0), np.int32(5), np.int32(2)),
    case("Range", np.int64(3), np.int64(3), np.int64(1)),
    case("Range", np.float32(0), np.float32(2), np.float32(0.5)),
    case("LinSpace", Known(1.0, np.float32), Known(2.0, np.float32), Known(5, np.int32)),
    case("LinSpace", np.float32(1), np.float32(-2), np.int32(4)),
    case("LinSpace", np.float32(1), np.float32(-2), Known(1, np.int32)),
]
