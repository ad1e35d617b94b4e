"""Convolutions and pools of TensorFlow in the middle phase: one node with channels last, with MO's attributes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.graph_passes import run_front
from aot.frontends import read_model
from aot.ir.graph import Graph as IrGraph
from aot.ir.interpret import interpret
from aot.ir.text.printer import print_graph
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.shown_windows import hide_windows
from aot.mo.bridge.to_mo import exported
from aot.mo.graph.graph import Graph, Node
from aot.mo.utils.arrays import int64_array
from aot.options import CompileOptions
from tests.frontends.onnx.models import Array
from tests.frontends.tf.test_operations import FAMILIES, contents
from tests.frontends.tf.tf_models import unpacked
from tests.mo import tf_style_models
from tests.mo.test_loading import HEAD, folder

STYLE, X = tf_style_models.MODELS["tf_scaled_rows"]  # a depthwise convolution, Mul, Relu, MaxPool, a convolution
DEPTH = {  # what Model Optimizer 2024.6 sets of the depthwise convolution
    "op": "DepthwiseConv2dNative",
    "type": "Convolution",
    "version": "opset1",
    "layout": "NHWC",
    "auto_pad": "same_upper",
    "group": 4,
    "output": 8,
    "batch_dims": [0],
    "channel_dims": [3],
    "spatial_dims": [1, 2],
    "input_feature_channel": 2,
    "output_feature_channel": 2,
    "kernel_shape": [3, 3, 4, 2],
    "kernel_spatial": [3, 3],
    "kernel_spatial_idx": [0, 1],
    "stride": [1, 1, 1, 1],
    "dilation": [1, 1, 1, 1],
    "pad": [[0, 0], [1, 1], [1, 1], [0, 0]],
    "pad_spatial_shape": [[1, 1], [1, 1]],
}
POOL = {
    "op": "MaxPool",
    "type": "Pooling",
    "pool_method": "max",
    "layout": "NHWC",
    "window": [1, 1, 1, 1],
    "stride": [1, 2, 2, 1],
    "spatial_dims": [1, 2],
    "pad": [[0, 0]] * 4,
}
WINDOWS = [f for f in FAMILIES if f.stem in ("convolution", "normalization", "pooling", "quantization")]
LAST = {"op": "Conv2D", "group": 1, "output": 3, "input_feature_channel": 2, "output_feature_channel": 3}


def converted(path: Path) -> IrGraph:
    """Return the graph that the middle phase begins with; nodes have the names that the file's have."""
    graph = read_model(path)
    run_front(graph, CompileOptions(level=None, extensions=path.parent), None)
    return graph


def written(folder: Path, content: bytes) -> Path:
    path = folder / "model.pb"
    path.write_bytes(content)
    return path


@pytest.fixture
def graph(tmp_path: Path) -> IrGraph:
    return converted(written(tmp_path, STYLE.SerializeToString()))


def shown(graph: IrGraph) -> Graph:
    return exported(graph, "middle", framework="tf")


def types(made: Graph) -> list[str]:
    return [node.soft_get("type") for node in made.get_op_nodes()]


def unchanged(graph: IrGraph) -> list[str]:
    """Check that a round trip changes nothing; return the types of the nodes that extensions see."""
    text, nodes, made = print_graph(graph), dict(graph.nodes), shown(graph)
    seen = types(made)
    imported(made, graph)
    assert print_graph(graph) == text and graph.nodes == nodes
    return seen


@pytest.mark.parametrize("name", sorted(tf_style_models.MODELS.keys() - {"tf_custom_op"}))  # it has no conversion
def test_a_round_trip_of_frozen_graphs_changes_nothing(name: str, tmp_path: Path) -> None:
    graph = converted(written(tmp_path, tf_style_models.MODELS[name][0].SerializeToString()))
    assert "Transpose" not in unchanged(graph)


@pytest.mark.parametrize("name", ["convolutions", "streaming", "unet"])
def test_a_round_trip_of_networks_changes_nothing(name: str, tmp_path: Path) -> None:
    seen = unchanged(converted(unpacked(name, tmp_path)))
    assert "Convolution" in seen and "GroupConvolution" not in seen


@pytest.mark.parametrize("sizes", ["graph", "graph_dynamic"])
@pytest.mark.parametrize("path", WINDOWS, ids=[p.stem for p in WINDOWS])
def test_a_round_trip_of_operations_changes_nothing(path: Path, sizes: str, tmp_path: Path) -> None:
    unchanged(converted(written(tmp_path, contents(path)[0][f"{sizes}.pb"])))


@pytest.mark.parametrize(("name", "wanted"), [("depth", DEPTH), ("pool", POOL)])
def test_nodes_have_the_attributes_and_the_tensors_of_model_optimizer(
    graph: IrGraph, name: str, wanted: dict[str, Any]
) -> None:
    node: Any = Node(shown(graph), name)
    assert {key: np.asarray(node[key]).tolist() for key in wanted} == wanted
    assert node.name == name and node.in_port(0).get_source().node.name == {"depth": "x", "pool": "r"}[name]
    assert node.out_port(0).get_destination().node.soft_get("type") in ("Multiply", "Convolution")


def of_type(made: Graph, type_: str, **attrs: Any) -> Any:
    return made.get_op_nodes(type=type_, **attrs)[0]


def test_the_second_convolution(graph: IrGraph) -> None:
    node = of_type(shown(graph), "Convolution", op="Conv2D")
    assert {key: node[key] for key in LAST} == LAST
    assert node.get_weights_permute.perm.tolist() == [3, 2, 0, 1]
    assert node.in_port(1).data.get_shape().tolist() == [1, 1, 8, 3]


def smaller_steps(made: Graph) -> None:
    pool: Any = Node(made, "pool")
    pool["stride"] = int64_array([1, 1, 2, 1])


def copied(made: Graph) -> None:
    depth: Any = Node(made, "depth")
    new = depth.copy_node({"name": "depth/copy"})
    for idx in (0, 1):
        new.add_input_port(idx, skip_if_exist=True)
        depth.in_port(idx).get_connection().add_destination(new.in_port(idx))
    depth.out_port(0).get_connection().set_source(new.out_port(0))


def scaled(made: Graph) -> None:
    weights = Node(made, "depth").in_port(1).data
    weights.set_value(weights.get_value() * np.float32(2))


def narrower(made: Graph) -> None:
    """Take the last two of three filters of a convolution."""
    weights = of_type(made, "Convolution", op="Conv2D").in_port(1).data
    weights.set_value(weights.get_value()[..., 1:])


def other_order(made: Graph) -> None:
    """Give the weights in another order of dimensions, and say so."""
    node = of_type(made, "Convolution", op="Conv2D")
    weights = node.in_port(1).data
    weights.set_value(np.ascontiguousarray(weights.get_value().transpose(3, 2, 0, 1)))
    node["get_weights_permute"] = None


def depthwise(x: Array, w: Array) -> Array:
    """Windows of 3 x 3, two filters a channel, zeros around."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n, h, width, c = x.shape
    parts = [padded[:, i : i + h, j : j + width, :, None] * w[i, j] for i in range(3) for j in range(3)]
    return np.sum(parts, axis=0, dtype=np.float64).reshape(n, h, width, 2 * c)


def expected(graph: IrGraph, factor: float = 1, step: int = 2, behind: Callable[[Array], Array] = np.array) -> Array:
    """Return the network's result; `factor` of the first weights, `behind`: what follows a convolution."""
    held = {node.name: node.data for node in graph.nodes.values() if node.data is not None}
    w, scale, last = (np.asarray(held[name]) for name in ("depth/weights", "scale", "y/weights"))
    rows = np.maximum(behind(depthwise(X, w * factor)) * scale, 0)[:, ::step, ::2]
    return behind(rows @ last[0, 0])


CHANGES: dict[str, tuple[Callable[[Graph], None], dict[str, Any], slice]] = {
    "none": (lambda made: None, {}, slice(None)),
    "strides": (smaller_steps, {"step": 1}, slice(None)),
    "a copy": (copied, {}, slice(None)),
    "weights": (scaled, {"factor": 2}, slice(None)),
    "fewer filters": (narrower, {}, slice(1, None)),
    "another order of weights": (other_order, {}, slice(None)),
}


@pytest.mark.parametrize(("change", "more", "channels"), CHANGES.values(), ids=CHANGES)
def test_changes_of_extensions_are_imported(
    graph: IrGraph, change: Callable[[Graph], None], more: dict[str, Any], channels: slice
) -> None:
    wanted = expected(graph, **more)[..., channels]
    made = shown(graph)
    change(made)
    imported(made, graph)
    np.testing.assert_allclose(interpret(graph, [X])[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("change", [smaller_steps, copied, narrower, other_order])
def test_inference_knows_the_layout(graph: IrGraph, change: Callable[[Graph], None]) -> None:
    made = shown(graph)
    change(made)
    for node in made.topological_sort():
        if node.kind == "op" and node.soft_get("type") in ("Convolution", "Pooling", "ReLU", "Multiply"):
            node["override_output_shape"] = True
            node["infer"](node)
    end = of_type(made, "Convolution", op="Conv2D").out_port(0).data.get_shape().tolist()
    assert end == [1, 6 if change is smaller_steps else 3, 4, 2 if change is narrower else 3]


def test_the_back_phase_sees_the_operation_sets(graph: IrGraph) -> None:
    made = shown(graph)
    scaled(made)
    hide_windows(made)
    assert sorted(set(types(made)) & {"GroupConvolution", "MaxPool", "Pooling", "Transpose"}) == [
        "GroupConvolution",
        "MaxPool",
        "Transpose",
    ]
    conv = of_type(made, "GroupConvolution")
    assert conv.strides.tolist() == [1, 1] and "stride" not in conv and "spatial_dims" not in conv
    assert Node(made, "depth/weights").value.shape == (3, 3, 4, 2)
    held = conv.in_port(1).data.get_value()
    np.testing.assert_array_equal(held[:, :, 0], Node(made, "depth/weights").value.transpose(2, 3, 0, 1))


MIDDLE = """
from openvino.tools.mo.middle.pass_separator import MiddleFinish, MiddleStart
from openvino.tools.mo.ops.activation_ops import Abs

class AbsBehind(MiddleReplacementPattern):
    enabled = True
    force_shape_inference = True
    force_clean_up = True
    def run_after(self):
        return [MiddleStart]
    def run_before(self):
        return [MiddleFinish]
    def find_and_replace_pattern(self, graph):
        for conv in graph.get_op_nodes(type="Convolution", layout="NHWC"):
            conv["marked"] = conv["need_shape_inference"] = True
            made = Abs(graph, dict(name=conv.name + "/abs")).create_node()
            conv.out_port(0).get_connection().insert_node(made)
"""
BACK = """
class Marked(BackReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        found = [n for n in graph.get_op_nodes() if n.has("marked")]
        assert {n.type for n in found} == {"GroupConvolution", "Convolution"}
        assert graph.graph["layout"] == "NCHW"
        assert [n.in_port(0).data.get_shape()[1] for n in found] == [4, 8], "channels are first"
        assert [n.in_port(1).data.get_shape().tolist() for n in found] == [[4, 2, 1, 3, 3], [3, 8, 1, 1]]
"""


def test_marks_of_the_middle_phase_are_there_in_the_back_phase(tmp_path: Path) -> None:
    path = written(tmp_path, STYLE.SerializeToString())
    mine = folder(tmp_path, middle_abs=HEAD + MIDDLE, back_marked=HEAD + BACK)
    graph = stages(path, CompileOptions(level=None, extensions=mine)).optimized
    found, wanted = interpret(graph, [X])[0], expected(converted(path), behind=np.abs)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
