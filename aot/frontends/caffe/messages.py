"""Caffe's messages, made of `messages.txt`, a line or more for each: fields with their types and defaults.

    PermuteParameter order:uint32*                                 repeated
    PoolingParameter pool:MAX|AVE|STOCHASTIC=MAX pad:uint32=0      an enumeration with a default, a number with one

Numbers of an enumeration count from 0, or from 1 after a leading `|`, or stand after `@`. Networks are read from
text, where fields have names; numbers of fields differ between the branches of Caffe. Those of weights do not: they
are messages of their own here, whose arrays are bytes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.regular import read_file

Message = Any  # protobuf makes the classes when they are imported

PACKAGE = "caffe"
_FIELD = re.compile(r"(\w+):([^*=\s]+)(\*?)(?:=(.*))?")
_KINDS = descriptor_pb2.FieldDescriptorProto
# Of files of weights: field, number, type; repeated ones end with "*". Arrays are packed, so that they are bytes, too.
_WEIGHTS = {
    "Sizes": (("dim*", 1, "INT64"),),
    "Blob": (
        ("num", 1, "INT32"),
        ("channels", 2, "INT32"),
        ("height", 3, "INT32"),
        ("width", 4, "INT32"),
        ("data", 5, "BYTES"),
        ("shape", 7, "Sizes"),
        ("double_data", 8, "BYTES"),
    ),
    "Layer": (("name", 1, "STRING"), ("type", 2, "STRING"), ("blobs*", 7, "Blob")),
    "OldLayer": (("name", 4, "STRING"), ("blobs*", 6, "Blob")),
    "Weights": (("name", 1, "STRING"), ("layers*", 2, "OldLayer"), ("layer*", 100, "Layer")),
}


def _defined() -> descriptor_pb2.FileDescriptorProto:
    """Return the definition of the messages of networks."""
    descriptor = descriptor_pb2.FileDescriptorProto(name="aot/caffe.proto", package=PACKAGE, syntax="proto2")
    text = Path(__file__).with_suffix(".txt").read_text("ascii")
    for line in re.sub(r"\n +", " ", text).splitlines():
        name, *fields = line.split()
        message = descriptor.message_type.add(name=name)
        for number, field in enumerate(fields, 1):
            _add_field(message, number, field)
    return descriptor


def _add_field(message: Message, number: int, text: str) -> None:
    matched = _FIELD.fullmatch(text)
    assert matched is not None, text
    name, kind, repeated, default = matched.groups()
    field = message.field.add(
        name=name, number=number, label=_KINDS.LABEL_REPEATED if repeated else _KINDS.LABEL_OPTIONAL
    )
    if default is not None:
        field.default_value = default
    if "|" in kind:
        field.type, field.type_name = _KINDS.TYPE_ENUM, f".{PACKAGE}.{message.name}.{name}_values"
        labels = message.enum_type.add(name=f"{name}_values")
        for value, label in enumerate(kind.split("|")):
            if label:
                label, _, own = label.partition("@")
                labels.value.add(name=label, number=int(own or value))
    elif kind[0].isupper():
        field.type, field.type_name = _KINDS.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = _KINDS.Type.Value(f"TYPE_{kind.upper()}")


def _defined_weights() -> descriptor_pb2.FileDescriptorProto:
    """Return the definition of the messages of weights."""
    package = f"{PACKAGE}_weights"
    descriptor = descriptor_pb2.FileDescriptorProto(name="aot/caffe_weights.proto", package=package, syntax="proto2")
    for name, fields in _WEIGHTS.items():
        message = descriptor.message_type.add(name=name)
        for field, number, kind in fields:
            own = kind in _WEIGHTS
            message.field.add(
                name=field.rstrip("*"),
                number=number,
                label=_KINDS.LABEL_REPEATED if field.endswith("*") else _KINDS.LABEL_OPTIONAL,
                type=_KINDS.TYPE_MESSAGE if own else _KINDS.Type.Value(f"TYPE_{kind}"),
                type_name=f".{package}.{kind}" if own else None,
            )
    return descriptor


def _message_class(definition: descriptor_pb2.FileDescriptorProto, name: str) -> Message:
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(definition.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{definition.package}.{name}"))


NetParameter = _message_class(_defined(), "NetParameter")
LayerParameter = message_factory.GetMessageClass(NetParameter.DESCRIPTOR.fields_by_name["layer"].message_type)
Weights = _message_class(_defined_weights(), "Weights")


def network(path: Path) -> Message:
    """Return the NetParameter of a file in text. CorruptError if it is none, UnsupportedError for unknown fields."""
    try:
        return text_format.Parse(path.read_text("utf-8"), NetParameter())
    except text_format.ParseError as error:
        reason = str(error)
        if match := re.search(r'(\d+):\d+ : .*"caffe\.(\w+)" has no field named "(\w+)"', reason, re.DOTALL):
            line, message, name = match.groups()
            rule = f"line {line}: {message} has the fields of BVLC's and SSD's Caffe, got {name!r}"
            advice = (
                "an extension can read the layer, once the field is taken out; the old V0 form: upgrade_net_proto_text"
            )
            raise UnsupportedError(f"{path.name}: {rule}", advice=advice) from error
        raise CorruptError(f"{path.name}: must be a network of Caffe in text, got {reason[:200]}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise CorruptError(f"{path.name}: must be a network of Caffe in text, got {str(error)[:200]}") from error


def weights(path: Path) -> Message:
    """Return the Weights of a file, layers of both forms. CorruptError if it has none."""
    result = Weights()
    try:
        result.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise CorruptError(f"{path.name}: must be weights of Caffe, got other bytes") from error
    if not result.layer and not result.layers:
        raise CorruptError(f"{path.name}: must be weights of Caffe, got a file without layers")
    return result


def image(path: Path) -> Array:
    """Return the image of a file of means, binaryproto, by channels, rows and columns. CorruptError if it has none."""
    blob = message_factory.GetMessageClass(Weights.DESCRIPTOR.file.message_types_by_name["Blob"])()
    try:
        blob.ParseFromString(read_file(path, "mean-file"))
    except DecodeError as error:
        raise CorruptError(f"{path.name}: must be an image of Caffe, binaryproto, got other bytes") from error
    found = array(blob, path.name)
    if not found.size or found.ndim not in (3, 4) or (found.ndim == 4 and found.shape[0] != 1):
        raise CorruptError(f"{path.name}: an image must have channels, rows and columns, got {list(found.shape)}")
    return found.reshape(found.shape[-3:])


def array(blob: Message, what: str) -> Array:
    """Return the numbers of a blob, in f32. CorruptError if they are not as many as its shape says."""
    if len(blob.data) % 4 or len(blob.double_data) % 8:
        raise CorruptError(
            f"{what}: numbers of a blob must have 4 or 8 bytes, got {len(blob.data or blob.double_data)}"
        )
    data = np.frombuffer(blob.data, "<f4") if blob.data else np.frombuffer(blob.double_data, "<f8").astype(np.float32)
    old = (blob.num, blob.channels, blob.height, blob.width)
    shape = tuple(blob.shape.dim) if blob.HasField("shape") else old if any(old) else (len(data),)
    if any(n < 0 for n in shape) or int(np.prod(shape, dtype=object)) != len(data):
        raise CorruptError(f"{what}: a blob of {list(shape)} must have as many numbers, got {len(data)}")
    return data.reshape(shape)
