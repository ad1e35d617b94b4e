"""Inverses of matrices."""

from __future__ import annotations

from aot.opset.linear_algebra import Inverse
from runtime.abi import DType
from tests.cases import LOOSE, Case

CASES = [
    Case(Inverse(), [(DType.F32, (4, 4))], LOOSE),
    Case(Inverse(True), [(DType.F32, (2, 3, 5, 5))], LOOSE),
    Case(Inverse(), [(DType.F64, (1, 1))], LOOSE),
    Case(Inverse(), [(DType.F32, ("n=2", 3, 3))], LOOSE),
]
