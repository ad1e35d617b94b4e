"""Model Optimizer's own extractors, called and derived from by extensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.compilation.driver import stages
from aot.extensions.modules import Modules
from aot.ir.interpret import interpret
from aot.mo.extracted.classes import extractor, in_module, modules
from aot.mo.graph.graph import Graph, Node
from aot.options import CompileOptions
from tests.frontends.onnx.models import model, save
from tests.frontends.tf import graphs as tf
from tests.mo.test_loading import HEAD, folder

X = np.array([[0.5, -2, 4]], np.float32)
CALL = """
from openvino.tools.mo.front.onnx.activation_ext import LeakyReLUExtractor

class Mine(FrontExtractorOp):
    op = "LeakyRelu"
    enabled = True
    @classmethod
    def extract(cls, node):
        done = LeakyReLUExtractor.extract(node)
        assert node.op == "LeakyReLU" and node.type == "LeakyReLU" and node.negative_slope == 0.25
        {change}
        return done
"""
CHANGES: dict[str, tuple[str, Any]] = {
    "none": ("pass", np.where(X > 0, X, X / 4)),
    "an attribute": ('node["negative_slope"] = 0.5', np.where(X > 0, X, X / 2)),
    "another operation": ("Abs.update_node_stat(node, {})", np.abs(X)),
}
POOL = """
from openvino.tools.mo.front.tf.pooling_ext import MaxPoolFrontExtractor

class Mine(FrontExtractorOp):
    op = "MaxPool"
    enabled = True
    @classmethod
    def extract(cls, node):
        MaxPoolFrontExtractor.extract(node)
        assert node.layout == "NHWC" and list(node.spatial_dims) == [1, 2] and node.pool_method == "max"
        node["window"], node["auto_pad"] = np.array([1, 1, 2, 1]), "valid"
        return True
"""
CLASSES = [
    ("front.onnx.conv_ext", "ConvFrontExtractor", "Conv"),
    ("front.tf.conv_ext", "Conv2DFrontExtractor", "Conv2D"),
    ("front.onnx.split_ext", "SplitFrontExtractor", "Split"),
    ("front.tf.extractors.strided_slice", "StridedSliceFrontExtractor", "StridedSlice"),
]


@pytest.mark.parametrize(("change", "wanted"), CHANGES.values(), ids=CHANGES)
def test_an_extension_calls_an_extractor_and_changes_what_it_set(tmp_path: Path, change: str, wanted: Any) -> None:
    made = model([helper.make_node("LeakyRelu", ["x"], ["y"], name="leaky", alpha=0.25)], {"x": X}, ["y"])
    mine = folder(tmp_path, front_onnx_mine=HEAD + CALL.format(change=change))
    graph = stages(save(tmp_path, made), CompileOptions(level=None, extensions=mine)).optimized
    np.testing.assert_allclose(interpret(graph, [X])[0], wanted)


def test_a_changed_attribute_of_a_tensorflow_node_changes_the_operation(tmp_path: Path) -> None:
    made = tf.graph()
    made.node[0].attr["shape"].shape.Clear()
    for size in (1, 1, 4, 1):
        made.node[0].attr["shape"].shape.dim.add(size=size)
    pool = tf.node(made.node, "MaxPool", "y", "x", T_type=tf.FLOAT, padding=b"SAME", data_format=b"NHWC")
    pool.attr["ksize"].list.i.extend([1, 1, 1, 1])
    pool.attr["strides"].list.i.extend([1, 1, 1, 1])
    mine = folder(tmp_path, front_tf_mine=HEAD + "import numpy as np\n" + POOL)
    x = np.array([1, 3, 2, 0], np.float32).reshape(1, 1, 4, 1)
    graph = stages(tf.written(tmp_path, made), CompileOptions(level=None, extensions=mine)).optimized
    np.testing.assert_array_equal(interpret(graph, [x])[0].reshape(-1), [3, 3, 2])


@pytest.mark.parametrize(("module", "name", "kind"), CLASSES)
def test_the_classes_have_the_kinds_of_model_optimizers(module: str, name: str, kind: str) -> None:
    cls = extractor(module, name)
    assert (cls.op, cls.enabled, cls.__name__) == (kind, True, name)
    assert name in in_module(module) and module in modules()


def test_extensions_import_them_by_all_names(tmp_path: Path) -> None:
    text = "\n".join(
        f"from {root}.front.onnx.conv_ext import ConvFrontExtractor as c{i}"
        for i, root in enumerate(("openvino.tools.mo", "mo", "extensions"))
    )
    found = Modules(folder(tmp_path, front_x=text))
    assert len({id(getattr(found.load("front.x"), f"c{i}")) for i in range(3)}) == 1
    found.forget()


def node_of(message: Any, opset: int = 0) -> Node:
    """Return a node with a message that no file of ours has."""
    graph = Graph()
    graph.graph["fw_opset_version"] = opset
    graph.add_node("node", kind="op", name="node", pb=message)
    return Node(graph, "node")


def test_a_message_that_an_extension_made_is_read() -> None:
    node = node_of(helper.make_node("Conv", ["a", "b"], ["y"], strides=[2, 1], pads=[1, 2, 3, 4], group=3))
    assert extractor("front.onnx.conv_ext", "ConvFrontExtractor").extract(node)
    assert (node.op, node.type, node.version, node.group, node.spatial_dims) == (
        "Conv",
        "Convolution",
        "opset1",
        3,
        None,
    )
    np.testing.assert_array_equal(node.stride, [1, 1, 2, 1])
    np.testing.assert_array_equal(node.pad, [[0, 0], [0, 0], [1, 3], [2, 4]])


def test_the_parts_of_a_split_are_counted() -> None:
    node = node_of(helper.make_node("Split", ["a"], ["y", "z"], axis=1, split=[1, 2]), 11)
    extractor("front.onnx.split_ext", "SplitFrontExtractor").extract(node)
    assert (node.op, node.axis, node.out_ports_count, list(node.size_splits)) == (
        "AttributedVariadicSplit",
        1,
        2,
        [1, 2],
    )


def test_masks_of_tensorflow_are_lists_of_bits() -> None:
    message = tf.messages.NodeDef(name="node", op="StridedSlice")
    message.attr["begin_mask"].i, message.attr["shrink_axis_mask"].i = 5, 2
    node = node_of(message)
    extractor("front.tf.extractors.strided_slice", "StridedSliceFrontExtractor").extract(node)
    assert [list(node[f"{name}_mask"]) for name in ("begin", "shrink_axis", "new_axis")] == [[0, 1, 0], [0, 1], [0]]


@pytest.mark.parametrize(("auto_pad", "rows"), [("SAME_UPPER", [[1, 0], [2, 1]]), ("SAME_LOWER", [[0, 1], [1, 2]])])
def test_pads_of_a_transposed_convolution_follow_from_its_output(auto_pad: str, rows: list[list[int]]) -> None:
    node = node_of(
        helper.make_node("ConvTranspose", ["a", "b"], ["y"], strides=[1, 2], output_padding=[0, 1], auto_pad=auto_pad)
    )
    extractor("front.onnx.conv_ext", "ConvTransposeFrontExtractor").extract(node)
    node.graph.add_node("data", kind="data", shape=np.array([1, 2, 4, 5]), value=None)
    node.graph.add_edge("data", "node", **{"in": 0})
    node["spatial_dims"] = node["kernel_spatial_idx"] = np.array([2, 3])
    node["output_spatial_shape"], node["kernel_shape"] = np.array([5, 10]), np.array([2, 3, 3, 4])
    pads = node.get_pad(node, None, node.kernel_shape)
    np.testing.assert_array_equal(pads, [[0, 0], [0, 0], *rows])
    assert node.get_output_feature_dim(node) == 3


def test_numbers_of_ports_are_those_of_lists_in_the_message() -> None:
    message = tf.messages.NodeDef(name="node", op="IdentityN")
    message.attr["T"].list.type.extend([1, 3])
    node = node_of(message)
    extractor("front.tf.identity_ext", "IdentityNFrontExtractor").extract(node)
    assert (node.in_ports_count, node.out_ports_count, len(node.out_ports())) == (2, 2, 2)
