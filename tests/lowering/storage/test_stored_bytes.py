"""Bytes of compressed constants: deferred where a file has their numbers, and equal either way."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.types import TensorType
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.storage.integers import whole_numbers
from aot.lowering.storage.stored_bytes import stored_bytes
from aot.opset.elementwise.binary import Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from runtime.abi import DType

ROWS, COLUMNS = 16, 64


def decompressed(numbers: np.ndarray, zeros: np.ndarray) -> Deferred:
    """(numbers - zeros) * scales, as a file decompresses its weights."""
    f32 = TensorType(DType.F32, numbers.shape)
    row = TensorType(DType.F32, zeros.shape)
    wide = Deferred(Convert(destination_type=DType.F32), (numbers,), (TensorType(DType.U8, numbers.shape),), f32)
    moved = Deferred(Subtract(), (wide, zeros), (f32, row), f32)
    scales = np.full(zeros.shape, 0.5, np.float32)
    return Deferred(Multiply(), (moved, scales), (f32, row), f32)


@pytest.mark.parametrize("pairs", [None, 0, 1])
@pytest.mark.parametrize("step", [1, 2], ids=["as in the file", "with a common divisor"])
def test_bytes_are_those_of_the_numbers(pairs: int | None, step: int) -> None:
    most = 255 if pairs is None else 15
    numbers = np.random.default_rng(0).integers(0, most // step + 1, (ROWS, COLUMNS)).astype(np.uint8) * step
    numbers[:, :2] = [0, step]
    zeros = np.full((ROWS, 1), 0 if pairs is not None else 128 // step * step, np.float32)
    constant = decompressed(numbers, zeros)
    found = whole_numbers(constant, (1,), 255)
    assert found is not None
    whole, factors = found
    assert np.array_equal(whole * factors, constant.array())
    data = stored_bytes(constant, whole, np.zeros((ROWS, 1), np.int64), (ROWS, COLUMNS), pairs)
    assert isinstance(data, Deferred) == (step == 1)
    made = value_of(data)
    if pairs is None:
        assert np.array_equal(made, whole)
    else:
        low, high = (np.take(whole, range(n, whole.shape[pairs], 2), pairs) for n in (0, 1))
        assert np.array_equal(made, low | high << 4)
