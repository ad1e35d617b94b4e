"""Changes around a node: operations before and after it, and another one in its place."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from aot.mo.graph.data import make_data_node
from aot.mo.graph.known import operation_class
from aot.mo.graph.neighbours import Neighbours

Attrs = dict[str, Any]


class Edits(Neighbours):
    """A node with methods that change its surroundings."""

    def insert_op_on_input_port(
        self: Any, in_port_idx: int, new_op_class: Any, new_op_attrs: Attrs, value: Any = None
    ) -> Any:
        """Make an operation that input `in_port_idx` reads, and that reads its source; return it.

        A `value` becomes a constant that the operation's input 1 reads.
        """
        result = new_op_class(self.graph, new_op_attrs).create_node()
        name = self.soft_get("name", self.id)
        assert self.has_port("in", in_port_idx), f"{name}: there is no input {in_port_idx}"
        source = self.in_port(in_port_idx).get_source()
        self.in_port(in_port_idx).get_connection().set_source(result.out_port(0))
        result.in_port(0).connect(source)
        if value is not None:
            constant = operation_class("Const")(self.graph, {"value": value, "name": f"{result.name}/value"})
            result.in_port(1).connect(constant.create_node().out_port(0))
        return result

    def insert_node_after(self, new_node: Any, node_out_port: int = 0) -> None:
        """Make consumers of output `node_out_port` read output 0 of `new_node`, which reads it. In the front phase."""
        assert self.graph is new_node.graph, f"{new_node.id}: a node of the same graph"
        assert not self.graph.get_data_nodes(), "insert_node_after: a graph without data nodes"
        for _, target, key, edge in list(self.graph.out_edges(self.id, data=True, keys=True)):
            if edge["out"] == node_out_port:
                self.graph.create_edge(new_node, self.other(target), 0, edge["in"])
                self.graph.remove_edge(self.id, target, key)
        self.graph.create_edge(self, new_node, node_out_port, 0, {})

    def replace_node(self, new_node: Any, new_node_out_port: int | None = None) -> None:
        """Remove this node; its consumers read `new_node` by edges with the same attributes.

        `new_node_out_port`: the output that they read; the edges' own numbers without it.
        """
        assert self.graph is new_node.graph, f"{new_node.id}: a node of the same graph"
        assert self.id != new_node.id, "New node and replaceable node are the same"
        consumers = self.out_nodes()
        for _, target, edge in list(self.graph.out_edges(self.id, data=True)):
            copied = deepcopy(edge)
            if new_node_out_port is not None:
                assert edge.get("out", 0) == 0, f"{self.id}: a node with one output, got an edge from {edge['out']}"
                copied["out"] = new_node_out_port
            self.graph.add_edge(new_node.id, target, **copied)
        if len(consumers) == 1 and self.out_node().soft_get("op") == "Result":
            self.graph.remove_node(self.out_node().id)
            self.graph.add_result(new_node.id, 0)
        self.graph.remove_node(self.id)

    def insert_node_with_data_before(
        self,
        inp: Any,
        new_op_class: Any,
        op_before_params: Attrs | None = None,
        infer_current: bool = False,
        additional_inputs: list[Any] | None = None,
    ) -> None:
        """Put an operation between the data node `inp` and this node."""
        new_op = new_op_class(self.graph, op_before_params or {})
        edge = deepcopy(self.graph.get_edge_data(inp.id, self.id)[0])
        self.graph.remove_edge(inp.id, self.id)
        name = f"{self.name}{new_op_class.op}/Before"
        data = new_op.create_node_with_data([inp, *(additional_inputs or [])], {"name": name})
        self.graph.add_edge(data.id, self.id, **edge)
        if infer_current:
            self["infer"](self)

    def insert_node_with_data_after(
        self: Any,
        out: Any,
        new_op_class: Any,
        op_after_params: Attrs | None = None,
        additional_inputs: list[Any] | None = None,
    ) -> None:
        """Put an operation between this node and its data node `out`."""
        new_op = new_op_class(self.graph, op_after_params or {})
        self.graph.remove_edge(self.id, out.id)
        inputs = [make_data_node(self), *(additional_inputs or [])]
        self["infer"](self)
        new_op.create_node_with_data(inputs, {"name": f"{self.name}{new_op_class.op}/After"}, data_nodes=out)

    def bracket_with_different_nodes_with_data(
        self,
        inp: Any,
        out: Any,
        new_op_class_before: Any,
        new_op_class_after: Any,
        op_before_params: Attrs | None = None,
        op_after_params: Attrs | None = None,
    ) -> None:
        """Put an operation between the data node `inp` and this node, and one between it and its data node `out`."""
        self.insert_node_with_data_before(inp, new_op_class_before, op_before_params)
        self.insert_node_with_data_after(out, new_op_class_after, op_after_params)

    def bracket_op_with_another_op(self, inp: Any, out: Any, new_op_class: Any, *params: Any, **named: Any) -> None:
        """Put operations of one class before and after this node; parameters as above."""
        self.bracket_with_different_nodes_with_data(inp, out, new_op_class, new_op_class, *params, **named)
