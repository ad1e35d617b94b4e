"""Model Optimizer's extensions for TensorFlow files: extractors, messages of nodes, transformations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.frontends import read_model
from aot.frontends.tf.files import describe
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.runtime.errors import AotError
from tests.frontends.onnx.models import Array
from tests.frontends.tf.graphs import FLOAT, INT32, graph, tensor, written
from tests.mo.test_examples import EXAMPLES, mish, region
from tests.mo.test_loading import HEAD, folder
from tests.mo.tf_style_models import N, Net
from tests.mo.tf_style_models import X as X4

X = np.array([0.5, -2], np.float32)

CONST = """
from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.tf.extractors.utils import tf_dtype_extractor, tf_tensor_content, tf_tensor_shape
from openvino.tools.mo.ops.const import Const

class ConstExtractor(FrontExtractorOp):
    op = "Const"
    enabled = True
    @classmethod
    def extract(cls, node):
        held = node.pb.attr["value"].tensor
        shape = tf_tensor_shape(held.tensor_shape)
        value = tf_tensor_content(held.dtype, shape, held) * 2
        Const.update_node_stat(node, {"shape": shape, "value": value, "data_type": tf_dtype_extractor(held.dtype)})
        return cls.enabled
"""
EXTRACTOR = """
class Extractor(FrontExtractorOp):
    op = "ScaledTanh"
    enabled = True
    @classmethod
    def extract(cls, node):
        Op.get_op_class_by_name("ScaledTanh").update_node_stat(node, {"scale": node.pb.attr["scale"].f})
        return cls.enabled

class ScaledTanh(Op):
    op = "ScaledTanh"
    def __init__(self, graph, attrs):
        super().__init__(graph, {"op": self.op, "type": None, "in_ports_count": 1, "out_ports_count": 1}, attrs)

class Replace(FrontReplacementOp):
    op = "ScaledTanh"
    enabled = True
    def replace_op(self, graph, node):
        tanh = Tanh(graph, {}).create_node()
        node.in_port(0).get_source().connect(tanh.in_port(0))
        scaled = create_op_with_const_inputs(graph, Mul, {1: np.float32(node.scale)}, {}, tanh)
        return [scaled.id]
"""
MORE = """
import numpy as np
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.ops.activation_ops import Tanh
from openvino.tools.mo.ops.elementwise import Mul
from openvino.tools.mo.ops.power import AttributedPower
"""
INTERNAL = """
class Replace(FrontReplacementOp):
    op = "ReLU"
    enabled = True
    def replace_op(self, graph, node):
        made = AttributedPower(graph, {"scale": 3.0, "shift": 1.0, "power": 2.0}).create_node()
        node.in_port(0).get_source().connect(made.in_port(0))
        return [made.id]
"""
SEEN = """
class Seen(FrontReplacementPattern):
    enabled = True
    graph_condition = [lambda graph: graph.graph["fw"] == "tf", lambda graph: graph.graph["layout"] == "NCHW"]
    def find_and_replace_pattern(self, graph):
        found = sorted(node.op for node in graph.get_op_nodes() if node.op not in ("Parameter", "Result"))
        assert found == ["Add", "Const", "ReLU"], found
        node = graph.get_op_nodes(op="Add")[0]
        assert node.pb.op == "AddV2" and list(node.pb.input) == ["r", "c"]
        made = Sin(graph, {}).create_node()
        node.in_port(0).get_connection().insert_node(made)
"""


def network(place: Path, kind: str = "Relu", **attrs: Any) -> Path:
    """y = kind(x) + c, where c is [1, 2]."""
    c = tensor(FLOAT, [2], float_val=[1.0, 2.0])
    made = graph(
        (kind, "r", "x", {"T_type": FLOAT, **attrs}),
        ("Const", "c", {"dtype": FLOAT, "value": c}),
        ("AddV2", "y", "r", "c", {"T_type": FLOAT}),
    )
    if kind == "ScaledTanh":
        made.node[1].attr["scale"].f = 3.0
    return written(place, made)


C = np.array([1, 2], np.float32)
CASES: dict[str, tuple[dict[str, str], str, Any]] = {
    "an extractor of constants reads the message": ({"front_tf_const": CONST}, "Relu", np.maximum(X, 0) + 2 * C),
    "an own operation, its extractor and its replacement": (
        {"front_tf_scaled": HEAD + MORE + EXTRACTOR},
        "ScaledTanh",
        3 * np.tanh(X) + C,
    ),
    "nodes have Model Optimizer's names": ({"front_seen": HEAD + SEEN}, "Relu", np.sin(np.maximum(X, 0)) + C),
    "an operation that no set has": ({"front_tf_i": HEAD + MORE + INTERNAL}, "Relu", (3 * X + 1) ** 2 + C),
    "files for ONNX are not loaded": ({"front_onnx_bad": "raise ValueError", "front_tf_c": CONST}, "Relu", None),
    "files for TensorFlow Lite are not loaded": (
        {"front_tflite_bad": "raise ValueError"},
        "Relu",
        np.maximum(X, 0) + C,
    ),
}


@pytest.mark.parametrize(("files", "kind", "wanted"), CASES.values(), ids=CASES)
def test_extensions_run_on_tensorflow_files(tmp_path: Path, files: dict[str, str], kind: str, wanted: Any) -> None:
    options = CompileOptions(level=None, extensions=folder(tmp_path, **files))
    made = interpret(stages(network(tmp_path, kind), options).optimized, [X])[0]
    np.testing.assert_allclose(made, np.maximum(X, 0) + 2 * C if wanted is None else wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind", "wanted"), [("constant", "Relu", np.maximum(X, 0)), ("decorators", "ScaledTanh", 3 * np.tanh(X))]
)
def test_the_examples_run(tmp_path: Path, name: str, kind: str, wanted: Any) -> None:
    made = stages(network(tmp_path, kind), CompileOptions(level=None, extensions=EXAMPLES / name)).optimized
    np.testing.assert_allclose(interpret(made, [X])[0], wanted + C, rtol=1e-6)


WEIGHTS = N.f32(1, 1, 4, 50)
FACES = X4[:, :, :1, :1]
NETS: dict[str, tuple[Net, Array, Callable[[], Array]]] = {
    "mish": (Net(X4).add("Softplus", "s", "x").add("Tanh", "t", "s").add("Mul", "y", "x", "t"), X4, lambda: mish(X4)),
    "pack": (
        Net(X4).add("Abs", "a", "x").add("Pack", "p", "x", "a", N=2, axis=3).add("Sin", "y", "p"),
        X4,
        lambda: np.sin(np.stack([X4, np.abs(X4)], 3)),
    ),
    "squeeze": (
        Net(FACES).add("Squeeze", "s", "x").lists(squeeze_dims=[2, 3]).add("Sin", "y", "s"),
        FACES,
        lambda: np.sin(FACES[:, :, 0, 0]),
    ),
    "region": (
        Net(X4).conv("conv", "x", WEIGHTS),
        X4,
        lambda: region((X4 @ WEIGHTS[0, 0]).transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_the_manuals_transformations_run(tmp_path: Path, name: str) -> None:
    (net, x, wanted), mine = NETS[name], EXAMPLES / name
    options = CompileOptions(level=None, extensions=mine, transformations_config=tuple(mine.glob("*.json")))
    found = interpret(stages(written(tmp_path, net.graph), options).optimized, [x])[0]
    np.testing.assert_allclose(found, wanted(), rtol=2e-5, atol=2e-6)


def test_messages_are_those_of_the_file(tmp_path: Path) -> None:
    """Every kind of attribute comes back as it was, so an extension reads what Model Optimizer's readers gave it."""
    made = graph(("Odd", "y", "x", {"T_type": FLOAT}))
    attr = made.node[1].attr
    attr["text"].s, attr["number"].f, attr["count"].i, attr["flag"].b = b"SAME", 1.5, 7, True
    attr["sizes"].shape.dim.add().size = -1
    attr["any_shape"].shape.unknown_rank = True
    attr["ints"].list.i.extend([1, 2])
    attr["floats"].list.f.extend([0.5])
    attr["texts"].list.s.extend([b"a", b"b"])
    attr["types"].list.type.extend([FLOAT, INT32])
    attr["shapes"].list.shape.add().dim.add().size = 3
    attr["value"].tensor.CopyFrom(tensor(INT32, [2], tensor_content=np.array([5, 6], np.int32).tobytes()))
    imported = read_model(written(tmp_path, made))
    found = next(n for n in imported.nodes.values() if n.name == "y")
    assert describe.node_message(found) == made.node[1]


def test_an_operation_without_conversion_says_where_to_write_it(tmp_path: Path) -> None:
    options = CompileOptions(level=None, extensions=folder(tmp_path, front_tf_const=CONST))
    with pytest.raises(AotError, match="ScaledTanh"):
        _ = stages(network(tmp_path, "ScaledTanh"), options).optimized
