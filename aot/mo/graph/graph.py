"""Graph: Model Optimizer's graph, a multigraph of networkx with dictionaries as nodes and edges.

    stage front           operation -> operation              edge: in, out
    stage middle, back    operation -> data -> operation      edge: out, edge: in

Source of names and behaviour: Model Optimizer 2024.6, and the tests of its graph.
"""

from __future__ import annotations

import collections
from typing import Any

from networkx import MultiDiGraph

from aot.mo.graph.attributes import dict_includes, dict_includes_compare_attrs
from aot.mo.graph.dump import graphviz_text
from aot.mo.graph.edges import (
    add_opoutput,
    get_edge_attribute_between_nodes,
    merge_edge_props,
    rename_node,
    rename_nodes,
    set_edge_attribute_between_nodes,
)
from aot.mo.graph.lookup import Lookup
from aot.mo.graph.node import Node
from aot.mo.graph.port import Port
from aot.mo.utils.error import Error
from aot.mo.utils.small_functions import deprecated_api

__all__ = [
    "Error",
    "Graph",
    "MultiDiGraph",
    "Node",
    "Port",
    "add_opoutput",
    "check_empty_graph",
    "copy_node",
    "create_edge",
    "create_sub_graph_copy",
    "dict_includes",
    "dict_includes_compare_attrs",
    "dict_to_ordered_dict",
    "dump_graph_for_graphviz",
    "erase_node",
    "fill_graph_with_nodes",
    "get_edge_attribute_between_nodes",
    "get_graph_ops",
    "get_inputs",
    "get_inputs_with_ports",
    "get_node_id_by_name",
    "get_outputs",
    "get_sorted_inputs",
    "get_sorted_outputs",
    "insert_node_after",
    "merge_edge_props",
    "print_graph_stat",
    "rename_node",
    "rename_nodes",
    "replace_node",
    "set_edge_attribute_between_nodes",
]


class Graph(Lookup, MultiDiGraph):
    """A network; `graph.graph` holds its own attributes (`layout`, `fw`, `cmd_params`, `ir_version`, `name`)."""

    stage: str | None
    strict_mode: bool
    unique_id_count = 0
    op_names_statistic: collections.Counter[str]
    inputs_order: list[str]
    outputs_order: list[str]

    def __init__(self, data: Any = None, **attr: Any) -> None:
        self.stage = None
        self.strict_mode = True
        self.op_names_statistic = collections.Counter()
        self.inputs_order = []
        self.outputs_order = []
        super().__init__(data, **attr)

    @property
    def node(self) -> Any:
        """The attributes of nodes by id."""
        return self.nodes

    def add_node(self, node_for_adding: str, **attrs: Any) -> None:
        """Add a node, or change its attributes; it gets the ports that its counts of ports tell."""
        super().add_node(node_for_adding, **attrs)
        Node(self, node_for_adding).update_node()

    def add_edge(self, u_for_edge: str, v_for_edge: str, key: Any = None, **attr: Any) -> Any:
        """Add an edge; AssertionError if it does not fit the stage or a port is absent, unless `strict_mode` is off."""
        if self.strict_mode:
            for end in (u_for_edge, v_for_edge):
                assert end in self, f"node {end} is not in the graph"
            self._check_edge(Node(self, u_for_edge), Node(self, v_for_edge), attr)
        return super().add_edge(u_for_edge, v_for_edge, key=key, **attr)

    def add_edges_from(self, ebunch_to_add: Any, **attr: Any) -> None:
        """Add edges (from, to), (from, to, attributes) or (from, to, key, attributes)."""
        for edge in ebunch_to_add:
            if not 2 <= len(edge) <= 4:
                raise Error("Edge tuple {} must be a 2-tuple, 3-tuple or 4-tuple.", edge)
            key = edge[2] if len(edge) == 4 else None
            own: dict[str, Any] = edge[-1] if len(edge) > 2 else {}
            self.add_edge(edge[0], edge[1], key=key, **{**attr, **own})

    def _check_edge(self, source: Node, target: Node, attr: dict[str, Any]) -> None:
        what = f"edge from {source.id} to {target.id}"
        if self.stage == "front":
            assert source.kind == target.kind == "op", f"{what}: the front phase has edges between operations only"
            assert "in" in attr and "out" in attr, f"{what}: attributes in and out are missing"
            flow = attr.get("control_flow_edge") is True
            mark = "control_flow_{}" if flow else "{}"
            ends = (source, "out", attr["out"]), (target, "in", attr["in"])
            for node, side, idx in ends:
                port: Any = mark.format(idx) if flow else idx
                name = node.soft_get("name", node.id)
                assert node.has_port(side, port, control_flow=flow), f"{what}: no {side} port ({port}) in {name} node"
        elif self.stage in ("middle", "back"):
            kinds = {source.kind, target.kind}
            assert kinds == {"data", "op"}, f"{what}: edges are between an operation and a data node, got {kinds}"
            node, side = (source, "out") if source.kind == "op" else (target, "in")
            assert side in attr, f"{what}: attribute {side} is missing"
            name = node.soft_get("name", node.id)
            assert node.has_port(side, attr[side]), f"{what}: no {side} port ({attr[side]}) in {name} node"

    def create_edge(
        self,
        src_node: Any,
        dst_node: Any,
        out_port: Any = 0,
        in_port: Any = 0,
        edge_attrs: dict[str, Any] | None = None,
    ) -> None:
        """Add an edge from an output to an input, with the attributes for a data node that splits it."""
        assert src_node.graph is dst_node.graph, f"{src_node.id}, {dst_node.id}: nodes of one graph"
        ends = {"in": in_port, "out": out_port, "in_attrs": ["in", "permutation"], "out_attrs": ["out", "permutation"]}
        attrs = {**(edge_attrs or {}), **ends, "data_attrs": ["fw_tensor_debug_info"]}
        self.add_edges_from([(src_node.id, dst_node.id, attrs)])

    def add_result(self, id: str, port: int) -> str:
        """Add a Result that reads an output; return its id."""
        return add_opoutput(self, id, port, False)

    def erase_node(self, node: Node) -> None:
        """Remove an operation of at most one input and output; its consumers read its source. Front phase only."""
        inputs = list(self.in_edges(node.id, data=True))
        outputs = list(self.out_edges(node.id, data=True, keys=True))
        name = node.soft_get("name")
        consumers = node.out_nodes()
        with_data = any(n.kind == "data" for n in consumers.values()) if node.kind == "op" else True
        assert not with_data, f"{name}: erase_node needs a graph without data nodes"
        assert len(consumers) <= 1, f"The node {name} must produce just one output tensor"
        assert len(inputs) <= 1, f"The node {name} must have just one input"
        if inputs:
            source, _, into = inputs[0]
            if not outputs and node.soft_get("op") == "Result":
                self.add_result(source, into["out"])
            for _, target, key, edge in outputs:
                self.remove_edge(node.id, target, key=key)
                self.add_edge(source, target, **{**edge, "out": into["out"]})
        self.remove_node(node.id)

    def get_edge_data(self, u: str, v: str, key: Any = None, default: Any = None) -> Any:
        return super().get_edge_data(u, v, key=key, default=default)

    def create_sub_graph_copy(self, nodes_to_extract: list[str]) -> Graph:
        """Return a graph of its own with the nodes and the edges between them; attributes' values are shared."""
        return self.subgraph(nodes_to_extract).copy()

    def dump_graph_for_graphviz(
        self,
        node_attrs: Any = ("kind", "op", "shape", "correct_data_layout", "nchw_layout", "internal_layer_id"),
        edge_attrs: Any = ("in", "out"),
        nodes_to_dump: list[str] | None = None,
        save_to_svg: bool = False,
        highlight_nodes: list[str] | None = None,
    ) -> str:
        """Return the graph in the language of Graphviz."""
        if save_to_svg:
            raise Error("dump_graph_for_graphviz: writes no picture; give the text that it returns to dot -Tsvg")
        nodes = list(self.nodes()) if nodes_to_dump is None else nodes_to_dump
        return graphviz_text(self, list(node_attrs), list(edge_attrs), nodes, highlight_nodes or [])


def dict_to_ordered_dict(d: dict[Any, Any], func: Any = lambda t: t) -> collections.OrderedDict[Any, Any]:
    """Return the items in the order of `func` of their keys."""
    return collections.OrderedDict(sorted(d.items(), key=lambda item: func(item[0])))


def fill_graph_with_nodes(graph: Graph, src_nodes: Any, get_id: Any, get_attrs: Any) -> None:
    """Add a node for each of `src_nodes`, with the id and the attributes that the functions give."""
    for node in src_nodes:
        graph.add_node(get_id(node), **get_attrs(node))


def _method(name: str, owner: type[Any] = Graph, first: str = "graph") -> Any:
    """Return the function of earlier releases that calls a method of its first argument, named `first`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        receiver, *rest = args or (kwargs.pop(first),)
        return getattr(receiver, name)(*rest, **kwargs)

    call.__name__ = name
    return deprecated_api(owner)(call)


@deprecated_api(Graph)
def create_edge(src_node: Node, *args: Any, **kwargs: Any) -> None:
    src_node.graph.create_edge(src_node, *args, **kwargs)


@deprecated_api(Graph)
def erase_node(node: Node) -> None:
    node.graph.erase_node(node)


@deprecated_api(Node)
def get_inputs(graph: Graph, node: str, *args: Any, **kwargs: Any) -> Any:
    return Node(graph, node).get_inputs(*args, **kwargs)


@deprecated_api(Node)
def get_outputs(graph: Graph, node: str, *args: Any, **kwargs: Any) -> Any:
    return Node(graph, node).get_outputs(*args, **kwargs)


check_empty_graph, get_graph_ops = _method("check_empty_graph"), _method("get_op_nodes")
create_sub_graph_copy, dump_graph_for_graphviz = _method("create_sub_graph_copy"), _method("dump_graph_for_graphviz")
get_inputs_with_ports, get_node_id_by_name = _method("get_inputs_with_ports"), _method("get_node_id_by_name")
print_graph_stat = _method("print_graph_stat")
copy_node, replace_node = _method("copy_node", Node, "src_node"), _method("replace_node", Node, "old_node")
get_sorted_inputs, get_sorted_outputs = (_method(f"get_sorted_{side}puts", Node, "node") for side in ("in", "out"))
insert_node_after = _method("insert_node_after", Node, "node")
