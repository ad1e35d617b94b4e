"""TensorFlow's messages: those of tensorboard, and SavedModel and the entries of checkpoints, which it lacks.

Importing this needs the packages tensorboard and protobuf. Nothing but the message definitions is loaded.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from aot.runtime.errors import CorruptError

Message = Any  # protobuf makes the classes when they are imported

_PROTO = "tensorboard.compat.proto."
_META = "tensorboard/compat/proto/meta_graph.proto"
_SHAPE = "tensorboard/compat/proto/tensor_shape.proto"


def _message(module: str, name: str) -> Message:
    return getattr(import_module(f"{_PROTO}{module}_pb2"), name)


AttrValue = _message("attr_value", "AttrValue")
GraphDef = _message("graph", "GraphDef")
MetaGraphDef = _message("meta_graph", "MetaGraphDef")
NodeDef = _message("node_def", "NodeDef")
TensorProto = _message("tensor", "TensorProto")
TrackableObjectGraph = _message("trackable_object_graph", "TrackableObjectGraph")

# Field: name, number, type, the type's name where it is a message; repeated fields end with "*".
_OURS = {
    "SavedModel": (("saved_model_schema_version", 1, "INT64", ""), ("meta_graphs*", 2, "MESSAGE", "MetaGraphDef")),
    "BundleHeaderProto": (("num_shards", 1, "INT32", ""), ("endianness", 2, "INT32", "")),
    "BundleEntryProto": (
        ("dtype", 1, "INT32", ""),
        ("shape", 2, "MESSAGE", "TensorShapeProto"),
        ("shard_id", 3, "INT32", ""),
        ("offset", 4, "INT64", ""),
        ("size", 5, "INT64", ""),
        ("crc32c", 6, "FIXED32", ""),
        ("slices*", 7, "BYTES", ""),
    ),
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    """Return the definition of our messages; field numbers are those of TensorFlow's."""
    descriptor = descriptor_pb2.FileDescriptorProto(
        name="aot/saved_model.proto", package="aot.tensorflow", syntax="proto3"
    )
    descriptor.dependency.extend((_META, _SHAPE))
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _OURS.items():
        message = descriptor.message_type.add(name=name)
        for field, number, kind, type_name in fields:
            message.field.add(
                name=field.rstrip("*"),
                number=number,
                label=kinds.LABEL_REPEATED if field.endswith("*") else kinds.LABEL_OPTIONAL,
                type=kinds.Type.Value(f"TYPE_{kind}"),
                type_name=f".tensorboard.{type_name}" if type_name else None,
            )
    return descriptor


def _ours() -> dict[str, Message]:
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(_file().SerializeToString())
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"aot.tensorflow.{n}")) for n in _OURS}


_MADE = _ours()
SavedModel, BundleHeader, BundleEntry = (_MADE[name] for name in _OURS)


def parsed(kind: Message, data: bytes, file: str) -> Message:
    """Return a message of a class of these from its bytes; CorruptError if they are none."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise CorruptError(f"{file}: must be a TensorFlow {kind.DESCRIPTOR.name}, got other bytes") from error
    return message


def parsed_text(kind: Message, path: Path) -> Message:
    """Return a message from its text form; CorruptError if it is none."""
    try:
        return text_format.Parse(path.read_text("utf-8"), kind(), allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)[:200]
        raise CorruptError(f"{path.name}: must be a TensorFlow {kind.DESCRIPTOR.name} in text, got {reason}") from error
