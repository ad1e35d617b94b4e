"""Runs the unit tests of an older Model Optimizer with an installed one, and writes which of them pass.

    python benchmarks/model_optimizer/ask_unit_tests.py FOLDER FILE

Run by a Python with `openvino-dev`, pytest and `generator`. FOLDER holds `unit_tests` of release 2021.4, alone; the
names `mo` and `extensions` in it lead to `openvino.tools.mo`. FILE gets each test with its outcome, as `--list` of
`benchmarks.model_optimizer.unit_tests` writes it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = "openvino.tools.mo"
WITHOUT = ("kaldi", "mxnet")  # their readers are another matter


class _Names(MetaPathFinder, Loader):
    """Finds the modules of an installed Model Optimizer by the names of 2021."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        first, _, rest = fullname.partition(".")
        if first not in ("mo", "extensions"):
            return None
        try:
            found = find_spec(f"{ROOT}.{rest}" if rest else ROOT)
        except ModuleNotFoundError:
            return None
        return None if found is None else ModuleSpec(fullname, self, origin=found.name, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(str(spec.origin))

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Outcomes:
    """A plug-in of pytest that keeps the outcome of each test."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._keep(report, "not importable")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._keep(report, report.outcome)

    def _keep(self, report: Any, outcome: str) -> None:
        name = " ".join(report.nodeid.partition("unit_tests/")[2].split())
        why = "" if report.passed else str(report.longrepr).strip().rpartition("\n")[2]
        self.lines.append(f"{outcome}\t{name}\t{why}\n")


def main() -> None:
    folder, file = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, _Names())
    outcomes = _Outcomes()
    tests = folder / "unit_tests"
    ignored = [f"--ignore={tests / root / 'front' / name}" for root in ("mo", "extensions") for name in WITHOUT]
    flags = "-q -p no:cacheprovider -c /dev/null --tb=line -W ignore --continue-on-collection-errors".split()
    patterns = "python_files=*_test.py *_test_actual.py *Test.py"
    pytest.main([*flags, "-o", patterns, f"--rootdir={folder}", *ignored, str(tests)], plugins=[outcomes])
    file.write_text("".join(outcomes.lines))


if __name__ == "__main__":
    main()
