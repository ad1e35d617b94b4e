"""Checks of the files that a command will write, before any work: no file is also read, and no two are the same."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable
from pathlib import Path

from aot.codegen.platforms import LINUX, platform_named
from aot.frontends.kinds import LANGUAGE_MODEL, SAVED_MODEL, ZIP, is_caffe, is_gguf, is_language_model, is_tflite
from aot.frontends.paddle.files import program_and_weights
from aot.ir.graph import Graph
from aot.runtime.arrays.files import check_library, check_output
from aot.runtime.errors import UsageError
from aot.runtime.loading.binary_file import FIRST_BYTES
from aot.runtime.loading.weights import beside
from aot.runtime.regular import open_file

_LOCATION = re.compile(rb"location\x12[\x01-\x7f]")  # the key of ONNX's external data, then its length in a byte
_FOLDERS = ("variables/", "assets/")  # folders of a SavedModel: checkpoint, vocabularies


def check_outputs(outputs: Iterable[Path], *sources: str | Path | Graph) -> None:
    """Raise UsageError unless all outputs can be written, differ, and are no files that the sources are read from.

    `sources`: models, libraries and other files.
    """
    files = [Path(source) for source in sources if not isinstance(source, Graph)]
    seen: set[str] = set()
    for path in outputs:
        check_output(path)
        if path.exists() and any(is_read(source, path) for source in files):
            raise UsageError(f"output: must be another file than those that are read, got {path}")
        if os.path.realpath(path) in seen:
            raise UsageError(f"output: must be another file than the other outputs, got {path} twice")
        seen.add(os.path.realpath(path))


def library_files(library: Path, external: bool, target: str) -> list[Path]:
    """Return the files of a library or object: the file itself and, if weights are external, the file of weights.

    UsageError for the name of a file for another system than the target's.
    """
    platform = platform_named(target)
    if platform.library == LINUX.library:
        check_library(library)
    elif library.suffix.lower() != platform.library:
        raise UsageError(f"output: a library for {platform.name} must be named m{platform.library}, got {library}")
    return [library, *([beside(library)] if external else [])]


def is_read(model: Path, path: Path) -> bool:
    """True if `path` is a model's file or a file that is read with a model: weights, checkpoint, external data.

    `model`: a model or a library; False if there is none.
    """
    if not model.exists():
        return False
    if path.samefile(model):
        return True
    folder, resolved = (model if model.is_dir() else model.parent).resolve(), path.parent.resolve() / path.name
    if not resolved.is_relative_to(folder):
        return False
    name = resolved.relative_to(folder).as_posix()
    if is_language_model(model):
        return path.suffix in LANGUAGE_MODEL
    if paths := program_and_weights(model):
        return any(path.samefile(file) for file in paths)
    if model.is_dir() or model.name in SAVED_MODEL:
        return name in SAVED_MODEL or name.startswith(_FOLDERS)
    if model.suffix == ".xml":
        return name == f"{model.stem}.bin"
    if model.suffix == ".meta":
        return re.fullmatch(rf"{re.escape(model.stem)}\.(index|data-.*)", name) is not None
    return is_caffe(path) if is_caffe(model) else name in _named(model)


def _named(file: Path) -> set[str]:
    """Return the other files that a model or library names, relative to its folder."""
    with open_file(file, "model") as stream:
        head = stream.read(8)
        if head.startswith(FIRST_BYTES):
            return {beside(file).name}
        if not head or head.startswith(ZIP) or is_gguf(head) or is_tflite(head):  # formats of one file
            return set()
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
            ends = [match.end() for match in re.finditer(_LOCATION, text)]
            return {os.path.normpath(os.fsdecode(text[end : end + text[end - 1]])) for end in ends}
