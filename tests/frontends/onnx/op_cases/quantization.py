"""Quantised operations."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.case import case, known, row
from tests.frontends.onnx.models import Numbers

N = Numbers(9)
SCALE, ZERO, SIGNED = known(0.02, np.float32), known(120, np.uint8), known(-3, np.int8)
A, BYTES, IMAGE = N.f32(3, 5) * 50, N.u8(3, 64), N.u8(1, 3, 6, 6)
POSITIVE = known(np.abs(N.f32(5)) + 0.1)
FILTERS = [known(np.abs(N.f32(4)) / 50 + 0.01), known(np.zeros(4, np.int8))]

CASES = [
    case("DynamicQuantizeLinear", N.f32(3, 5), outputs=3),
    case("DynamicQuantizeLinear", np.zeros((3, 5), np.float32), outputs=3),
    case("QuantizeLinear", A, known(0.5, np.float32), known(3, np.int8)),
    case("QuantizeLinear", A, known(0.5, np.float32)),
    case("QuantizeLinear", row(A), POSITIVE, known(N.u8(5)), axis=1),
    case(
        "QuantizeLinear", N.f32(4, 6) * 50, known(np.abs(N.f32(2, 6)) + 0.5), known(N.i8(2, 6)), axis=0, block_size=2,
        open=False,
    ),
    case("QuantizeLinear", A * 90, known(0.25, np.float32), known(700, np.uint16)),
    case("DequantizeLinear", row(N.i8(3, 5)), POSITIVE, known(N.i8(5)), axis=1),
    case("DequantizeLinear", BYTES, SCALE, ZERO),
    case("DequantizeLinear", N.rng.integers(-900, 900, (3, 4)).astype(np.int32), SCALE),
    case("DequantizeLinear", N.i8(4, 6), known(N.f32(2, 6)), known(N.i8(2, 6)), axis=0, block_size=2, open=False),
    case("MatMulInteger", BYTES, known(N.i7(64, 5)), known(128, np.uint8), SIGNED),
    case("MatMulInteger", BYTES, known(N.i7(64, 5))),
    case("ConvInteger", row(IMAGE, 1), known(N.u8(4, 3, 3, 3)), known(100, np.uint8), pads=[1, 1, 1, 1]),
    case("ConvInteger", row(IMAGE, 1), known(N.u8(4, 3, 3, 3)), auto_pad=""),
    case(
        "QLinearMatMul", BYTES, SCALE, ZERO, known(N.u8(64, 5)), known(0.01, np.float32), known(130, np.uint8),
        known(0.5, np.float32), known(7, np.uint8),
    ),
    case(
        "QLinearConv", row(IMAGE, 1), SCALE, ZERO, known(N.i7(4, 3, 3, 3)), *FILTERS, known(0.3, np.float32),
        known(128, np.uint8), known(np.arange(4, dtype=np.int32) * 100), pads=[1, 1, 1, 1],
    ),
    case("com.microsoft.QuantizeLinear", A, known(0.5, np.float32), known(3, np.int8)),
    case("com.microsoft.DequantizeLinear", BYTES, SCALE, ZERO),
    case("com.microsoft.DequantizeLinear", row(N.i8(3, 5)), POSITIVE, known(N.i8(5)), axis=1),
]  # fmt: skip
