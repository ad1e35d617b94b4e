"""The examples run on the real engines, where these are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aot

ROOT = Path(__file__).parents[2]
SHOWN = {  # package, and a line that the example prints
    "ray_data": ("ray", "{7: 1000}"),
    "ray_serve": ("ray.serve", "[7]"),
    "spark": ("pyspark", "500 {7}"),
    "beam": ("apache_beam", "(7, 100)"),
    "mlflow_model": ("mlflow", "[7, 7, 7, 7, 7, 7, 7, 7, 7, 7]"),
    "mlflow_spark": ("mlflow", "50 {7}"),
    "dask_frames": ("distributed", "500 {7}"),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.so"
    shapes, dims = {"image": ("n", 1, 8, 8)}, {"n": (1, 64)}
    aot.compile_model(ROOT / "examples" / "digits" / "model.xml", output=path, shapes=shapes, dims=dims)
    return path


def test_every_example_is_run() -> None:
    assert sorted(SHOWN) == sorted(path.stem for path in (ROOT / "examples" / "engines").glob("*.py"))


@pytest.mark.slow  # engines take up to half a minute to start
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", SHOWN)
def test_example(name: str, library: Path, tmp_path: Path) -> None:
    package, shown = SHOWN[name]
    pytest.importorskip(package, exc_type=ImportError)
    command = [sys.executable, f"examples/engines/{name}.py", str(library), str(tmp_path / "model")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout.splitlines()  # engines may log behind it
