"""Nodes as the ONNX messages that they were read from, for extensions that inspect those."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from aot.ir.graph import Node, OutPort
from aot.ir.op import Foreign

_READER_ATTRIBUTES = ("domain", "opset", "captures", "inputs", "unsupported")  # attributes that the reader adds


def node_message(node: Node) -> NodeProto:
    """Return the message of a foreign node without its graphs; for a constant, the message of ONNX's Constant."""
    op = node.op
    outputs = [_name(port) for port in node.out_ports().values()]
    if not isinstance(op, Foreign):
        value = _tensor(node.data)
        return helper.make_node("Constant", [], outputs, name=node.name, value=value)
    attrs = dict(op.attrs)
    count = attrs.get("inputs", len(node.in_ports()))
    inputs = ["" if s is None else _name(s) for s in node.sources()[:count]]
    domain = attrs.get("domain") or None
    message = helper.make_node(op.kind, inputs, outputs, name=node.name, domain=domain)
    message.attribute.extend(
        _attribute(k, v) for k, v in attrs.items() if k not in _READER_ATTRIBUTES and v is not None
    )
    return message


def node_attributes(message: NodeProto) -> dict[str, Any]:
    """Return the attributes of a message, without its graphs."""
    attributes = {
        attribute.name: _attribute_value(helper.get_attribute_value(attribute)) for attribute in message.attribute
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _attribute_value(value: Any) -> Any:
    """Return a value of an attribute as the reader gives it; None for a graph."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, (int, float)):
        return value
    return None if isinstance(value, GraphProto) else tuple(_attribute_value(part) for part in value)


def _name(port: OutPort) -> str:
    if port.names:
        return port.names[0]
    return port.node.name if not port.idx else f"{port.node.name}:{port.idx}"


def _attribute(name: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return helper.make_attribute(name, _tensor(value))
    if isinstance(value, tuple):
        parts = [_encoded(part) for part in cast("tuple[Any, ...]", value)]
        if not parts:
            return helper.make_attribute(name, parts, attr_type=AttributeProto.INTS)  # its element type is lost
        return helper.make_attribute(name, parts)
    return helper.make_attribute(name, _encoded(value))


def _tensor(value: Any) -> TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(value))


def _encoded(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
