"""Models in memory as files for the readers: bytes of any format, and messages of ONNX."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, cast, runtime_checkable

from aot.ir.graph import Graph
from aot.runtime.errors import UsageError


@runtime_checkable
class Message(Protocol):
    """A ModelProto of ONNX. The check for it does not import the package `onnx`."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802  (the name that protobuf gives it)


Source = str | PathLike[str] | bytes | bytearray | Message | Graph


@contextmanager
def as_file(model: object) -> Generator[Path | str | Graph]:
    """Give a path or a graph as it is, and bytes or a message as a file that exists within the block.

    UsageError for other types, and for a message of 2 GB or more, which has no bytes.
    """
    match model:
        case str() | Path() | Graph():
            yield model
            return
        case PathLike():
            yield Path(cast("PathLike[str]", model))
            return
        case bytes() | bytearray():
            data = bytes(model)
        case Message() if not isinstance(model, type):
            data = _serialised(model)
        case _:
            raise UsageError(
                f"compile: model must be a path, bytes, a ModelProto or a graph, got {type(model).__name__}"
            )
    with TemporaryDirectory(prefix=".aot-") as folder:
        path = Path(folder) / "model"
        path.write_bytes(data)
        yield path


def _serialised(model: Message) -> bytes:
    try:
        return model.SerializeToString()
    except ValueError as error:  # protobuf's limit
        raise UsageError(f"compile: a message must have less than 2 GB, save it as a file; got: {error}") from None
