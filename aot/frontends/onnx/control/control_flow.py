"""If, Loop, Scan, sequences and optionals: resolved while they are converted, as far as compile time knows.

A sequence whose length is known is a tuple of ports. A loop of a known, moderate number of steps is unrolled, so that
shapes may change from one step to the next. Loops whose
number of steps or whose shapes only run time gives become the opset's Loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.bodies import branched, inlined, number, region_of, stable_body, tensor
from aot.frontends.onnx.registry import Call, Outputs, Sequenced, Value, onnx
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.opset.control.control_flow import Loop, TensorIterator
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from runtime.abi import DType

UNROLLED = 1 << 10  # nodes that unrolling may make


@onnx("If")
def if_(node: Call, condition: OutPort) -> Outputs:
    return branched(node, condition)


@onnx("Loop")
def loop(node: Call, trips: OutPort | None = None, going: OutPort | None = None, *states: Value) -> Outputs:
    """Unrolled where that is moderate, because more is then known; else the opset's Loop."""
    body = region_of(node, "body")
    count, first = number(trips), number(going)
    tensors = all(isinstance(s, OutPort) for s in states)
    if count is None or (going is not None and first is None) or (count * len(body.nodes) > UNROLLED and tensors):
        return _at_run_time(node, body, trips, going, states)
    collected: list[list[OutPort]] = [[] for _ in range(len(body.results) - 1 - len(states))]
    values, alive = list(states), first is None or bool(first)
    for step in range(count):
        if not alive:
            break
        found = inlined(node, "body", (node.scalar(step), node.build.const(True, DType.BOOL), *values))
        more = number(tensor(found[0]))
        if more is None and step < count - 1:
            return _at_run_time(node, body, trips, going, states)
        alive = bool(more)
        values = found[1 : 1 + len(states)]
        for parts, value in zip(collected, found[1 + len(states) :], strict=True):
            parts.append(tensor(value))
    if any(not parts for parts in collected):
        return _at_run_time(node, body, trips, going, states)
    return Outputs([*values, *(_stacked(node, parts) for parts in collected)])


def _stacked(node: Call, parts: Sequence[OutPort], axis: int = 0) -> OutPort:
    node.refuse(not parts, "a loop that collects outputs and never runs is not supported")
    each = [node.build.Unsqueeze(p, node.list([axis])) for p in parts]
    return each[0] if len(each) == 1 else node.build.Concat(*each, axis=axis)


def _at_run_time(
    node: Call, body: Graph, trips: OutPort | None, going: OutPort | None, states: Sequence[Value]
) -> Outputs:
    """Add a Loop: input 0 the number of steps (-1: no limit), input 1 the condition, then states and captures."""
    build = node.build
    total = node.scalar(-1) if trips is None else _trips(node, trips)
    start = build.const(True, DType.BOOL) if going is None else node.single(going)
    captured = dict(node.captures["body"])
    given = iter([node.scalar(0), start, *states])
    ports = [tensor(captured[i] if i in captured else next(given)) for i in range(len(body.parameters))]
    carried = range(2, 2 + len(states))
    made = stable_body(node, body, ports, captured, {i: i - 1 for i in carried})
    inner = Builder(made)
    for result in made.results[1 + len(states) :]:
        result.in_port(0).connect(inner.Unsqueeze(result.source(0), inner.const([0], DType.I64)))
    # parameter i reads input i, but for the first: input 0 is the number of steps, parameter 0 counts them
    op = Loop(
        input_maps=tuple(InputMap(external=i, parameter=i) for i in range(1, len(ports))),
        output_maps=tuple(
            OutputMap(external=r - 1, result=r, axis=None if r <= len(states) else 0)
            for r in range(1, len(made.results))
        ),
        back_edges=tuple(BackEdge(result=r, parameter=r + 1) for r in range(1 + len(states))),
        current_iteration=0,
        execution_condition=0,
    )
    outer = build.node(op, total, start, *ports[2:], outputs=len(made.results) - 1)
    outer.regions = {"body": made}
    return Outputs(list(outer.out_ports().values()))


def _trips(node: Call, trips: OutPort) -> OutPort:
    """Return the number of iterations as a scalar; ONNX takes a negative one for 0, the opset for no limit."""
    return node.build.Maximum(node.single(trips), node.build.const(0, trips.type.dtype))


@onnx("Scan")
def scan(node: Call, *inputs: OutPort) -> Outputs:
    """Unrolled where that is moderate, else a TensorIterator; from opset 9 on there is no batch."""
    node.refuse(node.opset < 9, "Scan of opset 8 is not supported: convert the model to opset 9")
    body, count = region_of(node, "body"), node.integer("num_scan_inputs")
    node.refuse(not 0 < count <= len(inputs), f"num_scan_inputs must be in 1..{len(inputs)}, got {count}")
    scanned = inputs[len(inputs) - count :]
    given = node.integers("scan_input_axes", (0,) * count)
    axes = [node.axis(a, p.type.rank) for a, p in zip(given, scanned, strict=True)]
    steps = scanned[0].shape[axes[0]]
    if not isinstance(steps, int) or not steps or steps * len(body.nodes) > UNROLLED:
        return _scanned(node, body, inputs[: len(inputs) - count], list(zip(scanned, axes, strict=True)))
    states: list[Value] = list(inputs[: len(inputs) - count])
    backwards = node.integers("scan_input_directions", (0,) * count)
    collected: list[list[OutPort]] = [[] for _ in range(len(body.results) - len(states))]
    for step in range(steps):
        places = [node.scalar(steps - 1 - step if b else step) for b in backwards]
        parts = [node.build.Gather(p, i, node.scalar(a)) for p, i, a in zip(scanned, places, axes, strict=True)]
        found = inlined(node, "body", (*states, *parts))
        states = found[: len(states)]
        for row, value in zip(collected, found[len(states) :], strict=True):
            row.append(tensor(value))
    rows = zip(collected, _directions(node, len(collected)), strict=True)
    stacked = [_stacked(node, row[::-1] if b else row, node.axis(a, row[0].type.rank + 1)) for row, (a, b) in rows]
    return Outputs([*states, *stacked])


def _directions(node: Call, count: int) -> list[tuple[int, int]]:
    """Axis of each collected output, and True if it is filled from its end."""
    axes = node.integers("scan_output_axes", (0,) * count)
    return list(zip(axes, node.integers("scan_output_directions", (0,) * count), strict=True))


def _scanned(node: Call, body: Graph, states: Sequence[OutPort], scanned: Sequence[tuple[OutPort, int]]) -> Outputs:
    """Add a TensorIterator: inputs are states, scanned tensors, captures; parts keep their axis outside."""
    build, captured = node.build, dict(node.captures["body"])
    first = [build.Gather(p, node.scalar(0), node.scalar(a)) for p, a in scanned]
    given, outer = iter([*states, *first]), iter([*states, *(p for p, _ in scanned)])
    places = range(len(body.parameters))
    ports = [tensor(captured[i] if i in captured else next(given)) for i in places]
    inputs = [tensor(captured[i] if i in captured else next(outer)) for i in places]
    free = [i for i in places if i not in captured]
    carried = {i: r for r, i in enumerate(free[: len(states)])}
    made = stable_body(node, body, ports, captured, carried)
    inner = Builder(made)
    backwards = node.integers("scan_input_directions", (0,) * len(scanned))
    maps = {i: InputMap(i, i) for i in places}
    for i, (port, axis), back in zip(free[len(states) :], scanned, backwards, strict=True):
        _keep_axis(inner, made.parameters[i], port, axis)
        maps[i] = InputMap(i, i, axis, -1, 0, -1) if back else InputMap(i, i, axis)
    outs = [OutputMap(r, r) for r in range(len(states))]
    collected = made.results[len(states) :]
    rows = zip(collected, _directions(node, len(collected)), strict=True)
    for r, (result, (axis, back)) in enumerate(rows, len(states)):
        at = node.axis(axis, result.source(0).type.rank + 1)
        result.in_port(0).connect(inner.Unsqueeze(result.source(0), inner.const([at], DType.I64)))
        outs.append(OutputMap(r, r, at, -1, 0, -1) if back else OutputMap(r, r, at))
    edges = tuple(BackEdge(r, i) for i, r in carried.items())
    loop = build.node(TensorIterator(tuple(maps.values()), tuple(outs), edges), *inputs, outputs=len(outs))
    loop.regions = {"body": made}
    return Outputs(list(loop.out_ports().values()))


def _keep_axis(inner: Builder, parameter: Node, whole: OutPort, axis: int) -> None:
    """Let a part of `whole` come in with its axis, and be read without it."""
    shape = [1 if k == axis else n for k, n in enumerate(whole.shape)]
    port = parameter.out_port(0)
    readers = port.get_destinations()
    parameter.op = Parameter(whole.type.dtype, tuple(shape))
    part = inner.Squeeze(port, inner.const([axis], DType.I64))
    for reader in readers:
        reader.connect(part)


@onnx("SequenceConstruct")
def sequence_construct(node: Call, *xs: OutPort) -> Outputs:
    return Outputs([xs])


@onnx("SequenceEmpty")
def sequence_empty(node: Call) -> Outputs:
    return Outputs([()])


def _position(node: Call, position: OutPort, count: int) -> int:
    at = node.ints(position, "position")[0]
    return at + count if at < 0 else at


@onnx("SequenceInsert")
def sequence_insert(node: Call, parts: Sequenced, x: OutPort, position: OutPort | None = None) -> Outputs:
    at = len(parts) if position is None else _position(node, position, len(parts))
    return Outputs([(*parts[:at], x, *parts[at:])])


@onnx("SequenceErase")
def sequence_erase(node: Call, parts: Sequenced, position: OutPort | None = None) -> Outputs:
    at = len(parts) - 1 if position is None else _position(node, position, len(parts))
    return Outputs([(*parts[:at], *parts[at + 1 :])])


@onnx("SequenceAt")
def sequence_at(node: Call, parts: Sequenced, position: OutPort) -> OutPort:
    at = _position(node, position, len(parts))
    node.refuse(not 0 <= at < len(parts), f"position must be in 0..{len(parts) - 1}, got {at}")
    return parts[at]


@onnx("SequenceLength")
def sequence_length(node: Call, parts: Sequenced) -> OutPort:
    return node.scalar(len(parts))


@onnx("SplitToSequence")
def split_to_sequence(node: Call, x: OutPort, split: OutPort | None = None) -> Outputs:
    axis, keep = node.axis(node.integer("axis", 0), x.type.rank), node.flag("keepdims", True)
    extent = x.type.static_shape[axis]
    if split is None:
        lengths, dropped = [1] * extent, not keep
    else:
        given, dropped = node.ints(split, "split"), False
        lengths = list(given)
        if split.type.rank == 0:
            lengths = [min(given[0], extent - i) for i in range(0, extent, given[0])]
    first = node.build.VariadicSplit(x, node.scalar(axis), node.list(lengths), outputs=len(lengths))
    ports = first.node.out_ports().values()
    return Outputs([tuple(node.build.Squeeze(p, node.list([axis])) if dropped else p for p in ports)])


@onnx("ConcatFromSequence")
def concat_from_sequence(node: Call, parts: Sequenced) -> OutPort:
    axis = node.integer("axis")
    if node.flag("new_axis"):
        return _stacked(node, parts, axis + parts[0].type.rank + 1 if axis < 0 else axis)
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=axis)


@onnx("SequenceMap")
def sequence_map(node: Call, parts: Sequenced, *others: Value) -> Outputs:
    rows: list[list[Value]] = []
    for i in range(len(parts)):
        more = [o[i] if isinstance(o, tuple) else o for o in others]
        rows.append(inlined(node, "body", (parts[i], *more)))
    return Outputs([tuple(tensor(v) for v in column) for column in zip(*rows, strict=True)])


@onnx("Optional")
def optional(node: Call, x: Value = None) -> Outputs:
    return Outputs([x])


@onnx("OptionalGetElement")
def optional_get_element(node: Call, x: Value) -> Outputs:
    return Outputs([x])


@onnx("OptionalHasElement")
def optional_has_element(node: Call, x: Value = None) -> OutPort:
    return node.build.const(np.array(x is not None), DType.BOOL)
