"""Const: an operation with a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.op import Op
from aot.mo.utils.arrays import int64_array, is_a, mo_array
from aot.mo.utils.types import (
    data_type_str_to_np,
    np_data_type_to_destination_type,
    precision_to_destination_type,
)


class Const(Op):
    """The value is attribute `value`; `force_shape` and `force_type` say how files hold it."""

    op = "Const"

    def __init__(self, graph: Graph, attrs: dict[str, Any] | None = None) -> None:
        defaults = {
            "type": "Const",
            "op": "Const",
            "version": "opset1",
            "infer": self.infer,
            "type_infer": self.type_infer,
            "value": None,
            "shape": None,
            "data_type": None,
            "out_ports_count": 1,
        }
        super().__init__(graph, defaults, attrs)
        attributes = self.attrs
        if not is_a(attributes["value"], np.ndarray):
            attributes["value"] = mo_array(attributes["value"])
        forced = attributes.get("force_shape")
        attributes["shape"] = int64_array(attributes["value"].shape if forced is None else forced)
        forced_type = attributes.get("force_type")
        attributes["data_type"] = attributes["value"].dtype if forced_type is None else data_type_str_to_np(forced_type)

    def supported_attrs(self) -> list[Any]:
        return ["offset", "size", ("shape", _shape), ("element_type", _element_type)]

    @staticmethod
    def infer(node: Node) -> None:
        """Set the value; a plain number fills the shape."""
        value = node.soft_get("value", None)
        whole = is_a(value, np.ndarray) or len(node.shape) == 0
        node.out_port(0).data.set_value(value if whole else np.full(node.shape, value))

    @staticmethod
    def type_infer(node: Node) -> None:
        node.out_port(0).set_data_type(node.soft_get("value").dtype, override=True)
        if node.has_valid("force_type"):
            node.out_port(0).set_data_type(node.data_type, override=True)


def _shape(node: Node) -> str:
    return ",".join(map(str, node.shape))


def _element_type(node: Node) -> str:
    if node.has_valid("force_type"):
        return precision_to_destination_type(node.force_type)
    return np_data_type_to_destination_type(node.soft_get("value").dtype)
