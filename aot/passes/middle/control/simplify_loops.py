"""Loops that count: conditions become a number of iterations, accesses at the counter become slices.

    while i < n: y[i] = f(x[i]); i += 1      ->      Loop(n) { y slice = f(x slice) }

While of TensorFlow says all of it by a counter. A Loop with a known number of iterations, sliced inputs and collected
outputs needs no copy of a list in each iteration, and rules for recurrent layers know it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import Dim, simplify
from aot.opset.control.control_flow import Loop, is_constant_size, known_truth, outer_symbols
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.port_maps import InputMap
from aot.opset.elementwise.binary import Add
from aot.opset.elementwise.comparison import Greater, Less, LogicalAnd
from aot.opset.elementwise.conversion import Convert
from aot.opset.movement.gather import Gather
from aot.opset.movement.movement import Concat
from aot.opset.movement.scatter import ScatterUpdate
from aot.opset.movement.shape import Reshape, Squeeze, Unsqueeze
from aot.opset.movement.slicing import StridedSlice
from aot.passes.match import constant
from aot.runtime.abi import DType


def simplify_loops(graph: Graph) -> bool:
    """Simplify every Loop of a graph; those in bodies are met when the pass runs on the body."""
    changed = False
    for node in graph.order():
        if isinstance(node.op, Loop):
            node.operands()  # types of the body
            loop = _Loop(node, node.op)
            changed = loop.count() | changed
            changed = loop.slice_inputs() | loop.collect_outputs() | changed
    return changed


@dataclass(frozen=True, slots=True)
class _Counter:
    """A carried whole number: `start` before the loop, more by `step` in each iteration."""

    start: OutPort
    step: int

    @property
    def counts_iterations(self) -> bool:
        first = constant(self.start)
        return self.step == 1 and first is not None and not first.any()


class _Loop:
    def __init__(self, node: Node, op: Loop) -> None:
        self.node, self.op = node, op
        self.body = node.regions["body"]
        self.inputs = {m.parameter: m for m in op.input_maps}
        self.edges = {e.parameter: e.result for e in op.back_edges}
        self.places = {p.out_port(0): i for i, p in enumerate(self.body.parameters)}
        self.counters = dict(self._counters())

    def _counters(self) -> Iterator[tuple[int, _Counter]]:
        for parameter, result in self.edges.items():
            port, after = self.body.parameters[parameter].out_port(0), self.body.results[result].source(0)
            if port.type.rank or not port.type.dtype.is_integer or not isinstance(after.node.op, Add):
                continue
            sides = after.node.sources()
            other = sides[1] if sides[0] is port else sides[0] if sides[1] is port else None
            step = constant(other)
            if step is not None and step.size == 1 and step.reshape(-1)[0] > 0:
                start = self.node.source(self.inputs[parameter].external)
                yield parameter, _Counter(start, int(step.reshape(-1)[0]))

    # ---- the number of iterations

    def count(self) -> bool:
        """End a loop by its number of iterations, if its condition compares counters with values that stay the same."""
        at, total = self.op.execution_condition, constant(self.node.source(0))
        if at < 0 or not self.counters or total is None or total.reshape(-1)[0] != -1:
            return False
        condition = self.body.results[at].source(0)
        pairs = [self._limit(port) for port in _conjunction(condition)]
        limits = [pair for pair in pairs if pair is not None]
        if constant(condition) is not None or len(limits) < len(pairs):
            return False
        build = Builder(self.node.graph, self.node.origin)
        first = self.node.source(1)
        begins = known_truth(self.node.input(1)) is True or self._is_start(first, limits)
        counts = [_iterations(build, c, limit, 0 if begins else 1) for c, limit in limits]
        count = counts[0]
        for other in counts[1:]:
            count = count if _are_same(count, other) else build.Minimum(count, other)
        self.node.in_port(0).connect(count)
        if begins:
            self.node.in_port(1).connect(build.const(True, DType.BOOL))
        self.body.results[at].in_port(0).connect(Builder(self.body).const(True, DType.BOOL))
        return True

    def _limit(self, port: OutPort) -> tuple[_Counter, OutPort] | None:
        """Return a counter's next value that must be less than a value around the loop."""
        compared = _compared(port)
        if compared is None:
            return None
        low, high = compared
        counters = [c for p, c in self.counters.items() if self.body.results[self.edges[p]].source(0) is low]
        outside = self._around_loop(high)
        return (counters[0], outside) if counters and outside is not None else None

    def _around_loop(self, port: OutPort) -> OutPort | None:
        """Return a value that stays the same, around the loop; None if iterations may change it."""
        value = constant(port)
        if value is not None:
            return Builder(self.node.graph, self.node.origin).const(value, port.type.dtype)
        parameter = self.places.get(port)
        if parameter is None or parameter in self.edges or parameter not in self.inputs:
            return None
        m = self.inputs[parameter]
        return self.node.source(m.external) if m.axis is None else None

    def _is_start(self, first: OutPort, limits: list[tuple[_Counter, OutPort]]) -> bool:
        """True if the first condition equals the body's for the counters' first values."""
        pairs = [_compared(port) for port in _conjunction(first)]
        known_pairs = [pair for pair in pairs if pair is not None]
        is_known = [any(_are_same(a, c.start) and _are_same(b, n) for a, b in known_pairs) for c, n in limits]
        return len(known_pairs) == len(pairs) and all(is_known)

    # ---- slices

    def _count_of(self) -> Dim | None:
        op = self.node.op
        assert isinstance(op, Loop)
        self.node.operands()
        iterations = op.iterations([self.node.input(i) for i in range(len(self.node.in_ports()))], self.body)
        return None if iterations is None else simplify(iterations)

    def slice_inputs(self) -> bool:
        """Let values that are read at the counter come in slice by slice."""
        input_maps: list[InputMap] = []
        count = self._count_of() if self.counters else None
        for port, parameter in list(self.places.items()):
            m = self.inputs.get(parameter)
            if m is None or m.axis is not None or parameter in self.edges or count is None:
                continue
            for consumer in [d.node for d in port.get_destinations() if d.idx == 0]:
                axis = self._read_axis(consumer)
                if axis is None or port.shape[axis] != count:
                    continue
                input_maps.append(self._slice(consumer, port, m, axis))
        if input_maps:
            self._set(input_maps=(*self._op().input_maps, *input_maps))
        return bool(input_maps)

    def _read_axis(self, consumer: Node) -> int | None:
        """Return the axis along which a node reads an element at the counter of iterations."""
        if isinstance(consumer.op, Gather) and not consumer.op.batch_dims and self._is_counter(consumer.source(1)):
            axis = constant(consumer.source(2))
            rank = consumer.source(0).type.rank
            is_at_counter = axis is not None and not consumer.source(1).type.rank
            return int(axis.reshape(-1)[0]) % rank if is_at_counter and axis is not None else None
        if isinstance(consumer.op, StridedSlice) and consumer.op.shrink_axis_mask[:1] == (1,):
            op, begin = consumer.op, consumer.source(1)
            is_at_counter = begin.shape == (1,) and not any((*op.begin_mask, *op.new_axis_mask, *op.ellipsis_mask))
            return 0 if is_at_counter and self._is_counter(begin) else None
        return None

    def _slice(self, consumer: Node, port: OutPort, m: InputMap, axis: int) -> InputMap:
        shape = tuple(1 if k == axis else n for k, n in enumerate(port.shape))
        build = Builder(self.body, consumer.origin)
        part = build(Parameter(port.type.dtype, shape), name=f"{port.node.name}.part")
        consumer.out_port(0).replace_by(build.Squeeze(part, build.const([axis], DType.I64)))
        return InputMap(m.external, len(self.body.parameters) - 1, axis)

    def _is_counter(self, port: OutPort) -> bool:
        """True if a value is the number of the iteration, in any integer type and as any single element."""
        while isinstance(port.node.op, Convert | Reshape | Squeeze | Unsqueeze):
            port = port.node.source(0)
        parameter = self.places.get(port)
        return parameter in self.counters and self.counters[parameter].counts_iterations

    def collect_outputs(self) -> bool:
        """Let values that the counter fills row by row come out as rows that are collected."""
        changed = False
        for parameter, result in list(self.edges.items()):
            filled = self._filled(parameter, result)
            if filled is None:
                continue
            rows, axis = filled
            self.body.results[result].in_port(0).connect(rows)
            op = self._op()
            outs = tuple(replace(m, axis=axis) if m.result == result else m for m in op.output_maps)
            self._set(output_maps=outs, back_edges=tuple(e for e in op.back_edges if e.parameter != parameter))
            del self.edges[parameter]
            changed = True
        return changed

    def _filled(self, parameter: int, result: int) -> tuple[OutPort, int] | None:
        """Return the rows of equal sizes that a carried value gets one by one, and their axis."""
        port, after = self.body.parameters[parameter].out_port(0), self.body.results[result].source(0)
        node, first = after.node, self.node.source(self.inputs[parameter].external)
        if isinstance(node.op, ScatterUpdate):
            axis, data = constant(node.source(3)), node.source(0)
            if axis is None or not self._is_counter(node.source(1)) or node.source(1).shape != (1,):
                return None
            along, rows = int(axis.reshape(-1)[0]) % port.type.rank, node.source(2)
            grows = isinstance(data.node.op, Concat) and data.node.source(0) is port and first.shape[along] == 0
            fits = grows or (data is port and first.shape[along] == self._count_of())
        elif isinstance(node.op, Concat) and len(node.in_ports()) == 2 and node.source(0) is port:
            along, rows = node.op.axis % port.type.rank, node.source(1)
            fits = first.shape[along] == 0 and rows.shape[along] == 1
        else:
            return None
        outside = outer_symbols(self.node.operands())
        fits = fits and all(is_constant_size(d, outside) for d in rows.shape)
        alone = len(after.destinations) == 1 and rows is not port
        return (rows, along) if fits and alone and not _is_read(port, node, rows) else None

    def _op(self) -> Loop:
        assert isinstance(self.node.op, Loop)
        return self.node.op

    def _set(self, **changes: Any) -> None:
        self.node.op = replace(self._op(), **changes)


def _is_read(port: OutPort, writer: Node, rows: OutPort) -> bool:
    """True if `rows` or a result of the body depends on a value otherwise than through `writer`."""
    stack, seen = [d.node for d in port.destinations], {writer.id}
    while stack:
        node = stack.pop()
        if node.type == "Result" or node is rows.node:
            return True
        if node.id not in seen:
            seen.add(node.id)
            stack += [d.node for out in node.out_ports().values() for d in out.destinations]
    return False


def _conjunction(port: OutPort) -> list[OutPort]:
    """Return the conditions that must all hold."""
    if not isinstance(port.node.op, LogicalAnd):
        return [port]
    return [leaf for i in (0, 1) for leaf in _conjunction(port.node.source(i))]


def _compared(port: OutPort) -> tuple[OutPort, OutPort] | None:
    """Return the lesser and the greater side of a comparison of two numbers; None for anything else."""
    if port.type.rank or not isinstance(port.node.op, Less | Greater):
        return None
    a, b = port.node.source(0), port.node.source(1)
    return (a, b) if isinstance(port.node.op, Less) else (b, a)


def _are_same(a: OutPort, b: OutPort) -> bool:
    """True if two values are one, or equal constants."""
    if a is b:
        return True
    return a.value is not None and b.value is not None and np.array_equal(a.value, b.value)


def _iterations(build: Builder, counter: _Counter, limit: OutPort, least: int) -> OutPort:
    """Return the number of iterations until a counter reaches a limit, at least `least`."""
    first, end = (build.Convert(p, destination_type=DType.I64) for p in (counter.start, limit))
    way = end if counter.counts_iterations else build.Subtract(end, first)
    if counter.step > 1:
        way = build.Divide(build.Add(way, counter.step - 1), counter.step)
    return build.Maximum(way, least)
