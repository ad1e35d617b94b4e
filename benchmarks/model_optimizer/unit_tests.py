"""How many of Model Optimizer's own unit tests pass under our import names.

    python -m benchmarks.model_optimizer.unit_tests FOLDER [PATH ...] [--reasons N] [--list FILE]

FOLDER holds `unit_tests` of `tools/mo` of OpenVINO's sources up to release 2024.6, or of `model-optimizer` up to
2021.4, alone: Model Optimizer's own code beside it would be tested instead. PATH is a file or folder of tests below
`unit_tests/mo` or `unit_tests/extensions` (`graph`, `ops`); without one, AREAS. Each file is loaded like a file of an
extension folder: what it imports of Model Optimizer is this project's. `--list` writes each test with its outcome.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aot.extensions.modules import Modules
from aot.mo.names import exists, module

ROOTS = ("mo", "extensions")
AREAS = tuple(
    """graph utils front front/common front/common/partial_infer front/onnx front/tf front/tf/extractors front/caffe
    front/caffe/extractors middle middle/passes middle/passes/fusing back ops""".split()
)
PATTERN = re.compile(r"[Tt]est(_actual)?\.py$")
REASON = re.compile(r"^E\s+(\S.*)$", re.MULTILINE)


class _Names(MetaPathFinder, Loader):
    """Finds our modules where `unittest.mock.patch` imports them by Model Optimizer's names."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        root, _, rest = fullname.partition(".")
        return ModuleSpec(fullname, self, is_package=True) if root in ROOTS and exists(rest) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        root, _, rest = spec.name.partition(".")
        return module(root, rest)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _File(pytest.Module):
    """A file of tests that is imported under the names of its folder."""

    modules: Modules

    def _getobj(self) -> ModuleType:
        name = ".".join(self.path.relative_to(self.modules.folder).with_suffix("").parts)
        return self.modules.load(name)


class Counted:
    """A plug-in of pytest that loads files by `Modules` and counts outcomes by folder."""

    def __init__(self, folder: Path) -> None:
        self.modules = Modules(folder)
        self.outcomes: dict[str, Counter[str]] = {}
        self.tests: list[tuple[str, str, str]] = []  # name, outcome, reason
        self.reasons: Counter[str] = Counter()

    def pytest_collect_directory(self, path: Path, parent: Any) -> Any:
        return pytest.Dir.from_parent(parent, path=path)  # a package would be imported under its own name

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> Any:
        make: Any = _File
        made = make.from_parent(parent, path=module_path)
        made.modules = self.modules
        return made

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._count(report.nodeid, "not importable", str(report.longrepr))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._count(report.nodeid, report.outcome, "" if report.passed else str(report.longrepr))

    def _count(self, name: str, outcome: str, text: str) -> None:
        found: list[str] = REASON.findall(text)
        reason = found[0] if found else text.strip().rpartition("\n")[2]
        area = str(Path(name.partition("::")[0]).parent).partition("unit_tests/")[2]
        self.outcomes.setdefault(area, Counter())[outcome] += 1
        self.tests.append((name.partition("unit_tests/")[2], outcome, reason))
        if outcome not in ("passed", "skipped"):
            self.reasons[f"{outcome}: {reason[:150]}"] += 1


def files(root: Path, paths: list[str]) -> Iterator[str]:
    """Yield the files of tests that the paths name; a folder stands for its own files."""
    for path, below in itertools.product(paths, ROOTS):
        place = root / "unit_tests" / below / path
        found = [place] if place.is_file() else sorted(p for p in place.glob("*.py") if PATTERN.search(p.name))
        yield from map(str, found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run Model Optimizer's unit tests under our import names.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("paths", nargs="*", default=list(AREAS))
    parser.add_argument("--reasons", type=int, default=20)
    parser.add_argument("--list", type=Path)
    options = parser.parse_args()
    root = options.folder.resolve()
    sys.path.insert(0, str(root))
    sys.meta_path.append(_Names())
    counted = Counted(root)
    flags = "-q -p no:cacheprovider --no-header --no-summary -c /dev/null --tb=short -W ignore --assert=plain"
    whole_run = [*flags.split(), "--continue-on-collection-errors", f"--rootdir={root}", *files(root, options.paths)]
    pytest.main(whole_run, plugins=[counted])
    whole: Counter[str] = Counter()
    print()
    for area, found in sorted(counted.outcomes.items()):
        whole += found
        print(f"{area:24} {_row(found)}")
    print(f"{'all':24} {_row(whole)}")
    for reason, count in counted.reasons.most_common(options.reasons):
        print(f"{count:5}  {reason}")
    if options.list is not None:
        options.list.write_text("".join(f"{outcome}\t{name}\t{why}\n" for name, outcome, why in counted.tests))


def _row(found: Counter[str]) -> str:
    return ", ".join(f"{found[kind]} {kind}" for kind in ("passed", "failed", "skipped", "not importable"))


if __name__ == "__main__":
    main()
