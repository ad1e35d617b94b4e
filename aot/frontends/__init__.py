"""Readers of model files: one folder for each format."""

import re
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from aot.frontends import openvino
from aot.frontends.kinds import folder, foreign, named, refuse
from aot.frontends.onnx.convert import OnnxToOpset
from aot.ir.graph import Graph
from runtime.errors import CorruptError, MissingError, UsageError
from runtime.regular import open_file

__all__ = ["front_passes", "read_model"]

HEAD = 512  # bytes that tell formats apart
SUFFIXES = (".onnx", ".onnx.pb")


def read_model(path: Path | str, weights: Path | str | None = None) -> Graph:
    """The network in a file, whose format its content tells. `weights`: the `.bin` of an IR that has another name."""
    path = Path(path)
    if path.is_dir():
        raise refuse(folder(path), path)
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    with open_file(path, "model") as file:
        head = file.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    if not head:
        raise CorruptError(f"{path.name}: a model is read, got an empty file")
    kind = foreign(head, path)
    if kind is not None and not path.name.endswith(SUFFIXES[1:]):
        raise refuse(kind, path)
    if re.match(rb"\s*<[!?A-Za-z]", head):
        return openvino.read(path, Path(weights) if weights is not None else None)
    if _is_onnx(head) or path.name.endswith(SUFFIXES):
        if find_spec("onnx") is None:
            raise MissingError(f"{path.name}: ONNX needs the package onnx: pip install 'onnx>=1.21'")
        return import_module("aot.frontends.onnx.reader").read(path)  # the package is optional, and slow to import
    raise refuse(named(head, path), path)


def front_passes(seed: int | None = None) -> tuple[Callable[[Graph], bool], ...]:
    """Passes that turn the dialects of all front ends into operations of the opset; each leaves other dialects alone.

    `seed`: of random numbers; None: operations that draw them are refused.
    """
    return (OnnxToOpset(seed),)


def _is_onnx(head: bytes) -> bool:
    """True if it begins as a ModelProto does: field 1 (ir_version, a small number), then a field of ModelProto."""
    return len(head) > 2 and head[0] == 0x08 and head[1] < 0x40 and head[2] in b"\x12\x1a\x22\x2a\x32\x3a\x42"
