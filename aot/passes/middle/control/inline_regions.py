"""Inlining of bodies of If, Loop and TensorIterator, if the path is known at compile time and the copies are small.

    Loop(3, true, x) {body}   ->   body(body(body(x)))
    If(true, x) {f} {g}       ->   f(x)

All others become control flow of the program.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aot.ir.build import Builder
from aot.ir.copies import copy_node
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import numpy_dtype
from aot.opset.control.control_flow import If, Iterating, Loop, known_truth
from aot.opset.control.infrastructure import Constant
from aot.opset.control.port_maps import InputMap, OutputMap, first_part, in_order
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.passes.rewrite import sweep
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

UNROLLED = 256  # nodes of all iterations, up to which the fusion gained outweighs the code size


def inline_regions(graph: Graph) -> bool:
    """Replace nodes, also nested ones, if their branch or iteration count is known at compile time."""
    changed = False
    while (first := _first(graph)) is not None:
        node, ports = first
        for port, new_port in zip(node.out_ports().values(), ports, strict=True):
            new_port.add_tensor_names(port.names)
            port.replace_by(new_port)
        sweep(graph, [node])
        if node.id in graph.nodes:
            graph.remove(node)
        changed = True
    return changed


def _first(graph: Graph) -> tuple[Node, list[OutPort]] | None:
    """Return a node with bodies that can be inlined, and the ports that replace its outputs."""
    for node in graph.order():
        if isinstance(node.op, If | Iterating):
            try:
                ports = _if(node, node.op) if isinstance(node.op, If) else _iterated(node, node.op)
            except UnsupportedError as error:
                error.add_note(f"in layer {node.name!r}")
                raise
            if ports is not None:
                return node, ports
    return None


def copied(body: Graph, arguments: Mapping[int, OutPort], build: Builder) -> list[OutPort]:
    """Copy `body` into the builder's graph and return its results; `arguments`: parameters by position."""
    ports: dict[OutPort, OutPort] = {body.parameters[i].out_port(0): port for i, port in arguments.items()}
    for node in body.order():
        if node.type in ("Parameter", "Result"):
            continue
        copy_node(node, build.graph, ports)
    return [ports[r.source(0)] for r in body.results]


def _if(node: Node, op: If) -> list[OutPort] | None:
    known = known_truth(node.input(0))
    if known is None:
        return None
    name = "then" if known else "else"
    inputs, outputs = op.maps(name)
    build = Builder(node.graph, node.origin)
    ports = copied(node.regions[name], {m.parameter: node.source(m.external) for m in inputs}, build)
    scope_region_symbols(node.graph)
    return [ports[m.result] for m in in_order(outputs)]


def _iterated(node: Node, op: Iterating) -> list[OutPort] | None:
    body = node.regions["body"]
    count = op.iterations([node.input(i) for i in range(len(node.in_ports()))], body)
    if not isinstance(count, int) or count * _size(body) > UNROLLED:
        return None
    return _Unrolled(node, op).outputs(count)


def _size(graph: Graph) -> int:
    """Return the number of nodes that compute."""
    return sum(n.constant_data is None and n.type not in ("Parameter", "Result") for n in graph.all_nodes())


class _Unrolled:
    """A loop unrolled completely."""

    def __init__(self, node: Node, op: Iterating) -> None:
        self.node, self.op, self.body = node, op, node.regions["body"]
        self.build = Builder(node.graph, node.origin)
        self.values = {m.parameter: node.source(m.external) for m in self.op.input_maps if m.axis is None}
        self.sliced = [m for m in self.op.input_maps if m.axis is not None]
        self.history: list[list[OutPort]] = []

    def outputs(self, count: int) -> list[OutPort]:
        for step in range(count):
            self._iterate(step)
        scope_region_symbols(self.node.graph)
        return [self._output(m) for m in in_order(self.op.output_maps)]

    def _iterate(self, step: int) -> None:
        for m in self.sliced:
            self.values[m.parameter] = self._part(m, step)
        counter = self.op.current_iteration if isinstance(self.op, Loop) else -1
        if counter >= 0:
            type = self.body.parameters[counter].out_port(0).type
            self.values[counter] = self.build.const(np.full(type.static_shape, step), type.dtype)
        ports = copied(self.body, self.values, self.build)
        self.history.append(ports)
        self.values |= {e.parameter: ports[e.result] for e in self.op.back_edges}

    def _part(self, m: InputMap, step: int) -> OutPort:
        source, axis = self.node.source(m.external), m.axis or 0
        begin = first_part(m, source.shape[axis], step)
        if not isinstance(begin, int):
            raise UnsupportedError(f"{self.node.type}: a sliced input needs a known size, got {source.type}")
        numbers = ([begin], [begin + m.part_size], [1], [axis])
        return self.build.Slice(source, *(self.build.const(n, DType.I64) for n in numbers))

    def _output(self, m: OutputMap) -> OutPort:
        if m.axis is None:
            if self.history:
                return self.history[-1][m.result]
            edge = next((e for e in self.op.back_edges if e.result == m.result), None)
            return self._none(m) if edge is None else self.values[edge.parameter]
        parts = [iteration[m.result] for iteration in self.history]
        return self.build.Concat(*(parts if m.stride > 0 else parts[::-1]), axis=m.axis) if parts else self._none(m)

    def _none(self, m: OutputMap) -> OutPort:
        """Return the output of a loop that never runs: an empty concatenation, otherwise zeros."""
        type = self.node.out_port(m.external).type
        data = np.zeros(type.static_shape, numpy_dtype(type.dtype))
        return self.node.graph.add(Constant(type.dtype), origin=self.node.origin, data=data).out_port(0)
