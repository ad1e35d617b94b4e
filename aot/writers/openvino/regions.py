"""Port maps of If, Loop and TensorIterator: positions of ports, parameters and results become ids of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lxml import etree

from aot.frontends.openvino.xml import Element
from aot.ir.graph import Graph, Node
from aot.opset.control.control_flow import If, Iterating, Loop
from aot.opset.control.port_maps import InputMap, OutputMap
from aot.runtime.errors import InternalError

Ids = Mapping[int, int]  # ids of layers by ids of nodes
OUTSIDE_PORT = "-1"  # port of values that a loop counts and decides itself


def add_port_maps(element: Element, node: Node, ids: Mapping[str, Ids]) -> None:
    """Add the port maps and back edges of a node with regions to its layer. `ids`: for each region, its layers' ids."""
    op = node.op
    if isinstance(op, If):
        for name in ("then", "else"):
            inputs, outputs = op.maps(name)
            _maps(etree.SubElement(element, f"{name}_port_map"), node, node.regions[name], ids[name], inputs, outputs)
        return
    if not isinstance(op, Iterating):
        raise InternalError(f"{op.type}: no port maps known for it")
    body, layers = node.regions["body"], ids["body"]
    maps = etree.SubElement(element, "port_map")
    _maps(maps, node, body, layers, op.input_maps, op.output_maps)
    if isinstance(op, Loop):
        for tag, purpose, position in (
            ("input", "current_iteration", op.current_iteration),
            ("output", "execution_condition", op.execution_condition),
        ):
            if position >= 0:
                inner = (body.parameters if tag == "input" else body.results)[position]
                _entry(maps, tag, OUTSIDE_PORT, layers[inner.id]).set("purpose", purpose)
    if op.back_edges:
        edges = etree.SubElement(element, "back_edges")
        for edge in op.back_edges:
            ends = layers[body.results[edge.result].id], layers[body.parameters[edge.parameter].id]
            etree.SubElement(edges, "edge", {"from-layer": str(ends[0]), "to-layer": str(ends[1])})


def _maps(
    parent: Element, node: Node, body: Graph, ids: Ids, inputs: Sequence[InputMap], outputs: Sequence[OutputMap]
) -> None:
    first = len(node.in_ports())
    for m in inputs:
        _slice(_entry(parent, "input", str(m.external), ids[body.parameters[m.parameter].id]), m)
    for m in outputs:
        _slice(_entry(parent, "output", str(first + m.external), ids[body.results[m.result].id]), m)


def _entry(parent: Element, tag: str, port: str, layer: int) -> Element:
    return etree.SubElement(parent, tag, {"external_port_id": port, "internal_layer_id": str(layer)})


def _slice(element: Element, m: InputMap | OutputMap) -> None:
    if m.axis is not None:
        for name in ("axis", "start", "end", "stride", "part_size"):
            element.set(name, str(getattr(m, name)))
