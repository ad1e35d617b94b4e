"""Faults that `benchmarks.faults` puts into the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults.__main__ import chosen
from benchmarks.faults.kinds import faults_in

FILES = ("aot/opset/movement/slicing.py", "codegen/nest/legality.py")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y = a + b * 2", ["y = (a) - (b * 2)", "y = a + (b) + (2)"]),
        ("y = 'got ' + text", []),
        ("if n < 4: pass", ["if (not (n < 4)): pass", "if (n) <= (4): pass", "if n < 5: pass"]),
        ("if not a: raise E", ["if False: raise E"]),
        ("y = a and b or c", ["y = ((a and b) and c)", "y = (a or b) or c"]),
        ("y = max(é, 1)", ["y = min(é, 1)"]),
        ("y = x[1:]", ["y = x[2:]"]),
        ("for i in range(n): pass", ["for i in range(n + 1): pass"]),
        ("y = f(x, axis=1)", ["y = f(x, axis=0)"]),
        ("y = f(x, pads=node.pads)", ["y = f(x)"]),
    ],
)
def test_each_line_has_the_faults_of_its_kinds(line: str, expected: list[str], tmp_path: Path) -> None:
    found: list[str] = []
    file = tmp_path / "m.py"
    file.write_text(f"# ü\n{line}\n")
    for fault in faults_in(tmp_path, "m.py"):
        before = fault.put(tmp_path)
        found.append(file.read_text().splitlines()[1])
        file.write_bytes(before)
    assert sorted(found) == sorted(expected)


def test_equal_seeds_draw_equal_faults() -> None:
    lines = {path: {n: ["a test"] for n in range(200)} for path in FILES}
    areas = ["aot/opset/", "codegen/"]
    first, again, other = (chosen(lines, areas, 20, seed) for seed in (1, 1, 2))
    assert first == again != other and len(first) == 20
    assert {f.path for f in first} == {*FILES}


def test_faults_of_two_checkouts_are_in_lines_of_both(tmp_path: Path) -> None:
    lines = {FILES[0]: {n: ["a test"] for n in range(1, 500)}}
    source = Path(FILES[0]).read_text().splitlines()
    other = tmp_path / FILES[0]
    other.parent.mkdir(parents=True)
    other.write_text("# another line before\n" + "\n".join(source).replace("min(", "max("))
    shared = chosen(lines, ["aot/opset/"], 10_000, 1, tmp_path)
    alone = chosen(lines, ["aot/opset/"], 10_000, 1)
    assert 0 < len(shared) < len(alone)
    assert not any("min(" in source[fault.line - 1] for fault in shared)
    assert shared == [fault for fault in alone if fault in shared]
