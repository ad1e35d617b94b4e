"""Extensions of the back phase of a TensorFlow network, and those behind the change of layout, see NCHW."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.ir.interpret import interpret
from aot.mo.graph.node import Node
from aot.mo.ops.library import library_class
from aot.opset.detection.detection_output import DetectionOutput
from aot.opset.detection.proposals.proposal import Proposal
from aot.opset.detection.roi_pooling import PSROIPooling, ROIPooling
from aot.opset.movement.blocks import ReorgYolo
from aot.options import CompileOptions
from aot.runtime.errors import AotError
from tests.frontends.onnx.models import Array
from tests.frontends.tf.graphs import INT32, written
from tests.mo.graphs import build, data
from tests.mo.test_loading import HEAD, folder
from tests.mo.tf_style_models import N, Net, X

IMPORTS = """
import numpy as np
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs, create_op_node_with_second_input
from openvino.tools.mo.middle.ApplyPermutations import ApplyPermutation
from openvino.tools.mo.middle.ApplyNHWCtoNCHWpermutation import ApplyNHWCtoNCHWpermutation
from openvino.tools.mo.middle.InsertLayoutPropagationTransposes import *
from openvino.tools.mo.middle.pass_separator import PostMiddleStart, MiddleFinish
from openvino.tools.mo.back.pass_separator import BackStart
from openvino.tools.mo.ops.elementwise import Add, Mul
from openvino.tools.mo.graph.perm_inputs import PermuteInputs
from openvino.tools.mo.ops.op import PermuteAttrs
"""
LOOK = """
class Look(BackReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        assert graph.graph["layout"] == "NCHW" and graph.stage == "back"
        for node in graph.get_op_nodes():
            node["seen"] = True
"""
NUMBERED = """
class Numbered({base}):
    enabled = True
    {more}
    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(name="{name}"):
            count = node.out_port(0).data.get_shape()[1]
            numbers = np.arange(1, count + 1, dtype=np.float32).reshape(1, -1, 1, 1)
            made = create_op_with_const_inputs(graph, Mul, {{1: numbers}}, {{"name": "numbered"}})
            node.out_port(0).get_connection().insert_node(made)
"""


def computed(place: Path, net: Any, *x: Array, **files: str) -> list[Array]:
    place.mkdir(exist_ok=True)
    path = written(place, net)
    mine = folder(place, **{k: HEAD + IMPORTS + v for k, v in files.items()}) if files else None
    return list(interpret(stages(path, CompileOptions(level=None, extensions=mine)).optimized, list(x)))


def wide() -> Any:
    """Return a network with an operation of each kind that follows the layout, and of those that do not."""
    net = Net(X).conv("conv", "x", N.f32(3, 3, 4, 6)).constant("bias", N.f32(6))
    net.add("BiasAdd", "biased", "conv", "bias", data_format=b"NHWC").add("Relu", "r", "biased")
    net.constant("pads", np.array([[0, 0], [1, 0], [0, 2], [1, 1]], np.int32)).add("Pad", "padded", "r", "pads")
    net.graph.node[-1].attr["Tpaddings"].type = INT32
    net.add("MaxPool", "pool", "padded", padding=b"SAME")
    net.graph.node[-1].attr["data_format"].s = b"NHWC"
    net.lists(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    net.constant("axis", np.int32(3)).add("Split", "parts", "axis", "pool", num_split=2)
    net.add("ConcatV2", "joined", "parts:1", "parts", "axis", N=2)
    net.graph.node[-1].attr["Tidx"].type = INT32
    net.reduce("Mean", "mean", "joined", [1, 2]).add("Mul", "scaled", "joined", "mean")
    net.add("Softmax", "soft", "scaled").add("AddV2", "sum", "soft", "joined")
    net.constant("shape", np.array([1, 8, -1, 5], np.int32)).add("Reshape", "shaped", "sum", "shape")
    net.graph.node[-1].attr["Tshape"].type = INT32
    net.constant("order", np.array([0, 2, 1, 3], np.int32)).add("Transpose", "turned", "shaped", "order")
    net.graph.node[-1].attr["Tperm"].type = INT32
    net.add("BatchMatMulV2", "product", "turned", "turned", adj_x=True)
    net.reduce("Sum", "total", "sum", [2], keep_dims=False)
    net.constant("size", np.array([7, 5], np.int32)).add("ResizeBilinear", "resized", "sum", "size")
    return net.conv("y", "resized", N.f32(1, 1, 8, 2)).graph


def test_a_network_computes_the_same_bits_in_the_layout_of_the_back_phase(tmp_path: Path) -> None:
    net = wide()
    plain, seen = computed(tmp_path / "a", net, X), computed(tmp_path / "b", net, X, back_look=LOOK)
    assert len(plain) == len(seen) == 3
    for one, other in zip(plain, seen, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


BEHIND = "def run_after(self): return [{}]\n    def run_before(self): return [BackStart]"
PLACES = {
    "back": ("back_n", "BackReplacementPattern", ""),
    "behind ApplyPermutation": ("middle_n", "MiddleReplacementPattern", BEHIND.format("ApplyPermutation")),
    "behind ApplyNHWC": ("middle_n", "MiddleReplacementPattern", BEHIND.format("ApplyNHWCtoNCHWpermutation")),
}


LAST = """
class A(FrontReplacementPattern):
    def find_and_replace_pattern(self, graph): pass
"""  # transformations of Model Optimizer's run before it


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["conv", "r", "joined"])
def test_channels_are_dimension_1_behind_the_change(tmp_path: Path, place: str, name: str) -> None:
    net = Net(X).conv("conv", "x", N.f32(3, 3, 4, 6)).add("Relu", "r", "conv").constant("axis", np.int32(3))
    net.add("ConcatV2", "joined", "r", "x", "axis", N=2)
    net.graph.node[-1].attr["Tidx"].type = INT32
    graph = net.add("Relu6", "y", "joined").graph
    file, base, more = PLACES[place]
    found = computed(tmp_path, graph, X, front_a=LAST, **{file: NUMBERED.format(base=base, more=more, name=name)})[0]
    conv = computed(tmp_path / "conv", Net.graph_of(graph, "conv"), X)[0]
    scales = {key: np.arange(1, n + 1, dtype=np.float32) for key, n in (("conv", 6), ("r", 6), ("joined", 10))}
    one = {key: scales[key] if key == name else np.float32(1) for key in scales}
    joined = np.concatenate([np.maximum(conv * one["conv"], 0) * one["r"], X], 3) * one["joined"]
    np.testing.assert_allclose(found, np.clip(joined, 0, 6), rtol=1e-5, atol=1e-5)


OWN = """
class Own(Op):
    op = "Own"
    def __init__(self, graph, attrs):
        super().__init__(graph, {{"op": "Own", "type": "Own", "infer": self.infer, "in_ports_count": 2, "axis": 3,
                                 "out_ports_count": 1}}, attrs)
    @staticmethod
    def infer(node):
        node.out_port(0).data.set_shape(node.in_port(0).data.get_shape())
        PermuteAttrs.create_permute_attrs(node, attrs=[("axis", "input:0")])
        PermuteInputs().set_input_permutation(node.in_node(1), node, "input:0", "{rule}")

class Put(FrontReplacementOp):
    op = "ReLU"
    enabled = True
    def replace_op(self, graph, node):
        made = create_op_node_with_second_input(graph, Own, np.array({value}), {{"name": "own"}})
        node.in_port(0).get_connection().set_destination(made.in_port(0))
        return [made.id]
"""
ASK = """
class Ask(BackReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        node = graph.get_op_nodes(op="Own")[0]
        assert node.out_port(0).data.get_shape().tolist() == [1, 6, 6, 8], node.out_port(0).data.get_shape()
        assert node.axis == 1, node.axis
        value = node.in_port(1).data.get_value()
        made = create_op_with_const_inputs(graph, Add, {1: np.float32(value)}, {"name": "asked"})
        node.in_port(0).get_connection().set_destination(made.in_port(0))
        node.out_port(0).get_connection().set_source(made.out_port(0))
"""


@pytest.mark.parametrize(
    ("rule", "value", "after"),
    [
        ("axis", 3, 1),
        ("axis", 1, 2),
        ("shape", [10, 20, 30, 40], [10, 40, 20, 30]),
        ("order", [0, 1, 2, 3], [0, 1, 2, 3]),
    ],
)
def test_an_own_operation_follows_as_its_permutations_say(tmp_path: Path, rule: str, value: Any, after: Any) -> None:
    net = Net(X).conv("conv", "x", N.f32(1, 1, 4, 6)).add("Relu", "r", "conv").add("Relu6", "y", "r").graph
    ask = ASK.replace("np.float32(value)", f"np.float32(sum((value == np.array({after})).reshape(-1)))")
    found = computed(tmp_path, net, X, front_own=OWN.format(rule=rule, value=value), back_ask=ask)[0]
    conv = computed(tmp_path / "conv", Net.graph_of(net, "conv"), X)[0]
    np.testing.assert_allclose(found, np.clip(conv + np.size(after), 0, 6), rtol=1e-5, atol=1e-5)


MARK = """
class Mark(MiddleReplacementPattern):
    enabled = True
    def run_after(self): return [PostMiddleStart]
    def run_before(self): return [InsertLayoutPropagationTranspose]
    def find_and_replace_pattern(self, graph):
        node = graph.get_op_nodes(type="ReLU")[0]
        node["nchw_layout"] = True
"""
STAYS = """
class Stays(BackReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        node = graph.get_op_nodes(type="ReLU")[0]
        assert node.out_port(0).data.get_shape().tolist() == [1, 6, 8, 6]
        numbers = np.arange(6, dtype=np.float32)
        made = create_op_with_const_inputs(graph, Mul, {1: numbers}, {"name": "numbered"})
        node.out_port(0).get_connection().insert_node(made)
"""


@pytest.mark.parametrize("mark", [MARK, MARK.replace("nchw_layout", "reinterp_shape")], ids=["", "reinterp_shape"])
def test_a_marked_operation_keeps_its_layout(tmp_path: Path, mark: str) -> None:
    net = Net(X).conv("conv", "x", N.f32(1, 1, 4, 6)).add("Relu", "r", "conv").add("Abs", "y", "r").graph
    found = computed(tmp_path, net, X, middle_mark=mark, back_stays=STAYS)[0]
    conv = computed(tmp_path / "conv", Net.graph_of(net, "conv"), X)[0]
    np.testing.assert_allclose(found, np.maximum(conv, 0) * np.arange(6), rtol=1e-5, atol=1e-5)


NCHW = """
class Asked({base}):
    enabled = True
    def find_and_replace_pattern(self, graph):
        assert graph.graph["layout"] == "NCHW" and graph.graph["cmd_params"].auto_disable_nhwc_to_nchw
        assert graph.get_op_nodes(type="ReLU")[0].out_port(0).data.get_shape().tolist() == [1, 6, 8, 4]
"""


def test_a_network_without_convolutions_keeps_its_layout(tmp_path: Path) -> None:
    net = Net(X).add("Relu", "r", "x").add("Abs", "y", "r").graph
    files = {f"{kind.lower()}_asked": NCHW.format(base=f"{kind}ReplacementPattern") for kind in ("Middle", "Back")}
    files["back_asked"] = files["back_asked"].replace("Asked", "AskedLater")
    np.testing.assert_array_equal(computed(tmp_path, net, X, **files)[0], np.maximum(X, 0))


def test_a_network_keeps_its_layout_if_the_user_wants(tmp_path: Path) -> None:
    net = Net(X).conv("conv", "x", N.f32(1, 1, 4, 6)).add("Relu", "r", "conv").add("Abs", "y", "r").graph
    path, look = written(tmp_path, net), NCHW.format(base="BackReplacementPattern").replace("auto_disable", "disable")
    options = CompileOptions(level=None, extensions=folder(tmp_path, back_asked=HEAD + look.replace("8, 4]", "8, 6]")))
    with pytest.raises(AotError, match="AssertionError"):
        _ = stages(path, options).optimized
    assert stages(path, replace(options, disable_layout_change=True)).optimized.results


MADE = """
from openvino.tools.mo.ops.depth_to_space import DepthToSpaceOp
from openvino.tools.mo.ops.regionyolo import RegionYoloOp
from openvino.tools.mo.ops.shufflechannel import ShuffleChannels
class Made({base}):
    enabled = True
    def find_and_replace_pattern(self, graph):
        node = graph.get_op_nodes(op="ReLU")[0]
        made = {cls}(graph, {attrs}).create_node()
        node.in_port(0).get_connection().set_destination(made.in_port(0))
        node.out_port(0).get_connection().set_source(made.out_port(0))
"""
BASES = {"front": "FrontReplacementPattern", "middle": "MiddleReplacementPattern"}


def shuffled(x: Array) -> Array:
    return x.reshape(*x.shape[:3], 2, -1).swapaxes(3, 4).reshape(x.shape)


def to_space(x: Array) -> Array:
    n, h, w, c = x.shape
    return x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


def region(x: Array) -> Array:
    kept = np.array([i % 8 in (2, 3) for i in range(x.shape[3])])
    return np.where(kept, x, 1 / (1 + np.exp(-x)))


CHANNELS: dict[str, tuple[str, dict[str, Any], int, Any]] = {
    "ShuffleChannels": ("ShuffleChannels", {"group": 2, "axis": 1}, 6, shuffled),
    "DepthToSpace": ("DepthToSpaceOp", {"block_size": 2, "mode": "blocks_first"}, 8, to_space),
    "RegionYolo": (
        "RegionYoloOp",
        {"classes": 3, "coords": 4, "num": 2, "mask": [0, 1], "do_softmax": 0, "axis": 1, "end_axis": -1},
        16,
        region,
    ),
}


@pytest.mark.parametrize("behind", [False, True], ids=["", "back"])
@pytest.mark.parametrize("phase", BASES)
@pytest.mark.parametrize("kind", CHANNELS)
def test_operations_on_channels_get_them_first(tmp_path: Path, kind: str, phase: str, behind: bool) -> None:
    cls, attrs, count, wanted = CHANNELS[kind]
    weights = N.f32(1, 1, 4, count)
    net = Net(X).conv("conv", "x", weights).add("Relu", "r", "conv").add("Relu6", "y", "r").graph
    files = {f"{phase}_made": MADE.format(base=BASES[phase], cls=cls, attrs={"name": "made", **attrs})}
    if behind:
        files["back_look"] = LOOK
    found = computed(tmp_path, net, X, **files)[0]
    np.testing.assert_allclose(found, np.clip(wanted(X @ weights[0, 0]), 0, 6), rtol=1e-4, atol=1e-5)


def test_shapes_of_operations_on_channels_follow_the_layout_without_a_type() -> None:
    nodes = {"x": data([1, 2, 3, 8]), "made": {"kind": "op", "op": "DepthToSpace", "block_size": 2}, "y": data()}
    graph = build(nodes, [("x", "made"), ("made", "y")])
    graph.graph["layout"] = "NHWC"
    library_class("depth_to_space", "DepthToSpaceOp").infer(Node(graph, "made"))
    assert list(graph.nodes["y"]["shape"]) == [1, 4, 6, 2]


PRIORS = """
from openvino.tools.mo.ops.priorbox_clustered import PriorBoxClusteredOp
from openvino.tools.mo.ops.result import Result
class Priors({base}):
    enabled = True
    def find_and_replace_pattern(self, graph):
        attrs = dict(width=np.array([8.0, 16.0]), height=np.array([4.0, 8.0]), variance=np.full(4, 0.1), offset=0.5)
        attrs.update(name="priors", clip=0, step=0, step_w=0, step_h=0)
        made = PriorBoxClusteredOp(graph, attrs).create_node()
        for idx, node in enumerate((graph.get_op_nodes(op="ReLU")[0], graph.get_op_nodes(op="Parameter")[0])):
            made.in_port(idx).connect(node.out_port(0))
        Result(graph, dict(name="end")).create_node().in_port(0).connect(made.out_port(0))
"""


@pytest.mark.parametrize("phase", BASES)
def test_prior_boxes_read_maps_of_features(tmp_path: Path, phase: str) -> None:
    net = Net(X).conv("conv", "x", N.f32(1, 1, 4, 5)).add("Relu", "r", "conv").add("Tanh", "y", "r").graph
    files = {f"{phase}_priors": PRIORS.format(base=BASES[phase]), "back_look": LOOK}
    found = computed(tmp_path, net, X, **files)[-1]
    assert found.shape == (1, 2, 6 * 8 * 2 * 4)  # height, width, sizes, corners
    corners = [0.5 / 8 - 4 / 8, 0.5 / 6 - 2 / 6, 0.5 / 8 + 4 / 8, 0.5 / 6 + 2 / 6]
    np.testing.assert_allclose(found[0, 0, :4], corners, rtol=1e-5)


PART = """
import numpy as np
from openvino.tools.mo.ops.DetectionOutput import DetectionOutput
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.proposal import ProposalOp
from openvino.tools.mo.ops.psroipooling import PSROIPoolingOp
from openvino.tools.mo.ops.reorgyolo import ReorgYoloOp
from openvino.tools.mo.ops.roipooling import ROIPooling
class Part(FrontReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        read = [graph.get_op_nodes(name=name)[0] for name in {names}]
        values = [np.array(value, np.float32) for value in {values}]
        read += [Const(graph, dict(name=f"value_{{i}}", value=v)).create_node() for i, v in enumerate(values)]
        made = {cls}(graph, {attrs}).create_node(read)
        graph.get_op_nodes(name="y")[0].in_port(0).get_connection().set_source(made.out_port(0))
"""
ROIS = [[0, 0, 0, 7, 5], [0, 2, 1, 5, 4]]
BOXES = np.random.default_rng(2).uniform(0, 1, (1, 2, 48)).round(2)
ANCHORS: dict[str, Any] = {"base_size": 2, "pre_nms_topn": 20, "post_nms_topn": 5, "nms_thresh": 0.5, "feat_stride": 2}
SHAPES: dict[str, Any] = {"min_size": 1, "ratio": (0.5, 1.0), "scale": (1.0,)}
KEPT: dict[str, Any] = {"top_k": 5, "keep_top_k": (5,), "nms_threshold": 0.4, "confidence_threshold": 0.3}
PARTS: dict[str, tuple[str, Any, list[str], list[Any]]] = {
    "ReorgYolo": ("ReorgYoloOp", ReorgYolo((2,)), ["r"], []),
    "PSROIPooling": ("PSROIPoolingOp", PSROIPooling(1, 1.0, 2), ["r"], [ROIS]),
    "ROIPooling": ("ROIPooling", ROIPooling((), (), 2, 3, 0.5), ["r"], [ROIS]),
    "Proposal": ("ProposalOp", Proposal(**ANCHORS, **SHAPES), ["r", "other"], [[12, 16, 1]]),
    "DetectionOutput": ("DetectionOutput", DetectionOutput(**KEPT, normalized=True), ["a", "b"], [BOXES.tolist()]),
}


@pytest.mark.parametrize("behind", [False, True], ids=["", "back"])
@pytest.mark.parametrize("kind", PARTS)
def test_parts_of_detectors_get_them_first(tmp_path: Path, kind: str, behind: bool) -> None:
    cls, op, names, values = PARTS[kind]
    net, weights = Net(X), {"conv": N.f32(1, 1, 4, 4), "other": N.f32(1, 1, 4, 8)}
    net.conv("conv", "x", weights["conv"]).add("Relu", "r", "conv").conv("other", "x", weights["other"])
    net.constant("row", np.array([1, 48], np.int32))
    for name, weight in (("a", N.f32(1, 1, 4, 1)), ("b", N.f32(1, 1, 4, 1))):
        weights[name] = weight
        net.conv(f"{name}/map", "x", weight).add("Reshape", name, f"{name}/map", "row")
        net.graph.node[-1].attr["Tshape"].type = INT32
    net.add("Relu", "y", "r")
    attrs = json.loads(json.dumps({f.name: getattr(op, f.name) for f in fields(op)})) | {"name": "made"}
    if kind == "ReorgYolo":
        attrs["out_ports_count"] = 1  # its class says none
    files = {"front_part": PART.format(cls=cls, attrs=attrs, names=names, values=values)}
    found = computed(tmp_path, net.graph, X, **files, **({"back_look": LOOK} if behind else {}))[-1]
    maps = {name: (X @ weight[0, 0]).transpose(0, 3, 1, 2) for name, weight in weights.items()}
    given = {"r": np.maximum(maps["conv"], 0), "other": maps["other"]} | {k: maps[k].reshape(1, 48) for k in "ab"}
    wanted = op.evaluate(*(given[name] for name in names), *(np.array(value, np.float32) for value in values))[0]
    follows = kind in ("ReorgYolo", "PSROIPooling", "ROIPooling")
    wanted = wanted.transpose(0, 2, 3, 1) if follows else wanted
    assert len(np.unique(wanted)) > 6
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-4, atol=1e-5)
