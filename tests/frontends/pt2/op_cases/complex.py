"""Complex numbers and Fourier transforms; complex inputs and outputs are pairs."""

import numpy as np

from tests.frontends.pt2.case import b, case, dtype, f, i, known, p

A = f(2, 5, 2).view(np.complex64)[..., 0]
B = f(2, 5, 2).view(np.complex64)[..., 0]
X = f(2, 9)
C = f(3, 5, 2).view(np.complex64)[..., 0]
V = f(5, 2).view(np.complex64)[..., 0]
EDGES = np.array([0, 1, -1, 1j, -1j, 2, -2, 3j, -1e-3, 25 + 1j, -25 - 1j, 1e30 + 1e30j], np.complex64)
LOOSE = 1e-5
FUNCTIONS = (
    "sqrt rsqrt log log2 log10 log1p expm1 exp2 sigmoid sgn sin cos tan sinh cosh tanh asin acos atan asinh acosh "
    "atanh isnan isinf isfinite isreal square reciprocal"
)

CASES = [
    case("complex.default", f(2, 3), f(3)),
    case("polar.default", p(2, 3), f(2, 3)),
    case("view_as_complex.default", f(2, 3, 2), fixed=True),
    *(case(f"{name}.default", A, fixed=True) for name in "view_as_real abs angle real imag _conj exp neg sum".split()),
    *(case(f"{name}.Tensor", A, B, fixed=True, tolerance=LOOSE) for name in "add sub mul div eq".split()),
    case("mul.Tensor", A, f(2, 5), fixed=True),
    case("mul.Tensor", A, known(B), fixed=True, tolerance=LOOSE),
    case("add.Tensor", f(2, 5), A, fixed=True),
    case("add.Tensor", A, 1.5, fixed=True),
    case("add.Tensor", A, 1.5, alpha=2, fixed=True),
    case("sub.Tensor", A, 2, fixed=True),
    case("constant_pad_nd.default", A, [1, 2], 2.0, fixed=True),
    case("pad.default", A, [1, 2], "constant", 1.0, fixed=True),
    case("matmul.default", A, B.T.copy(), fixed=True, tolerance=LOOSE),
    case("einsum.default", "ij,ij->i", [A, B], fixed=True, tolerance=LOOSE),
    case("cat.default", [A, B], -1, fixed=True),
    case("view.default", A, [5, 2], fixed=True),
    case("index.Tensor", A, [None, np.array([3, 0])], fixed=True),
    case("_to_copy.default", A, dtype=None, fixed=True),
    *(
        case(
            f"fft_{kind}.default",
            X if "r" in kind[:1] or kind == "ihfft" else A,
            n,
            -1,
            norm,
            fixed=True,
            tolerance=LOOSE,
        )
        for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for n, norm in ((None, None), (8, "ortho"), (6, "forward"))
    ),
    case("fft_fft2.default", f(3, 4, 5), None, [-2, -1], "ortho", fixed=True, tolerance=LOOSE),
    case("fft_rfftn.default", f(3, 4, 5), None, [0, 2], fixed=True, tolerance=LOOSE),
    case("fft_irfft2.default", A, None, [-2, -1], fixed=True, tolerance=LOOSE),
    case("fft_fftshift.default", f(4, 5)),
    case("fft_ifftshift.default", f(4, 5), [1]),
    case("fft_rfftfreq.default", 9, 0.5, fixed=True),
    *(
        case("_fft_r2c.default", X, [1], n, onesided, fixed=True, tolerance=LOOSE)
        for n in range(3)
        for onesided in (True, False)
    ),
    *(
        case("_fft_c2c.default", A, [0, 1], n, forward, fixed=True, tolerance=LOOSE)
        for n in range(3)
        for forward in (True, False)
    ),
    *(case("_fft_c2r.default", A, [1], n, size, fixed=True, tolerance=LOOSE) for n in range(3) for size in (8, 9)),
    case("stft.default", f(2, 40), 8, 3, 6, p(6), True, True, True, fixed=True, tolerance=LOOSE),
    case("stft.default", f(40), 8, None, None, None, False, False, True, fixed=True, tolerance=LOOSE),
    case("stft.default", np.tile(A, (1, 8)), 8, 3, 6, p(6), False, False, True, fixed=True, tolerance=LOOSE),
    *(case(f"{name}.default", A, fixed=True, tolerance=LOOSE) for name in FUNCTIONS.split()),
    *(case(f"{name}.default", EDGES, fixed=True, tolerance=LOOSE) for name in "sqrt tanh abs sgn".split()),
    *(case(f"{name}.default", EDGES[1:10], fixed=True, tolerance=LOOSE) for name in "log asin acos asinh atan".split()),
    *(case("pow.Tensor_Scalar", A, n, fixed=True, tolerance=LOOSE) for n in (2, 3, 0.5, -1.5)),
    case("pow.Tensor_Tensor", EDGES[:10], V.repeat(2), fixed=True, tolerance=LOOSE),
    case("pow.Scalar", 2.5, A, fixed=True, tolerance=LOOSE),
    case("mul.Tensor", f(2, 5), 2 + 3j, fixed=True, tolerance=LOOSE),
    case("mul.Tensor", A, 2 - 1j, fixed=True, tolerance=LOOSE),
    case("add.Tensor", A, 1j, alpha=2, fixed=True),
    case("add.Tensor", f(2, 5), 1 + 1j, fixed=True),
    case("div.Tensor", f(2, 5), B, fixed=True, tolerance=LOOSE),
    case("div.Tensor", B, EDGES[[-1]], fixed=True, tolerance=LOOSE),
    case("constant_pad_nd.default", A, [1, 2], 2 + 1j, fixed=True),
    case("pad.default", A, [1, 2], "reflect", fixed=True),
    case("full.default", [2, 3], 1 + 2j, fixed=True),
    case("ones_like.default", A, fixed=True),
    case("fill.Scalar", A, True, fixed=True),
    case("rsub.Scalar", A, 1 + 1j, fixed=True),
    case("rsub.Tensor", f(2, 5), A, fixed=True),
    case("lerp.Scalar", A, B, 0.25, fixed=True, tolerance=LOOSE),
    case("silu.default", A, fixed=True, tolerance=LOOSE),
    case("linalg_norm.default", A, fixed=True, tolerance=LOOSE),
    case("linspace.default", 1 + 2j, 3, 4, dtype=dtype("complex64"), fixed=True, tolerance=LOOSE),
    case("to.dtype", f(2, 3), dtype("complex64"), fixed=True),
    case("masked_fill.Scalar", A, b(2, 5), 1.5 + 2j, fixed=True),
    case("masked_scatter.default", A, b(2, 5), B, fixed=True),
    case("index_put.default", A, [np.array([1])], V, fixed=True),
    case("scatter.src", A, 1, np.array([[0, 3]]), B, fixed=True),
    case("diagonal_scatter.default", A, V[:2], fixed=True),
    case("block_diag.default", [A, f(2, 2)], fixed=True),
    case("diff.default", A, fixed=True, tolerance=LOOSE),
    case("addmm.default", C[:2, :3], A, B.T[:, :1].repeat(3, 1), beta=0.5, alpha=1 + 2j, fixed=True, tolerance=LOOSE),
    case("baddbmm.default", C[None, :2, :3], A[None], C.T[None], beta=0, fixed=True, tolerance=LOOSE),
    case("addbmm.default", C[:2, :3], np.stack([A, B]), np.stack([C.T, C.T]), fixed=True, tolerance=LOOSE),
    case("addmv.default", V[:2], A, V, fixed=True, tolerance=LOOSE),
    case("addr.default", A, V[:2], V, beta=2, fixed=True, tolerance=LOOSE),
    case("addcmul.default", A, A, B, value=0.5 - 1j, fixed=True, tolerance=LOOSE),
    case("addcdiv.default", A, A, B, value=2, fixed=True, tolerance=LOOSE),
    *(case(f"{name}.default", V, V[::-1].copy(), fixed=True, tolerance=LOOSE) for name in ("dot", "vdot", "outer")),
    case("linear.default", A, C, V[:3], fixed=True, tolerance=LOOSE),
    case("linalg_cross.default", C[:, :3].copy(), C[:, 2:].copy(), fixed=True, tolerance=LOOSE),
    case("conv1d.default", A[None], C[:, None, :2].repeat(2, 1), V[:3], [2], [1], fixed=True, tolerance=LOOSE),
    case("conv_transpose1d.default", A[None], C[:2, None, :3], V[:1], [2], fixed=True, tolerance=LOOSE),
    *(case(f"{name}.correction", A, [1], fixed=True, tolerance=LOOSE) for name in ("var", "std", "var_mean")),
    case("linalg_vector_norm.default", A, 3, [1], fixed=True, tolerance=LOOSE),
    *(case(f"logical_{name}.default", EDGES[:5], EDGES[5:0:-1].copy(), fixed=True) for name in ("and", "or", "xor")),
    case("count_nonzero.default", EDGES, fixed=True),
    case("isclose.default", A, A * np.float32(1 + 1e-6), fixed=True),
    case("logaddexp.default", A, B, fixed=True, tolerance=LOOSE),
    case("ldexp.Tensor", A, i(5), fixed=True, tolerance=LOOSE),
    case("softmax.int", A, -1, dtype("float32"), fixed=True, tolerance=LOOSE),
]
