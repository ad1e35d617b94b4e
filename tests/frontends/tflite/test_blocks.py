"""Weights with scales in blocks (BlockwiseQuantization), of 2, 4 and 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.runtime.errors import CorruptError
from tests.frontends.onnx.models import converted, run
from tests.frontends.tflite.models import Net, Op, Tensor, constant, model
from tests.frontends.tflite.test_reader import saved

ROWS, COLUMNS, BLOCK = 6, 64, 16
RANGES = {
    "i2": (2, -2, 2),
    "i4": (4, -8, 8),
    "u4": (4, 0, 16),
    "i8": (8, -128, 128),
}  # bits, least, behind the greatest


def packed(weights: np.ndarray, bits: int) -> bytes:
    """Numbers of few bits, the first one in the lowest bits of a byte."""
    codes = (weights.astype(np.int64).reshape(-1, 8 // bits) & (1 << bits) - 1) << np.arange(0, 8, bits)
    return codes.sum(1).astype(np.uint8).tobytes()


def drawn(kind: str, zeros: bool, scales_type: Any = np.float16) -> tuple[list[Tensor], np.ndarray]:
    """Tensors w, scales and zero points with numbers 1, 2, 3; the weights in f64."""
    rng, (bits, low, high) = np.random.default_rng(3), RANGES[kind]
    weights = rng.integers(low, high, (ROWS, COLUMNS))
    scales = rng.uniform(0.01, 0.2, (ROWS, COLUMNS // BLOCK)).astype(scales_type)
    points = rng.integers(max(low, -128), min(high, 127), scales.shape).astype(np.int8) if zeros else None
    shape, blocks = (ROWS, COLUMNS), (2, 3 if zeros else -1, BLOCK)
    held = [Tensor("w", kind, shape, packed(weights, bits), blocks=blocks), constant("scales", scales)]
    plain = weights.reshape(*scales.shape, BLOCK).astype(np.float64)
    if points is not None:
        held.append(constant("zeros", points))
        plain -= points[:, :, None]
    return held, (plain * scales.astype(np.float64)[:, :, None]).reshape(shape)


def product(held: list[Tensor], rows: int = ROWS) -> bytes:
    tensors = [Tensor("x", "f32", [2, COLUMNS]), *held, Tensor("y", "f32", [2, rows])]
    last = len(tensors) - 1
    return model(Net(tensors, [Op("FULLY_CONNECTED", [0, 1, -1], [last], "FullyConnected")], [0], [last]))


X = np.random.default_rng(4).standard_normal((2, COLUMNS)).astype(np.float32)


@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_in_blocks_are_multiplied_by_their_scales(kind: str, zeros: bool, tmp_path: Path) -> None:
    held, weights = drawn(kind, zeros)
    found = run(saved(tmp_path, product(held)), X)[0]
    np.testing.assert_allclose(found, X @ weights.T, rtol=1e-5, atol=1e-5)


def test_compiled_product_of_weights_in_blocks(tmp_path: Path) -> None:
    held, weights = drawn("i4", False)
    found = aot.compile_model(saved(tmp_path, product(held)))(X)[0]
    np.testing.assert_allclose(found, X @ weights.T, rtol=1e-5, atol=1e-5)


def test_scales_may_be_of_32_bits_and_data_quantized(tmp_path: Path) -> None:
    """The product is that of numbers, rounded to the output's levels."""
    held, weights = drawn("i4", False, np.float32)
    x, y = Tensor("x", "i8", [2, COLUMNS], scales=[0.05], zeros=[3]), Tensor("y", "i8", [2, ROWS], scales=[0.4])
    data = np.random.default_rng(5).integers(-128, 128, (2, COLUMNS)).astype(np.int8)
    net = Net([x, *held, y], [Op("FULLY_CONNECTED", [0, 1, -1], [3], "FullyConnected")], [0], [3])
    found = run(saved(tmp_path, model(net)), data)[0]
    exact = (data - 3.0) * 0.05 @ weights.T / 0.4
    assert np.abs(found - np.clip(exact, -128, 127)).max() < 0.501


def test_rows_of_a_table_in_blocks_are_looked_up(tmp_path: Path) -> None:
    held, weights = drawn("i4", False)
    tensors = [Tensor("ids", "i32", [3]), *held, Tensor("y", "f32", [3, COLUMNS])]
    file = saved(tmp_path, model(Net(tensors, [Op("EMBEDDING_LOOKUP", [0, 1], [3])], [0], [3])))
    ids = np.array([5, 0, 2], np.int32)
    np.testing.assert_allclose(run(file, ids)[0], weights[ids].astype(np.float32), rtol=1e-6)


def test_blocks_may_lie_along_any_axis(tmp_path: Path) -> None:
    scales = np.float32([[1, 2, 3], [10, 20, 30]])
    weights = np.int8([[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 4, 4]])
    tensors = [Tensor("x", "f32", [4, 3]), Tensor("w", "i8", [4, 3], weights, blocks=(2, -1, 2))]
    tensors += [constant("s", scales), Tensor("d", "f32", [4, 3]), Tensor("y", "f32", [4, 3])]
    ops = [Op("DEQUANTIZE", [1], [3]), Op("ADD", [0, 3], [4], "Add")]
    found = run(saved(tmp_path, model(Net(tensors, ops, [0], [4]))), np.zeros((4, 3), np.float32))[0]
    assert found.tolist() == [[1, 2, 3], [2, 4, 6], [30, 60, 90], [40, 80, 120]]


@pytest.mark.parametrize("blocks", [(9, -1, 16), (0, -1, 16), (2, -1, 8), (2, -1, 0), (2, -1, -16), (2, 1, 16)])
def test_blocks_that_lie_are_refused(blocks: tuple[int, int, int], tmp_path: Path) -> None:
    """No tensor, no constant, sizes that do not fit, zero points of another shape."""
    held, _ = drawn("i4", False)
    held[0].blocks = blocks
    with pytest.raises(CorruptError, match="tensor 'w'"):
        converted(saved(tmp_path, product(held)))
