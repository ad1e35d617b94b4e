"""Ports and connections: how passes and extensions lead tensors elsewhere; types follow by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import aot.opset  # noqa: F401
from aot.ir.graph import Graph, Node
from aot.ir.registry import all_operations
from aot.ir.text.parser import parse_graph
from aot.ir.verify import verify
from aot.runtime.errors import InternalError

TEXT = """
graph m(%x: f32[2,3], %y: f32[4,3]) {
  %c = const<f32[1,3] [1, 2, 3]>
  %a: ? = Add(%x, %c)
  %r: ? = Result(%a)
  %s: ? = Result(%a)
}
"""


@pytest.fixture
def graph() -> Graph:
    return parse_graph(TEXT)


def node(graph: Graph, name: str) -> Node:
    return next(n for n in graph.nodes.values() if n.name == name)


def test_another_source(graph: Graph) -> None:
    x, y = node(graph, "x").out_port(0), node(graph, "y").out_port(0)
    x.add_tensor_names(["image"])
    assert x.get_connection().get_destination() is node(graph, "a").in_port(0)
    x.get_connection().set_source(y)
    assert node(graph, "a").in_port(0).get_source() is y and x.disconnected()
    assert y.get_tensor_names() == () and x.get_tensor_names() == ("image",)  # an input keeps its name
    assert node(graph, "r").in_port(0).data.get_shape() == (4, 3)
    verify(graph)


def test_names_move_with_the_readers(graph: Graph) -> None:
    """A new source appends its names to those that the reader had, and a tensor that is still read keeps its names."""
    a, c, r = node(graph, "a"), node(graph, "c"), node(graph, "r")
    a.out_port(0).add_tensor_names(["sum"])
    c.out_port(0).add_tensor_names(["held"])
    one = graph.add(all_operations()["Abs"](), None)
    r.in_port(0).get_connection().insert_node(one)  # `s` reads the old tensor
    assert (a.out_port(0).names, one.out_port(0).names) == (("sum",), ())
    two = graph.add(all_operations()["Relu"](), None)
    a.out_port(0).get_connection().insert_node(two)
    assert (a.out_port(0).names, two.out_port(0).names) == ((), ("sum",))
    two.out_port(0).get_connection().set_source(c.out_port(0))
    assert (two.out_port(0).names, c.out_port(0).names) == ((), ("sum", "held"))


def test_another_destination(graph: Graph) -> None:
    x, c, a = (node(graph, name) for name in "xca")
    x.out_port(0).get_connection().set_destination(a.in_port(1))
    assert a.in_port(0).disconnected() and a.in_port(1).get_source() is x.out_port(0)
    c.out_port(0).get_connection().add_destination(a.in_port(0))
    assert [p.get_source() for p in a.in_ports().values()] == [c.out_port(0), x.out_port(0)]
    np.testing.assert_array_equal(a.in_port(0).data.get_value(), [[1, 2, 3]])
    with pytest.raises(InternalError, match="2 destinations"):
        a.out_port(0).get_connection().set_destination(node(graph, "r").in_port(0))
    verify(graph)


def test_a_node_between(graph: Graph) -> None:
    relu = graph.add(all_operations()["Relu"](), None)
    node(graph, "a").out_port(0).get_connection().insert_node(relu)
    assert {p.node.name for p in relu.out_port(0).get_destinations()} == {"r", "s"}
    one = graph.add(all_operations()["Abs"](), None)
    node(graph, "s").in_port(0).get_connection().insert_node(one)
    assert [n.type for n in graph.get_op_nodes()][-4:] == ["Relu", "Result", "Abs", "Result"]
    assert graph.get_op_nodes("Abs") == [one]
    verify(graph)


def test_connections_that_end(graph: Graph) -> None:
    a = node(graph, "a")
    a.in_port(0).get_connection().remove()
    assert a.in_port(0).disconnected() and node(graph, "x").out_port(0).get_destinations() == []
    with pytest.raises(InternalError, match="without a source"):
        a.in_port(0).get_connection().insert_node(graph.add(all_operations()["Abs"](), None))


def test_ports_come_and_go() -> None:
    graph = parse_graph("graph m(%x: f32[2,3], %y: f32[2,4]) {\n  %c: ? = Concat<axis=1>(%x)\n  %r: ? = Result(%c)\n}")
    c, r = node(graph, "c"), node(graph, "r")
    c.add_input_port().connect(node(graph, "y").out_port(0))
    assert str(r.out_port(0).type) == "f32[2,7]"
    c.delete_input_port(0)
    assert str(r.out_port(0).type) == "f32[2,4]" and c.in_port(0).idx == 0
    verify(graph)
