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
from aot.runtime.errors import MissingError, UsageError

__all__ = ["conversion", "operation", "rewrite"]

HOMES = {  # modules that register conversions, by frameworks whose files are read
    "onnx": "aot.frontends.onnx.registry",
    "tf": "aot.frontends.tf.registry",
    "tflite": "aot.frontends.tflite.registry",
    "caffe": "aot.frontends.caffe.registry",
    "paddle": "aot.frontends.paddle.registry",
    "pt2": "aot.frontends.pt2.extension",
}
C = TypeVar("C", bound=Callable[..., Any])


def conversion(framework: str, *kinds: str) -> Callable[[C], C]:
    """Register the conversion of operations of a framework's files: a function `(node, *tensors)` that returns tensors.

    `framework`: onnx, tf, tflite, caffe, paddle or pt2. `kinds`: names; of ONNX with the domain before the last dot
    (`com.microsoft.Gelu`), of TensorFlow Lite with `CUSTOM.` before custom operations, of PyTorch with the name space
    before `::` and the overload after the dot (`me::op.default`; without a name space: aten's). `node` has `build` and
    the attributes (see `NodeContext` in `aot.frontends.conversion.node_context`). UsageError for a framework whose
    files are not read.
    """
    if framework not in HOMES or not kinds:
        rule = f"conversion: a framework of {', '.join(HOMES)} and names of operations"
        raise UsageError(f"{rule}, got {', '.join((framework, *kinds))}")
    try:
        home: Any = import_module(HOMES[framework])
    except ModuleNotFoundError as error:
        rule = f"files of {framework} need a package that is not installed"
        raise MissingError(f"conversion: {rule}: {error.name}") from error

    def register(function: C) -> C:
        for kind in kinds:
            home.extension(kind)(function)
        return function

    return register
