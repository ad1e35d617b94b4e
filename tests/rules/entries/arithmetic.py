"""Rules of arithmetic: sums, products, bounds, conversions, for all real numbers or integers."""

from __future__ import annotations

from itertools import product

import numpy as np

from aot.passes.rules import algebra
from aot.runtime.abi import DType
from tests.passes.check import Make
from tests.rules.proof import Entry, Pattern

SHAPE = ("n=2", 3)
BOUNDS = (-2.0, 0.0, 1.0, 3.0)
RANGES = [(low, high) for low in BOUNDS for high in BOUNDS if low <= high]


def one(make: Make, dtype: DType = DType.F32) -> Pattern:
    return Pattern(make, (SHAPE,), dtype)


ENTRIES = (
    Entry(
        algebra.drop_neutral_operand,
        (
            *(one(lambda b, x: b.Add(b.const(0, x.type.dtype), x), t) for t in (DType.F32, DType.I32)),
            *(one(lambda b, x: b.Subtract(x, 0), t) for t in (DType.F32, DType.I32)),
            *(one(lambda b, x: b.Multiply(x, np.ones((1, 3))), t) for t in (DType.F32, DType.I32)),
            *(one(lambda b, x: b.Divide(x, 1), t) for t in (DType.F32, DType.I32)),
            one(lambda b, x: b.Power(x, 1.0)),
        ),
    ),
    Entry(
        algebra.power_as_product,
        (
            one(lambda b, x: b.Power(x, 2.0)),
            one(lambda b, x: b.Power(x, -1.0)),
            one(lambda b, x: b.Power(b.Abs(x), 0.5)),
            one(lambda b, x: b.Power(b.Add(b.Multiply(x, x), 1e-5), 0.5)),
        ),
    ),
    Entry(
        algebra.drop_double_negation,
        tuple(one(lambda b, x: b.Negative(b.Negative(x)), t) for t in (DType.F32, DType.I32)),
    ),
    Entry(algebra.drop_convert_to_same, (one(lambda b, x: b.Convert(x, destination_type=DType.F32)),)),
    Entry(
        algebra.convert_like_known,
        tuple(one(lambda b, x, t=t: b.ConvertLike(x, b.const([1], t))) for t in (DType.I32, DType.BOOL, DType.F64)),
    ),
    Entry(
        algebra.drop_repeated_relu,
        (
            one(lambda b, x: b.Relu(b.Relu(x))),
            *(one(lambda b, x, r=r: b.Relu(b.Clamp(x, min=r[0], max=r[1]))) for r in RANGES if r[0] >= 0),
        ),
    ),
    Entry(
        algebra.merge_clamps,
        (
            *(one(lambda b, x, r=r: b.Clamp(b.Relu(x), min=r[0], max=r[1])) for r in RANGES if r[1] >= 0),
            *(
                one(lambda b, x, r=r, s=s: b.Clamp(b.Clamp(x, min=r[0], max=r[1]), min=s[0], max=s[1]))
                for r, s in product(RANGES, RANGES)
                if max(r[0], s[0]) <= min(r[1], s[1])
            ),
        ),
        note="all ranges that meet, of four bounds",
    ),
    Entry(
        algebra.maximum_as_relu,
        (one(lambda b, x: b.Maximum(x, 0.0)), one(lambda b, x: b.Maximum(b.const(0, DType.F32), x))),
    ),
    Entry(
        algebra.minimum_as_clamp,
        tuple(one(lambda b, x, c=c: b.Minimum(b.Relu(x), c)) for c in (0.0, 0.5, 6.0)),
    ),
)
