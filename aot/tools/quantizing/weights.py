"""Weights of language models in 8 or 4 bits: `aot quantize m.xml --weights int4 --group 64 -o m_int4.xml`.

u4 [rows, groups, 64] ── Convert ── Subtract(zeros) ── Multiply(scales) ── Reshape [rows, columns] ── Convert f32

Activations stay in f32. Scales are those of least squared error; with data, columns of a product's weights make up for
the errors of those before them (`compensated.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Unpack

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import Array
from aot.ir.values.small_weights import RECURRENT
from aot.opset.elementwise.conversion import LEVELS
from aot.opset.products.matmul import MatMul
from aot.options import CompileOptions, Event
from aot.options.keywords import with_keywords
from aot.options.typed import CompileKeywords
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.tools.convert import convert_model
from aot.tools.quantizing.changes import small_weights
from aot.tools.quantizing.compensated import Compensation
from aot.tools.quantizing.moments import batches, second_moments
from aot.tools.quantizing.output import check_xml, here, without_interface
from aot.tools.quantizing.products import held_floats
from aot.tools.quantizing.rounding import round_groups

DECOMPRESSION = ("Convert", "Subtract", "Multiply", "Reshape", "Transpose")  # between integers and a matrix
WIDE = 8  # bits of embeddings and of the last product, whose errors reach the results at once
LEAST_ROWS = 2  # of a matrix; others are vectors


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
        while port.node.held is None and port.node.in_ports():
            port = port.node.source()
        return port.node.name


@dataclass(frozen=True, slots=True)
class SmallWeights:
    """A matrix as it was written: `error` is the root of its mean square error over that of its elements."""

    layer: str
    shape: tuple[int, ...]
    bits: int
    group: int
    error: float

    def __str__(self) -> str:
        rows, columns = self.shape
        return (
            f"{self.bits} bits, groups of {self.group:5}  error {self.error:.4f}  {rows:6} x {columns:<6} {self.layer}"
        )


def quantize_weights(
    model: str | Path,
    output: str | Path,
    options: CompileOptions | None = None,
    *,
    bits: int = 4,
    group: int = 64,
    data: Sequence[Mapping[str, Array] | Array] = (),
    **keywords: Unpack[CompileKeywords],
) -> list[SmallWeights]:
    """Write a model as OpenVINO IR whose matrices of weights are integers of 4 or 8 bits: an .xml and a .bin.

    Each `group` elements of a row have a scale and a zero point (0: the whole row; also where rows are no multiple of
    `group`). Embeddings, the last product and recurrent layers have 8 bits, the latter with a scale for each row.
    `data`: samples, as for `quantize_model`, by which columns make up for the errors of others; of a stateful decoder
    `input_ids` are enough. Matrices that lie in so few bits already stay as they are. UsageError for other bits, and
    for a network without matrices of constant weights.
    """
    if bits not in (4, 8):
        raise UsageError(f"quantize: weights must be of 4 or 8 bits, got {bits}")
    if group < 0 or group % 2:
        raise UsageError(f"quantize: a group must be an even number of weights, or 0 for a row, got {group}")
    path, source = Path(output), Path(model)
    check_xml(path, source)
    asked = with_keywords(options, keywords)
    given = here(asked)
    graph = stages(source, given).converted
    found = list(matrices(graph, bits))
    if not found:
        raise UsageError(f"{source.name}: quantize: a network with matrices of constant weights, got none")
    wanted = _shared_last(found)
    held = {m.source: small_numbers(m.source, m.bits) for m in wanted}
    rows = {m: _keep(c, m) for m in wanted if (c := held[m.source]) is not None}
    rounded = [m for m in wanted if m not in rows]
    gathered = {m.name for m in rounded if not isinstance(m.node.op, MatMul)}  # Gather's: the file has them once
    measured = [m for m in rounded if m.name not in gathered] if data else []
    rows |= {m: _replace(graph, m, group) for m in rounded if m not in measured}
    for matrix, row in _replace_by_data(graph, measured, group, without_interface(given), data, asked.on_event):
        rows[matrix] = row
        if asked.on_event is not None:
            asked.on_event("round", len(rows), len(wanted))
    graph.rt_info |= {"quantised": {"input_model": source.name, "bits": str(bits), "group": str(group)}}
    convert_model(graph, path)
    return [rows[m] for m in wanted]


def matrices(graph: Graph, bits: int) -> Iterator[Matrix]:
    """Yield the matrices of a graph that constants alone determine, whatever they are stored as."""
    last = _last_products(graph)
    for node in graph.order():
        places = {"MatMul": (1,), "Gather": (0,), **RECURRENT}.get(node.type, ())
        for at in places if node.out_port().type.dtype.is_float else ():
            port = node.source(at)
            fits = port.type.rank == 2 or node.type in RECURRENT
            if not fits or not port.type.is_static or min(port.type.static_shape[-2:]) < LEAST_ROWS:
                continue
            known = node.type == "Gather" and held_floats(node.source(1), whole=True) is not None  # a constant row
            if not known and held_floats(port, whole=True) is not None:
                wide = not isinstance(node.op, MatMul) or node.id in last
                turned = isinstance(node.op, MatMul) and not node.op.transpose_b
                yield Matrix(node, at, turned, WIDE if wide else bits)


def _last_products(graph: Graph) -> set[int]:
    """Return the products whose results reach no other product."""
    leads: set[int] = set()
    found: set[int] = set()
    for node in reversed(graph.order()):
        below = any(p.node.id in leads for out in node.out_ports().values() for p in out.destinations)
        if isinstance(node.op, MatMul):
            leads.add(node.id)
            found |= set() if below else {node.id}
        elif below:
            leads.add(node.id)
    return found


def _shared_last(found: Sequence[Matrix]) -> list[Matrix]:
    """Return the matrices; those that several nodes read have 8 bits if one of them has."""
    wide = {m.source for m in found if m.bits == WIDE}
    return [replace(m, bits=WIDE) if m.source in wide else m for m in found]


def small_numbers(port: OutPort, bits: int) -> Node | None:
    """Return the constant of at most `bits` each that a matrix is decompressed from; None for another matrix."""
    node = port.node
    while node.held is None:
        if node.type not in DECOMPRESSION:
            return None
        node = max((s for s in node.sources() if s is not None), key=lambda s: prod(s.type.static_shape)).node
    dtype, data = node.out_port().type.dtype, node.data
    if data is None or (dtype.is_float and dtype not in LEVELS):
        return None
    return node if dtype.bits <= bits or (dtype is DType.U8 and int(data.max(initial=0)) < 2**bits) else None


def _keep(held: Node, matrix: Matrix) -> SmallWeights:
    """Leave a matrix as it is, but for the room that its integers take."""
    port, data = held.out_port(), held.data
    assert data is not None
    if matrix.bits == 4 and port.type.dtype is DType.U8:
        port.replace_by(Builder(held.graph, held.origin).const(data, DType.U4, held.name))
    columns, *rows = matrix.source.type.static_shape[:: 1 if matrix.turned else -1]
    bits = matrix.bits if port.type.dtype is DType.U8 else port.type.dtype.bits
    return SmallWeights(held.name, (prod(rows), columns), bits, data.shape[-1], 0.0)


def _replace_by_data(
    graph: Graph,
    found: Sequence[Matrix],
    group: int,
    options: CompileOptions,
    data: Sequence[Mapping[str, Array] | Array],
    observe: Event | None,
) -> Iterator[tuple[Matrix, SmallWeights]]:
    """Let products read small weights, those of each batch with the data that the batches before leave."""
    readers: dict[OutPort, list[Matrix]] = {}
    for matrix in found:
        readers.setdefault(matrix.data, []).append(matrix)
    for ports in batches(readers):
        for port, moments in zip(ports, second_moments(graph, ports, options, data, observe), strict=True):
            compensation = Compensation(moments)
            yield from ((m, _replace(graph, m, group, compensation)) for m in readers[port])


def _replace(graph: Graph, matrix: Matrix, group: int, compensation: Compensation | None = None) -> SmallWeights:
    """Let a node read small weights; a product reads them transposed. `compensation`: where its data are known."""
    node, at, name = matrix.node, matrix.at, matrix.name
    weights = held_floats(matrix.source, whole=True)
    assert weights is not None, "matrices have values"
    weights = np.ascontiguousarray(weights.T if matrix.turned else weights, np.float32)
    shape, weights = weights.shape, weights.reshape(-1, weights.shape[-1])
    rows, columns = weights.shape
    size = group if group and columns % group == 0 and node.type not in RECURRENT else columns
    grouped = weights.reshape(rows, -1, size)
    if compensation is None:
        rounded = round_groups(grouped, matrix.bits)
    else:
        rounded = compensation.round(weights, matrix.bits, size)
    build = Builder(graph, node.origin)
    whole = small_weights(build, rounded, bits=matrix.bits)
    made = build.Convert(build.Reshape(whole, build.const(list(shape), DType.I64)), destination_type=DType.F32)
    node.in_port(at).connect(build.Convert(made, destination_type=node.out_port().type.dtype))
    if isinstance(node.op, MatMul):
        node.op = replace(node.op, transpose_b=True)
    error = np.sqrt(np.square(rounded.floats - grouped).mean() / (np.square(weights).mean() or 1.0))
    return SmallWeights(name, (rows, columns), matrix.bits, size, float(error))
