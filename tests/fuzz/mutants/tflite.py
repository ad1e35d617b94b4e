"""Mutants of TensorFlow Lite files: words of tables (offsets, lengths, numbers, shapes) and bytes are changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from tests.frontends.tflite import stored_cases
from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import EXTREME, changed_bytes, compile_and_run, drawn_changes
from tests.fuzz.reduce import fewest
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

FILE = "model.tflite"
WORD = 4
BYTES = 6  # of a mutant's seeds, one in so many changes any bytes


@cache
def seeds() -> tuple[bytes, ...]:
    """The files of the tests."""
    return tuple(case["file"].tobytes() for case in stored_cases().values())


def _word(d: Draw, data: bytearray) -> None:
    """A word of 4 bytes: a neighbour, an extreme number, another offset of the file, or another word of it."""
    at = d.integer(0, (len(data) - WORD) // WORD) * WORD
    old = int.from_bytes(data[at : at + WORD], "little")
    other = d.integer(0, (len(data) - WORD) // WORD) * WORD
    match d.integer(0, 3):
        case 0:
            new = old + d.pick([1, -1, 4, -4, 16])
        case 1:
            new = d.pick(EXTREME)
        case 2:
            new = other - at
        case _:
            new = int.from_bytes(data[other : other + WORD], "little")
    data[at : at + WORD] = (new & 0xFFFFFFFF).to_bytes(WORD, "little")


def _byte(d: Draw, data: bytearray) -> None:
    """A byte: types, flags, kinds of operations, places of fields in tables."""
    data[d.integer(0, len(data) - 1)] = d.pick([0, 1, 2, 3, 4, 5, 9, 17, 32, 127, 128, 255, d.integer(0, 255)])


def mutate(data: bytes, chosen: Sequence[int]) -> bytes:
    """The file with a mutation for each of the seeds; the identifier stays."""
    for seed in chosen:
        d, made = random_draw(seed), bytearray(data)
        if len(made) < 64:
            return data
        if not d.integer(0, BYTES):
            made = bytearray(changed_bytes(d, data))
        else:
            d.pick([_word, _word, _byte])(d, made)
        made[4:8] = b"TFL3"
        data = bytes(made)
    return data


class TfliteMutants:
    """Mutants of the files of the tests."""

    name = "tflite"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        data = seeds()[d.integer(0, len(seeds()) - 1)]
        return Case({FILE: mutate(data, drawn_changes(d))})

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Return the case with as many parts set to zero as still fail."""
        data = case.files[FILE]
        parts = [(at, data[at : at + 64]) for at in range(8, len(data), 64)]

        def without(left: Sequence[tuple[int, bytes]]) -> Case:
            made = bytearray(data[:8].ljust(len(data), b"\0"))
            for at, part in left:
                made[at : at + len(part)] = part
            return Case({FILE: bytes(made)}, case.facts)

        return without(fewest(parts, lambda left: holds(without(left))))
