"""The bridge: a round trip changes nothing; what extensions change comes back, and only that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.frontends import read_model
from aot.ir.build import Builder
from aot.ir.graph import Graph as IrGraph
from aot.ir.text.printer import print_graph
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.to_mo import exported
from aot.mo.graph.graph import Graph, Node, rename_nodes
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.ops.op import Op
from aot.mo.utils.arrays import int64_array, shape_array
from aot.mo.utils.error import Error
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError
from tests.mo.test_round_trips import mish, unchanged

FAST = CompileOptions(level=None)
Mish, Relu = library_class("activation_ops", "Mish"), library_class("activation_ops", "ReLU")


def test_foreign_operations_have_names_attributes_and_tensors(tmp_path: Path) -> None:
    made = exported(read_model(mish(tmp_path)), pb=lambda node: f"pb of {node.name}")
    softplus = Node(made, "s")
    assert (softplus.op, softplus.type, softplus.pb, softplus.opset) == ("SoftPlus", "SoftPlus", "pb of s", 18)
    assert (Node(made, "m").op, Node(made, "m").type) == ("Mul", "Multiply")
    assert softplus.out_port(0).get_tensor_names() == ["s"] and made.graph["fw"] == "onnx"
    assert Node(made, "x").shape.tolist() == [None, 4]


def fuse(made: Graph) -> None:
    mul, first = Node(made, "m"), Node(made, "a")
    new = Mish(made, {}).create_node()
    new.in_port(0).connect(first.out_port(0))
    mul.out_port(0).get_connection().set_source(new.out_port(0))
    rename_nodes([(mul, "m/TBR"), (new, "m")])


def test_new_operations_stand_between_foreign_ones(tmp_path: Path) -> None:
    graph = read_model(mish(tmp_path))
    made = exported(graph)
    fuse(made)
    imported(made, graph)
    assert [n.type for n in graph.order()] == ["Parameter", "Abs", "Mish", "Sin", "Result"]
    node = next(n for n in graph.nodes.values() if n.type == "Mish")
    assert (node.name, node.out_port(0).names, node.origin.layers) == ("m", ("m",), ("m",))
    x = np.array([[-1.5, 0.0, 0.5, 3.0]], np.float32)
    a = np.abs(x)
    expected = np.sin(a * np.tanh(np.log1p(np.exp(a))))
    np.testing.assert_allclose(np.asarray(compile_model(graph, FAST, threads=1)(x)[0]), expected, rtol=1e-5)


def chain() -> tuple[IrGraph, Any]:
    """x + c, softmax over its last axis; outputs p and q."""
    graph = IrGraph("chain")
    x = graph.add(Parameter(DType.F32, (Var("n", None, 0), 4)), name="x").out_port(0)
    build = Builder(graph)
    c = build.const(np.arange(4), DType.F32, name="c")
    total = build.Add(x, c, name="add")
    graph.add(Result(), build.Softmax(total, axis=1, name="soft"), name="p")
    graph.add(Result(), build.Relu(total, name="relu"), name="q")
    return graph, c.node


def changed(change: Callable[[Graph], object], stage: str = "front") -> IrGraph:
    graph, _ = chain()
    made = exported(graph, stage)
    change(made)
    imported(made, graph)
    return graph


def node(graph: IrGraph, name: str) -> Any:
    return next(n for n in graph.nodes.values() if n.name == name)


def test_constants_are_shared() -> None:
    graph, constant = chain()
    made = exported(graph, "middle")
    assert Node(made, "c").value is constant.data and Node(made, "c").out_port(0).data.get_value() is constant.data
    imported(made, graph)
    assert node(graph, "c").data is constant.data


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda g: Node(g, "soft").__setitem__("axis", 0), "= Softmax<axis=0>(%add)"),
        (lambda g: Node(g, "c").__setitem__("value", np.full(1, 7, np.float32)), "%c = const<f32[1] [7.0]>"),
        (lambda g: Node(g, "x").__setitem__("shape", shape_array([2, 4])), "graph chain(%x: f32[2,4])"),
        (lambda g: Node(g, "x").__setitem__("shape", shape_array([np.ma.masked, 1])), "graph chain(%x: f32[n,1])"),
        (lambda g: Node(g, "x").__setitem__("data_type", np.float16), "graph chain(%x: f16[n,4])"),
        (lambda g: Node(g, "relu").__setitem__("name", "other"), "%other: f32[n,4] = Relu(%add)"),
        (lambda g: Node(g, "soft").in_port(0).connect(Node(g, "x").out_port(0)), "= Softmax(%x)"),
    ],
)
def test_changed_attributes_come_back(change: Callable[[Graph], object], line: str) -> None:
    graph = changed(change)
    if "f16" in line:
        assert graph.parameters[0].op.element_type is DType.F16
    else:
        assert line in print_graph(graph)


def test_extracted_nodes_become_operations(tmp_path: Path) -> None:
    graph = read_model(mish(tmp_path))
    made = exported(graph)
    softplus = Node(made, "s")
    del softplus["version"]
    Mish.update_node_stat(softplus, {"name": "other"})
    imported(made, graph)
    assert [n.type for n in graph.order()][:3] == ["Parameter", "Abs", "Mish"]


def test_nodes_that_nothing_needs_stay_if_no_extension_cut_them_off() -> None:
    graph, _ = chain()
    dead = Builder(graph).Relu(graph.parameters[0].out_port(0), name="dead")
    unchanged(graph, "front")
    assert dead.node in graph.nodes.values()


def test_unchanged_nodes_stay_the_same_objects() -> None:
    graph, _ = chain()
    before = {n.name: n for n in graph.nodes.values()}
    made = exported(graph)
    Node(made, "soft")["axis"] = 0
    imported(made, graph)
    assert {n.name: n for n in graph.nodes.values()} == before
    assert [n.name for n in graph.results] == ["p", "q"] and graph.parameters[0].name == "x"


def test_copies_become_nodes_of_their_own() -> None:
    def change(made: Graph) -> None:
        copied = Node(made, "soft").copy_node({"axis": 0})
        copied.in_port(0).connect(Node(made, "add").out_port(0))
        Node(made, "relu").in_port(0).connect(copied.out_port(0))

    text = print_graph(changed(change))
    assert "Softmax<axis=0>(%add)" in text and "Softmax(%add)" in text


def test_cut_off_nodes_are_removed() -> None:
    def change(made: Graph) -> None:
        Node(made, "relu").out_port(0).get_connection().set_source(Node(made, "soft").out_port(0))
        Node(made, "relu").in_port(0).disconnect()

    graph = changed(change)
    assert sorted(n.type for n in graph.nodes.values()) == [
        "Add",
        "Constant",
        "Parameter",
        "Result",
        "Result",
        "Softmax",
    ]


def test_new_results_are_named_after_what_they_read() -> None:
    def change(made: Graph) -> None:
        new = Relu(made, {"name": "new"}).create_node([Node(made, "soft")])
        library_class("result", "Result")(made).create_node([new])
        made.remove_node("p")

    graph = changed(change)
    assert [n.out_port(0).names for n in graph.results] == [(), ("new",)]


class Own(Op):
    """An operation that no set has."""

    op = "Own"

    def __init__(self, graph: Graph, attrs: dict[str, Any]) -> None:
        defaults = {"op": "Own", "type": None, "in_ports_count": 1, "out_ports_count": 1}
        super().__init__(graph, {**defaults, "infer": self.infer}, attrs)

    @staticmethod
    def infer(node: Node) -> None:
        node.out_port(0).data.set_value(int64_array([1, len(node.in_port(0).data.get_shape()) * 2]))


def reshaped_by_own(made: Graph, infer: Any) -> None:
    own = Own(made, {"name": "own", "infer": infer}).create_node([Node(made, "x")] if made.stage == "front" else None)
    reshape = library_class("reshape", "Reshape")(made, {"name": "reshape"}).create_node()
    if made.stage != "front":
        Node(made, "x").out_port(0).connect(own.in_port(0))
    own.out_port(0).connect(reshape.in_port(1))
    Node(made, "relu").out_port(0).get_connection().insert_node(reshape)


@pytest.mark.parametrize("stage", ["front", "middle"])
def test_values_that_infer_computes_become_constants(stage: str) -> None:
    def change(made: Graph) -> None:
        made.nodes["x"]["shape"] = int64_array([1, 4])
        if stage == "middle":
            Node(made, "x").out_port(0).data.set_shape([1, 4])
        reshaped_by_own(made, Own.infer)
        if stage == "middle":
            made.clean_up()

    graph = changed(change, stage)
    x = np.array([[-2, 0, 1, 3]], np.float32)
    compiled = compile_model(graph, FAST, threads=1)(x)
    np.testing.assert_array_equal(np.asarray(compiled[1]), np.maximum(x + np.arange(4), 0))


@pytest.mark.parametrize(
    ("infer", "error", "message"),
    [
        (None, Error, r"Own \(own\): no operation set has it: give it a form"),
        (lambda node: node.absent, ModelError, r"Own \(own\): its infer failed: AbsentError: absent"),
        (lambda node: None, Error, r"Own \(own\): its infer has set no shape of output 0"),
    ],
)
def test_operations_that_nothing_can_run_say_what_to_write(infer: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compile_model(changed(lambda made: reshaped_by_own(made, infer)), FAST, threads=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.create_edge(Node(g, "relu"), Node(g, "add"), 0, 2), "the graph has a cycle"),
        (lambda g: Node(g, "soft").__setitem__("version", "opset1") or None, "version"),
    ],
)
def test_broken_graphs_are_errors(change: Callable[[Graph], object], message: str) -> None:
    def broken(made: Graph) -> None:
        Node(made, "add").add_input_port(2)
        change(made)

    with pytest.raises((Error, AttributeError), match=message):
        changed(broken)


def test_data_nodes_without_producers_become_constants() -> None:
    def change(made: Graph) -> None:
        Node(made, "add").in_port(1).disconnect()
        held = Op.create_input_data_node(made, "held", np.full(4, 2, np.float32))
        made.add_edge(held.id, "add", **{"in": 1})

    assert "const<f32[4] [2.0, 2.0, 2.0, 2.0]>" in print_graph(changed(change, "middle"))


def test_element_types_and_shapes_are_forced() -> None:
    def change(made: Graph) -> None:
        attrs = {"name": "k", "value": np.arange(4), "force_type": "FP32", "force_shape": int64_array([1, 4])}
        made.nodes["add"]["_in_ports"][1] = {}
        Node(made, "add").in_port(1).connect(Const(made, attrs).create_node().out_port(0))

    assert "%k = const<f32[1,4] [0.0, 1.0, 2.0, 3.0]>" in print_graph(changed(change))


IN_PLACE = """
from openvino.tools.mo.{phase}.replacement import {base}
class Scale({base}):
    enabled = True
    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(type="Const"):
            {change}
"""


@pytest.mark.parametrize("change", ["node.value *= 2", "node.out_port(0).data.get_value()[...] *= 2"])
@pytest.mark.parametrize("phase", ["middle", "back"])
def test_constants_may_be_changed_in_place_and_the_model_keeps_its_own(phase: str, change: str, tmp_path: Path) -> None:
    base = f"{phase.capitalize()}ReplacementPattern"
    (tmp_path / "e" / phase).mkdir(parents=True)
    (tmp_path / "e" / phase / "scale.py").write_text(IN_PLACE.format(phase=phase, base=base, change=change))
    weights = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    held = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], weights.tobytes(), raw=True)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "m", ends[:1], ends[1:], [held])
    path = tmp_path / "m.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    changed = compile_model(path, extensions=tmp_path / "e")
    x = np.ones((1, 2), np.float32)
    assert changed(x)[0].tolist() == [[8, 12]]
    assert compile_model(path)(x)[0].tolist() == [[4, 6]]
