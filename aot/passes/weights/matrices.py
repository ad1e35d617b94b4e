"""Matrices of weights: which a graph has, and how they are rounded to bf16, or to 8 or 4 bits with scales of groups.

u4 [rows, groups, 64] ── Convert ── Subtract(zeros) ── Multiply(scales) ── Reshape [rows, columns] ── Convert f32
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.operand import Operand
from aot.ir.topological import producers_first
from aot.ir.types import Array, dtype_of, numpy_dtype
from aot.ir.values.deferred import Deferred, release, value_of
from aot.ir.values.small_weights import RECURRENT
from aot.opset.control.infrastructure import Constant
from aot.opset.deferred_parts import part_of
from aot.opset.elementwise.conversion import LEVELS
from aot.opset.elementwise.quantization import FakeQuantize
from aot.opset.products.matmul import MatMul
from aot.passes.weights.kept_numbers import Numbers
from aot.passes.weights.rounding import Rounded, round_groups
from aot.runtime.abi import DType

Rounding = Callable[[Array, int, int], Rounded]  # of weights [rows, columns] to bits, by groups of a size
DECOMPRESSION = ("Convert", "Subtract", "Multiply", "Reshape", "Transpose")  # between integers and a matrix
SHORT_BITS = 16  # bits of bf16
WIDE_BITS = 8  # bits of embeddings and of the last product, whose errors reach the results at once
PIECE = 1 << 16  # elements that are rounded together: they stay in the cache
LEAST_ROWS = 2  # rows from which on weights are a matrix, not a vector


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of weights, [.., rows, columns], that product, Gather or recurrent layer `node` reads at input `at`.

    `turned`: columns come first in the graph. `bits`: of its elements.
    """

    node: Node
    at: int
    turned: bool
    bits: int

    @property
    def source(self) -> OutPort:
        return self.node.source(self.at)

    @property
    def data(self) -> OutPort:
        """The other operand of a product."""
        return self.node.source(1 - self.at)

    @property
    def name(self) -> str:
        """The name of the constant that holds the elements."""
        port = self.source
        while port.node.constant_data is None and port.node.in_ports():
            port = port.node.source()
        return port.node.name


@dataclass(frozen=True, slots=True)
class SmallWeights:
    """A matrix as it was written. `error`: root mean square error, divided by the elements' root mean square."""

    layer: str
    shape: tuple[int, ...]
    bits: int
    group: int
    error: float

    def __str__(self) -> str:
        rows, columns = self.shape
        groups = f", groups of {self.group:5}" if self.bits < SHORT_BITS else ""
        return f"{self.bits} bits{groups}  error {self.error:.4f}  {rows:6} x {columns:<6} {self.layer}"


def sorted_matrices(graph: Graph, bits: int) -> tuple[list[Matrix], dict[Matrix, SmallWeights]]:
    """Return the matrices that `bits` are wanted for, and, by matrix, those that take no more and stay as they are."""
    ordered = shared_last(list(matrices(graph, bits)))
    numbers_of = {m.source: small_numbers(m.source, m.bits) for m in ordered}
    return ordered, {m: keep(c, m) for m in ordered if (c := numbers_of[m.source]) is not None}


def matrices(graph: Graph, bits: int) -> Iterator[Matrix]:
    """Yield the matrices of a graph that constants alone determine, whatever they are stored as."""
    last = _last_products(graph)
    for node in graph.order():
        positions = {"MatMul": (1,), "Gather": (0,), **RECURRENT}.get(node.type, ())
        for at in positions if node.out_port().type.dtype.is_float else ():
            port = node.source(at)
            fits = port.type.rank == 2 or node.type in RECURRENT
            if not fits or not port.type.is_static or min(port.type.static_shape[-2:]) < LEAST_ROWS:
                continue
            known = node.type == "Gather" and constant_floats(node.source(1), whole=True) is not None  # a constant row
            if not known and (_deferred(port) is not None or constant_floats(port, whole=True) is not None):
                wide = not isinstance(node.op, MatMul) or node.id in last
                rows_first = isinstance(node.op, MatMul) and not node.op.transpose_b
                yield Matrix(node, at, rows_first, max(WIDE_BITS, bits) if wide else bits)


def _last_products(graph: Graph) -> set[int]:
    """Return the products with results that reach no other product."""
    leads: set[int] = set()
    last_products: set[int] = set()
    for node in reversed(graph.order()):
        below = any(p.node.id in leads for out in node.out_ports().values() for p in out.destinations)
        if isinstance(node.op, MatMul):
            leads.add(node.id)
            last_products |= set() if below else {node.id}
        elif below:
            leads.add(node.id)
    return last_products


def shared_last(group: Sequence[Matrix]) -> list[Matrix]:
    """Return the matrices; those that several nodes read have 8 bits if one of them has."""
    wide = {m.source for m in group if m.bits == WIDE_BITS}
    return [replace(m, bits=WIDE_BITS) if m.source in wide else m for m in group]


def small_numbers(port: OutPort, bits: int) -> Node | None:
    """Return the constant of at most `bits` each that a matrix is decompressed from; None for another matrix."""
    node = port.node
    while node.constant_data is None:
        if node.type not in DECOMPRESSION:
            return None
        node = max((s for s in node.sources() if s is not None), key=lambda s: prod(s.type.static_shape)).node
    dtype, data = node.out_port().type.dtype, node.data
    if data is None or (dtype.is_float and dtype not in LEVELS):
        return None
    return node if dtype.bits <= bits or (dtype is DType.U8 and int(data.max(initial=0)) < 2**bits) else None


def keep(node: Node, matrix: Matrix) -> SmallWeights:
    """Leave a matrix unchanged, except for the type of its integers."""
    port, data = node.out_port(), node.data
    assert data is not None
    bits = port.type.dtype.bits
    if port.type.dtype is DType.U8 and int(data.max(initial=0)) < 1 << DType.U4.bits:
        port.replace_by(Builder(node.graph, node.origin).const(data, DType.U4, node.name))
        bits = DType.U4.bits
    columns, *rows = matrix.source.type.static_shape[:: 1 if matrix.turned else -1]
    return SmallWeights(node.name, (prod(rows), columns), bits, data.shape[-1], 0.0)


def round_matrix(graph: Graph, matrix: Matrix, group: int, rounding: Rounding | None = None) -> SmallWeights:
    """Let a node read small weights; a product reads them transposed. `rounding`: replaces the one of least error."""
    node, at, name = matrix.node, matrix.at, matrix.name
    weights = _elements(matrix)
    shape = weights.shape
    rows, columns = prod(shape[:-1]), shape[-1]
    size = group if group and columns % group == 0 and node.type not in RECURRENT else columns
    build = Builder(graph, node.origin)
    if rounding is None and matrix.bits < SHORT_BITS:
        rounded, error = _in_pieces(weights, size, matrix.bits)
    else:
        floats = value_of(weights).astype(np.float32, copy=False).reshape(rows, columns)
        if rounding is None:
            rounded = floats.astype(numpy_dtype(DType.BF16))
            error = _relative(*_squares(rounded.astype(np.float32), floats))
        else:
            rounded = rounding(floats, matrix.bits, size)
            error = _relative(*_squares(rounded.floats.reshape(floats.shape), floats))
    release(weights)
    if isinstance(rounded, Rounded):
        new_weights = small_weights(build, rounded, bits=matrix.bits)
        stored = build.Convert(
            build.Reshape(new_weights, build.const(list(shape), DType.I64)), destination_type=DType.F32
        )
    else:
        stored = build.const(rounded.reshape(shape), DType.BF16)
    node.in_port(at).connect(build.Convert(stored, destination_type=node.out_port().type.dtype))
    if isinstance(node.op, MatMul):
        node.op = replace(node.op, transpose_b=True)
    return SmallWeights(name, (rows, columns), matrix.bits, size, error)


def _elements(matrix: Matrix) -> Array | Deferred:
    """Return the elements of a matrix, [.., rows, columns]; deferred ones can be made in parts."""
    elements = _deferred(matrix.source)
    if isinstance(elements, Deferred) and not matrix.turned and len(elements.shape) == 2:
        return elements if part_of(elements, 0, 0, 1) is not None else elements.array()
    weights = constant_floats(matrix.source, whole=True)
    assert weights is not None, "matrices have values"
    return np.ascontiguousarray(weights.T if matrix.turned else weights, np.float32)


def _in_pieces(weights: Array | Deferred, size: int, bits: int) -> tuple[Rounded, float]:
    """Return weights rounded some rows at a time, and their error; `size`: elements of a group."""
    flat = weights if isinstance(weights, Deferred) else weights.reshape(-1, weights.shape[-1])
    rows, columns = flat.shape
    kept, scales, zeros = Numbers((rows, columns // size, size), bits), list[Array](), list[Array]()
    sums = np.zeros(2)
    each = max(PIECE // columns, 1)
    for n in range(0, rows, each):
        part = part_of(flat, 0, n, min(n + each, rows))
        assert part is not None, "matrices are cut by rows"
        some = np.ascontiguousarray(value_of(part), np.float32)
        rounded = round_groups(some.reshape(len(some), -1, size), bits)
        assert rounded.zeros is not None
        kept.add(value_of(rounded.integers))
        scales.append(rounded.scales)
        zeros.append(rounded.zeros)
        sums += _squares(rounded.floats.reshape(some.shape), some)
    return Rounded(kept.constant(), np.concatenate(scales), np.concatenate(zeros)), _relative(*sums)


def _squares(rounded: Array, exact: Array) -> tuple[float, float]:
    """Return the sums of the squares of errors, and of elements."""
    errors, elements = (float(np.square(x).sum(dtype=np.float64)) for x in (rounded - exact, exact))
    return errors, elements


def _relative(errors: float, elements: float) -> float:
    return float(np.sqrt(errors / (elements or 1.0)))


def _deferred(port: OutPort) -> Array | Deferred | None:
    """Return the value of a port that constants alone determine by operations that decompress."""
    node = port.node
    if node.constant_data is not None or node.type not in DECOMPRESSION or not port.type.is_static:
        return node.constant_data
    sources = [s for s in node.sources() if s is not None]
    deferred_inputs = [x for s in sources if (x := _deferred(s)) is not None]
    if len(deferred_inputs) < len(node.in_ports()):
        return None
    return Deferred(node.op, tuple(deferred_inputs), tuple(s.type for s in sources), port.type)


def constant_floats(port: OutPort, *, whole: bool = False) -> Array | None:
    """Return the value of a port that constants alone determine; None for others, and for random ones.

    `whole`: also of constants that are integers, as compressed weights are, or pass a FakeQuantize.
    """
    nodes: list[Node] = []
    for node in producers_first([port.node], lambda n: (s.node for s in n.sources() if s is not None), _name):
        if not node.op.pure or node.regions or (not node.in_ports() and node.constant_data is None):
            return None
        nodes.append(node)
    constants = [n for n in nodes if isinstance(n.op, Constant)]
    numbers = max(constants, key=lambda n: prod(n.out_port().type.static_shape)).out_port().type.dtype
    if not whole and (not numbers.is_float or any(isinstance(n.op, FakeQuantize) for n in nodes)):
        return None
    values: dict[OutPort, Array] = {}
    for node in nodes:
        operands = [None if s is None else Operand(s.type, values[s]) for s in node.sources()]
        outputs = (node.data,) if node.data is not None else node.op.fold(*operands)
        if outputs is None:
            return None
        values |= zip(node.out_ports().values(), outputs, strict=True)
    return values[port]


def _name(node: Node) -> str:
    return node.name


def small_weights(build: Builder, weights: Rounded, name: str = "", bits: int = 8) -> OutPort:
    """Return weights as IR decompresses them: Convert, Subtract where there are zero points, Multiply."""
    integers = weights.integers
    stored_type = (
        integers.type.dtype if isinstance(integers, Deferred) else dtype_of(integers) if bits == WIDE_BITS else DType.U4
    )
    floats = DType.F32 if weights.scales.dtype == np.float32 else DType.F16
    port = build.Convert(build.const(integers, stored_type, name), destination_type=floats)
    if weights.zeros is not None:
        zeros = build.Convert(build.const(weights.zeros, stored_type), destination_type=floats)
        port = build.Subtract(port, zeros)
    return build.Multiply(port, build.const(weights.scales, floats))
