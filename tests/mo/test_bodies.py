"""Bodies of If, Loop and TensorIterator that extensions make, replace or copy: they come back as networks that run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from aot.compilation.driver import compile_model, stages
from aot.ir.interpret import interpret
from aot.ir.op import RegionOp
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.node_records import KEPT
from aot.mo.bridge.to_mo import exported
from aot.options import CompileOptions
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.runtime.errors import AotError
from tests.mo.test_loading import HEAD, folder

X = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
FAST = CompileOptions(level=None)
SUMS = """<ir_version: 10, opset_import: ["": 21]> m (float[n,2] x, float[2] s) => (float[2] last, float[n,2] all) {
    last, all = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {
        c = Add(a, b)
        d = Tanh(c)
    }> (s, x)
}"""
LOOP = """<ir_version: 10, opset_import: ["": 21]> m (float[3,2] x, int64 n) => (float[3,2] y) {
    yes = Constant <value_int = 1> ()
    going = Cast <to = 9> (yes)
    y = Loop <body = step (int64 i, bool c, float[3,2] a) => (bool d, float[3,2] b) {
        d = Identity(c)
        b = Add(a, x)
    }> (n, going, x)
}"""
BRANCH = """<ir_version: 10, opset_import: ["": 21]> m (float[3,2] x, bool c) => (float[3,2] y) {
    y = If <then_branch = t () => (float[3,2] a) { a = Neg(x) },
            else_branch = e () => (float[3,2] b) { b = Abs(x) }> (c)
}"""
TANH = """<ir_version: 10, opset_import: ["": 21]> m (float[3,2] x) => (float[3,2] y) { y = Tanh(x) }"""
NETWORKS: dict[str, tuple[str, list[Any]]] = {
    "TensorIterator": (SUMS, [X, np.array([1, -1], np.float32)]),
    "Loop": (LOOP, [X, np.int64(3)]),
    "If": (BRANCH, [X, np.bool_(True)]),
}


def written(place: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), place / "m.onnx")
    return place / "m.onnx"


@pytest.mark.parametrize("stage", ["front", "middle"])
@pytest.mark.parametrize(("text", "inputs"), NETWORKS.values(), ids=NETWORKS)
def test_operations_made_of_their_records_compute_the_same(
    tmp_path: Path, text: str, inputs: list[Any], stage: str
) -> None:
    """A node with bodies is rebuilt if the record of its origin is missing."""
    graph = stages(written(tmp_path, text), FAST).converted
    before = interpret(graph, inputs)
    ops = {n.name: n.op for n in graph.nodes.values() if isinstance(n.op, RegionOp)}
    made = exported(graph, stage)
    for _, attrs in made.nodes(data=True):
        if KEPT in attrs and isinstance(attrs[KEPT].node.op, RegionOp):
            del attrs[KEPT]
    imported(made, graph)
    scope_region_symbols(graph)
    assert len({n.name: n.op for n in graph.nodes.values() if isinstance(n.op, RegionOp)}) == len(ops) == 1
    for a, b in zip(interpret(graph, inputs), before, strict=True):
        np.testing.assert_array_equal(a, b)


MORE = (
    HEAD
    + """
import numpy as np
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.elementwise import Add, Mul
from openvino.tools.mo.ops.If import If
from openvino.tools.mo.ops.loop import Loop
from openvino.tools.mo.ops.parameter import Parameter
from openvino.tools.mo.ops.power import AttributedPower
from openvino.tools.mo.ops.result import Result
from openvino.tools.mo.ops.tensor_iterator import TensorIterator

def numbered(body, cls, number, **attrs):
    return cls(body, {"name": f"n{number}", "internal_layer_id": number, **attrs}).create_node()

def body_graph(stage):
    body = Graph()
    body.graph.update(name="body", layout="NCHW", fw="onnx", ir_version=11)
    body.stage = stage
    return body
"""
)
NEW_LOOP = """
class Replace(FrontReplacementOp):
    op = "Tanh"
    enabled = True
    def replace_op(self, graph, node):
        body = body_graph("front")
        count = numbered(body, Parameter, 0, shape=np.array([], np.int64), data_type=np.int64)
        x = numbered(body, Parameter, 1, shape=np.array([3, 2]))
        power = AttributedPower(body, {"scale": 2.0, "shift": 1.0, "power": 1.0}).create_node([x])
        result = numbered(body, Result, 2)
        power.out_port(0).connect(result.in_port(0))
        going = Const(body, {"value": np.array(True)}).create_node()
        condition = numbered(body, Result, 3)
        going.out_port(0).connect(condition.in_port(0))
        loop = Loop(graph, {"name": "loop", "body": body, "in_ports_count": 3, "out_ports_count": 1}).create_node()
        for port, value in ((0, np.int64(3)), (1, np.array(True))):
            Const(graph, {"value": value}).create_node().out_port(0).connect(loop.in_port(port))
        node.in_port(0).get_source().connect(loop.in_port(2))
        Loop.mark_current_iteration_parameter_node(loop, count)
        Loop.mark_execution_condition_result_node(loop, condition)
        Loop.connect_body_input(loop, 2, x)
        Loop.connect_body_output(loop, 0, result)
        Loop.add_back_edge(loop, x, result)
        return [loop.id]
"""
NEW_ITERATOR = """
class Replace(MiddleReplacementPattern):
    enabled = True
    def pattern(self):
        return dict(nodes=[("tanh", dict(op="Tanh"))], edges=[])
    def replace_pattern(self, graph, match):
        node = match["tanh"]
        body = body_graph("middle")
        x = Parameter(body, {"name": "x", "shape": np.array([1, 2])}).create_node_with_data()
        made = Mul(body, {"name": "square", "internal_layer_id": 5}).create_node_with_data([x, x])
        result = Result(body, {"name": "r"}).create_node([made])
        ids = {n.soft_get("op"): n for n in body.get_op_nodes()}
        ids["Parameter"]["internal_layer_id"], ids["Result"]["internal_layer_id"] = 7, 9
        slices = {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
        ti = TensorIterator(graph, {
            "name": "ti", "body": body, "in_ports_count": 1, "out_ports_count": 1, "back_edges": [],
            "input_port_map": [{"external_port_id": 0, "internal_layer_id": 7, **slices}],
            "output_port_map": [{"external_port_id": %s, %s, **slices}],
        }).create_node()
        node.in_port(0).get_connection().set_destination(ti.in_port(0))
        node.out_port(0).get_connection().set_source(ti.out_port(0))
"""
NEW_IF = """
class Replace(FrontReplacementOp):
    op = "Tanh"
    enabled = True
    def replace_op(self, graph, node):
        bodies = []
        for cls in (Abs, Sin):
            body = body_graph("front")
            x = Parameter(body, {"name": "x", "shape": np.array([3, 2])}).create_node()
            made = cls(body, {"name": "made"}).create_node([x])
            made.out_port(0).connect(Result(body, {"name": "r"}).create_node().in_port(0))
            bodies.append(body)
        attrs = {"name": "if", "then_graph": bodies[0], "else_graph": bodies[1]}
        chosen = If(graph, {**attrs, "in_ports_count": 2, "out_ports_count": 1}).create_node()
        Const(graph, {"value": np.array(False)}).create_node().out_port(0).connect(chosen.in_port(0))
        node.in_port(0).get_source().connect(chosen.in_port(1))
        for condition, body in zip((True, False), bodies):
            If.connect_body_input(chosen, condition, 1, body.get_op_nodes(op="Parameter")[0])
            If.connect_body_output(chosen, condition, 0, body.get_op_nodes(op="Result")[0])
        return [chosen.id]
"""
CHANGED = """
class Change(MiddleReplacementPattern):
    enabled = True
    run_not_recursively = True
    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(op="%s"):
            change(graph, node)
"""
COPIED = (
    CHANGED
    + """
def change(graph, node):
    copy = node.copy_node({"name": "copy"})
    for i, port in node.in_ports().items():
        port.get_source().connect(copy.in_port(i))
    node.out_port(0).get_connection().set_source(copy.out_port(0))
"""
)
EDITED = (
    CHANGED
    + """
def change(graph, node):
    for name in node.sub_graphs:
        for result in node[name].get_op_nodes(op="Result"):
            sin = Sin(node[name], {"name": "sin"}).create_node()
            result.in_port(0).get_connection().insert_node(sin)
"""
)
SIN_BEHIND = (
    CHANGED
    + """
def change(graph, node):
    node.out_port(0).get_connection().insert_node(Sin(graph, {"name": "sin"}).create_node())
"""
)
NOT_RECURSIVELY = "    run_not_recursively = True\n"
EXTENSIONS: dict[str, tuple[str, str, str, list[Any], Callable[[], list[Any]]]] = {
    "a Loop of the front phase": ("front_x", NEW_LOOP, TANH, [X], lambda: [8 * X + 7]),
    "a TensorIterator": ("middle_x", NEW_ITERATOR % ("0", '"internal_layer_id": 9'), TANH, [X], lambda: [X * X]),
    "a TensorIterator whose outputs are counted behind its inputs": (
        "middle_x",
        NEW_ITERATOR % ("1", '"internal_layer_id": 5, "internal_port_id": 0'),
        TANH,
        [X],
        lambda: [X * X],
    ),
    "an If": ("front_x", NEW_IF, TANH, [X], lambda: [np.sin(X)]),
    "a copy of a Loop": ("middle_x", COPIED % "Loop", LOOP, [X, np.int64(3)], lambda: [4 * X]),
    "a copy of an If": ("middle_x", COPIED % "If", BRANCH, [X, np.bool_(True)], lambda: [-X]),
    "a body that is changed": ("middle_x", EDITED % "If", BRANCH, [X, np.bool_(False)], lambda: [np.sin(np.abs(X))]),
    "a graph without its bodies": ("middle_x", SIN_BEHIND % "Abs", BRANCH, [X, np.bool_(False)], lambda: [np.abs(X)]),
    "a graph and its bodies": (
        "middle_x",
        SIN_BEHIND.replace(NOT_RECURSIVELY, "") % "Abs",
        BRANCH,
        [X, np.bool_(False)],
        lambda: [np.sin(np.abs(X))],
    ),
}


@pytest.mark.parametrize(("place", "code", "text", "inputs", "wanted"), EXTENSIONS.values(), ids=EXTENSIONS)
def test_bodies_of_extensions_run(
    tmp_path: Path, place: str, code: str, text: str, inputs: list[Any], wanted: Callable[[], list[Any]]
) -> None:
    options = CompileOptions(level=None, extensions=folder(tmp_path, **{place: MORE + code}))
    found = compile_model(written(tmp_path, text), options)(*inputs)
    for i, value in enumerate(wanted()):
        np.testing.assert_allclose(found[i], value, rtol=1e-5)


WRONG: dict[str, tuple[str, str, str]] = {
    "a port": ("output(loop, 0,", "output(loop, 4,", r"loop: records are of output ports \[0\], got 4"),
    "a node": (
        "Loop.connect_body_input(loop, 2, x)",
        "loop.input_port_map.append(dict(external_port_id=2, internal_layer_id=77))",
        "loop: internal_layer_id numbers a node of the body, got 77",
    ),
    "a kind of node": ("output(loop, 0, result)", "output(loop, 0, x)", "loop: a record is of a Result of the body"),
    "a graph": ("return [loop.id]", "loop['body'] = None; return [loop.id]", "loop: attribute body holds a graph"),
}


@pytest.mark.parametrize(("before", "after", "message"), WRONG.values(), ids=WRONG)
def test_records_of_what_is_not_there(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in NEW_LOOP
    options = CompileOptions(level=None, extensions=folder(tmp_path, front_x=MORE + NEW_LOOP.replace(before, after)))
    with pytest.raises(AotError, match=message):
        _ = stages(written(tmp_path, TANH), options).optimized
