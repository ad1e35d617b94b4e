"""Data of a port: shape and value of the data node that it reads or makes; the front phase has none."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.ir.types import Array
from aot.mo.utils.arrays import int64_array, shape_array, strict_compare_tensors
from aot.mo.utils.error import Error

Node = Any  # of modules above this one
Port = Any


def data_node(port: Port) -> Node | None:
    """Return the data node of a port; None if it is not connected."""
    nodes = port.node.in_nodes if port.type == "in" else port.node.out_nodes
    return nodes(control_flow=port.control_flow).get(port.idx)


def make_data_node(
    node: Node, idx: int | str = 0, attrs: dict[str, Any] | None = None, edge_attrs: dict[str, Any] | None = None
) -> Node:
    """Add a data node without shape and value for output `idx` of an operation."""
    assert node["kind"] == "op", f"{node.id}: a data node is made by an operation"
    assert idx not in node.out_nodes(), f"{node.id}: output {idx} has a data node already"
    result = node.other(add_data_node(node.graph, node.id, attrs))
    node.graph.add_edges_from([(node.id, result.id, {"out": idx, **(edge_attrs or {})})])
    return result


def add_data_node(graph: Any, name: str, attrs: dict[str, Any] | None = None) -> str:
    """Add a data node without edges; return its id, which is `name` or is made of it."""
    id: str = graph.unique_id(name)
    nothing: dict[str, Any] = {"kind": "data", "name": id, "value": None, "shape": None}
    graph.add_node(id, **with_properties({**nothing, "data_type": None, "infer": None, **(attrs or {})}))
    return id


def with_properties(attrs: dict[str, Any]) -> dict[str, Any]:
    """Add the lists of names of attributes that hold dimensions and shapes, which a change of layout permutes."""
    for key, names in (("dim_attrs", DIMENSIONS), ("shape_attrs", SHAPES)):
        attrs[key] = list(dict.fromkeys([*attrs.get(key, []), *names]))
    return attrs


DIMENSIONS = ("spatial_dims", "channel_dims", "batch_dims", "axis")
SHAPES = ("shape", "pad", "window", "stride", "output_shape")


class Data:
    """Shape, value and attributes of a port's data node."""

    def __init__(self, port: Port) -> None:
        self._port = port

    @property
    def _in_front(self) -> bool:
        return self._port.node.graph.stage == "front"

    def _node(self) -> Node:
        node = data_node(self._port)
        if node is None:
            side = "Input" if self._port.type == "in" else "Output"
            name = self._port.node.soft_get("name", self._port.node.id)
            raise KeyError(f"{side} {self._port.idx} of {name} has no data node")
        return node

    def get_shape(self) -> Any:
        """Return the shape, an integer array; None if it is not known, or in the front phase."""
        return None if self._in_front else self._node()["shape"]

    def set_shape(self, shape: Any) -> None:
        """Set the shape; a value that is there must have it, unless attribute `override_output_shape` is set."""
        if self._in_front:
            raise NotImplementedError("set_shape: the front phase has no shapes")
        data, new = self._node(), shape_array(shape)
        if data.has_valid("value"):
            free = self._port.type == "out" and self._port.node.has_and_set("override_output_shape")
            same = self._port.type == "out" and strict_compare_tensors(data.soft_get("force_shape", data["shape"]), new)
            name = self._port.node.soft_get("name", self._port.node.id)
            assert free or same, f"{name}: a shape of a value that is known is {data['shape']}, got {new}"
        data["shape"] = new

    def get_value(self) -> Any:
        """Return the value, an array that may be changed in place; None if it is not known, or in the front phase."""
        node = None if self._in_front else data_node(self._port)
        return node["value"] if node is not None and node.has_valid("value") else None

    def set_value(self, value: Array) -> None:
        """Set value and shape of the data node, and of the Const that makes it."""
        if self._in_front:
            raise Error("set_value is not applicable for graph front phase")
        data = self._node()
        producer = data.in_node(control_flow=self._port.control_flow) if self._port.type == "in" else self._port.node
        forced = data.soft_get("force_shape", producer.soft_get("force_shape", None))
        # a masked value keeps its mask
        shape = int64_array(np.shape(value) if forced is None else forced)
        for node in (data, producer) if producer.soft_get("type") == "Const" else (data,):
            node["value"] = value
            node["shape"] = shape

    def get_attr(self, item: str) -> Any:
        """Return an attribute of the data node; None if it is absent, or in the front phase."""
        node = None if self._in_front else data_node(self._port)
        return None if node is None else node.soft_get(item, None)

    def set_attr(self, item: str, value: Any) -> None:
        raise NotImplementedError("set_attr: attributes of data nodes are set by the node")

    def has_valid(self, item: str) -> bool:
        """True if the data node has the attribute, and it is not None."""
        if self._in_front:
            raise NotImplementedError("has_valid: the front phase has no data nodes")
        node = data_node(self._port)
        return node is not None and node.has_valid(item)
