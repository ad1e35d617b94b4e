"""Higher-order operations become foreign operations with regions, as the conversions of control flow take them.

    cond(p, f, g, [x, w])            ->    cond(p, ...): then_branch f(x, w), else_branch g(x, w)
    while_loop(c, f, [x], [w])       ->    while_loop(c(x, w), x, ...): body gives (c(x'), x') for x' = f(x, w)
    scan(f, [h], [xs], [w])          ->    scan(h, xs, ...): body f(h, x, w)
    map_impl(f, [xs], [w])           ->    scan(xs, ...): body f(x, w)
    associative_scan(f, [xs], [w])   ->    concat(x[:1], scan(x[0], x[1:], ...)): body h = f(c, x, w) gives (h, h)
    wrap_with_autocast(.., f, x)     ->    the nodes of f: a region that says how to compute, and not whether

Attribute `captures` says which parameter of which region is which input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from aot.frontends.conversion.bodies import BRANCHES
from aot.frontends.conversion.scopes import Scope
from aot.frontends.pt2.files.schema import Table, union
from aot.frontends.pt2.graph.aliases import Tensor
from aot.frontends.pt2.graph.arguments import Arguments
from aot.frontends.pt2.graph.constants import array_of
from aot.frontends.pt2.graph.importer import (
    GRAPH,
    MAX_DEPTH,
    Item,
    ProgramImporter,
    graph_of,
    kind_of,
    output_names,
    rule,
)
from aot.frontends.pt2.registry import Argument
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

OPTIONS = "as_string_to_argument"  # named options of a region, which change no number
# Regions that say where gradients are kept, what is computed again or how it is compiled: their nodes run as they are.
PLAIN = (
    "wrap_with_set_grad_enabled",
    "wrap",
    "wrap_activation_checkpoint",
    "tag_activation_checkpoint",
    "inference_mode",
    "wrap_inference_mode",
    "invoke_subgraph",
    "invoke_quant",
    "invoke_quant_packed",
    "hints_wrapper",
    "strict_mode",
    "run_const_graph",
    "local_map_hop",
    "dynamo_bypassing_wrapper",
)


def _graph(value: Any, item: Item) -> Table:
    """Return the sub-graph that an argument holds."""
    table = graph_of(value, item.name) if isinstance(value, dict) else None
    if table is None:
        raise CorruptError(f"{item.kind}: {item.name!r} must have a sub-graph, got another argument")
    return table


def _operands(importer: ProgramImporter, value: Any, ports: Sequence[OutPort], item: Item) -> list[OutPort]:
    """Return the values in an argument that is a list; numbers become constants."""
    operands: list[OutPort] = []
    for one in cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,)):
        if isinstance(one, Argument):
            operands.append(ports[one.index])
        elif isinstance(one, bool | int | float):
            operands.append(importer.constant(array_of(one), f"{item.name}/number{len(operands)}"))
        else:
            raise UnsupportedError(f"{item.kind}: operands must be tensors and numbers, got {type(one).__name__}")
    return operands


def _arguments(importer: ProgramImporter, item: Item, *counts: int) -> tuple[list[Any], list[OutPort]]:
    """Return the arguments in their order, graphs as they are in the file, and the inputs; `counts`: how many may be.

    CorruptError for another number of arguments.
    """
    found, ports = importer.arguments(item, GRAPH)
    if len(found) not in counts:
        rule = f"{item.name!r} has {' or '.join(map(str, counts))} arguments"
        raise CorruptError(f"{item.kind}: {rule}, got {len(found)}")
    return list(found.values()), ports


def run(
    importer: ProgramImporter, graph: Table, arguments: Sequence[Tensor | None], scope: Scope, prefix: str, **more: Any
) -> list[Tensor]:
    """Walk a sub-graph in a scope, where its inputs are `arguments`; return its outputs that are not None."""
    if importer.depth >= MAX_DEPTH:
        raise CorruptError(f"{importer.file}: sub-graphs can have at most {MAX_DEPTH} levels, got more")
    inputs = graph.list("inputs")
    if len(inputs) != len(arguments):
        raise CorruptError(f"{graph.where}: the sub-graph must have {len(inputs)} inputs, got {len(arguments)}")
    values = dict[str, Tensor]()
    for value, tensor in zip(inputs, arguments, strict=True):
        values |= dict.fromkeys(_names(value, graph.where), tensor) if tensor is not None else {}
    inner = replace(importer, table=graph, scope=scope, prefix=prefix, depth=importer.depth + 1, values=values, **more)
    inner.run()
    return [tensor for value in graph.list("outputs") for tensor in _results(inner, value, graph.where)]


def _names(value: Any, where: str) -> list[str]:
    """Return the name that an input or output of a sub-graph has; none for a number, and where there is nothing."""
    tag, found = union(value, where)
    named = tag in ("as_tensor", "as_optional_tensor") or (tag.startswith("as_sym_") and "as_name" in found)
    return output_names(value, where) if named else []


def _results(inner: ProgramImporter, value: Any, where: str) -> Iterator[Tensor]:
    """Yield the tensors of an output of a sub-graph, numbers as constants."""
    names = _names(value, where)
    for name in names:
        inner.read(name)  # brings a view up to date, and refuses a name that there is not
        yield inner.values[name]
    number = None if names else Arguments(inner.read).read(value, where)
    if isinstance(number, bool | int | float):
        yield Tensor(inner.constant(array_of(number), f"{inner.prefix}number"))
    elif number is not None:
        raise UnsupportedError(f"{where}: sub-graphs must give tensors and numbers, got another value")


def _tensors(ports: Sequence[OutPort]) -> list[Tensor]:
    return [Tensor(port) for port in ports]


def _ports(tensors: Sequence[Tensor]) -> list[OutPort]:
    return [tensor.read() for tensor in tensors]


def _inlined(importer: ProgramImporter, item: Item, **more: Any) -> Sequence[Tensor]:
    """Return the results of a node's only sub-graph; the sub-graph's nodes are inlined.

    Its operands are the arguments after it, the same tensors inside and outside: writes in place go through.
    """
    arguments = list[Tensor | None]()
    tables = item.inputs
    tags = [union(table.value("arg"), table.where)[0] for table in tables]
    if GRAPH not in tags:
        raise CorruptError(f"{item.kind}: {item.name!r} must have a sub-graph, got none")
    position = tags.index(GRAPH)
    graph = _graph(tables[position].value("arg"), item)
    reader = Arguments(importer.read)
    for table, tag in zip(tables[position + 1 :], tags[position + 1 :], strict=True):
        if tag == GRAPH:
            raise UnsupportedError(f"{item.kind}: one sub-graph, got several")
        for value in _flat(() if tag == OPTIONS else reader.read(table.value("arg"), table.where)):
            if isinstance(value, Argument):
                arguments.append(importer.values[reader.names[value.index]])
            elif not isinstance(value, str):  # a string is an option, the name of the region
                arguments.append(
                    None if value is None else Tensor(importer.constant(array_of(value), f"{item.name}/number"))
                )
    return run(importer, graph, arguments, importer.scope, importer.prefix, **more)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for one in cast("tuple[Any, ...]", value):
            yield from _flat(one)
    else:
        yield value


rule(*PLAIN)(_inlined)


@rule("wrap_with_autocast")
def wrap_with_autocast(importer: ProgramImporter, item: Item) -> Sequence[Tensor]:
    """Inline a region under autocast: the declared type of a result is the type to compute in, as no node casts."""
    options = [union(table.value("arg"), table.where) for table in item.inputs]
    enabled = next((bool(value) for tag, value in options if tag == "as_bool"), True)  # the first one
    return _inlined(importer, item, autocast=enabled)


@rule("out_dtype")
def out_dtype(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    """An operation of integers with results of a wider type computes in that type."""
    arguments, ports = importer.arguments(item)
    values = list(arguments.values())
    target, dtype = (*values, None, None)[:2]
    if not isinstance(target, str) or not isinstance(dtype, DType):
        raise CorruptError(
            f"{item.kind}: {item.name!r} must have an operation and a type, got {target!r} and {dtype!r}"
        )
    kind, named = kind_of(target), {"input": Argument(0), "dtype": dtype}
    types = [importer.type_of(n) for n in item.outputs]
    wide = [importer.add(item, "to.dtype", named, [port], [dtype]).out_port(0) for port in ports]
    node = importer.add(item, kind, {f"#{i}": v for i, v in enumerate(values[2:])}, wide, types)
    return list(node.out_ports().values())


def _region(
    importer: ProgramImporter, graph: Table, count: int, name: str
) -> tuple[Scope, list[OutPort], list[OutPort]]:
    """Return a graph with `count` parameters that holds a sub-graph; its parameters and the values of its results."""
    inner = Scope(Graph(name=name, file=importer.file))
    parameters = [inner.graph.add(Parameter(DType.F32, None), name=f"operand{i}").out_port(0) for i in range(count)]
    return inner, parameters, _ports(run(importer, graph, _tensors(parameters), inner, f"{name}/", conditional=True))


def _close(inner: Scope, values: Sequence[OutPort]) -> Graph:
    for value in values:
        inner.graph.add(Result(), value, name=value.node.name)
    return inner.graph


def _node(
    importer: ProgramImporter,
    item: Item,
    sources: Sequence[OutPort],
    regions: dict[str, Graph],
    own: int,
    kind: str = "",
    types: Sequence[Any] | None = None,
    **more: Any,
) -> list[OutPort]:
    """Add a foreign node. Its regions capture the inputs after the first `own`.

    `kind` and `types` are those of the item unless they are given; `more`: further attributes.
    """
    types = [importer.type_of(n) for n in item.outputs] if types is None else types
    node = importer.add(item, kind or item.kind, {}, sources, types, inputs=own, **more)
    node.regions = regions
    return list(node.out_ports().values())


@rule("cond")
def cond(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    (condition, *graphs, operands), ports = _arguments(importer, item, 4)
    tensors = _operands(importer, operands, ports, item)
    sources = [*_operands(importer, condition, ports, item), *tensors]
    regions: dict[str, Graph] = {}
    for label, graph in zip(BRANCHES, graphs, strict=True):
        inner, _, values = _region(importer, _graph(graph, item), len(tensors), f"{item.name}/{label}")
        regions[label] = _close(inner, values)
    captures = tuple((label, i, 1 + i) for label in BRANCHES for i in range(len(tensors)))
    return _node(importer, item, sources, regions, 1, captures=captures)


@rule("while_loop")
def while_loop(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    (condition, body, carried, more), ports = _arguments(importer, item, 4)
    states, fixed = _operands(importer, carried, ports, item), _operands(importer, more, ports, item)
    test = _graph(condition, item)
    first = _test(importer, test, [*states, *fixed], importer.scope, f"{item.name}/first/", item)
    inner, parameters, values = _region(importer, _graph(body, item), len(states) + len(fixed), f"{item.name}/body")
    if len(values) != len(states):
        raise CorruptError(
            f"{item.kind}: the body must give {len(states)} values like those it takes, got {len(values)}"
        )
    going = _test(importer, test, [*values, *parameters[len(states) :]], inner, f"{item.name}/next/", item)
    own = 1 + len(states)
    captures = tuple(("body", len(states) + i, own + i) for i in range(len(fixed)))
    regions = {"body": _close(inner, [going, *values])}
    return _node(importer, item, [first, *states, *fixed], regions, own, captures=captures)


def _test(
    importer: ProgramImporter, graph: Table, arguments: Sequence[OutPort], scope: Scope, prefix: str, item: Item
) -> OutPort:
    """Return the condition of a loop for values that it carries and those that stay the same."""
    values = _ports(run(importer, graph, _tensors(arguments), scope, prefix, conditional=True))
    if len(values) != 1:
        raise CorruptError(f"{item.kind}: the condition of {item.name!r} must give one value, got {len(values)}")
    return values[0]


@rule("scan")
def scan(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    (graph, *lists), ports = _arguments(importer, item, 4)
    return _scanned(importer, item, _graph(graph, item), [_operands(importer, v, ports, item) for v in lists])


@rule("map_impl")
def map_impl(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    (graph, *lists), ports = _arguments(importer, item, 3)
    return _scanned(importer, item, _graph(graph, item), [[], *(_operands(importer, v, ports, item) for v in lists)])


def _scanned(
    importer: ProgramImporter, item: Item, graph: Table, operands: Sequence[Sequence[OutPort]]
) -> list[OutPort]:
    """Add a scan by a sub-graph: see `_scan`."""
    inner, _, values = _region(importer, graph, sum(map(len, operands)), f"{item.name}/body")
    return _scan(importer, item, operands, _close(inner, values), [importer.type_of(n) for n in item.outputs])


def _scan(
    importer: ProgramImporter, item: Item, operands: Sequence[Sequence[OutPort]], body: Graph, types: Sequence[Any]
) -> list[OutPort]:
    """Add a scan. `operands`: carried values, tensors to scan by rows, values that stay the same."""
    states, rows, fixed = operands
    own = len(states) + len(rows)
    captures = tuple(("body", own + i, own + i) for i in range(len(fixed)))
    sources, regions = [*states, *rows, *fixed], {"body": body}
    return _node(importer, item, sources, regions, own, "scan", types, captures=captures, rows=len(rows))


@rule("associative_scan")
def associative_scan(importer: ProgramImporter, item: Item) -> Sequence[OutPort]:
    """Return the first row, followed by the rows of a scan that carries its outputs."""
    (graph, *lists), ports = _arguments(importer, item, 2, 3)
    rows, fixed = [_operands(importer, v, ports, item) for v in (*lists, ())[:2]]
    types = [importer.type_of(n) for n in item.outputs]
    if len(rows) != len(types):
        raise CorruptError(
            f"{item.kind}: {item.name!r} must have {len(types)} tensors like its outputs, got {len(rows)}"
        )

    def of(kind: str, sources: Sequence[OutPort], dtype: Any, **named: Any) -> OutPort:
        return importer.add(item, kind, {"input": Argument(0), **named}, sources, [dtype]).out_port(0)

    firsts = [of("select.int", [x], t, dim=0, index=0) for x, t in zip(rows, types, strict=True)]
    others = [of("slice.Tensor", [x], t, dim=0, start=1, end=None, step=1) for x, t in zip(rows, types, strict=True)]
    inner, _, values = _region(importer, _graph(graph, item), 2 * len(rows) + len(fixed), f"{item.name}/body")
    if len(values) != len(rows):
        raise CorruptError(f"{item.kind}: the sub-graph must give {len(rows)} values, got {len(values)}")
    outputs = _scan(importer, item, [firsts, others, fixed], _close(inner, [*values, *values]), [*types, *types])
    heads = [of("slice.Tensor", [x], t, dim=0, start=0, end=1, step=1) for x, t in zip(rows, types, strict=True)]
    both = zip(heads, outputs[len(rows) :], types, strict=True)
    return [
        importer.add(item, "cat.default", {"tensors": (Argument(0), Argument(1)), "dim": 0}, [a, b], [t]).out_port(0)
        for a, b, t in both
    ]
