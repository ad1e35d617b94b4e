"""Elementwise operations, products, reductions."""

import numpy as np

from tests.frontends.pt2.case import bf, case, dtype, f, h, i

I32, U8, I8 = np.int32, np.uint8, np.int8

CASES = [
    case("exp.default", i(2, 3)),
    case("abs.default", i(2, 3, dtype=I32)),
    case("add.Tensor", f(2, 3), f(3), alpha=2),
    case("add.Tensor", i(2, 3), 1.5),
    case("add.Tensor", i(2, 3, dtype=U8, low=0), i(2, 3, dtype=I8)),
    case("add.Tensor", h(2, 3), f()),
    case("add.Tensor", h(2, 3), bf(3)),
    case("mul.Tensor", f(2, 3), f(2, 1)),
    case("div.Tensor", i(2, 3), i(2, 3, low=1)),
    case("mm.default", f(2, 3), f(3, 4)),
    case("matmul.default", f(3), f(2, 3, 4)),
    case("addmm.default", f(4), f(2, 3), f(3, 4), beta=2, alpha=0.5),
    case("sum.dim_IntList", i(2, 3, dtype=I32), [1], True),
    case("mean.dim", f(2, 3, 4), [0, 2]),
    case("mean.dim", h(2, 3), None, dtype=dtype("float32")),
]
