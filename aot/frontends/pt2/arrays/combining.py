"""Tensors put together, taken apart and turned: forms that are made of simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as subsets
from itertools import combinations_with_replacement

import numpy as np

from aot.frontends.pt2.arrays.generators import diag_embed, diagonal
from aot.frontends.pt2.arrays.indexing import nonzero
from aot.frontends.pt2.arrays.movement import (
    LAST,
    cat,
    chunk,
    flip,
    sliced,
    split,
    split_with_sizes,
    tensor_split,
    transposed,
)
from aot.frontends.pt2.arrays.shape import broadcast_tensors, view
from aot.frontends.pt2.arrays.sorting import ranked, sort
from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType

aten("unsafe_chunk.default")(chunk)
aten("unsafe_split.Tensor")(split)
aten("unsafe_split_with_sizes.default")(split_with_sizes)


@aten("view_copy.default")
def view_copy(node: AtenNode, x: OutPort, size: Sequence[Size]) -> OutPort:
    return view(node, x, size)


@aten("resize.default")
def resize(node: AtenNode, x: OutPort, size: Sequence[Size]) -> OutPort:
    """The first elements, as many as the new shape has."""
    build = node.build
    sizes = node.vector(size)
    count = build.ReduceProd(sizes, node.list([0]), keep_dims=True)
    flat = build.Reshape(x, node.list([-1]))
    known = [int(n.value.reshape(-1)[0]) for n in (count, node.dims(flat, [0])) if n.value is not None]
    node.refuse(len(known) < 2 or known[0] > known[1], "a larger tensor than before is not supported")
    return build.Reshape(build.Slice(flat, node.list([0]), count, node.list([1])), sizes)


@aten("atleast_1d.default", "atleast_2d.default", "atleast_3d.default")
def atleast(node: AtenNode, x: OutPort) -> OutPort:
    """Axes of size 1 are added: in front, the third one at the end."""
    rank, target_rank = x.type.rank, int(node.kind[len("atleast_")])
    if rank >= target_rank:
        return x
    shown = {0: [0, 1, 2], 1: [0, 2], 2: [2]}[rank] if target_rank == 3 else range(target_rank - rank)
    return node.build.Unsqueeze(x, node.list(shown))


@aten(*(f"{name}.{form}" for name in ("hsplit", "vsplit", "dsplit") for form in ("int", "array")))
def split_along(node: AtenNode, x: OutPort, sections: int = 0, indices: Sequence[int] = ()) -> tuple[OutPort, ...]:
    axis = {"h": 1 if x.type.rank > 1 else 0, "v": 0, "d": 2}[node.kind[0]]
    return tensor_split(node, x, sections, indices, axis)


@aten("fliplr.default", "flipud.default")
def flip_side(node: AtenNode, x: OutPort) -> OutPort:
    return flip(node, x, [1 if node.kind.startswith("fliplr") else 0])


@aten("rot90.default")
def rot90(node: AtenNode, x: OutPort, k: int = 1, dims: Sequence[int] = (0, 1)) -> OutPort:
    """A plane turned by k quarters, from its first axis to its second."""
    a, b = node.axes(dims, x.type.rank)
    order = list(range(x.type.rank))
    order[a], order[b] = b, a
    match k % 4:
        case 0:
            return x
        case 1:
            return transposed(node, flip(node, x, [b]), order)
        case 2:
            return flip(node, x, [a, b])
        case _:
            return flip(node, transposed(node, x, order), [b])


@aten("block_diag.default")
def block_diag(node: AtenNode, tensors: Sequence[OutPort]) -> OutPort:
    """Matrices along the diagonal of one that is 0 elsewhere."""
    build = node.build
    blocks = [build.Reshape(t, node.list([1, -1])) if t.type.rank < 2 else t for t in node.promoted(*tensors)]
    widths = [node.dims(b, [1]) for b in blocks]
    rows: list[OutPort] = []
    for i, block in enumerate(blocks):
        before, behind = (_total(node, part) for part in (widths[:i], widths[i + 1 :]))
        pads = (build.Concat(node.list([0]), side, axis=0) for side in (before, behind))
        rows.append(build.Pad(block, *pads, node.like(0, block)))
    return build.Concat(*rows, axis=0)


def _total(node: AtenNode, sizes: Sequence[OutPort]) -> OutPort:
    return node.chain("Add", [node.list([0]), *sizes])


@aten("cartesian_prod.default")
def cartesian_prod(node: AtenNode, tensors: Sequence[OutPort]) -> OutPort:
    """All tuples of elements, as rows."""
    build, count = node.build, len(tensors)
    if count == 1:
        return tensors[0]
    wide = [build.Reshape(t, node.list([-1 if k == i else 1 for k in range(count)])) for i, t in enumerate(tensors)]
    columns = [build.Reshape(t, node.list([-1, 1])) for t in broadcast_tensors(node, wide)]
    return cat(node, columns, 1)


@aten("combinations.default")
def combinations(node: AtenNode, x: OutPort, r: int = 2, with_replacement: bool = False) -> OutPort:
    """All selections of r elements, as rows."""
    n = node.extent(x, 0, "the number of elements")
    check_table(node.kind, *[n] * r)
    rows = list((combinations_with_replacement if with_replacement else subsets)(range(n), r))
    positions = node.build.const(np.array(rows, np.int64).reshape(-1, r), DType.I64)
    return node.build.Gather(x, positions, node.scalar(0))


@aten("sum_to_size.default")
def sum_to_size(node: AtenNode, x: OutPort, size: Sequence[int]) -> OutPort:
    """The sum over axes that `size` lacks, or where it is 1."""
    build, lead = node.build, x.type.rank - len(size)
    x = node.cast(x, node.dtype())  # booleans are counted
    axes = [k + lead for k, n in enumerate(size) if n == 1 and x.shape[k + lead] != 1]
    x = build.ReduceSum(x, node.list(axes), keep_dims=True) if axes else x
    return build.ReduceSum(x, node.list(range(lead))) if lead else x


@aten("isin.Tensor_Tensor", "isin.Tensor_Scalar")
def isin(
    node: AtenNode,
    x: OutPort,
    test_elements: OutPort | None = None,
    test_element: Size | float | None = None,
    assume_unique: bool = False,
    invert: bool = False,
) -> OutPort:
    build = node.build
    other = node.present(test_elements if test_elements is not None else test_element, "test_elements")
    a, b = node.promoted(x, other)
    same = build.Equal(build.Unsqueeze(a, node.list([x.type.rank])), build.Reshape(b, node.list([-1])))
    port = build.ReduceLogicalOr(same, node.list([x.type.rank]))
    return build.LogicalNot(port) if invert else port


@aten("_unique2.default", "_unique.default", "unique_dim.default")
def unique(
    node: AtenNode,
    x: OutPort,
    dim: int | None = None,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[OutPort, ...]:
    """The distinct elements or slices in order, the place of each element among them, and how often each occurs."""
    if dim is None and x.type.dtype.is_float:
        return _unique_floats(node, x)
    axis = list[OutPort]() if dim is None else [node.scalar(node.axis(dim, x.type.rank))]
    unique_node = node.build.Unique(x, *axis, outputs=4).node
    values, _, inverse, counts = unique_node.out_ports().values()
    if dim is None:
        inverse = node.build.Reshape(inverse, node.dims(x, range(x.type.rank)))
    return (values, inverse, counts)[: len(node.outputs)]


def _unique_floats(node: AtenNode, x: OutPort) -> tuple[OutPort, ...]:
    """Return the runs of the sorted elements: each NaN is a run of its own."""
    build, first = node.build, node.list([-1])
    flat = build.Reshape(x, first)
    order, positions = ranked(node, flat, node.size(flat, 0), 0, False)
    values, number, counts = _runs(node, order, 0)
    inverse = build.ScatterElementsUpdate(positions, positions, number, node.scalar(0))
    return (values, build.Reshape(inverse, node.dims(x, range(x.type.rank))), counts)[: len(node.outputs)]


@aten("unique_consecutive.default")
def unique_consecutive(
    node: AtenNode, x: OutPort, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[OutPort, ...]:
    """Elements that differ from the one before them, the number of their run for all, and the lengths of runs."""
    if dim is not None:
        return _runs(node, x, node.axis(dim, x.type.rank))[: len(node.outputs)]
    values, inverse, counts = _runs(node, node.build.Reshape(x, node.list([-1])), 0)
    return (values, node.build.Reshape(inverse, node.dims(x, range(x.type.rank))), counts)[: len(node.outputs)]


def _runs(node: AtenNode, rows: OutPort, axis: int) -> tuple[OutPort, OutPort, OutPort]:
    """Return the first slices of runs of equal ones along an axis, the number of the run of each, and lengths."""
    build, along, one = node.build, node.scalar(axis), node.scalar(1)
    position = build.Range(node.scalar(0), node.size(rows, axis), one)
    before = build.Gather(rows, build.Maximum(build.Subtract(position, one), node.scalar(0)), along)
    differ = build.NotEqual(rows, before)
    others = node.list([k for k in range(rows.type.rank) if k != axis])
    differ = build.ReduceLogicalOr(differ, others) if rows.type.rank > 1 else differ
    begins = build.LogicalOr(differ, build.Equal(position, node.scalar(0)))
    starts = build.Reshape(build.NonZero(begins, output_type=DType.I64), node.list([-1]))
    number = build.Subtract(build.CumSum(node.cast(begins, DType.I64), node.scalar(0)), one)
    ends = build.Concat(sliced(node, starts, 0, 1, LAST), node.dims(rows, [axis]), axis=0)
    return build.Gather(rows, starts, along), number, build.Subtract(ends, starts)


@aten("argwhere.default")
def argwhere(node: AtenNode, x: OutPort) -> OutPort:
    return nonzero(node, x)


@aten("diagflat.default")
def diagflat(node: AtenNode, x: OutPort, offset: int = 0) -> OutPort:
    return diag_embed(node, node.build.Reshape(x, node.list([-1])), offset)


@aten("linalg_diagonal.default")
def linalg_diagonal(node: AtenNode, x: OutPort, offset: int = 0, dim1: int = -2, dim2: int = -1) -> OutPort:
    return diagonal(node, x, offset, dim1, dim2)


@aten("msort.default")
def msort(node: AtenNode, x: OutPort) -> OutPort:
    return sort(node, x, 0)[0]


@aten("one_hot.default")
def one_hot(node: AtenNode, x: OutPort, num_classes: int = -1) -> OutPort:
    """1 at the place of each number; the largest number is that of the last class unless classes are counted."""
    build = node.build
    count = node.scalar(num_classes)
    if num_classes < 0:
        flat = build.Reshape(x, node.list([-1]))
        count = build.Add(build.ReduceMax(flat, node.list([0])), node.scalar(1))
    return build.OneHot(x, count, node.scalar(1), node.scalar(0), axis=-1)


@aten("nonzero_static.default")
def nonzero_static(node: AtenNode, x: OutPort, size: Size, fill_value: int = -1) -> OutPort:
    """The first rows of places, filled up."""
    build = node.build
    port = nonzero(node, x)
    more = build.Broadcast(node.scalar(fill_value), build.Concat(node.vector([size]), node.dims(port, [1]), axis=0))
    return sliced(node, build.Concat(port, more, axis=0), 0, 0, size)
