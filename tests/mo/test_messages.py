"""Errors about extensions name the class, the operation, and the line of the user's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree
from onnx import helper

from aot.compilation.driver import compile_model
from aot.options import CompileOptions
from aot.runtime.errors import AotError
from aot.tools.convert import convert_model
from tests.frontends.onnx.models import model, save
from tests.mo.test_loading import HEAD, X, folder, network

OWN = """
def infer(node):
    {infer}

class OwnExtractor(FrontExtractorOp):
    op, enabled = "Own", True
    @classmethod
    def extract(cls, node):
        Own.update_node_stat(node, {{"alpha": 0.5, "axes": [1, 2], "type": {type}}})
        return cls.enabled

class Own(Op):
    op = "Own"
    def __init__(self, graph, attrs):
        super().__init__(graph, {{"op": "Own", "infer": infer, "in_ports_count": 1, "out_ports_count": 1}}, attrs)
    def backend_attrs(self):
        return ["alpha", ("all-axes", "axes"), ("twice", lambda node: str(2 * node.alpha)), "absent"]
"""
COPIES = "node.out_port(0).data.set_shape(node.in_port(0).data.get_shape())"
MISFIT = """
import numpy as np
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.ops.elementwise import Add

class Misfit({phase}ReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        node = graph.get_op_nodes(op="Tanh")[0]
        made = create_op_with_const_inputs(graph, Add, {{1: np.ones(5, np.float32)}}, {{"name": "bad_add"}})
        node.out_port(0).get_connection().insert_node(made)
"""


def own(place: Path, *, infer: str = COPIES, type: str = "'Own'") -> tuple[Path, CompileOptions]:
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Own", ["a"], ["y"], domain="me", name="mine")]
    path = save(place, model(nodes, {"x": X}, ["y"], domain="me"))
    files = {"front_onnx_e": HEAD + OWN.format(infer=infer, type=type)}
    return path, CompileOptions(level=None, extensions=folder(place, **files))


def said(error: BaseException) -> str:
    return " ".join([str(error), getattr(error, "advice", ""), *getattr(error, "__notes__", [])])


def test_an_operation_without_a_form(tmp_path: Path) -> None:
    with pytest.raises(AotError, match=r"^Own: this operation cannot be compiled yet") as caught:
        compile_model(*own(tmp_path))
    assert "give it a form under @op, an `infer` that computes its value, or" in said(caught.value)


def test_ir_holds_an_own_operation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, options = own(tmp_path)
    convert_model(path, tmp_path / "ir.xml", options)
    layer = next(e for e in etree.parse(tmp_path / "ir.xml").iter("layer") if e.get("type") == "Own")
    data = layer.find("data")
    assert data is not None and layer.get("version") == "extension"
    assert dict(data.attrib) == {"alpha": "0.5", "all-axes": "1,2", "twice": "1.0"}
    assert "no operation set has Own of version extension" in caplog.text


def test_an_operation_of_type_none_is_refused(tmp_path: Path) -> None:
    path, options = own(tmp_path, type="None")
    with pytest.raises(AotError, match=r"Own in 'mine': type is None: .*made in OwnExtractor, \S+/e.py:18"):
        convert_model(path, tmp_path / "ir.xml", options)


def test_an_infer_that_raises(tmp_path: Path) -> None:
    with pytest.raises(AotError, match=r"Own \(mine\): its infer failed: ValueError: no shape \(\S+/e.py:12\)"):
        compile_model(*own(tmp_path, infer="raise ValueError('no shape')"))


@pytest.mark.parametrize("phase", ["Middle", "Back"])
def test_shapes_that_do_not_fit(tmp_path: Path, phase: str) -> None:
    mine = folder(tmp_path, **{f"{phase.lower()}_m": HEAD + MISFIT.format(phase=phase)})
    with pytest.raises(AotError, match=r"extension Misfit: bad_add: ShapeError: Add: .*made in Misfit, \S+/m.py:19"):
        compile_model(network(tmp_path), CompileOptions(level=None, extensions=mine))


def test_an_old_name_of_a_module_that_is_not_there(tmp_path: Path) -> None:
    mine = folder(tmp_path, front_x="from extensions.ops.activation_op import Sigmoid")
    with pytest.raises(AotError, match=r"x.py:1: ImportError: .*did you mean extensions\.ops\.activation_ops"):
        compile_model(network(tmp_path), CompileOptions(level=None, extensions=mine))
