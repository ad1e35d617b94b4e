"""Ports and connections: numbers, neighbours, data, names of tensors. Expected values: Model Optimizer 2024.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.library import library_class
from aot.mo.utils.error import Error
from tests.mo.graphs import build, data, edges, front, op

Relu, Add = library_class("activation_ops", "ReLU"), library_class("elementwise", "Add")
Split = library_class("split", "Split")

OPS = {"input": op("Parameter"), "Op1": op("Op1"), "Op2": op("Op2"), "NewOp": op("NewOp")}
DATA = {f"{k}_d": data(fw_tensor_debug_info=[(k, k)]) for k in ("input", "Op1", "Op2")}

Step = Callable[[Node, Node, Node, Node, Any], Any]  # input, Op1, Op2, NewOp, mode
STEPS: dict[str, Step] = {
    "new input": lambda i, a, b, w, m: w.in_port(0).get_connection().set_source(i.out_port(0), m),
    "move reader": lambda i, a, b, w, m: a.in_port(0).get_connection().set_destination(w.in_port(0), m),
    "new source": lambda i, a, b, w, m: a.in_port(0).get_connection().set_source(w.out_port(0), m),
    "take reader": lambda i, a, b, w, m: w.out_port(0).get_connection().set_destination(b.in_port(0), m),
    "bypass by source": lambda i, a, b, w, m: a.out_port(0).get_connection().set_source(i.out_port(0), m),
    "bypass by reader": lambda i, a, b, w, m: a.in_port(0).get_connection().set_destination(b.in_port(0), m),
    "insert behind input": lambda i, a, b, w, m: i.out_port(0).get_connection().insert_node(w, m or "merge"),
    "insert behind Op1": lambda i, a, b, w, m: a.out_port(0).get_connection().insert_node(w, m or "merge"),
}
FRONT: dict[tuple[str, str | None], str] = {
    ("new input", None): "Op1>Op2=Op1 input>NewOp=input input>Op1=input",
    ("new input", "merge"): "Op1>Op2=Op1 input>NewOp=input input>Op1=input",
    ("new input", "source"): "Op1>Op2=Op1 input>NewOp=input input>Op1=input",
    ("new input", "dest"): "Op1>Op2=Op1 input>NewOp input>Op1=input",
    ("move reader", None): "Op1>Op2=Op1 input>NewOp=input",
    ("move reader", "merge"): "Op1>Op2=Op1 input>NewOp=input",
    ("move reader", "source"): "Op1>Op2=Op1 input>NewOp=input",
    ("move reader", "dest"): "Op1>Op2=Op1 input>NewOp",
    ("new source", None): "NewOp>Op1 Op1>Op2=Op1",
    ("new source", "merge"): "NewOp>Op1=input Op1>Op2=Op1",
    ("new source", "source"): "NewOp>Op1 Op1>Op2=Op1",
    ("new source", "dest"): "NewOp>Op1=input Op1>Op2=Op1",
    ("take reader", None): "NewOp>Op2=Op1 Op1>Op2=Op1 input>Op1=input",
    ("take reader", "merge"): "NewOp>Op2=Op1 Op1>Op2=Op1 input>Op1=input",
    ("take reader", "source"): "NewOp>Op2 Op1>Op2=Op1 input>Op1=input",
    ("take reader", "dest"): "NewOp>Op2=Op1 Op1>Op2=Op1 input>Op1=input",
    ("bypass by source", None): "input>Op1=input input>Op2=input+Op1",
    ("bypass by source", "merge"): "input>Op1=input input>Op2=input+Op1",
    ("bypass by source", "source"): "input>Op1=input input>Op2=input",
    ("bypass by source", "dest"): "input>Op1=input input>Op2=Op1",
    ("bypass by reader", None): "Op1>Op2=Op1 input>Op2=input",
    ("bypass by reader", "merge"): "Op1>Op2=Op1 input>Op2=input+Op1",
    ("bypass by reader", "source"): "Op1>Op2=Op1 input>Op2=input",
    ("bypass by reader", "dest"): "Op1>Op2=Op1 input>Op2=Op1",
    ("insert behind input", "merge"): "NewOp>Op1=input Op1>Op2=Op1 input>NewOp",
    ("insert behind input", "source"): "NewOp>Op1 Op1>Op2=Op1 input>NewOp",
    ("insert behind input", "dest"): "NewOp>Op1=input Op1>Op2=Op1 input>NewOp",
    ("insert behind Op1", "merge"): "NewOp>Op2=Op1 Op1>NewOp input>Op1=input",
    ("insert behind Op1", "source"): "NewOp>Op2 Op1>NewOp input>Op1=input",
    ("insert behind Op1", "dest"): "NewOp>Op2=Op1 Op1>NewOp input>Op1=input",
}
MIDDLE: dict[tuple[str, str | None], str] = {
    ("new input", None): "Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp,Op1",
    ("new input", "merge"): "Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp,Op1",
    ("new input", "source"): "Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp,Op1",
    ("new input", "dest"): "Op1[Op1]>Op2 Op2[Op2]> input[]>NewOp,Op1",
    ("move reader", None): "Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp",
    ("move reader", "merge"): "Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp",
    ("move reader", "source"): "Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp",
    ("move reader", "dest"): "Op1[Op1]>Op2 Op2[Op2]> input[]>NewOp",
    ("new source", None): "NewOp[]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[input]>",
    ("new source", "merge"): "NewOp[input]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[]>",
    ("new source", "source"): "NewOp[]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[input]>",
    ("new source", "dest"): "NewOp[input]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[]>",
    ("take reader", None): "NewOp[Op1]>Op2 Op1[Op1]>Op2 Op2[Op2]> input[input]>Op1",
    ("take reader", "merge"): "NewOp[Op1]>Op2 Op1[Op1]>Op2 Op2[Op2]> input[input]>Op1",
    ("take reader", "source"): "NewOp[]>Op2 Op1[Op1]>Op2 Op2[Op2]> input[input]>Op1",
    ("take reader", "dest"): "NewOp[Op1]>Op2 Op1[Op1]>Op2 Op2[Op2]> input[input]>Op1",
    ("bypass by source", None): "Op1[]> Op2[Op2]> input[input+Op1]>Op1,Op2",
    ("bypass by source", "merge"): "Op1[]> Op2[Op2]> input[input+Op1]>Op1,Op2",
    ("bypass by source", "source"): "Op1[Op1]> Op2[Op2]> input[input]>Op1,Op2",
    ("bypass by source", "dest"): "Op1[]> Op2[Op2]> input[Op1]>Op1,Op2",
    ("bypass by reader", None): "Op1[Op1]>Op2 Op2[Op2]> input[input]>Op2",
    ("bypass by reader", "merge"): "Op1[Op1]>Op2 Op2[Op2]> input[input+Op1]>Op2",
    ("bypass by reader", "source"): "Op1[Op1]>Op2 Op2[Op2]> input[input]>Op2",
    ("bypass by reader", "dest"): "Op1[Op1]>Op2 Op2[Op2]> input[Op1]>Op2",
    ("insert behind input", "merge"): "NewOp[input]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[]>NewOp",
    ("insert behind input", "source"): "NewOp[]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[input]>NewOp",
    ("insert behind input", "dest"): "NewOp[input]>Op1 Op1[Op1]>Op2 Op2[Op2]> input[]>NewOp",
    ("insert behind Op1", "merge"): "NewOp[Op1]>Op2 Op1[]>NewOp Op2[Op2]> input[input]>Op1",
    ("insert behind Op1", "source"): "NewOp[]>Op2 Op1[Op1]>NewOp Op2[Op2]> input[input]>Op1",
    ("insert behind Op1", "dest"): "NewOp[Op1]>Op2 Op1[]>NewOp Op2[Op2]> input[input]>Op1",
}


def nodes(graph: Graph) -> list[Node]:
    found = [Node(graph, id) for id in ("input", "Op1", "Op2", "NewOp")]
    found[3].add_input_port(0)
    for node in found[2:]:
        node.add_output_port(0, skip_if_exist=True)
    return found


def named(id: str, **numbers: int) -> dict[str, Any]:
    return {"in": 0, "out": 0, "fw_tensor_debug_info": [(id, id)], **numbers}


def after_in_front(step: str, mode: str | None) -> str:
    graph = build(OPS, [("input", "Op1", named("input")), ("Op1", "Op2", named("Op1"))], "front")
    STEPS[step](*nodes(graph), mode)
    return " ".join(edges(graph))


def after_in_middle(step: str, mode: str | None) -> str:
    links = [("input", "input_d"), ("input_d", "Op1"), ("Op1", "Op1_d"), ("Op1_d", "Op2"), ("Op2", "Op2_d")]
    graph = build({**OPS, **DATA}, links, "middle")
    STEPS[step](*nodes(graph), mode)
    return " ".join(sorted(map(tensor, graph.get_data_nodes())))


def tensor(node: Node) -> str:
    """`producer[names]>readers` of a data node."""
    names = "+".join(pair[1] for pair in node.soft_get("fw_tensor_debug_info", []))
    makers, readers = (",".join(sorted(n.id for n in found)) for found in (node.in_nodes(), node.out_nodes()))
    return f"{makers}[{names}]>{readers}"


@pytest.mark.parametrize(("step", "mode"), list(FRONT))
def test_connections_in_the_front_phase_move_edges_and_names(step: str, mode: str | None) -> None:
    assert after_in_front(step, mode) == FRONT[step, mode]


@pytest.mark.parametrize(("step", "mode"), list(MIDDLE))
def test_connections_with_data_nodes_move_edges_and_names(step: str, mode: str | None) -> None:
    assert after_in_middle(step, mode) == MIDDLE[step, mode]


def test_ports_keep_their_numbers() -> None:
    graph, _ = front()
    add = Add(graph, {"name": "add"}).create_node()
    add.delete_input_port(0)
    assert (list(add.in_ports()), add.in_ports_count) == ([1], 1)
    add.add_input_port(5)
    add.add_input_port(1, skip_if_exist=True)
    add.add_sequence_of_ports("out", range(3))
    assert (list(add.in_ports()), list(add.out_ports())) == ([1, 5], [0, 1, 2])
    wrongs = (
        lambda: add.add_input_port(1),
        lambda: add.in_port(0),
        lambda: add.out_port(7),
        lambda: add.delete_input_port(0),
    )
    for wrong in wrongs:
        with pytest.raises(Error, match="add"):
            wrong()


def test_an_output_has_many_readers_and_loses_only_its_own() -> None:
    graph, x = front()
    split = Split(graph, {"num_splits": 2, "name": "split"}).create_node()
    add = Add(graph, {"name": "add"}).create_node()
    x.out_port(0).connect(split.in_port(0))
    for i in (0, 1):
        split.out_port(i).connect(add.in_port(i))
    other = Relu(graph, {"name": "other"}).create_node([(split, 0)])
    assert split.out_port(0).get_destinations() == [add.in_port(0), other.in_port(0)]
    assert (split.out_port(1).get_destination(), add.in_port(1).get_source()) == (add.in_port(1), split.out_port(1))
    with pytest.raises(Error, match="destinations"):
        split.out_port(0).get_destination()
    split.out_port(0).disconnect()
    assert split.out_port(0).disconnected() and other.in_port(0).get_source() is None
    assert add.in_port(1).get_source() == split.out_port(1)
    add.in_port(1).disconnect()
    assert not add.is_in_port_connected(1) and not split.is_out_port_connected(1)


def test_reconnecting_an_input_moves_its_edge() -> None:
    graph, x = front()
    first, second = (Relu(graph, {"name": n}).create_node([x]) for n in ("first", "second"))
    add = Add(graph, {"name": "add"}).create_node([first, first])
    add.in_port(1).connect(second.out_port(0))
    assert edges(graph) == ["first>add", "second>add1", "x>first", "x>second"]


def test_wrong_ends_are_errors() -> None:
    graph, x = front()
    relu = Relu(graph, {"name": "relu"}).create_node([x])
    for wrong in (
        lambda: relu.in_port(0).get_connection().set_source(relu.in_port(0)),
        lambda: relu.out_port(0).get_connection().set_destination(relu.out_port(0)),
        lambda: relu.out_port(0).get_connection().add_destination(relu.out_port(0)),
        lambda: Add(graph, {}).create_node().in_port(0).get_connection().add_destination(relu.in_port(0)),
    ):
        with pytest.raises(Error):
            wrong()
    with pytest.raises(AssertionError):
        relu.out_port(0).get_source()


def test_an_unconnected_port_has_an_empty_connection() -> None:
    graph, _ = front()
    relu = Relu(graph, {"name": "relu"}).create_node()
    assert relu.in_port(0).get_connection().get_source() is None
    assert relu.out_port(0).get_connection().get_destinations() == []
    assert relu.in_port(0).get_in_edge_attrs() is None


def test_removed_connections_have_no_ends() -> None:
    graph, x = front()
    Relu(graph, {"name": "relu"}).create_node([x])
    connection = x.out_port(0).get_connection()
    connection.remove()
    assert (connection.get_source(), connection.get_destinations(), edges(graph)) == (None, [], [])


def constant() -> Graph:
    held = {"c": op("Const", value=np.arange(3), shape=np.array([3])), "c_d": data([3], np.arange(3))}
    links = [("input", "input_d"), ("input_d", "Op1"), ("c", "c_d"), ("c_d", "Op1", {"in": 1}), ("Op1", "Op1_d")]
    return build({**OPS, **DATA, **held}, links, "middle")


def test_data_of_ports_is_that_of_data_nodes() -> None:
    graph = constant()
    node, maker = Node(graph, "Op1"), Node(graph, "c")
    assert node.in_port(1).data.get_value().tolist() == [0, 1, 2] and node.in_port(1).data.get_shape().tolist() == [3]
    assert node.in_port(0).data.get_value() is None and node.in_port(0).data.get_shape() is None
    node.in_port(0).data.set_shape([4, np.ma.masked])
    assert Node(graph, "input").out_port(0).data.get_shape().tolist() == [4, None]
    node.in_port(1).data.set_value(np.ones((2, 2)))
    assert maker.value.shape == tuple(maker.shape) == (2, 2)
    with pytest.raises(AssertionError):
        maker.out_port(0).data.set_shape([5])
    assert node.in_port(1).get_data_type() == np.float64


@pytest.mark.parametrize("holder", ["c", "c_d"])
def test_a_forced_shape_stays(holder: str) -> None:
    graph = constant()
    Node(graph, holder)["force_shape"] = np.array([2, 5, 7])
    Node(graph, "c").out_port(0).data.set_value(np.zeros(30))
    assert Node(graph, "c").out_port(0).data.get_shape().tolist() == [2, 5, 7]


def test_the_front_phase_has_no_data() -> None:
    graph, x = front()
    relu = Relu(graph, {"name": "relu"}).create_node([x])
    port = relu.in_port(0)
    assert (port.data.get_shape(), port.data.get_value(), port.get_connection().data.get_value()) == (None, None, None)
    with pytest.raises(NotImplementedError):
        port.data.set_shape([1])
    with pytest.raises(Error):
        relu.out_port(0).create_data_if_necessary()


def test_element_types_are_set_once() -> None:
    graph, x = front()
    port = Relu(graph, {"name": "relu"}).create_node([x]).out_port(0)
    assert not port.is_data_type_defined()
    with pytest.raises(Error, match="not defined"):
        port.get_data_type()
    port.set_data_type(np.float32)
    with pytest.raises(Error, match="override"):
        port.set_data_type(np.int32)
    port.set_data_type(np.int32, override=True)
    assert port.get_data_type() == np.int32


def test_tensor_names_are_sorted_and_escaped() -> None:
    graph, x = front()
    relu = Relu(graph, {"name": "relu"}).create_node([x])
    x.out_port(0).add_tensor_names(["b", "a,1"])
    assert x.out_port(0).get_tensor_names() == ["a\\,1", "b"]
    assert x.out_port(0).get_tensor_debug_info() == [("x", "b"), ("x", "a,1")]
    assert (x.out_port(0).get_default_tensor_name(), relu.out_port(0).get_tensor_names()) == ("x:0", [])
    x.out_port(0).remove_tensor_names()
    assert x.out_port(0).get_tensor_names() == []


def test_renumbered_outputs_have_their_names() -> None:
    links = [("input", "input_d"), ("input_d", "Op1"), ("Op1", "Op1_d", {"out": 1}), ("Op1_d", "Op2")]
    node = Node(build({**OPS, **DATA}, links, "middle"), "Op1")
    node.add_output_port(0)
    assert (node.out_port(0).get_tensor_names(), node.out_port(0).get_tensor_names(port_renumber=True)) == ([], ["Op1"])


def test_several_edges_between_two_nodes_are_cut_one_by_one() -> None:
    links = [("Op1", "Op1_d"), *(("Op1_d", "Op2", {"in": i}) for i in range(3))]
    graph = build({**OPS, **DATA}, links, "middle")
    Node(graph, "Op2").in_port(1).disconnect()
    assert edges(graph) == ["Op1>Op1_d", "Op1_d>Op2", "Op1_d>Op22"]
    Node(graph, "Op1").out_port(0).disconnect()
    assert Node(graph, "Op1").out_port(0).disconnected()


def test_attributes_of_ports_are_those_of_edges() -> None:
    graph, x = front()
    relu = Relu(graph, {"name": "relu"}).create_node([x])
    relu.in_port(0).bin = "weights"
    assert (relu.in_edge(0)["bin"], relu.in_port(0).bin) == ("weights", "weights")
    with pytest.raises(Error, match="has no attribute"):
        _ = relu.in_port(0).absent
