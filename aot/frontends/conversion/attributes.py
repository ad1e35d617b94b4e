"""Attributes as parameters: a conversion's keyword-only parameters, with the defaults of the operation.

    def celu(node: NodeContext, x: OutPort, *, alpha: float = 1.0) -> OutPort: ...

`alpha` is `node.number("alpha", 1.0)`. An annotation with None is of an attribute that may be left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from aot.frontends.conversion.node_context import NodeContext
from aot.runtime.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

READERS: dict[str, Callable[..., Any]] = {
    "int": NodeContext.integer,
    "float": NodeContext.number,
    "bool": NodeContext.flag,
    "str": NodeContext.text,
    "Sequence[int]": NodeContext.integers,
    "Sequence[float]": NodeContext.numbers,
    "Sequence[str]": NodeContext.texts,
}


def with_attributes(function: F) -> F:
    """Return a conversion that gets its keyword-only parameters from the attributes of the node."""
    signature = inspect.signature(function)
    inputs = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    read = [_reader(p) for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    if not read:
        return function

    @wraps(function)
    def converted(node: NodeContext, *arguments: Any) -> Any:
        return function(node, *arguments, **{name: value(node) for name, value in read})

    setattr(converted, "__signature__", signature.replace(parameters=inputs))  # noqa: B010  (it is checked)
    return cast(F, converted)


def _reader(parameter: inspect.Parameter) -> tuple[str, Callable[[NodeContext], Any]]:
    """Return the name of a parameter, and what reads its attribute; UsageError for a type that no attribute has."""
    name, given = parameter.name, parameter.annotation
    annotation = given if isinstance(given, str) else getattr(given, "__name__", str(given))
    reader = READERS.get(annotation.removesuffix(" | None"))
    if reader is None:
        raise UsageError(f"conversion: attribute {name} must be one of {', '.join(READERS)}, got {annotation}")
    if annotation.endswith("None"):
        return name, lambda node: reader(node, name) if node.has(name) else None
    default = () if parameter.default is parameter.empty else (parameter.default,)
    return name, lambda node: reader(node, name, *default)
