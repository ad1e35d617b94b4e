"""Wheels: what they install does not clash with a project's folders, and the runtime has a wheel of its own."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.programs import built, chain

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
PARTS = (
    "loading/foreign/pe.py",
    "systems/defaults/__init__.py",
    "systems/macos/processor.py",
    "systems/windows/loading.py",
)
PROJECT = """
import pickle, sys
import cli, codegen, numpy as np, runtime
assert (cli.OWN, codegen.OWN, runtime.OWN) == (1, 2, 3)
import aot
aot.compile_model(sys.argv[1], output="m.so")
from aot.runtime.predictor import Predictor
image = np.load(sys.argv[2])
model = pickle.loads(pickle.dumps(aot.runtime.load("m.so", threads=1)))
print(model(image)[0].argmax(), Predictor(model)({"image": image})["probabilities"].argmax(), runtime.OWN)
"""
BOTH_NAMES = """
import aot.runtime, runtime
import aot.runtime.predictor as one
import aot.runtime.predictor as other
assert aot.runtime is runtime and one is other and one.__spec__.name == one.__name__, one.__spec__
assert runtime.Pipeline is aot.runtime.pipeline.Pipeline
try:
    import aot.runtime.absent
except ModuleNotFoundError as error:
    print(error)
"""
RUNTIME_ALONE = """
import sys, time
import numpy as np
begin = time.process_time()
import runtime
spent = time.process_time() - begin
import aot.runtime
assert runtime is aot.runtime
y = runtime.load(sys.argv[1])(np.ones(1000, np.float32))[0]
assert (y == 4).all()
for name in ("llvmlite", "aot.options", "codegen", "lxml", "typer"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(name + " is there")
print(spent)
"""


def environment(*folders: Path) -> dict[str, str]:
    """Return the environment of programs that import from `folders` only, under `python -S`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONWARNINGS": "ignore"}


def run(*command: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_project(folder: Path) -> None:
    """Write a user's project whose names are those of the checkout's folders."""
    for name, text in (("cli.py", "OWN = 1"), ("codegen/__init__.py", "OWN = 2"), ("runtime/__init__.py", "OWN = 3")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "main.py").write_text(PROJECT)


def test_two_names_of_one_package() -> None:
    assert run("-c", BOTH_NAMES, cwd=ROOT, env=environment(ROOT)) == "No module named 'aot.runtime.absent'\n"


@pytest.mark.slow
def test_a_project_with_the_same_names(tmp_path: Path) -> None:
    """The checkout on the path, behind a project with folders of the same names."""
    add_project(tmp_path)
    env = environment(ROOT, Path(np.__file__).parents[1])
    assert run("-S", "main.py", DIGITS / "model.xml", DIGITS / "seven.npy", cwd=tmp_path, env=env) == "7 7 3\n"
    assert "compiled model" in run("-S", "-m", "aot", "info", "m.so", cwd=tmp_path, env=env)


@pytest.mark.slow
def test_wheels_share_no_file(tmp_path: Path) -> None:
    # setuptools is the suite's: pip would install it for each wheel
    env = {**os.environ, "PYTHON": sys.executable, "PIP_NO_BUILD_ISOLATION": "0"}
    env.pop("PYTHONPATH", None)
    subprocess.run([ROOT / "scripts" / "wheels", tmp_path], check=True, env=env)
    [compiler], [wheel] = tmp_path.glob("aot-*.whl"), tmp_path.glob("aot_runtime-*.whl")
    [systems] = tmp_path.glob("aot_runtime_systems-*.whl")
    assert wheel.stat().st_size < 130_000
    names, others, parts = (set(zipfile.ZipFile(path).namelist()) for path in (wheel, compiler, systems))
    assert not names & others and not (names | others) & parts  # no file has two owners
    assert all(name.startswith(("aot/runtime/", "aot_runtime-")) or name == "runtime/__init__.py" for name in names)
    assert all(name.startswith(("aot/", "aot-")) and not name.startswith("aot/runtime/") for name in others)
    assert {f"aot/runtime/{name}" for name in PARTS} <= parts  # what Linux alone needs not
    assert {
        "aot/cli.py",
        "aot/codegen/llvm/model.h",
        "aot/codegen/llvm/model.mjs",
        "aot/codegen/llvm/model-more.mjs",
        "aot/py.typed",
    } <= others and "aot/runtime/py.typed" in names
    [metadata] = (name for name in others if name.endswith("METADATA"))
    needed = email.message_from_bytes(zipfile.ZipFile(compiler).read(metadata)).get_all("Requires-Dist") or []
    assert {line.partition("==")[0] for line in needed} >= {"aot-runtime", "aot-runtime-systems"}

    built(chain()).write_shared(tmp_path / "m.so")
    place, only = tmp_path / "installed", tmp_path / "numpy"
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    run(*install, "--target", place, wheel, cwd=tmp_path, env=env)
    only.mkdir()
    for found in Path(np.__file__).parents[1].glob("numpy*"):
        (only / found.name).symlink_to(found)
    for _ in range(2):  # the first run compiles the modules
        spent = float(run("-S", "-c", RUNTIME_ALONE, tmp_path / "m.so", cwd=tmp_path, env=environment(place, only)))
    print(f"import runtime: {spent * 1e3:.1f} ms beyond NumPy")  # noqa: T201  # the figure of the README
    assert spent < 0.1  # a loaded machine takes several times as long as an idle one
