"""Streams: pools of threads on processors of their own, so that inferences beside each other share none.

processors 0 1 2 3, two streams   ->   pool of 2 threads on 0 1, pool of 2 threads on 2 3
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aot.runtime.abi import MAX_THREADS, Request
from aot.runtime.errors import UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.loading.library import Library, Pool
from aot.runtime.systems import processor


class Streams(Pool):
    """Pools that models share. An inference runs on the stream of its thread, on that stream's processors.

    Threads of an executor (`executor_of`) take the streams in turn and stay on their processors; any other thread gets
    a stream with its first inference, and is back on its own processors when an inference ends.
    """

    def __init__(self, library: Library, count: int, threads: int) -> None:
        """`count`: of streams; `threads`: of all streams together, at least one each. UsageError out of range."""
        if not 1 <= count <= MAX_THREADS:
            raise UsageError(f"streams: must be from 1 to {MAX_THREADS}, got {count}")
        each = max(1, threads // count)
        super().__init__(library, each)  # the pool of the first stream
        self._others = tuple(Pool(library, each) for _ in range(count - 1))
        self._addresses = (self.address, *(pool.address for pool in self._others))
        self._processors = shares(_by_core(processor.allowed_processors()), count)
        self._turn = itertools.count()
        self._here = threading.local()

    @property
    def count(self) -> int:
        """Number of streams."""
        return len(self._addresses)

    def resize(self, threads: int) -> None:
        """Change the number of threads of each stream; running requests are not affected."""
        super().resize(threads)
        for pool in self._others:
            pool.resize(threads)

    def enter(self, number: int) -> None:
        """Keep the calling thread on the stream of a position in an executor."""
        self._here.stream = stream = number % self.count
        self._here.stays = processor.move_thread(self._processors[stream])

    def infer(self, function: Callable[[int], int], request: Request, pointer: int) -> int:
        """Call `function(pointer)` for the request at `pointer` on the calling thread's stream; return its code."""
        try:
            stream = self._here.stream
        except AttributeError:
            stream, self._here.stays = next(self._turn) % self.count, False
            self._here.stream = stream
        request.pool = self._addresses[stream]
        if self._here.stays:
            return function(pointer)
        own = processor.allowed_processors()
        try:
            processor.move_thread(self._processors[stream])  # workers that the inference starts begin there
            return function(pointer)
        finally:
            processor.move_thread(own)


def executor_of(pool: Pool, threads: int) -> Executor:
    """Return an executor for inferences on a pool; its threads take turns with its streams if it has any."""
    return Executor(threads, begin=pool.enter if isinstance(pool, Streams) else None)


def shares(processors: Sequence[int], count: int) -> list[frozenset[int]]:
    """Cut processors into `count` shares of neighbours; shares are one processor, used again, if there are too few."""
    if count > len(processors):
        return [frozenset({processors[k % len(processors)]}) for k in range(count)]
    ends = [len(processors) * k // count for k in range(count + 1)]
    return [frozenset(processors[a:b]) for a, b in itertools.pairwise(ends)]


def _by_core(processors: Iterable[int], topology: Path = processor.PROCESSORS) -> list[int]:
    """Sort processors, so that those of a core, and cores of a socket, are neighbours."""
    return sorted(processors, key=lambda number: (processor.place_of(number, topology), number))
