"""Diagonals of matrices."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(9)
A, V = N.f32(2, 3, 4), N.f32(2, 3)
ALIGN = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def k(*values):
    return Known(np.array(values if len(values) > 1 else values[0], np.int32))


MINUS = Known(-1, np.int32)
PAD = Known(7.0, np.float32)

CASES = [
    *(
        case("MatrixBandPart", A, Known(low, np.int64), Known(high, np.int64))
        for low, high in ((0, 0), (1, 0), (-1, 0), (0, -1), (1, 2))
    ),
    case("MatrixBandPart", N.ints(4, 3), Known(1, np.int32), Known(1, np.int32)),
    case("MatrixBandPart", A, np.int32(1), np.int32(0)),
    case("MatrixDiag", V),
    case("MatrixDiagPart", A),
    case("MatrixSetDiag", A, V),
    case("MatrixDiag", N.ints(4)),
    case("MatrixDiagPart", N.f32(4, 2)),
    *(
        case("MatrixDiagV3", x, k(*d), r, c, PAD, align=a, dynamic=len(d) == 1 and r is MINUS)
        for a in ALIGN
        for x, d, r, c in (
            (V, (0,), MINUS, MINUS),
            (V, (1,), MINUS, MINUS),
            (V, (-2,), MINUS, MINUS),
            (V, (1,), Known(3, np.int32), Known(4, np.int32)),
            (N.f32(2, 3, 3), (-1, 1), MINUS, MINUS),
            (N.f32(2, 3, 3), (-1, 1), Known(3, np.int32), Known(4, np.int32)),
        )
    ),
    *(
        case("MatrixDiagPartV3", A, k(*d), PAD, align=a)
        for a in ALIGN
        for d in ((0,), (1,), (-1,), (-1, 2), (0, 1), (1, 3), (-2, -1))
    ),
    *(
        case("MatrixSetDiagV3", A, x, k(*d), align=a, dynamic=len(d) == 1)
        for a in ALIGN
        for x, d in ((V, (0,)), (V, (1,)), (N.f32(2, 2), (-1,)), (N.f32(2, 3, 3), (-1, 1)))
    ),
    case("MatrixDiagV2", N.f32(2, 3, 3), k(-1, 1), MINUS, MINUS, PAD, dynamic=False),
    case("MatrixDiagPartV2", A, k(-1, 2), PAD),
    case("MatrixSetDiagV2", A, N.f32(2, 3, 3), k(-1, 1), dynamic=False),
    case("Diag", N.f32(3)),
    case("Diag", N.ints(2, 3)),
    case("DiagPart", N.f32(3, 3)),
    case("DiagPart", N.f32(2, 3, 2, 3)),
]
