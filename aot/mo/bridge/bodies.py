"""Bodies of If, Loop and TensorIterator: the compiler's port maps as Model Optimizer's records, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aot.ir.graph import Graph as IrGraph
from aot.ir.graph import Node as IrNode
from aot.ir.op import Op as Definition
from aot.mo.bridge.node_records import KEPT
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.bodies import OUTSIDE, SLICE
from aot.mo.utils.error import Error
from aot.opset.control.control_flow import If, Iterating, Loop, TensorIterator
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap

REGIONS: dict[type[Definition], dict[str, str]] = {  # regions by the attributes that hold their graphs
    If: {"then_graph": "then", "else_graph": "else"},
    Loop: {"body": "body"},
    TensorIterator: {"body": "body"},
}
Owners = Mapping[str, Mapping[str, IrNode]]  # of each region: the compiler's nodes by ids of Model Optimizer's
MAPS = ("input_maps", "output_maps", "back_edges", "current_iteration", "execution_condition", "only")
_BRANCHES = ("then_inputs", "then_outputs", "else_inputs", "else_outputs")


def records_of(node: IrNode, bodies: Mapping[str, Graph]) -> dict[str, Any]:
    """Return the records that say the port maps of a node; numbers of ports are set in its bodies, by region."""
    op = node.op
    if isinstance(op, If):
        for name, body in bodies.items():
            inner = _inner(body)
            region = node.regions[name]
            inputs, outputs = op.maps(name)
            for m in inputs:
                inner[region.parameters[m.parameter].id]["input_id"] = m.external
            for m in outputs:
                inner[region.results[m.result].id]["output_id"] = m.external
        return {}
    if not isinstance(op, Iterating):
        return {}
    body, region = bodies["body"], node.regions["body"]
    inner = _inner(body)
    for number, attrs in enumerate(inner.values()):
        attrs["internal_layer_id"] = number
    parameters = [inner[p.id]["internal_layer_id"] for p in region.parameters]
    result_ids = [inner[r.id]["internal_layer_id"] for r in region.results]
    records: dict[str, Any] = {
        "input_port_map": [_record(m, parameters[m.parameter]) for m in op.input_maps],
        "output_port_map": [_record(m, result_ids[m.result]) for m in op.output_maps],
        "back_edges": [
            {"from_layer": result_ids[e.result], "to_layer": parameters[e.parameter], "from_port": 0, "to_port": 0}
            for e in op.back_edges
        ],
    }
    if isinstance(op, Loop):
        none: dict[str, Any] = {**dict.fromkeys(SLICE), "external_port_id": OUTSIDE}
        for name, purpose, ids, at in (
            ("input_port_map", "current_iteration", parameters, op.current_iteration),
            ("output_port_map", "execution_condition", result_ids, op.execution_condition),
        ):
            records[name] += [{**none, "internal_layer_id": ids[at], "purpose": purpose}] if at >= 0 else []
    return records


def without_maps(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operation with bodies that are no port maps."""
    return {name: value for name, value in attrs.items() if name not in (*MAPS, *_BRANCHES)}


def _inner(body: Graph) -> dict[int, Any]:
    """Return the attributes of a body's nodes by the ids of the compiler's nodes."""
    return {attrs[KEPT].node.id: attrs for _, attrs in body.nodes(data=True) if KEPT in attrs}


def _record(m: InputMap | OutputMap, layer: int) -> dict[str, Any]:
    sliced = {name: None if m.axis is None else getattr(m, name) for name in SLICE}
    return {**sliced, "external_port_id": m.external, "internal_layer_id": layer}


def with_records(op: Definition, node: Node, regions: Mapping[str, IrGraph], owners: Owners) -> Definition:
    """Return an operation with the port maps that the records of its counterpart say.

    Error for a record of a port, or of a node of a body, that is not there.
    """
    if isinstance(op, If):
        sides = [_branch(node, name, regions[r], owners[r]) for name, r in REGIONS[If].items()]
        (then_in, then_out), (else_in, else_out) = sides
        return If(then_in, then_out, else_in, else_out, op.only)
    if not isinstance(op, Iterating):
        return op
    return _Records(node, regions["body"], owners["body"]).operation(op)


def _branch(
    node: Node, name: str, region: IrGraph, owners: Mapping[str, IrNode]
) -> tuple[tuple[InputMap, ...], tuple[OutputMap, ...]]:
    inputs: list[InputMap] = []
    outputs: list[OutputMap] = []
    for inner in node[name].get_op_nodes():
        owner = owners.get(inner.id)
        if owner in region.parameters and inner.has_valid("input_id"):
            inputs.append(InputMap(_within(node, "in", inner.input_id), region.parameters.index(owner)))
        if owner in region.results and inner.has_valid("output_id"):
            outputs.append(OutputMap(_within(node, "out", inner.output_id), region.results.index(owner)))
    return tuple(sorted(inputs, key=lambda m: m.external)), tuple(sorted(outputs, key=lambda m: m.external))


def _within(node: Node, kind: str, number: Any) -> int:
    """Return the position of a port; Error for one that is not there."""
    ports = sorted(int(i) for i in (node.in_ports() if kind == "in" else node.out_ports()))
    if int(number) not in ports:
        name = node.soft_get("name", node.id)
        raise Error("{}: records are of {}put ports {}, got {}", name, kind, ports, number)
    return ports.index(int(number))


class _Records:
    """The records of a loop."""

    def __init__(self, node: Node, body: IrGraph, owners: Mapping[str, IrNode]) -> None:
        self.node, self.body, self.owners = node, body, owners
        self.name = node.soft_get("name", node.id)
        self.inner = {
            int(n.internal_layer_id): n for n in node["body"].get_op_nodes() if n.has_valid("internal_layer_id")
        }

    def operation(self, op: Iterating) -> Iterating:
        records = [r for r in self.node.input_port_map if r["external_port_id"] != OUTSIDE]
        taken = [r for r in self.node.output_port_map if r["external_port_id"] != OUTSIDE]
        inputs = tuple(InputMap(self._input(r), self._parameter(r), *_slice(r)) for r in records)
        outputs = tuple(OutputMap(self._output(r, taken), self._result(r), *_slice(r)) for r in taken)
        edges = tuple(BackEdge(self._result(e, "from"), self._parameter(e, "to")) for e in self.node.back_edges)
        if isinstance(op, Loop):
            counter = self._purpose(self.node.input_port_map, "current_iteration")
            condition = self._purpose(self.node.output_port_map, "execution_condition")
            at = -1 if counter is None else self._parameter(counter)
            return Loop(inputs, outputs, edges, at, -1 if condition is None else self._result(condition))
        return TensorIterator(inputs, outputs, edges)

    @staticmethod
    def _purpose(records: list[dict[str, Any]], purpose: str) -> dict[str, Any] | None:
        return next((r for r in records if r.get("purpose") == purpose), None)

    def _input(self, record: dict[str, Any]) -> int:
        return _within(self.node, "in", self._marked(self.node.in_edges(), record["external_port_id"]))

    def _output(self, record: dict[str, Any], records: list[dict[str, Any]]) -> int:
        """Return the output of a record; in some files outputs are counted from the number of inputs on."""
        number = self._marked(self.node.out_edges(), record["external_port_id"])
        if number != record["external_port_id"]:
            return _within(self.node, "out", number)
        first, count = len(self.node.in_ports()), len(self.node.out_ports())
        is_behind = all(first <= r["external_port_id"] < first + count for r in records)
        is_plain = all(r["external_port_id"] < count for r in records)
        return _within(self.node, "out", number - first if is_behind and not is_plain else number)

    @staticmethod
    def _marked(edges: Mapping[Any, Any], number: int) -> int:
        """Return the port with an edge that has a mark `external_port_id`; the number itself if no edge has it."""
        ports = [int(port) for port, attrs in edges.items() if attrs.get("external_port_id") == number]
        return ports[0] if ports else number

    def _node(self, record: dict[str, Any], side: str) -> Node:
        key = f"{side}_layer" if side else "internal_layer_id"
        node = self.inner.get(int(record[key]))
        if node is None:
            raise Error("{}: {} numbers a node of the body, got {}", self.name, key, record[key])
        return node

    def _parameter(self, record: dict[str, Any], side: str = "") -> int:
        node = self._node(record, side)
        if node.soft_get("op") != "Parameter":  # an input of a node, which a Parameter makes
            source = node.in_port(int(record[f"{side}_port" if side else "internal_port_id"])).get_source()
            node = node if source is None else source.node
        return self._position(node, self.body.parameters, "Parameter")

    def _result(self, record: dict[str, Any], side: str = "") -> int:
        node = self._node(record, side)
        if node.soft_get("op") != "Result":  # an output of a node, which a Result reads
            port = node.out_port(int(record[f"{side}_port" if side else "internal_port_id"]))
            node = next((d.node for d in port.get_destinations() if d.node.soft_get("op") == "Result"), node)
        return self._position(node, self.body.results, "Result")

    def _position(self, node: Node, nodes: list[IrNode], kind: str) -> int:
        owner = self.owners.get(node.id)
        if owner is None or owner not in nodes:
            raise Error("{}: a record is of a {} of the body, got {}", self.name, kind, node.soft_get("name", node.id))
        return nodes.index(owner)


def _slice(record: dict[str, Any]) -> tuple[int | None, int, int, int, int]:
    if record.get("axis") is None:
        return None, 0, -1, 1, 1
    defaults = {"start": 0, "end": -1, "stride": 1, "part_size": 1}
    numbers = [default if record.get(name) is None else int(record[name]) for name, default in defaults.items()]
    return int(record["axis"]), numbers[0], numbers[1], numbers[2], numbers[3]
