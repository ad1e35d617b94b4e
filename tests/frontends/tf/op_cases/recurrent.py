"""Recurrent cells and layers."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(14)
X, H, C = N.f32(2, 3), N.f32(2, 4, low=-1, high=1), N.f32(2, 4)
W, B, E = Known(N.f32(7, 16, low=-1, high=1)), Known(N.f32(16, low=-1, high=1)), [Known(N.f32(4)) for _ in range(3)]
T = N.f32(5, 2, 3)
GRU = [Known(N.f32(7, 8)), Known(N.f32(7, 4)), Known(N.f32(8)), Known(N.f32(4))]
FIVE, THREE = Known(5, np.int64), Known(3, np.int64)

CASES = [
    case("LSTMBlockCell", X, C, H, W, *E, B),
    case("LSTMBlockCell", X, C, H, W, *E, B, use_peephole=True, cell_clip=1.5, forget_bias=0.5),
    case("LSTMBlockCell", X, C, H, W, *E, B, cell_clip=0.5),
    case("GRUBlockCell", X, H, *GRU),
    case("BlockLSTM", FIVE, T, C, H, W, *E, B),
    case("BlockLSTM", FIVE, T, C, H, W, *E, B, cell_clip=-1.0, outputs=[6]),
    case("BlockLSTM", THREE, T, C, H, W, *E, B, cell_clip=0.0, outputs=[6]),
    case("BlockLSTM", THREE, T, C, H, W, *E, B, use_peephole=True, cell_clip=1.0, outputs=[1, 6]),
    case("BlockLSTM", np.int64(4), T, C, H, W, *E, B, outputs=[1, 6]),
    case("BlockLSTMV2", FIVE, T, C, H, W, *E, B, outputs=[6]),
    case("BlockLSTMV2", FIVE, T, C, H, W, *E, B),
]
