"""Variables that only grow along one dimension, as keys and values of a language model, are appended to in place.

    before = Gather(ReadValue("v", nothing), rows)        sizes = CacheSizes(new sizes, rows)
    v = Concat(before, new)                         ->    v = Append("v")(new, sizes, CacheRoom(sizes), rows)
    Assign("v", v)                                        Assign("v", v), which writes its sizes only

All variables of the network must be of this kind; others keep the pass `carry_variables`.
"""

from __future__ import annotations

from functools import reduce
from math import prod

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import normal
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import Stateful
from aot.ir.types import Dim, Shape
from aot.opset.control.growing_variables import PAST, SHOWN, Append, CacheRoom, CacheSizes
from aot.opset.control.state import DYNAMIC, Assign, AssignCarried, Read
from aot.opset.movement.movement import Concat
from aot.opset.products.matmul import MatMul
from aot.runtime.abi import DType
from aot.runtime.errors import AotError

VIEWS = ("Unsqueeze", "Squeeze", "Broadcast", "Reshape", "Tile")  # between a variable and the product that reads it
Terms = list[tuple[OutPort, int, int]]  # an input, its dimension, and how often it counts


@dataclass(frozen=True, slots=True)
class _GrowingVariable:
    """A variable and the nodes around it; `rows`: the row numbers of its Gather."""

    read: Node
    gather: Node | None
    concat: Node
    assign: Node
    axis: int
    rows: OutPort | None

    @property
    def id(self) -> str:
        return _id(self.read)

    @property
    def new(self) -> OutPort:
        return self.concat.source(1)

    @property
    def shape(self) -> Shape:
        return self.new.type.shape

    @property
    def element_type(self) -> DType:
        return self.new.type.dtype


def append_variables(graph: Graph) -> bool:
    """Replace the operations on these variables."""
    nodes = [n for n in graph.order() if isinstance(n.op, Stateful)]
    if not nodes or any(n.regions for n in graph.nodes.values()):
        return False
    users: dict[str, list[Node]] = {}
    for node in nodes:
        users.setdefault(_id(node), []).append(node)
    try:
        candidates = [_growing_variable(pair) for pair in users.values()]
    except AotError:  # types that only the passes below can infer
        return False
    grown = [g for g in candidates if g is not None]
    if len(grown) < len(candidates) or len({(g.element_type, g.rows) for g in grown}) > 1:
        return False
    new = _new_sizes(graph, grown)
    if new is None:
        return False
    _append(graph, grown, new)
    return True


def _id(node: Node) -> str:
    assert isinstance(node.op, Stateful)
    return node.op.variable_id


def _growing_variable(users: list[Node]) -> _GrowingVariable | None:
    """Return the variable that these nodes use, if it grows along one dimension and does nothing else."""
    read, assign = (next((n for n in users if isinstance(n.op, kind)), None) for kind in (Read, Assign))
    if len(users) != 2 or read is None or assign is None:
        return None
    gather = next((n for n in _consumers(read) if n.type == "Gather"), None)
    concat = assign.source(0).node
    before = (gather or read).out_port(0)
    if not isinstance(concat.op, Concat) or len(concat.in_ports()) != 2 or concat.source(0) is not before:
        return None
    others = [n for n in (*_consumers(read), *(_consumers(gather) if gather else ())) if n not in (gather, concat)]
    if any(n.type != "ShapeOf" for n in others) or not (gather is None or _gathers_rows(gather)):
        return None
    new = concat.source(1).type.shape
    axis = concat.op.axis % len(new)
    fixed = [n for k, n in enumerate(new) if k not in (0, axis)]
    if axis == 0 or not _is_empty(read, axis) or not all(isinstance(n, int) and n > 0 for n in fixed):
        return None
    stored = read.out_port(0).type.shape
    if len(stored) != len(new) or any(
        a != b for k, (a, b) in enumerate(zip(stored, new, strict=True)) if k not in (0, axis)
    ):
        return None
    rows = None if gather is None else gather.source(1)
    return _GrowingVariable(read, gather, concat, assign, axis, rows)


def _is_empty(read: Node, axis: int) -> bool:
    """True if nothing is kept along an axis at first."""
    if read.in_ports():
        return read.source(0).type.shape[axis] == 0
    shape = read.out_port(0).type.shape
    return isinstance(shape[0], int) and not isinstance(shape[axis], int)


def _consumers(node: Node) -> list[Node]:
    return [p.node for p in node.out_port(0).get_destinations()]


def _gathers_rows(gather: Node) -> bool:
    """True if a Gather takes rows of the first dimension by a list."""
    axis = gather.input(2).value
    batched = getattr(gather.op, "batch_dims", 0)
    return axis is not None and int(axis.reshape(-1)[0]) == 0 and not batched and gather.source(1).type.rank == 1


def _new_sizes(graph: Graph, grown: list[_GrowingVariable]) -> OutPort | None:
    """Return a new node for the batch and the number of new tokens [2], if dimensions of the inputs add up to them."""
    rows = grown[0].rows
    batches: list[Dim] = [g.shape[0] for g in grown] if rows is None else [rows.type.shape[0]]
    counts = [g.shape[g.axis] for g in grown]
    terms = [next(filter(None, (_terms(graph, n) for n in sizes)), None) for sizes in (batches, counts)]
    if None in terms:
        return None
    build = Builder(graph, grown[0].read.origin)
    zero = build.const(0, DType.I64)
    return build.Concat(*(_sum(build, zero, term) for term in filter(None, terms)), axis=0)


def _terms(graph: Graph, size: Dim) -> Terms | None:
    """Return the dimensions of inputs that add up to a size; None if there are none."""
    dim = _dimension(graph, size)
    if dim is not None:
        return [(*dim, 1)]
    if isinstance(size, int) or (affine := normal(size, {})).const:
        return None
    parts = [(_dimension(graph, atom), count) for atom, count in affine.terms.items()]
    terms = [(*dim, count) for dim, count in parts if dim is not None]
    return terms if len(terms) == len(parts) else None


def _sum(build: Builder, zero: OutPort, terms: Terms) -> OutPort:
    """Return a node for a size [1]."""
    ports = list[OutPort]()
    for port, k, count in terms:
        size = build.Gather(build.ShapeOf(port, output_type=DType.I64), build.const([k], DType.I64), zero)
        ports.append(size if count == 1 else build.Multiply(size, count))
    return reduce(build.Add, ports)


def _dimension(graph: Graph, size: Dim) -> tuple[OutPort, int] | None:
    """Return the input, and its dimension, that has a size."""
    for node in graph.parameters:
        shape = node.out_port(0).type.shape
        if size in shape:
            return node.out_port(0), shape.index(size)
    return None


def _is_read_along(x: OutPort, transposed: bool = False) -> bool:
    """True if each product that reads `x`, or a part of it, sums along its last dimension, as scores do over keys.

    `transposed`: the last two dimensions have changed places.
    """
    consumers = [p for p in x.get_destinations() if p.node.type not in ("Assign", "ShapeOf")]
    if len(consumers) != 1:
        return False
    node, idx = consumers[0].node, consumers[0].idx
    if node.type == "ScaledDotProductAttention":
        return idx == 1
    if isinstance(node.op, MatMul):
        return idx == 1 and node.op.transpose_b is not transposed
    if node.type == "VariadicSplit":
        return idx == 0 and all(_is_read_along(part, transposed) for part in node.out_ports().values())
    transposed ^= node.type == "Transpose"
    return node.type in (*VIEWS, "Transpose") and _is_read_along(node.out_port(0), transposed)


def _append(graph: Graph, grown: list[_GrowingVariable], new: OutPort) -> None:
    first, rows = grown[0], grown[0].rows
    build = Builder(graph, first.read.origin)
    more = () if rows is None else (rows,)
    last = [_is_read_along(g.concat.out_port(0)) for g in grown]
    outer = [_elements(g.shape[1 : g.axis]) for g in grown]
    inner = [_elements(g.shape[g.axis + 1 :]) for g in grown]
    sizes = build(
        CacheSizes(
            ids=tuple(g.id for g in grown),
            axes=tuple(g.axis for g in grown),
            runs=tuple(o * i if t else o for o, i, t in zip(outer, inner, last, strict=True)),
            widths=tuple(1 if t else i for i, t in zip(inner, last, strict=True)),
            element_type=first.element_type,
        ),
        new,
        *more,
    )
    room = build(CacheRoom(), sizes)
    for g, along in zip(grown, last, strict=True):
        _shapes(graph, g, new, sizes)
        build = Builder(graph, g.concat.origin)
        appended = build(Append(g.id, g.axis, along), g.new, new, sizes, room, *more)
        dims = tuple(n if isinstance(n, int) and k != g.axis else DYNAMIC for k, n in enumerate(g.shape))
        build.node(AssignCarried(g.id, g.element_type, dims), appended, build.const(True, DType.BOOL))
        g.assign.out_port(0).replace_by(appended)
        graph.remove(g.assign)
        g.concat.out_port(0).get_connection().set_source(appended)
        for node in (g.concat, g.gather, g.read):
            if node is not None:
                graph.remove(node)


def _elements(shape: Shape) -> int:
    return prod(n for n in shape if isinstance(n, int))


def _shapes(graph: Graph, g: _GrowingVariable, new: OutPort, sizes: OutPort) -> None:
    """Replace the shapes of the kept elements."""
    for node in (g.read, g.gather):
        for consumer in _consumers(node) if node is not None else ():
            if consumer.type != "ShapeOf":
                continue
            build = Builder(graph, consumer.origin)
            zero = build.const(0, DType.I64)
            batch = (sizes, SHOWN) if node is g.read else (new, 0)
            taken = {0: batch, g.axis: (sizes, PAST)}
            parts = [
                build.Gather(taken[k][0], build.const([taken[k][1]], DType.I64), zero)
                if k in taken
                else build.const([n], DType.I64)
                for k, n in enumerate(g.shape)
            ]
            shape = build.Concat(*parts, axis=0)
            kind = consumer.out_port(0).type.dtype
            shape = shape if kind is DType.I64 else build.Convert(shape, destination_type=kind)
            consumer.out_port(0).get_connection().set_source(shape)
            graph.remove(consumer)
