"""Readers of model files: one folder for each format."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from aot.frontends import openvino
from aot.frontends.caffe.convert import CAFFE
from aot.frontends.conversion.walk import ToOpset
from aot.frontends.kinds import (
    SAVED_MODEL,
    folder,
    foreign,
    is_caffe,
    is_container,
    is_exported,
    is_gguf,
    is_language_model,
    is_tensorflow,
    is_tflite,
    named,
    refuse,
)
from aot.frontends.onnx.convert import ONNX
from aot.frontends.packages import check
from aot.frontends.paddle.convert import PADDLE
from aot.frontends.paddle.files import is_folder, is_paddle
from aot.frontends.pt2.convert import ATEN
from aot.frontends.tf.convert import TENSORFLOW
from aot.frontends.tflite.convert import TFLITE
from aot.ir.graph import Graph
from aot.ir.op import Foreign
from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.regular import open_file

__all__ = ["framework_of", "front_passes", "mean_image", "read_model"]

HEAD = 512  # bytes that tell formats apart
XML = rb"\s*<[!?A-Za-z]|(?:\xff\xfe|\xfe\xff)?\0?<\0?[!?A-Za-z]"  # begins of XML in UTF-8 or UTF-16
SUFFIXES = (".onnx", ".onnx.pb")
DIALECTS = (ONNX, TENSORFLOW, TFLITE, ATEN, CAFFE, PADDLE)
# Names of networks that say which program wrote the file, or nothing.
OF_ALL = re.compile(
    r"|main|main[_-]?graph|graph|(default|sub)[_-]?graph|model\d*|saved_model|\d+|unnamed|unknown|none"
    r"|torch[_-]jit([_-]export)?|jit|tf2onnx|onnx[_-]?graph|onnx_graphsurgeon_graph|mxnet_converted_model"
    r"|(Model from )?PaddlePaddle.*|TensorFlow(_Lite)?_Frontend_IR",
    re.IGNORECASE,
)
PT2 = "pt2"  # extensions' name of exported programs of PyTorch


def read_model(path: Path | str, weights: Path | str | None = None, signature: str | None = None) -> Graph:
    """Return the network in a file or a folder; the content tells the format.

    `weights`: the `.bin` of an IR, the `.caffemodel` of a `.prototxt`, or the `.pdiparams` of a program, that has
    another name; `signature`: which one of a SavedModel, or which network of a container. A network whose own name is
    one that exporters give to all is called like its file.
    """
    path = Path(path)
    graph = _read(path, weights, signature)
    if OF_ALL.fullmatch(graph.name.strip()):
        graph.name = _name_of(path) or graph.name
    return graph


def _name_of(path: Path) -> str:
    """Return a file's name without suffixes; for a SavedModel that of its folder, or of the one with its versions."""
    path = path.absolute()
    if path.name in SAVED_MODEL:
        path = path.parent
    while path.name.isdecimal() and path.is_dir():
        path = path.parent
    return path.name if path.is_dir() else Path(path.name.removesuffix(SUFFIXES[1])).stem


def _read(path: Path, weights: Path | str | None, signature: str | None) -> Graph:
    if path.is_dir():
        if any((path / name).is_file() for name in SAVED_MODEL):
            return _tensorflow(path, signature)
        if is_language_model(path):
            return import_module("aot.frontends.huggingface.reader").read(path)
        if is_folder(path):
            return _paddle(path, weights)
        raise refuse(folder(path), path)
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    with open_file(path, "model") as file:
        head = file.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    if not head:
        raise CorruptError(f"{path.name}: must be a model, got an empty file")
    reader = _with_signatures(head, path)
    if reader is not None:
        return reader(path, signature)
    if signature is not None:
        rule = "a SavedModel, a MetaGraph or a TensorFlow Lite model has signatures"
        raise UsageError(f"--signature: {rule}, got {path.name}")
    return _plain(head, path, Path(weights) if weights is not None else None)


def _plain(head: bytes, path: Path, weights: Path | None) -> Graph:
    """Return the network in a file of a format without signatures."""
    if is_gguf(head):
        return import_module("aot.frontends.gguf.reader").read(path)  # most compilations do without these readers
    if is_exported(head, path):
        return import_module("aot.frontends.pt2.files.reader").read(path)
    if is_caffe(path):
        return _caffe(path, weights)
    if is_paddle(head, path):
        return _paddle(path, weights)
    kind = foreign(head, path)
    if kind is not None and not path.name.endswith(SUFFIXES[1:]):
        raise refuse(kind, path)
    if re.match(XML, head):
        return openvino.read(path, weights)
    if _is_onnx(head) or path.name.endswith(SUFFIXES):
        check(path, "ONNX")
        return import_module("aot.frontends.onnx.reader").read(path)  # the package is optional, and slow to import
    raise refuse(named(head, path), path)


def framework_of(model: Path | str | Graph) -> str:
    """Return the framework of a model, for its extensions: `tf`, `tflite`, `pt2`, `caffe`, `paddle` or `onnx`.

    Nothing is checked: a graph, an IR, and an unreadable file count as `onnx`.
    """
    if isinstance(model, Graph):
        dialects = {node.op.dialect for node in model.nodes.values() if isinstance(node.op, Foreign)}
        names = {d.name: PT2 if d is ATEN else d.name for d in DIALECTS if d is not ONNX}
        return next((name for dialect, name in names.items() if dialect in dialects), ONNX.name)
    path = Path(model)
    if path.is_dir():
        if any((path / name).is_file() for name in SAVED_MODEL):
            return TENSORFLOW.name
        return PADDLE.name if is_folder(path) else ONNX.name
    if not path.is_file():
        return ONNX.name
    with open_file(path, "model") as file:
        head = file.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    if is_tensorflow(head, path):
        return TENSORFLOW.name
    if is_tflite(head) or is_container(head, path):
        return TFLITE.name
    if is_caffe(path):
        return CAFFE.name
    if is_paddle(head, path):
        return PADDLE.name
    return PT2 if is_exported(head, path) else ONNX.name


def _with_signatures(head: bytes, path: Path) -> Callable[[Path, str | None], Graph] | None:
    """Return the reader of a format that has signatures."""
    if is_tensorflow(head, path):
        return _tensorflow
    if is_tflite(head):
        return _tflite
    return _container if is_container(head, path) else None


def _tensorflow(path: Path, signature: str | None) -> Graph:
    check(path, "TensorFlow")
    return import_module("aot.frontends.tf.files.reader").read(path, signature)  # the packages are optional


def _tflite(path: Path, signature: str | None) -> Graph:
    check(path, "TensorFlow Lite")
    return import_module("aot.frontends.tflite.reader").read(path, signature)  # the packages are optional


def _container(path: Path, signature: str | None) -> Graph:
    check(path, "TensorFlow Lite")
    return import_module("aot.frontends.tflite.containers").read(path, signature)


def mean_image(path: Path) -> Array:
    """Return the image in a binaryproto of Caffe, by channels, rows and columns."""
    check(path, "Caffe")
    return import_module("aot.frontends.caffe.messages").image(path)  # the package is optional


def _caffe(path: Path, weights: Path | None) -> Graph:
    check(path, "Caffe")
    return import_module("aot.frontends.caffe.reader").read(path, weights)  # the package is optional


def _paddle(path: Path, weights: Path | str | None) -> Graph:
    other = None if weights is None else Path(weights)
    return import_module("aot.frontends.paddle.reader").read(path, other)


def front_passes(seed: int | None = None) -> tuple[Callable[[Graph], bool], ...]:
    """Passes that turn the dialects of all front ends into operations of the opset.

    One takes the graphs that have nodes of its dialect, and converts other foreign nodes of extensions in them, too.

    `seed`: of random numbers; None: operations that draw them are refused.
    """
    return tuple(ToOpset(d, seed, tuple(o for o in DIALECTS if o is not d)) for d in DIALECTS)


def _is_onnx(head: bytes) -> bool:
    """True if it begins as a ModelProto does: field 1 (ir_version, a small number), then a field of ModelProto."""
    return len(head) > 2 and head[0] == 0x08 and head[1] < 0x40 and head[2] in b"\x12\x1a\x22\x2a\x32\x3a\x42"
