"""Operations of domain com.microsoft against ONNX Runtime, by the references of the opset."""

from __future__ import annotations

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


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("scales", [(), (16,)], ids=["scale", "scales"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm_of_quantized_weights(
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


def test_lstm_of_quantized_weights_beside_lengths_and_states(tmp_path: Path) -> None:
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
def test_quantized_recurrences_use_dots(tmp_path: Path, target: str) -> None:
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
def test_wrong_weights_of_quantized_recurrences(tmp_path: Path, place: int, wrong: Array) -> None:
    zero, one = np.int8([0]), np.float32([0.01])
    others: list[Array | None] = [i7(1, 3, 16), i7(1, 4, 16), f32(1, 32), None, None, None, None, one, zero, one, zero]
    others[place] = wrong
    with pytest.raises(ModelError):
        run(saved(tmp_path, "DynamicQuantizeLSTM", f32(5, 2, 3), others, {"hidden_size": 4}, 1), f32(5, 2, 3))


@pytest.mark.parametrize("hidden", [8, 256])
def test_quantized_recurrences_of_dynamic_sizes(tmp_path: Path, hidden: int) -> None:
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
def test_lstm_of_quantized_weights_that_are_dequantized(tmp_path: Path, kind: str) -> None:
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
