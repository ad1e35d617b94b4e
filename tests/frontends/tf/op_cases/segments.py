"""Rows combined by segments, and elements counted."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(8)
A, INTS = N.f32(6, 3), N.ints(6, 3)
IDS, LOOSE = np.array([0, 0, 1, 3, 3, 3], np.int32), np.array([2, 0, -1, 2, 4, 0], np.int32)
ROWS = np.array([0, 5, 2, 2], np.int32)
SORTED = np.array([0, 0, 1, 3], np.int32)

CASES = [
    *(
        case(f"Segment{k}", x, ids)
        for k in ("Sum", "Mean", "Prod", "Max", "Min")
        for x, ids in ((A, IDS), (INTS, IDS.astype(np.int64)))
    ),
    *(
        case(f"UnsortedSegment{k}", x, LOOSE, Known(5, np.int32))
        for k in ("Sum", "Prod", "Max", "Min")
        for x in (A, INTS, N.f32(6))
    ),
    case("UnsortedSegmentSum", N.f32(2, 3, 2), np.array([[0, 2, 1], [2, 2, -1]], np.int64), Known(3, np.int32)),
    case("UnsortedSegmentSum", A, LOOSE, np.int32(6)),
    *(case(f"SparseSegment{k}", A, ROWS, SORTED) for k in ("Sum", "Mean", "SqrtN")),
    *(case(f"SparseSegment{k}WithNumSegments", A, ROWS, SORTED, Known(6, np.int32)) for k in ("Sum", "Mean", "SqrtN")),
    case("SegmentSum", np.zeros((0, 2), np.float32), np.zeros(0, np.int32)),
    case("Bincount", np.array([1, 3, 1, 0, 9], np.int32), Known(5, np.int32), Known(np.zeros(0, np.float32))),
    case("Bincount", np.array([1, 3, 1, 0, 2], np.int32), np.int32(4), N.f32(5)),
    case("DenseBincount", np.array([1, 3, 1, 0, 9], np.int32), Known(5, np.int32), Known(np.zeros(0, np.int32))),
    case(
        "DenseBincount", np.array([[1, 3, 1], [0, 2, 2]], np.int32), Known(4, np.int32), Known(np.zeros(0, np.float32))
    ),
    case(
        "DenseBincount",
        np.array([[1, 3, 1], [0, 2, 2]], np.int64),
        Known(4, np.int64),
        Known(np.zeros(0, np.float32)),
        binary_output=True,
    ),
    case("DenseBincount", np.array([1, 3, 1], np.int32), Known(4, np.int32), N.f32(3)),
    case("HistogramFixedWidth", A, Known([-2.0, 2.0], np.float32), Known(5, np.int32)),
    case("HistogramFixedWidth", A, Known([0.0, 2.0], np.float32), Known(3, np.int32), dtype=np.int64),
]
