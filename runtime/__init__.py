"""Loads and runs compiled models; needs Python's standard library and NumPy only."""

from runtime.errors import AotError, BusyError, CancelledError
from runtime.executor import Executor
from runtime.manifest import Dim, TensorInfo
from runtime.model import CompiledModel, import_model, load
from runtime.queue import AsyncInferQueue
from runtime.request import InferRequest, Outputs
from runtime.variables import VariableState
from runtime.weights import update_weights

__all__ = [
    "AotError",
    "AsyncInferQueue",
    "BusyError",
    "CancelledError",
    "CompiledModel",
    "Dim",
    "Executor",
    "InferRequest",
    "Outputs",
    "TensorInfo",
    "VariableState",
    "import_model",
    "load",
    "update_weights",
]
