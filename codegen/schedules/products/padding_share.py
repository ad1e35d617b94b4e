"""The share of padding among the terms of a sum: where it is large, the terms are skipped."""

from __future__ import annotations

from math import prod

import numpy as np

from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Var
from aot.codegen.nest.sums.padding_terms import PaddingTerms

MAX_SHARE_POINTS = 1 << 16  # points that `padding_share` enumerates at most


def padding_share(padding: PaddingTerms) -> float:
    """Return the fraction of terms that are padding; 0 if it cannot be counted in `MAX_SHARE_POINTS` points."""
    terms = dict(normal(padding.index, {}).terms)
    sizes = {a: a.extent for a in terms if isinstance(a, Var) and isinstance(a.extent, int)}
    if len(sizes) < len(terms) or prod(sizes.values()) > MAX_SHARE_POINTS:
        return 0.0
    at = np.array([normal(padding.index, {}).const])
    for a, n in sizes.items():
        at = np.add.outer(at, terms[a] * np.arange(a.low, n)).ravel()
    return float(np.mean((at < 0) | (at >= padding.extent)))
