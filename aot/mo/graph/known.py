"""Operation classes by name, for nodes and graphs that make operations; the classes themselves need graphs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {"Const": "aot.mo.ops.const", "Result": "aot.mo.ops.result"}


def operation_class(name: str) -> Any:
    """Return the class of Const or Result."""
    return getattr(import_module(_HOMES[name]), name)
