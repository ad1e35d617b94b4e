"""Hostile inference: compiled models with varying sizes and operands are called with what does not fit."""

from __future__ import annotations

import mmap
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.runtime.errors import AotError, InternalError
from aot.runtime.model import CompiledModel
from tests.fuzz.case import Case
from tests.fuzz.graphs.growing import Growing, Refused
from tests.fuzz.graphs.ir import ir_of, random_graph
from tests.fuzz.judging.bounds import Expected, expectations
from tests.fuzz.judging.comparing import FED, compiled, read, unpacked
from tests.fuzz.memory import fenced
from tests.fuzz.mutants.changes import EXTREME, REALS
from tests.fuzz.seeds import MAKERS
from tests.fuzz.server import REFERENCE, STAGE, Outcome, refusal
from tests.properties.drawing import Draw, random_draw

CALLS = 16
LOOPS_END = 10.0  # seconds


class EndlessError(Exception):
    """A loop whose number of iterations is an input ran for `LOOPS_END`: only loops can be interrupted."""


def _stop(number: int, frame: object) -> None:
    raise EndlessError


def operands_as_inputs(d: Draw) -> Growing:
    """One operation whose sizes vary and whose operands, or some of them, are inputs."""
    for _ in range(30):
        drawn = d.pick(MAKERS)(d)
        made = Growing(d, Graph("operands"), varying=True)
        constants = d.flag()
        try:
            inputs = [
                None
                if a is None
                else made.constant(a)
                if a.dtype == object or (k in drawn.fixed and constants and d.flag())
                else made.parameter(a)
                for k, a in enumerate(drawn.arrays)
            ]
            made.add(drawn.op, *inputs)
        except Refused:
            continue
        made.finish()
        return made
    return random_graph(d, True, 3)


def hostile(d: Draw, inputs: Sequence[Array]) -> list[object]:
    """The inputs with one or two of them changed."""
    made: list[object] = list(inputs)
    if not made:
        return made
    for _ in range(d.pick([1, 1, 2])):
        k = d.integer(0, len(made) - 1)
        if isinstance(array := made[k], np.ndarray):
            made[k] = _changed(d, array)
    if not d.integer(0, 11):
        del made[d.integer(0, len(made) - 1)]
    return made


def _changed(d: Draw, array: Array) -> object:
    match d.integer(0, 9):
        case 0 | 1 | 2:
            return _other_values(d, array)
        case 3 | 4 | 5 | 6:
            return _other_shape(d, array)
        case 7 if array.dtype.kind not in "OU":  # strings are no numbers
            return array.astype(d.pick([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16]))
        case 8:
            return d.pick([None, 3, "x", [], array.tolist(), object(), array.astype(object), np.array(["a"])])
        case _:
            wide = np.repeat(array, 2, -1)[..., ::2] if array.ndim else array
            return d.pick([wide, array[::-1] if array.ndim else array, np.asfortranarray(array)])


def _other_values(d: Draw, array: Array) -> Array:
    made = array.copy()
    if not made.size or made.dtype == np.bool_:
        return ~made if made.dtype == np.bool_ else made
    for _ in range(d.integer(1, 3)):
        at = d.integer(0, made.size - 1)
        if made.dtype.kind in "iu":
            info = np.iinfo(made.dtype)
            old = int(made.flat[at])
            value = d.pick([old + 1, old - 1, -old, old + 2, d.pick(EXTREME), info.max, info.min])
            made.flat[at] = np.clip(value, info.min, info.max)
        else:
            with np.errstate(all="ignore"):
                made.flat[at] = d.pick(REALS)
    return made


def _other_shape(d: Draw, array: Array) -> Array:
    """A dimension longer, shorter, empty or doubled; one more or one fewer of them."""
    kind = d.integer(0, 5)
    if kind == 0 or not array.ndim:
        return array[None]
    axis = d.integer(0, array.ndim - 1)
    n = array.shape[axis]
    match kind:
        case 1:
            return array[(slice(None),) * axis + (0,)] if n else array[None]
        case 2:
            return np.take(array, range(max(n - 1, 0)), axis)
        case 3:
            return np.take(array, [], axis).astype(array.dtype)
        case _:
            more = n + d.pick([1, 1, 2, n, 61])
            return np.take(array, np.arange(more) % n, axis) if n else array


def _expected(path: Path, given: Sequence[object], right: Sequence[Array]) -> Sequence[Expected] | None:
    """Return the results of the references; None if they refuse the inputs, or if results are not comparable.

    Floats with other values may be outside of an operation's domain, which nothing defines: infinities where weights of
    zero may be left out, sizes of images below zero.
    """
    arrays = [x for x in given if isinstance(x, np.ndarray) and x.dtype != object]
    if len(arrays) != len(right):
        return None
    for x, y in zip(arrays, right, strict=True):
        if x.dtype.kind in "fV" and x.shape == y.shape and x.tobytes() != y.tobytes():
            return None
    try:
        return expectations(read(path), arrays)
    except (AotError, MemoryError, OverflowError):
        return None


def _seeds(case: Case) -> list[int]:
    found = case.facts["calls"]
    assert isinstance(found, list)
    return found


def judge_calls(case: Case) -> Outcome:
    """Each call gives a proper error, or what the references give; nothing outside of inputs is read."""
    with tempfile.TemporaryDirectory() as name:
        case.write(Path(name))
        path = Path(name) / "model.xml"
        graph = read(path)
        inputs = unpacked(case.files[FED], graph)
        model = compiled(path)
        if isinstance(model, Outcome):
            return model
        for seed in _seeds(case):
            given = hostile(random_draw(seed), inputs)
            found = _call(model, path, given, inputs)
            if found.finding:
                return Outcome(found.kind, f"call {seed}: {_text(given)}: {found.text}", found.place, found.code)
    return Outcome("fine")


def _text(given: Sequence[object]) -> str:
    arrays = [x if isinstance(x, np.ndarray) else np.array(x, object) for x in given]
    return ", ".join(f"{x.dtype}{list(x.shape)}{x.tolist() if x.size < 9 else ''}" for x in arrays)


def _call(model: CompiledModel, path: Path, given: Sequence[object], right: Sequence[Array]) -> Outcome:
    STAGE.enter("infer")
    kept: list[mmap.mmap] = []
    placed = [fenced(x, kept) if isinstance(x, np.ndarray) else x for x in given]
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, LOOPS_END)
    try:
        result = model(placed)
    except EndlessError:
        return Outcome("refused")
    except InternalError as error:
        return refusal(error)
    except AotError:
        return Outcome("refused")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    STAGE.enter(REFERENCE)
    expected = _expected(path, given, right)
    for k, e in enumerate(expected or ()):
        if not e.value.size and np.asarray(result[k]).size == 0 and np.ndim(result[k]) == e.value.ndim:
            continue  # -1 in a shape without elements may be any size
        if difference := e.differs(np.asarray(result[k])):
            return Outcome("wrong", f"result {k}: {difference}", "result of a hostile call")
    return Outcome("fine")


class Calls:
    """Hostile inference."""

    name = "calls"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        made = operands_as_inputs(d) if d.integer(0, 3) else random_graph(d, True, d.integer(1, 4))
        case = ir_of(made)
        return Case(case.files, {"calls": list(d.ints(CALLS, 0, 1 << 30))})

    def judge(self, case: Case) -> Outcome:
        return judge_calls(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """One call."""
        for seed in _seeds(case):
            small = Case(case.files, {"calls": [seed]})
            if holds(small):
                return small
        return case
