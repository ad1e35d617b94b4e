"""Arrays read from and written to .npy and .npz files, without pickles; and checks of output paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from aot.runtime.atomic import replacing
from aot.runtime.errors import UsageError
from aot.runtime.loading.binary_file import FIRST_BYTES
from aot.runtime.regular import open_file

if TYPE_CHECKING:  # slow to import
    from numpy.typing import NDArray

Arrays = dict[str, "NDArray[np.generic]"]

_OF_OTHERS = {  # endings of files that linkers and loaders would not take ELF for
    **dict.fromkeys((".dll", ".exe", ".lib", ".obj", ".pyd", ".sys"), "a file for Windows"),
    **dict.fromkeys((".dylib", ".bundle", ".framework", ".tbd"), "a file for macOS"),
    ".wasm": "a module of WebAssembly",
    ".a": "an archive",
}


def read_inputs(paths: list[str], names: list[str]) -> Arrays:
    """Return arrays by input name from files; those without a name are used in the order of the model's inputs."""
    arrays: Arrays = {}
    for text in paths:
        name, path = _name_and_path(text)
        loaded = read_arrays(path)
        if isinstance(loaded, dict):
            arrays |= loaded
            continue
        free = [n for n in names if n not in arrays]
        if not name and not free:
            raise UsageError(f"run: inputs must be {', '.join(names) or 'none'}, got one array more: {text}")
        arrays[name or free[0]] = loaded
    return arrays


def read_arrays(path: Path) -> NDArray[np.generic] | Arrays:
    """Return the array of a .npy, or the arrays of a .npz by name; pickled data is refused."""
    stream = open_file(path, "input")
    try:
        with stream:
            loaded: NDArray[np.generic] | Mapping[str, NDArray[np.generic]] = np.load(stream, allow_pickle=False)
            if not isinstance(loaded, Mapping):
                return loaded
            members: dict[str, object] = dict(loaded)
            if any(isinstance(member, bytes) for member in members.values()):
                raise ValueError("a member that is no array")
            return cast(Arrays, members)
    except Exception as error:  # NumPy, zipfile, zlib and tokenize have many for a damaged file
        reason = "a damaged one, or one of Python objects" if path.suffix in (".npy", ".npz") else "another file"
        raise UsageError(f"input: {path}: must be a .npy or .npz file of numbers or strings, got {reason}") from error


def files_named(texts: Iterable[str]) -> list[Path]:
    """Return the paths in `x.npy` and `NAME=x.npy`."""
    return [_name_and_path(text)[1] for text in texts]


def _name_and_path(text: str) -> tuple[str, Path]:
    """Return both parts of `NAME=x.npy`; the name is empty if none is given, or a file has all of it as its name."""
    name, _, path = text.rpartition("=") if not Path(text).exists() else ("", "", text)
    return name, Path(path)


def check_results_path(path: Path, count: int, *inputs: Path) -> None:
    """Raise UsageError unless `path` can hold this number of results: an .npz, or an .npy for one."""
    if path.suffix != ".npz" and (path.suffix != ".npy" or count != 1):
        raise UsageError(f"run: -o must be an .npz file, or .npy for one output, got {path} for {count} outputs")
    check_output(path, *inputs)


def check_output(path: Path, *inputs: Path) -> None:
    """Raise UsageError unless `path` can be a file of its folder and is none of `inputs`; called before any work."""
    if any(os.path.realpath(path) == os.path.realpath(other) for other in inputs):
        raise UsageError(f"output: must be another file than those that are read, got {path}")
    if path.exists() and not path.is_file():  # it would be replaced, even if it is a device
        raise UsageError(f"output: must be a file, got a folder or a device: {path}")
    if not path.parent.is_dir():
        raise UsageError(f"output: must be in a folder that exists, got {path}", advice=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"output: must be in a folder that can be written, got {path}")


def check_library(path: Path) -> None:
    """Raise UsageError for a name that another system, or another tool, would take for a file of its own format."""
    if (what := _OF_OTHERS.get(path.suffix.lower())) is not None:
        raise UsageError(
            f"output: a library for Linux must be named m.so, an object m.o, got {path}, the name of {what}"
        )


def write_outputs(path: Path, outputs: Arrays) -> None:
    """Write all results, whole or not at all, to a path that passed `check_results_path`; strings as arrays of str."""
    outputs = {name: a.astype(str) if a.dtype == object else a for name, a in outputs.items()}
    with replacing(path) as new, new.open("wb") as stream:
        if path.suffix == ".npy":
            np.save(stream, next(iter(outputs.values())))
        else:
            np.savez(stream, **outputs)  # type: ignore[arg-type]  # the stub takes the names for options


def is_compiled(path: Path) -> bool:
    """True if a file is a compiled model, by its first bytes; UsageError for a device or a pipe."""
    if path.is_dir():
        return False
    with open_file(path, "model") as stream:
        return stream.read(4).startswith(FIRST_BYTES)
