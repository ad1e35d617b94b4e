"""A case: files and a few facts, and how it is kept.

found/NAME.model.xml  found/NAME.model.bin  found/NAME.json        {"kind": "ir", "expected": "refused 4", ...}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.fuzz.server import Outcome

FOLDER = "+"  # in names of files that are kept: a folder ends
FOUND = Path(__file__).parent / "found"


@dataclass(frozen=True)
class Case:
    """`files` by their names; `facts` can be written as JSON."""

    files: Mapping[str, bytes]
    facts: Mapping[str, object] = field(default_factory=dict[str, object])

    def write(self, folder: Path) -> None:
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def keep(self, folder: Path, name: str, kind: str, expected: str, why: str = "") -> None:
        """Write it so that `kept` can read it."""
        for file, data in self.files.items():
            (folder / f"{name}.{file.replace('/', FOLDER)}").write_bytes(data)
        facts = {"kind": kind, "expected": expected, "why": why, **self.facts}
        (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


@dataclass(frozen=True)
class Kept:
    name: str
    kind: str
    expected: str  # "fine", or "refused" and an exit code
    case: Case


def kept(folder: Path = FOUND) -> list[Kept]:
    """All cases of a folder."""
    found = list[Kept]()
    for path in sorted(p for p in folder.glob("*.json") if "." not in p.stem):  # a case may have such files itself
        facts = json.loads(path.read_text())
        name = path.stem
        beside = [p for p in folder.glob(f"{name}.*") if p != path]
        files = {p.name.removeprefix(f"{name}.").replace(FOLDER, "/"): p.read_bytes() for p in beside}
        rest = {k: v for k, v in facts.items() if k not in ("kind", "expected", "why")}
        found.append(Kept(name, facts["kind"], facts["expected"], Case(files, rest)))
    return found


class Fuzzer(Protocol):
    """One kind of cases."""

    name: str

    def draw(self, seed: int) -> Case:
        """The case of a seed, the same each time."""
        ...

    def judge(self, case: Case) -> Outcome:
        """Runs in a child."""
        ...

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """A smaller case for which `holds` is True, as it is for `case`."""
        ...
