"""Attributes of ONNX whose meaning OpenVINO's operations do not have, compiled, against ONNX Runtime or NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import aot
from aot.runtime.errors import ModelError, UsageError
from tests.frontends.onnx.models import Array, Numbers, converted, i64, model, save
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


def same(path: Path, inputs: list[Array]) -> None:
    """Compiled results are those of ONNX Runtime, types included."""
    found = aot.compile_model(path)(inputs)
    for i, wanted in enumerate(expected(path, *inputs)):
        got = np.asarray(found[i])
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)


def pool(kind: str, shape: tuple[int, ...], **attributes: Any) -> Case:
    opset = attributes.pop("opset", 12 if kind == "MaxPool" else 22)
    return (kind, opset, [f32(*shape)], {}, {"ceil_mode": 1, **attributes}, 1)


POOLS = [
    pool("AveragePool", (1, 1, 8, 8), kernel_shape=[3, 3], strides=[4, 4], pads=[1] * 4, count_include_pad=1),
    pool("AveragePool", (1, 2, 8), kernel_shape=[3], strides=[4], pads=[1, 0], count_include_pad=1),
    pool("AveragePool", (1, 2, 9), kernel_shape=[3], strides=[4], pads=[0, 1], count_include_pad=1, opset=11),
    pool(
        "AveragePool", (1, 2, 8, 9), kernel_shape=[1, 3], strides=[1, 4], dilations=[1, 2], pads=[0, 0, 0, 1],
        count_include_pad=1,
    ),
    pool(
        "AveragePool", (1, 2, 8, 7, 8), kernel_shape=[2, 3, 2], strides=[2, 4, 2], pads=[0, 0, 1, 0, 1, 0],
        count_include_pad=1,
    ),
    pool("AveragePool", (1, 2, 8, 7), kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1]),
    pool("AveragePool", (1, 2, 8, 7), kernel_shape=[3, 2], strides=[2, 3], auto_pad="VALID", count_include_pad=1),
    pool("AveragePool", (1, 2, 7, 6), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER", count_include_pad=1),
    pool("LpPool", (1, 2, 6, 8, 8), kernel_shape=[3, 1, 2], strides=[2, 2, 1], auto_pad="VALID", p=1),
    pool("LpPool", (1, 2, 8, 7), kernel_shape=[3, 2], strides=[3, 2], pads=[1, 0, 0, 1], p=3),
    pool("MaxPool", (1, 2, 8, 9), kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1], dilations=[2, 1]),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("vary", [(), (2,)], ids=["static", "varying"])
@pytest.mark.parametrize("case", POOLS, ids=lambda c: f"{c[0]}-{'x'.join(map(str, c[2][0].shape))}")
def test_pooling_that_rounds_up_divides_by_data_and_declared_padding(
    tmp_path: Path, case: Case, vary: tuple[int, ...]
) -> None:
    same(*built(tmp_path, case, vary))


def resize(shape: tuple[int, ...], sizes: tuple[int, ...], policy: str, **attributes: Any) -> Case:
    given = {"mode": "linear", **attributes, "keep_aspect_ratio_policy": policy}
    return ("Resize", 19, [f32(*shape)], {"_roi": i64(), "_scales": i64(), "sizes": i64(*sizes)}, given, 1)


RESIZES = [
    resize((1, 2, 7, 6), (11, 9), "not_larger", axes=[2, 3], mode="cubic", coordinate_transformation_mode="asymmetric"),
    resize((1, 2, 6, 3), (12, 3), "not_larger", axes=[3, 2], coordinate_transformation_mode="half_pixel_symmetric"),
    resize((1, 2, 5, 3), (7, 5), "not_smaller", axes=[2, 3], mode="nearest", nearest_mode="round_prefer_ceil"),
    resize((1, 2, 6, 8), (1, 2, 8, 9), "not_larger", mode="nearest", nearest_mode="floor"),
    resize((1, 2, 7, 5), (11, 9), "not_larger", axes=[2, 3], coordinate_transformation_mode="align_corners"),
    resize((1, 2, 6, 7), (7, 10), "not_smaller", axes=[2, 3], coordinate_transformation_mode="pytorch_half_pixel"),
    resize((1, 2, 9, 7), (4, 5), "not_larger", axes=[2, 3], antialias=1),
    resize((1, 1, 20, 21), (21, 21), "not_larger", axes=[2, 3], mode="cubic"),  # sizes stay, the scale is exact
    resize((1, 1, 20, 30), (21, 31), "not_larger", axes=[2, 3]),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("vary", [(), (2, 3)], ids=["static", "varying"])
@pytest.mark.parametrize("case", RESIZES, ids=lambda c: f"{c[4]['keep_aspect_ratio_policy']}-{c[4]['mode']}")
def test_resize_that_keeps_the_aspect_ratio_uses_one_scale(tmp_path: Path, case: Case, vary: tuple[int, ...]) -> None:
    same(*built(tmp_path, case, vary))


@pytest.mark.oracle
@pytest.mark.parametrize("vary", [(), (2, 3)], ids=["static", "varying"])
@pytest.mark.parametrize("computed", [False, True], ids=["known", "computed"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_aligned_corners_stay_where_scales_give_no_whole_size(
    tmp_path: Path, mode: str, computed: bool, vary: tuple[int, ...]
) -> None:
    given = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    scales = np.array([1, 1, 1.5, 0.8], np.float32)
    inputs, constants = ([f32(1, 2, 7, 9)], {"_roi": i64()})
    if computed:
        node = helper.make_node("Resize", ["x0", "", "s"], ["y0"], **given)
        shape = [f"d{a}" if a in vary else n for a, n in enumerate(inputs[0].shape)]
        made = model([node], {"x0": (np.float32, shape), "s": scales}, ["y0"], opset=19)
        return same(save(tmp_path, made), [*inputs, scales])
    return same(*built(tmp_path, ("Resize", 19, inputs, constants | {"scales": scales}, given, 1), vary))


FEATURES = {"s": f32(3, 4), "b": f32(3, 4), "m": f32(3, 4), "v": f32(3, 4) ** 2}
CHANNELS = {"s": f32(3), "b": f32(3), "m": f32(3), "v": f32(3) ** 2}
OLD = [
    ("TopK", 9, [f32(3, 7)], {}, {"k": 3, "axis": 1}, 2),
    ("TopK", 6, [f32(4, 3)], {}, {"k": 2, "axis": 0}, 2),
    ("BatchNormalization", 8, [f32(2, 3, 4)], FEATURES, {"spatial": 0}, 1),
    ("BatchNormalization", 8, [f32(2, 3, 4)], CHANNELS, {"spatial": 1}, 1),
    ("Dropout", 7, [f32(2, 3)], {}, {"ratio": 0.5}, 1),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case", OLD, ids=lambda c: f"{c[0]}-{c[1]}")
def test_attributes_of_old_opsets(tmp_path: Path, case: Case) -> None:
    same(*built(tmp_path, case))


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


RECURRENT = [
    ("GRU", 3, {"clip": 0.4, "linear_before_reset": 1}),
    ("GRU", 3, {"clip": 0.4}),
    ("RNN", 1, {"clip": 0.4}),
    ("RNN", 1, {"activations": ["Affine"], "activation_alpha": [0.3], "activation_beta": [0.1]}),
    (
        "LSTM",
        4,
        {
            "activations": ["HardSigmoid", "Tanh", "Affine"],
            "activation_alpha": [0.3, 2.0],
            "activation_beta": [0.4, 0.1],
        },
    ),
    (
        "LSTM",
        4,
        {"activations": ["Tanh", "Relu", "ScaledTanh"], "activation_alpha": [0.7], "activation_beta": [0.5]},
    ),
    ("LSTM", 4, {"input_forget": 1}),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "gates", "attributes"), RECURRENT)
def test_parameters_of_activations_are_consumed_in_their_order(
    tmp_path: Path, kind: str, gates: int, attributes: dict[str, Any]
) -> None:
    held = {"w": f32(1, gates * 5, 3), "r": f32(1, gates * 5, 5)}
    same(*built(tmp_path, (kind, 17, [f32(4, 2, 3, size=2.0)], held, {"hidden_size": 5, **attributes}, 1)))


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


@pytest.mark.oracle
@pytest.mark.parametrize("case", [*KERNELS[:4], pool("MaxPool", (1, 2, 8), kernel_shape=[3])], ids=lambda c: c[0])
def test_an_empty_auto_pad_is_none(tmp_path: Path, case: Case) -> None:
    same(*built(tmp_path, (*case[:4], case[4] | {"auto_pad": ""}, 1)))
