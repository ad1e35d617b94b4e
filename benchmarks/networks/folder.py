"""A model's folder: model.xml, model.bin, in_<input>.npy; perhaps out_<index>.npy and model.onnx."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
T = TypeVar("T")
TOLERANCE = 1e-4  # of the largest output; the most that f32 runtimes differ by, with room for Winograd


@dataclass(frozen=True, slots=True)
class Folder:
    path: Path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def xml(self) -> Path:
        return self.path / "model.xml"

    @property
    def onnx(self) -> Path:
        return self.path / "model.onnx"

    @property
    def files(self) -> dict[str, Path]:
        """Files of the inputs by name; in the order of meta.json, if there is one."""
        found = {p.stem.removeprefix("in_"): p for p in sorted(self.path.glob("in_*.npy"))}
        listed = [i["name"] for i in self.meta.get("inputs", [])]
        return {name: found[name] for name in [*(n for n in listed if n in found), *found]}

    @property
    def meta(self) -> dict[str, Any]:
        """What meta.json says."""
        path = self.path / "meta.json"
        return json.loads(path.read_text()) if path.exists() else {}

    @property
    def tolerance(self) -> float:
        """How far results may be from the expected ones, as a part of the largest."""
        return float(self.meta.get("tolerance", TOLERANCE))

    def inputs(self) -> dict[str, Array]:
        """Arrays by input name."""
        return {name: np.load(path) for name, path in self.files.items()}

    def outputs(self) -> list[Array]:
        """Expected results in order; none if they are not stored."""
        found = {int(p.stem.removeprefix("out_")): np.load(p) for p in self.path.glob("out_*.npy")}
        return [found[i] for i in sorted(found)]

    def check(self) -> None:
        """FileNotFoundError for a folder that is no model."""
        for path in (self.xml, self.xml.with_suffix(".bin")):
            if not path.exists():
                raise FileNotFoundError(f"{self.path}: a model's folder holds {path.name}")


def placed(ports: list[set[str]], inputs: Mapping[str, T]) -> dict[int, T]:
    """Inputs by index: by one of the port's names, or in order if there are names that no port has."""
    if set(inputs) <= set().union(*ports):
        return {next(i for i, names in enumerate(ports) if name in names): value for name, value in inputs.items()}
    return dict(enumerate(inputs.values()))


def largest_error(found: list[Array], expected: list[Array]) -> float:
    """Largest absolute difference over the largest expected value; the worst of all outputs."""
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        if a.shape != b.shape:
            return float("inf")
        x, y = a.astype(np.float64), b.astype(np.float64)
        scale = float(np.abs(y).max(initial=0.0)) or 1.0
        error = float(np.abs(x - y).max(initial=0.0)) / scale
        worst = max(worst, error if np.isfinite(error) else float("inf"))
    return worst
