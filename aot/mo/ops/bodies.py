"""If, Loop and TensorIterator: operations with graphs as attributes, and with records that map ports to nodes in them.

Records of a loop are dictionaries: `external_port_id` (-1: none), `internal_layer_id`, `axis`, `start`, `end`,
`stride`, `part_size`, and `purpose` for a Loop's iteration number and condition. An If has the numbers of ports in
attributes of its bodies' nodes, `input_id` and `output_id`. Source: Model Optimizer 2024.6.
"""

from __future__ import annotations

from typing import Any

from aot.mo.graph.graph import Node
from aot.mo.ops.base_classes import LibraryOp
from aot.mo.utils.error import Error

SLICE = ("axis", "start", "end", "stride", "part_size")
RECORDS = ("input_port_map", "output_port_map", "back_edges")
OUTSIDE = -1  # number of the port of values that a loop counts and decides itself


class Bodies(LibraryOp):
    """Base: types and shapes follow from the bodies once the graph is the compiler's."""

    @staticmethod
    def infer(node: Node) -> None:
        """Leave the outputs as they are."""

    @staticmethod
    def type_infer(node: Node) -> None:
        """Leave the outputs as they are."""


class TensorIterator(Bodies):
    """Attribute `body` is the graph that runs once for each slice."""

    def complete(self) -> None:
        """Set the records that are not given."""
        attrs: Any = self.attrs
        for name in RECORDS:
            attrs.setdefault(name, [])
        attrs.setdefault("body", None)
        attrs.setdefault("sub_graphs", ["body"])

    @staticmethod
    def connect_body_input(
        loop_node: Node, loop_input_port_idx: int, body_parameter: Node, *slices: Any, **more: Any
    ) -> None:
        """Let a Parameter of the body read an input; `slices`: axis, start, end, stride, part_size."""
        _check(loop_node, body_parameter, "Parameter")
        loop_node.input_port_map.append(_record(loop_input_port_idx, body_parameter, *slices, **more))

    @staticmethod
    def connect_body_output(
        loop_node: Node, loop_output_port_idx: int, internal_result: Node, *slices: Any, **more: Any
    ) -> None:
        """Let an output give a Result of the body; `slices` as for inputs: iterations are joined along the axis."""
        _check(loop_node, internal_result, "Result")
        loop_node.output_port_map.append(_record(loop_output_port_idx, internal_result, *slices, **more))

    @staticmethod
    def add_back_edge(loop_node: Node, internal_parameter: Node, internal_result: Node) -> None:
        """Let a Parameter read the value that a Result had in the iteration before."""
        _check(loop_node, internal_parameter, "Parameter")
        _check(loop_node, internal_result, "Result")
        ends = {"from_layer": internal_result["internal_layer_id"], "to_layer": internal_parameter["internal_layer_id"]}
        loop_node.back_edges.append({**ends, "from_port": 0, "to_port": 0})

    @staticmethod
    def set_internal_layer_id_for_nodes(ti: Node, nodes: list[Node]) -> None:
        """Give the nodes of the body that have no number the next ones."""
        last = max((n.soft_get("internal_layer_id", 0) for n in ti.body.get_op_nodes()), default=0)
        for node in nodes:
            if not node.has_valid("internal_layer_id"):
                node["internal_layer_id"] = last = last + 1


class Loop(TensorIterator):
    """Input 0 is the greatest number of iterations, input 1 the condition."""

    @staticmethod
    def mark_current_iteration_parameter_node(loop_node: Node, body_parameter_node: Node) -> None:
        _check(loop_node, body_parameter_node, "Parameter")
        loop_node.input_port_map.append(_record(OUTSIDE, body_parameter_node, purpose="current_iteration"))

    @staticmethod
    def mark_execution_condition_result_node(loop_node: Node, body_result_node: Node) -> None:
        _check(loop_node, body_result_node, "Result")
        loop_node.output_port_map.append(_record(OUTSIDE, body_result_node, purpose="execution_condition"))

    @staticmethod
    def get_body_node_by_internal_id(loop_node: Node, internal_id: int) -> Node | None:
        nodes = loop_node.body.get_op_nodes(internal_layer_id=internal_id)
        assert len(nodes) <= 1, f"{loop_node.id}: numbers of nodes differ, got {internal_id} for {len(nodes)}"
        return nodes[0] if nodes else None

    @staticmethod
    def external_port_id_to_body_node(loop_node: Node, external_port_id: int, port_map: list[dict[str, Any]]) -> Node:
        """Return the node of the body that the records map to a port."""
        ids = [r["internal_layer_id"] for r in port_map if r["external_port_id"] == external_port_id]
        nodes = [node for id in ids for node in loop_node.body.get_op_nodes(internal_layer_id=id)]
        assert len(nodes) == 1, f"{loop_node.id}: one node for port {external_port_id}, got {len(nodes)}"
        return nodes[0]

    @staticmethod
    def back_edge_exists(back_edges_map: list[dict[str, Any]], from_layer: int, to_layer: int) -> bool:
        return any(e["from_layer"] == from_layer and e["to_layer"] == to_layer for e in back_edges_map)

    @staticmethod
    def inter_edge_exists(port_map: list[dict[str, Any]], external_port_id: int, internal_layer_id: int) -> bool:
        wanted = external_port_id, internal_layer_id
        return any((r["external_port_id"], r["internal_layer_id"]) == wanted for r in port_map)


class If(Bodies):
    """Input 0 chooses between the graphs `then_graph` and `else_graph`."""

    def complete(self) -> None:
        """Set the graphs that are not given."""
        attrs: Any = self.attrs
        for name in ("then_graph", "else_graph"):
            attrs.setdefault(name, None)
        attrs.setdefault("sub_graphs", ["then_graph", "else_graph"])

    @staticmethod
    def connect_body_input(if_node: Node, condition: bool, if_input_port_idx: int, body_parameter: Node) -> None:
        """Let a Parameter of the graph for a condition read an input."""
        assert body_parameter.id in (if_node.then_graph if condition else if_node.else_graph)
        body_parameter["input_id"] = if_input_port_idx

    @staticmethod
    def connect_body_output(if_node: Node, condition: bool, if_output_port_idx: int, internal_result: Node) -> None:
        """Let an output give a Result of the graph for a condition."""
        assert internal_result.id in (if_node.then_graph if condition else if_node.else_graph)
        internal_result["output_id"] = if_output_port_idx


def _check(loop: Node, node: Node, op: str) -> None:
    if node.soft_get("op") != op or node.id not in loop.body or not node.has_valid("internal_layer_id"):
        rule = "a record is of a {} of the body that has internal_layer_id"
        raise Error("{}: " + rule + ", got {}", loop.soft_get("name", loop.id), op, node.soft_get("name", node.id))


def _record(port: int, node: Node, *slices: Any, purpose: str | None = None, **more: Any) -> dict[str, Any]:
    record: dict[str, Any] = {**dict.fromkeys(SLICE), **dict(zip(SLICE, slices, strict=False)), **more}
    record |= {"external_port_id": port, "internal_layer_id": node["internal_layer_id"]}
    return record if purpose is None else {**record, "purpose": purpose}
