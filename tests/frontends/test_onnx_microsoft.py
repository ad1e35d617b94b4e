"""Operations of domain com.microsoft against ONNX Runtime, by the references of the opset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.frontends.onnx_models import Array, model, run, save

onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(11)


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def i8(*shape: int) -> Array:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def zero(value: int) -> Array:
    return np.array(value, np.uint8)


def expected(path: Path, *inputs: Array) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})


def saved(folder: Path, kind: str, x: Array, others: list[Array | None], attrs: dict[str, Any], outputs: int) -> Path:
    """Input 0 is the model's, the others are constants; None: left out."""
    held = {f"c{i}": c for i, c in enumerate(others) if c is not None}
    names = ["x", *("" if c is None else f"c{i}" for i, c in enumerate(others))]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, names, made, domain="com.microsoft", **attrs)
    return save(folder, model([node], {"x": x}, made, held, domain="com.microsoft"))


def numbered(cases: Sequence[tuple[Any, ...]]) -> list[str]:
    return [f"{i}-{c[0]}" for i, c in enumerate(cases)]


Q = (scale(0.02), zero(120))
R = (scale(0.03), zero(131))
FLOATS: list[tuple[str, Array, list[Array | None], dict[str, Any], int]] = [
    ("FusedConv", f32(1, 3, 7, 7), [f32(4, 3, 3, 3), f32(4)], {"activation": "Relu", "pads": [1, 1, 1, 1]}, 1),
    (
        "FusedConv", f32(1, 3, 7, 7), [f32(4, 3, 3, 3)],
        {"activation": "LeakyRelu", "activation_params": [0.2], "kernel_shape": [3, 3]}, 1,
    ),
    ("FusedGemm", f32(3, 4), [f32(4, 5), f32(5)], {"activation": "LeakyRelu", "activation_alpha": 0.3}, 1),
    ("Attention", f32(2, 3, 8), [f32(8, 24), f32(24)], {"num_heads": 2, "unidirectional": 1}, 1),
    ("Attention", f32(2, 3, 8), [f32(8, 24), f32(24), np.int32([2, 3])], {"num_heads": 2}, 1),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 7, 8), f32(2, 7, 12)], {"num_heads": 2}, 1),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 7, 8), f32(2, 7, 8), f32(24)], {"num_heads": 2, "scale": 0.3}, 1),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 5, 8), f32(2, 5, 8)], {"num_heads": 2, "unidirectional": 1}, 1),
    (
        "MultiHeadAttention", f32(2, 5, 8),
        [f32(2, 7, 8), f32(2, 7, 8), None, np.int32([[1] * 7, [1, 1, 1, 1, 0, 0, 0]]), f32(2, 2, 5, 7)],
        {"num_heads": 2}, 1,
    ),
    (
        "MultiHeadAttention", f32(2, 5, 8),
        [f32(2, 5, 8), f32(2, 5, 8), None, None, None, f32(2, 2, 3, 4), f32(2, 2, 3, 4)], {"num_heads": 2}, 3,
    ),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 2, 7, 4), f32(2, 2, 7, 4)], {"num_heads": 2}, 1),
    ("RotaryEmbedding", f32(2, 3, 16), [np.int64([[0, 1, 2], [4, 3, 2]]), f32(9, 4), f32(9, 4)], {}, 1),
    ("RotaryEmbedding", f32(2, 2, 3, 8), [np.int64([5]), f32(9, 4), f32(9, 4)], {"interleaved": 1}, 1),
    ("MatMulNBits", f32(3, 48), [u8(5, 2, 16), f32(10)], {"K": 48, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("MatMulNBits", f32(3, 64), [u8(5, 2, 16), f32(10), u8(5)], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("MatMulNBits", f32(3, 64), [u8(5, 2, 32), f32(10)], {"K": 64, "N": 5, "bits": 8, "block_size": 32}, 1),
    ("QGemm", u8(3, 16), [*Q, i8(16, 5), scale(0.01), np.array(3, np.int8), np.arange(5, dtype=np.int32)], {}, 1),
    (
        "QAttention", u8(2, 3, 8),
        [i8(8, 24), f32(24), scale(0.02), scale(0.01), np.int32([2, 3]), zero(120), np.array(2, np.int8)],
        {"num_heads": 2}, 1,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "x", "others", "attrs", "outputs"), FLOATS, ids=numbered(FLOATS))
def test_floats(
    tmp_path: Path, kind: str, x: Array, others: list[Array | None], attrs: dict[str, Any], outputs: int
) -> None:
    path = saved(tmp_path, kind, x, others, attrs, outputs)
    for found, wanted in zip(run(path, x), expected(path, x), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


QUANTISED: list[tuple[str, Array, list[Array | None], dict[str, Any]]] = [
    ("QLinearAdd", u8(3, 64), [*Q, u8(64), *R, scale(0.05), zero(100)], {}),
    ("QLinearMul", u8(3, 64), [*Q, u8(64), *R, scale(0.05), zero(100)], {}),
    ("QLinearLeakyRelu", u8(3, 64), [*Q, *R], {"alpha": 0.1}),
    ("QLinearSigmoid", u8(3, 64), [*Q, scale(1 / 256), zero(0)], {}),
    ("QLinearSoftmax", u8(3, 20), [*Q, scale(1 / 256), zero(0)], {"axis": -1, "opset": 13}),
    ("QLinearGlobalAveragePool", u8(2, 5, 7, 6), [*Q, *R], {"channels_last": 0}),
    ("QLinearGlobalAveragePool", u8(2, 7, 6, 5), [*Q, *R], {"channels_last": 1}),
    ("QLinearAveragePool", u8(2, 5, 7, 6), [*Q, *R], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("QGemm", u8(3, 16), [*Q, u8(16, 5), *R, np.arange(5, dtype=np.int32), scale(0.4), zero(128)], {}),
    ("QGemm", u8(3, 16), [*Q, i8(5, 16), np.abs(f32(5)) / 50, i8(5), None, scale(0.4), zero(128)], {"transB": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "x", "others", "attrs"), QUANTISED, ids=numbered(QUANTISED))
def test_quantised(tmp_path: Path, kind: str, x: Array, others: list[Array | None], attrs: dict[str, Any]) -> None:
    """At most one level apart: where a number lies in the middle of two, ONNX Runtime's products round otherwise."""
    path = saved(tmp_path, kind, x, others, attrs, 1)
    (found,), (wanted,) = run(path, x), expected(path, x)
    assert found.dtype == wanted.dtype
    gap = np.abs(found.astype(int) - wanted.astype(int))
    assert gap.max() <= 1
    assert np.mean(gap) < 0.02


def test_concatenation_keeps_what_is_quantised_alike(tmp_path: Path) -> None:
    x, y = u8(2, 5), u8(2, 5)
    held = {"s": Q[0], "z": Q[1], "t": R[0], "r": R[1], "y": y}
    names = ["s", "z", "x", "s", "z", "y", "t", "r"]
    node = helper.make_node("QLinearConcat", names, ["o"], axis=1, domain="com.microsoft")
    path = save(tmp_path, model([node], {"x": x}, ["o"], held, domain="com.microsoft"))
    np.testing.assert_array_equal(run(path, x)[0], expected(path, x)[0])


def test_lstm_of_quantised_weights(tmp_path: Path) -> None:
    """ONNX Runtime also quantises inputs and states: to 8 bits of their range."""
    x = f32(5, 2, 3)
    others: list[Array | None] = [
        i8(2, 3, 16), i8(2, 4, 16), f32(2, 32), None, None, None, None, np.float32([0.01, 0.008]), np.int8([0, 0]),
        np.float32([0.009, 0.01]), np.int8([0, 0]),
    ]  # fmt: skip
    path = saved(tmp_path, "DynamicQuantizeLSTM", x, others, {"hidden_size": 4, "direction": "bidirectional"}, 3)
    for found, wanted in zip(run(path, x), expected(path, x), strict=True):
        np.testing.assert_allclose(found, wanted, atol=0.05)


def test_packed_heads_are_those_that_come_apart(tmp_path: Path) -> None:
    """ONNX Runtime has no packed heads on a CPU."""
    packed = f32(2, 5, 2, 3, 4)
    q, k, v = (np.ascontiguousarray(packed[:, :, :, i].reshape(2, 5, 8)) for i in range(3))
    together = run(saved(tmp_path, "MultiHeadAttention", packed, [], {"num_heads": 2}, 1), packed)[0]
    apart = run(saved(tmp_path, "MultiHeadAttention", q, [k, v], {"num_heads": 2}, 1), q)[0]
    np.testing.assert_allclose(together, apart, rtol=1e-6)
