"""Attributes of the front phase, for the middle phase: what extensions have written into nodes and into graphs.

The operations of the network become those of the operation sets in between. A node of the middle phase has the own
attributes of the node of the front phase that has its name.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.mo.bridge.node_records import KEPT, record_of
from aot.mo.graph.data import with_properties
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.layer_attributes import OTHER_NAMES, WINDOWS, file_attributes
from aot.mo.ops.op import Op

_FRONT = (  # attributes that say what a node is, and which another phase sets anew
    "kind id name op type version infer type_infer reverse_infer IE pb rt_info in_ports_count out_ports_count shape "
    "value data_type sub_graphs need_shape_inference is_partial_inferred is_input shape_attrs"
)
_NOT_CARRIED = {*_FRONT.split(), KEPT, "_in_ports", "_out_ports", "input_port_map", "output_port_map", "back_edges"}
_MARKS = ("dim_attrs", "permute_attrs", "nchw_layout", "correct_in_data_layout", "correct_out_data_layout")


@dataclass(slots=True)
class Carried:
    """Attributes of a graph; of its nodes, by their names; and of bodies, by node and attribute."""

    graph: dict[str, Any] = field(default_factory=dict[str, Any])
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    bodies: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])

    def take(self, graph: Graph) -> None:
        """Remember the attributes of a graph at the end of the front phase; the attributes so far are dropped."""
        self.graph = dict(graph.graph)
        self.nodes = {}
        self.bodies = {}
        for node in graph.get_op_nodes():
            name = str(node.soft_get("name", node.id))
            self.nodes[name] = _own(node)
            for attr in node.soft_get("sub_graphs", []):
                body = self.bodies[name, attr] = Carried()
                body.take(node[attr])

    def give(self, graph: Graph) -> None:
        """Add the attributes to a graph of the middle phase; its layout, and what its nodes have already, stay."""
        graph.graph.update({**self.graph, "layout": graph.graph["layout"]})
        for node in graph.get_op_nodes():
            name = str(node.soft_get("name", node.id))
            attrs = node.attrs()
            for key, value in self.nodes.get(name, {}).items():
                if key in _MARKS or key not in attrs:
                    attrs[key] = value
            for attr in node.soft_get("sub_graphs", []):
                if (name, attr) in self.bodies:
                    self.bodies[name, attr].give(node[attr])


def _own(node: Node) -> dict[str, Any]:
    """Return the attributes of a node that are neither of its operation nor of its file."""
    record = record_of(node)
    known = set(_NOT_CARRIED if record is None else _NOT_CARRIED | record.attrs.keys())
    for name, _ in file_attributes(node.soft_get("type", None), node.soft_get("version", None)):
        identifier = name.replace("-", "_")
        known |= {name, identifier, OTHER_NAMES.get(name, name), WINDOWS.get(identifier, identifier)}
    cls = Op.registered_ops.get(str(node.soft_get("op")))
    row = getattr(cls, "row", None)
    known |= set() if row is None else {*row.defaults, *row.files}
    default = with_properties({})["dim_attrs"]
    own = {key: value for key, value in node.attrs().items() if key not in known}
    return {key: value for key, value in own.items() if key != "dim_attrs" or value != default}
