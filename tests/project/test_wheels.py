"""Wheels: what they install does not clash with a project's folders, and the runtime has a wheel of its own."""

from __future__ import annotations

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scripts.layout import lay_out, rewritten
from tests.programs import built, chain

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
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
import runtime.predictor as one
import aot.runtime.predictor as other
assert aot.runtime is runtime and one is other and one.__spec__.name == one.__name__, one.__spec__
assert runtime.Pipeline is aot.runtime.pipeline.Pipeline
try:
    import runtime.absent
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


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from runtime.errors import A\n", "from aot.runtime.errors import A\n"),
        ("    from codegen import loops\n", "    from aot.codegen import loops\n"),
        ("import runtime\n", "import aot.runtime as runtime\n"),
        ("from cli import main\n", "from aot.cli import main\n"),
        (
            "from runtimes import a\nimport runtime_x\nx = 'from'\n",
            "from runtimes import a\nimport runtime_x\nx = 'from'\n",
        ),
        ("from aot.runtime import load\n", "from aot.runtime import load\n"),
    ],
)
def test_imports_follow(source: str, expected: str) -> None:
    assert rewritten(source) == expected


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Return line and text of each string that is no docstring; those of f-strings part by part."""
    tree = ast.parse(source)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


NAMED = re.compile(r"(?:^|(?:\bfrom|\bimport|-m)\s+)(runtime|codegen|cli)(?:\.\w|\s+import\b|$)")  # as a module
QUOTED = re.compile(r"""["'].*\b(?:runtime|codegen|cli)\b|\b(?:runtime|codegen|cli)\b.*["']""")  # worth parsing
ATTRIBUTE = {("aot/__init__.py", "runtime"), ("aot/runtime.py", "runtime")}  # `aot.runtime`, in checkout and wheel


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("codegen.llvm.object.worker", True),
        ("runtime", True),
        ("import sys; from codegen.llvm import build; build()", True),
        ("import cli", True),
        ("python -m codegen.tools", True),
        ("aot.runtime", False),
        ("another runtime", False),
        ("optimum-cli export onnx", False),
        ("the folder `runtime`", False),
        (".generation.batch", False),
    ],
)
def test_names_of_modules_are_found_in_strings(text: str, named: bool) -> None:
    assert bool(NAMED.search(text)) == named


def test_modules_are_named_by_imports_only() -> None:
    """A name in a string would not follow; `__name__` of a module does."""
    found: list[tuple[str, int, str]] = []
    for path in [*(p for name in ("aot", "codegen", "runtime") for p in (ROOT / name).rglob("*.py")), ROOT / "cli.py"]:
        name, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        given = strings(source) if QUOTED.search(source) else ()
        found += [(name, line, text) for line, text in given if NAMED.search(text) and (name, text) not in ATTRIBUTE]
    assert not found


def test_two_names_of_one_package() -> None:
    assert run("-c", BOTH_NAMES, cwd=ROOT, env=environment(ROOT)) == "No module named 'runtime.absent'\n"


def test_a_hidden_checkout_says_so(tmp_path: Path) -> None:
    add_project(tmp_path)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import aot"],
        cwd=tmp_path,
        env=environment(ROOT, Path(np.__file__).parents[1]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "hidden by another one; next: pip install" in done.stderr


@pytest.mark.slow
def test_a_project_with_the_same_names(tmp_path: Path) -> None:
    library, project = tmp_path / "library", tmp_path / "project"
    for name in ("aot", "codegen", "runtime"):
        shutil.copytree(ROOT / name, library / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "cli.py", library)
    lay_out(library)
    assert sorted(path.name for path in library.iterdir()) == ["aot", "runtime.py"]
    add_project(project)
    env = environment(library, Path(np.__file__).parents[1])
    assert run("-S", "main.py", DIGITS / "model.xml", DIGITS / "seven.npy", cwd=project, env=env) == "7 7 3\n"
    assert "compiled model" in run("-S", "-m", "aot", "info", "m.so", cwd=project, env=env)
    assert run("-S", "-c", BOTH_NAMES, cwd=tmp_path, env=env) == "No module named 'aot.runtime.absent'\n"


@pytest.mark.slow
def test_two_wheels_share_no_file(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHON": sys.executable}
    env.pop("PYTHONPATH", None)
    subprocess.run([ROOT / "scripts" / "wheels", tmp_path], check=True, env=env)
    [compiler], [wheel] = tmp_path.glob("aot-*.whl"), tmp_path.glob("aot_runtime-*.whl")
    assert wheel.stat().st_size < 125_000
    names, others = (set(zipfile.ZipFile(path).namelist()) for path in (wheel, compiler))
    assert not names & others  # no file has two owners
    assert all(name.startswith(("aot/runtime/", "aot_runtime-")) or name == "runtime.py" for name in names)
    assert all(name.startswith(("aot/", "aot-")) for name in others)
    assert {"aot/cli.py", "aot/codegen/llvm/model.h", "aot/py.typed"} <= others and "aot/runtime/py.typed" in names
    [metadata] = (name for name in others if name.endswith("METADATA"))
    needed = email.message_from_bytes(zipfile.ZipFile(compiler).read(metadata)).get_all("Requires-Dist") or []
    assert any(line.startswith("aot-runtime==") for line in needed)

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
