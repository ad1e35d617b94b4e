"""Inverses and determinants of matrices."""

from __future__ import annotations

import numpy as np

from aot.opset.products.linear_algebra import Cholesky, Det, Inverse
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

ROOTS = np.random.default_rng(4).standard_normal((2, 3, 4, 4)).astype(np.float32) + 3 * np.eye(4, dtype=np.float32)

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
    Case(Cholesky(), [ROOTS @ ROOTS.swapaxes(-1, -2)], LOOSE),
    Case(Cholesky(), [np.array([[4, 9, 9], [2, 3, 9], [-2, 1, 8]], np.float64)], LOOSE),
    Case(Cholesky(), [np.array([[4, 2], [2, 1]], np.float32)], LOOSE),
    Case(Det(), [(DType.F32, (4, 4))], LOOSE),
    Case(Det(), [(DType.F64, ("n=2", 3, 3, 3))], LOOSE),
    Case(Det(), [np.array([[0, 2, 1], [3, 0, 1], [0, 0, 4]], np.float32)], LOOSE),
    Case(Det(), [np.ones((3, 3), np.float32)], LOOSE),
]
