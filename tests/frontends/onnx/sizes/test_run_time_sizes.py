"""Axes and sizes that are inputs: by the references of the opset, against ONNX's own reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import aot
from aot.runtime.errors import ModelError, UsageError
from tests.frontends.onnx.models import Array, Numbers, converted, i64, model, run, save

f32 = Numbers(17).f32


def number(value: int) -> Array:
    return np.array(value, np.int64)


CASES: list[tuple[str, int, list[Array | None], dict[str, Any]]] = [
    ("Slice", 13, [f32(4, 5, 6), i64(1, 0), i64(3, 9), i64(2, -3)], {}),
    ("Slice", 13, [f32(4, 5, 6), i64(-1), i64(-9), i64(1), i64(-2)], {}),
    ("Pad", 25, [f32(3, 4), i64(1, 2), np.float32(7), i64(-1)], {}),
    ("Pad", 25, [f32(3, 4), i64(1, 2, 0, 3)], {"mode": "wrap"}),
    ("CenterCropPad", 18, [f32(3, 8, 5), i64(5, 9)], {"axes": [-2, 2]}),
    ("HannWindow", 17, [number(9)], {"periodic": 0}),
    ("HammingWindow", 17, [number(10)], {}),
    ("BlackmanWindow", 17, [number(10)], {"output_datatype": TensorProto.DOUBLE}),
    ("MelWeightMatrix", 17, [number(8), number(16), number(8192), np.float32(0), np.float32(4096)], {}),
    ("AffineGrid", 20, [f32(2, 2, 3), i64(2, 3, 4, 5)], {"align_corners": 1}),
    ("AffineGrid", 20, [f32(2, 3, 4), i64(2, 3, 4, 5, 6)], {}),
    ("DFT", 20, [f32(2, 6, 5, 1), None, number(1)], {"onesided": 1}),
    ("DFT", 20, [f32(2, 6, 5, 2), number(4), number(-2)], {"inverse": 1}),
    ("DFT", 20, [f32(2, 6, 5, 2), number(7), number(1)], {}),
    ("STFT", 17, [f32(2, 40, 1), number(8), f32(16)], {}),
    ("STFT", 17, [f32(2, 40, 1), number(8), None, number(16)], {"onesided": 0}),
    ("Col2Im", 18, [f32(2, 6, 16), i64(5, 4), i64(2, 1)], {}),
    (
        "Col2Im",
        18,
        [f32(1, 8, 6), i64(7, 6), i64(2, 2)],
        {"strides": [2, 3], "pads": [0, 1, 1, 0], "dilations": [2, 1]},
    ),
    ("Col2Im", 18, [f32(1, 10, 12), i64(3, 4, 5), i64(1, 1, 5)], {}),
    ("Resize", 19, [f32(1, 2, 7, 8), None, None, i64(1, 2, 3, 5)], {"mode": "linear", "antialias": 1}),
    ("Resize", 19, [f32(1, 2, 7, 8), None, None, i64(1, 2, 4, 11)], {"mode": "cubic", "antialias": 1}),
    (
        "Resize",
        19,
        [f32(1, 2, 7, 8), None, np.array([1, 1, 0.4, 0.7], np.float32)],
        {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    ),
    (
        "MaxUnpool",
        22,
        [np.abs(f32(1, 1, 2, 2)), np.array([[[[5, 7], [13, 15]]]]), i64(1, 1, 5, 6)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
]


@pytest.mark.parametrize(("kind", "opset", "inputs", "attrs"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_operations_with_computed_sizes_agree_with_the_reference(
    tmp_path: Path, kind: str, opset: int, inputs: list[Array | None], attrs: dict[str, Any]
) -> None:
    given = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    made = model([helper.make_node(kind, names, ["y"], **attrs)], given, ["y"], opset=opset)
    (wanted,) = ReferenceEvaluator(made).run(None, given)
    (found,) = run(save(tmp_path, made), *given.values())
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_one_library_slices_along_any_axis(tmp_path: Path) -> None:
    x = f32(4, 5)
    given = {"x": x, "starts": i64(1), "ends": i64(4), "axes": i64(0)}
    compiled = aot.compile_model(save(tmp_path, model([helper.make_node("Slice", list(given), ["y"])], given, ["y"])))
    for axis, wanted in ((0, x[1:4]), (1, x[:, 1:4]), (-1, x[:, 1:4])):
        np.testing.assert_array_equal(compiled({**given, "axes": i64(axis)})[0], wanted)


def test_one_library_attends_to_pasts_of_any_length(tmp_path: Path) -> None:
    lengths = {"q": "n", "k": "n", "v": "n", "pk": "past", "pv": "past"}
    shapes = {name: (1, 2, length, 4) for name, length in lengths.items()}
    outputs = ["y", "key", "value"]
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], outputs, is_causal=1)
    made = model([node], {n: (np.float32, s) for n, s in shapes.items()}, outputs, opset=23)
    compiled, reference = aot.compile_model(save(tmp_path, made), threads=1), ReferenceEvaluator(made)
    for n, past in ((3, 2), (1, 5)):
        feed = {name: f32(1, 2, past if name in ("pk", "pv") else n, 4) for name in shapes}
        found = compiled(feed)
        for i, wanted in enumerate(reference.run(None, feed)):
            np.testing.assert_allclose(found[i], wanted, rtol=1e-4, atol=1e-5)


def test_parts_of_a_concatenation_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    inputs = {"a": (np.float32, ("n", 2)), "b": (np.float32, ("m", 2))}
    node = helper.make_node("Concat", list(inputs), ["y"], axis=1)
    compiled = aot.compile_model(save(tmp_path, model([node], inputs, ["y"])), threads=1)
    assert compiled([f32(3, 2), f32(3, 2)])[0].shape == (3, 4)
    with pytest.raises(UsageError, match="beside the axis must be equal, got m and n, with n = 3, m = 10000"):
        compiled([f32(3, 2), f32(10000, 2)])


def test_memory_relies_on_no_rule_that_is_checked_later(tmp_path: Path) -> None:
    """`d`, of p[0] elements, is made before `updates` fit x, which says that p is 4 and 5."""
    nodes = [
        helper.make_node("Slice", ["p", "zero", "one"], ["rows"]),
        helper.make_node("Expand", ["c", "rows"], ["d"]),
        helper.make_node("CumSum", ["d", "axis"], ["e"]),
        helper.make_node("CumSum", ["e", "axis"], ["g"]),
        helper.make_node("ReduceSum", ["g"], ["s"], keepdims=0),
        helper.make_node("Expand", ["s", "p"], ["updates"]),
        helper.make_node("ScatterElements", ["x", "places", "updates"], ["y"], axis=0),
    ]
    held = {"zero": i64(0), "one": i64(1), "c": f32(1), "axis": number(0), "places": np.zeros((4, 5), np.int64)}
    x = f32(4, 5)
    compiled = aot.compile_model(save(tmp_path, model(nodes, {"x": x, "p": i64(4, 5)}, ["y"], held)), threads=1)
    np.testing.assert_allclose(compiled([x, i64(4, 5)])[0][1:], x[1:])
    with pytest.raises(UsageError, match="updates must fit indices and data"):
        compiled([x, i64(10_000_000, 5)])


BROKEN: list[tuple[str, dict[str, Array | None], dict[str, Any], str]] = [
    ("Attention", {"q": None, "k": f32(1, 2, 3, 4), "v": f32(1, 2, 3, 4)}, {}, "input q must be given"),
    ("TensorScatter", {"x": f32(2, 3, 4, 5), "u": f32(2, 3, 4)}, {}, "must be within rank 3"),
    ("MaxUnpool", {"x": f32(1, 1, 2, 2), "i": np.zeros((1, 1, 2, 2), np.int64)}, {"kernel_shape": [2]}, "kernel sizes"),
    ("Conv", {"x": f32(1, 3, 5, 5)}, {}, "Conv: of opset 24, has 2 to 3 inputs, got 1"),
    ("Pad", {"x": f32(2, 3), "p": i64(1, 1, 1)}, {}, "Pad"),
]


@pytest.mark.parametrize(("kind", "inputs", "attrs", "text"), BROKEN, ids=[c[0] for c in BROKEN])
def test_broken_rules_are_errors_of_the_model(
    tmp_path: Path, kind: str, inputs: dict[str, Array | None], attrs: dict[str, Any], text: str
) -> None:
    given = {name: x for name, x in inputs.items() if x is not None}
    node = helper.make_node(kind, [name if name in given else "" for name in inputs], ["y"], **attrs)
    with pytest.raises(ModelError, match=text) as caught:
        converted(save(tmp_path, model([node], given, ["y"], opset=24)))
    assert any(kind in note for note in caught.value.__notes__)
