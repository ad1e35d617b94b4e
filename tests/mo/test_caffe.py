"""Extensions for networks of Caffe: messages, blobs, Python layers, transformations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from aot.compilation.driver import stages
from aot.frontends.caffe.describe import node_attributes
from aot.frontends.caffe.messages import LayerParameter
from aot.ir.interpret import interpret
from aot.ir.op import Foreign
from aot.mo.bridge.names import op_name
from aot.mo.extracted.classes import extractor
from aot.mo.extracted.nodes import extracted
from aot.mo.front.caffe.blobs import conv_create_attrs, conv_set_params, get_list_from_container, get_spatial_attr
from aot.mo.front.caffe.custom_layers_mapping import load_layers_xml, proto_extractor
from aot.mo.front.caffe.proposal_python_ext import ProposalPythonFrontExtractor
from aot.mo.graph.graph import Graph, Node
from aot.mo.loader import Switches
from aot.mo.phases import phase_passes
from aot.mo.utils.error import Error
from aot.options import CompileOptions
from aot.tools.convert import convert_model
from tests.frontends.caffe.nets import inputs_of, layer, written
from tests.mo.test_loading import HEAD, folder

X = np.random.default_rng(7).standard_normal((1, 2, 3, 4)).astype(np.float32)
DATA = inputs_of({"data": X.shape})
OWN = """
from mo.front.caffe.collect_attributes import merge_attrs
from mo.front.caffe.extractors.utils import weights_biases
from mo.ops.op import Op

class Shifted(Op):
    op = "Shifted"
    enabled = True
    def __init__(self, graph, attrs):
        super().__init__(graph, {"op": "Shifted", "type": None, "in_ports_count": 2, "out_ports_count": 1}, attrs)

class ShiftedExtractor(FrontExtractorOp):
    op = "Shifted"
    enabled = True
    @classmethod
    def extract(cls, node):
        param = node.pb.power_param
        assert (node.pb.type, list(node.pb.bottom), list(node.pb.top)) == ("Shifted", ["data"], ["y"])
        assert node.model_pb.blobs[0].shape.dim == [2, 1, 1] and param.power == 1 and node.graph.graph["fw"] == "caffe"
        attrs = merge_attrs(param, {"scale": param.scale, "cap": 1})
        attrs.update(weights_biases(False, node.model_pb))
        Shifted.update_node_stat(node, attrs)
        assert list(node.in_ports()) == [0, 1]
        return cls.enabled
"""
REPLACE = """
from mo.ops.elementwise import Add, Mul
from mo.front.tf.graph_utils import create_op_with_const_inputs

class ShiftedToAdd(FrontReplacementOp):
    op = "Shifted"
    enabled = True
    def replace_sub_graph(self, graph, match):
        node = match["op"]
        blob = node.in_port(1).get_source().node
        assert blob.op == "Const" and node.in_port(1).bin == "weights"
        blob.value = blob.value.reshape(1, -1, 1, 1)
        scaled = create_op_with_const_inputs(graph, Mul, {1: np.float32(node.scale)}, {"name": "scaled"})
        total = Add(graph, {"name": "total"}).create_node()
        node.in_port(0).get_connection().set_destination(scaled.in_port(0))
        scaled.out_port(0).connect(total.in_port(0))
        node.in_port(1).get_connection().set_destination(total.in_port(1))
        node.out_port(0).get_connection().set_source(total.out_port(0))
"""
PYTHON = """
class HalfExtractor(CaffePythonFrontExtractorOp):
    op = "layers.half.Half"
    enabled = True
    @classmethod
    def extract(cls, node):
        from mo.ops.activation_ops import Elu
        attrs = CaffePythonFrontExtractorOp.get_attrs(node.pb)
        Elu.update_node_stat(node, {"alpha": attrs["alpha"]})
        return cls.enabled
"""
SLOPES = """
class Leaky(FrontReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(op="Conv2D"):
            assert node.kernel_size == (1,) and node.in_port(1).get_source().node.op == "Const"
            assert node.output == 2 and list(node.kernel_spatial) == [1, 1] and list(node.stride) == [1, 1, 1, 1]
            node["stride"] = np.array([1, 1, 2, 2])
        for node in graph.get_op_nodes(op="Tanh"):
            node.out_port(0).get_connection().set_source(node.in_port(0).get_source())
"""


HALVED = """
from mo.front.caffe.conv_ext import ConvFrontExtractor

class HalvedExtractor(FrontExtractorOp):
    op = "Convolution"
    enabled = True
    @classmethod
    def extract(cls, node):
        ConvFrontExtractor.extract(node)
        assert (node.op, node.output, node.bias_term, node.kernel_size) == ("Conv2D", 2, True, (1,))
        node["stride"] = node.stride * np.array([1, 1, 2, 2])
        return cls.enabled

class Doubled(FrontReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(op="Const"):
            assert node.value.shape in [(4,), (2,)]
            node.value = 2 * node.value
"""
LISTED = """
class Listed(Op):
    op = "Shifted"
    enabled = True
    def __init__(self, graph, attrs):
        held = {"op": "Shifted", "type": "Shifted", "in_ports_count": 2, "out_ports_count": 1, "infer": Listed.infer}
        super().__init__(graph, held, attrs)
    @staticmethod
    def infer(node):
        node.out_port(0).data.set_shape(node.in_port(0).data.get_shape())
"""
CUSTOM_LAYERS = """<CustomLayers>
<CustomLayer NativeType="Shifted" hasParam="true" protoParamName="power_param"/>
<CustomLayer NativeType="Other" hasParam="false"/>
</CustomLayers>"""


def computed(place: Path, text: str, blobs: dict[str, Any], config: tuple[Path, ...] = (), **files: str) -> Any:
    head = HEAD + "import numpy as np\nfrom openvino.tools.mo.front.extractor import CaffePythonFrontExtractorOp\n"
    mine = folder(place, **{name: head + body for name, body in files.items()})
    options = CompileOptions(level=None, extensions=mine, transformations_config=config)
    return interpret(stages(written(place, DATA + text, blobs), options).optimized, [X])[0]


def test_an_own_layer_has_its_message_and_its_blobs(tmp_path: Path) -> None:
    text = layer("Shifted", "own", ["data"], ["y"], "power_param { scale: 3 }")
    blob = np.array([5, -7], np.float32).reshape(2, 1, 1)
    found = computed(tmp_path, text, {"own": [blob]}, front_caffe_own=OWN, front_caffe_replace=REPLACE)
    np.testing.assert_allclose(found, 3 * X + blob, rtol=1e-6)


def test_a_listed_layer_has_the_fields_of_its_message_and_its_blobs(tmp_path: Path) -> None:
    listed = tmp_path / "CustomLayersMapping.xml"
    listed.write_text(CUSTOM_LAYERS)
    text = layer("Shifted", "own", ["data"], ["y"], "power_param { scale: 3 }")
    files = {"ops_own": LISTED, "front_caffe_replace": REPLACE}
    found = computed(tmp_path, text, {"own": [np.array([5, -7], np.float32)]}, (listed,), **files)
    np.testing.assert_allclose(found, 3 * X + np.array([5, -7]).reshape(2, 1, 1), rtol=1e-6)


def test_a_listed_layer_is_written_with_its_fields(tmp_path: Path) -> None:
    listed = tmp_path / "k.xml"
    listed.write_text(CUSTOM_LAYERS)
    options = CompileOptions(extensions=folder(tmp_path, ops_own=HEAD + LISTED), transformations_config=(listed,))
    model = written(tmp_path, DATA + layer("Shifted", "own", ["data"], ["y"], "power_param { scale: 3 }"), {"data": []})
    convert_model(model, tmp_path / "ir.xml", options)
    text = (tmp_path / "ir.xml").read_text()
    assert 'type="Shifted" version="extension"' in text and '<data power="1.0" scale="3.0" shift="0.0"/>' in text


WRONG = [
    ("<CustomLayers><CustomLayer hasParam='false'/></CustomLayers>", "has NativeType, hasParam"),
    ("<A><CustomLayer NativeType='X' hasParam='true'/></A>", "protoParamName, got CustomLayer"),
    ("<A><CustomLayer NativeType='X' hasParam='maybe'/></A>", "true or false"),
    (
        "<A><CustomLayer NativeType='X' hasParam='false'/><CustomLayer NativeType='X' hasParam='false'/></A>",
        "got X again",
    ),
    ("{}", "in XML, got"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG, ids=[row[1] for row in WRONG])
def test_lists_of_layers_that_are_wrong(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "k.xml").write_text(text)
    with pytest.raises(Error, match=reason):
        load_layers_xml(tmp_path / "k.xml")


def test_lists_of_layers_are_for_caffe(tmp_path: Path) -> None:
    with pytest.raises(Error, match="got one of onnx"):
        phase_passes([], [tmp_path / "k.xml"], Switches(), "onnx")


def test_names_that_every_node_has_get_a_number() -> None:
    pb = text_format.Parse('python_param { layer: "A" module: "b" }', LayerParameter())
    found = proto_extractor(pb, None, {"hasParam": "true", "protoParamName": "python_param"})
    assert (
        found["module"] == "b"
        and "A" in [v for k, v in found.items() if k.startswith("layer")]
        and "layer" not in found
    )


def test_an_extension_calls_an_extractor_and_blobs_are_vectors(tmp_path: Path) -> None:
    text = layer("Convolution", "conv", ["data"], ["y"], "convolution_param { num_output: 2 kernel_size: 1 }")
    blobs = {"conv": [2 * np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1), np.ones(2, np.float32)]}
    found = computed(tmp_path, text, blobs, front_caffe_halved=HALVED)
    np.testing.assert_allclose(found, 2 * (2 * X[:, :, ::2, ::2] + 1), rtol=1e-6)


def test_a_python_layer_has_an_extractor(tmp_path: Path) -> None:
    param = "python_param { module: 'layers.half' layer: 'Half' param_str: \"'alpha': 0.5\" }"
    found = computed(tmp_path, layer("Python", "half", ["data"], ["y"], param), {"data": []}, front_caffe_half=PYTHON)
    np.testing.assert_allclose(found, np.where(X > 0, X, 0.5 * np.expm1(X)), rtol=1e-5)


def test_nodes_have_the_names_of_model_optimizers(tmp_path: Path) -> None:
    text = layer("Convolution", "conv", ["data"], ["c"], "convolution_param { num_output: 2 kernel_size: 1 }")
    blobs = {"conv": [2 * np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1), np.ones(2, np.float32)]}
    found = computed(tmp_path, text + layer("TanH", "t", ["c"], ["y"]), blobs, front_caffe_slopes=SLOPES)
    np.testing.assert_allclose(found, 2 * X[:, :, ::2, ::2] + 1, rtol=1e-6)


SIZES = [
    ("kernel_size: 3", (3, 3)),
    ("kernel_h: 2 kernel_w: 5", (5, 2)),
    ("kernel_h: 2 kernel_size: 7", (7, 7)),
    ("", (0, 0)),
]


@pytest.mark.parametrize(("text", "wanted"), SIZES)
def test_sizes_of_windows_are_read_as_model_optimizer_does(text: str, wanted: tuple[int, int]) -> None:
    param = text_format.Parse(text, type(LayerParameter().convolution_param)())
    assert get_spatial_attr([0, 0], "kernel_size", "kernel", param) == wanted
    assert get_list_from_container(param, "group", int) == [1] and not get_list_from_container(param, "absent", int)


@pytest.mark.parametrize("name", ["onnx", "tf"])
def test_files_for_other_frameworks_do_not_take_part(tmp_path: Path, name: str) -> None:
    text = layer("ReLU", "r", ["data"], ["y"])
    found = computed(
        tmp_path, text, {"data": []}, **{f"front_{name}_broken": "raise SystemExit\n"}, front_slopes=SLOPES
    )
    np.testing.assert_array_equal(found, np.maximum(X, 0))


LAYERS = [  # kind, fields, attributes; source: Model Optimizer 2021.4's own tests of its extractors
    (
        "Pooling",
        {"kernel_size": 3, "stride_h": 2, "stride_w": 1, "pad": 1, "pool": "AVE"},
        {"window": [1, 1, 3, 3], "stride": [1, 1, 2, 1], "pad": [[0, 0], [0, 0], [1, 1], [1, 1]], "pool_method": "avg"},
    ),
    (
        "Convolution",
        {"kernel_h": 2, "kernel_w": 5, "dilation": (2,)},
        {"kernel_spatial": [2, 5], "dilation": [1, 1, 2, 2]},
    ),
    ("InnerProduct", {"num_output": 7, "transpose": False}, {"out-size": 7, "transpose_weights": True}),
    ("LRN", {"k": 2.0, "norm_region": "WITHIN_CHANNEL"}, {"bias": 2.0, "region": "same"}),
]


@pytest.mark.parametrize(("kind", "fields", "wanted"), LAYERS, ids=[row[0] for row in LAYERS])
def test_layers_have_the_attributes_of_model_optimizers(
    kind: str, fields: dict[str, Any], wanted: dict[str, Any]
) -> None:
    found = extracted(Foreign("caffe", kind, tuple(fields.items())), 1)
    assert {name: np.asarray(found[name]).tolist() for name in wanted} == wanted


@pytest.mark.parametrize("text", ["kernel_size: 3 stride: 2 dilation: 2", "kernel_h: 2 kernel_w: 5 pad_h: 1 group: 2"])
def test_functions_give_the_attributes_of_a_convolution(text: str) -> None:
    pb = LayerParameter(type="Convolution")
    text_format.Parse(f"num_output: 4 {text}", pb.convolution_param)
    found = conv_create_attrs(conv_set_params(pb.convolution_param, "Conv2D"))
    known = extracted(Foreign("caffe", "Convolution", tuple(node_attributes(pb, "Convolution").items())), 1)
    assert found.pop("bias_term") and found.keys() == known.keys()
    assert {n: np.asarray(found[n]).tolist() for n in known} == {n: np.asarray(known[n]).tolist() for n in known}


def test_an_extractor_needs_a_message() -> None:
    graph = Graph()
    graph.add_node("c", name="c", kind="op", pb=None)
    with pytest.raises(Error, match="Convolution: an extractor reads the message"):
        extractor("front.caffe.conv_ext", "ConvFrontExtractor").extract(Node(graph, "c"))


def test_an_extension_may_make_proposals_with_defaults_of_its_own() -> None:
    graph = Graph()
    graph.stage = "front"
    graph.add_node("p", name="p", kind="op", pb=LayerParameter(python_param={"param_str": "'ratios': [1, 2]"}))
    ProposalPythonFrontExtractor.extract(Node(graph, "p"))
    node = Node(graph, "p")
    assert (node.type, node.ratio, node.scale, node.post_nms_topn) == ("Proposal", [1, 2], [8, 16, 32], 300)


def test_fields_decide_the_names_of_operations() -> None:
    rows = [("ReLU", {"negative_slope": 0.5}, "LeakyReLU"), ("Eltwise", {"operation": "MAX"}, "Maximum")]
    assert [op_name(Foreign("caffe", kind, tuple(fields.items()))) for kind, fields, _ in rows] == [r[2] for r in rows]
