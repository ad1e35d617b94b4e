"""Cases of aot/opset/elementwise/conversion.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.ir.types import numpy_dtype
from aot.opset.elementwise.conversion import BitCast, Convert, ConvertLike, ConvertPromoteTypes, Rounded
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, U8, BOOL = DType.F32, DType.F16, DType.I32, DType.U8, DType.BOOL
SHORT = (DType.I8, U8, DType.I16, DType.U16, I32, DType.I64, F16, DType.BF16, F32, BOOL)
EDGES = np.array([1.9, -1.9, 0.5, -0.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.0, 127.9, 255.5], np.float32)
SMALL = (DType.F8E4M3, DType.F8E5M2, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ, DType.F4E2M1)
PACKED = (DType.I4, DType.U4, DType.I2, DType.U2)
SMALL_EDGES = np.array(
    [0.48, 0.25, 1.05, -3.5, 464, 465, -500, 5.1, 7, 1e6, 1e-7, -1e-7, 61439, 61440, 2**-9, 3 * 2**-11, 2**-10, 2**-17,
     2**-8, 240, 247, 248, 249, np.inf, -np.inf, np.nan], np.float32,
)  # fmt: skip


def every(dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    """All values of a small type."""
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(numpy_dtype(dtype))


CASES = [
    *(Case(Convert(destination_type=to), [(of, (3, "n=5"))], EXACT, low=0) for of in SHORT for to in SHORT),
    *(Case(Convert(destination_type=to), [EDGES], EXACT) for to in SHORT),
    *(Case(Convert(destination_type=to), [SMALL_EDGES], EXACT) for to in SMALL),
    *(Case(Convert(destination_type=F32), [every(dtype)], EXACT) for dtype in (*SMALL, *PACKED)),
    *(Case(Convert(destination_type=to), [np.arange(-9, 17, dtype=np.int32)], EXACT) for to in PACKED),
    *(Case(Convert(destination_type=to), [EDGES], EXACT) for to in PACKED),
    *(Case(Convert(destination_type=to), [(DType.F64, (7,))], EXACT) for to in (F32, I32, BOOL)),
    *(Case(Convert(destination_type=to), [np.array([-1, 300, 128, 70000, -70000])], EXACT) for to in SHORT),
    Case(BitCast(), [EDGES], EXACT),
    Case(BitCast(destination_type=DType.F64), [(DType.I64, (3, "n=5"))], EXACT),
    Case(BitCast(destination_type=DType.U8), [np.array([True, False])], EXACT),
    *(Case(Rounded(), [(of, (3, "n=5"))], EXACT) for of in (F16, DType.BF16, F32)),
    Case(ConvertLike(), [(F32, (3, 4)), (I32, ())], EXACT),
    Case(ConvertLike(), [(I32, (3, 4)), (BOOL, (2,))], EXACT),
    Case(ConvertPromoteTypes(), [(DType.I8, (3, 4)), (F32, ())], EXACT),
    Case(ConvertPromoteTypes(), [(I32, (3, 4)), (U8, ())], EXACT),
    *(
        Case(ConvertPromoteTypes(promote_unsafe=True), [(a, (3,)), (b, (2,))], EXACT)
        for a, b in (
            (DType.I16, DType.U32),
            (DType.I16, DType.U64),
            (F16, DType.I64),
            (DType.I8, U8),
            (F16, DType.BF16),
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
