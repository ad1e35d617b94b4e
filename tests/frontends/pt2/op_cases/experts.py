"""Products of rows in groups, as mixtures of experts have them. Needs transformers to be made."""

from __future__ import annotations

import numpy as np

from tests.frontends.pt2.case import bf, case, f, known

ENDS = np.array([2, 2, 5], np.int32)

CASES = [
    case("transformers::grouped_mm_fallback", f(6, 20), f(3, 20, 7), known(ENDS)),  # no rows; rows behind the last
    case("transformers::grouped_mm_fallback", f(5, 4), f(3, 4, 7), np.array([1, 4, 5])),
    case("_grouped_mm", bf(5, 32), bf(3, 32, 16), ENDS, fixed=True),
    case("_grouped_mm", bf(3, 5, 32), bf(3, 32, 16), fixed=True),
]
