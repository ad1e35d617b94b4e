"""Quantised tensors."""

import numpy as np

from tests.frontends.pt2.case import case, dtype, f, i, known, p

I8, U8 = np.int8, np.uint8
Q = "quantized_decomposed::"
X, W = f(2, 5), f(3, 4, 2)
SCALES, ZEROS = p(4), i(4, low=-3, high=3)
BYTES = i(2, 5, low=-128, high=127, dtype=I8)

CASES = [
    case(Q + "quantize_per_tensor", X, 0.013, 3, -128, 127, dtype("int8")),
    case(Q + "quantize_per_tensor", X, 0.013, 120, 0, 200, dtype("uint8")),
    case(Q + "quantize_per_tensor.tensor", X, p(1), i(1, low=0, high=3), -127, 127, dtype("int8"), fixed=True),
    case(Q + "dequantize_per_tensor", BYTES, 0.013, 3, -128, 127, dtype("int8")),
    case(Q + "dequantize_per_tensor", i(2, 5, low=0, high=255, dtype=U8), 0.013, 120, 0, 255, dtype("uint8")),
    case(Q + "quantize_per_channel", W, SCALES, ZEROS, 1, -127, 127, dtype("int8"), fixed=True),
    case(
        Q + "dequantize_per_channel",
        i(3, 4, 2, low=-127, high=127, dtype=I8),
        SCALES,
        ZEROS,
        1,
        -127,
        127,
        dtype("int8"),
        fixed=True,
    ),
    case(
        Q + "dequantize_per_channel",
        known(i(4, 2, low=-127, high=127, dtype=I8)),
        known(SCALES),
        None,
        0,
        -127,
        127,
        dtype("int8"),
        fixed=True,
    ),
    case(
        Q + "quantize_per_token",
        X,
        p(2, 1),
        i(2, 1, low=-3, high=3).astype(np.float32),
        -128,
        127,
        dtype("int8"),
        fixed=True,
    ),
    case(
        Q + "dequantize_per_token",
        BYTES,
        p(2, 1),
        i(2, 1, low=-3, high=3),
        -128,
        127,
        dtype("int8"),
        dtype("float32"),
        fixed=True,
    ),
    case(Q + "choose_qparams.tensor", X, -128, 127, 1e-5, dtype("int8")),
    case(Q + "choose_qparams_per_token_asymmetric", X, dtype("int8")),
    case("fake_quantize_per_tensor_affine", X, 0.1, 3, -128, 127),
    case("fake_quantize_per_channel_affine", W, SCALES, ZEROS.astype(np.int32), 1, -8, 7, fixed=True),
]
