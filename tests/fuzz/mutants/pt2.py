"""Mutants of exported programs of PyTorch: values, fields and edges of the JSON, entries of the archive, and bytes."""

from __future__ import annotations

import copy
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from tests.frontends.pt2.archives import MODEL, PLACES, entries, packed
from tests.frontends.pt2.test_operations import FAMILIES, contents
from tests.frontends.pt2.test_programs import FILE as PROGRAMS
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import REALS, WORDS, changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.reduce import fewest
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

FILE = "model.pt2"
Entries = dict[str, bytes]
Place = tuple[Any, ...]  # keys and indices from the root of a JSON value
CHOICES = 12  # of a mutant's seeds, one in so many changes bytes of the file, one an entry, one the weights
JSONS = (MODEL, *PLACES.values())


@cache
def seeds() -> tuple[Entries, ...]:
    """The programs of the tests: single operations with fixed and with open sizes, modules."""
    found: list[Entries] = []
    for path in (*FAMILIES, PROGRAMS):
        data, cases = contents(path)
        for made in (case[kind] for case in cases for kind in ("fixed", "open", "program") if kind in case):
            stored = {name: data[place : place + count] for name, (place, count) in made["data"].items()}
            found.append(entries(made["program"], made["configs"], stored))
    return tuple(found)


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """All places in a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*place, key)
        yield from places(inner, (*place, key))


def at(root: Any, place: Place) -> Any:
    for key in place:
        root = root[key]
    return root


def _value(d: Draw, root: Any, place: Place) -> None:
    """A value of the same kind, or of another one."""
    old = at(root, place)
    if isinstance(old, bool):
        new: Any = d.pick([not old, None, 0])
    elif isinstance(old, int):
        new = d.pick([number(d, old), number(d, old), 0.5, str(old)])
    elif isinstance(old, float):
        new = d.pick([*REALS, "NaN", "Infinity"])
    elif isinstance(old, str):
        new = d.pick([*WORDS, f"{old}_1", old[:-1], "s77", "u0", "2*s77", "Max(1, s77 - 3)", "as_int", "as_tensor"])
    else:
        new = d.pick([None, [], {}, old, [old], {"as_none": True}, {"as_int": number(d)}])
    at(root, place[:-1])[place[-1]] = new


def _moved(d: Draw, root: Any, place: Place) -> None:
    """The value of another place: another edge, shape, argument or node."""
    others = list(places(root))
    alike = [p for p in others if p[-1] == place[-1] and p != place]
    other = d.pick(alike or others)
    at(root, place[:-1])[place[-1]] = copy.deepcopy(at(root, other))


def _removed(d: Draw, root: Any, place: Place) -> None:
    """A field or an element is missing."""
    del d
    del at(root, place[:-1])[place[-1]]


def _doubled(d: Draw, root: Any, place: Place) -> None:
    """An element of a list is there twice, or a field has another name."""
    holder = at(root, place[:-1])
    if isinstance(holder, list):
        holder.insert(d.integer(0, len(holder)), copy.deepcopy(holder[place[-1]]))
    else:
        holder[d.pick([*WORDS, "as_tensors", "as_ints", "as_float", "as_string"])] = holder.pop(place[-1])


def _target(d: Draw, root: Any, place: Place) -> None:
    """A node of another operation of the tests, with the same arguments."""
    del place
    held = [p for p in places(root) if p[-1] == "target"]
    if held:
        other = json.loads(d.pick(seeds())[MODEL])
        at(root, (p := d.pick(held))[:-1])[p[-1]] = other["graph_module"]["graph"]["nodes"][0]["target"]


MUTATIONS: tuple[Callable[[Draw, Any, Place], None], ...] = (_value, _value, _value, _moved, _moved, _removed, _doubled)


def _json(d: Draw, files: Entries, name: str) -> None:
    """A mutation of the JSON of an entry, at any place; the deep ones are the most."""
    root = json.loads(files[name])
    held = list(places(root))
    if held:
        d.pick([*MUTATIONS, _target] if name == MODEL else MUTATIONS)(d, root, d.pick(held))
        files[name] = json.dumps(root).encode()


def _entry(d: Draw, files: Entries) -> None:
    """An entry is missing, has another name, the bytes of another one, or other bytes."""
    name = d.pick(sorted(files))
    match d.integer(0, 4):
        case 0:
            del files[name]
        case 1:
            files[d.pick(["../x", "models/b.json", name.upper(), "data/weights/weight_1", "byteorder", "x/" * 300])] = (
                files.pop(name)
            )
        case 2:
            files[name] = files[d.pick(sorted(files))]
        case 3:
            files[name] = files[name] * d.pick([2, 1000]) if len(files[name]) < 1 << 16 else b""
        case _:
            files[name] = changed_bytes(d, files[name])


def mutate(files: Entries, chosen: Sequence[int]) -> bytes:
    """An archive with a mutation for each of the seeds; those of its bytes come last."""
    files, raw = dict(files), list[Draw]()
    for seed in chosen:
        d = random_draw(seed)
        readable = [n for n in JSONS if n in files]
        choice = d.integer(0, CHOICES)
        try:
            if choice == 0 or not files:
                raw.append(d)
            elif choice == 1 or not readable:
                _entry(d, files)
            else:
                _json(d, files, readable[-1] if choice == 2 else readable[0])
        except (ValueError, RecursionError):  # an entry before it is no JSON any more
            _entry(d, files)
    packing = zipfile.ZIP_DEFLATED if chosen and chosen[0] % 4 == 0 else zipfile.ZIP_STORED
    data = packed(files, compression=packing)
    for d in raw:
        data = changed_bytes(d, data)
    return data


class Pt2Mutants:
    """Mutants of the programs of the tests."""

    name = "pt2"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        files = seeds()[d.integer(0, len(seeds()) - 1)]
        return Case({FILE: mutate(files, drawn_changes(d))})

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Remove the fields and elements of the program that the fault does not need."""
        try:
            with zipfile.ZipFile(io.BytesIO(case.files[FILE])) as archive:
                files = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
            root = json.loads(files[MODEL])
        except (ValueError, KeyError, OSError, RecursionError, zipfile.BadZipFile, zlib.error):
            return case

        def without(left: Sequence[Place]) -> Case:
            made = json.dumps(_kept(root, frozenset(left))).encode()
            return Case({FILE: packed(files | {MODEL: made})}, case.facts)

        atoms = list(places(root))
        return without(fewest(atoms, lambda left: holds(without(left)))) if holds(without(atoms)) else case


def _kept(value: Any, left: frozenset[Place], place: Place = ()) -> Any:
    """A copy with the places in `left`."""
    if isinstance(value, dict):
        return {k: _kept(v, left, (*place, k)) for k, v in value.items() if (*place, k) in left}
    if isinstance(value, list):
        return [_kept(v, left, (*place, i)) for i, v in enumerate(value) if (*place, i) in left]
    return value
