"""An inference request: tensors bound to a model, with its own arena and state."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from aot.runtime.abi import ERROR_CAPACITY, Request
from aot.runtime.arrays.tensors import Array, address
from aot.runtime.errors import BusyError, UsageError
from aot.runtime.inference.cancel import Cancel
from aot.runtime.inference.executor import Executor
from aot.runtime.inference.input_arrays import InputArrays
from aot.runtime.inference.output_arrays import OutputArrays
from aot.runtime.inference.outputs import CallTime, Outputs, find
from aot.runtime.inference.started import Started  # an import in a call might be interrupted half way
from aot.runtime.inference.streams import Streams
from aot.runtime.inference.variables import Variables, VariableState
from aot.runtime.inference.workspace import Workspace
from aot.runtime.loading.library import Library, Pool
from aot.runtime.loading.manifest import TensorInfo

_RUN = "run"
Inputs = Mapping[str, object] | Mapping[int, object] | Sequence[object] | object | None


class InferRequest:
    """One inference at a time. It owns its arena and its state: any number of requests of a model run at once.

    A signal handler may raise after any call in the main thread. So the request is claimed by one call of C, and
    released, like all fields that must change together, by stores without a call between them.
    """

    def __init__(
        self,
        library: Library,
        pool: Pool,
        executor: Executor | None = None,
        callbacks: Executor | None = None,
        id: int = 0,
    ) -> None:
        """`executor` runs asynchronous inferences; None: a new one. `callbacks` runs their callbacks; None: the thread
        of the inference does. `id`: a number of the request.
        """
        manifest = library.manifest
        self._library = library
        self._pool = pool
        self._streams = pool if isinstance(pool, Streams) else None
        self._executor = executor if executor is not None else Executor()
        self._callbacks = callbacks
        self._id = id
        self._started: Started | None = None
        self._callback: Callable[[], object] | None = None
        self._inputs, self._outputs = InputArrays(library), OutputArrays(library)
        self._seen_inputs, self._seen_outputs = manifest.inputs, manifest.outputs  # the tensors as the user sees them
        self._places: dict[object, int] = {}  # indices of inputs, by the keys that were used before
        self._claims: dict[str, object] = {}  # owner of the running inference: a token of the call, or a Started
        self._results: tuple[Array, ...] | None = None
        self._space = Workspace(library)
        self._cancel = None if manifest.cancel is None else Cancel(self._space.symbols, manifest.cancel)
        self._needs_memory = True  # True if sizes must be computed, and memory allocated, before the next inference

        self._profile = np.zeros((len(manifest.calls), 2), np.uint64)
        self._request = Request(
            inputs=ctypes.addressof(self._inputs.addresses),
            outputs=ctypes.addressof(self._outputs.addresses),
            symbols=ctypes.addressof(self._space.symbols),
            pool=pool.address,
        )
        self._variables = Variables(library, self._request)
        self._pointer = ctypes.addressof(self._request)

    def infer(self, inputs: Inputs = None) -> Outputs:
        """Run the model on `inputs`: an array, a sequence, a mapping by name or index; None: the arrays that are set.

        Dense arrays at aligned addresses are read in place, others are copied. Results are new arrays, unless arrays
        were set for the outputs. Raises UsageError for a wrong name, type or shape, BusyError while another inference
        runs, BudgetError for sizes that memory does not suffice for, CancelledError after `cancel`.
        """
        claims, token = self._claims, [_RUN]
        try:
            if claims.setdefault(_RUN, token) is not token:
                raise _busy()
            if self._cancel is not None:
                self._cancel.reset()
            if inputs is not None:
                self._bind_all(inputs)
            return self._run()
        finally:
            if _RUN in claims and claims[_RUN] is token:
                del claims[_RUN]

    def start_async(self, inputs: Inputs = None, share_inputs: bool = False) -> None:
        """Start `infer` on the executor; `wait` returns when it is done, then `results` holds the results.

        `inputs` are copied unless `share_inputs`: then they must not change until it is done. Raises UsageError for
        wrong inputs and BusyError while another inference runs; other errors are raised by `wait`.
        """
        claims, started = self._claims, Started(self._run, self._finished, self._callbacks)
        try:
            if claims.setdefault(_RUN, started) is not started:
                raise _busy()
            if self._cancel is not None:
                self._cancel.reset()
            if inputs is not None:
                self._bind_all(inputs)
                if not share_inputs:
                    self._inputs.copy()
            self._started = started
            self._executor.submit(started)
        except BaseException:
            if _RUN in claims and claims[_RUN] is started and started.give_up():
                del claims[_RUN]
            raise

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the started inference is done, at most `timeout` seconds; return False if it is not.

        Raises its error, or that of the callback; UsageError in that callback, whose end it would wait for.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (started := self._started) is not None:
            if timeout is None and any(e is not None and e.runs_here() for e in (self._executor, self._callbacks)):
                started.run_here()  # called in another callback, whose thread it may be queued behind
            if not started.wait(None if end is None else max(0.0, end - time.monotonic())):
                return False
            if started is self._started:  # unless the callback has started another one
                break
        return True

    def __await__(self) -> Generator[Any, None, Outputs]:
        """Wait in a coroutine for the started inference, and return its results; raises the errors of `wait`."""
        return self._awaited().__await__()

    async def _awaited(self) -> Outputs:
        asyncio = import_module("asyncio")  # slow to import, and loaded already where anybody awaits
        loop = asyncio.get_running_loop()
        while (started := self._started) is not None:
            done = loop.create_future()
            started.then(lambda done=done: loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None)))
            await done
            if started is self._started:  # unless the callback has started another one
                break
        self.wait()
        return self.results

    def wait_for(self, milliseconds: float) -> bool:
        """Wait, as `wait` does, for a number of milliseconds, OpenVINO's unit."""
        return self.wait(milliseconds / 1e3)

    @property
    def error(self) -> BaseException | None:
        """Error of the last inference that ran; None if it succeeded. For callbacks."""
        return None if self._started is None else self._started.error

    def cancel(self) -> None:
        """Cancel the running or waiting inference: `wait`, or `infer` in its thread, raises CancelledError.

        Loops without a static bound end after an iteration. A model without them runs to its end: `infer` returns its
        results.
        """
        started = self._started
        if started is not None and not started.done:
            started.cancel()
        if self._cancel is not None:
            self._cancel.set()

    @property
    def id(self) -> int:
        """Number of the request among those of its model, in the order of creation."""
        return self._id

    @property
    def busy(self) -> bool:
        """True while an inference runs or waits to run."""
        return bool(self._claims)

    def set_callback(self, callback: Callable[[Any], object] | None, userdata: object = None) -> None:
        """Call `callback(userdata)` after each inference of `start_async`, also a failed one; it may start the next."""
        self._refuse_if_busy()
        self._callback = None if callback is None else lambda: callback(userdata)

    def set_tensor(self, name: str | int, value: object) -> None:
        """Bind the input or output called `name` to the array `value`.

        An output's array must be dense, writable and aligned. Raises UsageError for a wrong name, type or shape.
        """
        if isinstance(name, int):
            return self.set_input_tensor(name, value)
        if any(name == info.name or name in info.names for info in self._seen_inputs):
            return self.set_input_tensor(find("input", self._seen_inputs, name), value)
        return self.set_output_tensor(find("output", self._seen_outputs, name), value)

    def set_input_tensor(self, index: int, value: object) -> None:
        """Bind input `index` to the array `value`, which must have the input's element type and a shape that it
        accepts.

        Raises UsageError for a wrong index, type or shape, BusyError while an inference runs.
        """
        self._refuse_if_busy()
        find("input", self._seen_inputs, index)
        self._set_input(index, value)

    def get_input_tensor(self, index: int = 0) -> Array:
        """Return the array that input `index` is bound to; for an unset input of fixed size, a new one of zeros."""
        find("input", self._inputs.infos, index)
        if (zeros := self._inputs.zeros(index)) is not None:
            self.set_input_tensor(index, zeros)
        return self._input(index)

    def get_output_tensor(self, index: int = 0) -> Array:
        """Return the array that was set for output `index`, else the one of the last inference."""
        find("output", self._outputs.infos, index)
        array = self._outputs.given[index]
        return array if array is not None else self.results[index]

    def set_output_tensor(self, index: int, value: object) -> None:
        """Bind output `index` to the array `value`; None: to a new array for each inference.

        The array must be dense, writable and aligned; for a data-dependent output it is flat and large enough. Raises
        UsageError for another array, BusyError while an inference runs.
        """
        self._refuse_if_busy()
        find("output", self._outputs.infos, index)
        self._needs_memory |= value is None
        self._outputs.set(index, value)

    def get_tensor(self, name: str) -> Array:
        """Return the input or, after an inference, the output called `name`."""
        if any(name == info.name or name in info.names for info in self._seen_inputs):
            return self._input(find("input", self._seen_inputs, name))
        return self.results[name]

    @property
    def results(self) -> Outputs:
        """Results of the last inference."""
        if self._results is None:
            raise UsageError("results: must be asked for after an inference, got none yet")
        return Outputs(self._outputs.infos, self._results)

    def reset_state(self) -> None:
        """Reset the variables: the state is zero again."""
        self._refuse_if_busy()
        self._variables.reset()

    def query_state(self) -> list[VariableState]:
        """Return the variables of the model in the state of this request."""
        return [VariableState(self._variables, info, self._refuse_if_busy) for info in self._variables.infos]

    def take_row(self, other: InferRequest) -> None:
        """Append to variables that grow in place a row: the first one of another request of the same model."""
        self._refuse_if_busy()
        self._variables.take_row(other._variables)

    def drop_row(self, row: int) -> None:
        """Remove a row of variables that grow in place; the last one takes its place."""
        self._refuse_if_busy()
        self._variables.drop_row(row)

    def release_memory(self) -> None:
        """Free working memory, copies of inputs and old results, unless it runs; the next inference allocates anew."""
        claims, token = self._claims, [_RUN]
        try:
            if claims.setdefault(_RUN, token) is not token:
                return
            self._needs_memory = True
            self._space.release()
            self._outputs.release()
            self._inputs.release()
        finally:
            if _RUN in claims and claims[_RUN] is token:
                del claims[_RUN]

    @property
    def arena_bytes(self) -> int:
        """Bytes of working memory: the most that any inference needed since memory was released."""
        return self._space.arena.nbytes

    def enable_profiling(self, on: bool = True) -> None:
        """Measure the calls' times in later inferences."""
        self._request.profile = address(self._profile) if on else None

    def last_times(self) -> list[CallTime]:
        """Return the times of the last inference; none if it was not profiled, and if there was none."""
        return self.get_profiling_info() if self._request.profile and self._profile.any() else []

    def get_profiling_info(self) -> list[CallTime]:
        """Return the times of the last inference in seconds, in the order of the calls; UsageError if it was not
        profiled.
        """
        if not self._request.profile:
            raise UsageError("profiling: enable_profiling() must be called before the inference, got no call")
        seconds = (self._profile[:, 1] - self._profile[:, 0]) * 1e-9
        times = zip(self._library.manifest.calls, seconds, self._profile[:, 0] * 1e-9, strict=True)
        return [CallTime(c.kernel, c.layers, float(s), float(begin)) for c, s, begin in times]

    def _bind_all(self, inputs: object) -> None:
        """Bind the given inputs, and the defaults of absent ones."""
        if not self._inputs.defaults:
            self._bind_values(inputs)
            return
        self._inputs.begin()
        self._bind_values(inputs)
        self._inputs.end()

    def _bind_values(self, inputs: object) -> None:
        infos, kind = self._seen_inputs, type(inputs)
        if kind is np.ndarray:  # tests of types and counts in the order of their cost: short inferences take as long
            values: Sequence[object] = (inputs,)
        elif kind is tuple or kind is list:
            values = cast(Sequence[object], inputs)
        elif kind is dict or isinstance(inputs, Mapping):
            self._bind_named(cast(Mapping[int | str | TensorInfo, object], inputs))
            return
        else:
            values = cast(Sequence[object], inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        if len(values) != len(infos):
            least = max((n for n, info in enumerate(infos, 1) if info.default is None), default=0)
            if not least <= len(values) <= len(infos):
                expected = str(len(infos)) if least == len(infos) else f"{least} to {len(infos)}"
                raise UsageError(f"inputs: {expected} must be given, got {len(values)}")
        for index, value in enumerate(values):
            self._set_input(index, value)

    def _bind_named(self, inputs: Mapping[int | str | TensorInfo, object]) -> None:
        for key, value in inputs.items():
            index = self._places.get(key)
            if index is None:
                index = self._places[key] = find("input", self._seen_inputs, key)
            self._set_input(index, value)

    def _set_input(self, index: int, value: object) -> None:
        self._inputs.bind(index, value)

    def _refuse_if_busy(self) -> None:
        if self._claims:
            raise _busy()

    def _finished(self, started: Started) -> None:
        if self._claims.get(_RUN) is started:
            del self._claims[_RUN]
        if self._callback is not None:
            self._callback()

    def _input(self, index: int) -> Array:
        return self._inputs.get(index)

    def _run(self) -> Outputs:
        if self._inputs.defaults:
            self._inputs.fill()
        if self._inputs.resized or self._needs_memory or self._request.threads != self._pool.threads:
            self._place()
        while True:
            outputs = self._outputs.take(self._space.output_shapes)
            if self._cancel is not None:
                self._cancel.watch()
            infer = self._library.infer
            streams = self._streams
            code = infer(self._pointer) if streams is None else streams.infer(infer, self._request, self._pointer)
            if not code:
                break
            if code != ERROR_CAPACITY:
                if self._cancel is not None:
                    self._cancel.reraise()
                raise self._space.failure(code)
            self._needs_memory = True
            self._space.enlarge(self._pool.threads)
            self._take_memory()
        is_cut = self._space.is_data_dependent
        self._results = tuple(self._space.cut(outputs) if is_cut else outputs)
        if not is_cut:
            self._outputs.keep(self._results)
        return Outputs(self._outputs.infos, self._results)

    def _place(self) -> None:
        """Compute the sizes of this inference, and allocate a large enough arena."""
        threads = self._pool.threads
        self._needs_memory = True  # in case of an exception before memory is allocated
        self._space.fit(self._inputs.shapes(), threads)
        self._request.threads = threads
        self._outputs.fit(self._space.output_shapes)
        self._take_memory()

    def _take_memory(self) -> None:
        self._request.arena = address(self._space.arena)
        self._variables.fit(self._space.symbols)
        self._needs_memory = self._inputs.resized = False


def _busy() -> BusyError:
    return BusyError("request: one inference at a time, got another call while it runs")
