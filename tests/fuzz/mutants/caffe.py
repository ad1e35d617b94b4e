"""Mutants of Caffe's files: numbers, fields and types of layers in the text are changed, and bytes of the weights."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tests.frontends.caffe.cases import CASES
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import REALS, WORDS, changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.reduce import fewest
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

TEXT, WEIGHTS = "model.prototxt", "model.caffemodel"
VALUE, FIELD, TYPE = re.compile(r"(?<=: )[-\w.]+"), re.compile(r"\w+: \S+"), re.compile(r'(?<=type: ")\w+(?=")')


@cache
def seeds() -> tuple[dict[str, bytes], ...]:
    """Both files of each layer of the tests."""
    found: list[dict[str, bytes]] = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = case.write(Path(folder))
            found.append({TEXT: path.with_suffix(".prototxt").read_bytes(), WEIGHTS: path.read_bytes()})
    return tuple(found)


def _changed(d: Draw, text: str) -> str:
    """Return the text with another number, without a field, with one twice, or with another type of layer."""
    at = d.pick([VALUE, VALUE, FIELD, FIELD, TYPE])
    places = list(at.finditer(text))
    if not places:
        return text
    place = d.pick(places)
    if at is TYPE:
        new = d.pick(CASES).kind
    elif at is FIELD:
        new = d.pick(["", f"{place[0]} {place[0]}"])
    else:
        new = str(d.pick([number(d), *REALS[:4], *WORDS[:4]]))
    return text[: place.start()] + new + text[place.end() :]


class CaffeMutants:
    """Mutants of the layers of the tests."""

    name = "caffe"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        files = dict(d.pick(seeds()))
        for change in drawn_changes(d):
            inner = random_draw(change)
            if inner.integer(0, 5):
                files[TEXT] = _changed(inner, files[TEXT].decode()).encode()
            else:
                files[WEIGHTS] = changed_bytes(inner, files[WEIGHTS])
        return Case(files)

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Return the case with as few lines as still fail."""

        def of(lines: Sequence[str]) -> Case:
            return Case({**case.files, TEXT: "\n".join(lines).encode()}, case.facts)

        return of(fewest(case.files[TEXT].decode().split("\n"), lambda lines: holds(of(lines))))
