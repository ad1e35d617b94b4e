"""Compiles trained networks ahead of time into native shared objects.

The compiler is imported with the first name that needs it: the command line does without it where it runs compiled
models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from aot.compilation.limits.garbage import FEWER_COLLECTIONS
from aot.runtime.version import VERSION

if TYPE_CHECKING:
    from aot import runtime
    from aot.compilation.compilation import Compilation
    from aot.compilation.driver import compile_model, stages
    from aot.compilation.search.precision import FoundPrecision, find_precision
    from aot.extensions.decorators import conversion, operation, rewrite
    from aot.frontends import read_model
    from aot.options import CompileOptions
    from aot.options.typed import CompileKeywords
    from aot.passes.weights.matrices import SmallWeights
    from aot.pytorch.exporting import export
    from aot.runtime.errors import AotError, ModelError, UnsupportedError
    from aot.tools.comparing.compare import compare
    from aot.tools.convert import convert_model
    from aot.tools.quantizing.quantize import quantize_model
    from aot.tools.quantizing.report import Quantized
    from aot.tools.quantizing.weights import quantize_weights

__all__ = [
    "AotError",
    "Compilation",
    "CompileKeywords",
    "CompileOptions",
    "FoundPrecision",
    "ModelError",
    "Quantized",
    "SmallWeights",
    "UnsupportedError",
    "__version__",
    "compare",
    "compile_model",
    "conversion",
    "convert_model",
    "export",
    "find_precision",
    "operation",
    "quantize_model",
    "quantize_weights",
    "read_model",
    "rewrite",
    "runtime",
    "stages",
]

__version__ = VERSION

_LATER = {
    "AotError": "aot.runtime.errors",
    "Compilation": "aot.compilation.compilation",
    "CompileKeywords": "aot.options.typed",
    "CompileOptions": "aot.options",
    "compare": "aot.tools.comparing.compare",
    "compile_model": "aot.compilation.driver",
    "FoundPrecision": "aot.compilation.search.precision",
    "conversion": "aot.extensions.decorators",
    "convert_model": "aot.tools.convert",
    "export": "aot.pytorch.exporting",
    "find_precision": "aot.compilation.search.precision",
    "ModelError": "aot.runtime.errors",
    "operation": "aot.extensions.decorators",
    "Quantized": "aot.tools.quantizing.report",
    "quantize_model": "aot.tools.quantizing.quantize",
    "quantize_weights": "aot.tools.quantizing.weights",
    "read_model": "aot.frontends",
    "rewrite": "aot.extensions.decorators",
    "SmallWeights": "aot.passes.weights.matrices",
    "stages": "aot.compilation.driver",
    "UnsupportedError": "aot.runtime.errors",
}


def __getattr__(name: str) -> object:
    if name == "runtime":
        return import_module("aot.runtime")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with FEWER_COLLECTIONS:
        return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """Public names, those that are imported later too."""
    return sorted(__all__)
