"""Attributes that extensions write into nodes and graphs are there in later phases, as long as the node is."""

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
from tests.mo.tf_style_models import N, Net, X

ONNX_X = np.array([[1, -2, 3]], np.float32)
WRITE = """
class Write(FrontReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        graph.graph["factor"] = 3
        options = graph.graph["cmd_params"]
        assert options.batch is options.transformations_config is None and options.compress_to_fp16 is False
        graph.graph["cmd_params"].mine = "option"
        for node in graph.get_op_nodes(op="ReLU"):
            node["mark"] = node["name"]
        for node in graph.get_op_nodes(op="Tanh"):
            node["gone"] = True
"""
OWN_TANH = """
class TanhExtractor(FrontExtractorOp):
    op = "Tanh"
    enabled = True
    @classmethod
    def extract(cls, node):
        Op.get_op_class_by_name("Tanh").update_node_stat(node, {"extracted": [1, 2]})
        return cls.enabled
"""
ASK = """
class Ask{phase}({phase}ReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        assert graph.graph["factor"] == 3 and graph.graph["cmd_params"].mine == "option"
        marked = [n for n in graph.get_op_nodes() if n.has("mark")]
        assert [(n.type, n.mark) for n in marked] == [("ReLU", "r")], marked
        tanh = graph.get_op_nodes(type="Tanh")
        assert all(n.extracted == [1, 2] and n.gone for n in tanh)
        for node in marked:
            node.out_port(0).get_connection().insert_node(Abs(graph, {{"name": "{phase}"}}).create_node())
        node["mark_of_the_middle"] = True if "{phase}" == "Middle" else node.mark_of_the_middle
"""


def asked(place: Path, **files: str) -> CompileOptions:
    asks = {f"{p.lower()}_ask": HEAD + ASK.format(phase=p) for p in ("Middle", "Back")}
    return CompileOptions(level=None, extensions=folder(place, front_write=HEAD + WRITE, **asks, **files))


def test_attributes_of_the_front_phase_live_to_the_back_phase(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="r"), helper.make_node("Tanh", ["r"], ["y"], name="t")]
    path = save(tmp_path, model(nodes, {"x": ONNX_X}, ["y"]))
    options = asked(tmp_path, front_onnx_tanh=HEAD + OWN_TANH)
    found = interpret(stages(path, options).optimized, [ONNX_X])[0]
    np.testing.assert_allclose(found, np.tanh(np.maximum(ONNX_X, 0)), rtol=1e-6)


@pytest.mark.parametrize("channels_last", [True, False])
def test_and_through_the_change_of_layout(tmp_path: Path, channels_last: bool) -> None:
    net: Any = Net(X)
    net = net.conv("c", "x", N.f32(1, 1, 4, 4)) if channels_last else net.add("Abs", "c", "x")
    path = written(tmp_path, net.add("Relu", "r", "c").add("Abs", "y", "r").graph)
    assert stages(path, asked(tmp_path)).optimized.results
