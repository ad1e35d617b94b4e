"""Mutations of bytes and of numbers that both kinds of files share, and what a mutant is judged by."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path

import numpy as np

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.search.examples import example_inputs
from aot.runtime.errors import AotError, InternalError
from aot.runtime.loading.manifest import Dim
from tests.fuzz.case import Case
from tests.fuzz.server import STAGE, Outcome, refusal
from tests.properties.drawing import Draw, random_draw

EXTREME = (
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    8,
    16,
    63,
    64,
    127,
    128,
    255,
    256,
    1000,
    65535,
    65536,
    10**6,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32,
    2**32 + 1,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
)
WORDS = ("", "x", "true", "none", "f32", "i64", "u4", "boolean", "string", "same_upper", "numpy", "é\u202e", "a" * 5000)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e38, -1e38, float("inf"), float("-inf"), float("nan"))
MODELS = (
    "model.xml",
    "model.onnx",
    "model.pb",
    "model.meta",
    "saved_model.pb",
    "model.tflite",
    "model.prototxt",
    "model.pt2",
    "model.gguf",
    "model.json",
    "model.pdmodel",
)
ALLOWED = (3, 4, 6)  # exit codes of a refusal
MAX_ELEMENTS = 1 << 26


def drawn_changes(d: Draw) -> list[int]:
    """Return a seed for each of the 1 to 5 changes of a mutant."""
    return d.ints(d.pick([1, 1, 2, 3, 5]), 0, 1 << 30)


def number(d: Draw, old: int = 0) -> int:
    """A neighbour of `old`, or an extreme one."""
    return d.pick([old + 1, old - 1, -old, old * 2]) if d.flag() else d.pick(EXTREME)


def changed_bytes(d: Draw, data: bytes) -> bytes:
    """A few bytes set, a piece removed, doubled or moved, or the end cut off."""
    if not data:
        return bytes(d.ints(d.integer(1, 9), 0, 255))
    made, at = bytearray(data), d.integer(0, len(data) - 1)
    size = d.integer(1, d.pick([1, 4, 16, 256]))
    match d.integer(0, 4):
        case 0:
            for _ in range(d.integer(1, 4)):
                made[d.integer(0, len(made) - 1)] = d.pick([0, 255, 127, 128, d.integer(0, 255)])
        case 1:
            del made[at : at + size]
        case 2:
            made[at:at] = made[at : at + size] * d.integer(1, 3)
        case 3:
            part = made[at : at + size]
            del made[at : at + size]
            to = d.integer(0, len(made))
            made[to:to] = part
        case _:
            del made[at:]
    return bytes(made)


def compile_and_run(case: Case) -> Outcome:
    """`fine` if it compiles and runs, `refused` if the file or its inference is refused with a proper class."""
    with tempfile.TemporaryDirectory() as name:
        case.write(Path(name))
        path = next(Path(name) / f for f in MODELS if f in case.files)
        STAGE.enter("compile")
        try:
            model = in_memory(stages(path).built, 1)
        except AotError as error:
            found = refusal(error)
            allowed = found.code in ALLOWED
            return found if allowed or found.finding else Outcome("bug", found.text, found.place, found.code)
        STAGE.enter("infer")
        sizes = [[max(1, n.low) if isinstance(n, Dim) else n for n in i.shape] for i in model.inputs]
        if sum(map(prod, sizes)) > MAX_ELEMENTS:
            return Outcome("fine", "inputs too large to make up")
        inputs = example_inputs(model.inputs)
        try:
            result = model(inputs)
            for k in range(len(model.outputs)):
                np.asarray(result[k]).tobytes()  # reads all of it
        except InternalError:
            raise
        except AotError as error:  # made-up values may be none that the model takes
            return refusal(error)
    return Outcome("fine")


Mutation = Callable[[Draw], None]


def apply_seeds(seeds: Sequence[int], mutate: Mutation) -> None:
    """A mutation for each seed: one does not depend on which others are applied."""
    for seed in seeds:
        mutate(random_draw(seed))
