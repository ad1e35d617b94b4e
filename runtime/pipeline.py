"""Stages on separate executors: while one value is inferred, the next is prepared and the previous one finished.

submit(value) -> pre @ executor A -> model @ executor B -> post @ executor C -> Future
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from aot.runtime.errors import UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.inference.waiting import Slots

Stage = tuple[Executor, Callable[[Any], Any]]


class Pipeline:
    """A chain of stages that each value passes in order; a stage is an executor and a function, as a CompiledModel is.

    An executor of one thread keeps the order of values; stages may share an executor. At most `jobs` values are in the
    pipeline, so that a slow stage blocks `submit` instead of filling the memory.
    """

    def __init__(self, *stages: Stage, jobs: int = 4) -> None:
        if not stages or jobs < 1:
            raise UsageError(f"pipeline: needs one stage and one job or more, got {len(stages)} and {jobs}")
        self._stages = stages
        self._jobs = jobs
        self._room = Slots(jobs)

    def submit(self, value: object) -> Future[Any]:
        """Start `value`, waiting for room; the future gets the last stage's result, or a stage's exception."""
        future: Future[Any] = Future()
        try:
            while self._room.take(future) is None:
                self._room.waiters.wait_for(lambda: self._room.free)
            self._run(0, value, future)
        except BaseException:
            if future.cancel():  # it has not begun
                self._room.give_back(future)
            raise
        return future

    def map(self, values: Iterable[object]) -> Iterator[Any]:
        """Yield results in the order of `values`, which are consumed as there is room."""
        waiting: deque[Future[Any]] = deque()
        for value in values:
            waiting.append(self.submit(value))
            while len(waiting) >= self._jobs or (waiting and waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _run(self, index: int, value: object, future: Future[Any]) -> None:
        executor, function = self._stages[index]

        def task() -> None:
            if not index and not future.set_running_or_notify_cancel():
                self._room.give_back(future)
                return
            try:
                result = function(value)
            except BaseException as error:  # the future passes it on
                self._room.give_back(future)
                future.set_exception(error)
                return
            if index + 1 < len(self._stages):
                self._run(index + 1, result, future)
            else:
                self._room.give_back(future)
                future.set_result(result)

        executor.submit(task)
