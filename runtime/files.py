"""Arrays from .npy and .npz files and into them; nothing pickled is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from runtime.errors import UsageError

Arrays = dict[str, NDArray[np.generic]]


def read_inputs(given: list[str], names: list[str]) -> Arrays:
    """Arrays by input name from files; those without a name are taken in the order of the model's inputs."""
    found: Arrays = {}
    for text in given:
        name, _, path = text.rpartition("=") if not Path(text).exists() else ("", "", text)
        loaded = read_arrays(Path(path))
        if isinstance(loaded, dict):
            found |= loaded
            continue
        free = [n for n in names if n not in found]
        if not name and not free:
            raise UsageError(f"run: the model has {len(names)} inputs, got more arrays: {text}")
        found[name or free[0]] = loaded
    return found


def read_arrays(path: Path) -> NDArray[np.generic] | Arrays:
    """The array of a .npy, or the arrays of a .npz by name; nothing pickled is read."""
    try:
        with path.open("rb") as stream:
            loaded: NDArray[np.generic] | Mapping[str, NDArray[np.generic]] = np.load(stream, allow_pickle=False)
            return dict(loaded) if isinstance(loaded, Mapping) else loaded
    except (ValueError, EOFError, BadZipFile) as error:
        raise UsageError(f"run: inputs are .npy or .npz files, got {path}: {error}") from None


def write_outputs(path: Path, results: Arrays) -> None:
    """All results into an .npz, or a single one into an .npy, strings as arrays of str; UsageError for another name."""
    results = {name: a.astype(str) if a.dtype == object else a for name, a in results.items()}
    if path.suffix == ".npy" and len(results) == 1:
        np.save(path, next(iter(results.values())))
    elif path.suffix == ".npz":
        np.savez(path, **results)  # type: ignore[arg-type]  # the stub takes the names for options
    else:
        raise UsageError(f"run: -o is an .npz file, or .npy for one output, got {path} for {len(results)} outputs")


def is_compiled(path: Path) -> bool:
    """Whether a file is a compiled model, by its first bytes."""
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"
