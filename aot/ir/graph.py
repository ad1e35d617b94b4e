"""Graph, Node, Port, Connection: how networks are walked and changed.

    node.in_port(0).get_source() -> out port        port.connect(other)        connection.insert_node(node)
    node.out_port(0).get_destinations() -> in ports port.disconnect()          port.data.get_shape(), get_value()

Links live in the ports alone; types are inferred when they are asked for, and forgotten when something above changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from aot.ir.inference import FOLD_LIMIT, infer_outputs
from aot.ir.op import Foreign, Op, Operand
from aot.ir.order import producers_first
from aot.ir.types import Array, Shape, TensorType
from runtime.errors import AotError, InternalError, ModelError

__all__ = ["FOLD_LIMIT", "Connection", "Graph", "InPort", "Node", "Origin", "OutPort", "Port"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from; kept through every rewrite, so that errors and profiles speak the user's names."""

    layers: tuple[str, ...] = ()
    file: str = ""

    def __or__(self, other: Origin) -> Origin:
        return Origin(tuple(dict.fromkeys((*self.layers, *other.layers))), self.file or other.file)

    def __str__(self) -> str:
        return "+".join(self.layers)


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

    def get_connection(self) -> Connection:
        return Connection(self.source, [self])

    def connect(self, source: OutPort) -> None:
        """Read from `source`, whatever was read before."""
        if source.node.graph is not self.node.graph:
            raise InternalError(f"{source} and {self} are in different graphs")
        self.disconnect()
        self.source = source
        source.destinations.append(self)
        self.node.forget_types()

    def disconnect(self) -> None:
        if self.source is not None:
            self.source.destinations.remove(self)
            self.source = None
            self.node.forget_types()

    @property
    def data(self) -> OutPort:
        """What is read: `port.data.get_shape()`."""
        if self.source is None:
            raise ModelError(f"{self.node.name}: input {self.idx} is not connected")
        return self.source

    def __repr__(self) -> str:
        return f"<in {self.idx} of {self.node.name}>"


class OutPort:
    """An output of a node: a tensor with a type, perhaps a known value, and the names users gave it."""

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

    def get_connection(self) -> Connection:
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
        return self.node.operands()[self.idx].value

    @property
    def shape(self) -> Shape:
        return self.type.shape

    def get_shape(self) -> Shape:
        return self.type.shape

    def get_value(self) -> Array | None:
        return self.value

    def add_tensor_names(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys((*self.names, *names)))

    def get_tensor_names(self) -> tuple[str, ...]:
        return self.names

    def replace_by(self, other: OutPort) -> None:
        """All readers read `other` instead; names move along."""
        for port in self.get_destinations():
            port.connect(other)
        other.add_tensor_names(self.names)
        self.names = ()

    def __repr__(self) -> str:
        return f"<out {self.idx} of {self.node.name}>"


Port = OutPort


@dataclass(slots=True)
class Connection:
    """A tensor's way from its source to some of its destinations."""

    source: OutPort | None
    destinations: list[InPort]

    def get_source(self) -> OutPort | None:
        return self.source

    def get_destination(self) -> InPort | None:
        if len(self.destinations) > 1:
            raise InternalError(f"connection from {self.source} has {len(self.destinations)} destinations")
        return self.destinations[0] if self.destinations else None

    def get_destinations(self) -> list[InPort]:
        return list(self.destinations)

    def set_source(self, port: OutPort) -> None:
        """Readers read `port`; the old source's tensor names move along."""
        if self.source is not None:
            port.add_tensor_names(self.source.names)
        for destination in self.destinations:
            destination.connect(port)
        self.source = port

    def set_destination(self, port: InPort) -> None:
        if len(self.destinations) > 1:
            raise InternalError(f"connection from {self.source} has {len(self.destinations)} destinations")
        for old in self.destinations:
            old.disconnect()
        self.add_destination(port)
        self.destinations = [port]

    def add_destination(self, port: InPort) -> None:
        if self.source is None:
            raise InternalError("a connection without a source has no destinations")
        port.connect(self.source)
        self.destinations.append(port)

    def insert_node(self, node: Node) -> None:
        """Put a node with one input and one output between source and destinations."""
        if self.source is None:
            raise InternalError("a connection without a source cannot take a node")
        node.in_port(0).connect(self.source)
        for destination in self.destinations:
            destination.connect(node.out_port(0))

    def remove(self) -> None:
        for destination in self.destinations:
            destination.disconnect()
        self.destinations = []


class Node:
    """An operation in a graph. `op` may be replaced by another with as many inputs and outputs."""

    __slots__ = (
        "_inputs", "_op", "_operands", "_outputs", "data", "graph", "id", "name", "origin", "regions", "rt_info",
    )

    def __init__(self, graph: Graph, id: int, op: Op, name: str, inputs: int, outputs: int, origin: Origin) -> None:
        self.graph, self.id, self._op, self.name, self.origin = graph, id, op, name, origin
        self._inputs = [InPort(self, i) for i in range(inputs)]
        self._outputs = [OutPort(self, i) for i in range(outputs)]
        self._operands: tuple[Operand, ...] | None = None
        self.data: Array | None = None  # of a Constant
        self.regions: dict[str, Graph] = {}  # of a RegionOp
        self.rt_info: dict[str, dict[str, str]] = {}

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

    def add_input_port(self) -> InPort:
        self._inputs.append(InPort(self, len(self._inputs)))
        self.forget_types()
        return self._inputs[-1]

    def delete_input_port(self, idx: int) -> None:
        """Ports behind it move up."""
        self.in_port(idx).disconnect()
        del self._inputs[idx]
        for i, port in enumerate(self._inputs):
            port.idx = i
        self.forget_types()

    def sources(self) -> list[OutPort | None]:
        return [p.source for p in self._inputs]

    def source(self, idx: int = 0) -> OutPort:
        return self.in_port(idx).data

    def input(self, idx: int = 0) -> Operand:
        """What is known of an input."""
        port = self.source(idx)
        return port.node.operands()[port.idx]

    def constant(self, idx: int) -> Array | None:
        """Value of an input where it is connected and known."""
        if idx >= len(self._inputs) or self._inputs[idx].source is None:
            return None
        return self.source(idx).value

    def forget_types(self) -> None:
        """The types of this node's outputs, and of all below, are to be inferred anew."""
        stack: list[Node] = [self]
        while stack:
            node = stack.pop()
            if node._operands is not None:
                node._operands = None
                stack.extend(p.node for out in node._outputs for p in out.destinations)

    @property
    def inferred(self) -> bool:
        """Whether its types are known without asking."""
        return self._operands is not None

    def operands(self) -> tuple[Operand, ...]:
        """What is known of the outputs; infers it if need be, producers first."""
        if self._operands is None:
            for node in self.graph.above(self):
                if node._operands is None:
                    node._infer()
        assert self._operands is not None
        return self._operands

    def _infer(self) -> None:
        known = [None if p.source is None else p.source.node._operands for p in self._inputs]
        pairs = zip(known, self._inputs, strict=True)
        inputs = [None if k is None or p.source is None else k[p.source.idx] for k, p in pairs]
        try:
            self._operands = infer_outputs(self._op, inputs, len(self._outputs), self.data, self.regions)
        except AotError as error:
            error.add_note(f"in layer {self.name!r}{f' of {self.origin.file}' if self.origin.file else ''}: {self}")
            raise

    def __str__(self) -> str:
        kinds = [("?" if p.source is None else p.source.node.name) for p in self._inputs]
        return f"{self.type}({', '.join(kinds)})"

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
    sinks: list[Node] = field(default_factory=list[Node])  # Assign: kept alive without a reader
    rt_info: dict[str, object] = field(default_factory=dict[str, object])
    _next: int = 0
    _taken: set[str] = field(default_factory=set[str])

    def add(
        self,
        op: Op,
        *sources: OutPort | None,
        name: str = "",
        origin: Origin | None = None,
        outputs: int = 1,
        data: Array | None = None,
    ) -> Node:
        """A new node that reads `sources`; its name is made unique."""
        origin = origin if origin is not None else _origin_of(sources)
        label = name or f"{op.type or type(op).__name__}_{self._next}"
        unique = label if label not in self._taken else f"{label}.{self._next}"
        self._taken.add(unique)
        node = Node(self, self._next, op, unique, len(sources), outputs, origin)
        self._next += 1
        node.data = data
        self.nodes[node.id] = node
        for port, source in zip(node.in_ports().values(), sources, strict=True):
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
        """Only a node that nobody reads."""
        if any(p.destinations for p in node.out_ports().values()):
            raise InternalError(f"{node.name} is still read")
        for port in node.in_ports().values():
            port.disconnect()
        del self.nodes[node.id]
        for held in (self.parameters, self.results, self.sinks):
            if node in held:
                held.remove(node)

    def order(self) -> list[Node]:
        """Producers before readers; as the nodes were added, where that is free. ModelError for a cycle."""
        return list(producers_first(self.nodes.values(), _producers, lambda n: n.name))

    def above(self, node: Node) -> Iterator[Node]:
        """The nodes whose types `node` needs and that are not inferred, producers first, itself last."""
        return producers_first([node], lambda n: (p for p in _producers(n) if not p.inferred), lambda n: n.name)

    def get_op_nodes(self, type: str | None = None) -> list[Node]:
        return [n for n in self.order() if type is None or n.type == type]

    def __str__(self) -> str:
        return f"graph {self.name}: {len(self.nodes)} nodes"


def _origin_of(sources: Sequence[OutPort | None]) -> Origin:
    return next((s.node.origin for s in sources if s is not None and s.node.origin.layers), Origin())


def _producers(node: Node) -> Iterator[Node]:
    return (p.node for p in node.sources() if p is not None)
