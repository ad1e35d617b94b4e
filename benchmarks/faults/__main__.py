"""Puts faults into the project, one at a time, and runs the tests that touch the line until one fails.

    python -m benchmarks.faults record lines.db tests/opset tests/lowering     which tests touch which lines; none: all
    python -m benchmarks.faults run lines.db --count 150 --json found.json     the share that is found, and survivors

Faults are drawn by `--seed`, equally from the folders of `AREAS` or `--within`, from the lines that a recorded test
touches; equal sources give equal faults. Each is put into a copy of the project. A line that more than `--most` tests
touch is tried with so many of them, drawn by the same seed. A fault counts as found if a test fails, if the tests
cannot be collected, and if they do not end. To compare two suites, do both at both commits, each with
`--also-in` the other's checkout: then only lines that both have are drawn, in the same order.

A run that was interrupted, or ended by `--minutes`, goes on from the verdicts in its file of `--json`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

from benchmarks.faults import RECORD
from benchmarks.faults.kinds import Fault, faults_in

ROOT = Path(__file__).parents[2]
AREAS = ("aot/frontends", "aot/opset", "aot/passes", "aot/lowering", "codegen", "runtime")
SECONDS = 900  # after which tests count as endless

Lines = dict[str, dict[int, list[str]]]  # of a file: the tests that touch each line


def record(file: Path, tests: list[str]) -> None:
    """Run tests, in this process's environment, and write which lines each of them touches."""
    import coverage  # noqa: PLC0415 (of the extra dev)

    command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.faults.recording", "-p", "no:cacheprovider"]
    subprocess.run([*command, *tests], cwd=ROOT, env=os.environ | {RECORD: str(file.resolve())}, check=False)
    data = coverage.Coverage(str(file.resolve()))
    data.combine([str(file.resolve().parent)])
    data.save()


def lines_of(file: Path) -> Lines:
    """Read a record."""
    import coverage  # noqa: PLC0415 (of the extra dev)

    data = coverage.CoverageData(str(file))
    data.read()
    found: Lines = {}
    for path in sorted(data.measured_files()):
        lines = data.contexts_by_lineno(path)
        name = Path(path).relative_to(ROOT).as_posix()
        found[name] = {n: sorted(t for t in tests if t) for n, tests in lines.items() if any(tests)}
    return found


def chosen(lines: Lines, areas: Sequence[str], count: int, seed: int, other: Path | None = None) -> list[Fault]:
    """Draw faults from all areas in turn; with another checkout, those that it can have in the same lines, too."""
    by_area = defaultdict[str, list[Fault]](list)
    for area in areas:
        drawn: list[tuple[float, Fault]] = []
        for path in sorted(p for p in lines if p.startswith(area)):
            shared = None if other is None else {of_line(other, f) for f in faults_of(other, path)}
            faults = [f for f in faults_in(ROOT, path) if f.line in lines[path]]
            drawn += [(drawn_at(f, seed), f) for f in faults if shared is None or of_line(ROOT, f) in shared]
        by_area[area] = [fault for _, fault in sorted(drawn, key=lambda pair: pair[0])]
    turns = zip_longest(*by_area.values())
    return [found for row in turns for found in row if found is not None][:count]


def faults_of(root: Path, path: str) -> list[Fault]:
    """Return all faults of a file, none if the checkout does not have it."""
    return list(faults_in(root, path)) if (root / path).exists() else []


def of_line(root: Path, fault: Fault) -> tuple[str, ...]:
    """Return what makes two faults equal: their file, kind, change, and the text of the line."""
    return (fault.path, fault.kind, fault.old, fault.text, source_lines(root / fault.path)[fault.line - 1].strip())


@lru_cache(maxsize=16)
def source_lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def drawn_at(fault: Fault, seed: int) -> float:
    """Return where a fault lies in the order of the draw, which its text and the seed alone decide."""
    return random.Random(f"{seed} {of_line(ROOT, fault)}").random()


def verdict(fault: Fault, tests: list[str], copy: Path, turn: int) -> str:
    """Put the fault into the copy and run the tests; return `found` with the test that failed first, or `survived`.

    `turn` is another number for each fault: modules that Python has compiled are known by the time of their source.
    """
    file = copy / fault.path
    before = fault.put(copy)
    os.utime(file, (2 * turn, 2 * turn))
    names = copy / "tests.txt"
    names.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", f"@{names}"]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "found: the tests do not end"
    finally:
        file.write_bytes(before)
        os.utime(file, (2 * turn + 1, 2 * turn + 1))
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "survived" if done.returncode == 0 else f"found: {failed[0] if failed else 'nothing runs'}"


def copied(folder: Path) -> Path:
    """Copy the files of the project into a folder below this one."""
    copy = folder / "project"
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    return copy


def run(lines: Lines, faults: Sequence[Fault], seed: int, most: int, out: Path | None, seconds: float) -> None:
    """Try the faults that have no verdict in `out`, print each verdict, and the share found at the end."""
    results: list[dict[str, object]] = json.loads(out.read_text()) if out is not None and out.exists() else []
    known = {str(result["fault"]) for result in results}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for turn, fault in enumerate(faults):
            if str(fault) in known or time.monotonic() - begin > seconds:
                continue
            tests = lines[fault.path][fault.line]
            tried = sorted(random.Random(seed).sample(tests, min(most, len(tests))))
            said = verdict(fault, tried, copy, turn)
            results.append({"fault": str(fault), **asdict(fault), "verdict": said, "tests": len(tests)})
            print(f"{said}\n    {fault}", flush=True)
            if out is not None:
                out.write_text(json.dumps(results, indent=1) + "\n")
    found = sum(str(r["verdict"]).startswith("found") for r in results)
    print(f"{found} of {len(results)} found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "run"])
    parser.add_argument("file", type=Path)
    parser.add_argument("tests", nargs="*", help="folders or files of tests to record")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=100, help="tests for each fault")
    parser.add_argument("--within", nargs="+", default=[f"{area}/" for area in AREAS], help="beginnings of paths")
    parser.add_argument("--also-in", type=Path, metavar="CHECKOUT", help="only faults whose line stands there, too")
    parser.add_argument("--json", type=Path, help="the verdicts, and those of the run before")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no other fault is tried")
    given = parser.parse_args()
    if given.what == "record":
        record(given.file, given.tests)
    else:
        lines = lines_of(given.file)
        faults = chosen(lines, given.within, given.count, given.seed, given.also_in)
        run(lines, faults, given.seed, given.most, given.json, 60 * given.minutes)


if __name__ == "__main__":
    main()
