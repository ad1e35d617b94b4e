"""Operations that Model Optimizer has inside only, made by extensions, compute what they computed there.

By the references of the opset.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.compilation.driver import stages
from aot.frontends import read_model
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.to_mo import exported
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.utils.arrays import int64_array
from tests.inferred import results_of
from tests.mo.test_bridge import FAST
from tests.mo.test_round_trips import onnx_model

X = np.array([[1.0, 2.0, 4.0, 9.0]], np.float32)
AXIS1 = {"axis": 1}


@pytest.mark.parametrize(
    ("module", "name", "attrs", "extra", "expected"),
    [
        ("identity", "Identity", {}, [], X),
        ("power", "AttributedPower", {"scale": 2.0, "shift": 1.0, "power": 2.0}, [], (2 * X + 1) ** 2),
        ("power", "AttributedPower", {"power": 0.5}, [], np.sqrt(X)),
        ("power", "AttributedPower", {}, [], X),
        ("eltwise_n", "EltwiseNAdd", {"in_ports_count": 3}, [X, X], 3 * X),
        ("eltwise_n", "EltwiseNMax", {"in_ports_count": 2}, [X[:, ::-1]], np.maximum(X, X[:, ::-1])),
        ("gather", "AttributedGather", AXIS1, [int64_array([3, 0])], X[:, [3, 0]]),
        ("split", "AttributedSplit", {**AXIS1, "num_splits": 2}, [], X[:, :2]),
        ("split", "AttributedVariadicSplit", {**AXIS1, "size_splits": int64_array([1, 3])}, [], X[:, :1]),
        (
            "split",
            "AttributedVariadicSplit",
            {**AXIS1, "split_lengths": int64_array([1, 3]), "out_ports_count": 2},
            [],
            X[:, :1],
        ),
        (
            "pad",
            "AttributedPad",
            {"pads": int64_array([[0, 1], [2, 0]]), "fill_value": 5.0},
            [],
            np.pad(X, [(0, 1), (2, 0)], constant_values=5),
        ),
        (
            "slice",
            "AttributedSlice",
            {"starts": int64_array([1]), "ends": int64_array([3]), "axes": int64_array([1])},
            [],
            X[:, 1:3],
        ),
        ("slice", "Slice", {}, [int64_array([0]), int64_array([4]), int64_array([1]), int64_array([2])], X[:, ::2]),
        ("softmax", "SoftmaxONNX", AXIS1, [], np.exp(X) / np.exp(X).sum()),
        ("flatten", "Flatten", {"axis": 0}, [], X.reshape(-1)),
        ("flatten", "FlattenONNX", {"axis": 0}, [], X),
        ("expand_dims", "ExpandDims", {"expand_axis": int64_array([0])}, [], X[None]),
        ("clamp", "Clamp", {}, [np.float32(2), np.float32(5)], np.clip(X, 2, 5)),
        ("MatMul", "GemmONNX", {"transpose_b": True, "alpha": 2.0}, [X, np.ones(1, np.float32)], 2 * X @ X.T + 1),
        ("squeeze", "Squeeze", {"squeeze_dims": int64_array([0])}, [], X[0]),
        ("unsqueeze", "Unsqueeze", {"unsqueeze_dims": int64_array([2])}, [], X[..., None]),
        ("transpose", "Transpose", {"order": int64_array([1, 0])}, [], X.T),
        ("activation_ops", "LeakyReLU", {"negative_slope": 0.5}, [], np.where(X > 0, X, X / 2)),
        ("ClipByValueTF", "ClibByValueTF", {}, [np.float32(2), np.float32(5)], np.clip(X, 2, 5)),
        ("stop_gradient", "StopGradientOp", {}, [], X),
        ("elementwise", "BiasAdd", {}, [np.array([1, 2, 3, 4], np.float32)], X + np.arange(1, 5)),
        ("permute", "Permute", {"order": int64_array([1, 0])}, [], X.T),
        (
            "pad",
            "ONNXPad",
            {},
            [int64_array([0, 1, 0, 2]), np.float32(7)],
            np.pad(X, [(0, 0), (1, 2)], constant_values=7),
        ),
        (
            "pad",
            "TFPad",
            {"mode": "reflect"},
            [int64_array([[0, 0], [1, 2]])],
            np.pad(X, [(0, 0), (1, 2)], mode="reflect"),
        ),
        (
            "pad",
            "TFPad",
            {},
            [int64_array([[0, 0], [1, 2]]), np.float32(7)],
            np.pad(X, [(0, 0), (1, 2)], constant_values=7),
        ),
        ("slice", "TFSlice", {}, [int64_array([0, 1]), int64_array([1, 2])], X[:, 1:3]),
        ("pack", "PackOp", {"axis": 1, "in_ports_count": 2}, [X + 1], np.stack([X, X + 1], 1)),
        ("Reverse", "Reverse", {"axis": int64_array([1])}, [], X[:, ::-1]),
    ],
)
def test_internal_operations_have_the_meaning_of_model_optimizer(
    module: str, name: str, attrs: dict[str, Any], extra: list[Any], expected: Any, tmp_path: Path
) -> None:
    path = onnx_model(
        tmp_path, [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"])], {"x": [1, 4]}, {}
    )
    graph = read_model(path)
    made = exported(graph)
    last = made.get_op_nodes(op="Abs")[1]
    new = library_class(module, name)(made, {"name": "new", **attrs}).create_node()
    last.in_port(0).get_connection().insert_node(new) if len(new.out_ports()) == 1 else (
        new.in_port(0).connect(last.in_port(0).get_source()),
        last.in_port(0).connect(new.out_port(0)),
    )
    for at, value in enumerate(extra, start=1):
        new.add_input_port(at, skip_if_exist=True)
        new.in_port(at).connect(Const(made, {"value": value}).create_node().out_port(0))
    imported(made, graph)
    (found,) = results_of(stages(graph, FAST).optimized, [X])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("module", "name", "before", "behind", "expected"),
    [
        ("fill", "Fill", [int64_array([3, 4])], [], np.full((3, 4), 7, np.float32)),
        (
            "scatternd",
            "TFScatterND",
            [int64_array([[4], [1], [4]])],
            [int64_array([6])],
            np.array([0, 7, 0, 0, 14, 0], np.float32),  # of the same index: the sum
        ),
    ],
)
def test_internal_operations_whose_data_are_not_the_first_input(
    module: str, name: str, before: list[Any], behind: list[Any], expected: Any, tmp_path: Path
) -> None:
    shape = [] if name == "Fill" else [3]
    path = onnx_model(
        tmp_path, [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"])], {"x": shape}, {}
    )
    graph = read_model(path)
    made = exported(graph)
    first, last = made.get_op_nodes(op="Abs")
    new = library_class(module, name)(made, {"name": "new"}).create_node()
    constants = [Const(made, {"value": value}).create_node().out_port(0) for value in (*before, *behind)]
    sources = [*constants[: len(before)], first.out_port(0), *constants[len(before) :]]
    last.in_port(0).get_connection().set_source(new.out_port(0))
    for at, source in enumerate(sources):
        new.add_input_port(at, skip_if_exist=True)
        new.in_port(at).connect(source)
    imported(made, graph)
    (found,) = results_of(stages(graph, FAST).optimized, [np.full(shape, -7, np.float32)])
    np.testing.assert_array_equal(found, expected)
