"""The sources that are packed, and the environment into which a wheel is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKED = "aot codegen runtime scripts/runtime cli.py pyproject.toml MANIFEST.in README.md LICENSE".split()
SUITE = Path(pytest.__file__).parents[1]  # packages of this suite; its editable installation is found by a .pth
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2])"
HIDES = ("codegen", "runtime", "cli")  # names that a project may have for itself


@dataclass(frozen=True)
class Installed:
    """An installed copy; commands run without PYTHONPATH, and must write nothing to standard error."""

    wheel: Path
    folder: Path  # of the virtual environment

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def package(self) -> Path:
        [found] = self.folder.glob("lib/python3*/site-packages/aot")
        return found

    def aot(self, *args: object, cwd: Path, **variables: str) -> str:
        """Run the console script; return its standard output."""
        return silent(self.folder / "bin" / "aot", *args, cwd=cwd, **variables)

    def run(self, *args: object, cwd: Path, **variables: str) -> str:
        return silent(self.python, *args, cwd=cwd, **variables)


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of this process without what changes how Python starts."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AOT_"))} | variables


def silent(*command: object, cwd: Path, **variables: str) -> str:
    """Run a command that succeeds and writes nothing to standard error; return its standard output."""
    given = [str(word) for word in command]
    done = subprocess.run(given, cwd=cwd, env=environment(**variables), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), (given, done.stdout, done.stderr)
    return done.stdout


def copy_sources(target: Path) -> Path:
    """Copy what is packed, without what tools leave in a checkout."""
    for name in PACKED:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target / name)
    return target


def build(kind: str, sources: Path, output: Path) -> Path:
    """Build a `wheel` or an `sdist` with the suite's setuptools, as pip does in an environment of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", BUILD, kind, str(output)], cwd=sources, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [made] = output.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def from_sdist(sources: Path, folder: Path) -> Path:
    """Build a wheel from an sdist, in `folder`: the way of `pip install aot-0.1.0.tar.gz`."""
    with tarfile.open(build("sdist", sources, folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    [unpacked] = (folder / "unpacked").iterdir()
    return build("wheel", unpacked, folder)


def install(wheel: Path, folder: Path) -> Installed:
    """Install a wheel into a new virtual environment, which finds its dependencies among the suite's packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    made = Installed(wheel, folder)
    pip = [sys.executable, "-m", "pip", "--python", made.python, "install", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--quiet", "--disable-pip-version-check", wheel], check=True)
    # .pth files that lie in a folder which a .pth file adds are not read, so the checkout stays hidden
    made.package.with_name("suite.pth").write_text(f"{SUITE}\n", encoding="utf-8")
    return made
