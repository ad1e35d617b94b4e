"""Many inferences at once: a fixed number of requests, each taken by the next inference as it becomes free."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from runtime.errors import UsageError
from runtime.executor import Executor
from runtime.model import CompiledModel
from runtime.request import InferRequest, Inputs

Callback = Callable[[InferRequest, object], object]


class AsyncInferQueue:
    """Runs at most `jobs` inferences at once; `callback(request, userdata)` gets each one's results."""

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        """`jobs` 0: as many as OPTIMAL_NUMBER_OF_INFER_REQUESTS says."""
        if jobs < 0:
            raise UsageError(f"queue: a number of jobs, got {jobs}")
        count = jobs or int(str(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")))
        executor = Executor(count)
        self._requests = [model.create_infer_request(executor) for _ in range(count)]
        self._changed = threading.Condition()
        self._idle = deque(range(count))
        self._userdata: list[object] = [None] * count
        self._callback: Callback | None = None
        self._error: BaseException | None = None
        for i, request in enumerate(self._requests):
            request.set_callback(self._finished, i)

    def set_callback(self, callback: Callback | None) -> None:
        """`callback(request, userdata)` runs in the thread of the request, which is free when it returns."""
        self._callback = callback

    def start_async(self, inputs: Inputs = None, userdata: object = None, share_inputs: bool = False) -> None:
        """Start on the next free request, waiting for one; see `InferRequest.start_async`."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle)
            index = self._idle.popleft()
            self._userdata[index] = userdata
        try:
            self._requests[index].start_async(inputs, share_inputs)
        except BaseException:
            self._free(index)
            raise

    def is_ready(self) -> bool:
        """Whether a request is free: `start_async` would not wait."""
        return bool(self._idle)

    def get_idle_request_id(self) -> int:
        """Index of the request that the next inference runs on; waits until there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle)
            return self._idle[0]

    def wait_all(self) -> None:
        """Until all requests are free; raises the first error of those started since, or of their callbacks."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._idle) == len(self._requests))
            error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def userdata(self) -> list[object]:
        """What each request was started with."""
        return list(self._userdata)

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        return self._requests[index]

    def _finished(self, index: int) -> None:
        request = self._requests[index]
        try:
            if request.error is not None:
                self._keep(request.error)
            elif self._callback is not None:
                self._callback(request, self._userdata[index])
        except BaseException as error:  # for `wait_all`
            self._keep(error)
        finally:
            self._free(index)

    def _keep(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error

    def _free(self, index: int) -> None:
        with self._changed:
            self._idle.append(index)
            self._changed.notify_all()
