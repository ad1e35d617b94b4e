"""Nodes as the messages of TensorFlow that they were read from, for extensions that inspect those."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from aot.frontends.tf.files.element_types import code_of
from aot.frontends.tf.files.messages import AttrValue, NodeDef, TensorProto
from aot.frontends.tf.files.tensors import FunctionName, Sizes, TypeName, attributes
from aot.ir.graph import Node, OutPort
from aot.ir.op import Foreign
from aot.ir.types import dtype_of

_READER_ATTRIBUTES = ("captures", "inputs", "unsupported")  # attributes that the reader adds


def node_message(node: Node) -> Any:
    """Return the NodeDef of a foreign node, without attributes that begin with `_`, or that of a constant: Const."""
    op = node.op
    if not isinstance(op, Foreign):
        message, tensor = NodeDef(name=node.name, op="Const"), _tensor(node.data)
        message.attr["dtype"].type = tensor.dtype
        message.attr["value"].tensor.CopyFrom(tensor)
        return message
    message = NodeDef(name=node.name, op=op.kind)
    attrs = dict(op.attrs)
    sources = node.sources()[: attrs.get("inputs", len(node.in_ports()))]
    message.input.extend(_name(source) for source in sources if source is not None)
    for name, value in attrs.items():
        if name not in _READER_ATTRIBUTES:
            message.attr[name].CopyFrom(_attribute(value))
    return message


def node_attributes(message: Any) -> dict[str, Any]:
    """Return the attributes of a NodeDef."""
    return attributes(message.attr, message.name)


def _name(port: OutPort) -> str:
    return port.node.name if not port.idx else f"{port.node.name}:{port.idx}"


def _attribute(value: Any) -> Any:
    attribute = AttrValue()
    if value is None:
        attribute.shape.unknown_rank = True
    elif isinstance(value, Sizes):
        _fill(attribute.shape, value)
    elif isinstance(value, tuple):
        attribute.list.SetInParent()
        for part in cast("tuple[Any, ...]", value):
            _add(attribute.list, part)
    elif isinstance(value, np.ndarray):
        attribute.tensor.CopyFrom(_tensor(value))
    elif isinstance(value, FunctionName):
        attribute.func.name = value
    else:
        field, held = _plain(value)
        setattr(attribute, field, held)
    return attribute


def _add(message: Any, part: Any) -> None:
    """Add an element to a list."""
    if part is None:
        message.shape.add().unknown_rank = True
    elif isinstance(part, Sizes):
        _fill(message.shape.add(), part)
    elif isinstance(part, np.ndarray):
        message.tensor.append(_tensor(part))
    elif isinstance(part, FunctionName):
        message.func.add().name = part
    else:
        field, held = _plain(part)
        getattr(message, field).append(held)


def _plain(value: Any) -> tuple[str, Any]:
    """Return the field of an AttrValue for a number, a text or a type, and its content."""
    if isinstance(value, TypeName):
        return "type", code_of(value)
    if isinstance(value, str):
        return "s", value.encode("utf-8", "surrogateescape")
    return "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f", value


def _fill(message: Any, sizes: tuple[int, ...]) -> None:
    message.SetInParent()
    for size in sizes:
        message.dim.add().size = size


def _tensor(data: Any) -> Any:
    """Return the TensorProto of an array."""
    tensor = TensorProto(dtype=code_of(dtype_of(data).value))
    _fill(tensor.tensor_shape, data.shape)
    if data.dtype == object:
        tensor.string_val.extend(str(text).encode("utf-8", "surrogateescape") for text in data.reshape(-1))
    else:
        tensor.tensor_content = np.ascontiguousarray(data).tobytes()
    return tensor
