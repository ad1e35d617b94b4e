"""Mutants of GGUF: numbers of its header (counts, lengths, types, sizes, offsets, values), texts, entries and bytes."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from aot.compilation.driver import stages
from aot.runtime.errors import AotError
from tests.frontends.gguf.networks import Network
from tests.frontends.gguf.test_transformers import ARCHITECTURES, saved
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import ALLOWED, REALS, WORDS, changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.reduce import fewest
from tests.fuzz.server import STAGE, Outcome, refusal
from tests.properties.drawing import Draw, random_draw
from tests.text.talking import Talking

FILE = "model.gguf"
CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
SHOWN = 3  # elements of an array of which each is a place
BYTES = 8  # of a mutant's changes, one in so many is of any bytes
COMPILED = 32  # of the mutants, one in so many is compiled; others are read, and rewritten as before a compilation


@dataclass
class Places:
    """Places of a file's numbers (with their codes), texts and entries; `end`: that of the header."""

    numbers: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    texts: list[int] = field(default_factory=list[int])
    entries: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    end: int = 0


class _Walk:
    """Goes through a header; struct.error behind its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.found = data, 8, Places()
        self.found.numbers.append((4, "I"))
        tensors, entries = self.number("Q"), self.number("Q")
        for read in (
            *(self._entry for _ in range(min(entries, 100))),
            *(self._tensor for _ in range(min(tensors, 100))),
        ):
            begin = self.at
            read()
            self.found.entries.append((begin, self.at))
        self.found.end = self.at

    def number(self, code: str, *, noted: bool = True) -> int:
        found = struct.unpack_from(f"<{code}", self.data, self.at)[0]
        if noted:
            self.found.numbers.append((self.at, code))
        self.at += struct.calcsize(f"<{code}")
        return found

    def text(self, *, noted: bool = True) -> None:
        if noted:
            self.found.texts.append(self.at)
        self.at += self.number("Q", noted=noted)

    def _entry(self) -> None:
        self.text()
        self._value(self.number("I"), noted=True)

    def _value(self, kind: int, *, noted: bool) -> None:
        if kind == STRING:
            self.text(noted=noted)
        elif kind == ARRAY:
            inner, count = self.number("I", noted=noted), self.number("Q", noted=noted)
            for n in range(min(count, 1 << 12)):
                self._value(inner, noted=noted and n < SHOWN)
        else:
            self.number(CODES[kind], noted=noted)

    def _tensor(self) -> None:
        self.text()
        for _ in range(min(self.number("I"), 8)):
            self.number("Q")
        self.number("I")
        self.number("Q")


@cache
def seeds() -> tuple[bytes, ...]:
    """Small networks of all architectures, in several formats, and with a tokenizer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [saved(architecture, folder) for architecture in ARCHITECTURES]
        paths += [Network("llama", kind).write(folder / f"{kind}.gguf") for kind in ("Q4_0", "Q5_K", "Q6_K", "BF16")]
        paths.append(Talking("qwen2", "Q8_0").write(folder / "talking.gguf"))
        return tuple(path.read_bytes() for path in paths)


def _number(d: Draw, data: bytearray, places: Places) -> None:
    """A number: a neighbour, an extreme one, or another number of the file."""
    at, code = d.pick(places.numbers)
    if code in "fd":
        struct.pack_into(f"<{code}", data, at, d.pick(REALS))
        return
    size, other = struct.calcsize(code), d.pick(places.numbers)
    old = int.from_bytes(data[at : at + size], "little")
    new = (
        int.from_bytes(data[other[0] : other[0] + struct.calcsize(other[1])], "little") if d.flag() else number(d, old)
    )
    data[at : at + size] = (new & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _text(d: Draw, data: bytearray, places: Places) -> None:
    """A text, with its length: another one of the file, or a word."""
    at, other = d.pick(places.texts), d.pick(places.texts)
    size, long = (int.from_bytes(data[p : p + 8], "little") for p in (at, other))
    new = bytes(data[other + 8 : other + 8 + long]) if d.flag() else d.pick(WORDS).encode()
    data[at : at + 8 + size] = struct.pack("<Q", len(new)) + new


def _entry(d: Draw, data: bytearray, places: Places) -> None:
    """An entry of metadata or a tensor is missing, is there twice, or has the place of another one."""
    begin, end = d.pick(places.entries)
    part = bytes(data[begin:end])
    match d.integer(0, 2):
        case 0:
            del data[begin:end]
        case 1:
            data[begin:begin] = part
        case _:
            first, last = d.pick(places.entries)
            data[first:last] = part


def mutate(data: bytes, chosen: Sequence[int]) -> bytes:
    """The file with a mutation for each of the seeds; its first four bytes stay."""
    for seed in chosen:
        d, made = random_draw(seed), bytearray(data)
        try:
            places = _Walk(data).found
            if d.integer(0, BYTES):
                d.pick([_number, _number, _number, _text, _entry])(d, made, places)
            else:
                made[: places.end] = changed_bytes(d, data[: places.end])
        except (struct.error, KeyError, ValueError, IndexError, OverflowError):  # no header since the last mutation
            made = bytearray(changed_bytes(d, data))
        made[:4] = b"GGUF"
        data = bytes(made)
    return data


def read_only(case: Case) -> Outcome:
    """Read the file and rewrite its graph."""
    with tempfile.TemporaryDirectory() as name:
        case.write(Path(name))
        STAGE.enter("read")
        try:
            assert stages(Path(name) / FILE).optimized.nodes
        except AotError as error:
            found = refusal(error)
            allowed = found.code in ALLOWED or found.finding
            return found if allowed else Outcome("bug", found.text, found.place, found.code)
    return Outcome("fine")


class GgufMutants:
    """Mutants of small networks."""

    name = "gguf"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        data = seeds()[d.integer(0, len(seeds()) - 1)]
        return Case({FILE: mutate(data, drawn_changes(d))}, {"compiled": not seed % COMPILED})

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case) if case.facts.get("compiled", True) else read_only(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Return the case without the entries of which the fault needs none."""
        data = case.files[FILE]
        try:
            places = _Walk(data).found
        except (struct.error, KeyError, ValueError, OverflowError):
            return case
        parts = [data[begin:end] for begin, end in places.entries]

        def without(left: Sequence[bytes]) -> Case:
            made = b"".join((data[: places.entries[0][0]], *left, data[places.end :]))
            return Case({FILE: made}, case.facts)

        return without(fewest(parts, lambda left: holds(without(left)))) if parts and holds(without(parts)) else case
