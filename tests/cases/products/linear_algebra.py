"""Inverses and determinants of matrices."""

from __future__ import annotations

import numpy as np

from aot.opset.products.linear_algebra import Det, Inverse
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

CASES = [
    Case(Inverse(), [(DType.F32, (4, 4))], LOOSE),
    Case(Inverse(True), [(DType.F32, (2, 3, 5, 5))], LOOSE),
    Case(Inverse(), [(DType.F64, (1, 1))], LOOSE),
    Case(Inverse(), [(DType.F32, ("n=2", 3, 3))], LOOSE),
    Case(
        Inverse(),
        [np.array([[[1, 0], [0, 0]], [[2, 0], [0, 4]], [[0, 0], [0, 0]], [[1, 2], [2, 4]]], np.float32)],
        LOOSE,
    ),
    Case(Det(), [(DType.F32, (4, 4))], LOOSE),
    Case(Det(), [(DType.F64, ("n=2", 3, 3, 3))], LOOSE),
    Case(Det(), [np.array([[0, 2, 1], [3, 0, 1], [0, 0, 4]], np.float32)], LOOSE),
    Case(Det(), [np.ones((3, 3), np.float32)], LOOSE),
]
