"""Reductions, running sums, positions of extremes."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.case import case, known
from tests.frontends.onnx.models import Numbers, i64

N = Numbers(2)
A, INTS, FLAGS = N.f32(2, 3, 4), N.rng.integers(-9, 10, (2, 3, 4)).astype(np.int32), N.f32(2, 3, 4) > 0
TIES = np.array([[1, 3, 3], [2, 2, 0]], np.float32)
REAL = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare")
LOGS = ("ReduceLogSum", "ReduceLogSumExp")
AXES = ((i64(1), 1), (i64(-1, 0), 0))

CASES = [
    *(case(op, A, known(axes), keepdims=keep) for op in REAL for axes, keep in AXES),
    *(case(op, np.abs(A), known(axes), keepdims=keep) for op in LOGS for axes, keep in AXES),
    case("ReduceLogSumExp", A * 90, known([2])),
    *(case(op, np.abs(A), keepdims=0) for op in (*REAL, *LOGS)),
    *(case(op, np.abs(A), noop_with_empty_axes=1) for op in (*REAL, *LOGS)),
    *(case(op, np.abs(A), version=12, axes=[0, -1]) for op in (*REAL, *LOGS)),
    *(case(op, INTS, known([1])) for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare")),
    *(case(op, FLAGS, known([1])) for op in ("ReduceMax", "ReduceMin")),
    *(case(op, A, i64(2, 0), keepdims=keep, open=False) for op in ("ReduceSum", "ReduceMax") for keep in (0, 1)),
    case("ReduceSum", np.zeros((0, 3), np.float32), known([0])),
    *(
        case(op, x, axis=axis, keepdims=keep, select_last_index=last)
        for op in ("ArgMax", "ArgMin")
        for x, axis, keep, last in ((A, 1, 1, 0), (A, -1, 0, 0), (TIES, 1, 0, 0), (TIES, 1, 1, 1), (INTS, 0, 0, 0))
    ),
    *(
        case("CumSum", x, known(axis, np.int32), exclusive=e, reverse=r)
        for x, axis, e, r in ((A, 1, 0, 0), (A, -1, 1, 0), (A, 0, 0, 1), (INTS, 2, 1, 1))
    ),
    case("CumSum", A, i64(1).reshape(())),
    *(case("CumProd", A, known(axis, np.int32), exclusive=e, reverse=e) for axis, e in ((1, 0), (-1, 1))),
]
