"""Bytes of compressed constants: deferred where a file has their numbers, and equal either way."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.types import TensorType
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.storage.scale_groups import in_parts
from aot.lowering.storage.stored_bytes import Shifted, stored_bytes
from aot.opset.elementwise.binary import Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from aot.runtime.abi import DType

ROWS, COLUMNS = 16, 64


def decompressed(numbers: np.ndarray, zeros: np.ndarray) -> Deferred:
    """(numbers - zeros) * scales, as a file decompresses its weights."""
    f32 = TensorType(DType.F32, numbers.shape)
    row = TensorType(DType.F32, zeros.shape)
    wide = Deferred(Convert(destination_type=DType.F32), (numbers,), (TensorType(DType.U8, numbers.shape),), f32)
    moved = Deferred(Subtract(), (wide, zeros), (f32, row), f32)
    scales = np.full(zeros.shape, 0.5, np.float32)
    return Deferred(Multiply(), (moved, scales), (f32, row), f32)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("step", [1, 2], ids=["as in the file", "with a common divisor"])
def test_bytes_are_those_of_the_numbers(bits: int, axis: int, step: int) -> None:
    most = 255 if bits == 8 else 15
    numbers = np.random.default_rng(0).integers(0, most // step + 1, (ROWS, COLUMNS)).astype(np.uint8) * step
    along = numbers.swapaxes(0, axis)
    along[0], along[1], along[2] = 0, step, most // step * step
    shape = (1, COLUMNS) if axis == 0 else (ROWS, 1)
    constant = decompressed(numbers, np.full(shape, (most + 1) // 2 // step * step, np.float32))
    found = in_parts(constant, (axis,))
    assert found is not None and found.bits == bits and found.size == 0
    whole = value_of(found.numbers)
    assert np.array_equal((whole - found.zeros) * found.factors, constant.array())
    data = stored_bytes(found.numbers, axis if bits == 4 else None)
    assert isinstance(data, Deferred) == (step == 1)
    made = value_of(data)
    if bits == 8:
        assert np.array_equal(made, whole)
    else:
        low, high = (np.take(whole, range(n, numbers.shape[axis], 2), axis) for n in (0, 1))
        assert np.array_equal(made, low | high << 4)


@pytest.mark.parametrize("pairs", [None, 0, 1])
@pytest.mark.parametrize("seen", [(16, 64), (16, 4, 16)], ids=["plain", "groups"])
def test_rows_are_those_of_all_bytes(pairs: int | None, seen: tuple[int, ...]) -> None:
    draw = np.random.default_rng(0)
    numbers = draw.integers(0, 8, seen).astype(np.uint8)
    offsets = draw.integers(0, 8, (*seen[:-1], 1)).astype(np.uint8)
    operation = Shifted((ROWS, COLUMNS), seen, numbers.strides, pairs=pairs)
    types = TensorType(DType.U8, seen), TensorType(DType.U8, offsets.shape)
    made = Deferred(operation, (numbers, offsets), types, TensorType(DType.U8, operation.stored))
    assert made.is_in_rows
    rows = [made.rows(n, min(n + 3, made.shape[0])) for n in range(0, made.shape[0], 3)]
    assert np.array_equal(np.concatenate(rows), made.array())


def test_rows_of_turned_numbers_need_all_of_them() -> None:
    numbers = np.arange(ROWS * COLUMNS, dtype=np.uint8).reshape(COLUMNS, ROWS)
    operation = Shifted((ROWS, COLUMNS), (ROWS, COLUMNS), numbers.T.strides)
    zero = np.zeros((1, 1), np.uint8)
    types = TensorType(DType.U8, numbers.shape), TensorType(DType.U8, (1, 1))
    made = Deferred(operation, (numbers, zero), types, TensorType(DType.U8, (ROWS, COLUMNS)))
    assert not made.is_in_rows
    assert np.array_equal(made.rows(2, 5), numbers.T[2:5])
