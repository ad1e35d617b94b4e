"""Round trips over the bridge change nothing: operations, foreign operations, networks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from aot.frontends import read_model
from aot.ir.graph import Graph as IrGraph
from aot.ir.op import RegionOp
from aot.ir.text.printer import print_graph
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.node_records import KEPT
from aot.mo.bridge.to_mo import exported
from aot.opset.control.infrastructure import Constant, Parameter, Result
from tests.cases import Case
from tests.writers.case_models import MODULES, cases


def add(graph: IrGraph, case: Case, at: int) -> None:
    ports: list[Any] = []
    for n, (operand, array) in enumerate(zip(case.operands(), case.arrays, strict=True)):
        if operand is None or array is None:
            ports.append(None)
        elif operand.value is not None:
            ports.append(graph.add(Constant(operand.dtype), name=f"c{at}_{n}", data=array).out_port(0))
        else:
            ports.append(graph.add(Parameter(operand.dtype, operand.shape), name=f"x{at}_{n}").out_port(0))
    while ports and ports[-1] is None:
        ports.pop()
    made = graph.add(case.op, *ports, name=f"case{at}", outputs=len(case.op.outputs(*case.operands())))
    for port in made.out_ports().values():
        graph.add(Result(), port)


def family(module: str) -> IrGraph:
    graph = IrGraph(module)
    for at, (_, case) in enumerate(cases(module)):
        add(graph, case, at)
    return graph


def unchanged(graph: IrGraph, stage: str) -> None:
    text, nodes = print_graph(graph), dict(graph.nodes)
    imported(exported(graph, stage), graph)
    assert print_graph(graph) == text and graph.nodes == nodes


@pytest.mark.parametrize("stage", ["front", "middle"])
@pytest.mark.parametrize("module", MODULES)
def test_a_round_trip_of_each_operation_changes_nothing(module: str, stage: str) -> None:
    unchanged(family(module), stage)


@pytest.mark.parametrize("module", MODULES)
def test_operations_made_of_attribute_texts_are_the_same(module: str) -> None:
    graph = family(module)
    text, made = print_graph(graph), exported(graph)
    for _, attrs in made.nodes(data=True):
        op = attrs[KEPT].node.op
        if op.opset and not isinstance(op, RegionOp | Parameter | Constant | Result):
            del attrs[KEPT]
    imported(made, graph)
    assert print_graph(graph) == text


def onnx_model(folder: Path, nodes: list[Any], inputs: dict[str, list[Any]], constants: dict[str, Any]) -> Path:
    """A model whose one output is `y`."""
    given = [helper.make_tensor_value_info(k, TensorProto.FLOAT, shape) for k, shape in inputs.items()]
    held = [
        helper.make_tensor(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.reshape(-1))
        for k, v in constants.items()
    ]
    output = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "model", given, output, held)
    path = folder / "m.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


def mish(folder: Path) -> Path:
    node = helper.make_node
    nodes = [
        node("Abs", ["x"], ["a"], name="a"),
        node("Softplus", ["a"], ["s"], name="s"),
        node("Tanh", ["s"], ["t"], name="t"),
        node("Mul", ["a", "t"], ["m"], name="m"),
        node("Sin", ["m"], ["y"], name="sin"),
    ]
    return onnx_model(folder, nodes, {"x": ["n", 4]}, {})


def branches(folder: Path) -> Path:
    node, info = helper.make_node, helper.make_tensor_value_info
    sides = [
        helper.make_graph([node(kind, ["x"], [name], name=kind)], name, [], [info(name, TensorProto.FLOAT, None)])
        for kind, name in (("Abs", "one"), ("Neg", "other"))
    ]
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["positive"]),
        node("If", ["positive"], ["i"], name="if", then_branch=sides[0], else_branch=sides[1]),
        node("Exp", ["i"], ["y"]),
    ]
    return onnx_model(folder, nodes, {"x": [2, 3]}, {"zero": np.zeros((), np.float32)})


@pytest.mark.parametrize("stage", ["front", "middle"])
@pytest.mark.parametrize("model", [mish, branches])
def test_a_round_trip_of_foreign_operations_changes_nothing(
    model: Callable[[Path], Path], stage: str, tmp_path: Path
) -> None:
    unchanged(read_model(model(tmp_path)), stage)


@pytest.mark.parametrize("name", ["mlp", "lstm", "shufflenet"])
def test_a_round_trip_of_networks_changes_nothing(name: str, tmp_path: Path) -> None:
    models = importlib.import_module("benchmarks.models")
    models.ov.save_model(getattr(models, name)(), tmp_path / "m.xml", compress_to_fp16=False)
    graph = read_model(tmp_path / "m.xml")
    unchanged(graph, "front")
    unchanged(graph, "middle")
