"""One version of a model that is served: its queue, its batches, its end.

infer(inputs) -> queue -> executor: join -> model -> split -> answer
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from dataclasses import field
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.runtime.arrays.tensors import fits, mismatch
from aot.runtime.errors import AotError, UsageError
from aot.runtime.inference.agreement import out_of_range
from aot.runtime.inference.executor import Executor
from aot.runtime.inference.request import InferRequest
from aot.runtime.model import CompiledModel
from aot.serve import batching
from aot.serve.batching import Key, Named
from aot.serve.faults import DeadlineError, QueueFullError
from aot.serve.metrics import Metrics, Times
from aot.serve.settings import Settings

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits for its inference, or runs."""

    inputs: Named
    rows: int
    key: Key
    future: asyncio.Future[Named]
    loop: asyncio.AbstractEventLoop
    times: Times = field(default_factory=Times)


class ServedModel:
    """A loaded model with the requests that wait for it."""

    def __init__(
        self, model: CompiledModel, name: str, version: str, path: Path, settings: Settings, work: Executor, to: Metrics
    ) -> None:
        self.model, self.name, self.version, self.path = model, name, version, path
        self.metrics = to.of(name, version)
        self._settings, self._executor = settings, work
        self._waiting: deque[Job] = deque()
        self._arrived = threading.Condition()
        self._is_closed = False
        self._running = 0
        self._own = threading.local()
        self.inputs, self.outputs = model.inputs, model.outputs
        self.max_batch = self._max_batch()

    def _max_batch(self) -> int:
        """Return the most rows of a batch; 1: each request is inferred alone."""
        if self._settings.max_batch == 1:
            return 1
        limit = batching.batch_limit(self.model.manifest, self.inputs, self.outputs)
        if limit is None:
            _LOG.warning("%s: requests are not batched: its inputs and outputs have no rows in common", self.name)
            return 1
        most = min(self._settings.max_batch, limit or self._settings.max_batch)
        if most > 1 and batching.depends_on_other_rows(self.model, most):
            _LOG.warning("%s: requests are not batched: a row's result depends on the rows beside it", self.name)
            return 1
        return most

    async def infer(self, inputs: Named, timeout: float | None = None) -> tuple[Named, Times]:
        """Return the results of `inputs`, arrays by the names of the inputs; at most after `timeout` seconds.

        Raises UsageError for inputs that do not fit, QueueFullError, DeadlineError. A request that came before `close`
        may still be on its way, so it is answered after it, too.
        """
        if len(self._waiting) >= self._settings.queue:
            raise QueueFullError(f"{self.name}: at most {self._settings.queue} requests may wait, got one more")
        job = self._job(inputs)
        seconds = self._settings.timeout if timeout is None else min(timeout, self._settings.timeout)
        with self._arrived:
            self._waiting.append(job)
            self._arrived.notify()
        self._executor.submit(self._work)
        try:
            async with asyncio.timeout(seconds):
                return await job.future, job.times
        except TimeoutError:
            raise DeadlineError(f"{self.name}: a request must be answered in {seconds:g} s, got none") from None

    async def close(self) -> None:
        """Wait until the requests that were accepted are answered; none waits for others of a batch any more."""
        self._is_closed = True
        while self._waiting or self._running:
            await asyncio.sleep(0.005)

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return len(self._waiting)

    def _job(self, inputs: Named) -> Job:
        for info in self.inputs:
            array = inputs.get(info.name)
            if array is None:
                if info.default is None:
                    raise UsageError(f"input '{info.name}': must be given, got none")
            elif not fits(info, array.shape):
                wrong = out_of_range(info, array.shape)
                raise UsageError(wrong) if wrong is not None else mismatch("input", info, array)
        if unknown := inputs.keys() - {info.name for info in self.inputs}:
            names = ", ".join(info.name for info in self.inputs)
            raise UsageError(f"input: must be one of {names}, got '{min(unknown)}'")
        counts = {array.shape[0] for array in inputs.values()} if self.max_batch > 1 else set[int]()
        rows = counts.pop() if len(counts) == 1 and len(inputs) == len(self.inputs) else self.max_batch
        ordered = {info.name: inputs[info.name] for info in self.inputs if info.name in inputs}
        loop = asyncio.get_running_loop()
        return Job(ordered, rows, batching.key_of(ordered) if rows < self.max_batch else (), loop.create_future(), loop)

    def _work(self) -> None:
        """Infer the next batch, if another call has not done so."""
        with self._arrived:
            self._running += 1
        jobs: list[Job] = []
        try:
            jobs = self._next_batch()
            if jobs:
                self._run(jobs)
        except BaseException as error:  # each request gets it
            _finish(jobs, error)
        finally:
            with self._arrived:
                self._running -= 1

    def _next_batch(self) -> list[Job]:
        end = time.monotonic() + self._settings.batch_wait
        with self._arrived:
            jobs, rows = list[Job](), 0
            while True:
                while self._waiting and _joins(self._waiting[0], jobs, rows, self.max_batch):
                    job = self._waiting.popleft()
                    if not job.future.done():  # else given up
                        jobs.append(job)
                        rows += job.rows
                left = end - time.monotonic()
                if not jobs or self._waiting or rows >= self.max_batch or left <= 0 or self._is_closed:
                    return jobs
                self._arrived.wait(left)

    def _run(self, jobs: list[Job]) -> None:
        begin = time.monotonic()
        for job in jobs:
            job.times.begin(begin)
        try:
            results = self._infer(batching.join([job.inputs for job in jobs]))
        except AotError:
            if len(jobs) == 1:
                raise
            for job in jobs:  # one of them is wrong: the others must not suffer
                try:
                    self._run([job])
                except AotError as error:
                    _finish([job], error)
            return
        parts = [results] if len(jobs) == 1 else batching.split(results, [job.rows for job in jobs])
        end = time.monotonic()
        self.metrics.batch(sum(job.rows for job in jobs) if self.max_batch > 1 else 1, end - begin)
        for job in jobs:
            job.times.end(end)
        _finish(jobs, parts)

    def _infer(self, inputs: Named) -> Named:
        if not self.model.manifest.variables:
            return self.model(inputs).to_dict()
        request: InferRequest | None = getattr(self._own, "request", None)
        if request is None:
            request = self._own.request = self.model.create_infer_request()
        request.reset_state()  # a client must not see the state of another
        return request.infer(inputs).to_dict()


def _joins(job: Job, jobs: list[Job], rows: int, most: int) -> bool:
    """True if a job may be inferred together with `jobs`."""
    return not jobs or (job.key == jobs[0].key and job.key != () and rows + job.rows <= most)


def _finish(jobs: list[Job], results: list[Named] | BaseException) -> None:
    """Hand results, or an error, to the event loop of the requests: one call for all of a batch."""

    def hand_over() -> None:
        for index, job in enumerate(jobs):
            if job.future.done():
                continue
            if isinstance(results, BaseException):
                job.future.set_exception(results)
            else:
                job.future.set_result(results[index])

    if jobs:
        jobs[0].loop.call_soon_threadsafe(hand_over)
