"""Operations of domain com.microsoft against ONNX Runtime, by the references of the opset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.codegen.llvm.host import parse_target
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.options import CompileOptions
from aot.runtime.errors import ModelError
from tests.frontends.onnx.models import Array, Numbers, model, run, save
from tests.frontends.onnx.oracle import expected

pytestmark = pytest.mark.oracle
NUMBERS = Numbers(11)
RNG = np.random.default_rng(3)
f32, u8, i8, i7 = NUMBERS.f32, NUMBERS.u8, NUMBERS.i8, NUMBERS.i7


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def zero(value: int) -> Array:
    return np.array(value, np.uint8)


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
        "FusedConv",
        f32(1, 3, 7, 7),
        [f32(4, 3, 3, 3)],
        {"activation": "LeakyRelu", "activation_params": [0.2], "kernel_shape": [3, 3]},
        1,
    ),
    ("FusedGemm", f32(3, 4), [f32(4, 5), f32(5)], {"activation": "LeakyRelu", "activation_alpha": 0.3}, 1),
    ("Attention", f32(2, 3, 8), [f32(8, 24), f32(24)], {"num_heads": 2, "unidirectional": 1}, 1),
    ("Attention", f32(2, 3, 8), [f32(8, 24), f32(24), np.int32([2, 3])], {"num_heads": 2}, 1),
    ("Attention", f32(2, 3, 8), [f32(8, 24), f32(24), np.int32([3, 2, 1, 0])], {"num_heads": 2}, 1),
    (
        "Attention",
        f32(2, 3, 8),
        [f32(8, 24), f32(24), None, f32(2, 2, 2, 4, 4)],
        {"num_heads": 2, "unidirectional": 1},
        2,
    ),
    (
        "Attention",
        f32(2, 3, 8),
        [f32(8, 24), f32(24), np.int32([[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]]), f32(2, 2, 2, 2, 4)],
        {"num_heads": 2},
        2,
    ),
    (
        "Attention",
        f32(2, 3, 8),
        [f32(8, 24), f32(24), np.tril(np.ones((2, 3, 7), np.int32)), f32(2, 2, 2, 4, 4)],
        {"num_heads": 2},
        2,
    ),
    ("Attention", f32(2, 3, 8), [f32(8, 20), f32(20)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}, 1),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 7, 8), f32(2, 7, 12)], {"num_heads": 2}, 1),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 7, 8), f32(2, 7, 8), f32(24)], {"num_heads": 2, "scale": 0.3}, 1),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 5, 8), f32(2, 5, 8)], {"num_heads": 2, "unidirectional": 1}, 1),
    (
        "MultiHeadAttention",
        f32(2, 5, 8),
        [f32(2, 7, 8), f32(2, 7, 8), None, np.int32([[1] * 7, [1, 1, 1, 1, 0, 0, 0]]), f32(2, 2, 5, 7)],
        {"num_heads": 2},
        1,
    ),
    (
        "MultiHeadAttention",
        f32(2, 5, 8),
        [f32(2, 5, 8), f32(2, 5, 8), None, None, None, f32(2, 2, 3, 4), f32(2, 2, 3, 4)],
        {"num_heads": 2},
        3,
    ),
    ("MultiHeadAttention", f32(2, 5, 8), [f32(2, 2, 7, 4), f32(2, 2, 7, 4)], {"num_heads": 2}, 1),
    ("RotaryEmbedding", f32(2, 3, 16), [np.int64([[0, 1, 2], [4, 3, 2]]), f32(9, 4), f32(9, 4)], {}, 1),
    ("RotaryEmbedding", f32(2, 2, 3, 8), [np.int64([5]), f32(9, 4), f32(9, 4)], {"interleaved": 1}, 1),
    ("MatMulNBits", f32(3, 48), [u8(5, 2, 16), f32(10)], {"K": 48, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("MatMulNBits", f32(3, 64), [u8(5, 2, 16), f32(10), u8(5)], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("MatMulNBits", f32(3, 64), [u8(5, 2, 32), f32(10)], {"K": 64, "N": 5, "bits": 8, "block_size": 32}, 1),
    (
        "MatMulNBits",
        f32(3, 64),
        [u8(5, 2, 16), f32(10), None, np.arange(64, dtype=np.int32) % 2],
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
        1,
    ),
    (
        "QAttention",
        u8(2, 3, 8),
        [
            i7(8, 24),
            f32(24),
            scale(0.02),
            scale(0.01),
            np.int32([[1] * 5, [1, 1, 1, 1, 0]]),
            zero(120),
            np.array(2, np.int8),
            f32(2, 2, 2, 2, 4),
        ],
        {"num_heads": 2},
        2,
    ),
    ("FusedMatMul", f32(3, 2, 4), [f32(2, 4, 5)], {"transBatchA": 1, "alpha": 0.5}, 1),
    ("FusedMatMul", f32(4, 2, 3), [f32(5, 2, 4)], {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}, 1),
    ("TransposeMatMul", f32(2, 3, 4), [f32(2, 5, 4)], {"transB": 1}, 1),
    (
        "EmbedLayerNormalization",
        np.int32([[1, 2, 8], [0, 3, 3]]),
        [
            np.int32([[0, 1, 1], [1, 0, 0]]),
            f32(9, 6),
            f32(5, 6),
            f32(2, 6),
            f32(6),
            f32(6),
            np.int32([[1, 1, 0], [1, 1, 1]]),
        ],
        {},
        2,
    ),
    (
        "QEmbedLayerNormalization",
        np.int32([[1, 2, 8], [0, 3, 3]]),
        [
            np.int32([[0, 1, 1], [1, 0, 0]]),
            u8(9, 6),
            u8(5, 6),
            u8(2, 6),
            u8(6),
            u8(6),
            np.int32([[1, 1, 0], [1, 1, 1]]),
            *(scale(0.01 * k) for k in range(1, 6)),
            *(zero(100 + k) for k in range(5)),
        ],
        {},
        2,
    ),
    ("QGemm", u8(3, 16), [*Q, i7(16, 5), scale(0.01), np.array(3, np.int8), np.arange(5, dtype=np.int32)], {}, 1),
    (
        "QAttention",
        u8(2, 3, 8),
        [i7(8, 24), f32(24), scale(0.02), scale(0.01), np.int32([2, 3]), zero(120), np.array(2, np.int8)],
        {"num_heads": 2},
        1,
    ),
]


@pytest.mark.parametrize(("kind", "x", "others", "attrs", "outputs"), FLOATS, ids=numbered(FLOATS))
def test_float_operations_agree_with_onnx_runtime(
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
    ("NhwcMaxPool", u8(2, 7, 6, 5), [], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    (
        "QLinearConv",
        u8(1, 7, 6, 3),
        [*Q, i7(4, 3, 3, 3), scale(0.01), np.array(2, np.int8), scale(0.3), zero(128)],
        {"channels_last": 1, "pads": [1, 1, 1, 1]},
    ),
    ("QLinearGlobalAveragePool", u8(2, 5, 7, 6), [*Q, *R], {"channels_last": 0}),
    ("QLinearGlobalAveragePool", u8(2, 7, 6, 5), [*Q, *R], {"channels_last": 1}),
    ("QLinearAveragePool", u8(2, 5, 7, 6), [*Q, *R], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("QGemm", u8(3, 16), [*Q, u8(16, 5), *R, np.arange(5, dtype=np.int32), scale(0.4), zero(128)], {}),
    ("QGemm", u8(3, 16), [*Q, i7(5, 16), np.abs(f32(5)) / 50, i8(5), None, scale(0.4), zero(128)], {"transB": 1}),
]


@pytest.mark.parametrize(("kind", "x", "others", "attrs"), QUANTISED, ids=numbered(QUANTISED))
def test_quantised_operations_are_at_most_one_level_apart(
    tmp_path: Path, kind: str, x: Array, others: list[Array | None], attrs: dict[str, Any]
) -> None:
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


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("scales", [(), (16,)], ids=["scale", "scales"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm_of_quantised_weights(
    tmp_path: Path, direction: str, dtype: type, scales: tuple[int, ...], batch: int
) -> None:
    """Inputs and states are quantised by their range, as ONNX Runtime does, so the sums are the same integers.

    By the range of all sequences: ONNX Runtime's results depend on its threads, each of which takes some sequences.
    """
    count = 2 if direction == "bidirectional" else 1
    zero, low = (0, -127) if dtype is np.int8 else (128, 1)
    w, r = (RNG.integers(low, low + 255, (count, n, 16)).astype(dtype) for n in (3, 4))
    factor = [np.linspace(0.005, 0.01, count * 16, dtype=np.float32).reshape(count, 16)[:, : (scales or (1,))[0]]] * 2
    point = np.full((count, *scales), zero, dtype)
    w_scale, r_scale = (f if scales else f[:, 0] for f in factor)
    others: list[Array | None] = [w, r, f32(count, 32), None, None, None, None, w_scale, point, r_scale, point]
    x = f32(5, batch, 3)
    path = saved(tmp_path, "DynamicQuantizeLSTM", x, others, {"hidden_size": 4, "direction": direction}, 3)
    for found, wanted in zip(run(path, x), expected(path, x, threads=1), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_lstm_of_quantised_weights_beside_lengths_and_states(tmp_path: Path) -> None:
    """ONNX Runtime's own kernel agrees where sequences end early, and begin with states."""
    x, zero = f32(6, 3, 5), np.int8([0])
    w, r = i7(1, 5, 32), i7(1, 8, 32)
    scale = np.float32([0.01])
    states = [np.int32([6, 2, 4]), f32(1, 3, 8), f32(1, 3, 8)]
    others: list[Array | None] = [w, r, f32(1, 64), *states, None, scale, zero, scale, zero]
    path = saved(tmp_path, "DynamicQuantizeLSTM", x, others, {"hidden_size": 8}, 3)
    for found, wanted in zip(run(path, x), expected(path, x, threads=1), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_quantised_recurrences_use_dots(tmp_path: Path, target: str) -> None:
    """Large weights: each step is calls of its own, and its product a sum of integers, with equal results."""
    if not set(Target.parse("x86-64-v3").features) <= set(parse_target("native").features):
        pytest.skip("this machine has no AVX2")
    x, zero = f32(4, 1, 32), np.int8([0])
    w, r = i7(1, 32, 1024), i7(1, 256, 1024)
    scale = np.float32([0.002])
    others: list[Array | None] = [w, r, f32(1, 2048), None, None, None, None, scale, zero, scale, zero]
    path = saved(tmp_path, "DynamicQuantizeLSTM", x, others, {"hidden_size": 256}, 1)
    made = stages(path, CompileOptions(target=target, level=None))
    assert made.groups.count("dots=") >= 2
    np.testing.assert_allclose(in_memory(made.built)(x)[0], expected(path, x, threads=1)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, f32(1, 3, 16)),
        (1, f32(1, 4, 16)),
        (1, i7(4, 16)),
        (8, np.uint8([0])),
        (9, np.float32([1, 2, 3])),
        (10, np.int8([1, 2, 3])),
        (10, np.int8(0)),
    ],
)
def test_wrong_weights_of_quantised_recurrences(tmp_path: Path, place: int, wrong: Array) -> None:
    zero, one = np.int8([0]), np.float32([0.01])
    others: list[Array | None] = [i7(1, 3, 16), i7(1, 4, 16), f32(1, 32), None, None, None, None, one, zero, one, zero]
    others[place] = wrong
    with pytest.raises(ModelError):
        run(saved(tmp_path, "DynamicQuantizeLSTM", f32(5, 2, 3), others, {"hidden_size": 4}, 1), f32(5, 2, 3))


@pytest.mark.parametrize("hidden", [8, 256])
def test_quantised_recurrences_of_dynamic_sizes(tmp_path: Path, hidden: int) -> None:
    """Small weights stay in one kernel, with large ones a loop of control flow calls kernels."""
    w, r, zero = i7(1, 8, 4 * hidden), i7(1, hidden, 4 * hidden), np.int8([0])
    scale = np.float32([0.002])
    others: list[Array | None] = [w, r, f32(1, 8 * hidden), None, None, None, None, scale, zero, scale, zero]
    path = saved(tmp_path, "DynamicQuantizeLSTM", f32(4, 2, 8), others, {"hidden_size": hidden}, 1)
    made = stages(path, CompileOptions(level=None, shapes=(("x", ("t", "n", 8)),), dims=(("t", 1, 16), ("n", 1, 4))))
    run_it = in_memory(made.built)
    for steps, batch in ((4, 2), (1, 1)):
        x = f32(steps, batch, 8)
        fixed = saved(tmp_path, "DynamicQuantizeLSTM", x, others, {"hidden_size": hidden}, 1)
        np.testing.assert_allclose(run_it(x)[0], expected(fixed, x, threads=1)[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["peepholes", "weights that are no i8"])
def test_lstm_of_quantised_weights_that_are_dequantised(tmp_path: Path, kind: str) -> None:
    """ONNX Runtime also quantises inputs and states: to 8 bits of their range."""
    w, r, zero = i7(1, 3, 16), i7(1, 4, 16), np.int8([0])
    if kind != "peepholes":
        r, w, zero = (RNG.integers(0, 256, q.shape).astype(np.uint8) for q in (r, w, zero))
    scale, p = np.float32([0.008]), f32(1, 12) if kind == "peepholes" else None
    others: list[Array | None] = [w, r, f32(1, 32), None, None, None, p, scale, zero, scale, zero]
    x = f32(5, 2, 3)
    path = saved(tmp_path, "DynamicQuantizeLSTM", x, others, {"hidden_size": 4}, 3)
    for found, wanted in zip(run(path, x), expected(path, x), strict=True):
        np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.parametrize(("bits", "zeros"), [(4, 0), (4, 2), (8, 3), (8, 0), (2, 1)])
def test_rows_of_a_table_of_few_bits(tmp_path: Path, bits: int, zeros: int) -> None:
    held = {"w": u8(9, 48 * bits // 8), "s": f32(9, 3)} | ({"z": u8(9, zeros)} if zeros else {})
    names = ["w", "x", *list(held)[1:]]
    attrs = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain="com.microsoft", **attrs)
    x = np.int64([[1, 0, 8], [4, 4, 3]])
    path = save(tmp_path, model([node], {"x": x}, ["y"], held, domain="com.microsoft"))
    np.testing.assert_allclose(run(path, x)[0], expected(path, x)[0], rtol=1e-5)


def test_a_mask_of_all_places_is_read_at_those_of_the_queries(tmp_path: Path) -> None:
    """ONNX Runtime has no masks of 4 axes on a CPU."""
    x, places = f32(2, 3, 8), np.tril(np.ones((2, 1, 9, 9), np.int32))
    held: list[Array | None] = [f32(8, 24), f32(24), places, f32(2, 2, 2, 4, 4)]
    found = run(saved(tmp_path, "Attention", x, held, {"num_heads": 2}, 2), x)
    held[2] = np.ascontiguousarray(places[:, 0, 4:7, :7])
    wanted = run(saved(tmp_path, "Attention", x, held, {"num_heads": 2}, 2), x)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_blocks_in_another_order_keep_their_zero_points(tmp_path: Path) -> None:
    """Columns in their own order, as they lie side by side; ONNX Runtime leaves zero points beside g_idx out."""
    x, attrs = f32(3, 64), {"K": 64, "N": 5, "bits": 4, "block_size": 32}
    held: list[Array | None] = [u8(5, 2, 16), f32(10), u8(5)]
    wanted = expected(saved(tmp_path, "MatMulNBits", x, held, attrs, 1), x)[0]
    held.append(np.arange(64, dtype=np.int32) // 32)
    found = run(saved(tmp_path, "MatMulNBits", x, held, attrs, 1), x)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_packed_heads_are_those_that_come_apart(tmp_path: Path) -> None:
    """ONNX Runtime has no packed heads on a CPU."""
    packed = f32(2, 5, 2, 3, 4)
    q, k, v = (np.ascontiguousarray(packed[:, :, :, i].reshape(2, 5, 8)) for i in range(3))
    together = run(saved(tmp_path, "MultiHeadAttention", packed, [], {"num_heads": 2}, 1), packed)[0]
    apart = run(saved(tmp_path, "MultiHeadAttention", q, [k, v], {"num_heads": 2}, 1), q)[0]
    np.testing.assert_allclose(together, apart, rtol=1e-6)
