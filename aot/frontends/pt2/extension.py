"""Conversions of PyTorch's operations by extensions: `@aot.conversion("pt2", "me::scaled_tanh.default")`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from aot.frontends.pt2.registry import CONVERSIONS, Argument, AtenNode, Symbol, Value, resolved, typed
from aot.runtime.errors import UnsupportedError

C = TypeVar("C", bound=Callable[..., Any])


def extension(kind: str) -> Callable[[C], C]:
    """Register an extension's conversion of an operation, `space::packet.overload`; without a name space, aten's.

    Arguments that the function names are given by name, other tensors in order to its other parameters; the constants
    that it does not name are attributes of the node: `node.number("scale", 1.0)`.
    """

    def register(function: C) -> C:
        CONVERSIONS.enter((kind.removeprefix("aten::"),), _Extension(function))
        return function

    return register


class _Extension:
    """A conversion by an extension: see `extension`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.function, self.__module__ = function, function.__module__
        self.named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        self.placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)

    def __call__(self, node: AtenNode, *inputs: Value) -> Any:
        given, constants, tensors = dict[str, Any](), dict[str, Any](), list[Any]()
        for name, value in node.arguments.items():
            port = resolved(node, value)
            if name in self.named:
                given[name] = node.port(port) if isinstance(port, Symbol) else port
            elif _is_constant(value):
                constants |= {} if value is None else {name: value}
            else:
                tensors += [node.port(x) if isinstance(x, Symbol) else x for x in _listed(port)]
        placed = [given.pop(name) if name in given else tensors.pop(0) for name in self._filled(given, len(tensors))]
        if tensors and not self.takes_more:
            rule = f"the conversion takes {len(self.placed)} tensors"
            raise UnsupportedError(f"{node.kind}: {rule}, got {len(tensors)} more")
        facts = {**node.attrs, **constants}
        return typed(node, self.function(replace(node, attrs=facts), *placed, *tensors, **given))

    def _filled(self, arguments: Mapping[str, Any], count: int) -> list[str]:
        """Return the parameters that get values by place: up to the one that the last of `count` tensors fills."""
        free = [i for i, name in enumerate(self.placed) if name not in arguments][:count]
        return self.placed[: free[-1] + 1] if free else []


def _is_constant(value: Any) -> bool:
    """True for an argument without values of the graph."""
    return all(not isinstance(v, Argument) for v in _listed(value))


def _listed(value: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
