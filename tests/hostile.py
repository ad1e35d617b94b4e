"""Operands that tell sizes or places, with values that nobody means: what compiled code makes of them, in a process of
its own, so that a crash is a result as any other."""

from __future__ import annotations

import os
import pickle
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot.ir.types import Array
from runtime.errors import AotError, InternalError

ROOM = 1 << 30  # bytes that a child may map besides what its parent has: more is refused to it, as on a small machine
SECONDS = 2  # of processor time that a child may take
FAR, LEAST = 2**63 - 1, -(2**63)
INTEGERS = (-1, 0, 1, 2, 3, 7, -2, -9, 1 << 31, -(1 << 31), 1 << 40, -(1 << 40), FAR, FAR - 1, LEAST, LEAST + 1)
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.3, 2.7, -1e30, 1e30, 1e-30)


@dataclass(frozen=True)
class Outcome:
    """Of one call: `results`, or the `error`, or the `signal` that ended the process."""

    results: tuple[Array, ...] | None = None
    error: str = ""
    internal: bool = False
    signal: int = 0


def outcomes(call: Callable[[Sequence[Array]], tuple[Array, ...]], feeds: Sequence[Sequence[Array]]) -> list[Outcome]:
    """Of `call` with each feed, in children of this process; a new one where one ends early."""
    found: list[Outcome] = []
    while len(found) < len(feeds):
        found += _in_child(call, feeds[len(found) :])
    return found


def _in_child(call: Callable[[Sequence[Array]], tuple[Array, ...]], feeds: Sequence[Sequence[Array]]) -> list[Outcome]:
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        resource.setrlimit(resource.RLIMIT_AS, (_mapped() + ROOM,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with os.fdopen(sink, "wb") as out:
            for feed in feeds:
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


def _outcome(call: Callable[[Sequence[Array]], tuple[Array, ...]], feed: Sequence[Array]) -> Outcome:
    try:
        return Outcome(tuple(np.array(a) for a in call(feed)))
    except Exception as error:  # a reference fails in any way where there is no result
        return Outcome(error=f"{type(error).__name__}: {error}", internal=isinstance(error, InternalError) or not isinstance(error, AotError))


def hostile(good: Array) -> Iterator[Array]:
    """`good` with one element exchanged, all of them, and more or fewer of them."""
    kind = good.dtype.kind
    values = FLOATS if kind not in "iub" else INTEGERS
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
        value = min(max(int(value), limits.min), limits.max)
    made.reshape(-1)[where] = value
    return made


def longer(good: Array) -> Iterator[Array]:
    """Lists with one element more or less."""
    if good.ndim == 1:
        yield good[:-1]
        yield np.concatenate([good, good[-1:]])
