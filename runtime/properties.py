"""Properties of a compiled model that can be read and set, by OpenVINO's names; those that it had until 2022, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Manifest

THREADS, STREAMS, PROFILING, BINDING = "INFERENCE_NUM_THREADS", "NUM_STREAMS", "PERF_COUNT", "CPU_BIND_THREAD"
AUTO = "AUTO"  # as many streams as there are threads
OLD_NAMES = {"CPU_THREADS_NUM": THREADS, "CPU_THROUGHPUT_STREAMS": STREAMS}
_AUTO = (AUTO, "CPU_THROUGHPUT_AUTO", "CPU_THROUGHPUT_NUMA", -1, "-1")
_ALLOWED: dict[str, dict[object, object]] = {  # values, and what they mean
    PROFILING: {True: True, False: False, "YES": True, "NO": False},
    BINDING: {"YES": "YES", "NO": "NO", "NUMA": "NUMA", "HYBRID_AWARE": "HYBRID_AWARE"},
    "DEVICE_ID": {"": "", "0": ""},
}


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
    def profiling(self) -> bool: ...
    @profiling.setter
    def profiling(self, on: bool) -> None: ...
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
    checked_value = checked(name, value)
    _SET[name](model, checked_value)


def checked(name: str, value: object) -> object:
    """Return the value of a property that can be set, in one form; UsageError as of `change`.

    Numbers may be texts. AUTO for as many streams as there are threads.
    """
    if name not in _SET:
        what = "is read-only" if name in _GET else "is unknown"
        raise UsageError(f"property: only {', '.join(_SET)} can be set, got {name}, which {what}")
    known = OLD_NAMES.get(name, name)
    if known in _ALLOWED:
        if isinstance(value, str | bool) and value in _ALLOWED[known]:
            return _ALLOWED[known][value]
        shown = ", ".join(map(repr, _ALLOWED[known]))
        raise UsageError(f"property: {name} must be one of {shown}, got {value!r}")
    if known == STREAMS and value in _AUTO:
        return AUTO
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"property: {name} must be an integer, got {value!r}")
    return value


def _set_threads(model: Described, count: object) -> None:
    if isinstance(count, int):
        model.threads = max(1, count // model.streams) if count > 0 else count


def _set_streams(model: Described, count: object) -> None:
    model.streams = count if isinstance(count, int) else model.threads * model.streams


def _set_profiling(model: Described, on: object) -> None:
    model.profiling = on is True


def _set_nothing(model: Described, value: object) -> None:
    """Accept a value without an effect: there is one device, and streams alone have processors of their own."""


def _precision(model: Described) -> str:
    """Return the type of most layers' computations, which need not be that of the stored numbers."""
    return str(model.manifest.options.get("precision", "f32")).split(",")[0]


def _all_threads(model: Described) -> int:
    return model.threads * model.streams


_SET: dict[str, Callable[[Described, object], None]] = {
    THREADS: _set_threads,
    STREAMS: _set_streams,
    PROFILING: _set_profiling,
    "CPU_THREADS_NUM": _set_threads,
    "CPU_THROUGHPUT_STREAMS": _set_streams,
    BINDING: _set_nothing,
    "DEVICE_ID": _set_nothing,
}
_GET: dict[str, Callable[[Described], object]] = {
    "SUPPORTED_PROPERTIES": lambda model: list(_GET),
    "NETWORK_NAME": lambda model: model.name,
    "MODEL_NAME": lambda model: model.name,
    "MODEL_HASH": lambda model: model.content_hash,
    "EXECUTION_DEVICES": lambda model: ["CPU"],
    "INFERENCE_PRECISION_HINT": _precision,
    THREADS: _all_threads,
    STREAMS: lambda model: model.streams,
    PROFILING: lambda model: model.profiling,
    "CPU_THREADS_NUM": _all_threads,
    "CPU_THROUGHPUT_STREAMS": lambda model: model.streams,
    BINDING: lambda model: "YES" if model.streams > 1 else "NO",
    "DEVICE_ID": lambda model: "",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS": lambda model: model.streams if model.streams > 1 else model.threads,
    "COMPILE_OPTIONS": lambda model: dict(model.manifest.options),
    "TOOLCHAIN": lambda model: model.manifest.json.get("toolchain"),
    "TARGET_FEATURES": lambda model: list(model.manifest.features),
    "SUPPORTED_METRICS": lambda model: [name for name in _GET if name not in _SET],  # OpenVINO's names until 2022
    "SUPPORTED_CONFIG_KEYS": lambda model: list(_SET),
}
SUPPORTED = tuple(_GET)
SETTABLE = tuple(_SET)
