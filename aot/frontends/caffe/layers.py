"""Layers of a network's test phase, old layers in the form of new ones, and their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aot.frontends.caffe.messages import LayerParameter, Message
from aot.frontends.caffe.registry import CONVERSIONS, PARAMETERS
from aot.runtime.errors import CorruptError, UnsupportedError

OTHERS = ("transform_param", "loss_param", "param")  # fields of layers for training
SILENT = ("engine", "force_nd_im2col")  # fields that say how Caffe computes, not what
SPELLED = {  # names of older types that are more than words in small letters
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}


def layers_of(net: Message, file: str) -> list[Message]:
    """Return the layers that run in the test phase."""
    if not net.layer and not net.layers:
        raise CorruptError(f"{file}: a network of Caffe must have layers, got none")
    if any(not old.HasField("type") for old in net.layers):
        advice = "bring it to the present form with Caffe's upgrade_net_proto_text"
        raise UnsupportedError(f"{file}: layers must have types of V1 or later, got one without a type", advice=advice)
    layers = list(net.layer) or [_newer(old) for old in net.layers]
    return [layer for layer in layers if _takes_part(layer, net.state)]


def _newer(old: Message) -> Message:
    """Return a layer of the older form in the newer one."""
    number = old.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[old.type].name
    message = LayerParameter(name=old.name, type=SPELLED.get(number) or number.title().replace("_", ""))
    for name in ("bottom", "top", "include", "exclude"):
        getattr(message, name).extend(getattr(old, name))
    for field, value in old.ListFields():
        if field.name.endswith("_param"):
            getattr(message, field.name).CopyFrom(value)
    return message


def _takes_part(layer: Message, state: Message) -> bool:
    """True unless the rules of a layer leave it out of the test phase."""
    if layer.include:
        return any(_meets(rule, state) for rule in layer.include)
    return not any(_meets(rule, state) for rule in layer.exclude)


def _meets(rule: Message, state: Message) -> bool:
    if rule.HasField("phase") and rule.phase != 1:  # TEST
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    return all(s in state.stage for s in rule.stage) and not any(s in state.stage for s in rule.not_stage)


def attributes(layer: Message) -> dict[str, Any]:
    """Return the attributes of a layer: the fields of its parameters."""
    CONVERSIONS.load()
    own = PARAMETERS.get(layer.type, "")
    names = [field.name for field, _ in layer.ListFields() if field.name.endswith("_param")]
    names = [own, *names] if own and own not in names else names
    names = [name for name in names if name not in OTHERS]
    fields_by_name: dict[str, Any] = {}
    for name in sorted(names, key=lambda n: n != own):  # those of its type win
        fields_by_name |= {n: v for n, v in _fields(getattr(layer, name), "") if n not in fields_by_name}
    return fields_by_name if names in ([], [own]) else {**fields_by_name, "parameters": tuple(names)}


def _fields(message: Message, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a message that have a value or a default."""
    for field in message.DESCRIPTOR.fields:
        value: Any = getattr(message, field.name)
        if field.name in SILENT:
            continue
        if field.is_repeated:
            if len(value) and field.message_type is None:
                yield prefix + field.name, tuple(_plain(field, v) for v in value)
        elif field.message_type is not None:
            if message.HasField(field.name) and field.message_type.name != "FillerParameter":
                yield from _fields(value, f"{prefix}{field.name}.")
        elif field.has_default_value or message.HasField(field.name):
            yield prefix + field.name, _plain(field, value)


def _plain(field: Any, value: Any) -> Any:
    return field.enum_type.values_by_number[value].name if field.enum_type is not None else value
