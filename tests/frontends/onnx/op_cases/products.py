"""Products of matrices, and transforms of signals."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.case import case, known, row
from tests.frontends.onnx.models import Numbers

N = Numbers(5)
SIGNAL, PAIRS = N.f32(2, 8, 1), N.f32(2, 6, 2)

CASES = [
    case("MatMul", N.f32(2, 3, 4), N.f32(4, 5)),
    case("MatMul", N.f32(4), N.f32(2, 4, 3)),
    case("MatMul", N.rng.integers(-9, 9, (3, 4)), N.rng.integers(-9, 9, (4, 2))),
    case("Gemm", N.f32(3, 4), known(N.f32(5, 4)), known(N.f32(5)), transB=1, alpha=0.5, beta=2.0),
    case("Gemm", N.f32(4, 3), N.f32(4, 5), transA=1),
    case("Gemm", N.f32(3, 4), N.f32(4, 5), N.f32(3, 1), beta=0.0),
    case("Det", N.f32(2, 3, 3), tolerance=1e-4, open=False),
    case("Einsum", N.f32(2, 3, 4), N.f32(2, 4, 5), equation="bij, bjk -> bik"),
    case("Einsum", N.f32(2, 3, 3), equation="...ii->...i"),
    case("Einsum", N.f32(3, 4), N.f32(3), equation="ij,i->j"),
    case("DFT", row(SIGNAL), None, known(1)),
    case("DFT", row(SIGNAL), None, known(1), onesided=1),
    case("DFT", row(SIGNAL), known(5), known(1)),
    case("DFT", row(PAIRS), None, known(1)),
    case("DFT", row(PAIRS), None, known(-2), inverse=1),
    case("DFT", row(PAIRS), version=17, axis=1),
    case("STFT", row(N.f32(1, 16, 1)), known(4), known(np.hanning(8).astype(np.float32)), onesided=1),
    case("STFT", row(N.f32(1, 16, 1)), known(4), None, known(8), onesided=0),
]
