"""Compiled models, ready to run: `CompiledModel`, `load`, `import_model`."""

from __future__ import annotations

import io
import itertools
import threading
import weakref
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aot.runtime.arrays.files import check_library
from aot.runtime.arrays.strings import joined
from aot.runtime.atomic import copy, temporary
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.inference.request import InferRequest, Outputs, find
from aot.runtime.inference.streams import Streams, executor_of
from aot.runtime.loading.library import Library, Pool, open_bytes, open_library
from aot.runtime.loading.manifest import Manifest, TensorInfo
from aot.runtime.machine import default_threads
from aot.runtime.properties import SUPPORTED, change, property_of

if TYPE_CHECKING:
    from aot.runtime.measuring.runtime_model import RuntimeModel


class CompiledModel:
    """Code and weights of a model, with the threads that run it; may be called from any number of threads."""

    def __init__(
        self, library: Library, threads: int | None = None, pool: Pool | None = None, path: Path | None = None
    ) -> None:
        """`threads` None: as many as this process may use. With the `pool` of another model, both share its threads.

        `path`: the file that it was loaded from.
        """
        if pool is not None and threads is not None:
            raise UsageError(f"threads: must not be given together with a pool, got {threads}")
        self._library = library
        self._pool = pool if pool is not None else library.pool(default_threads() if threads is None else threads)
        self._path = path
        self._own = threading.local()
        self._requests: weakref.WeakSet[InferRequest] = weakref.WeakSet()
        self._executor = self._new_executor()  # of asynchronous requests
        self._ids = itertools.count()
        self._profiling = False

    def __call__(self, *inputs: object, **named: object) -> Outputs:
        """Run the model on `inputs`: arrays in order, one sequence or mapping of them, or arrays by name.

        An array must have the element type of its input (`inputs`) and a shape that it allows; numbers and lists are
        converted. Returns the results as new arrays, by index or name. Raises UsageError for a wrong name, type or
        shape, BudgetError for sizes that memory does not suffice for, CancelledError after `cancel`.
        """
        try:
            request: InferRequest = self._own.request
        except AttributeError:
            request = self._own.request = self.create_infer_request()
        if named:
            if inputs:
                raise UsageError("inputs: must be given by position or by name, got both")
            return request.infer(named)
        return request.infer(inputs[0] if len(inputs) == 1 and inputs[0] is not None else inputs)

    @property
    def name(self) -> str:
        """Name of the network."""
        return self._library.manifest.name

    @property
    def manifest(self) -> Manifest:
        """Description of the library, as `aot info --json` prints it."""
        return self._library.manifest

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, element type and shape of each input, in order."""
        return joined(self._library.manifest.inputs)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name, element type and shape of each output, in order."""
        return joined(self._library.manifest.outputs)

    def input(self, key: int | str = 0) -> TensorInfo:
        """Return the input of an index or name; UsageError if there is none."""
        return self.inputs[find("input", self.inputs, key)]

    def output(self, key: int | str = 0) -> TensorInfo:
        """Return the output of an index or name; UsageError if there is none."""
        return self.outputs[find("output", self.outputs, key)]

    @property
    def library(self) -> Library:
        """Functions of the model's code."""
        return self._library

    @property
    def pool(self) -> Pool:
        """Threads of the model, which other models may share."""
        return self._pool

    @property
    def threads(self) -> int:
        """Number of threads that work on one inference, the caller's included."""
        return self._pool.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._pool.resize(count)

    @property
    def streams(self) -> int:
        """Number of pools of threads, each on processors of its own, that inferences are spread over; usually 1.

        Set, the threads and processors of this process are divided among them. Requests that were made before keep
        theirs. Another model that is loaded with `pool=model.pool` runs on the same streams.
        """
        return self._pool.count if isinstance(self._pool, Streams) else 1

    @streams.setter
    def streams(self, count: int) -> None:
        threads = self.threads * self.streams
        self._pool = Streams(self._library, count, threads) if count != 1 else self._library.pool(threads)
        self._executor = self._new_executor()
        self._own = threading.local()

    def _new_executor(self) -> Executor:
        return executor_of(self._pool, self.streams if self.streams > 1 else self.threads)

    def create_infer_request(self, executor: Executor | None = None, callbacks: Executor | None = None) -> InferRequest:
        """Return a request with its own arena and state; all requests share the model's threads.

        `executor` runs asynchronous inferences; None: one that all requests of the model share. `callbacks` runs their
        callbacks, so that a slow one keeps no thread from inferring; None: the thread of the inference runs them.
        """
        kind = InferRequest
        if any(t.string for t in (*self.manifest.inputs, *self.manifest.outputs)):
            from aot.runtime.inference.string_request import StringRequest

            kind = StringRequest
        request = kind(
            self._library, self._pool, executor if executor is not None else self._executor, callbacks, next(self._ids)
        )
        self._requests.add(request)
        request.enable_profiling(self._profiling)
        return request

    @property
    def profiling(self) -> bool:
        """True if the calls of all requests are measured (PERF_COUNT); see `InferRequest.get_profiling_info`."""
        return self._profiling

    @profiling.setter
    def profiling(self, on: bool) -> None:
        self._profiling = on
        for request in list(self._requests):
            request.enable_profiling(on)

    def get_runtime_model(self) -> RuntimeModel:
        """Return the graph of what runs: inputs, calls and outputs, with the times of the last inferences if PERF_COUNT
        is set.
        """
        from aot.runtime.measuring.runtime_model import runtime_model

        measured = [times for request in list(self._requests) if (times := request.last_times())]
        return runtime_model(self.manifest, str(self.get_property("INFERENCE_PRECISION_HINT")), measured)

    def export_model(self, target: str | PathLike[str] | BinaryIO) -> None:
        """Write the model as a shared library to `target`, a path or a binary stream.

        Raises OSError if it cannot be written, PlatformError if a linker is needed and not installed, UsageError for
        the name of another system's file, and for a stream and external weights, which are a second file.
        """
        if isinstance(target, (str, PathLike)):
            check_library(Path(target))
            self._library.save(Path(target))
            return
        if "external" in self.manifest.json:
            raise UsageError("export: must be to a path, as external weights are a second file, got a stream")
        with temporary(".so") as path:
            self._library.save(path)
            with path.open("rb") as stream:
                copy(stream, target)

    @property
    def content_hash(self) -> str:
        """SHA-256 of code, weights and options, hexadecimal: equal for equal models."""
        return str(self.manifest.json.get("hash", ""))

    @property
    def supported_properties(self) -> tuple[str, ...]:
        """Names that `get_property` knows, in OpenVINO's spelling."""
        return tuple(SUPPORTED)

    def get_property(self, name: str) -> object:
        """Return a property by OpenVINO's name, as `INFERENCE_NUM_THREADS`; UsageError lists the names there are."""
        return property_of(self, name)

    def set_property(self, properties: Mapping[str, object]) -> None:
        """Change properties, by OpenVINO's names; UsageError for an unknown or read-only one, or a wrong value."""
        for name, value in properties.items():
            change(self, name, value)

    def release_memory(self) -> None:
        """Free the arenas of all idle requests; their next inference allocates new ones."""
        for request in list(self._requests):
            request.release_memory()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as path and content hash: unpickling needs the same file at the same path."""
        if self._path is None:
            raise UsageError("pickle: the model must have been loaded from a file, got one in memory; see export_model")
        return _unpickled, (str(self._path), self.content_hash, self.threads * self.streams, self.streams)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{info.name}: {info}" for info in self.inputs)
        outputs = ", ".join(f"{info.name}: {info}" for info in self.outputs)
        return f"CompiledModel({self.name}: ({inputs}) -> ({outputs}))"


def load(
    path: str | PathLike[str],
    threads: int | None = None,
    pool: Pool | None = None,
    weights: str | PathLike[str] | None = None,
    strict: bool = False,
) -> CompiledModel:
    """Load the compiled model in the shared library `path`.

    `threads`: threads of one inference, the caller's included; None: as many as this process may use. `pool`: the
    threads of another model, to be shared; excludes `threads`. `weights`: path of the external weights; None:
    `m.weights` beside `m.so`. `strict`: embedded weights are checked by their hash too, which reads all of them; code,
    manifest and external weights are always checked before anything is loaded.

    Raises CorruptError for a damaged file, PlatformError for another machine or ABI version, UsageError for a number of
    threads out of range, OSError if a file cannot be read.
    """
    library = open_library(Path(path), None if weights is None else Path(weights), strict)
    return CompiledModel(library, threads, pool, Path(path).resolve() if weights is None else None)


def import_model(source: BinaryIO | bytes | str | PathLike[str], threads: int | None = None) -> CompiledModel:
    """Load a model, as `load` does, from a stream or bytes that `export_model` wrote, or from a file.

    A stream is read to the end of the model: another model, or other data, may follow, and stay to be read.
    Raises UsageError for a library with external weights in a stream, and the errors of `load`.
    """
    if isinstance(source, (str, PathLike)):
        return load(source, threads)
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    library = open_bytes(stream)
    if stream is not source and stream.read(1):
        raise CorruptError("load: memory: must be a whole compiled model, got one with bytes behind it")
    return CompiledModel(library, threads)


def _unpickled(path: str, content_hash: str, threads: int, streams: int = 1) -> CompiledModel:
    model = load(path, threads)
    if streams > 1:
        model.streams = streams
    if model.content_hash != content_hash:
        raise CorruptError(f"pickle: {path}: must be the model with hash {content_hash}, got {model.content_hash}")
    return model
