"""Cases of aot/opset/products/matmul.py."""

from __future__ import annotations

import numpy as np

from aot.opset.products.matmul import MatMul
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, LOOSE, Case

F64, F32, F16, BF16, I32, I64, U8 = DType.F64, DType.F32, DType.F16, DType.BF16, DType.I32, DType.I64, DType.U8
WEIGHTS = np.linspace(-1, 1, 7 * 19, dtype=np.float32).reshape(7, 19)

CASES = [
    Case(MatMul(), [(F32, (3, 4)), (F32, (4, 5))], LOOSE),
    Case(MatMul(transpose_a=True), [(F32, (4, 3)), (F32, (4, 5))], LOOSE),
    Case(MatMul(transpose_b=True), [(F32, (3, 4)), (F32, (5, 4))], LOOSE),
    Case(MatMul(True, True), [(F32, (4, 3)), (F32, (5, 4))], LOOSE),
    Case(MatMul(), [(F32, (2, 13, 7)), WEIGHTS], LOOSE),
    Case(MatMul(transpose_b=True), [(F32, (13, 7)), np.ascontiguousarray(WEIGHTS.T)], LOOSE),
    Case(MatMul(transpose_a=True), [WEIGHTS, (F32, (7, 33))], LOOSE),
    Case(MatMul(), [(F32, (1, 64)), (F32, (64, 48))], LOOSE),
    Case(MatMul(), [(F32, (37, 40)), (F32, (40, 1))], LOOSE),
    Case(MatMul(), [(F32, (1, 9)), (F32, (9, 1))], LOOSE),
    Case(MatMul(), [(F32, (3, 1)), (F32, (1, 5))], CLOSE),
    Case(MatMul(), [(F32, (6,)), (F32, (6,))], LOOSE),
    Case(MatMul(True, True), [(F32, (6,)), (F32, (6,))], LOOSE),
    Case(MatMul(), [(F32, (6,)), (F32, (2, 6, 3))], LOOSE),
    Case(MatMul(transpose_b=True), [(F32, (6,)), (F32, (2, 3, 6))], LOOSE),
    Case(MatMul(transpose_a=True), [(F32, (2, 6, 3)), (F32, (6,))], LOOSE),
    Case(MatMul(), [(F32, (3, 2, 4, 5)), (F32, (2, 5, 3))], LOOSE),
    Case(MatMul(), [(F32, (3, 1, 4, 5)), (F32, (1, 2, 5, 3))], LOOSE),
    Case(MatMul(transpose_b=True), [(F32, (2, 3, 8, 4)), (F32, (2, 3, 8, 4))], LOOSE),
    Case(MatMul(), [(F64, (3, 4)), (F64, (4, 9))], LOOSE),
    Case(MatMul(), [(F16, (3, 4)), (F16, (4, 9))], LOOSE),
    Case(MatMul(), [(BF16, (3, 4)), (BF16, (4, 9))], LOOSE),
    Case(MatMul(), [(I32, (3, 4)), (I32, (4, 9))], EXACT),
    Case(MatMul(), [(I64, (2, 3, 4)), (I64, (4, 5))], EXACT),
    Case(MatMul(transpose_b=True), [(U8, (3, 40)), (U8, (9, 40))], EXACT, high=40),
    Case(MatMul(), [(F32, ("n=5", 4)), (F32, (4, 6))], LOOSE),
    *(
        Case(MatMul(transpose_b=True), [(t, (f"n={n}", f"k={k}")), (t, (f"m={m}", f"k={k}"))], LOOSE)
        for t in (F32, F64)
        for n, k, m in ((1, 5, 1), (1, 33, 62), (7, 16, 3), (13, 37, 64))
    ),
    Case(MatMul(transpose_b=True), [(F32, (2, "n=5", "k=3")), (F32, (2, "m=4", "k=3"))], LOOSE),
]
