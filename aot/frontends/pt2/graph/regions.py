"""Higher-order operations become foreign operations with regions, as the conversions of control flow take them.

    cond(p, f, g, [x, w])            ->    cond(p, ...): then_branch f(x, w), else_branch g(x, w)
    while_loop(c, f, [x], [w])       ->    while_loop(c(x, w), x, ...): body gives (c(x'), x') for x' = f(x, w)
    scan(f, [h], [xs], [w])          ->    scan(h, xs, ...): body f(h, x, w)
    map_impl(f, [xs], [w])           ->    scan(xs, ...): body f(x, w)

Attribute `captures` says which parameter of which region is which input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from aot.frontends.conversion.bodies import BRANCHES
from aot.frontends.conversion.scopes import Scope
from aot.frontends.pt2.files.schema import Table
from aot.frontends.pt2.graph.aliases import Tensor
from aot.frontends.pt2.graph.constants import array_of
from aot.frontends.pt2.graph.importer import MAX_DEPTH, Item, Walk, output_names, rule
from aot.frontends.pt2.registry import Argument
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

GRAPH = "as_graph"


def _graph(value: Any, item: Item) -> Table:
    """Return the sub-graph that an argument holds."""
    if not isinstance(value, dict) or GRAPH not in cast("dict[str, Any]", value):
        raise CorruptError(f"{item.kind}: {item.name!r} has a sub-graph, got another argument")
    return Table(cast("dict[str, Any]", value)[GRAPH], item.name).table("graph")


def _operands(self: Walk, value: Any, ports: Sequence[OutPort], item: Item) -> list[OutPort]:
    """Return the values in an argument that is a list; numbers become constants."""
    found: list[OutPort] = []
    for one in cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,)):
        if isinstance(one, Argument):
            found.append(ports[one.index])
        elif isinstance(one, bool | int | float):
            found.append(self.constant(array_of(one), f"{item.name}/number{len(found)}"))
        else:
            raise UnsupportedError(f"{item.kind}: operands are tensors and numbers, got {type(one).__name__}")
    return found


def _arguments(self: Walk, item: Item, count: int) -> tuple[list[Any], list[OutPort]]:
    """Arguments in their order, graphs as they are in the file; those behind the first `count` are lists."""
    found, ports = self.arguments(item, GRAPH)
    values = list(found.values())
    if len(values) < count:
        raise CorruptError(f"{item.kind}: {item.name!r} has {count} arguments, got {len(values)}")
    return values, ports


def run(self: Walk, graph: Table, given: Sequence[OutPort], scope: Scope, prefix: str) -> list[OutPort]:
    """Walk a sub-graph in a scope, where its inputs are `given`; return its outputs."""
    if self.depth >= MAX_DEPTH:
        raise CorruptError(f"{self.file}: sub-graphs of at most {MAX_DEPTH} levels, got more")
    names = [n for value in graph.list("inputs") for n in output_names(value, graph.where)]
    if len(names) != len(given):
        raise CorruptError(f"{graph.where}: the sub-graph has {len(names)} inputs, got {len(given)}")
    values = {name: Tensor(port) for name, port in zip(names, given, strict=True)}
    inner = replace(self, table=graph, scope=scope, prefix=prefix, depth=self.depth + 1, values=values)
    inner.run()
    found: list[OutPort] = []
    for value in graph.list("outputs"):
        outputs = output_names(value, graph.where)
        if len(outputs) != 1:
            raise UnsupportedError(f"{graph.where}: sub-graphs give tensors, got another value")
        found.append(inner.read(outputs[0]))
    return found


def _region(self: Walk, graph: Table, count: int, name: str) -> tuple[Scope, list[OutPort], list[OutPort]]:
    """Return a graph with `count` parameters that holds a sub-graph; its parameters and the values of its results."""
    inner = Scope(Graph(name=name, file=self.file))
    given = [inner.graph.add(Parameter(DType.F32, None), name=f"operand{i}").out_port(0) for i in range(count)]
    return inner, given, run(self, graph, given, inner, f"{name}/")


def _close(inner: Scope, values: Sequence[OutPort]) -> Graph:
    for value in values:
        inner.graph.add(Result(), value, name=value.node.name)
    return inner.graph


def _node(
    self: Walk, item: Item, kind: str, sources: Sequence[OutPort], regions: dict[str, Graph], own: int, **more: Any
) -> list[OutPort]:
    """Add a foreign node whose inputs behind the first `own` are captured by its regions."""
    made = self.add(item, kind, {}, sources, [self.type_of(n) for n in item.outputs], inputs=own, **more)
    made.regions = regions
    return list(made.out_ports().values())


@rule("cond")
def cond(self: Walk, item: Item) -> Sequence[OutPort]:
    (condition, *graphs, operands), ports = _arguments(self, item, 4)
    given = _operands(self, operands, ports, item)
    sources = [*_operands(self, condition, ports, item), *given]
    regions: dict[str, Graph] = {}
    for label, graph in zip(BRANCHES, graphs, strict=True):
        inner, _, values = _region(self, _graph(graph, item), len(given), f"{item.name}/{label}")
        regions[label] = _close(inner, values)
    captures = tuple((label, i, 1 + i) for label in BRANCHES for i in range(len(given)))
    return _node(self, item, "cond", sources, regions, 1, captures=captures)


@rule("while_loop")
def while_loop(self: Walk, item: Item) -> Sequence[OutPort]:
    (condition, body, carried, more), ports = _arguments(self, item, 4)
    states, fixed = _operands(self, carried, ports, item), _operands(self, more, ports, item)
    test = _graph(condition, item)
    first = _truth(run(self, test, [*states, *fixed], self.scope, f"{item.name}/first/"), item)
    inner, given, values = _region(self, _graph(body, item), len(states) + len(fixed), f"{item.name}/body")
    if len(values) != len(states):
        raise CorruptError(f"{item.kind}: the body gives {len(states)} values like those it takes, got {len(values)}")
    going = _truth(run(self, test, [*values, *given[len(states) :]], inner, f"{item.name}/next/"), item)
    own = 1 + len(states)
    captures = tuple(("body", len(states) + i, own + i) for i in range(len(fixed)))
    regions = {"body": _close(inner, [going, *values])}
    return _node(self, item, "while_loop", [first, *states, *fixed], regions, own, captures=captures)


def _truth(values: Sequence[OutPort], item: Item) -> OutPort:
    if len(values) != 1:
        raise CorruptError(f"{item.kind}: the condition of {item.name!r} gives one value, got {len(values)}")
    return values[0]


@rule("scan")
def scan(self: Walk, item: Item) -> Sequence[OutPort]:
    (graph, *lists), ports = _arguments(self, item, 4)
    return _scanned(self, item, _graph(graph, item), [_operands(self, v, ports, item) for v in lists[:3]])


@rule("map_impl")
def map_impl(self: Walk, item: Item) -> Sequence[OutPort]:
    (graph, *lists), ports = _arguments(self, item, 3)
    return _scanned(self, item, _graph(graph, item), [[], *(_operands(self, v, ports, item) for v in lists[:2])])


def _scanned(self: Walk, item: Item, graph: Table, operands: Sequence[Sequence[OutPort]]) -> list[OutPort]:
    """Add a scan. `operands`: carried values, tensors whose rows are scanned, values that stay the same."""
    states, rows, fixed = operands
    inner, _, values = _region(self, graph, sum(map(len, operands)), f"{item.name}/body")
    own = len(states) + len(rows)
    captures = tuple(("body", own + i, own + i) for i in range(len(fixed)))
    regions = {"body": _close(inner, values)}
    return _node(self, item, "scan", [*states, *rows, *fixed], regions, own, captures=captures, rows=len(rows))
