"""Layers as the messages of Caffe that they were read from, for extensions that inspect those."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from aot.frontends.caffe.layers import attributes
from aot.frontends.caffe.messages import LayerParameter, Message
from aot.frontends.caffe.registry import PARAMETERS
from aot.ir.graph import Node, OutPort
from aot.ir.op import Foreign


def node_message(node: Node) -> Message:
    """Return the LayerParameter of a foreign node."""
    op = node.op
    assert isinstance(op, Foreign), node.name
    attrs = dict(op.attrs)
    bottoms = [_name(s) for s in node.sources()[: attrs.get("bottoms", 0)] if s is not None]
    tops = [_name(port) for port in node.out_ports().values()]
    message = LayerParameter(name=node.name, type=op.kind, bottom=bottoms, top=tops)
    for name in attrs.get("parameters", (PARAMETERS.get(op.kind, ""),)):
        if name:
            _fill(getattr(message, name), attrs, "")
    return message


def weights_message(node: Node) -> Any:
    """Return the weights' layer: its `blobs` have `data` and `shape.dim`. None for a layer without blobs."""
    op = node.op
    assert isinstance(op, Foreign), node.name
    blobs = [source.node.data for source in node.sources()[dict(op.attrs).get("bottoms", 0) :] if source is not None]
    blobs_with_data = [
        SimpleNamespace(data=b.reshape(-1), shape=SimpleNamespace(dim=list(b.shape))) for b in blobs if b is not None
    ]
    return SimpleNamespace(name=node.name, type=op.kind, blobs=blobs_with_data) if blobs_with_data else None


def node_attributes(message: Any, kind: str) -> dict[str, Any]:
    """Return the attributes of a layer of a type: of a LayerParameter, or of an object with fields of its names."""
    if isinstance(message, LayerParameter):
        return attributes(message)
    layer = LayerParameter(type=kind)
    _copy(message, layer)
    return attributes(layer)


def _copy(source: Any, message: Message) -> None:
    """Set the fields of a message that an object has, too."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(source, field.name, None)
        if value is None:
            continue
        if field.message_type is not None and not field.is_repeated:
            _copy(value, getattr(message, field.name))
        elif field.message_type is None and field.is_repeated:
            getattr(message, field.name).extend(np.ravel(value).tolist())
        elif field.message_type is None:
            setattr(message, field.name, value)


def _name(port: OutPort) -> str:
    return port.names[0] if port.names else port.node.name


def _fill(message: Message, attrs: dict[str, Any], prefix: str) -> None:
    """Set the fields of a message from the attributes of a layer."""
    for field in message.DESCRIPTOR.fields:
        value, name = attrs.get(prefix + field.name), prefix + field.name
        if field.message_type is not None:
            if any(key.startswith(f"{name}.") for key in attrs):
                _fill(getattr(message, field.name), attrs, f"{name}.")
        elif value is not None:
            if field.is_repeated:
                getattr(message, field.name).extend(_number(field, v) for v in value)
            else:
                setattr(message, field.name, _number(field, value))


def _number(field: Any, value: Any) -> Any:
    return field.enum_type.values_by_name[value].number if field.enum_type is not None else value
