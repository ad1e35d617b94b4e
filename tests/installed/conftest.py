"""One installation for all processes of the suite, and working folders whose modules must not be imported."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.installed.place import HIDES, Installed, build, copy_sources, install


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout, built and installed by the first process that asks."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            wheel = build("wheel", copy_sources(folder / "sources"), folder)
            install(wheel, folder / "environment")
            (folder / "whole").touch()
    [wheel] = folder.glob("*.whl")
    return Installed(wheel, folder / "environment")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A working folder with modules of its own that end the process which imports them."""
    for name in HIDES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__file__} was imported')\n")
    return tmp_path
