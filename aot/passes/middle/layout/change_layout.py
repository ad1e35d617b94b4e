"""Layout change: reorders parts of a graph between Transposes so that the Transposes at their boundary disappear.

    Conv - T(0,2,3,1) - Add - Relu - Concat(3) - T(0,3,1,2) - Conv      NHWC -> NCHW
    Conv -              Add - Relu - Concat(1) -              Conv

A part is a connected set of layout-agnostic operations (layout_agnostic.py). It is reordered only if that needs fewer
Transposes at its boundary than now, so the pass terminates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, InPort, Node, OutPort
from aot.ir.types import Shape
from aot.opset.movement.movement import Transpose
from aot.passes.middle.layout.layout_agnostic import Carrier, carrier
from aot.passes.middle.layout.order_readers import read_in_order, reads_any_order
from aot.passes.permutation import Order, compose, inverse, only_moves_ones, order_of, transposed

ROUNDS = 8  # rounds at most: parts influence their neighbours; two rounds suffice usually


def change_layout(graph: Graph) -> bool:
    """Reorder every part that needs fewer Transposes in another order of dimensions."""
    changed = False
    if not any(isinstance(node.op, Transpose) for node in graph.nodes.values()):
        return False
    for _ in range(ROUNDS):
        moved_layers = [part.turn(q) for part in parts(graph) if (q := part.best()) is not None]
        if not moved_layers:
            break
        changed = True
    return changed


@dataclass(slots=True)
class Part:
    """Connected carriers of tensors of one rank, producers first."""

    graph: Graph
    nodes: dict[int, tuple[Node, Carrier]] = field(default_factory=dict[int, tuple[Node, Carrier]])

    def entries(self) -> list[OutPort]:
        """Return the inputs of the part that must be in its order."""
        ports = (node.source(i) for node, carries in self.nodes.values() for i in carries.inputs)
        return list(dict.fromkeys(p for p in ports if p.node.id not in self.nodes))

    def exits(self) -> Iterator[tuple[OutPort, list[InPort]]]:
        """Yield the part's tensors, with those consumers that do not carry their order."""
        for node, _ in self.nodes.values():
            for port in node.out_ports().values():
                if outside := [d for d in port.destinations if not self._carries(d)]:
                    yield port, outside

    def _carries(self, port: InPort) -> bool:
        node_and_carrier = self.nodes.get(port.node.id)
        return node_and_carrier is not None and port.idx in node_and_carrier[1].inputs

    def best(self) -> Order | None:
        """Return the order that saves most Transposes; None if the part is best as it is."""
        candidates: dict[Order, None] = {}
        for port in self.entries():
            if order := order_of(port.node):
                candidates[inverse(order)] = None
        for _, outside in self.exits():
            live = (d.node for d in outside if _is_read(d.node))
            candidates.update((order, None) for node in live if (order := order_of(node)))
        costs = [(self.cost(q), i, q) for i, q in enumerate(candidates)]
        if not costs:
            return None
        least = min(costs)
        return least[2] if least[0] < self.cost(None) else None

    def cost(self, q: Order | None) -> int:
        """Return the number of Transposes that move data at the boundary in order `q` (None: unchanged)."""
        return sum(self._entry_cost(p, q) for p in self.entries()) + sum(_exit_cost(p, o, q) for p, o in self.exits())

    def _entry_cost(self, port: OutPort, q: Order | None) -> int:
        order = order_of(port.node)
        if order is None:
            return int(q is not None and not only_moves_ones(q, port.shape))
        shape = port.node.source(0).shape
        stays = any(not self._carries(d) for d in port.destinations)
        if q is None:
            return int(not only_moves_ones(order, shape))
        kept = int(stays and not only_moves_ones(order, shape))
        return kept + int(not only_moves_ones(compose(order, q), shape))

    def turn(self, q: Order) -> None:
        """Rewrite the part for order `q`."""
        new_ports = {port: _enter(port, q, self.graph) for port in self.entries()}
        for node, carries in self.nodes.values():
            inputs = [
                new_ports[s] if s is not None and i in carries.inputs else s for i, s in enumerate(node.sources())
            ]
            new_node = carries.rebuild(node, q, inputs, Builder(self.graph, node.origin))
            new_node.rt_info = node.rt_info
            node.rt_info = {}
            new_ports |= dict(zip(node.out_ports().values(), new_node.out_ports().values(), strict=True))
        for port, outside in list(self.exits()):
            _leave(port, new_ports[port], q, outside)
        for node, _ in reversed(self.nodes.values()):
            name = node.name
            self.graph.remove(node)
            new_ports[node.out_port(0)].node.name = name


def _is_read(node: Node) -> bool:
    return any(port.destinations for port in node.out_ports().values())


def _exit_cost(port: OutPort, outside: Iterable[InPort], q: Order | None) -> int:
    cost, has_fixed_order = 0, False
    for consumer in outside:
        order = order_of(consumer.node)
        if order is None:
            has_fixed_order = has_fixed_order or (q is not None and not reads_any_order(consumer, q))
        elif _is_read(consumer.node):  # the others only hold names
            cost += int(not only_moves_ones(order, port.shape) if q is None else not _undoes(order, q, port.shape))
    return cost + int(has_fixed_order and q is not None and not only_moves_ones(q, port.shape))


def _undoes(order: Order, q: Order, shape: Shape) -> bool:
    """True if a Transpose by `order` moves no data once its input, of `shape` now, is in order `q`."""
    return only_moves_ones(compose(inverse(q), order), tuple(shape[d] for d in q))


def _enter(port: OutPort, q: Order, graph: Graph) -> OutPort:
    order = order_of(port.node)
    source = port.node.source(0) if order is not None else port
    build = Builder(graph, port.node.origin)
    return transposed(source, compose(order, q) if order is not None else q, build)


def _leave(port: OutPort, new: OutPort, q: Order, outside: list[InPort]) -> None:
    """Connect consumers outside to the tensor in its old order."""
    node, back = port.node, inverse(q)
    build = Builder(node.graph, node.origin)
    for consumer in outside:
        if order_of(consumer.node) is None and reads_any_order(consumer, q):
            read_in_order(consumer, new, q)
    unordered = [d for d in outside if d.source is port and order_of(d.node) is None]
    for consumer in outside:
        order = order_of(consumer.node)
        if order is not None:
            consumer.node.out_port(0).replace_by(transposed(new, compose(back, order), build))
            node.graph.remove(consumer.node)
    if unordered or port.names:
        restored = transposed(new, back, build)
        for consumer in unordered:
            consumer.connect(restored)
        restored.add_tensor_names(port.names)


def parts(graph: Graph) -> list[Part]:
    """Return the current parts of a graph."""
    order = graph.order()
    carriers = {node.id: (node, carried) for node in order if (carried := carrier(node)) is not None}
    leader = {id: id for id in carriers}

    def top(id: int) -> int:
        while leader[id] != id:
            leader[id] = id = leader[leader[id]]
        return id

    for node, carried in carriers.values():
        for i in carried.inputs:
            above = node.source(i).node.id
            if above in carriers:
                leader[top(above)] = top(node.id)
    grouped: dict[int, Part] = {}
    for id, member in carriers.items():
        grouped.setdefault(top(id), Part(graph)).nodes[id] = member
    return list(grouped.values())
