"""Loads and runs compiled models; needs Python's standard library and NumPy only."""

from runtime.errors import AotError, BusyError, CancelledError
from runtime.generation.generator import Generator
from runtime.generation.sampling import Sampling
from runtime.inference.executor import Executor
from runtime.inference.request import InferRequest, Outputs
from runtime.inference.variables import VariableState
from runtime.loading.manifest import Dim, TensorInfo
from runtime.loading.weights import update_weights
from runtime.model import CompiledModel, import_model, load
from runtime.pipeline import Pipeline
from runtime.queue import AsyncInferQueue

__all__ = [
    "AotError",
    "AsyncInferQueue",
    "BusyError",
    "CancelledError",
    "CompiledModel",
    "Dim",
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
