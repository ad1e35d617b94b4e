"""Extensions in one file, by decorators: operations, conversions of foreign operations, rewrites.

@aot.operation
def scaled_tanh(build, x, *, scale: float = 1.0): ...

@aot.conversion("onnx", "me.ScaledTanh")
@aot.conversion("tf", "ScaledTanh")
def converted(node, x): ...

@aot.rewrite(lambda p, x: p.Multiply(x, p.Sigmoid(x)))
def swish(build, x): ...
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from aot.opset.base.composed import operation
from aot.passes.pattern import rewrite
from runtime.errors import MissingError, UsageError

__all__ = ["conversion", "operation", "rewrite"]

FRAMEWORKS = ("onnx", "tf", "tflite")  # frameworks whose files are read: modules `aot.frontends.X.registry`
C = TypeVar("C", bound=Callable[..., Any])


def conversion(framework: str, *kinds: str) -> Callable[[C], C]:
    """Register the conversion of operations of a framework's files: a function `(node, *tensors)` that returns tensors.

    `framework`: onnx, tf or tflite. `kinds`: names; of ONNX with the domain before the last dot
    (`com.microsoft.Gelu`), of TensorFlow Lite with `CUSTOM.` before custom operations. `node` has `build` and the
    attributes (see `Call` in the framework's `registry`). UsageError for a framework whose files are not read.
    """
    if framework not in FRAMEWORKS or not kinds:
        rule = f"conversion: a framework of {', '.join(FRAMEWORKS)} and names of operations"
        raise UsageError(f"{rule}, got {', '.join((framework, *kinds))}")
    try:
        registry: Any = import_module(f"aot.frontends.{framework}.registry")
    except ModuleNotFoundError as error:
        rule = f"files of {framework} need a package that is not installed"
        raise MissingError(f"conversion: {rule}: {error.name}") from error

    def register(function: C) -> C:
        for kind in kinds:
            if framework == "onnx":
                domain, _, name = kind.rpartition(".")
                registry.onnx(name, domain=domain)(function)
            else:
                getattr(registry, framework)(kind)(function)
        return function

    return register
