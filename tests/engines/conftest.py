"""A library of the digits for the programs of all engines."""

from __future__ import annotations

from pathlib import Path

import pytest

import aot
from tests.engines.programs import ROOT


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.so"
    shapes, dims = {"image": ("n", 1, 8, 8)}, {"n": (1, 64)}
    aot.compile_model(ROOT / "examples" / "digits" / "model.xml", output=path, shapes=shapes, dims=dims)
    return path
