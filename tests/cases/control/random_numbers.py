"""Cases of aot/opset/control/random_numbers.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import numpy_dtype
from aot.opset.control.random_numbers import Alignment, Multinomial, RandomUniform
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, Case

SHAPE = np.array([3, 3])
PYTORCH = Alignment.PYTORCH


def uniform(dtype: DType, low: float, high: float, seeds: tuple[int, int], alignment: Alignment) -> Case:
    op = RandomUniform(output_type=dtype, global_seed=seeds[0], op_seed=seeds[1], alignment=alignment)
    limits = [np.array(v).astype(numpy_dtype(dtype)) for v in (low, high)]
    return Case(op, [SHAPE, *limits], CLOSE if dtype.is_float else EXACT)


PROBABILITIES = np.array([[0.1, 0.5, 0.4], [2.0, 1.0, 1.0]], np.float32)
I32, I64 = DType.I32, DType.I64
AGAIN = Multinomial(convert_type=I32, with_replacement=True, global_seed=3, op_seed=11)
LOGS = Multinomial(convert_type=I64, with_replacement=True, log_probs=True)

CASES = [
    *(uniform(t, 0, 1, (150, 10), a) for t in (DType.F32, DType.F16, DType.BF16, DType.F64) for a in Alignment),
    *(uniform(t, -50, 100, (80 + 2**33, 100), a) for t in (I32, I64) for a in Alignment),
    Case(AGAIN, [PROBABILITIES, np.array(7)], EXACT),
    Case(Multinomial(convert_type=I64, global_seed=2), [PROBABILITIES, np.array([3])], EXACT),
    Case(LOGS, [(DType.F32, ("n=2", 5)), np.array([3])], EXACT),
]
