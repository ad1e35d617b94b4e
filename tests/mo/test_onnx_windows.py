"""Convolutions and pools of ONNX in the middle phase: one node, with MO's attributes and weights without groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from aot.ir.graph import Graph as IrGraph
from aot.ir.interpret import interpret
from aot.ir.text.printer import print_graph
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.shown_windows import hide_windows
from aot.mo.bridge.to_mo import exported
from aot.mo.graph.graph import Graph, Node
from aot.mo.utils.arrays import int64_array
from tests.frontends.onnx.models import model, save
from tests.mo.test_channels_last import converted

SPATIAL = {1: (12,), 2: (12, 13), 3: (6, 7, 8)}  # sizes, by their number
CONV = {  # what Model Optimizer 2024.6 sets of node `conv`
    "op": "Conv",
    "type": "Convolution",
    "version": "opset1",
    "layout": "NCHW",
    "auto_pad": None,
    "group": 2,
    "output": 8,
    "batch_dims": [0],
    "channel_dims": [1],
    "spatial_dims": [2, 3],
    "input_feature_channel": 1,
    "output_feature_channel": 0,
    "kernel_shape": [8, 2, 3, 3],
    "kernel_spatial": [3, 3],
    "kernel_spatial_idx": [2, 3],
    "stride": [1, 1, 2, 1],
    "dilation": [1, 1, 1, 2],
    "pad": [[0, 0], [0, 0], [1, 2], [0, 1]],
    "pad_spatial_shape": [[1, 2], [0, 1]],
}
SAME = {"auto_pad": "same_upper", "group": 1, "pad": [[0, 0], [0, 0], [1, 1], [1, 1]], "kernel_shape": [4, 8, 3, 3]}
MAX = {
    "op": "MaxPool",
    "type": "Pooling",
    "version": "opset8",
    "layout": "NCHW",
    "auto_pad": None,
    "pool_method": "max",
    "exclude_pad": True,
    "global_pool": False,
    "pooling_convention": "valid",
    "rounding_type": "ceil",
    "batch_dims": [0],
    "channel_dims": [1],
    "spatial_dims": [2, 3],
    "window": [1, 1, 2, 2],
    "stride": [1, 1, 2, 2],
    "dilation": [1, 1, 1, 1],
    "pad": [[0, 0], [0, 0], [0, 1], [0, 1]],
    "pad_spatial_shape": [[0, 1], [0, 1]],
}
MEAN = {
    "op": "AveragePool",
    "version": "opset1",
    "pool_method": "avg",
    "rounding_type": "floor",
    "stride": [1, 1, 1, 1],
}


def network(x: Any, held: dict[str, Any], **changed: dict[str, Any]) -> onnx.ModelProto:
    """Return convolutions and pools behind each other; `held`: weights `w` and `v`, `changed`: attributes of nodes."""
    axes = x.ndim - 2
    ones, zeros, kernel = [1] * (axes - 1), [0] * (axes - 1), [3] * axes
    pool: dict[str, Any] = {"kernel_shape": [2] * axes, "pads": [0] * axes + [1] * axes}
    first: dict[str, Any] = {"strides": [2, *ones], "pads": [1, *zeros, 2, *ones], "dilations": [*ones, 2], "group": 2}
    rows: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Conv", ["x", "w"], "conv", first),
        ("Conv", ["conv", "v"], "same", {"auto_pad": "SAME_UPPER", "kernel_shape": kernel}),
        ("MaxPool", ["same"], "max", {"strides": [2] * axes, "ceil_mode": 1, **pool}),
        ("AveragePool", ["max"], "avg", pool),
        ("Relu", ["avg"], "y", {}),
    ]
    nodes = [
        helper.make_node(kind, inputs, [name], name=name, **{**attrs, **changed.get(name, {})})
        for kind, inputs, name, attrs in rows
    ]
    return model(nodes, {"x": x}, ["y"], held)


def values(*shape: int) -> Any:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def weights(axes: int = 2) -> dict[str, Any]:
    return {"w": values(8, 2, *[3] * axes), "v": values(4, 8, *[3] * axes)}


X = values(1, 4, *SPATIAL[2])


@pytest.fixture
def graph(tmp_path: Path) -> IrGraph:
    return converted(save(tmp_path, network(X, weights())))


def shown(graph: IrGraph) -> Graph:
    return exported(graph, "middle")


def types(made: Graph) -> set[str]:
    return {node.soft_get("type") for node in made.get_op_nodes()}


@pytest.mark.parametrize("axes", SPATIAL)
def test_a_round_trip_changes_nothing(axes: int, tmp_path: Path) -> None:
    graph = converted(save(tmp_path, network(values(1, 4, *SPATIAL[axes]), weights(axes))))
    text, nodes, made = print_graph(graph), dict(graph.nodes), shown(graph)
    assert types(made) == {"Parameter", "Const", "Convolution", "Pooling", "ReLU", "Result"}
    imported(made, graph)
    assert print_graph(graph) == text and graph.nodes == nodes


@pytest.mark.parametrize(("name", "wanted"), [("conv", CONV), ("same", SAME), ("max", MAX), ("avg", {**MAX, **MEAN})])
def test_nodes_have_the_attributes_of_model_optimizer(graph: IrGraph, name: str, wanted: dict[str, Any]) -> None:
    node: Any = Node(shown(graph), name)
    assert {key: np.asarray(node[key]).tolist() for key in wanted} == wanted
    assert not {"strides", "dilations", "kernel", "pads_begin", "pads_end"} & node.attrs().keys()


def test_weights_are_without_groups(graph: IrGraph) -> None:
    conv: Any = Node(shown(graph), "conv")
    assert conv.in_port(1).get_source().node.name == "w"
    assert conv.in_port(1).data.get_shape().tolist() == [8, 2, 3, 3]


def other_windows(made: Graph) -> None:
    conv: Any = Node(made, "conv")
    conv["stride"] = int64_array([1, 1, 1, 2])
    conv["pad"] = int64_array([[0, 0], [0, 0], [2, 0], [1, 1]])


def explicit_pads(made: Graph) -> None:
    same: Any = Node(made, "same")
    same["auto_pad"], same["pad"] = None, int64_array([[0, 0], [0, 0], [0, 1], [2, 0]])


def no_groups(made: Graph) -> None:
    """Let each filter read all channels."""
    conv: Any = Node(made, "conv")
    held = conv.in_port(1).data
    held.set_value(np.concatenate([held.get_value()] * 2, axis=1))
    conv["group"] = 1


def fewer_filters(made: Graph) -> None:
    """Take the last two filters of each group."""
    held = Node(made, "conv").in_port(1).data
    held.set_value(held.get_value()[[2, 3, 6, 7]])
    later = Node(made, "same").in_port(1).data
    later.set_value(later.get_value()[:, :4])


def rounded_down(made: Graph) -> None:
    pool: Any = Node(made, "max")
    pool["rounding_type"] = "floor"


def copied(made: Graph) -> None:
    for name in ("conv", "max", "avg"):
        node: Any = Node(made, name)
        new = node.copy_node({"name": name + "/copy"})
        for idx in node.in_ports():
            new.add_input_port(idx, skip_if_exist=True)
            node.in_port(idx).get_connection().add_destination(new.in_port(idx))
        node.out_port(0).get_connection().set_source(new.out_port(0))


def reference(made: onnx.ModelProto) -> Any:
    """Return the network's result by ONNX Runtime."""
    session: Any = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


CHANGES: dict[str, tuple[Callable[[Graph], None], dict[str, dict[str, Any]], Callable[..., dict[str, Any]]]] = {
    "windows": (other_windows, {"conv": {"strides": [1, 2], "pads": [2, 1, 0, 1]}}, dict),
    "explicit padding": (explicit_pads, {"same": {"auto_pad": "NOTSET", "pads": [0, 2, 1, 0]}}, dict),
    "no groups": (
        no_groups,
        {"conv": {"group": 1}},
        lambda w, v: {"w": np.tile(w, (1, 2, 1, 1)), "v": v},
    ),
    "fewer filters": (fewer_filters, {}, lambda w, v: {"w": w[[2, 3, 6, 7]], "v": v[:, :4]}),
    "rounding": (rounded_down, {"max": {"ceil_mode": 0}}, dict),
    "copies": (copied, {}, dict),
}


@pytest.mark.parametrize(("change", "attrs", "held"), CHANGES.values(), ids=CHANGES)
def test_changes_of_extensions_are_imported(
    graph: IrGraph, change: Callable[[Graph], None], attrs: dict[str, dict[str, Any]], held: Any
) -> None:
    made = shown(graph)
    change(made)
    imported(made, graph)
    np.testing.assert_allclose(
        interpret(graph, [X])[0], reference(network(X, held(**weights()), **attrs)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("change", [case[0] for case in CHANGES.values()], ids=CHANGES)
def test_inference_knows_the_groups(graph: IrGraph, change: Callable[[Graph], None]) -> None:
    made = shown(graph)
    change(made)
    for node in made.topological_sort():
        if node.kind == "op" and node.soft_get("type") in ("Convolution", "Pooling", "ReLU"):
            node["override_output_shape"] = True
            node["infer"](node)
    found = made.get_op_nodes(type="ReLU")[0].out_port(0).data.get_shape().tolist()
    imported(made, graph)
    assert found == list(interpret(graph, [X])[0].shape)


def test_the_back_phase_sees_the_operation_sets(graph: IrGraph) -> None:
    made = shown(graph)
    other_windows(made)
    hide_windows(made)
    assert {"GroupConvolution", "Convolution", "MaxPool", "AvgPool", "Reshape"} <= types(made)
    conv = Node(made, "conv")
    assert conv.strides.tolist() == [1, 2] and "stride" not in conv and "group" not in conv
    assert conv.in_port(1).data.get_shape().tolist() == [2, 4, 2, 3, 3]
