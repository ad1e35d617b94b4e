"""Complex numbers and Fourier transforms; complex inputs and outputs are pairs."""

import numpy as np

from tests.frontends.pt2.case import case, f, known, p

A = f(2, 5, 2).view(np.complex64)[..., 0]
B = f(2, 5, 2).view(np.complex64)[..., 0]
X = f(2, 9)
LOOSE = 1e-5

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
]
