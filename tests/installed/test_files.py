"""Files of the wheel: all of the checkout's, the same from an sdist, and each module that they name is there."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pytest

from tests.installed.place import ROOT, Installed, from_sdist

pytestmark = pytest.mark.slow

IMPORT = re.compile(r"^\s*(?:from|import) ((?:aot|codegen|runtime|cli)(?:\.\w+)*)(?= import|$| as )", re.MULTILINE)
NAME = re.compile(r"""(?:\bimport_module\(f?|\bfiles\(|": )["](aot(?:\.\w+)*)["]""")  # in calls, and in tables of names


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_all_files_are_there(installed: Installed) -> None:
    """Texts, headers, pages and code in LLVM's language as well as Python's."""
    wanted = {
        Path(folder, name).relative_to(ROOT).as_posix()
        for folder, _, names in os.walk(ROOT / "aot", followlinks=True)
        for name in names
        if "__pycache__" not in folder
    }
    found = {name for name in contents(installed.wheel) if ".dist-info/" not in name}
    assert found == wanted | {"runtime/__init__.py"}
    assert all((installed.package.parent / name).is_file() for name in found)


def test_an_sdist_makes_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    made, wanted = contents(from_sdist(installed.wheel.parent / "sources", tmp_path)), contents(installed.wheel)
    assert made == wanted


def test_each_module_that_is_named_is_there(installed: Installed) -> None:
    files = contents(installed.wheel)
    paths = [name.removesuffix(".py").removesuffix("/__init__") for name in files if name.endswith(".py")]
    modules = {path.replace("/", ".") for path in paths}
    for file, content in files.items():
        if not file.startswith("aot/") or not file.endswith(".py"):
            continue
        source = content.decode()
        named: set[str] = {*IMPORT.findall(source), *NAME.findall(source)}
        assert named <= modules, (file, named - modules)
