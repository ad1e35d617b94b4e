"""Quantisation by blocks, as torchao writes it: rows, groups of a row, whole tensors."""

import numpy as np

from tests.frontends.pt2.case import bf, case, dtype, f, i, p

Q = i(4, 12, low=-8, high=8, dtype=np.int8)
U = i(4, 12, low=0, high=200, dtype=np.uint8)
X = f(3, 4, 12)
I8, U8, I32, F32 = dtype("int8"), dtype("uint8"), dtype("int32"), dtype("float32")
LOOSE = 1e-6

CASES = [
    case("torchao::dequantize_affine.default", Q, [1, 4], p(4, 3), i(4, 3, dtype=np.int8), I8, -8, 7, fixed=True),
    case("torchao::dequantize_affine.default", Q, [1, 12], p(4, 1), None, I8, fixed=True),
    case("torchao::dequantize_affine.default", Q, [4, 12], p(1), i(1, dtype=np.int8), I8, fixed=True),
    case("torchao::dequantize_affine.default", U, [2, 6], p(2, 2), i(2, 2, dtype=np.int32), U8, fixed=True),
    case("torchao::quantize_affine.default", X, [1, 1, 12], p(3, 4), i(3, 4, dtype=np.int8), I8, -8, 7, fixed=True),
    case("torchao::quantize_affine.default", X, [1, 1, 4], p(3, 4, 3), i(3, 4, 3, dtype=np.int8), I8, fixed=True),
    case("torchao::quantize_affine.default", X, [3, 4, 12], p(1), i(1, dtype=np.int32), U8, fixed=True),
    *(
        case("torchao::choose_qparams_affine.default", x, mapping, block, I8, *ends, tolerance=LOOSE, fixed=True)
        for x in (X, bf(3, 4, 12))
        for mapping, block, *ends in (
            ("ASYMMETRIC", [1, 1, 12], -128, 127, None, None, I8),
            ("SYMMETRIC", [1, 1, 12], -128, 127, 1e-5, F32, I8, True),
            ("SYMMETRIC_NO_CLIPPING_ERR", [1, 2, 4], -8, 7, None, F32, I32, True),
            ("SYMMETRIC", [3, 4, 12], None, None, None, F32, I32),
        )
    ),
    case("_int_mm.default", i(18, 16, dtype=np.int8), i(16, 8, dtype=np.int8), fixed=True),
]
