"""Mutants of PaddlePaddle's files: values in JSON, and bytes of programs of version 2 and of weights."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from tests.frontends.paddle.case import stored
from tests.frontends.paddle.cases import CASES
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import REALS, WORDS, changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.reduce import fewest
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

JSON, OLDER, WEIGHTS = "model.json", "model.pdmodel", "model.pdiparams"


@cache
def seeds() -> tuple[dict[str, bytes], ...]:
    """Both forms of the operations of the tests, and a network with weights."""
    found: list[dict[str, bytes]] = [weighted()]
    for case in CASES:
        kept = stored()[case.name]
        for suffix, name in (("json", JSON), ("pdmodel", OLDER)):
            if suffix in kept:
                found.append({name: b64decode(kept[suffix]["file"])})
    return tuple(found)


def weighted() -> dict[str, bytes]:
    """Return the files of x + w, with a weight of [2, 3]."""

    def typed(shape: Sequence[int]) -> dict[str, Any]:
        return {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, list(shape), "NCHW", [], 0]}

    attrs = {"name": ("0.a_str", "x"), "shape": ("1.a_intarray", [2, 3]), "dtype": ("1.a_dtype", "float32")}
    listed = [{"N": n, "AT": {"#": kind, "D": value}} for n, (kind, value) in attrs.items()]
    name = [{"N": "name", "AT": {"#": "0.a_str", "D": "y"}}]
    ops = [
        {"#": "p", "A": [0, 1, 1, "w"], "O": {"%": 1, "TT": typed([2, 3])}, "OA": [1, 0, 1]},
        {"#": "1.data", "A": listed, "I": [], "O": [{"%": 2, "TT": typed([2, 3])}]},
        {"#": "1.add", "A": [], "I": [{"%": 2}, {"%": 1}], "O": [{"%": 3, "TT": typed([2, 3])}]},
        {"#": "1.fetch", "A": name, "I": [{"%": 3}], "O": [{"%": 4, "TT": typed([2, 3])}]},
    ]
    block = {"#": "block_0", "args": [], "ops": ops}
    document = {
        "base_code": {"magic": "pir", "trainable": True, "version": 4},
        "program": {"regions": [{"#": "region_0", "blocks": [block]}]},
    }
    data = np.arange(6, dtype="<f4").tobytes()
    head = bytes(12) + bytes(4) + (6).to_bytes(4, "little") + b"\x08\x05\x10\x02\x10\x03"
    return {JSON: json.dumps(document).encode(), WEIGHTS: head + data}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a document with the key of each of its members."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _changed(d: Draw, text: bytes) -> bytes:
    """Return JSON with another number, text or member, or without one."""
    document = json.loads(text)
    holder, key = d.pick(list(_places(document)))
    old = holder[key]
    match d.integer(0, 5):
        case 0:
            del holder[key]
        case 1:
            holder[key] = d.pick([None, [], {}, True, "x"])
        case 2 if isinstance(holder, list):
            holder.insert(key, old)
        case 3 if isinstance(old, str):
            holder[key] = d.pick([*WORDS[:4], "1.conv2d", "1.reshape", "1.while", "0.split", "1.concat"])
        case 4:
            holder[key] = d.pick(REALS[:6])
        case _:
            holder[key] = number(d, old if isinstance(old, int) else 0)
    return json.dumps(document, default=str).encode()


class PaddleMutants:
    """Mutants of the operations of the tests."""

    name = "paddle"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        files = dict(d.pick(seeds()) if d.integer(0, 7) else seeds()[0])
        for change in drawn_changes(d):
            inner = random_draw(change)
            name = inner.pick(sorted(files))
            readable = name == JSON and _is_json(files[name])
            mutate = _changed if readable and inner.integer(0, 5) else changed_bytes
            files[name] = mutate(inner, files[name])
        return Case(files)

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Return the case with as few operations as still fail."""
        text = case.files.get(JSON, b"")
        if not _is_json(text):
            return case
        document = json.loads(text)
        try:
            block = document["program"]["regions"][0]["blocks"][0]
            ops = list(block["ops"])
        except (KeyError, IndexError, TypeError):
            return case

        def of(kept: Sequence[Any]) -> Case:
            block["ops"] = list(kept)
            return Case({**case.files, JSON: json.dumps(document).encode()}, case.facts)

        return of(fewest(ops, lambda kept: holds(of(kept))))


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
