"""Compiles trained networks ahead of time into native shared objects.

What is asked for is imported then: the command line does without the compiler where it runs what is compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from aot.options import CompileOptions
from runtime.errors import AotError, ModelError, UnsupportedError

if TYPE_CHECKING:
    from aot.convert import convert_model
    from aot.driver import Compilation, compile_model, stages
    from aot.frontends import read_model

__all__ = [
    "AotError",
    "Compilation",
    "CompileOptions",
    "ModelError",
    "UnsupportedError",
    "compile_model",
    "convert_model",
    "read_model",
    "stages",
]

_LATER = {
    "Compilation": "aot.driver",
    "compile_model": "aot.driver",
    "convert_model": "aot.convert",
    "read_model": "aot.frontends",
    "stages": "aot.driver",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
