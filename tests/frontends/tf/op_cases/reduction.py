"""Reductions, running sums, positions of extremes."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(2)
A, INTS, B = N.f32(2, 3, 4), N.ints(2, 3, 4), N.bools(2, 3, 4)
ALL = ("Sum", "Prod", "Max", "Min", "Mean")
ONE, TWO, LAST, NONE = Known([1], np.int32), Known([0, 2], np.int32), Known(-1, np.int32), Known(np.zeros(0), np.int32)

CASES = [
    *(
        case(op, A, axes, keep_dims=keep)
        for op in (*ALL, "EuclideanNorm")
        for axes, keep in ((ONE, False), (TWO, True), (LAST, False))
    ),
    *(case(op, INTS, TWO) for op in ALL),
    *(case(op, A, NONE) for op in ("Sum", "Mean")),
    *(case(op, B, axes, keep_dims=keep) for op in ("All", "Any") for axes, keep in ((ONE, False), (TWO, True))),
    *(case(op, A, np.array([2, 0], np.int32), dynamic=False) for op in ("Sum", "Max")),
    case("Sum", np.zeros((0, 3), np.float32), Known([0], np.int32)),
    case("Prod", np.zeros((0, 3), np.float32), Known([0], np.int32)),
    case("Sum", A.astype(np.float16), ONE),
    case("Max", A.astype(np.float64), ONE),
    case("Sum", INTS.astype(np.int64), ONE),
    case("Mean", np.array([[-7, 2], [-8, 5]], np.int32), Known([1], np.int32)),
    case("L2Loss", A),
    *(
        case(op, x, Known(axis, np.int32), output_type=t)
        for op in ("ArgMax", "ArgMin")
        for x, axis, t in (
            (A, 1, np.int64),
            (A, -1, np.int32),
            (np.array([[1, 3, 3], [2, 2, 0]], np.float32), 1, np.int64),
            (INTS, 0, np.int64),
        )
    ),
    *(
        case(op, x, Known(axis, np.int32), exclusive=e, reverse=r)
        for op in ("Cumsum", "Cumprod")
        for x, axis, e, r in ((A, 1, False, False), (A, -1, True, False), (A, 0, False, True), (INTS, 2, True, True))
    ),
    *(
        case("CumulativeLogsumexp", A, Known(axis, np.int32), exclusive=e, reverse=r)
        for axis, e, r in ((1, False, False), (-1, False, True), (2, True, False))
    ),
    case("Max", INTS.astype(np.int8), ONE),
    case("Min", INTS.astype(np.int64), TWO),
    case("Prod", A.astype(np.float64), ONE),
    case("Cumsum", A.astype(np.float64), Known(1, np.int32)),
]
