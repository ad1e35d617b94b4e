"""Nodes take the names of the user's layers that they come from."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Origin
from aot.passes.front.take_names import take_names
from tests.passes.check import graph_of


def test_the_last_node_of_a_layer_has_its_name() -> None:
    """A node of two layers, and one of a layer whose name another node has, keep theirs."""
    graph = graph_of(lambda b, x: b.Exp(x), (2,))
    (result,), x = graph.results, graph.parameters[0].out_port(0)
    layers = ("mine",), ("mine",), ("other", "mine"), ("x0",)
    for k, names in enumerate(layers):
        x = Builder(graph, Origin(names)).Abs(x)
        x.node.name = f"n{k}"
    result.in_port(0).connect(x)
    assert take_names(graph)
    assert [n.name for n in graph.order() if n.type == "Abs"] == ["n0", "mine", "n2", "n3"]
    assert not take_names(graph)
