"""Op: the base class of operations. It makes nodes, with attributes and ports, and says which attributes files hold."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from aot.ir.scope import called_from
from aot.mo.graph.data import add_data_node, make_data_node, with_properties
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.permutations import PermuteAttrs
from aot.mo.ops.registered import REGISTERED
from aot.mo.replacement_pattern import ClassType
from aot.mo.utils.arrays import is_a, mo_array, strict_compare_tensors
from aot.mo.utils.error import Error
from aot.mo.utils.runtime_info import RTInfo

__all__ = ["Op", "PermuteAttrs"]

Attrs = dict[str, Any]
MADE_IN = "made_in"  # attribute of a node that an extension has made: its class and line, for errors
IR_VERSIONS = (None, 10, 11)


class Op:
    """Attributes of a node to be made, or of one that is changed.

    A subclass gives its defaults to the constructor: `type` and `version` (the operation of a set), `op` (the name that
    extensions use), `infer(node)`, `type_infer(node)`, `in_ports_count`, `out_ports_count`.
    """

    op: Any = None
    enabled = True
    registered_ops = REGISTERED
    registered_cls: ClassVar[list[Any]] = []
    excluded_classes: ClassVar[list[Any]] = []

    def __init__(self, graph: Graph, attrs1: Attrs | None = None, attrs2: Attrs | None = None) -> None:
        self.graph = graph
        self.ir_version = getattr(graph, "graph", {}).get("ir_version")  # an operation without a graph has none
        self.attrs: Attrs = {"kind": "op", "rt_info": RTInfo(), **(attrs1 or {}), **(attrs2 or {})}
        self.default_backend_attrs: list[Any] = []

    @classmethod
    def class_type(cls) -> ClassType:
        return ClassType.OP

    def supported_attrs(self) -> list[Any]:
        """Return the attributes that may be set, in the forms of `backend_attrs`."""
        return []

    def backend_attrs(self) -> list[Any]:
        """Return the attributes of files: NAME, (NAME, name of the node's), or (NAME, function of the node)."""
        return self.supported_attrs()

    def get_opset(self) -> str:
        return self.attrs.get("version", "extension")

    @staticmethod
    def get_op_class_by_name(name: str) -> Any:
        """Return the class of an operation by its attribute `op`; KeyError for an unknown one."""
        return Op.registered_ops[name]

    def add_node(self, attrs: Attrs | None = None) -> Node:
        """Add a node without edges; its id and name are the attribute `name`, made unique."""
        all_attrs = {**self.attrs, **(attrs or {})}
        id = self.graph.unique_id(all_attrs.get("name", ""))
        all_attrs["name"] = id
        self.graph.add_node(id, **self._completed(all_attrs))
        return Node(self.graph, id)

    def create_node(
        self, inputs: list[Any] | None = None, attrs: Attrs | None = None, edge_attrs: Attrs | None = None
    ) -> Node:
        """Add a node that reads `inputs`: nodes, or pairs of a node and the number of its output."""
        pairs = [self.extract_port(given) for given in inputs or []]
        node = self.add_node(attrs)
        for i, (source, idx) in enumerate(pairs):
            node.add_input_port(i, skip_if_exist=True)
            edge = {**_edge(source, idx, i), **(edge_attrs or {})}
            source.add_output_port(idx, skip_if_exist=True)
            self.graph.add_edge(source.id, node.id, **edge)
        return node

    def create_node_on_port(
        self, node: Node, out_port: int, attrs: Attrs | None = None, edge_attrs: Attrs | None = None
    ) -> Node:
        """Add a node that reads an output by an edge with the attributes of the one that is there."""
        edge = {**deepcopy(node.out_edge(out_port)), **({"in": 0} if edge_attrs is None else edge_attrs)}
        new_node = self.add_node(attrs)
        self.graph.add_edge(node.id, new_node.id, **edge)
        return new_node

    def create_node_with_data(
        self,
        inputs: list[Node | None] | None = None,
        attrs: Attrs | None = None,
        data_nodes: Any = None,
        edge_attrs: list[Attrs] | None = None,
    ) -> Any:
        """Add a node that reads the data nodes `inputs`, infer it, and return its data node or nodes.

        `data_nodes`: existing ones that take its outputs; shapes and values that they have must not change.
        """
        new_node = self.add_node(attrs)
        edges = edge_attrs or []
        for i, source in enumerate(inputs or []):
            if source is not None:
                new_node.add_input_port(i, skip_if_exist=True)
                self.graph.add_edge(source.id, new_node.id, **{"in": i, **(edges[i] if i < len(edges) else {})})
        if data_nodes is None:
            outputs: list[Node] = [Node(self.graph, add_data_node(self.graph, ""))]
        else:
            outputs = list(data_nodes) if is_a(data_nodes, (list, np.ndarray)) else [data_nodes]
        before = [(node.soft_get("value", None), node.soft_get("shape", None)) for node in outputs]
        for idx, node in enumerate(outputs):
            self.graph.add_edge(new_node.id, node.id, out=idx)
        if new_node.has_valid("infer"):
            new_node["infer"](new_node)
            _check_inferred(new_node, outputs, before)
        return outputs[0] if len(outputs) == 1 else outputs

    def update_node(self, node: Node, attrs: Attrs | None = None) -> None:
        """Give a node that is there the attributes of this operation, changed by `attrs`."""
        for key, value in self._completed({**self.attrs, **(attrs or {})}).items():
            node[key] = value
        node.update_node()

    @classmethod
    def update_node_stat(cls, node: Node, attrs: Attrs | None = None) -> None:
        """Make a node one of this operation, with its defaults and `attrs`."""
        cls(node.graph, attrs or {}).update_node(node)

    def substitute_ie_attrs(self, new_attrs: Attrs) -> None:
        """Set attribute `IE`: the attributes of the layer in files, as `backend_attrs` gives them."""
        if self.ir_version not in IR_VERSIONS:
            raise Error("Unrecognized IR version was specified: {}", self.ir_version)
        layer: list[Any] = [("id", _id), "name", "type", "version"]
        data: Any = ("data", self.backend_attrs() + self.default_backend_attrs, [])
        new_attrs["IE"] = [("layer", layer, [data, "@runtime_info", "@ports", "@consts"])]

    def _completed(self, attrs: Attrs) -> Attrs:
        completed = with_properties(attrs)
        if where_text := called_from():
            completed[MADE_IN] = where_text
        self.substitute_ie_attrs(completed)
        return completed

    @staticmethod
    def extract_port(node_port: Any) -> tuple[Node, int]:
        """Return a node and the number of its output; Error for a node alone that has several."""
        if is_a(node_port, tuple):
            return node_port[0], node_port[1]
        edges = node_port.graph.out_edges(node_port.id, data=True)
        if len({edge["out"] for _, _, edge in edges if "out" in edge}) > 1:
            raise Error("Node {} has more than one outputs. Provide output port explicitly. ", node_port.name)
        return node_port, 0

    @staticmethod
    def create_data_node(
        graph: Graph, op_node: Node, attrs: Attrs | None = None, edge_attrs: Attrs | None = None, out_port: int = 0
    ) -> Node:
        """Add the data node of an output."""
        return make_data_node(op_node, out_port, attrs, edge_attrs)

    @staticmethod
    def _create_data_node(graph: Graph, name: str, attrs: Attrs | None = None) -> Node:
        return Node(graph, add_data_node(graph, name, attrs))

    @staticmethod
    def create_input_data_node(graph: Graph, name: str, value: Any, attrs: Attrs | None = None) -> Node:
        """Add a data node with a value and without a producer."""
        known = {"value": mo_array(value), "shape": mo_array(value.shape)}
        return Node(graph, add_data_node(graph, name, {**known, **(attrs or {})}))

    @staticmethod
    def create_and_connect_input_data_node(
        graph: Graph, op_node: Node, attrs: Attrs | None = None, edge_attrs: Attrs | None = None
    ) -> Node:
        """Add a data node that an operation reads by an edge with these attributes."""
        assert op_node.kind == "op", f"{op_node.id}: an operation, got a data node"
        edge = edge_attrs or {}
        node = Node(graph, add_data_node(graph, op_node.id, attrs))
        op_node.add_input_port(edge["in"], skip_if_exist=True)
        graph.add_edges_from([(node.id, op_node.id, edge)])
        return node

    @staticmethod
    def expand_node_shape(node: Node | None, dims_to_add: int) -> None:
        """Append dimensions of size 1 to the value of a data node."""
        if node is not None and node.has_valid("value"):
            node.value = node.value.reshape(*node.value.shape, *[1] * dims_to_add)
            node.shape = mo_array(node.value.shape)

    @staticmethod
    def normalize_outputs(node: Node) -> None:
        """Give a Result to each of the `out_ports_count` outputs that has no consumer."""
        if not node.has_valid("out_ports_count") or len(node.out_edges()) >= node.out_ports_count:
            return
        for idx in range(node.out_ports_count):
            node.add_output_port(idx, skip_if_exist=idx in node.out_ports())
            if node.out_port(idx).disconnected():
                attrs = {"name": f"{node.name}/Fake_output_{idx}/", "keep_output_port": True}
                new_node = Op.get_op_class_by_name("Result")(node.graph, attrs).create_node()
                node.out_port(idx).connect(new_node.in_port(0))


def _id(node: Node) -> str:
    return node.id


def _edge(source: Node, idx: int, target: int) -> Attrs:
    """Return the attributes of a new edge from an operation's output, or from a data node."""
    split = ["in", "permutation"]
    if source.has_valid("kind") and source.kind == "data":
        return {"in": target, "in_attrs": split}
    edge: Attrs = {"in": target, "out": idx, "in_attrs": split, "out_attrs": ["out", "permutation"], "data_attrs": []}
    info = source.out_port(idx).get_tensor_debug_info() if source.has_port("out", idx) else []
    if info:
        edge["fw_tensor_debug_info"] = info
        edge["data_attrs"].append("fw_tensor_debug_info")
    return edge


def _check_inferred(new_node: Node, outputs: list[Node], before: list[tuple[Any, Any]]) -> None:
    if new_node.has("nchw_layout"):
        for node in new_node.out_nodes().values():
            node["nchw_layout"] = new_node.nchw_layout
    for node, (value, shape) in zip(outputs, before, strict=True):
        for key, old in (("value", value), ("shape", shape)):
            same = old is None or strict_compare_tensors(old, node[key])
            assert same, f"{new_node.soft_get('name')}: the {key} was {old}, is inferred as {node[key]}"
