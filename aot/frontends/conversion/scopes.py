"""Graphs being filled from a file, with the variables of TensorFlow and TensorFlow Lite as values that change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array, Dim
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.state import Assign, ReadValue_3
from aot.runtime.abi import DType

Captures = tuple[tuple[str, int, int], ...]  # name of a region, its parameter, input of the node
First = Callable[[str, "Scope"], OutPort]


@dataclass(frozen=True, slots=True)
class Handle:
    """A variable or a table: its name in the file. `reference`: it is read where a tensor is wanted (TensorFlow 1)."""

    name: str
    reference: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor of the checkpoint, not read yet; `part`: which part of it, in TensorFlow's notation."""

    key: str
    part: str = ""


Value = OutPort | Handle | Saved | None
Table = tuple[Array, Array]  # keys, values


@dataclass(slots=True, eq=False)
class Scope:
    """A graph being filled, and the values of variables at the place that is reached.

    A variable that a region reads and has not set is one more parameter of the region: `captured` has its position and
    the value in the graph around it.
    """

    graph: Graph
    outer: Scope | None = None
    values: dict[str, OutPort] = field(default_factory=dict[str, OutPort])
    firsts: dict[str, OutPort] = field(default_factory=dict[str, OutPort])  # of the network: values before it runs
    written: dict[str, None] = field(default_factory=dict[str, None])
    entered: dict[str, int] = field(default_factory=dict[str, int])  # parameters that variables came in by
    captured: list[tuple[int, OutPort]] = field(default_factory=list[tuple[int, OutPort]])

    def set(self, name: str, value: OutPort) -> None:
        self.values[name] = value
        self.written[name] = None

    def enter(self, name: str, outside: OutPort) -> OutPort:
        """Add a parameter for a value of the outer graph."""
        node = self.graph.add(Parameter(DType.F32, None), name=name)
        self.captured.append((len(self.graph.parameters) - 1, outside))
        return node.out_port(0)

    def read(self, name: str, first: First) -> OutPort:
        """Return the value of a variable at this place; `first` gives the one before the inference, in the network."""
        if name not in self.values:
            if self.outer is None:
                self.values[name] = first(name, self)
            else:
                port = self.enter(name, self.outer.read(name, first))
                self.entered[name] = port.node.graph.parameters.index(port.node)
                self.values[name] = port
        return self.values[name]

    def keep_variables(self, names: Sequence[str], first: First, file: str) -> None:
        """Let variables of the network keep their values from one inference to the next."""
        for name in names:
            origin, before, last = Origin((name,), file), first(name, self), self.values[name]
            consumers = before.get_destinations()
            variable = self.graph.add(ReadValue_3(variable_id=name), before, origin=origin).out_port(0)
            for consumer in consumers:
                consumer.connect(variable)
            self.graph.add(Assign(variable_id=name), variable if last is before else last, origin=origin)


def branch_inputs(condition: OutPort, labels: Sequence[str], inners: Sequence[Scope]) -> tuple[list[OutPort], Captures]:
    """Return the inputs of an If, the condition first, and where its branches take them."""
    sources, captures = [condition], list[tuple[str, int, int]]()
    for label, inner in zip(labels, inners, strict=True):
        for position, port in inner.captured:
            captures.append((label, position, len(sources)))
            sources.append(port)
    return sources, tuple(captures)


def carried_variables(inner: Scope, outer: Scope, first: First) -> list[str]:
    """Return the variables that the body of a loop sets, in their order; each is a parameter of the body."""
    for variable in inner.written:
        if variable not in inner.entered:
            inner.entered[variable] = len(inner.graph.parameters)
            inner.enter(variable, outer.read(variable, first))
    return sorted(inner.written, key=inner.entered.__getitem__)


def loop_inputs(carried: Sequence[OutPort], variables: Sequence[str], inner: Scope) -> tuple[list[OutPort], Captures]:
    """Return the inputs of a While, the carried ones first, and where its body takes those that stay the same."""
    sources, captures = list(carried), list[tuple[str, int, int]]()
    positions = {inner.entered[v] for v in variables}
    for position, port in inner.captured:
        if position not in positions:
            captures.append(("body", position, len(sources)))
            sources.append(port)
    return sources, tuple(captures)


def set_variables(scope: Scope, variables: Sequence[str], node: Node, count: int) -> None:
    """Let variables have the outputs of a node, from output `count` on."""
    for i, variable in enumerate(variables):
        scope.set(variable, node.out_port(count + i))


@dataclass(slots=True)
class SizeNames:
    """Names of the sizes that a file leaves open."""

    taken: set[str] = field(default_factory=set[str])

    def symbol(self, name: str) -> Dim:
        """Return a new symbol with a name made from `name`."""
        cleaned = re.sub(r"[^A-Za-z0-9_.]", "_", name)
        stem = cleaned if re.match("[A-Za-z_]", cleaned) else f"_{cleaned}"
        while stem in self.taken:
            stem += "_"
        self.taken.add(stem)
        return Var(stem, None, 0)


def foreign(
    scope: Scope, kind: str, *sources: OutPort | None, name: str = "", file: str = "", outputs: int = 1, **attrs: object
) -> OutPort:
    """Add a foreign operation; return its first output."""
    op, origin = Foreign("tf", kind, tuple(attrs.items())), Origin((name,), file)
    return scope.graph.add(op, *sources, name=name, origin=origin, outputs=outputs).out_port(0)
