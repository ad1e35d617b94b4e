"""Cases of aot/opset/reduction/bucketing.py."""

from __future__ import annotations

import numpy as np

from aot.opset.reduction.bucketing import Bucketize, SearchSorted
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, I32 = DType.F32, DType.I32
EDGES = np.array([-3, 0, 2], np.int32)
ROWS = np.sort(np.random.default_rng(1).integers(-4, 5, (2, 3, 6)).astype(np.float32), -1)

CASES = [
    *(Case(Bucketize(with_right_bound=r), [(I32, (3, 4)), EDGES], EXACT) for r in (True, False)),
    Case(Bucketize(output_type=I32), [(F32, ("n=3", 4)), EDGES], EXACT),
    Case(Bucketize(), [(DType.I64, (3, 4)), np.array([], np.float32)], EXACT),
    *(Case(SearchSorted(right_mode=r), [ROWS, (F32, (2, 3, 5))], EXACT) for r in (True, False)),
    *(Case(SearchSorted(right_mode=r), [EDGES, (I32, (3, "n=5"))], EXACT) for r in (True, False)),
    Case(SearchSorted(output_type=I32), [EDGES, (I32, ())], EXACT),
]
