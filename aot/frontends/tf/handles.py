"""Values that exist while a file is read only: handles of variables and tables, and tensors of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field

from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array
from aot.opset.control.infrastructure import Parameter
from runtime.abi import DType


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
        """Add a parameter by which a value from the graph around comes in."""
        made = self.graph.add(Parameter(DType.F32, None), name=name)
        self.captured.append((len(self.graph.parameters) - 1, outside))
        return made.out_port(0)


def foreign(
    scope: Scope, kind: str, *sources: OutPort | None, name: str = "", file: str = "", outputs: int = 1, **attrs: object
) -> OutPort:
    """Add a foreign operation; return its first output."""
    op, origin = Foreign("tf", kind, tuple(attrs.items())), Origin((name,), file)
    return scope.graph.add(op, *sources, name=name, origin=origin, outputs=outputs).out_port(0)
