"""If, Loop, Scan, sequences and optionals: resolved while they are converted, as far as compile time knows.

A sequence whose length is known is a tuple of ports. A loop of a known, moderate number of steps is unrolled, so that
shapes may change from one step to the next. What only run time knows becomes the opset's Loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.onnx.registry import Call, Outputs, Sequenced, Value, onnx
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.opset.control_flow import BackEdge, InputMap, Loop, OutputMap
from runtime.abi import DType
from runtime.errors import ModelError, UnsupportedError

UNROLLED = 1 << 14  # nodes that unrolling may make


def _region(node: Call, name: str) -> Graph:
    node.refuse(name not in node.regions, f"it has no sub-graph {name}")
    return node.regions[name]


def _inlined(node: Call, name: str, inputs: Sequence[Value]) -> list[Value]:
    """The results of a region for its formal inputs; captured values are added."""
    region = _region(node, name)
    given: list[Value] = [None] * len(region.parameters)
    positions = dict(node.captures[name])
    free = [i for i in range(len(given)) if i not in positions]
    node.refuse(len(free) != len(inputs), f"{name} has {len(free)} inputs, got {len(inputs)}")
    for i, value in zip(free, inputs, strict=True):
        given[i] = value
    for i, value in positions.items():
        given[i] = value
    return node.bodies.inline(region, given)


@onnx("If")
def if_(node: Call, condition: OutPort) -> Outputs:
    """One branch where the condition is known; else both are computed, and their results selected.

    A branch that does not fit the shapes of the model's inputs would fail at run time; here it gives NaN.
    """
    value = condition.value
    if value is not None:
        return Outputs(_inlined(node, "then_branch" if value.reshape(-1)[0] else "else_branch", ()))
    chosen = node.build.Squeeze(condition) if condition.type.rank else condition
    then, other = _both(node)
    return Outputs([_selected(node, chosen, a, b) for a, b in zip(then, other, strict=True)])


def _both(node: Call) -> tuple[list[Value], list[Value]]:
    found: list[list[Value] | None] = []
    wrong: ModelError | None = None
    for name in ("then_branch", "else_branch"):
        try:
            found.append(_inlined(node, name, ()))
        except ModelError as error:
            found.append(None)
            wrong = wrong or error
    then, other = found
    if wrong is not None and then is None and other is None:
        raise wrong
    return then or _failing(node, other or []), other or _failing(node, then or [])


def _failing(node: Call, like: Sequence[Value]) -> list[Value]:
    """What stands for results that cannot be: NaN."""
    ports = [p for p in like if isinstance(p, OutPort) and p.type.dtype.is_float]
    node.refuse(len(ports) != len(like), "a branch does not fit the inputs' shapes, and its results have no NaN")
    nan = (node.like(np.nan, p) for p in ports)
    return [node.build.Broadcast(v, node.dims(p, range(p.type.rank))) for v, p in zip(nan, ports, strict=True)]


def _selected(node: Call, condition: OutPort, a: Value, b: Value) -> OutPort:
    if not isinstance(a, OutPort) or not isinstance(b, OutPort):
        raise UnsupportedError("If: branches must give tensors where the condition is known only at run time")
    if a.type != b.type:
        raise UnsupportedError(f"If: branches must give equal types at run time, got {a.type} and {b.type}")
    return node.build.Select(condition, a, b)


@onnx("Loop")
def loop(node: Call, trips: OutPort | None = None, going: OutPort | None = None, *states: Value) -> Outputs:
    body = _region(node, "body")
    count = None if trips is None else trips.value
    known = count is not None and count.dtype != object
    first = going is None or going.value is not None
    if not known or not first or int(count.reshape(-1)[0]) * len(body.nodes) > UNROLLED:  # type: ignore[union-attr]
        return _at_run_time(node, body, trips, going, states)
    limit = int(count.reshape(-1)[0])  # type: ignore[union-attr]
    alive, values = going is None or bool(going.value.reshape(-1)[0]), list(states)  # type: ignore[union-attr]
    collected: list[list[OutPort]] = [[] for _ in range(len(body.results) - 1 - len(states))]
    for step in range(limit):
        if not alive:
            break
        condition = node.build.const(True, DType.BOOL)
        found = _inlined(node, "body", (node.scalar(step), condition, *values))
        more = found[0]
        if not isinstance(more, OutPort) or more.value is None:
            if step == limit - 1:
                alive = False
            else:
                raise UnsupportedError("Loop: a condition that only run time knows is not supported with these outputs")
        else:
            alive = bool(more.value.reshape(-1)[0])
        values = found[1 : 1 + len(states)]
        for parts, value in zip(collected, found[1 + len(states) :], strict=True):
            parts.append(_tensor(value))
    return Outputs([*values, *(_stacked(node, parts) for parts in collected)])


def _tensor(value: Value) -> OutPort:
    if not isinstance(value, OutPort):
        raise UnsupportedError("only tensors can be collected by a loop")
    return value


def _stacked(node: Call, parts: Sequence[OutPort], axis: int = 0) -> OutPort:
    node.refuse(not parts, "a loop that collects outputs and never runs is not supported")
    each = [node.build.Unsqueeze(p, node.list([axis])) for p in parts]
    return each[0] if len(each) == 1 else node.build.Concat(*each, axis=axis)


def _at_run_time(
    node: Call, body: Graph, trips: OutPort | None, going: OutPort | None, states: Sequence[Value]
) -> Outputs:
    """The opset's Loop: input 0 the number of steps (-1: no limit), input 1 the condition, then states and captures."""
    build = node.build
    total = node.scalar(-1) if trips is None else build.Squeeze(trips) if trips.type.rank else trips
    start = build.const(True, DType.BOOL) if going is None else build.Squeeze(going) if going.type.rank else going
    captured = dict(node.captures["body"])
    given = iter([node.scalar(0), start, *states])
    ports = [_tensor(captured[i] if i in captured else next(given)) for i in range(len(body.parameters))]
    made = node.bodies.separate(body, ports, [i in captured for i in range(len(ports))])
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
        current_iteration=0, execution_condition=0,
    )  # fmt: skip
    outer = build.node(op, total, start, *ports[2:], outputs=len(made.results) - 1)
    outer.regions = {"body": made}
    return Outputs(list(outer.out_ports().values()))


@onnx("Scan")
def scan(node: Call, *inputs: OutPort) -> Outputs:
    """Unrolled; from opset 9 on there is no batch."""
    node.refuse(node.opset < 9, "Scan of opset 8 is not supported: convert the model to opset 9")
    body, count = _region(node, "body"), node.integer("num_scan_inputs")
    states: list[Value] = list(inputs[: len(inputs) - count])
    scanned = inputs[len(inputs) - count :]
    given = node.integers("scan_input_axes", (0,) * count)
    axes = [node.axis(a, p.type.rank) for a, p in zip(given, scanned, strict=True)]
    backwards = node.integers("scan_input_directions", (0,) * count)
    steps = scanned[0].shape[axes[0]]
    if not isinstance(steps, int) or steps * len(body.nodes) > UNROLLED:
        raise UnsupportedError(f"Scan: the number of steps must be known and moderate, got {steps}")
    collected: list[list[OutPort]] = [[] for _ in range(len(body.results) - len(states))]
    for step in range(steps):
        places = [node.scalar(steps - 1 - step if b else step) for b in backwards]
        parts = [node.build.Gather(p, i, node.scalar(a)) for p, i, a in zip(scanned, places, axes, strict=True)]
        found = _inlined(node, "body", (*states, *parts))
        states = found[: len(states)]
        for row, value in zip(collected, found[len(states) :], strict=True):
            row.append(_tensor(value))
    out_axes = node.integers("scan_output_axes", (0,) * len(collected))
    reverse = node.integers("scan_output_directions", (0,) * len(collected))
    stacked = [
        _stacked(node, row[::-1] if r else row, a + row[0].type.rank + 1 if a < 0 else a)
        for row, a, r in zip(collected, out_axes, reverse, strict=True)
    ]
    return Outputs([*states, *stacked])


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
        rows.append(_inlined(node, "body", (parts[i], *more)))
    return Outputs([tuple(_tensor(v) for v in column) for column in zip(*rows, strict=True)])


@onnx("Optional")
def optional(node: Call, x: Value = None) -> Outputs:
    return Outputs([x])


@onnx("OptionalGetElement")
def optional_get_element(node: Call, x: Value) -> Outputs:
    return Outputs([x])


@onnx("OptionalHasElement")
def optional_has_element(node: Call, x: Value = None) -> OutPort:
    return node.build.const(np.array(x is not None), DType.BOOL)
