"""A compiled model that is ready to run."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from runtime.errors import UsageError
from runtime.library import Library, Pool, open_bytes, open_library
from runtime.machine import default_threads
from runtime.manifest import Manifest, TensorInfo
from runtime.request import InferRequest, Outputs, find

THREADS = "INFERENCE_NUM_THREADS"
_READ_ONLY = (
    "MODEL_NAME", "NETWORK_NAME", "EXECUTION_DEVICES", "OPTIMAL_NUMBER_OF_INFER_REQUESTS", "SUPPORTED_PROPERTIES",
)  # fmt: skip


class CompiledModel:
    """Code and weights of a model, with the threads that run it; may be called from any number of threads."""

    def __init__(self, library: Library, threads: int | None = None, pool: Pool | None = None) -> None:
        """`threads` None: as many as this process may use. With the `pool` of another model, both share its threads."""
        if pool is not None and threads is not None:
            raise UsageError(f"threads: those of the pool that is given, got {threads}")
        self._library = library
        self._pool = pool if pool is not None else library.pool(default_threads() if threads is None else threads)
        self._own = threading.local()

    def __call__(self, *inputs: object, **named: object) -> Outputs:
        """Results for `inputs`: arrays in order, one sequence or mapping of them, or by name.

        Results are arrays of their own. UsageError for a wrong name, type or shape.
        """
        try:
            request: InferRequest = self._own.request
        except AttributeError:
            request = self._own.request = self.create_infer_request()
        if named:
            if inputs:
                raise UsageError("inputs: by position or by name, got both")
            return request.infer(named)
        return request.infer(inputs[0] if len(inputs) == 1 else inputs)

    @property
    def name(self) -> str:
        return self._library.manifest.name

    @property
    def manifest(self) -> Manifest:
        return self._library.manifest

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return self._library.manifest.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return self._library.manifest.outputs

    def input(self, key: int | str = 0) -> TensorInfo:
        return self.inputs[key if isinstance(key, int) else find("input", self.inputs, key)]

    def output(self, key: int | str = 0) -> TensorInfo:
        return self.outputs[key if isinstance(key, int) else find("output", self.outputs, key)]

    @property
    def pool(self) -> Pool:
        """The threads, to be shared with other models."""
        return self._pool

    @property
    def threads(self) -> int:
        """That work on one inference, the caller's counted."""
        return self._pool.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._pool.resize(count)

    def create_infer_request(self) -> InferRequest:
        """A request with an arena and a state of its own; all requests share the model's threads."""
        return InferRequest(self._library, self._pool)

    def export_model(self, target: str | PathLike[str] | BinaryIO) -> None:
        """Write the model as a shared library; OSError, or PlatformError if that needs a linker and there is none."""
        if isinstance(target, str | PathLike):
            self._library.save(Path(target))
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.so"
            self._library.save(path)
            with path.open("rb") as stream:
                shutil.copyfileobj(stream, target)

    def get_property(self, name: str) -> object:
        """A property in OpenVINO's spelling; UsageError names those there are."""
        match name:
            case "INFERENCE_NUM_THREADS":
                return self.threads
            case "MODEL_NAME" | "NETWORK_NAME":
                return self.name
            case "EXECUTION_DEVICES":
                return ["CPU"]
            case "OPTIMAL_NUMBER_OF_INFER_REQUESTS":
                return 1
            case "SUPPORTED_PROPERTIES":
                return [THREADS, *_READ_ONLY]
            case _:
                raise UsageError(f"property: one of {', '.join((THREADS, *_READ_ONLY))}, got {name}")

    def set_property(self, properties: Mapping[str, object]) -> None:
        """Change properties; UsageError for one that is unknown, read-only or gets a wrong value."""
        for name, value in properties.items():
            if name != THREADS:
                raise UsageError(f"property: can be set: {THREADS}, got {name}")
            if not isinstance(value, int) or isinstance(value, bool):
                raise UsageError(f"property: {THREADS} is an integer, got {value!r}")
            self.threads = value

    def __repr__(self) -> str:
        inputs = ", ".join(f"{info.name}: {info}" for info in self.inputs)
        outputs = ", ".join(f"{info.name}: {info}" for info in self.outputs)
        return f"CompiledModel({self.name}: ({inputs}) -> ({outputs}))"


def load(path: str | PathLike[str], threads: int | None = None, pool: Pool | None = None) -> CompiledModel:
    """The model in the shared library `path`; CorruptError, PlatformError if it is not for this machine, OSError."""
    return CompiledModel(open_library(Path(path)), threads, pool)


def import_model(source: BinaryIO | str | PathLike[str], threads: int | None = None) -> CompiledModel:
    """As `load`, from a stream that `export_model` wrote, or from a file."""
    if isinstance(source, str | PathLike):
        return load(source, threads)
    return CompiledModel(open_bytes(source), threads)
