"""Greatest common divisors."""

import numpy as np

from aot.opset.elementwise.divisors import GreatestDivisor
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

A = np.array([12, -18, 0, 7, 0, -128], np.int8)
B = np.array([8, 12, 5, 0, 0, 96], np.int8)
LARGE = np.array([7540113804746346429, 2**62, -(2**63)])
OTHER = np.array([4660046610375530309, 3 * 2**40, 6])

CASES = [
    Case(GreatestDivisor(), [A, B], EXACT),
    Case(GreatestDivisor(), [LARGE, OTHER], EXACT),
    Case(GreatestDivisor(), [(DType.I32, ("n=3", 4)), (DType.I32, ("n=3", 4))], EXACT),
    Case(GreatestDivisor(), [(DType.U8, (5,)), (DType.U8, (5,))], EXACT, high=200.0),
]
