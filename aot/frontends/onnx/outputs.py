"""Copies of ONNX models with more outputs, for runtimes that show only these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto, ValueInfoProto

from runtime.errors import CorruptError


def with_outputs(path: Path, names: Sequence[str]) -> bytes:
    """Return an ONNX file's bytes with more tensors as outputs; weights in other files stay there.

    CorruptError for a file that is damaged.
    """
    model = ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise CorruptError(f"{path.name}: not an ONNX model: {error}") from error
    known = {one.name for one in model.graph.output}
    model.graph.output.extend(ValueInfoProto(name=name) for name in names if name not in known)
    return model.SerializeToString()
