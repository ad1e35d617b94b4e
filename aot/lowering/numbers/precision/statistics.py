"""Means and variances: long sums that are no products."""

from __future__ import annotations

from math import prod

from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.numbers.dot_forms import multiplies_small

MAX_WINDOW = 64  # terms of a sum up to which it is a mean of a window; larger ones are statistics of norms


def is_statistic(d: Definition) -> bool:
    """True for a long sum that is no product: a mean, a variance."""
    r = d.reduction
    if r is None or r.fn not in ("add", "mul") or multiplies_small(r.body):
        return False
    factors = chain_factors(r)
    if factors is not None and factors[0].buffer != factors[1].buffer:
        return False
    return prod(typical(a.extent or 1) for a in r.axes) > MAX_WINDOW
