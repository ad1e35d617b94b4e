"""Tensors that are made of numbers: constants, ranges, triangles, diagonals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.pt2.registry import AtenNode, Number, Size, aten
from aot.ir.graph import OutPort
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType

CONSTANTS = {"zeros": 0, "ones": 1, "empty": 0}
FACTORIES = ("zeros.default", "ones.default", "empty.memory_format", "full.default")
LIKES = ("zeros_like.default", "ones_like.default", "empty_like.default", "full_like.default")
TENSOR_ENDS = ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
NEW = ("new_zeros.default", "new_ones.default", "new_empty.default", "new_full.default")


def value_of(node: AtenNode, fill_value: OutPort | Number | None) -> OutPort | Number:
    """Return the number that a tensor is filled with; `empty` tensors hold 0."""
    name = node.kind.partition(".")[0].removeprefix("new_").removesuffix("_like")
    return CONSTANTS.get(name, 0) if fill_value is None else fill_value


@aten(*FACTORIES)
def filled(
    node: AtenNode, size: Sequence[Size], fill_value: OutPort | Number | None = None, dtype: DType | None = None
) -> OutPort:
    return node.build.Broadcast(node.port(value_of(node, fill_value), node.dtype()), node.vector(size))


@aten("empty_strided.default", "new_empty_strided.default", "empty_permuted.default")
def empty_strided(
    node: AtenNode,
    x: OutPort | Sequence[Size],
    size: Sequence[Size] = (),
    stride: Sequence[Size] = (),
    physical_layout: Sequence[int] = (),
    dtype: DType | None = None,
) -> OutPort:
    shape = size if isinstance(x, OutPort) else x
    return node.build.Broadcast(node.port(0, node.dtype()), node.vector(shape))


@aten(*NEW)
def new_filled(
    node: AtenNode,
    x: OutPort,
    size: Sequence[Size],
    fill_value: OutPort | Number | None = None,
    dtype: DType | None = None,
) -> OutPort:
    return filled(node, size, fill_value)


@aten(*LIKES, "fill.Scalar", "fill.Tensor", "zero.default")
def filled_like(
    node: AtenNode,
    x: OutPort,
    fill_value: OutPort | Number | None = None,
    value: OutPort | Number | None = None,
    dtype: DType | None = None,
) -> OutPort:
    number = value_of(node, fill_value if value is None else value)
    return node.build.Broadcast(node.port(number, dtype or node_type(node, x)), node.dims(x, range(x.type.rank)))


def node_type(node: AtenNode, x: OutPort) -> DType:
    """Return the element type of the output; the type of `x` for operations that no file has."""
    types = node.attrs.get("given", ())
    return x.type.dtype if not types or types[0] is None else node.dtype()


@aten("scalar_tensor.default", "prims::scalar_tensor.default")
def scalar_tensor(node: AtenNode, s: Number, dtype: DType | None = None) -> OutPort:
    return node.port(s, node.dtype())


@aten("arange.default", "arange.start", "arange.start_step")
def arange(
    node: AtenNode, start: Number = 0, end: Number | None = None, step: Number = 1, dtype: DType | None = None
) -> OutPort:
    """start, start + step, ... before end; with one number that is the end."""
    if end is None:
        start, end = 0, start
    wide = DType.F64 if any(isinstance(v, float) for v in (start, end, step)) else DType.I64
    bounds = [node.port(v, wide) for v in (start, end, step)]
    return node.build.Range(*bounds, output_type=wide)


@aten("linspace.default", "logspace.default")
@aten(*(f"{name}.{form}" for name in ("linspace", "logspace") for form in TENSOR_ENDS))
def linspace(
    node: AtenNode,
    start: OutPort | Number,
    end: OutPort | Number,
    steps: int,
    base: float = 10.0,
    dtype: DType | None = None,
) -> OutPort:
    """Equal steps between two numbers; `base` to their power in `logspace`."""
    check_table(node.kind, steps)
    build, wide = node.build, DType.F64
    first, last = node.port(start, wide), node.port(end, wide)
    share = np.arange(steps) / max(steps - 1, 1)
    parts = [build.Multiply(first, build.const(1 - share, wide)), build.Multiply(last, build.const(share, wide))]
    port = build.Add(*parts)
    return build.Power(build.const(base, wide), port) if node.kind.startswith("logspace") else port


@aten("eye.default", "eye.m")
def eye(node: AtenNode, n: Size, m: Size | None = None, dtype: DType | None = None) -> OutPort:
    rows, columns = node.port(n), node.port(n if m is None else m)
    return node.cast(node.build.Eye(rows, columns, node.scalar(0), output_type=DType.I32), node.dtype())


def triangle(node: AtenNode, x: OutPort, diagonal: Size, upper: bool) -> OutPort:
    """True at the places [row, column] of a triangle of the last two axes."""
    build = node.build
    rows, columns = (build.Range(node.scalar(0), node.size(x, x.type.rank - 2 + k), node.scalar(1)) for k in range(2))
    gap = build.Subtract(columns, build.Unsqueeze(rows, node.list([1])))
    return (build.GreaterEqual if upper else build.LessEqual)(gap, node.port(diagonal))


@aten("tril.default", "triu.default")
def tri(node: AtenNode, x: OutPort, diagonal: Size = 0) -> OutPort:
    inside = triangle(node, x, diagonal, node.kind.startswith("triu"))
    return node.build.Select(inside, x, node.like(0, x))


@aten("tril_indices.default", "triu_indices.default")
def tri_indices(node: AtenNode, row: int, col: int, offset: int = 0, dtype: DType | None = None) -> OutPort:
    check_table(node.kind, 2, row, col)
    indices = (np.tril_indices if node.kind.startswith("tril") else np.triu_indices)(row, offset, col)
    return node.build.const(np.stack(indices), node.dtype())


@aten("diagonal.default", "diagonal_copy.default", "diag.default")
def diagonal(node: AtenNode, x: OutPort, offset: int = 0, dim1: int = 0, dim2: int = 1, diagonal: int = 0) -> OutPort:
    """The diagonal of two axes as the last axis; `diag` of a vector is a matrix."""
    build, rank = node.build, x.type.rank
    if node.kind.startswith("diag.") and rank == 1:
        return diag_embed(node, x, diagonal)
    offset, (a, b) = offset + diagonal, node.axes([dim1, dim2], rank)
    rest = [k for k in range(rank) if k not in (a, b)]
    transposed = build.Transpose(x, node.list([*rest, a, b]))
    rows, columns = node.extent(x, a, "the size of a diagonal"), node.extent(x, b, "the size of a diagonal")
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    first = max(offset, 0) - min(offset, 0) * columns
    positions = node.list([first + i * (columns + 1) for i in range(count)])
    flat = build.Reshape(transposed, build.Concat(node.dims(transposed, range(rank - 2)), node.list([-1]), axis=0))
    return build.Gather(flat, positions, node.scalar(rank - 2))


@aten("diag_embed.default")
def diag_embed(node: AtenNode, x: OutPort, offset: int = 0, dim1: int = -2, dim2: int = -1) -> OutPort:
    """The last axis as the diagonal of two new ones."""
    build, rank = node.build, x.type.rank
    size = node.extent(x, rank - 1, "the size of a diagonal")
    wide = size + abs(offset)
    shift = node.list([abs(offset) if offset < 0 else 0])
    inside = np.eye(size, dtype=np.bool_)
    marks = build.Pad(
        build.Select(build.const(inside, DType.BOOL), build.Unsqueeze(x, node.list([rank])), node.like(0, x)),
        build.Concat(node.list([0] * (rank - 1)), shift, node.list([max(offset, 0)]), axis=0),
        node.list([*[0] * (rank - 1), wide - size - (-offset if offset < 0 else 0), wide - size - max(offset, 0)]),
        node.like(0, x),
    )
    a, b = node.axes([dim1, dim2], rank + 1)
    rest = iter(range(rank - 1))
    order = [rank - 1 if k == a else rank if k == b else next(rest) for k in range(rank + 1)]
    return build.Transpose(marks, node.list(order))


@aten("diagonal_scatter.default")
def diagonal_scatter(
    node: AtenNode, x: OutPort, src: OutPort, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> OutPort:
    """`x` with another diagonal."""
    build, rank = node.build, x.type.rank
    a, b = node.axes([dim1, dim2], rank)
    rest = [k for k in range(rank) if k not in (a, b)]
    order = [*rest, a, b]
    rows, columns = (node.extent(x, k, "the size of a diagonal") for k in (a, b))
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    positions = [[i - min(offset, 0), i + max(offset, 0)] for i in range(count)]
    front = build.Transpose(x, node.list([a, b, *rest]))
    updates = build.Transpose(node.cast(src, x.type.dtype), node.list([rank - 2, *range(rank - 2)]))
    port = build.ScatterNDUpdate(front, build.const(np.array(positions).reshape(-1, 2), DType.I64), updates)
    back = build.Transpose(port, node.list([*range(2, rank), 0, 1]))
    return build.Transpose(back, node.list([order.index(k) for k in range(rank)]))
