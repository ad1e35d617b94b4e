"""Loads and runs compiled models; needs Python's standard library and NumPy only."""

from importlib import import_module
from typing import TYPE_CHECKING

from aot.runtime.alias import alias
from aot.runtime.errors import AotError, BusyError, CancelledError

if TYPE_CHECKING:
    from aot.runtime.generation.batch import Batch
    from aot.runtime.generation.drafting import Drafting
    from aot.runtime.generation.generator import Generator
    from aot.runtime.generation.sampling import Sampling
    from aot.runtime.inference.executor import Executor
    from aot.runtime.inference.request import InferRequest, Outputs
    from aot.runtime.inference.variables import VariableState
    from aot.runtime.loading.manifest import Dim, TensorInfo
    from aot.runtime.loading.weights import update_weights
    from aot.runtime.model import CompiledModel, import_model, load
    from aot.runtime.pipeline import Pipeline
    from aot.runtime.queue import AsyncInferQueue

__all__ = [
    "AotError",
    "AsyncInferQueue",
    "Batch",
    "BusyError",
    "CancelledError",
    "CompiledModel",
    "Dim",
    "Drafting",
    "Executor",
    "Generator",
    "InferRequest",
    "Outputs",
    "Pipeline",
    "Sampling",
    "TensorInfo",
    "VariableState",
    "import_model",
    "load",
    "update_weights",
]

# Imported when they are first used: a process that compiles needs no loader, and one that infers no generator.
_LATER = {
    "AsyncInferQueue": ".queue",
    "Batch": ".generation.batch",
    "CompiledModel": ".model",
    "Dim": ".loading.manifest",
    "Drafting": ".generation.drafting",
    "Executor": ".inference.executor",
    "Generator": ".generation.generator",
    "import_model": ".model",
    "InferRequest": ".inference.request",
    "load": ".model",
    "Outputs": ".inference.request",
    "Pipeline": ".pipeline",
    "Sampling": ".generation.sampling",
    "TensorInfo": ".loading.manifest",
    "update_weights": ".loading.weights",
    "VariableState": ".inference.variables",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)


def __dir__() -> list[str]:
    """Return the public names, with those that are imported later."""
    return sorted(__all__)


if __name__ == "runtime":  # imported from the root of a checkout
    alias(__name__, "aot.runtime")
