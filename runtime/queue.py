"""Many inferences at once on a fixed number of requests: each inference runs on the next free request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from aot.runtime.errors import UsageError
from aot.runtime.inference.request import InferRequest, Inputs
from aot.runtime.inference.streams import executor_of
from aot.runtime.inference.waiting import Slots
from aot.runtime.model import CompiledModel

Callback = Callable[[InferRequest, object], object]

_FREE = "as a request is free when its callback returns"


class AsyncInferQueue:
    """Runs at most `jobs` inferences at once; `callback(request, userdata)` gets each one's results."""

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        """`jobs` 0: the property OPTIMAL_NUMBER_OF_INFER_REQUESTS."""
        if jobs < 0:
            raise UsageError(f"queue: the number of jobs must not be negative, got {jobs}")
        count = jobs or int(str(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")))
        executor = executor_of(model.pool, count)
        self._requests = [model.create_infer_request(executor) for _ in range(count)]
        self._slots = Slots(count)  # one for each request
        self._calling: set[int] = set()  # threads that run the callback
        self._blocked: set[int] = set()  # callback threads that wait for a request
        self._userdata: list[object] = [None] * count
        self._tokens: list[object] = [None] * count  # of the inferences that occupy the requests
        self._callback: Callback | None = None
        self._error: BaseException | None = None
        for i, request in enumerate(self._requests):
            request.set_callback(self._finished, i)

    def set_callback(self, callback: Callback | None) -> None:
        """Set `callback(request, userdata)`, which is called after each inference.

        It runs in the request's thread; the request is free when it returns. `wait_all` raises its exceptions.
        """
        self._callback = callback

    def start_async(self, inputs: Inputs = None, userdata: object = None, share_inputs: bool = False) -> None:
        """Start an inference on the next free request, waiting for one. `userdata` is passed to the callback.

        `inputs` and `share_inputs` are those of `InferRequest.start_async`. Raises UsageError if all requests are in
        callbacks that wait for one.
        """
        token = object()
        try:
            while (index := self._slots.take(token)) is None:
                self._wait_for_idle()
            self._userdata[index], self._tokens[index] = userdata, token
            self._requests[index].start_async(inputs, share_inputs)
        except BaseException:
            if not any(t is token and r.busy for t, r in zip(self._tokens, self._requests, strict=True)):
                self._slots.give_back(token)
            raise

    def is_ready(self) -> bool:
        """True if a request is free: `start_async` would not wait."""
        return self._slots.free > 0

    def get_idle_request_id(self) -> int:
        """Return the index of the next inference's request; waits until there is one."""
        while (index := self._slots.first()) is None:
            self._wait_for_idle()
        return index

    def wait_all(self) -> None:
        """Wait until all requests are free; raise the first error of the inferences since, or of their callbacks.

        UsageError in a callback: its own request is free only when it returns.
        """
        if threading.get_ident() in self._calling:
            raise UsageError(f"wait_all: must be called outside of callbacks, {_FREE}, got a call inside")
        self._slots.waiters.wait_for(lambda: self._slots.free == len(self._requests))
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _wait_for_idle(self) -> None:
        """Wait for a free request; UsageError if all are in callbacks that wait for one."""
        here = threading.get_ident()
        if here in self._calling:
            self._blocked.add(here)
            self._slots.waiters.notify()
        try:
            self._slots.waiters.wait_for(lambda: self._slots.free or self._is_stuck)
            if self._is_stuck:
                raise UsageError(f"queue: one callback at least must not wait for a request, {_FREE}, got none")
        finally:
            self._blocked.discard(here)

    @property
    def _is_stuck(self) -> bool:
        return len(self._blocked) == len(self._requests)

    @property
    def userdata(self) -> list[object]:
        """Userdata of the inference that each request started last."""
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
                self._calling.add(threading.get_ident())
                self._callback(request, self._userdata[index])
        except BaseException as error:  # for `wait_all`
            self._keep(error)
        finally:
            self._calling.discard(threading.get_ident())
            self._slots.give_back(self._tokens[index])

    def _keep(self, error: BaseException) -> None:
        self._error = self._error or error
