"""The two files of a network of PaddlePaddle, which have one name: the program, and the weights, `.pdiparams`."""

from __future__ import annotations

import re
from pathlib import Path

from aot.runtime.errors import UsageError

PROGRAM, OLDER, WEIGHTS = ".json", ".pdmodel", ".pdiparams"
NAME = "inference"  # usual stem of exported files
_HEAD = re.compile(rb'\s*\{\s*"base_code"\s*:\s*\{[^}]*"pir"|\s*\{\s*"program"\s*:\s*\{\s*"regions"')


def is_paddle(head: bytes, path: Path) -> bool:
    """True for a program of PaddlePaddle, or its weights: JSON by its first bytes, others by the suffix."""
    if path.suffix == PROGRAM:
        return _HEAD.match(head) is not None
    return path.suffix in (OLDER, WEIGHTS)


def is_folder(path: Path) -> bool:
    """True for a folder with a program of PaddlePaddle and its weights."""
    return any(path.glob(f"*{WEIGHTS}")) and _program_in(path) is not None


def program_and_weights(path: Path) -> tuple[Path, ...]:
    """Return the two files of the network in a file or a folder; none unless both are there."""
    program = _program_in(path) if path.is_dir() else path if path.suffix in (PROGRAM, OLDER) else None
    if path.suffix == WEIGHTS:
        program = next((p for s in (PROGRAM, OLDER) if (p := path.with_suffix(s)).is_file()), None)
    weights = None if program is None else program.with_suffix(WEIGHTS)
    return (program, weights) if program is not None and weights is not None and weights.is_file() else ()


def require_program(path: Path, other: Path | None = None) -> tuple[Path, Path | None]:
    """Return the program and the weights of the network in a file of either kind, or in a folder; None without weights.

    `other`: the file of the weights. UsageError if there is no program.
    """
    if path.is_dir():
        program = _program_in(path)
        if program is None:
            raise UsageError(f"{path}: a folder must have one network of PaddlePaddle, got none or several")
        path = program
    if path.suffix == WEIGHTS:
        paths = program_and_weights(path)
        if not paths:
            rule = f"the program is beside the weights, {path.stem}{PROGRAM} or {path.stem}{OLDER}"
            step = f"copy the program to {path.parent}, by the name of the weights"
            raise UsageError(f"{path.name}: {rule}, got none", advice=step)
        return paths[0], path
    beside = other or path.with_suffix(WEIGHTS)
    return path, beside if beside.is_file() else None


def _program_in(folder: Path) -> Path | None:
    """Return the program in a folder: the one with the usual name, or the only one that has weights."""
    paths = [p.with_suffix(s) for p in sorted(folder.glob(f"*{WEIGHTS}")) for s in (PROGRAM, OLDER)]
    paths = [p for p in paths if p.is_file()]
    usual = [p for p in paths if p.stem == NAME]
    return usual[0] if usual else paths[0] if len({p.stem for p in paths}) == 1 else None
