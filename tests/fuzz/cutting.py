"""Makes graphs smaller: what a node gives becomes an input, with the values that it had."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from aot.frontends import read_model
from aot.ir.graph import Graph, Node
from aot.ir.interpret import interpret
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Parameter
from aot.runtime.errors import AotError
from tests.fuzz.case import Case
from tests.fuzz.ir_writer import written
from tests.fuzz.judging.comparing import FED, packed, unpacked
from tests.fuzz.reduce import fewest


def cut(case: Case, holds: Callable[[Case], bool]) -> Case:
    """The case with the fewest results, and then the fewest nodes, for which `holds` is True."""
    graph, _ = _read(case)
    results = fewest(range(len(graph.results)), lambda left: bool(left) and holds(_with_results(case, left)))
    case = _with_results(case, results)
    graph, _ = _read(case)
    nodes = [n.name for n in graph.order() if n.type not in ("Parameter", "Constant", "Result") and not _stateful(n)]
    left = fewest(nodes, lambda kept: holds(_with_nodes(case, kept)))
    return _with_nodes(case, left)


def _stateful(node: Node) -> bool:
    return node.type in ("ReadValue", "Assign")


def _read(case: Case) -> tuple[Graph, list[Array]]:
    with tempfile.TemporaryDirectory() as name:
        case.write(Path(name))
        graph = read_model(Path(name) / "model.xml")
    return graph, unpacked(case.files[FED], graph)


def _with_results(case: Case, kept: Collection[int]) -> Case:
    graph, inputs = _read(case)
    for k, node in reversed(list(enumerate(graph.results))):
        if k not in kept:
            graph.remove(node)
    return _pruned(case, graph, inputs)


def _with_nodes(case: Case, kept: Sequence[str]) -> Case:
    """Outputs of other nodes are inputs; their sizes vary where they did."""
    graph, inputs = _read(case)
    values = dict[tuple[str, int], Array]()
    interpret(graph, inputs, observe=lambda port, value: values.__setitem__((port.node.name, port.idx), value))
    rest = [n for n in graph.order() if n.type not in ("Parameter", "Constant", "Result") and not _stateful(n)]
    for node in rest:
        if node.name in kept:
            continue
        for port in node.out_ports().values():
            if not port.destinations:
                continue
            array = values[node.name, port.idx]
            try:
                shape = port.type.shape
            except AotError:
                shape = array.shape
            made = graph.add(Parameter(dtype_of(array), shape), name=f"{node.name}_{port.idx}")
            port.replace_by(made.out_port(0))
            inputs.append(array)
    return _pruned(case, graph, inputs)


def _pruned(case: Case, graph: Graph, inputs: list[Array]) -> Case:
    """Remove the nodes that no result needs."""
    changed = True
    while changed:
        changed = False
        for node in list(graph.nodes.values()):
            if (
                node not in graph.results
                and node not in graph.sinks
                and not any(p.destinations for p in node.out_ports().values())
            ):
                if node in graph.parameters:
                    del inputs[graph.parameters.index(node)]
                graph.remove(node)
                changed = True
    xml, weights = written(graph)
    return Case({**case.files, "model.xml": xml.encode(), "model.bin": weights, FED: packed(inputs)}, case.facts)
