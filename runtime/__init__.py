"""Runs compiled models; needs Python's standard library and NumPy only."""

from runtime.errors import AotError
from runtime.manifest import Dim, TensorInfo
from runtime.model import CompiledModel, import_model, load
from runtime.request import InferRequest, Outputs

__all__ = ["AotError", "CompiledModel", "Dim", "InferRequest", "Outputs", "TensorInfo", "import_model", "load"]
