"""Graph and Node: attributes, names, searches, removal. Expected values: Model Optimizer 2024.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

from aot.mo.front.cuts import create_tensor_nodes
from aot.mo.graph.graph import (
    Graph,
    Node,
    add_opoutput,
    check_empty_graph,
    copy_node,
    create_edge,
    dict_includes,
    erase_node,
    get_edge_attribute_between_nodes,
    get_graph_ops,
    get_inputs,
    get_outputs,
    get_sorted_inputs,
    get_sorted_outputs,
    insert_node_after,
    merge_edge_props,
    rename_nodes,
    replace_node,
    set_edge_attribute_between_nodes,
)
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.utils.arrays import dynamic_dimension, int64_array, shape_array
from aot.mo.utils.compare_graphs import compare_graphs
from aot.mo.utils.error import Error
from aot.mo.utils.graph import (
    bfs_search,
    invert_sub_graph_between_nodes,
    is_connected_component,
    sub_graph_between_nodes,
)
from tests.mo.graphs import build, data, edges, front, op

Relu, Add = library_class("activation_ops", "ReLU"), library_class("elementwise", "Add")
Result, Split = library_class("result", "Result"), library_class("split", "Split")


def relu() -> Node:
    graph, x = front()
    return Relu(graph, {"name": "relu"}).create_node([x])


def test_graphs_are_those_of_networkx() -> None:
    graph, x = front()
    node = Relu(graph, {"name": "relu"}).create_node([x])
    assert isinstance(graph, nx.MultiDiGraph)
    assert [id for id, attrs in graph.nodes(data=True) if attrs["op"] == "ReLU"] == ["relu"]
    assert (graph.node["relu"], list(graph.in_edges("relu"))) == (node.attrs(), [("x", "relu")])
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.filterwarnings("ignore:Call to deprecated function:DeprecationWarning")
def test_functions_of_earlier_releases() -> None:
    node = relu()
    graph = node.graph
    made = Relu(graph, {"name": "behind"}).create_node()
    insert_node_after(node, made)
    copied = copy_node(made, {"mark": 1})
    create_edge(src_node=made, dst_node=copied, edge_attrs={"own": 2})
    assert [n.id for n in get_graph_ops(graph)] == ["x", "relu", "behind", copied.id] and copied.mark == 1
    assert (
        get_inputs(graph, "behind") == get_sorted_inputs(made) == [("relu", graph.get_edge_data("relu", "behind")[0])]
    )
    assert [(id, edge["own"]) for id, edge in get_outputs(graph=graph, node="behind", edge_attr={"own": 2})] == [
        (copied.id, 2)
    ]
    erase_node(made)
    assert [id for id, _ in get_sorted_outputs(node)] == [copied.id]
    replace_node(old_node=node, new_node=Relu(graph, {"name": "other"}).create_node([Node(graph, "x")]))
    assert [id for id, _ in get_inputs(graph, copied.id)] == ["other"]
    check_empty_graph(graph, "this")
    with pytest.raises(Error, match="after executing that"):
        check_empty_graph(Graph(), "that")


def test_attributes_are_a_dictionary() -> None:
    node = relu()
    node["new"] = None
    node["number"] = 0
    assert (node.new, node["number"], node.type, "op" in node) == (None, 0, "ReLU", True)
    assert (node.has("new"), node.has_valid("new"), node.has_and_set("number")) == (True, False, 0)
    assert (node.soft_get("new"), node.soft_get("absent", 3)) == ("<UNKNOWN>", 3)
    del node["new"]
    assert not node.has("new") and getattr(node, "new", 7) == 7


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda n: n.absent, KeyError),
        (lambda n: n["absent"], KeyError),
        (lambda n: n.__delitem__("absent"), KeyError),
        (lambda n: setattr(n, "absent", 1), AttributeError),
        (lambda n: setattr(n, "version", "other"), AttributeError),
        (lambda n: n.__setitem__("version", "other"), AttributeError),
        (lambda n: Node(n.graph, "absent"), AssertionError),
    ],
)
def test_absent_attributes_and_other_versions_are_errors(wrong: Callable[[Node], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong(relu())


def test_nodes_are_equal_by_graph_and_id() -> None:
    node = relu()
    assert node == Node(node.graph, "relu") and {node: 1}[Node(node.graph, "relu")] == 1
    assert node != relu() and node != Node(node.graph, "x") and node.in_port(0) == Node(node.graph, "relu").in_port(0)


def test_names_are_made_unique_and_move_in_turn() -> None:
    graph, _ = front()
    nodes = [Relu(graph, {"name": "relu"}).create_node() for _ in range(3)]
    assert [n.id for n in nodes] == ["relu", "relu3", "relu4"]
    assert [graph.unique_id("q"), graph.unique_id("x"), graph.unique_id()] == ["q", "x6", "7"]
    rename_nodes([(nodes[0], "relu/TBR"), (nodes[1], "relu"), (nodes[2], "x")])
    assert [n.name for n in nodes] == ["relu/TBR", "relu", "relu4"]
    assert graph.get_node_id_by_name("relu") == "relu3"
    nodes[2]["name"] = "relu"
    for name in ("relu", "absent"):
        with pytest.raises(Error, match=name):
            graph.get_node_id_by_name(name)


def test_nodes_are_found_by_attributes() -> None:
    nodes = {"a": op("A", k=1), "b": op("B", k=1), "d": data([1], np.ones(1)), "e": data()}
    graph = build(nodes, [])
    assert [n.id for n in graph.get_op_nodes(k=1, op="B")] == ["b"]
    assert graph.get_nodes_with_attributes(kind="data") == ["d", "e"]
    assert [[n.id for n in graph.get_data_nodes(v)] for v in (None, True, False)] == [["d", "e"], ["d"], ["e"]]


NOOP = {"a": op("Parameter"), "noop": op("NoOp"), "b": op("B"), "c": op("C")}


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([("a", "noop"), ("noop", "b")], ["a>b"]),
        ([("noop", "b")], []),
        ([("a", "noop")], []),
        ([], []),
        ([("a", "noop"), ("noop", "b", {"out": 0, "in": 4}), ("noop", "c", {"out": 0, "in": 2})], ["a>b4", "a>c2"]),
        ([("a", "noop", {"out": 3}), ("noop", "b")], ["a>b"]),
    ],
)
def test_erased_nodes_are_passed_by(links: list[Any], expected: list[str]) -> None:
    graph = build(NOOP, links)
    graph.erase_node(Node(graph, "noop"))
    assert edges(graph) == expected and "noop" not in graph
    assert all(d["out"] == links[0][2]["out"] for _, _, d in graph.edges(data=True) if len(links[0]) > 2 and expected)


@pytest.mark.parametrize(
    "links",
    [
        [("a", "noop"), ("c", "noop", {"in": 1}), ("noop", "b")],
        [("a", "noop"), ("noop", "b", {"out": 0}), ("noop", "c", {"out": 1})],
    ],
)
def test_nodes_with_several_inputs_or_outputs_are_not_erased(links: list[Any]) -> None:
    graph = build(NOOP, links)
    with pytest.raises(AssertionError, match="noop"):
        graph.erase_node(Node(graph, "noop"))


def test_replaced_nodes_leave_their_edges() -> None:
    nodes = {"a": op("P"), "old": op("Identity"), "c": op("C"), "b": op("B")}
    graph = build(nodes, [("a", "old"), ("old", "c"), ("old", "b")])
    new = Const(graph, {"name": "new"}).create_node([Node(graph, "a")])
    Node(graph, "old").replace_node(new)
    assert (edges(graph), list(new.out_edges())) == (["a>new", "new>b", "new>c"], [0, 1])
    ended = build({"a": op("P"), "old": op("Identity"), "r": op("Result")}, [("a", "old"), ("old", "r")])
    other = Relu(ended, {"name": "new"}).create_node([Node(ended, "a")])
    Node(ended, "old").replace_node(other, 0)
    assert other.out_node().op == "Result"


def test_nodes_are_inserted_behind_outputs_and_before_inputs() -> None:
    graph, x = front()
    for name in ("b", "c"):
        Relu(graph, {"name": name}).create_node([x])
    x.insert_node_after(Relu(graph, {"name": "new"}).create_node())
    added = Node(graph, "b").insert_op_on_input_port(0, Add, {"name": "add"}, np.float32(3))
    assert edges(graph) == ["add/value>add1", "add>b", "new>add", "new>c", "x>new"]
    assert added.in_node(1).value == 3


def test_copies_have_names_of_their_own() -> None:
    node = relu()
    assert (node.copy_node().name, node.copy_node({"name": "k"}).name) == ("relu3", "k")
    other = Graph()
    assert node.copy_node(dst_graph=other).graph is other


@pytest.mark.parametrize(
    ("stage", "source", "target", "attrs"),
    [
        ("front", "a", "d", {"in": 0, "out": 0}),
        ("front", "a", "b", {"in": 0}),
        ("front", "a", "b", {"in": 7, "out": 0}),
        ("middle", "a", "b", {"in": 0, "out": 0}),
        ("middle", "a", "d", {"out": 9}),
        ("back", "d", "b", {}),
        (None, "a", "absent", {}),
    ],
)
def test_edges_must_fit_the_stage(stage: str | None, source: str, target: str, attrs: dict[str, int]) -> None:
    graph = build({"a": op("A"), "b": op("B"), "d": data()}, [], stage)
    Node(graph, "a").add_output_port(0)
    Node(graph, "b").add_input_port(0)
    with pytest.raises(AssertionError, match=r"absent|edge from"):
        graph.add_edge(source, target, **attrs)


def diamond() -> Graph:
    nodes = {name: op("Parameter" if name == "a" else name.upper()) for name in "abcdefg"}
    links = [("a", "b"), ("b", "c"), ("a", "d", {"out": 1}), ("d", "c", {"in": 1}), ("c", "e"), ("f", "e", {"in": 1})]
    return build(nodes, [*links, ("e", "g")])


def test_orders_have_producers_first() -> None:
    graph = diamond()
    assert "".join(n.id for n in graph.topological_sort()) == "afbdceg"
    assert "".join(n.id for n in graph.topological_sort(reverse=True)) == "gecdbfa"
    assert "".join(n.id for n in graph.pseudo_topological_sort()) == "fadbceg"
    assert "".join(graph.dfs("a", set())) == "gecbda"
    assert "".join(bfs_search(graph, ["b"])) == "bceg" and "".join(bfs_search(graph)) == "afbdecg"


def test_sub_graphs_lie_between_nodes() -> None:
    graph = diamond()
    assert "".join(sub_graph_between_nodes(graph, ["b", "d"], ["e"])) == "bdcef"
    assert sub_graph_between_nodes(graph, ["b"], ["c"], lambda n: n.id == "c") == (["b", "c"], ["c"])
    assert "".join(invert_sub_graph_between_nodes(graph, ["e"], ["b", "d"])) == "ecfbd"
    assert is_connected_component(graph, ["b", "c", "d"]) and not is_connected_component(graph, ["b", "d"])
    with pytest.raises(Error, match="not reachable"):
        sub_graph_between_nodes(graph, ["g"], ["a"])
    with pytest.raises(Error, match="network input"):
        sub_graph_between_nodes(graph, ["b"], ["e"])


def test_sub_graph_copies_are_graphs_of_their_own() -> None:
    graph = diamond()
    copied = graph.create_sub_graph_copy(["b", "c"])
    copied.nodes["b"]["new"] = 1
    assert (type(copied), edges(copied), Node(graph, "b").has("new")) == (Graph, ["b>c"], False)


def shape_sums() -> Graph:
    known = {name: data([1], int64_array([1])) for name in ("s_d", "c_d", "f_d")}
    nodes = {
        "p": op("Parameter", is_input=True),
        "p_d": data([2, 3]),
        "s": op("ShapeOf"),
        "c": op("Const"),
        "f": op("Fold"),
        **known,
        "a": op("Add"),
        "a_d": data([1]),
        "b": op("Add"),
        "b_d": data([1]),
        "r": op("Result"),
        "dead": op("Dead"),
        "dead_d": data(),
    }
    links = [
        ("p", "p_d"),
        ("p_d", "s"),
        ("s", "s_d"),
        ("c", "c_d"),
        ("c_d", "f"),
        ("f", "f_d"),
        ("s_d", "a"),
        ("f_d", "a", {"in": 1}),
        ("a", "a_d"),
        ("a_d", "b"),
        ("p_d", "b", {"in": 1}),
        ("b", "b_d"),
        ("b_d", "r"),
        ("p_d", "dead"),
        ("dead", "dead_d"),
    ]
    return build(nodes, links, "middle")


@pytest.mark.parametrize(
    ("static", "undead", "left"),
    [
        (False, [], "a b p r s f_d:Const"),
        (True, [], "a b p r s_d:Const f_d:Const"),
        (True, ["Fold"], "a b f p r s_d:Const c_d:Const"),
    ],
)
def test_clean_up_leaves_what_results_need(static: bool, undead: list[str], left: str) -> None:
    graph = shape_sums()
    graph.graph["cmd_params"].static_shape = static
    graph.clean_up(undead)
    old = set(shape_sums().nodes())
    added = [f"{n.out_node().id}:{n.op}" for n in graph.get_op_nodes() if n.id not in old or n.op == "Const"]
    kept = [n.id for n in graph.get_op_nodes() if n.id in old and n.op != "Const"]
    assert sorted(kept) + sorted(added, reverse=True) == left.split()


def test_shapes_that_contradict_are_errors() -> None:
    graph = shape_sums()
    node = Node(graph, "b")
    node["infer"] = lambda n: n.out_port(0).data.set_shape([9])
    node["need_shape_inference"] = True
    with pytest.raises(Error, match="contradicts"):
        graph.clean_up()
    node["override_output_shape"] = True
    graph.clean_up()
    assert (Node(graph, "b_d").shape.tolist(), node.need_shape_inference) == ([9], False)


def test_checks_name_what_is_wrong() -> None:
    graph = build({"a": op("A"), "d": data(), "e": data([1])}, [])
    del graph.nodes["d"]["shape"]
    graph.nodes["e"]["shape"] = (1, 2)
    with pytest.raises(Error, match=r"Graph contains data nodes \(2\) with inconsistent shapes:.*"):
        graph.check_shapes_consistency()
    Node(graph, "a").add_input_port(1)
    with pytest.raises(Error, match="Node a has not consecutive in ports"):
        graph.check_nodes_ports_are_consecutive()
    with pytest.raises(Error, match="Graph contains 0 node after executing pass"):
        Graph().check_empty_graph("pass")


def test_data_nodes_come_between_operations() -> None:
    graph, x = front()
    split = Split(graph, {"name": "s", "num_splits": 2}).create_node([x])
    add = Add(graph, {"name": "a"}).create_node([(split, 0), (split, 1)])
    Relu(graph, {"name": "m"}).create_node([(split, 0)])
    split.out_port(1).disconnect()
    split.out_port(1).connect(add.in_port(1))
    split.out_port(1).add_tensor_names(["S1"])
    Result(graph, {"name": "r"}).create_node([add])
    graph.stage = "middle"
    create_tensor_nodes(graph)
    first = split.out_node(0)
    assert [n.id for n in first.out_nodes()] == ["a", "m"] and first.id.startswith("s/Output_0/Data_")
    assert (split.out_port(1).get_tensor_names(), x.out_node().in_node()) == (["S1"], x)
    assert add.in_port(1).get_source() == split.out_port(1) and len(graph.get_data_nodes()) == 4


def test_results_are_added_with_names() -> None:
    graph, x = front()
    made = Node(graph, add_opoutput(graph, "x", 0, cut=False, user_defined_name="out"))
    assert (made.op, made.name, x.out_port(0).get_tensor_names()) == ("Result", "x/sink_port_0", ["out"])
    assert graph.has_tensor_name("out") and graph.get_tensor_names_set() == {"out"}


def test_edges_have_attributes() -> None:
    node = relu()
    x = Node(node.graph, "x")
    set_edge_attribute_between_nodes(x, node, "bin", "weights")
    assert get_edge_attribute_between_nodes(x, node, "bin") == "weights"
    assert get_edge_attribute_between_nodes(node, x, "bin") is None
    assert merge_edge_props({"in": 1, "a": 2}, {"in": 5, "b": [1, 1], "a": 3}) == {"in": 1, "a": 3, "b": [1]}


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"b": None}, True),
        ({"a": 1}, {"a": lambda x: x > 3}, False),
        ({"a": np.array([1, 2])}, {"a": np.array([1, 2])}, True),
        ({"a": np.array([1, 2])}, {"a": np.array([1, 2, 3])}, False),
        ({"a": np.float32(1)}, {"a": 1}, True),
    ],
)
def test_attributes_fit_values_and_functions(held: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    assert dict_includes(held, wanted) is fits


def pair(change: Callable[[Graph], object]) -> list[bool]:
    links = [("x", "x_d"), ("x_d", "a"), ("a", "a_d"), ("a_d", "r")]
    nodes = {
        "x": op("Parameter"),
        "x_d": data([1, 2]),
        "a": op("A", p=1.0, q=int64_array([1, 2])),
        "a_d": data([2], np.ones(2)),
        "r": op("Result"),
    }
    one, other = build(nodes, links), build(nodes, links)
    change(other)
    checks = ((one, other, False), (one, other, True), (other, one, True))
    return [compare_graphs(a, b, "r", check_op_attrs=c)[0] for a, b, c in checks]


@pytest.mark.parametrize(
    ("change", "equal"),
    [
        (lambda g: None, [True, True, True]),
        (lambda g: g.nodes["a"].update(p=1.00001), [True, True, True]),
        (lambda g: g.nodes["a"].update(p=2), [True, False, False]),
        (lambda g: g.nodes["a"].update(q=int64_array([1, 3])), [True, False, False]),
        (lambda g: g.nodes["a"].update(new=1), [True, False, True]),
        (lambda g: g.nodes["x_d"].update(shape=None), [True, True, False]),
        (lambda g: g.nodes["x_d"].update(shape=int64_array([1, 3])), [False, False, False]),
        (lambda g: g.nodes["a_d"].update(value=np.zeros(2)), [False, False, False]),
        (lambda g: g.nodes["a"].update(name="other"), [True, True, True]),
        (lambda g: g.remove_node("x"), [False, False, False]),
    ],
)
def test_graphs_are_compared(change: Callable[[Graph], object], equal: list[bool]) -> None:
    assert pair(change) == equal


def test_graphs_have_a_picture() -> None:
    text = relu().graph.dump_graph_for_graphviz()
    assert '"x" -> "relu" [label = "in=0 out=0"];' in text and text.startswith("\ndigraph {")
    assert shape_array([1, dynamic_dimension]).tolist() == [1, None]
