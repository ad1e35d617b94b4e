"""The runtime alone, as a wheel in a fresh virtual environment: small, quick to import, and it runs a model."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.programs import built, chain

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, time
import numpy as np
begin = time.process_time()
import runtime
spent = time.process_time() - begin
assert "site-packages" in runtime.__file__, runtime.__file__
y = runtime.load(sys.argv[1])(np.ones(1000, np.float32))[0]
assert (y == 4).all()
for name in ("llvmlite", "aot", "codegen", "lxml", "typer"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(name + " is there")
print(spent)
"""


@pytest.mark.slow
def test_wheel(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    environment.pop("PYTHONPATH", None)
    subprocess.run([ROOT / "scripts" / "runtime-wheel", tmp_path], check=True, env=environment)
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 100_000
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("runtime/", "aot_runtime-")) for name in names)
    assert "runtime/py.typed" in names
    built(chain()).write_shared(tmp_path / "m.so")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, env=environment)
    python = tmp_path / "venv" / "bin" / "python"
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [python, "-m", "pip", "install", *quiet, "--only-binary=:all:", f"numpy=={np.__version__}", wheel],
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    command = [python, "-c", PROGRAM, tmp_path / "m.so"]
    for _ in range(2):  # the first run compiles the modules
        done = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True, env=environment)
    print(f"import runtime: {float(done.stdout) * 1e3:.1f} ms beyond NumPy")  # noqa: T201  # the figure of the README
    assert float(done.stdout) < 0.1  # a loaded machine takes several times as long as an idle one
