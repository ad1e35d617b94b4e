"""Equal models and options give equal bytes wherever and whenever they are compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples" / "digits"
SOURCES = ("aot", "codegen", "runtime", "cli.py")
PLACES = (
    {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1", "USER": "one", "HOME": "/nowhere", "OMP_NUM_THREADS": "1"},
    {"TZ": "Pacific/Apia", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "12345", "USER": "other", "SOURCE_DATE_EPOCH": "1"},
)


@pytest.mark.slow
def test_two_checkouts_and_environments_give_the_same_bytes(tmp_path: Path) -> None:
    made: list[bytes] = []
    processors = sorted(os.sched_getaffinity(0))
    for n, place in enumerate(PLACES):
        checkout, work = tmp_path / f"checkout{n}" / ("deep/" * n), tmp_path / f"work{n}"
        for name in SOURCES:
            source, target = ROOT / name, checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            ignore = shutil.ignore_patterns("__pycache__")
            _ = shutil.copytree(source, target, ignore=ignore) if source.is_dir() else shutil.copy(source, target)
        shutil.copytree(DIGITS, work)
        os.utime(work / "model.xml", (n, n))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(checkout)} | place
        command = [sys.executable, "-m", "aot", "compile", "model.xml", "-o", "m.so", "--certify"]
        (work / "tmp").mkdir()
        environment |= {"TMPDIR": str(work / "tmp")}
        allowed = set(processors[: len(processors) if n else 1])
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=partial(os.sched_setaffinity, 0, allowed),
        )
        assert done.returncode == 0, done.stderr
        made.append((work / "m.so").read_bytes())
    assert made[0] == made[1]
    assert str(tmp_path).encode() not in made[0]
