"""Rewrites by patterns that are functions: the pattern is the expression that the function returns for `p`.

    @rewrite(lambda p, x: p.Multiply(x, p.Sigmoid(x)))
    def swish(build, x):
        \"\"\"x * Sigmoid(x) -> Swish(x)\"\"\"
        return build.Swish(x)

Parameters of the pattern stand for any tensor; one that is used twice is the same tensor twice. A number stands for a
constant whose elements all are that number; `p.constant(x)` for a parameter that must be a constant. Keywords are
attributes: a value, or a function of the value. Operands of commutative operations fit in either order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from enum import Enum
from functools import wraps
from typing import Any, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.ir.registry import all_operations
from aot.ir.scope import current
from aot.passes.match import constant, is_close, uniform
from aot.passes.rewrite import Replacement, Rule
from aot.runtime.errors import UsageError

COMMUTATIVE = frozenset(
    "Add Multiply Maximum Minimum Equal NotEqual LogicalAnd LogicalOr LogicalXor SquaredDifference".split()
)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A parameter of the pattern: any tensor, or any constant."""

    name: str
    known: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class PatternNode:
    """An operation of the pattern, and which of its outputs is meant: `p.Split(x, 1)[1]`."""

    type: str
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    output: int = 0
    whole: PatternNode | None = None  # the operation itself, where this is one of its outputs

    def __getitem__(self, output: int) -> PatternNode:
        return PatternNode(self.type, self.inputs, self.attrs, output, self.whole or self)

    def __str__(self) -> str:
        return self.type


class Maker:
    """The maker of patterns: `p.Relu(x)`, `p.constant(x)`."""

    def constant(self, tensor: Tensor) -> Tensor:
        """Return a parameter as one that must be a constant."""
        return Tensor(tensor.name, known=True)

    def __getattr__(self, type: str) -> Callable[..., PatternNode]:
        if type.startswith("__"):
            raise AttributeError(type)
        classes = classes_of(type)

        def operation(*inputs: Any, **attrs: Any) -> PatternNode:
            field_names = {f.name for cls in classes for f in fields(cls)}
            if wrong := sorted(attrs.keys() - field_names):
                shown = ", ".join(sorted(field_names)) or "none"
                raise UsageError(f"rewrite: {type} has the attributes {shown}, got {wrong[0]}")
            for operand in inputs:
                if not isinstance(operand, Tensor | PatternNode | int | float):
                    raise UsageError(
                        f"rewrite: inputs of {type} must be parameters, operations or numbers, got {operand!r}"
                    )
            return PatternNode(type, inputs, attrs)

        return operation


def classes_of(type: str) -> tuple[type[Op], ...]:
    """Return all definitions of an operation; UsageError for an unknown one."""
    operations = {**all_operations(), **current().operations}
    classes = tuple(cls for name, cls in operations.items() if type in (cls.type, name))
    if not classes:
        near: list[str] = get_close_matches(type, {cls.type for cls in operations.values()}, 1)
        raise UsageError(
            f"rewrite: a pattern must have operations, got {type}{f'; did you mean {near[0]}' if near else ''}"
        )
    return classes


def layer_of(node: Node) -> str:
    """Return the name of the layer that a node comes from; its own name if it comes from none or several."""
    layers = node.origin.layers
    return layers[0] if len(layers) == 1 else node.name


@dataclass(slots=True)
class Stop:
    """End of an attempt: the number of operations that fit, and the first difference."""

    matched: int
    reason: str


@dataclass(frozen=True, slots=True)
class Match:
    """A match, whole or in part: tensors by parameter, nodes by operation."""

    tensors: Mapping[str, OutPort] = field(default_factory=dict[str, OutPort])
    nodes: Mapping[int, Node] = field(default_factory=dict[int, Node])


class Search:
    """The matches of a pattern; remembers the attempt that went furthest."""

    def __init__(self) -> None:
        self.furthest = Stop(-1, "")

    def port(self, pattern: Any, port: OutPort | None, match: Match, where: str) -> Iterator[Match]:
        """Yield each match of a pattern at a tensor. `where` names the tensor for reports."""
        if port is None:
            self._stop(match, f"{where} is not connected")
        elif isinstance(pattern, Tensor):
            yield from self._tensor(pattern, port, match, where)
        elif isinstance(pattern, PatternNode):
            if port.idx != pattern.output:
                self._stop(match, f"{where} is output {port.idx} of {layer_of(port.node)!r}, not {pattern.output}")
                return
            yield from self.node(pattern, port.node, match, where)
        elif not is_close(uniform(port), pattern) and uniform(port) != pattern:
            self._stop(match, f"{where} is not {pattern}: {_value(port)}")
        else:
            yield match

    def _tensor(self, pattern: Tensor, port: OutPort, match: Match, where: str) -> Iterator[Match]:
        before = match.tensors.get(pattern.name)
        if pattern.known and constant(port) is None:
            self._stop(match, f"{where} is no constant: it is made by {port.node.type} {layer_of(port.node)!r}")
        elif before is not None and before is not port and not _are_equal(before, port):
            names = f"{layer_of(before.node)!r} and {layer_of(port.node)!r}"
            self._stop(match, f"{where} is another tensor than {pattern.name} elsewhere: {names}")
        else:
            yield Match({**match.tensors, pattern.name: port}, match.nodes)

    def node(self, pattern: PatternNode, node: Node, match: Match, where: str) -> Iterator[Match]:
        """Yield each match of the pattern's operation at a node."""
        key = id(pattern.whole or pattern)
        before = match.nodes.get(key)
        if before is not None:
            if before is node:
                yield match
            else:
                self._stop(match, f"{where} is made by {layer_of(node)!r}, and by {layer_of(before)!r} elsewhere")
            return
        reason = _unlike(pattern, node)
        if reason:
            self._stop(match, f"{where} {reason}")
            return
        inside = Match(match.tensors, {**match.nodes, key: node})
        for sources in _orders(pattern, node):
            yield from self._inputs(pattern, sources, inside, node)

    def _inputs(
        self, pattern: PatternNode, sources: list[OutPort | None], match: Match, node: Node, begin: int = 0
    ) -> Iterator[Match]:
        if begin == len(pattern.inputs):
            yield match
            return
        where = f"input {begin} of {node.type} {layer_of(node)!r}"
        for step in self.port(pattern.inputs[begin], sources[begin], match, where):
            yield from self._inputs(pattern, sources, step, node, begin + 1)

    def _stop(self, match: Match, reason: str) -> None:
        if len(match.nodes) > self.furthest.matched:
            self.furthest = Stop(len(match.nodes), reason)


def _unlike(pattern: PatternNode, node: Node) -> str:
    """Return the difference between a node and a pattern's operation, without inputs; empty if there is none."""
    if not isinstance(node.op, classes_of(pattern.type)):
        return f"is made by {node.type} {layer_of(node)!r}, not by {pattern.type}"
    if len(node.sources()) != len(pattern.inputs):
        return f"is {node.type} {layer_of(node)!r} with {len(node.sources())} inputs, not {len(pattern.inputs)}"
    for name, expected in pattern.attrs.items():
        value = _plain(getattr(node.op, name, None))
        if not (expected(value) if callable(expected) else value == _plain(expected)):
            shown = "what the pattern asks for" if callable(expected) else repr(expected)
            return f"is {node.type} {layer_of(node)!r} whose {name} is {value!r}, not {shown}"
    return ""


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _orders(pattern: PatternNode, node: Node) -> list[list[OutPort | None]]:
    sources = node.sources()
    return [sources, sources[::-1]] if pattern.type in COMMUTATIVE and len(sources) == 2 else [sources]


def _are_equal(a: OutPort, b: OutPort) -> bool:
    """True for two constants with one value."""
    first, second = constant(a), constant(b)
    return first is not None and second is not None and a.type == b.type and np.array_equal(first, second)


def _value(port: OutPort) -> str:
    value = constant(port)
    if value is None:
        return f"it is made by {port.node.type} {layer_of(port.node)!r}"
    return f"it is {value.reshape(-1)[0]}" if value.size == 1 else f"it is a constant of shape {list(value.shape)}"


@dataclass(frozen=True, slots=True)
class PatternRule(Rule):
    """A rule with a pattern that can be looked at."""

    pattern: PatternNode
    names: tuple[str, ...]  # of the parameters

    def attempt(self, node: Node) -> tuple[Match | None, Stop]:
        """Return the match at a node, None without one, and the attempt that went furthest."""
        search = Search()
        match = next(search.node(self.pattern, node, Match(), "the result"), None)
        return match, search.furthest

    @property
    def size(self) -> int:
        """Number of operations of the pattern."""
        seen: dict[int, PatternNode] = {}
        stack: list[Any] = [self.pattern]
        while stack:
            one = stack.pop()
            if isinstance(one, PatternNode) and id(one.whole or one) not in seen:
                seen[id(one.whole or one)] = one
                stack += one.inputs
        return len(seen)


def rewrite(pattern: Callable[..., Any]) -> Callable[[Callable[..., Replacement]], PatternRule]:
    """Make a rule of a pattern and a function `(build, *tensors)`, which returns the replacement, or None.

    Both have the same parameters after the first one. UsageError for a pattern that no operation is.
    """
    names = tuple(inspect.signature(pattern).parameters)[1:]
    root = pattern(Maker(), *(Tensor(name) for name in names))
    if not isinstance(root, PatternNode):
        raise UsageError(f"rewrite: a pattern must return an operation, got {root!r}")

    def register(function: Callable[..., Replacement]) -> PatternRule:
        own = tuple(inspect.signature(function).parameters)[1:]
        if own != names:
            rule = "the function has the parameters of the pattern behind the first one"
            raise UsageError(f"rewrite: {function.__name__}: {rule}, {', '.join(names)}, got {', '.join(own)}")

        @wraps(function)
        def body(node: Node, op: Op, build: Builder) -> Replacement:
            match, _ = pattern_rule.attempt(node)
            return None if match is None else function(build, *(match.tensors[name] for name in names))

        equation = (function.__doc__ or "").strip()
        pattern_rule = PatternRule(function.__name__, classes_of(root.type), body, equation, root, names)
        return pattern_rule

    return register
