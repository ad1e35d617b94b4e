"""Elements picked and written by index, found by value."""

import numpy as np
from make_op_cases import Known, Numbers, Row, case

N = Numbers(7)
A, INTS = N.f32(4, 3, 5), N.ints(4, 5)
W = np.array([5, 1, 5, 3, 1, 9], np.int32)


def i32(*values):
    return Known(np.array(values, np.int32))


PLACES = np.array([[0, 1], [2, 2], [0, 1]], np.int32)

CASES = [
    case("Gather", A, np.array([2, 0, 3], np.int32)),
    case("Gather", A, i32(1)),
    case("GatherV2", A, np.array([[2, 0], [1, 1]], np.int64), Known(1, np.int32)),
    case("GatherV2", A, np.int32(1), Known(-1, np.int32)),
    case("GatherV2", A, N.ints(4, 2, low=0, high=3), Known(1, np.int32), batch_dims=1),
    case("GatherV2", A, N.ints(4, 2, low=0, high=5), Known(2, np.int32), batch_dims=1),
    case("GatherV2", N.f32(2, 3, 4), N.ints(2, 3, 5, low=0, high=4), Known(2, np.int32), batch_dims=2),
    case("GatherNd", A, Row(PLACES)),
    case("GatherNd", A, Row(np.array([[[3], [0]]], np.int64))),
    case("GatherNd", INTS, Row(PLACES)),
    case("GatherNd", A, Row(np.array([1, 2, 3], np.int32))),
    case(
        "OneHot", np.array([1, -1, 4, 0], np.int32), Known(4, np.int32), Known(2.0, np.float32), Known(-1.0, np.float32)
    ),
    case(
        "OneHot",
        N.ints(2, 3, low=0, high=4, dtype=np.int64),
        Known(4, np.int32),
        Known(1, np.int32),
        Known(0, np.int32),
        axis=1,
    ),
    case("OneHot", np.array([1, 2], np.uint8), np.int32(3), Known(True), Known(False), axis=0),
    case("TopKV2", N.f32(3, 7), Known(4, np.int32)),
    case("TopKV2", np.array([[1, 3, 3, 2, 3]], np.int32), Known(4, np.int32)),
    case("TopKV2", N.f32(6), np.int32(2)),
    case("TopKV2", N.f32(2, 6), Known(6, np.int32)),
    case("NthElement", N.f32(3, 7), Known(2, np.int32)),
    case("NthElement", N.f32(3, 7), Known(2, np.int32), reverse=True),
    case("InTopK", N.f32(3, 5), np.array([0, 4, 2], np.int32), k=2),
    case("InTopKV2", N.f32(3, 5), np.array([0, 4, 2], np.int32), Known(3, np.int32)),
    case("Where", N.bools(3, 4)),
    case("Where", np.array([0, 1.5, 0, -2], np.float32)),
    case("Where", N.ints(2, 2, 2, low=0, high=2)),
    case("Where", np.zeros((2, 3), bool)),
    case("Unique", W),
    case("Unique", W.astype(np.float32), out_idx=np.int64),
    case("UniqueWithCounts", W),
    case("UniqueV2", W, i32()),
    case("UniqueV2", np.array([[1, 2], [3, 4], [1, 2]], np.int32), i32(0)),
    case("UniqueWithCountsV2", W, i32(0)),
    case("ListDiff", W, np.array([1, 3, 7], np.int32)),
    case("ListDiff", N.f32(4), N.f32(3), out_idx=np.int64),
    case("Bucketize", A, boundaries=[-1.0, 0.0, 1.5]),
    case("Bucketize", INTS, boundaries=[-3.0, 2.0, 4.5]),
    *(
        case(
            op, np.array([[1, 2, 2, 5], [0, 3, 3, 3]], np.float32), np.array([[2, 6], [3, -1]], np.float32), out_type=t
        )
        for op in ("LowerBound", "UpperBound")
        for t in (np.int32, np.int64)
    ),
    case("InvertPermutation", np.array([3, 0, 2, 1], np.int32)),
    case("InvertPermutation", i32(2, 0, 1), dynamic=False),
    case("UnravelIndex", np.array([5, 22, 0], np.int32), i32(4, 2, 3)),
    case("UnravelIndex", np.int64(7), Known(np.array([3, 3], np.int64))),
    case("ScatterNd", PLACES, N.f32(3, 5), i32(4, 3, 5)),
    case("ScatterNd", np.array([[1], [3]], np.int64), N.ints(2, 3), Known(np.array([4, 3], np.int64))),
    case("ScatterNd", PLACES, N.f32(3), np.array([4, 3], np.int32), dynamic=False),
    *(
        case(op, A, PLACES, N.f32(3, 5))
        for op in (
            "TensorScatterAdd",
            "TensorScatterSub",
            "TensorScatterMax",
            "TensorScatterMin",
            "ScatterNdNonAliasingAdd",
        )
    ),
    case("TensorScatterUpdate", A, np.array([[0, 1], [2, 2]], np.int32), N.f32(2, 5)),
    case("TensorScatterUpdate", INTS, np.array([[0], [2]], np.int64), N.ints(2, 5)),
    case("TensorScatterAdd", INTS, np.array([[0, 1], [0, 1]], np.int32), N.ints(2)),
    case("SparseToDense", np.array([[0, 1], [2, 0]], np.int32), i32(3, 2), N.f32(2), Known(-1.0, np.float32)),
    case("SparseToDense", np.array([1, 3], np.int64), Known([5], np.int64), N.ints(2), np.int32(9)),
    case("SparseToDense", np.array([1, 3], np.int32), i32(5), np.float32(2), Known(0.0, np.float32)),
    case("SparseToDense", np.int32(2), i32(5), np.float32(2), Known(0.0, np.float32)),
    case("GatherV2", N.bools(4, 3), np.array([2, 0], np.int32), Known(0, np.int32)),
    case("GatherV2", N.ints(4, 3, dtype=np.int8), np.array([2, 0], np.int32), Known(1, np.int32)),
    case("TopKV2", N.ints(3, 7, dtype=np.int64), Known(3, np.int32)),
    case("Where", N.bools(5)),
    case("XlaDynamicUpdateSlice", N.f32(4, 5), N.f32(2, 3), np.array([3, -2], np.int32)),
]
