"""Run compiled code on operands with absurd sizes and indices, each in its own process: a crash is a result.

Each call runs twice, with other bytes around its inputs: results that differ were read outside of the inputs.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot.ir.types import Array
from aot.runtime.errors import AotError, InternalError

Call = Callable[[Sequence[Array]], Sequence[Array]]
ROOM = 1 << 30  # bytes that a child may map besides what its parent has: more is refused to it, as on a small machine
SECONDS = 2.0  # of processor time that compiled code may take for one feed
ORACLE_SECONDS = 0.2  # that an oracle may take, which takes milliseconds, but for 2^31 rows in Python: those are ended
FAR, LEAST = 2**63 - 1, -(2**63)
INTEGERS = (-1, 0, 1, 2, 3, 7, -2, -9, 1 << 31, -(1 << 31), 1 << 40, -(1 << 40), FAR, FAR - 1, LEAST, LEAST + 1)
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.3, 2.7, -1e30, 1e30)
AROUND = (0x3F, 0xC1)  # bytes: two small floats, two integers that are no size
MARGIN = 256


@dataclass(frozen=True)
class Outcome:
    """Outcome of one call: `results`, or the `error`, or the `signal` that ended the process."""

    results: tuple[Array, ...] | None = None
    error: str = ""
    bug: bool = False  # the error is none of the user's
    signal: int = 0


def outcomes(call: Call, feeds: Sequence[Sequence[Array]], seconds: float = SECONDS) -> list[Outcome]:
    """Return the outcome of `call` for each feed. Calls run in a child process, and in a new one after it died."""
    found: list[Outcome] = []
    while len(found) < len(feeds):
        found += _in_child(call, feeds[len(found) :], seconds)
    return found


def _in_child(call: Call, feeds: Sequence[Sequence[Array]], seconds: float) -> list[Outcome]:
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        gc.freeze()  # else the collector would copy all that earlier tests have left, in the time of a call
        resource.setrlimit(resource.RLIMIT_AS, (_mapped() + ROOM, _mapped() + ROOM))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with os.fdopen(sink, "wb") as out:
            for feed in feeds:
                signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process
                pickle.dump(_outcome(call, feed), out)
                out.flush()
        os._exit(0)
    os.close(sink)
    found: list[Outcome] = []
    with os.fdopen(source, "rb") as given:
        for _ in feeds:
            try:
                found.append(pickle.load(given))
            except EOFError:
                break
    status = os.waitpid(child, 0)[1]
    return found if len(found) == len(feeds) else [*found, Outcome(signal=os.WTERMSIG(status) or -1)]


def _mapped() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _outcome(call: Call, feed: Sequence[Array]) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return Outcome(tuple(np.array(a) for a in call(feed)))
    except Exception as error:  # a reference may fail in any way where there is no result
        bug = isinstance(error, InternalError) or not isinstance(error, AotError)
        return Outcome(error=f"{type(error).__name__}: {error}", bug=bug)


def surrounded(array: Array, byte: int) -> Array:
    """The same numbers, with others before and behind them in memory."""
    memory = np.full(array.nbytes + 2 * MARGIN, byte, np.uint8)
    found = memory[MARGIN : MARGIN + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def faults(call: Call, oracle: Call, feeds: Sequence[Sequence[Array]], layer: str, defined: bool = True) -> list[str]:
    """Return a line for each wrong outcome of `call`; there should be none.

    An outcome is an error that names the layer, or what the oracle gives. Where that gives nothing there is an error,
    or, if `defined`, a result that is made of the inputs alone.
    """
    around = [[surrounded(a, byte) for a in feed] for feed in feeds for byte in AROUND]
    known, found, lines = outcomes(oracle, feeds, ORACLE_SECONDS), outcomes(call, around), list[str]()
    for feed, one, other, wanted in zip(feeds, found[::2], found[1::2], known, strict=True):
        if text := _fault(one, other, wanted.results, layer, defined):
            lines.append(f"{text}, of {[a.tolist() if a.size < 12 else a.shape for a in feed]}")
    return lines


def _fault(one: Outcome, other: Outcome, wanted: tuple[Array, ...] | None, layer: str, defined: bool) -> str:
    if one.signal or other.signal:
        return f"ends the process by signal {one.signal or other.signal}"
    if one.bug or other.bug:
        return one.error or other.error
    if one.results is None or other.results is None:
        named = layer in one.error or one.error.startswith("BudgetError")
        return "" if named and one.error == other.error else f"error without the layer's name: {one.error}"
    if not all(a.tobytes() == b.tobytes() for a, b in zip(one.results, other.results, strict=True)):
        return f"reads behind its inputs: {one.results} and {other.results}"
    if wanted is None:
        return "" if defined else f"is taken: {one.results}"
    return "" if _equal(one.results, wanted) else f"gives {one.results}, not {wanted}"


def _equal(found: Sequence[Array], wanted: Sequence[Array]) -> bool:
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(found, wanted, strict=True)]
    close = (np.allclose(a.astype(float), b.astype(float), 1e-3, 1e-4, equal_nan=True) for a, b in pairs)
    return all(a.shape == b.shape for a, b in pairs) and all(close)


def are_sizes_open(kinds: Sequence[object], at: int) -> bool:
    """True if case `at` has data of open sizes: every other case of a kind, and of the first cases of all kinds."""
    first = kinds.index(kinds[at])
    return (kinds[:at].count(kinds[at]) + len(set(kinds[:first]))) % 2 == 1


def hostile(good: Array) -> Iterator[Array]:
    """`good` with one of its first elements exchanged, and with all of them."""
    values = INTEGERS if good.dtype.kind in "iub" else FLOATS
    for at in range(min(good.size, 4)):
        for value in values:
            yield _with(good, slice(at, at + 1), value)
    if good.size > 1:
        for value in values:
            yield _with(good, slice(None), value)


def _with(good: Array, where: slice, value: float) -> Array:
    made = good.copy()
    if good.dtype.kind in "iu":
        limits = np.iinfo(good.dtype)
        value = min(max(int(value), int(limits.min)), int(limits.max))
    made.reshape(-1)[where] = value
    return made
