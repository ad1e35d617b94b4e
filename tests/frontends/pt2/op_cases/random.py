"""Random numbers, where there is only one that they can be."""

import numpy as np

from tests.frontends.pt2.case import case, f

X, ONE = f(2, 3), np.ones((2, 3), np.float32)
LAST = np.array([[0, 0, 2.0], [3.0, 0, 0]], np.float32)

CASES = [
    case("randint.low", 3, 4, [2, 3], fixed=True),
    case("randint.default", 1, [5], fixed=True),
    case("randint_like.default", X, 1),
    case("randint_like.low_dtype", X, 4, 5),
    case("randperm.default", 1, fixed=True),
    case("bernoulli.default", ONE),
    case("bernoulli.p", X, 0.0),
    case("uniform.default", X, 2.0, 2.0),
    case("normal_functional.default", X, 1.5, 0.0),
    case("normal.Tensor_float", X, 0.0),
    case("multinomial.default", LAST, 4, True, fixed=True),
    case("multinomial.default", LAST, 1, fixed=True),
    case("native_dropout.default", X, 0.5, False),
]
