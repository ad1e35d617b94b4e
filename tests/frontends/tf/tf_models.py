"""Small models of TensorFlow that `make_fixtures.py` has written, with inputs and TensorFlow's results."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from aot.ir.types import Array

MODELS = Path(__file__).parent / "models"
NAMES = sorted(path.stem for path in MODELS.glob("*.zip"))
Call = tuple[dict[str, Array], dict[str, Array]]  # inputs, outputs


def unpacked(name: str, folder: Path) -> Path:
    """The model, in a folder: what `aot compile` is given."""
    with ZipFile(MODELS / f"{name}.zip") as archive:
        for entry in archive.namelist():
            if entry.startswith(f"{name}/"):
                archive.extract(entry, folder)
    found = sorted((folder / name).glob("graph.*"))
    graphs = [path for path in found if path.suffix in (".pb", ".pbtxt", ".meta")]
    return graphs[0] if graphs else folder / name


def calls_of(name: str) -> list[Call]:
    """Calls in their order; state lives from one to the next."""
    found: dict[int, Call] = {}
    with ZipFile(MODELS / f"{name}.zip") as archive:
        for entry in archive.namelist():
            number, _, file = entry.partition("/")
            if number.isdigit():
                side, _, key = file.removesuffix(".npy").partition("_")
                value = np.load(io.BytesIO(archive.read(entry)))
                found.setdefault(int(number), ({}, {}))[side == "out"][key] = value
    return [found[i] for i in sorted(found)]
