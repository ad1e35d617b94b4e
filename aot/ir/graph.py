"""Graph, Node, Port, Connection: the classes to walk and to change networks by.

    node.in_port(0).get_source() -> out port        port.connect(other)        connection.insert_node(node)
    node.out_port(0).get_destinations() -> in ports port.disconnect()          port.data.get_shape(), get_value()

Links live in the ports alone; types are inferred on demand, and forgotten when a producer changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain

from aot.codegen.dataclass import dataclass
from aot.ir.connection import Connection
from aot.ir.inference import (
    Inferred,
    Named,
    constant_output,
    has_few_integers,
    has_other_symbols,
    infer_outputs,
    name_outputs,
)
from aot.ir.op import Foreign, Op
from aot.ir.operand import Operand
from aot.ir.origin import Origin
from aot.ir.topological import nodes_in_order, producers, producers_first
from aot.ir.types import Array, Shape, TensorType
from aot.ir.values.deferred import Deferred, value_of
from aot.runtime.errors import AotError, InternalError, ModelError, UnsupportedError, UsageError

__all__ = ["Connection", "Graph", "InPort", "Node", "Origin", "OutPort"]


class InPort:
    """An input of a node; has one source at most."""

    __slots__ = ("idx", "node", "source")

    def __init__(self, node: Node, idx: int) -> None:
        self.node, self.idx = node, idx
        self.source: OutPort | None = None

    def get_source(self) -> OutPort | None:
        return self.source

    def disconnected(self) -> bool:
        return self.source is None

    def get_connection(self) -> Connection[OutPort, InPort]:
        return Connection(self.source, [self])

    def connect(self, source: OutPort) -> None:
        """Replace the source by `source`. Raises UsageError if `source` is an input that has no source of its own."""
        other: object = source
        if isinstance(other, InPort):
            raise UsageError(f"connect: an input must read an output, got {other} for {self}")
        if source.node.graph is not self.node.graph:
            raise InternalError(f"{source} and {self} are in different graphs")
        if self.source is not None:
            self.source.destinations.remove(self)
        self.source = source
        source.destinations.append(self)
        self.node.graph.forget_order()
        if self.node.is_inferred and not self.node.has_types_for(self.idx, source):
            self.node.forget_types()

    def disconnect(self) -> None:
        if self.source is not None:
            self.source.destinations.remove(self)
            self.source = None
            self.node.graph.forget_order()
            self.node.forget_types()

    @property
    def data(self) -> OutPort:
        """Data of the port: `port.data.get_shape()`."""
        if self.source is None:
            raise ModelError(f"{self.node.name}: input {self.idx} is not connected")
        return self.source

    def __repr__(self) -> str:
        return f"<in {self.idx} of {self.node.name}>"


class OutPort:
    """An output of a node: a tensor with a type, a value if it is known at compile time, and the user's names."""

    __slots__ = ("destinations", "idx", "names", "node")

    def __init__(self, node: Node, idx: int) -> None:
        self.node, self.idx = node, idx
        self.destinations: list[InPort] = []
        self.names: tuple[str, ...] = ()

    def get_destinations(self) -> list[InPort]:
        return list(self.destinations)

    def get_destination(self) -> InPort | None:
        if len(self.destinations) > 1:
            raise InternalError(f"{self} has {len(self.destinations)} destinations")
        return self.destinations[0] if self.destinations else None

    def disconnected(self) -> bool:
        return not self.destinations

    def get_connection(self) -> Connection[OutPort, InPort]:
        return Connection(self, self.get_destinations())

    def connect(self, destination: InPort) -> None:
        destination.connect(self)

    def disconnect(self) -> None:
        for port in self.get_destinations():
            port.disconnect()

    @property
    def data(self) -> OutPort:
        return self

    @property
    def type(self) -> TensorType:
        return self.node.operands()[self.idx].type

    @property
    def value(self) -> Array | None:
        """The value where it is known at compile time."""
        value = self.node.operands()[self.idx].value
        return self.node.data if value is None and self.node.constant_data is not None else value

    @property
    def _inferred(self) -> Array | None:
        """The value as inference uses it, which looks into no deferred constant."""
        return self.node.operands()[self.idx].value

    def symbols(self) -> Array:
        """Return the value, with symbols for unknown integers; UnsupportedError unless it has a few integers."""
        values = self.node.symbols()[self.idx][0]
        if values is None:
            rule = "sizes must be a few integers, and their number must be known"
            raise UnsupportedError(f"{self.node.name}: {rule}, got {self.type}")
        return values

    @property
    def label(self) -> str:
        """Prefix of the names of symbols that stand for parts of this output."""
        return f"{self.node.graph.scope}{self.node.id}{f'o{self.idx}' if self.idx else ''}"

    @property
    def symbolic_value(self) -> Array | None:
        """The value as inference has used it: with symbols, if an operation could not do without."""
        value = self._inferred
        return value if value is not None else self.node.requested_symbols(self.idx)[0]

    @property
    def own_symbols(self) -> Array | None:
        """Symbols that are names of this output's elements, if an operation could not do without."""
        symbols, own = self.node.requested_symbols(self.idx)
        return symbols if self._inferred is None and own else None

    @property
    def constant_data(self) -> Array | Deferred | None:
        """The value where it is known at compile time; a deferred one is not made."""
        value = self._inferred
        return value if value is not None else self.node.constant_data

    @property
    def shape(self) -> Shape:
        return self.node.operands()[self.idx].type.shape

    def get_shape(self) -> Shape:
        return self.type.shape

    def get_value(self) -> Array | None:
        return self.value

    def add_tensor_names(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys((*self.names, *names)))

    def get_tensor_names(self) -> tuple[str, ...]:
        return self.names

    def replace_by(self, other: OutPort) -> None:
        """Let all consumers read `other` instead; names move along."""
        for port in self.get_destinations():
            port.connect(other)
        other.add_tensor_names(self.names)
        self.names = ()

    def __repr__(self) -> str:
        return f"<out {self.idx} of {self.node.name}>"


class Node:
    """An operation in a graph. `op` may be replaced by another with as many inputs and outputs."""

    __slots__ = (
        "_inferred_from",
        "_inputs",
        "_op",
        "_operands",
        "_outputs",
        "_symbols",
        "constant_data",
        "given",
        "graph",
        "id",
        "name",
        "origin",
        "regions",
        "rt_info",
    )

    def __init__(self, graph: Graph, id: int, op: Op, name: str, inputs: int, outputs: int, origin: Origin) -> None:
        self.graph, self.id, self._op, self.name, self.origin = graph, id, op, name, origin
        self._inputs = [InPort(self, i) for i in range(inputs)]
        self._outputs = [OutPort(self, i) for i in range(outputs)]
        self._operands: tuple[Operand, ...] | None = None
        self._inferred_from: Inferred | None = None
        self._symbols: tuple[Named, ...] | None = None
        self.constant_data: Array | Deferred | None = None  # of a Constant
        self.given: Operand | None = None  # of a body's Parameter: the operand of the node around the body
        self.regions: dict[str, Graph] = {}  # of a RegionOp
        self.rt_info: dict[str, dict[str, str]] = {}

    @property
    def data(self) -> Array | None:
        """Elements of a Constant; a deferred one is made for it."""
        return None if self.constant_data is None else value_of(self.constant_data)

    @data.setter
    def data(self, data: Array | None) -> None:
        self.constant_data = data

    @property
    def op(self) -> Op:
        return self._op

    @op.setter
    def op(self, op: Op) -> None:
        self._op = op
        self.forget_types()

    @property
    def type(self) -> str:
        return self._op.kind if isinstance(self._op, Foreign) else self._op.type

    def in_port(self, idx: int = 0) -> InPort:
        if not 0 <= idx < len(self._inputs):
            raise ModelError(f"{self.name} ({self.type}): no input {idx}, it has {len(self._inputs)}")
        return self._inputs[idx]

    def out_port(self, idx: int = 0) -> OutPort:
        if not 0 <= idx < len(self._outputs):
            raise ModelError(f"{self.name} ({self.type}): no output {idx}, it has {len(self._outputs)}")
        return self._outputs[idx]

    def in_ports(self) -> dict[int, InPort]:
        return dict(enumerate(self._inputs))

    def out_ports(self) -> dict[int, OutPort]:
        return dict(enumerate(self._outputs))

    def inputs(self) -> Sequence[InPort]:
        return self._inputs

    def outputs(self) -> Sequence[OutPort]:
        return self._outputs

    def add_input_port(self) -> InPort:
        self._inputs.append(InPort(self, len(self._inputs)))
        self.forget_types()
        return self._inputs[-1]

    def add_output_port(self) -> OutPort:
        """Add an output; the operation must be exchanged for one that has it."""
        self._outputs.append(OutPort(self, len(self._outputs)))
        self.forget_types()
        return self._outputs[-1]

    def delete_input_port(self, idx: int) -> None:
        """Remove an input; later ports move up."""
        self.in_port(idx).disconnect()
        del self._inputs[idx]
        for i, port in enumerate(self._inputs):
            port.idx = i
        self.forget_types()

    def sources(self) -> list[OutPort | None]:
        return [p.source for p in self._inputs]

    def source(self, idx: int = 0) -> OutPort:
        port = self._inputs[idx] if 0 <= idx < len(self._inputs) else self.in_port(idx)
        return port.data if port.source is None else port.source

    def input(self, idx: int = 0) -> Operand:
        """Return the operand of an input."""
        port = self.source(idx)
        return port.node.operands()[port.idx]

    def constant(self, idx: int) -> Array | None:
        """Return the value of an input if it is connected and known."""
        if idx >= len(self._inputs) or self._inputs[idx].source is None:
            return None
        return self.source(idx).value

    def forget_types(self) -> None:
        """Forget the inferred types of this node and of all nodes that depend on it."""
        stack: list[Node] = [self]
        while stack:
            node = stack.pop()
            if node._operands is not None:
                node._operands = node._symbols = None
                stack.extend(p.node for out in node._outputs for p in out.destinations)

    def has_types_for(self, idx: int, source: OutPort) -> bool:
        """True if inference would return the types that it has returned, with input `idx` from `source`."""
        known = source.node._operands
        if known is None or self._inferred_from is None or self.regions:
            return False
        return self._inferred_from.has_input(idx, known[source.idx])

    @property
    def is_inferred(self) -> bool:
        """True if its types have been inferred."""
        return self._operands is not None

    def operands(self) -> tuple[Operand, ...]:
        """Return the operands of the outputs; they are inferred if necessary, producers first."""
        if self._operands is None:
            waits = [p for p in self._inputs if p.source is not None and p.source.node._operands is None]
            for node in self.graph.above(self) if waits else (self,):
                if node._operands is None:
                    node._infer()
        assert self._operands is not None
        return self._operands

    def set_given_operand(self, operand: Operand | None) -> None:
        """Set `given`, the operand that a body's Parameter gets."""
        before = self.given
        if operand is None or before is None or not operand.is_same(before) or has_other_symbols(operand, before):
            self.given = operand
            self.forget_types()

    def _infer(self) -> None:
        if self.constant_data is not None:
            self._operands = (constant_output(self._op, self.constant_data, self._outputs[0]),)
            return
        if self.given is not None:
            self._operands = (replace(self.given, source=self.given.source or self._outputs[0]),)
            return
        inputs: list[Operand | None] = []
        for source in self.sources():
            known = None if source is None else source.node._operands
            inputs.append(None if source is None or known is None else known[source.idx])
        before = self._inferred_from
        if before is not None and before.holds_for(self._op, inputs, len(self._outputs)):
            self._operands = before.outputs
            return
        try:
            self._operands = infer_outputs(self._op, inputs, self.regions, self._outputs)
        except AotError as error:
            error.add_note(f"in layer {self.name!r}{f' of {self.origin.file}' if self.origin.file else ''}: {self}")
            raise
        if not self.regions:
            self._inferred_from = Inferred.of(self._op, inputs, self._operands)

    def symbols(self) -> tuple[Named, ...]:
        """Return the outputs' values as far as they are known, else symbols for their elements."""
        if self._symbols is None:
            for node in producers_first([self], Node._computed_from, lambda n: n.name):
                node._named()
        assert self._symbols is not None
        return self._symbols

    def requested_symbols(self, idx: int) -> Named:
        """Return the symbols of an output that inference read, and True if they stand for its own elements."""
        return (None, False) if self._symbols is None else self._symbols[idx]

    def _computed_from(self) -> list[Node]:
        """Return the producers that the values are computed from, if the operation can compute with symbols."""
        ports = [p for p in self.sources() if p is not None and p.node.operands()[p.idx].value is None]
        able = self._op.symbolic and self.given is None and all(has_few_integers(p.type) for p in ports)
        return [p.node for p in ports if p.node._symbols is None] if able else []

    def _named(self) -> None:
        inputs = [
            None if p is None else replace(p.node.operands()[p.idx], value=p.symbolic_value) for p in self.sources()
        ]
        labels = [f"v{p.label}" for p in self._outputs]
        own = [o.source is p for o, p in zip(self.operands(), self._outputs, strict=True)]
        self._symbols = name_outputs(self._op, inputs, self.operands(), labels, own)

    def __str__(self) -> str:
        names = [("?" if p.source is None else p.source.node.name) for p in self._inputs]
        return f"{self.type}({', '.join(names)})"

    def __repr__(self) -> str:
        return f"<{self.name}: {self}>"


@dataclass(eq=False)
class Graph:
    """A network: nodes with ports, parameters and results in order."""

    name: str = "model"
    file: str = ""
    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    parameters: list[Node] = field(default_factory=list[Node])
    results: list[Node] = field(default_factory=list[Node])
    sinks: list[Node] = field(default_factory=list[Node])  # Assign: live without consumers
    scope: str = ""  # prefix of the names of symbols; each graph inside of a node has its own
    rt_info: dict[str, object] = field(default_factory=dict[str, object])
    defaults: dict[int, Array] = field(default_factory=dict[int, Array])  # values of parameters that may be left out
    strings: dict[int, str] = field(default_factory=dict[int, str])  # parameters, results: the strings they are part of
    _order: tuple[Node, ...] | None = None  # cache of `order`
    next_id: int = 0  # the number of the next node
    taken: set[str] = field(default_factory=set[str])  # names of nodes, also of removed ones

    def add(
        self,
        op: Op,
        *sources: OutPort | None,
        name: str = "",
        origin: Origin | None = None,
        outputs: int = 1,
        data: Array | Deferred | None = None,
    ) -> Node:
        """Add a node that reads `sources`; its name is made unique. `data`: of a Constant."""
        origin = origin if origin is not None else _origin_of(sources)
        label = name or f"{op.type or type(op).__name__}_{self.next_id}"
        unique = label if label not in self.taken else f"{label}.{self.next_id}"
        self.taken.add(unique)
        node = Node(self, self.next_id, op, unique, len(sources), outputs, origin)
        self.next_id += 1
        node.constant_data = data
        self.nodes[node.id] = node
        self.forget_order()
        for port, source in zip(node.inputs(), sources, strict=True):
            if source is not None:
                port.connect(source)
        if op.type == "Parameter":
            self.parameters.append(node)
        elif op.type == "Result":
            self.results.append(node)
        elif op.type == "Assign":
            self.sinks.append(node)
        return node

    def remove(self, node: Node) -> None:
        """Remove a node that has no consumers."""
        for port in node.outputs():
            if port.destinations:
                raise InternalError(f"{node.name}: it still has consumers")
        for port in node.inputs():
            port.disconnect()
        del self.nodes[node.id]
        self.forget_order()
        for nodes in (self.parameters, self.results, self.sinks):
            if node in nodes:
                nodes.remove(node)

    def order(self) -> list[Node]:
        """Return all nodes, producers first, else in the order of insertion. ModelError for a cycle."""
        if self._order is None:
            self._order = tuple(nodes_in_order(self.nodes.values()))
        return list(self._order)

    def forget_order(self) -> None:
        """Drop the cached order of the nodes after links or nodes have changed."""
        self._order = None

    def all_nodes(self) -> Iterator[Node]:
        """Yield the nodes of the graph, then the nodes of bodies."""
        return chain(self.nodes.values(), *(b.all_nodes() for n in self.nodes.values() for b in n.regions.values()))

    def above(self, node: Node) -> Iterator[Node]:
        """Yield the nodes without inferred types that `node` needs, producers first, `node` last."""
        return producers_first([node], lambda n: (p for p in producers(n) if not p.is_inferred), lambda n: n.name)

    def get_op_nodes(self, type: str | None = None) -> list[Node]:
        """Return the operations, or those of a type, spelled as here or as in IR files: `Relu` or `ReLU`."""
        return [n for n in self.order() if type is None or type in (n.type, n.op.xml_type)]

    def __str__(self) -> str:
        return f"graph {self.name}: {len(self.nodes)} nodes"


def _origin_of(sources: Sequence[OutPort | None]) -> Origin:
    return next((s.node.origin for s in sources if s is not None and s.node.origin.layers), Origin())
