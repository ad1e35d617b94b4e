"""Readers of model files: one folder for each format."""

from pathlib import Path

from aot.frontends import openvino
from aot.ir.graph import Graph
from runtime.errors import UnsupportedError, UsageError

__all__ = ["read_model"]

HEAD = 512  # bytes that tell formats apart


def read_model(path: Path | str, weights: Path | str | None = None) -> Graph:
    """The network in a file, whose format its content tells. `weights`: the `.bin` of an IR that has another name."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    with path.open("rb") as file:
        head = file.read(HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"<"):
        return openvino.read(path, Path(weights) if weights is not None else None)
    raise UnsupportedError(f"{path.name}: OpenVINO IR can be read, got something else")
