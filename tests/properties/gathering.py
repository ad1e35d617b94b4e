"""Reductions, gathering, scattering."""

from __future__ import annotations

import numpy as np

from aot.ir.op import Op
from aot.opset.movement.gather import (
    Gather,
    Gather_1,
    Gather_7,
    GatherElements,
    GatherND,
    GatherND_5,
    GatherTree,
    NegativeIndices,
    OneHot,
    OneHot_1,
)
from aot.opset.movement.scatter import Combination, ScatterElementsUpdate, ScatterNDUpdate, ScatterUpdate, SliceScatter
from aot.opset.movement.slicing import python_slice
from aot.opset.reduction.bucketing import Bucketize, SearchSorted
from aot.opset.reduction.reduction import (
    ReduceL1,
    ReduceL2,
    ReduceLogicalAnd,
    ReduceLogicalOr,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from aot.opset.reduction.scan import CumSum
from aot.opset.reduction.segments import Fill, SegmentMax
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, LOOSE
from tests.properties.drawing import ANY, INDICES, NUMBERS, Draw, Trial, listed

SUMS: tuple[type[Op], ...] = (ReduceSum, ReduceMean, ReduceProd, ReduceL1, ReduceL2, ReduceMax, ReduceMin)
REDUCTIONS = (Combination.SUM, Combination.PROD, Combination.MIN, Combination.MAX, Combination.MEAN, Combination.NONE)


def reduction(d: Draw) -> Trial:
    shape = d.shape()
    axes = listed(d.pick(INDICES), d.signed(d.subset(len(shape)), len(shape)))
    if axes.size == 1 and d.flag():
        axes = axes.reshape(())
    kind = d.pick([*SUMS, ReduceLogicalAnd, ReduceLogicalOr])
    dtype = DType.BOOL if kind in (ReduceLogicalAnd, ReduceLogicalOr) else d.pick(NUMBERS)
    if 0 in shape and kind in (ReduceMax, ReduceMin):
        shape = tuple(max(n, 1) for n in shape)
    data = d.array(dtype, shape, *((0.5, 1.5) if kind is ReduceProd and dtype.is_float else (-4, 4)))
    return Trial(kind(d.flag()), [data, axes], frozenset({1}), LOOSE)  # type: ignore[call-arg]


def cumulative(d: Draw) -> Trial:
    shape = d.shape((1, 5))
    axis = np.array(d.axis(len(shape)), d.pick(["i4", "i8"]))
    return Trial(CumSum(d.flag(), d.flag()), [d.array(d.pick(NUMBERS), shape), axis], frozenset({1}), LOOSE)


def gather(d: Draw) -> Trial:
    """`Gather` of all versions; indices may point outside, which gives zeros, where they are not negative."""
    kind = d.pick([Gather, Gather_7, Gather_1])
    data = d.shape((1, 4), (1, 4))
    shared = 0 if kind is Gather_1 else d.integer(0, len(data) - 1)
    axis = d.integer(shared, len(data) - 1)
    rest = d.shape((0, 2))
    low = -data[axis] if kind is Gather else 0
    indices = d.whole(d.pick(INDICES), (*data[:shared], *rest), low, data[axis] - 1)
    along = listed(DType.I64, (axis - len(data) if d.flag() else axis,)).reshape(d.pick([(), (1,)]))
    batch = shared - indices.ndim if kind is not Gather_1 and shared and d.flag() and indices.ndim else shared
    op = Gather_1() if kind is Gather_1 else kind(batch)
    return Trial(op, [d.array(d.pick(ANY), data), indices, along], frozenset({2}), EXACT)


def gather_elements(d: Draw) -> Trial:
    shape = d.shape((1, 5), (1, 4))
    axis = d.integer(0, len(shape) - 1)
    many = (*shape[:axis], d.integer(0, 5), *shape[axis + 1 :])
    indices = d.whole(d.pick(INDICES), many, -shape[axis], shape[axis] - 1)
    op = GatherElements(axis - len(shape) if d.flag() else axis)
    return Trial(op, [d.array(d.pick(ANY), shape), indices], tolerance=EXACT)


def gather_nd(d: Draw) -> Trial:
    data = d.shape((1, 5), (1, 4))
    shared = d.integer(0, len(data) - 1)
    depth = d.integer(1, len(data) - shared)
    many = d.shape((0, 2))
    places = [d.whole(DType.I64, (*data[:shared], *many, 1), -n, n - 1) for n in data[shared : shared + depth]]
    indices = np.concatenate(places, -1).astype(d.pick(["i4", "i8"]))
    op = d.pick([GatherND, GatherND_5])(shared)
    return Trial(op, [d.array(d.pick(ANY), data), indices], tolerance=EXACT)


def scatter(d: Draw) -> Trial:
    shape = d.shape((1, 4), (1, 4))
    axis = d.integer(0, len(shape) - 1)
    many = d.shape((0, 2), (1, 3))
    indices = d.whole(d.pick(INDICES), many, 0, shape[axis] - 1)
    dtype = d.pick(ANY)
    updates = d.array(dtype, (*shape[:axis], *many, *shape[axis + 1 :]))
    along = np.array(axis - len(shape) if d.flag() else axis)
    return Trial(ScatterUpdate(), [d.array(dtype, shape), indices, updates, along], frozenset({3}), EXACT)


def scatter_elements(d: Draw) -> Trial:
    shape = d.shape((1, 4), (1, 4))
    axis = d.integer(0, len(shape) - 1)
    many = tuple(d.integer(1, n + (2 if k == axis else 0)) for k, n in enumerate(shape))
    how, dtype = d.pick(REDUCTIONS), d.pick(ANY)
    if dtype is DType.BOOL and how is Combination.MEAN:
        how = Combination.SUM
    indices = d.whole(d.pick(INDICES), many, -shape[axis], shape[axis] - 1)
    along = np.array(axis - len(shape) if d.flag() else axis)
    inputs = [d.array(dtype, shape), indices, d.array(dtype, many), along]
    return Trial(ScatterElementsUpdate(how, d.flag()), inputs, frozenset({3}), CLOSE)


def scatter_nd(d: Draw) -> Trial:
    data = d.shape((1, 4), (1, 4))
    depth = d.integer(1, len(data))
    many = d.shape((0, 2), (1, 4))
    places = [d.whole(DType.I64, (*many, 1), -n, n - 1) for n in data[:depth]]
    indices = np.concatenate(places, -1).astype(d.pick(["i4", "i8"]))
    dtype = d.pick(ANY)
    how = d.pick([h for h in Combination if h is not Combination.MEAN])
    updates = d.array(dtype, (*many, *data[depth:]))
    return Trial(ScatterNDUpdate(how), [d.array(dtype, data), indices, updates], tolerance=CLOSE)


def slice_scatter(d: Draw) -> Trial:
    shape, dtype = d.shape((1, 4), (1, 5)), d.pick(ANY)
    axes = d.subset(len(shape), 1)
    starts, stops, steps = zip(*(span(d, shape[a]) for a in axes), strict=True)
    wanted = list(shape)
    for a, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        wanted[a] = len(range(shape[a])[python_slice(shape[a], start, stop, step)])
    lists = [listed(DType.I64, v) for v in (starts, stops, steps, d.signed(axes, len(shape)))]
    inputs = [d.array(dtype, shape), d.array(dtype, wanted), *lists]
    return Trial(SliceScatter(), inputs, frozenset({2, 3, 4, 5}), EXACT)


def span(d: Draw, n: int) -> tuple[int, int, int]:
    """Start, stop and step, perhaps behind the ends."""
    step = d.pick([1, 1, 2, 3, -1, -2])
    return d.integer(-n - 2, n + 2), d.integer(-n - 2, n + 2), step


def one_hot(d: Draw) -> Trial:
    shape, depth = d.shape((0, 4)), d.integer(1, 5)
    axis = d.integer(-len(shape) - 1, len(shape))
    dtype = d.pick(ANY)
    op = OneHot(axis, d.pick(list(NegativeIndices))) if d.flag() else OneHot_1(axis)
    low = -depth if isinstance(op, OneHot) else 0
    indices = d.whole(d.pick(INDICES), shape, low, depth + 1)
    values = [d.array(dtype, ()), d.array(dtype, ())]
    return Trial(op, [indices, np.array(depth), *values], frozenset({1}), EXACT)


def gather_tree(d: Draw) -> Trial:
    steps, batch, beams = d.ints(3, 1, 4)
    dtype = d.pick((DType.F32, DType.I32))
    tokens = d.whole(dtype, (steps, batch, beams), 0, 5)
    parents = d.whole(dtype, (steps, batch, beams), 0, beams - 1)
    lengths, end = d.whole(dtype, (batch,), 1, steps), d.whole(dtype, (), 0, 5)
    return Trial(GatherTree(), [tokens, parents, lengths, end], tolerance=EXACT)


def bucketize(d: Draw) -> Trial:
    dtype = d.pick((DType.F32, DType.I32, DType.I64))
    limits = np.sort(d.array(dtype, (d.integer(0, 6),)))
    return Trial(Bucketize(d.pick(INDICES), d.flag()), [d.array(dtype, d.shape()), limits])


def search(d: Draw) -> Trial:
    dtype, outer = d.pick(NUMBERS), d.shape((0, 3), (1, 3))
    rows = np.sort(d.array(dtype, (*outer, d.integer(1, 6))))
    values = d.array(dtype, (*outer, d.integer(1, 6)))
    if d.flag():
        rows, values = np.sort(d.array(dtype, (d.integer(1, 6),))), d.array(dtype, d.shape((1, 3), (1, 3)))
    return Trial(SearchSorted(d.flag(), d.pick(INDICES)), [rows, values])


def segments(d: Draw) -> Trial:
    shape = d.shape((1, 4), (1, 5))
    ids = np.sort(d.whole(d.pick(INDICES), shape[:1], 0, 5))
    inputs = [d.array(d.pick((DType.F32, DType.I32, DType.I64, DType.F16)), shape), ids]
    if d.flag():
        inputs.append(np.array(d.integer(0, 7), ids.dtype))
    return Trial(SegmentMax(d.pick(list(Fill))), inputs, frozenset({1, 2}) if d.flag() else frozenset({2}), EXACT)


TRIALS = [
    reduction,
    cumulative,
    gather,
    gather_elements,
    gather_nd,
    scatter,
    scatter_elements,
    scatter_nd,
    slice_scatter,
    one_hot,
    gather_tree,
    bucketize,
    search,
    segments,
]
