"""Nodes of files have the inputs of Model Optimizer, also those that the file has as attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.compilation.driver import stages
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from tests.frontends.onnx.models import model, save
from tests.frontends.tf.graphs import written
from tests.mo.test_loading import HEAD, folder
from tests.mo.tf_style_models import Net

X = np.arange(12, dtype=np.float32).reshape(1, 4, 1, 3)
CONNECT = """
import numpy as np
from openvino.tools.mo.front.SqueezeNormalize import SqueezeNormalize
from openvino.tools.mo.front.TransposeOrderNormalizer import TransposeOrderNormalizer
from openvino.tools.mo.ops.const import Const
class Connect(FrontReplacementPattern):
    enabled = True
    def run_before(self):
        return [SqueezeNormalize, TransposeOrderNormalizer]
    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(op="{op}"):
            assert sorted(node.in_ports()) == [0, 1] and node.in_ports_count == 2
            assert len(node.in_nodes()) == 1 and node.has_valid("{attr}")
            made = Const(graph, {{"name": "given", "value": np.array({value}, np.int64)}}).create_node()
            node.in_port(1).connect(made.out_port(0))
            del node["{attr}"]
"""
CASES: dict[str, tuple[Any, str, str, Any, Any]] = {
    "Squeeze of ONNX": (("Squeeze", {"axes": [2]}), "Squeeze", "squeeze_dims", [2], X[:, :, 0]),
    "Squeeze of ONNX, other axes": (("Squeeze", {"axes": [2]}), "Squeeze", "squeeze_dims", [0, 2], X[0, :, 0]),
    "Transpose of ONNX": (
        ("Transpose", {"perm": [0, 1, 3, 2]}),
        "Transpose",
        "order",
        [3, 0, 1, 2],
        X.transpose(3, 0, 1, 2),
    ),
    "Squeeze of TensorFlow": (("tf", "Squeeze"), "Squeeze", "squeeze_dims", [0, 2], X[0, :, 0]),
}


@pytest.mark.parametrize("case", CASES)
def test_an_attribute_becomes_an_input(tmp_path: Path, case: str) -> None:
    given, op, attr, value, wanted = CASES[case]
    if given[0] == "tf":
        net = Net(X).add(given[1], "s", "x").lists(squeeze_dims=[2]).add("Relu", "y", "s")
        path = written(tmp_path, net.graph)
    else:
        nodes = [helper.make_node(given[0], ["x"], ["s"], **given[1]), helper.make_node("Relu", ["s"], ["y"])]
        path = save(tmp_path, model(nodes, {"x": X}, ["y"], opset=11))
    mine = folder(tmp_path, front_connect=HEAD + CONNECT.format(op=op, attr=attr, value=value))
    found = interpret(stages(path, CompileOptions(level=None, extensions=mine)).optimized, [X])[0]
    np.testing.assert_array_equal(found, wanted)


def test_inputs_that_nothing_is_connected_to_change_nothing(tmp_path: Path) -> None:
    look = "class Look(FrontReplacementPattern):\n    def find_and_replace_pattern(self, graph): pass\n"
    nodes = [helper.make_node("Squeeze", ["x"], ["y"], axes=[2])]
    path = save(tmp_path, model(nodes, {"x": X}, ["y"], opset=11))
    options = CompileOptions(level=None, extensions=folder(tmp_path, front_look=HEAD + look))
    np.testing.assert_array_equal(interpret(stages(path, options).optimized, [X])[0], X[:, :, 0])
