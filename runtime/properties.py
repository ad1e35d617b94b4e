"""Properties of a compiled model that can be read and set, in OpenVINO's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Manifest

THREADS, STREAMS = "INFERENCE_NUM_THREADS", "NUM_STREAMS"
AUTO = "AUTO"  # as many streams as there are threads


class Described(Protocol):
    """Source of properties: a CompiledModel."""

    @property
    def threads(self) -> int: ...
    @threads.setter
    def threads(self, count: int) -> None: ...
    @property
    def streams(self) -> int: ...
    @streams.setter
    def streams(self, count: int) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def content_hash(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


def property_of(model: Described, name: str) -> object:
    """Return the value of the property `name`; UsageError lists the names there are."""
    if name not in _GET:
        raise UsageError(f"property: must be one of {', '.join(_GET)}, got {name}")
    return _GET[name](model)


def change(model: Described, name: str, value: object) -> None:
    """Set a property; UsageError for an unknown or read-only one or a wrong value."""
    if name not in _SET:
        what = "is read-only" if name in _GET else "is unknown"
        raise UsageError(f"property: only {' and '.join(_SET)} can be set, got {name}, which {what}")
    if name == STREAMS and value in (AUTO, -1):
        value = model.threads * model.streams
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"property: {name} must be an integer, got {value!r}")
    if name == STREAMS:
        model.streams = value
    else:
        model.threads = max(1, value // model.streams) if value > 0 else value


def _precision(model: Described) -> str:
    """In which type most layers compute, whatever the model's numbers are stored as."""
    return str(model.manifest.options.get("precision", "f32")).split(",")[0]


_SET = (THREADS, STREAMS)
_GET: dict[str, Callable[[Described], object]] = {
    "SUPPORTED_PROPERTIES": lambda model: list(_GET),
    "NETWORK_NAME": lambda model: model.name,
    "MODEL_NAME": lambda model: model.name,
    "MODEL_HASH": lambda model: model.content_hash,
    "EXECUTION_DEVICES": lambda model: ["CPU"],
    "INFERENCE_PRECISION_HINT": _precision,
    THREADS: lambda model: model.threads * model.streams,
    STREAMS: lambda model: model.streams,
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS": lambda model: model.streams if model.streams > 1 else model.threads,
    "COMPILE_OPTIONS": lambda model: dict(model.manifest.options),
    "TOOLCHAIN": lambda model: model.manifest.json.get("toolchain"),
    "TARGET_FEATURES": lambda model: list(model.manifest.features),
    "SUPPORTED_METRICS": lambda model: [name for name in _GET if name not in _SET],  # OpenVINO's names until 2022
    "SUPPORTED_CONFIG_KEYS": lambda model: list(_SET),
}
SUPPORTED = tuple(_GET)
