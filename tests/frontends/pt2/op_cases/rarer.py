"""Windows and inverse short-time transforms, projected states, divisors, maxima of bags, bits, numbers for tensors."""

from __future__ import annotations

import numpy as np

from tests.frontends.pt2.case import Known, case, dtype, f, i, known, p

LOOSE = 1e-5
SPECTRA = f(2, 5, 9, 2).view(np.complex64)[..., 0]
ONE = f(4, 6, 2).view(np.complex64)[..., 0]
BAGS, STARTS = np.array([1, 4, 0, 2, 2]), np.array([0, 2, 2])
K, Y = i(3, 4, low=1), f(3, 4)


def weights(directions: int, inputs: int, hidden: int, projected: int, bias: bool = True) -> list[Known]:
    found: list[np.ndarray] = []
    for _ in range(directions):
        found += [f(4 * hidden, inputs), f(4 * hidden, projected)]
        found += [f(4 * hidden), f(4 * hidden)] if bias else []
        found.append(f(projected, hidden))
    return [known(w / 2) for w in found]


CASES = [
    *(case(f"{w}_window", n, tolerance=1e-6) for w in "hann hamming blackman bartlett kaiser".split() for n in (1, 7)),
    *(case(f"{w}_window.periodic", 6, False) for w in "hann hamming blackman bartlett kaiser".split()),
    case("hamming_window.periodic_alpha_beta", 6, True, 0.6, 0.3),
    case("kaiser_window.beta", 6, True, 5.0, dtype=dtype("float64")),
    case("istft", SPECTRA, 8, 3, 6, p(6), fixed=True, tolerance=LOOSE),
    case("istft", SPECTRA, 8, 3, None, p(8), False, True, None, 40, fixed=True, tolerance=LOOSE),
    case("istft", ONE, 6, 2, None, None, fixed=True, tolerance=LOOSE),
    case("lstm.input", f(5, 2, 3), [f(1, 2, 3), f(1, 2, 4)], weights(1, 3, 4, 3), True, 1, 0.0, False, False, False),
    case(
        "lstm.input",
        f(2, 5, 3),
        [f(4, 2, 2), f(4, 2, 5)],
        [*weights(2, 3, 5, 2, False), *weights(2, 4, 5, 2, False)],
        *(False, 2, 0.0, False, True, True),
        tolerance=LOOSE,
    ),
    case("gcd", i(3, 4), i(4)),
    case("gcd", np.array([12, 0, 250], np.uint8), np.array([18, 0, 100], np.uint8)),
    case("lcm", i(3, 4, dtype=np.int32), i(3, 1, dtype=np.int32)),
    case("embedding_bag", f(5, 3), BAGS, STARTS, False, 2, fixed=True, first=True),
    case("view.dtype", i(2, 3, dtype=np.int32), dtype("int16"), fixed=True),
    case("view.dtype", f(2, 3), dtype("uint8"), fixed=True),
    case("view.dtype", i(2, 8, dtype=np.int16), dtype("float64"), fixed=True),
    case("special_xlogy.other_scalar", Y, 3),
    case("isin.Scalar_Tensor", 3, K),
    case("special_xlog1py.self_scalar", 2, p(3)),
]
