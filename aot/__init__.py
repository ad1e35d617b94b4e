"""Compiles trained networks ahead of time into native shared objects."""

from aot.driver import Compilation, compile_model, stages
from aot.frontends import read_model
from aot.options import CompileOptions
from runtime.errors import AotError, ModelError, UnsupportedError

__all__ = [
    "AotError",
    "Compilation",
    "CompileOptions",
    "ModelError",
    "UnsupportedError",
    "compile_model",
    "read_model",
    "stages",
]
