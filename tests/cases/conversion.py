"""Cases of aot/opset/conversion.py."""

from __future__ import annotations

import numpy as np

from aot.opset.conversion import Convert, ConvertLike, ConvertPromoteTypes
from runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, U8, BOOL = DType.F32, DType.F16, DType.I32, DType.U8, DType.BOOL
SHORT = (DType.I8, U8, DType.I16, DType.U16, I32, DType.I64, F16, DType.BF16, F32, BOOL)
EDGES = np.array([1.9, -1.9, 0.5, -0.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.0, 127.9, 255.5], np.float32)

CASES = [
    *(Case(Convert(destination_type=to), [(of, (3, "n=5"))], EXACT, low=0) for of in SHORT for to in SHORT),
    *(Case(Convert(destination_type=to), [EDGES], EXACT) for to in SHORT),
    *(Case(Convert(destination_type=to), [(DType.F64, (7,))], EXACT) for to in (F32, I32, BOOL)),
    *(Case(Convert(destination_type=to), [np.array([-1, 300, 128, 70000, -70000])], EXACT) for to in SHORT),
    Case(ConvertLike(), [(F32, (3, 4)), (I32, ())], EXACT),
    Case(ConvertLike(), [(I32, (3, 4)), (BOOL, (2,))], EXACT),
    Case(ConvertPromoteTypes(), [(DType.I8, (3, 4)), (F32, ())], EXACT),
    Case(ConvertPromoteTypes(), [(I32, (3, 4)), (U8, ())], EXACT),
    *(
        Case(ConvertPromoteTypes(promote_unsafe=True), [(a, (3,)), (b, (2,))], EXACT)
        for a, b in (
            (DType.I16, DType.U32), (DType.I16, DType.U64), (F16, DType.I64), (DType.I8, U8), (F16, DType.BF16),
            (BOOL, U8),
        )
    ),
    Case(
        ConvertPromoteTypes(pytorch_scalar_promotion=True, promote_unsafe=True),
        [(DType.I64, ()), (U8, (3,))],
        EXACT,
        low=0,
    ),
]
