"""Attributes of ONNX whose meaning OpenVINO's operations do not have, compiled, against ONNX Runtime or NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import aot
from aot.runtime.errors import ModelError, UsageError
from tests.frontends.onnx.models import Array, Numbers, converted, model, save
from tests.frontends.onnx.oracle import expected

NUMBERS = Numbers(3)
f32 = NUMBERS.f32
Case = tuple[str, int, list[Array], dict[str, Array], dict[str, Any], int]


def built(folder: Path, case: Case, vary: tuple[int, ...] = ()) -> tuple[Path, list[Array]]:
    """The model of one node; dimensions `vary` of its first input are named."""
    kind, opset, inputs, constants, attributes, outputs = case
    names = [f"x{i}" for i in range(len(inputs))]
    shapes: dict[str, tuple[Any, ...]] = {n: (x.dtype, list(x.shape)) for n, x in zip(names, inputs, strict=True)}
    for axis in vary:
        shapes["x0"][1][axis] = f"d{axis}"
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, [*names, *("" if n.startswith("_") else n for n in constants)], made, **attributes)
    held = {n: a for n, a in constants.items() if not n.startswith("_")}
    return save(folder, model([node], shapes, made, held, opset)), inputs


@pytest.mark.parametrize(("opset", "dtype"), [(6, np.float32), (7, np.float32), (10, np.bool_), (13, np.bool_)])
def test_the_mask_of_dropout_has_the_type_of_its_opset(tmp_path: Path, opset: int, dtype: type) -> None:
    attributes = {"is_test": 1} if opset == 6 else {}
    path, inputs = built(tmp_path, ("Dropout", opset, [f32(2, 3)], {}, attributes, 2))
    mask = np.asarray(aot.compile_model(path)(inputs)[1])
    assert mask.dtype == dtype
    assert mask.all()


def lstm(x: Array, w: Array, r: Array, c: Array, clip: float, coupled: bool) -> Array:
    """ONNX's formulas: `clip` bounds what enters every activation."""

    def bounded(v: Array) -> Array:
        return np.clip(v, -clip, clip)

    def gate(v: Array) -> Array:
        return 1 / (1 + np.exp(-bounded(v)))

    h, rows = np.zeros_like(c), []
    for step in x:
        i, o, f, n = np.split(step @ w.T + h @ r.T, 4, 1)
        forget = 1 - gate(i) if coupled else gate(f)
        c = forget * c + gate(i) * np.tanh(bounded(n))
        h = gate(o) * np.tanh(bounded(c))
        rows.append(h)
    return np.stack(rows)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("clip", [0.3, 0.8, 1e9])
def test_clip_of_lstm_bounds_what_enters_all_activations(tmp_path: Path, clip: float, coupled: bool) -> None:
    x, w, r, c = f32(4, 2, 3), f32(1, 20, 3, size=2.0), f32(1, 20, 5), f32(1, 2, 5, size=2.0)
    held = {"w": w, "r": r, "_b": c, "_n": c, "_h": c, "c": c}
    attributes = {"hidden_size": 5, "clip": clip, "input_forget": int(coupled)}
    path, inputs = built(tmp_path, ("LSTM", 17, [x], held, attributes, 1))
    found = np.asarray(aot.compile_model(path)(inputs)[0])[:, 0]
    np.testing.assert_allclose(found, lstm(x, w[0], r[0], c[0], clip, coupled), rtol=1e-4, atol=1e-5)


KERNELS = [
    ("Conv", 17, [f32(1, 2, 5, 4), f32(3, 2, 3, 2)], {}, {}, 1),
    ("Conv", 17, [f32(1, 2, 5), f32(2, 1, 3)], {}, {"group": 2}, 1),
    ("ConvTranspose", 17, [f32(1, 2, 5, 4), f32(2, 3, 3, 2)], {}, {}, 1),
    ("ConvInteger", 17, [NUMBERS.u8(1, 2, 5, 4), NUMBERS.u8(3, 2, 3, 2)], {}, {}, 1),
    ("DeformConv", 19, [f32(1, 2, 5, 4), f32(3, 2, 3, 2), f32(1, 12, 3, 3)], {}, {}, 1),
]


@pytest.mark.parametrize("case", KERNELS, ids=lambda c: c[0])
@pytest.mark.parametrize("kernel", [[2**31, 2], [2, 3], [2], [3, 2, 1]])
def test_a_kernel_shape_other_than_the_weights_is_refused(tmp_path: Path, case: Case, kernel: list[int]) -> None:
    path, _ = built(tmp_path, (*case[:4], case[4] | {"kernel_shape": kernel}, 1))
    with pytest.raises(ModelError, match="the weights' spatial sizes are kernel_shape"):
        converted(path)


def test_a_kernel_shape_is_demanded_of_weights_that_vary(tmp_path: Path) -> None:
    x, w = f32(1, 1, 4, 4), f32(1, 1, 2, 2)
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[2, 2])
    path = save(tmp_path, model([node], {"x": x, "w": (np.float32, [1, 1, "h", 2])}, ["y"]))
    compiled, (wanted,) = aot.compile_model(path), expected(path, x, w)
    np.testing.assert_allclose(compiled([x, w])[0], wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(UsageError, match="the weights' spatial sizes are kernel_shape"):
        compiled([x, f32(1, 1, 3, 2)])
