"""Conversion of a graph with sizes that may change later: they are computed, and loops stay loops.

x: f32[1,4,6,8]    Flatten(x, axis=2)    ->    Reshape(x, [ReduceProd(ShapeOf(x)[:2]), -1]),    not Reshape(x, [4, 48])

The inputs get names for their sizes while the operations are converted, and their numbers again after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, Var
from aot.frontends.conversion.walk import ToOpset
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph
from aot.ir.scope import current, within
from aot.ir.types import Dim, Shape, TensorType
from aot.opset.control.infrastructure import Parameter
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, InternalError

# which sizes get names, and whether loops stay, from what keeps most to what always can be converted
ATTEMPTS = (("all", True), ("first", True), ("all", False), ("first", False), ("", True))


@dataclass(frozen=True, slots=True)
class Reshapeable:
    """The pass `conversion`, with dynamic sizes as far as the operations can be converted for any size.

    Each attempt must give results of the types that the conversion for the given sizes gives.
    """

    conversion: ToOpset
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    @property
    def name(self) -> str:
        return self.conversion.name

    def __call__(self, graph: Graph) -> bool:
        """Convert in place. Raises the errors of the conversion for the given sizes."""
        fixed = copy_graph(graph)
        if not self.conversion(fixed):
            return False
        types = _types(fixed)
        tried = (self._attempt(graph, *attempt) for attempt in ATTEMPTS)
        found = next((trial for trial in tried if trial is not None and _types(trial) == types), fixed)
        for field in fields(Graph):
            setattr(graph, field.name, getattr(found, field.name))
        for node in graph.nodes.values():
            node.graph = graph
        return True

    def _attempt(self, graph: Graph, sizes: str, loops: bool) -> Graph | None:
        """Return the graph converted with names for some sizes; None if that is not possible."""
        trial = copy_graph(graph)
        before = {node.id: node.op for node in trial.parameters}
        for node in trial.parameters:
            if isinstance(node.op, Parameter) and node.op.shape is not None:
                node.op = replace(node.op, shape=tuple(_loosened(node.op.shape, node.name, sizes)))
        try:
            with within(replace(current(), keeps_loops=loops)):
                self.conversion(trial)
            for node in trial.parameters:
                node.op = before[node.id]
            return trial if _types(trial) and not any(_holds_sizes(trial)) else None
        except (BudgetError, InternalError):
            raise
        except AotError:
            return None


def _loosened(shape: Shape, name: str, sizes: str) -> Iterator[Dim]:
    for k, dim in enumerate(shape):
        is_dynamic = sizes == "all" or (sizes == "first" and k == 0)
        yield Var(f"{name}.d{k}", None, 1) if isinstance(dim, int) and dim > 0 and is_dynamic else dim


def _types(graph: Graph) -> list[TensorType]:
    """Return the types of all results; AotError if a node's inputs do not fit it."""
    for node in graph.order():
        node.operands()
    return [node.source(0).type for node in graph.results]


def _holds_sizes(graph: Graph) -> Iterator[bool]:
    """Yield for each operation whether an attribute, or a constant, holds the name of a size."""
    for node in graph.nodes.values():
        attributes = [getattr(node.op, f.name) for f in fields(node.op) if not isinstance(node.op, Parameter)]
        yield any(isinstance(part, Expr) for value in attributes for part in _parts(value))
        yield node.data is not None and node.data.dtype == object and node.out_port(0).type.dtype is not DType.STRING


def _parts(value: Any) -> list[Any]:
    return [*value] if hasattr(value, "__iter__") else [value]
