"""Cases of aot/opset/control/generators.py."""

from __future__ import annotations

import numpy as np

from aot.opset.control.generators import Eye, Range, Range_1
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, I32, I64 = DType.F32, DType.I32, DType.I64


def numbers(dtype: type, *values: float) -> list[np.ndarray]:
    return [np.array(v, dtype) for v in values]


CASES = [
    Case(Range_1(), numbers(np.int32, 0, 10, 3), EXACT),
    Case(Range_1(), numbers(np.float32, 1, 2.5, 0.5), EXACT),
    Case(Range(output_type=I32), numbers(np.int64, 23, 2, -3), EXACT),
    Case(Range(output_type=I64), numbers(np.float32, 1.9, 7.9, 2.1), EXACT),
    Case(Range(output_type=F32), numbers(np.float32, -1, 1, 0.3)),
    Case(Range(output_type=DType.F16), numbers(np.float32, 0, 3, 0.25)),
    Case(Range(output_type=I64), numbers(np.int64, 3, 3, 1), EXACT),
    *(Case(Eye(output_type=t), numbers(np.int32, 3, 4, k), EXACT) for t in (F32, DType.I8) for k in (0, 2, -1, 9)),
    Case(Eye(output_type=I64), [*numbers(np.int64, 2, 2, 0), np.array([2, 3])], EXACT),
]
