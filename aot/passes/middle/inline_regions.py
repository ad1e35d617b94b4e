"""Bodies of If, Loop and TensorIterator put in place: the branch that is taken, or a copy for each iteration.

    Loop(5, true, x) {body}   ->   body(body(body(body(body(x)))))
    If(c, x) {f} {g}          ->   f(x), g(x) or, where only run time knows c, Select(c, f(x), g(x))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import numpy_dtype
from aot.opset.control_flow import If, InputMap, Iterating, Loop, OutputMap
from aot.opset.infrastructure import Constant
from aot.passes.rewrite import sweep
from runtime.abi import DType
from runtime.errors import UnsupportedError

LIMIT = 4000  # nodes that one loop may become


def inline_regions(graph: Graph) -> bool:
    """Replace every node that holds sub-graphs; UnsupportedError where run time decides how often a body runs."""
    changed = False
    while True:
        held = next((n for n in graph.order() if isinstance(n.op, If | Iterating)), None)
        if held is None:
            return changed
        try:
            found = _if(held) if isinstance(held.op, If) else _Unrolled(held).outputs()
        except UnsupportedError as error:
            error.add_note(f"in layer {held.name!r}")
            raise
        for port, made in zip(held.out_ports().values(), found, strict=True):
            for name in port.names:
                made.add_tensor_names((name,))
            port.replace_by(made)
        sweep(graph, [held])
        if held.id in graph.nodes:
            graph.remove(held)
        changed = True


def copied(body: Graph, given: Mapping[int, OutPort], build: Builder) -> list[OutPort]:
    """The results of a copy of `body` in the builder's graph; `given` are its parameters by position."""
    ports: dict[OutPort, OutPort] = {body.parameters[i].out_port(0): port for i, port in given.items()}
    for node in body.order():
        if node.type in ("Parameter", "Result"):
            continue
        if node.type in ("ReadValue", "Assign"):
            raise UnsupportedError(f"{node.type}: a variable inside of a body is not supported, got {node.name!r}")
        sources = [None if p is None else ports[p] for p in node.sources()]
        made = build.graph.add(
            node.op, *sources, name=node.name, origin=node.origin, outputs=len(node.out_ports()), data=node.data
        )
        made.regions = node.regions
        ports |= dict(zip(node.out_ports().values(), made.out_ports().values(), strict=True))
    return [ports[r.source(0)] for r in body.results]


def _in_order(maps: Sequence[OutputMap]) -> list[OutputMap]:
    return sorted(maps, key=lambda m: m.external)


def _if(node: Node) -> list[OutPort]:
    op = node.op
    assert isinstance(op, If)
    build = Builder(node.graph, node.origin)

    def branch(name: str) -> list[OutPort]:
        inputs, outputs = op.maps(name)
        found = copied(node.regions[name], {m.parameter: node.source(m.external) for m in inputs}, build)
        return [found[m.result] for m in _in_order(outputs)]

    known = node.input(0).value
    if known is not None:
        return branch("then" if known.reshape(-1)[0] else "else")
    pairs = list(zip(branch("then"), branch("else"), strict=True))
    for one, other in pairs:
        if one.type != other.type:
            raise UnsupportedError(f"If: branches must give equal types, got {one.type} and {other.type}")
    condition = build.Reshape(node.source(0), build.const(np.zeros(0), DType.I64))
    return [build.Select(condition, one, other) for one, other in pairs]


class _Unrolled:
    """All iterations, one after another."""

    def __init__(self, node: Node) -> None:
        assert isinstance(node.op, Iterating)
        self.node, self.op, self.body = node, node.op, node.regions["body"]
        self.build = Builder(node.graph, node.origin)
        self.values = {m.parameter: node.source(m.external) for m in self.op.input_maps if m.axis is None}
        self.sliced = [m for m in self.op.input_maps if m.axis is not None]
        self.history: list[list[OutPort]] = []

    def outputs(self) -> list[OutPort]:
        operands = [self.node.input(i) for i in range(len(self.node.in_ports()))]
        count = self.op.iterations(operands, self.body)
        decided = count is None
        if count is None:
            count = self._limit()
        if not isinstance(count, int):
            rule = "the number of iterations must be known at compile time"
            raise UnsupportedError(f"{self.node.type}: {rule}, got {count}")
        if count * len(self.body.nodes) > LIMIT:
            raise UnsupportedError(f"{self.node.type}: at most {LIMIT} nodes when unrolled, got {count} iterations")
        if decided:
            return self._while(count)
        for step in range(count):
            self._iterate(step)
        return [self._output(m) for m in _in_order(self.op.output_maps)]

    def _limit(self) -> int | None:
        """The most iterations of a loop that a condition ends."""
        trips = self.node.input(0).value if isinstance(self.op, Loop) else None
        if trips is None or any(m.axis is not None for m in self.op.output_maps):
            return None
        most = int(trips.reshape(-1)[0])
        return most if most >= 0 else None

    def _iterate(self, step: int) -> list[OutPort]:
        for m in self.sliced:
            self.values[m.parameter] = self._part(m, step)
        counter = self.op.current_iteration if isinstance(self.op, Loop) else -1
        if counter >= 0:
            type = self.body.parameters[counter].out_port(0).type
            self.values[counter] = self.build.const(np.full(type.static_shape, step), type.dtype)
        found = copied(self.body, self.values, self.build)
        self.history.append(found)
        self.values |= {e.parameter: found[e.result] for e in self.op.back_edges}
        return found

    def _while(self, count: int) -> list[OutPort]:
        """Iterations after the condition has failed change nothing."""
        assert isinstance(self.op, Loop)
        scalar = self.build.const(np.zeros(0), DType.I64)
        alive = self.build.Reshape(self.node.source(1), scalar)
        last: dict[int, OutPort] = {e.result: self.values[e.parameter] for e in self.op.back_edges}
        for step in range(count):
            before = dict(self.values)
            found = self._iterate(step)
            for e in self.op.back_edges:
                self.values[e.parameter] = self.build.Select(alive, found[e.result], before[e.parameter])
            for m in self.op.output_maps:
                old = last.get(m.result)
                last[m.result] = found[m.result] if old is None else self.build.Select(alive, found[m.result], old)
            if self.op.execution_condition >= 0:
                going = self.build.Reshape(found[self.op.execution_condition], scalar)
                alive = self.build.LogicalAnd(alive, going)
        if any(m.result not in last for m in self.op.output_maps):
            raise UnsupportedError("Loop: an output of a loop that never ran has no value")
        return [last[m.result] for m in _in_order(self.op.output_maps)]

    def _part(self, m: InputMap, step: int) -> OutPort:
        source, axis = self.node.source(m.external), m.axis or 0
        size = source.shape[axis]
        start = m.start + size if m.start < 0 else m.start
        if not isinstance(start, int):
            raise UnsupportedError(f"{self.node.type}: a sliced input needs a known size, got {source.type}")
        begin = start + step * m.part_size if m.stride > 0 else start - (step + 1) * m.part_size + 1
        numbers = ([begin], [begin + m.part_size], [1], [axis])
        return self.build.Slice(source, *(self.build.const(n, DType.I64) for n in numbers))

    def _output(self, m: OutputMap) -> OutPort:
        if m.axis is None:
            if self.history:
                return self.history[-1][m.result]
            edges = [e for e in self.op.back_edges if e.result == m.result]
            if not edges:
                raise UnsupportedError(f"{self.node.type}: an output of a loop that never ran has no value")
            return self.values[edges[0].parameter]
        parts = [found[m.result] for found in self.history]
        if not parts:
            type = self.node.out_port(m.external).type
            data = np.zeros(type.static_shape, numpy_dtype(type.dtype))
            return self.node.graph.add(Constant(type.dtype), origin=self.node.origin, data=data).out_port(0)
        return self.build.Concat(*(parts if m.stride > 0 else parts[::-1]), axis=m.axis)
