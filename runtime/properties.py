"""Properties of a compiled model that can be read and set, in OpenVINO's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from runtime.errors import UsageError
from runtime.loading.manifest import Manifest

THREADS = "INFERENCE_NUM_THREADS"


class Described(Protocol):
    """Source of properties: a CompiledModel."""

    @property
    def threads(self) -> int: ...
    @threads.setter
    def threads(self, count: int) -> None: ...
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
    if name != THREADS:
        what = "is read-only" if name in _GET else "is unknown"
        raise UsageError(f"property: only {THREADS} can be set, got {name}, which {what}")
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"property: {THREADS} must be an integer, got {value!r}")
    model.threads = value


def _precision(model: Described) -> str:
    """In which type most layers compute, whatever the model's numbers are stored as."""
    return str(model.manifest.options.get("precision", "f32")).split(",")[0]


_GET: dict[str, Callable[[Described], object]] = {
    "SUPPORTED_PROPERTIES": lambda model: list(_GET),
    "NETWORK_NAME": lambda model: model.name,
    "MODEL_NAME": lambda model: model.name,
    "MODEL_HASH": lambda model: model.content_hash,
    "EXECUTION_DEVICES": lambda model: ["CPU"],
    "INFERENCE_PRECISION_HINT": _precision,
    THREADS: lambda model: model.threads,
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS": lambda model: model.threads,
    "COMPILE_OPTIONS": lambda model: dict(model.manifest.options),
    "TOOLCHAIN": lambda model: model.manifest.json.get("toolchain"),
    "TARGET_FEATURES": lambda model: list(model.manifest.features),
    "SUPPORTED_METRICS": lambda model: [name for name in _GET if name != THREADS],  # OpenVINO's names until 2022
    "SUPPORTED_CONFIG_KEYS": lambda model: [THREADS],
}
SUPPORTED = tuple(_GET)
