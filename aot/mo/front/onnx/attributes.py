"""Attributes of nodes of ONNX files, from `node.pb`, the node's message."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Node
from aot.mo.utils.error import Error

_TYPES: dict[int, Any] = {
    1: np.float32,
    2: np.ubyte,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: bool,
    10: np.float16,
    11: np.double,
    12: np.uint32,
    13: np.uint64,
}


def _attributes_of(node: Node, name: str) -> list[Any]:
    return [attribute for attribute in node.pb.attribute if attribute.name == name]


def onnx_node_has_attr(node: Node, name: str) -> bool:
    return bool(_attributes_of(node, name))


def onnx_attr(node: Node, name: str, field: str, default: Any = None, dst_type: Any = None) -> Any:
    """Return field `field` (`i`, `f`, `s`, `t`, `ints`, ...) of an attribute, converted by `dst_type`.

    An attribute that the file leaves out gives `default` as it is. Error for one that the file has twice.
    """
    attributes = _attributes_of(node, name)
    if not attributes:
        return default
    if len(attributes) > 1:
        shown = node.soft_get("name", node.id), name, len(attributes)
        raise Error("ONNX node {}: an attribute is there once, got {} {} times", *shown)
    value = getattr(attributes[0], field)
    return value if dst_type is None else dst_type(value)


def onnx_get_num_outputs(node: Node) -> int:
    return len(node.pb.output)


def get_backend_pad(pads: Any, spatial_dims: Any, axis: int) -> list[Any]:
    """Return the padding before (`axis` 0) or after (1) each spatial dimension."""
    return [pad[axis] for pad in pads[spatial_dims]]


def get_onnx_autopad(auto_pad: bytes) -> str | None:
    text = auto_pad.decode().lower()
    return None if text == "notset" else text


def get_onnx_opset_version(node: Node) -> Any:
    """Return the version of the operation set that the file imports; 0 if it is not known."""
    return node.graph.graph.get("fw_opset_version", 0)


def get_onnx_datatype_as_numpy(value: int) -> Any:
    """Return NumPy's type for a number of ONNX's element types."""
    if value not in _TYPES:
        raise Error("ONNX element type: one of {}, got {}", ", ".join(map(str, sorted(_TYPES))), value)
    return _TYPES[value]
