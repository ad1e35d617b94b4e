"""The examples run on the real engines, where these are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.programs import ROOT, run

SHOWN = {  # package, and a line that the example prints
    "ray_data": ("ray", "{7: 1000}"),
    "ray_serve": ("ray.serve", "[7]"),
    "spark": ("pyspark", "500 {7}"),
    "beam": ("apache_beam", "(7, 100)"),
    "mlflow_model": ("mlflow", "[7, 7, 7, 7, 7, 7, 7, 7, 7, 7]"),
    "mlflow_spark": ("mlflow", "50 {7}"),
    "dask_frames": ("distributed", "500 {7}"),
}


def test_every_example_is_run() -> None:
    assert sorted(SHOWN) == sorted(path.stem for path in (ROOT / "examples" / "engines").glob("*.py"))


@pytest.mark.slow  # engines take up to half a minute to start
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", SHOWN)
def test_the_example_prints_what_its_page_shows(name: str, library: Path, tmp_path: Path) -> None:
    package, shown = SHOWN[name]
    pytest.importorskip(package, exc_type=ImportError)
    assert shown in run(f"examples/engines/{name}.py", library, tmp_path / "model")
