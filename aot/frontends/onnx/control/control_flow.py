"""If, Loop and Scan: resolved while they are converted, as far as compile time knows.

A loop of a known, moderate number of steps is unrolled, so that shapes may change from one step to the next. Other
loops become the opset's Loop, which carries a sequence as one tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from aot.codegen.ir.expressions import Expr, variables
from aot.codegen.ir.loops import Var
from aot.frontends.conversion.bodies import (
    after_loop,
    branched,
    inlined,
    number,
    ports_of,
    region_of,
    stable_region,
    tensor,
    whole,
)
from aot.frontends.conversion.node_context import PresentValue
from aot.frontends.onnx.control.tensor_sequence import in_one
from aot.frontends.onnx.registry import OnnxNode, Outputs, Value, onnx
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.scope import current
from aot.opset.control.control_flow import Loop, TensorIterator
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

UNROLLED = 1 << 10  # nodes that unrolling may make


@onnx("If")
def if_(node: OnnxNode, condition: OutPort) -> Outputs:
    is_one = all(isinstance(n, int) for n in condition.shape)
    return branched(node, condition if is_one else node.single(condition))


@onnx("Loop")
def loop(node: OnnxNode, trips: OutPort | None = None, going: OutPort | None = None, *states: Value) -> Outputs:
    """Unrolled if that is moderate, because more is then known; else the opset's Loop."""
    body = region_of(node, "body")
    count, first = number(trips), number(going)
    if count is None or (going is not None and first is None) or not _unrolls(count, body):
        return _at_run_time(node, body, trips, going, states)
    collected: list[list[OutPort]] = [[] for _ in range(len(body.results) - 1 - len(states))]
    values, alive = list(states), first is None or bool(first)
    for step in range(count):
        if not alive:
            break
        results = inlined(node, "body", (node.scalar(step), node.build.const(True, DType.BOOL), *values))
        more = number(tensor(results[0]))
        if more is None and step < count - 1:
            return _at_run_time(node, body, trips, going, states)
        alive = bool(more)
        values = results[1 : 1 + len(states)]
        for parts, value in zip(collected, results[1 + len(states) :], strict=True):
            parts.append(tensor(value))
    if any(not parts for parts in collected):
        return _at_run_time(node, body, trips, going, states)
    return Outputs([*values, *(_stacked(node, parts) for parts in collected)])


def _unrolls(steps: int, body: Graph) -> bool:
    return steps * len(body.nodes) <= UNROLLED and not current().keeps_loops


def _stacked(node: OnnxNode, parts: Sequence[OutPort], axis: int = 0) -> OutPort:
    node.refuse(not parts, "a loop that collects outputs and never runs is not supported")
    each = [node.build.Unsqueeze(p, node.list([axis])) for p in parts]
    return each[0] if len(each) == 1 else node.build.Concat(*each, axis=axis)


def _at_run_time(
    node: OnnxNode, body: Graph, trips: OutPort | None, going: OutPort | None, states: Sequence[Value]
) -> Outputs:
    """Add a Loop: input 0 the number of steps (-1: no limit), input 1 the condition, then states and captures."""
    build = node.build
    total = node.scalar(-1) if trips is None else _trips(node, trips)
    start = build.const(True, DType.BOOL) if going is None else node.single(going)
    captured = dict(node.captures["body"])
    first = [node.scalar(0), start, *(_in_one(node, s) for s in states)]
    outer = iter(first)
    positions = range(len(body.parameters))
    free = [i for i in positions if i not in captured]
    node.refuse(len(free) != len(first), f"body has {len(free)} inputs, got {len(first)}")
    values: list[PresentValue] = [_captured(node, captured[i]) if i in captured else next(outer) for i in positions]
    carried = {i: r for r, i in enumerate(free[2:], 1)}
    graph, results = stable_region(node, body, values, [i in captured for i in positions], carried)
    sources = [port for value in values for port in ports_of(value)]
    back_edges = (BackEdge(result=0, parameter=1), *_back_edges(values, results, carried))
    outside = frozenset(variables(*(d for port in sources for d in port.shape if isinstance(d, Expr))))
    carried_count = _add_results(replace(node, build=Builder(graph)), body, results, 1 + len(states), outside)
    # parameter i reads input i, but for the first: input 0 is the number of steps, parameter 0 counts them
    op = Loop(
        input_maps=tuple(InputMap(external=i, parameter=i) for i in range(1, len(sources))),
        output_maps=tuple(
            OutputMap(external=r - 1, result=r, axis=None if r < carried_count else 0)
            for r in range(1, len(graph.results))
        ),
        back_edges=back_edges,
        current_iteration=0,
        execution_condition=0,
    )
    loop = build.node(op, total, start, *sources[2:], outputs=len(graph.results) - 1)
    loop.regions = {"body": graph}
    ports = iter(loop.out_ports().values())
    return Outputs([*(after_loop(r, ports) for r in results[1 : 1 + len(states)]), *ports])


def _back_edges(
    values: Sequence[PresentValue], results: Sequence[Value], carried: Mapping[int, int]
) -> Iterator[BackEdge]:
    """Yield the edges of carried values, one for each tensor that they are made of."""
    firsts = list(accumulate((len(ports_of(v)) for v in values), initial=0))
    ends = list(accumulate((len(ports_of(whole(r))) for r in results), initial=0))
    for i, r in carried.items():
        for n in range(len(ports_of(values[i]))):
            yield BackEdge(result=ends[r] + n, parameter=firsts[i] + n)


def _add_results(node: OnnxNode, body: Graph, results: Sequence[Value], carried: int, outside: frozenset[Var]) -> int:
    """Give a body its results: the first `carried` values, then those that are collected. Return where these begin.

    `node`: as it builds in the body that is made. `outside`: variables that are the same in each iteration.
    """
    build, graph = node.build, node.build.graph
    for old, value in zip(body.results[:carried], results, strict=False):
        for port in ports_of(whole(value)):
            graph.add(Result(), port, name=old.name)
    begin = len(graph.results)
    for old, value in zip(body.results[carried:], results[carried:], strict=True):
        part = _as_declared(node, old, tensor(value), outside)
        graph.add(Result(), build.Unsqueeze(part, build.const([0], DType.I64)), name=old.name)
    return begin


def _as_declared(node: OnnxNode, result: Node, part: OutPort, outside: frozenset[Var]) -> OutPort:
    """Return a part that a loop collects, with the sizes that the file gives it where iterations may differ.

    That it has them is checked in each iteration.
    """
    declared = result.rt_info.get("declared", {}).get("sizes", "").split(",")
    if len(declared) != part.type.rank:
        return part
    rows = zip(part.shape, declared, strict=True)
    axes = [k for k, (d, own) in enumerate(rows) if own and isinstance(d, Expr) and not variables(d) <= outside]
    if not axes:
        return part
    sizes = [int(declared[k]) if k in axes else d for k, d in enumerate(part.shape)]
    declared_sizes = [int(declared[k]) for k in axes]
    rule = f"parts of a collected output have the sizes of axes {axes} that the file declares, {declared_sizes}"
    checked = node.within(node.dims(part, axes), node.list(declared_sizes), node.list(declared_sizes), rule, part)
    return node.reshape(checked, sizes)


def _in_one(node: OnnxNode, value: Value) -> PresentValue:
    """Return a value that a loop carries: sequences lie in one tensor."""
    present = whole(value)
    return in_one(node.build, present) if isinstance(present, tuple) else present


def _captured(node: OnnxNode, value: Value) -> PresentValue:
    """Return a value that a loop reads: a sequence lies in one tensor, if it can, for reads at a counter."""
    try:
        return _in_one(node, value)
    except UnsupportedError:
        return whole(value)


def _trips(node: OnnxNode, trips: OutPort) -> OutPort:
    """Return the number of iterations as a scalar; ONNX takes a negative one for 0, the opset for no limit."""
    return node.build.Maximum(node.single(trips), node.build.const(0, trips.type.dtype))


@onnx("Scan")
def scan(node: OnnxNode, *inputs: OutPort | None) -> Outputs:
    """Unrolled if that is moderate, else a TensorIterator; before opset 9, one for each row of a batch."""
    if node.opset < 9:
        return _each_row(node, *inputs)
    return _scan(node, [node.present(x, "of a state or of a scan") for x in inputs])


def _each_row(node: OnnxNode, lengths: OutPort | None, *inputs: OutPort | None) -> Outputs:
    """Scan each row of a batch, along the first axis after the batch axis."""
    node.refuse(lengths is not None, "sequence_lens of opset 8 are not supported: convert the model to opset 9")
    values = [node.present(x, "of a state or of a scan") for x in inputs]
    node.refuse(not values, "a state or a scan must be given")
    position, rows = node.scalar(0), node.extent(values[0], 0, "the batch")
    node.refuse(not rows, "a batch of no rows is not supported")
    parts: list[list[OutPort]] = []
    for row in range(rows):
        outputs = _scan(node, [node.build.Gather(x, node.scalar(row), position) for x in values])
        parts.append([tensor(value) for value in outputs.values])
    return Outputs([_stacked(node, column) for column in zip(*parts, strict=True)])


def _input_directions(node: OnnxNode, count: int) -> Sequence[int]:
    """Return 1 for each scanned input that is read from its end, else 0; the attribute has another name in opset 8."""
    return node.integers("scan_input_directions", node.integers("directions", (0,) * count))


def _scan(node: OnnxNode, inputs: Sequence[OutPort]) -> Outputs:
    body, count = region_of(node, "body"), node.integer("num_scan_inputs")
    node.refuse(not 0 < count <= len(inputs), f"num_scan_inputs must be in 1..{len(inputs)}, got {count}")
    scanned = inputs[len(inputs) - count :]
    input_axes = node.integers("scan_input_axes", (0,) * count)
    axes = [node.axis(a, p.type.rank) for a, p in zip(input_axes, scanned, strict=True)]
    steps = scanned[0].shape[axes[0]]
    if not isinstance(steps, int) or not steps or not _unrolls(steps, body):
        return _scanned(node, body, inputs[: len(inputs) - count], list(zip(scanned, axes, strict=True)))
    states: list[Value] = list(inputs[: len(inputs) - count])
    backwards = _input_directions(node, count)
    collected: list[list[OutPort]] = [[] for _ in range(len(body.results) - len(states))]
    for step in range(steps):
        positions = [node.scalar(steps - 1 - step if b else step) for b in backwards]
        parts = [node.build.Gather(p, i, node.scalar(a)) for p, i, a in zip(scanned, positions, axes, strict=True)]
        results = inlined(node, "body", (*states, *parts))
        states = results[: len(states)]
        for row, value in zip(collected, results[len(states) :], strict=True):
            row.append(tensor(value))
    rows = zip(collected, _output_axes(node, len(collected)), strict=True)
    stacked = [_stacked(node, row[::-1] if b else row, node.axis(a, row[0].type.rank + 1)) for row, (a, b) in rows]
    return Outputs([*states, *stacked])


def _output_axes(node: OnnxNode, count: int) -> list[tuple[int, int]]:
    """Return the axis of each collected output, and 1 if it is filled from its end, else 0."""
    axes = node.integers("scan_output_axes", (0,) * count)
    return list(zip(axes, node.integers("scan_output_directions", (0,) * count), strict=True))


def _scanned(node: OnnxNode, body: Graph, states: Sequence[OutPort], scanned: Sequence[tuple[OutPort, int]]) -> Outputs:
    """Add a TensorIterator: inputs are states, scanned tensors, captures; parts keep their axis outside."""
    build, captured = node.build, dict(node.captures["body"])
    first = [build.Gather(p, node.scalar(0), node.scalar(a)) for p, a in scanned]
    arguments, outer = iter([*states, *first]), iter([*states, *(p for p, _ in scanned)])
    positions = range(len(body.parameters))
    ports = [tensor(captured[i] if i in captured else next(arguments)) for i in positions]
    inputs = [tensor(captured[i] if i in captured else next(outer)) for i in positions]
    free = [i for i in positions if i not in captured]
    carried = {i: r for r, i in enumerate(free[: len(states)])}
    graph, results = stable_region(node, body, list(ports), [i in captured for i in positions], carried)
    for result, value in zip(body.results, results, strict=True):
        graph.add(Result(), tensor(value), name=result.name)
    inner = Builder(graph)
    backwards = _input_directions(node, len(scanned))
    maps = {i: InputMap(i, i) for i in positions}
    for i, (port, axis), back in zip(free[len(states) :], scanned, backwards, strict=True):
        _keep_axis(inner, graph.parameters[i], port, axis)
        maps[i] = InputMap(i, i, axis, -1, 0, -1) if back else InputMap(i, i, axis)
    outs = [OutputMap(r, r) for r in range(len(states))]
    collected = graph.results[len(states) :]
    rows = zip(collected, _output_axes(node, len(collected)), strict=True)
    for r, (result, (axis, back)) in enumerate(rows, len(states)):
        at = node.axis(axis, result.source(0).type.rank + 1)
        result.in_port(0).connect(inner.Unsqueeze(result.source(0), inner.const([at], DType.I64)))
        outs.append(OutputMap(r, r, at, -1, 0, -1) if back else OutputMap(r, r, at))
    edges = tuple(BackEdge(r, i) for i, r in carried.items())
    loop = build.node(TensorIterator(tuple(maps.values()), tuple(outs), edges), *inputs, outputs=len(outs))
    loop.regions = {"body": graph}
    return Outputs(list(loop.out_ports().values()))


def _keep_axis(inner: Builder, parameter: Node, whole: OutPort, axis: int) -> None:
    """Let a part of `whole` come in with its axis, and be read without it."""
    shape = [1 if k == axis else n for k, n in enumerate(whole.shape)]
    port = parameter.out_port(0)
    consumers = port.get_destinations()
    parameter.op = Parameter(whole.type.dtype, tuple(shape))
    part = inner.Squeeze(port, inner.const([axis], DType.I64))
    for consumer in consumers:
        consumer.connect(part)
