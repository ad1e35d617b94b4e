"""Products of matrices, and Fourier transforms."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(3)
A, B = N.f32(3, 4), N.f32(4, 5)
C, D = N.f32(2, 3, 4), N.f32(1, 4, 5)
Q = (N.f32(2, 3, 3) + 4 * np.eye(3)).astype(np.float32)
Z = (N.f32(2, 3, 4) + 1j * N.f32(2, 3, 4)).astype(np.complex64)
Z4 = (N.f32(2, 3, 5, 4) + 1j * N.f32(2, 3, 5, 4)).astype(np.complex64)
R = N.f32(2, 3, 8)
ROOTS = Numbers(9).f32(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)

CASES = [
    case("MatMul", A, B),
    case("MatMul", A.T.copy(), B, transpose_a=True),
    case("MatMul", A, B.T.copy(), transpose_b=True),
    case("MatMul", A, Known(B)),
    case("MatMul", A.astype(np.float64), B.astype(np.float64)),
    case("MatMul", N.ints(3, 4), N.ints(4, 5)),
    case("MatMul", np.zeros((0, 4), np.float32), B),
    case("SparseMatMul", A, B, transpose_a=False),
    case("BatchMatMul", C, N.f32(2, 4, 5)),
    case("BatchMatMulV2", C, D),
    case("BatchMatMulV2", C, N.f32(4, 5)),
    case("BatchMatMulV2", C.swapaxes(1, 2).copy(), N.f32(2, 5, 4), adj_x=True, adj_y=True),
    case("BatchMatMulV3", C, D, Tout=np.float32),
    case("BatchMatMulV3", N.ints(2, 3, 4, dtype=np.int8), N.ints(2, 4, 5, dtype=np.int8), Tout=np.int32),
    case("Einsum", [C, N.f32(4, 5)], equation="bij,jk->bik"),
    case("Einsum", [C, N.f32(2, 5, 4)], equation="bij,bkj->bik"),
    case("Einsum", [C], equation="bij->bji"),
    case("Einsum", [C, N.f32(4)], equation="...j,j->..."),
    case("Einsum", [C, D], equation="aij,bjk->abik"),
    case("Einsum", [N.f32(2, 3, 4, 5), N.f32(4, 5, 6)], equation="abcd,cde->abe"),
    case("MatrixInverse", Q, tolerance=1e-4),
    case("MatrixInverse", Q, adjoint=True, tolerance=1e-4),
    case("MatrixInverse", Q[0], tolerance=1e-4),
    case("MatrixDeterminant", Q, tolerance=1e-4),
    case("MatrixSolve", Q, N.f32(2, 3, 2), tolerance=1e-4),
    case("MatrixSolve", Q, N.f32(2, 3, 2), adjoint=True, tolerance=1e-4),
    case("Cross", N.f32(4, 3), N.f32(4, 3)),
    case("Cross", N.ints(4, 3), N.ints(4, 3)),
    case("FFT", Z),
    case("IFFT", Z),
    case("FFT2D", Z),
    case("IFFT2D", Z),
    case("FFT3D", Z4),
    case("IFFT3D", Z4),
    case("RFFT", R, Known([8], np.int32), dynamic=False),
    case("RFFT", R, Known([6], np.int32), dynamic=False),
    case("RFFT2D", R, Known([3, 8], np.int32), dynamic=False),
    case("RFFT3D", R, Known([2, 3, 8], np.int32), dynamic=False),
    case("IRFFT", Z, Known([6], np.int32), dynamic=False),
    case("IRFFT", Z, Known([5], np.int32), dynamic=False),
    case("IRFFT2D", Z, Known([3, 6], np.int32), dynamic=False),
    case("IRFFT3D", Z, Known([2, 3, 6], np.int32), dynamic=False),
    case("RFFT", R, Known([8], np.int32)),
    case("IRFFT", Z, Known([6], np.int32)),
    *(
        case("MatrixTriangularSolve", Q, N.f32(2, 3, 2), lower=low, adjoint=turn, tolerance=1e-4)
        for low in (True, False)
        for turn in (True, False)
    ),
    case("_FusedMatMul", A, Known(B), [Known(N.f32(5))], fused_ops=["BiasAdd", "Relu"], dynamic=False),
    case("Cholesky", ROOTS @ ROOTS.swapaxes(1, 2)),
    case("Cholesky", (ROOTS[0] @ ROOTS[0].T).astype(np.float64), dynamic=False),
]
