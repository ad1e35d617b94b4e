"""Parameter: an input of the network."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.op import Op, PermuteAttrs
from aot.mo.utils.arrays import unmask_shape
from aot.mo.utils.types import np_data_type_to_destination_type


class Parameter(Op):
    """Attributes `shape` and `data_type`, f32 without one."""

    op = "Parameter"

    def __init__(self, graph: Graph, attrs: dict[str, Any] | None = None) -> None:
        defaults = {
            "op": "Parameter",
            "type": "Parameter",
            "version": "opset1",
            "infer": self.infer,
            "reverse_infer": self.reverse_infer,
            "type_infer": self.type_infer,
            "is_input": True,
            "data_type": np.float32,
            "out_ports_count": 1,
            "user_shape": None,
        }
        super().__init__(graph, defaults, attrs)

    def supported_attrs(self) -> list[Any]:
        return [("shape", self.shape_serialize), ("element_type", _element_type)]

    @staticmethod
    def shape_serialize(node: Node) -> str:
        """Return the shape, or `user_shape`, as files hold it; -1 for an unknown size."""
        shape = node.soft_get("user_shape", None)
        dims = unmask_shape(node.shape if shape is None else shape)
        return str(dims) if hasattr(dims, "is_dynamic") else ",".join(map(str, dims))

    @staticmethod
    def infer(node: Node) -> None:
        """Set the shape, which must be known."""
        name = node.soft_get("name", node.id)
        assert node.has_valid("shape"), f"Parameter {name}: the shape must be known; give one by --shape"
        node.out_port(0).data.set_shape(node.shape)
        PermuteAttrs.create_permute_attrs(node, attrs=[("shape", "output:0")])

    @staticmethod
    def type_infer(node: Node) -> None:
        node.out_port(0).set_data_type(node.data_type)

    @staticmethod
    def reverse_infer(node: Node) -> None:
        """Take the shape that reverse inference has set at the output."""
        shape = node.out_port(0).data.get_shape()
        if node.soft_get("shape", None) is None and shape is not None:
            node["shape"] = shape


def _element_type(node: Node) -> str:
    return np_data_type_to_destination_type(node.data_type)
