"""Updates written into a copy of a tensor: ScatterUpdate, ScatterElementsUpdate, ScatterNDUpdate, SliceScatter.

Updates are applied in row-major order, so that the last one wins; an index out of range is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial, reduce

import numpy as np

from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.loops import Buffer, Const, Expr, Space, Var, cast, dense, prim, select
from aot.codegen.script.script import Scripted, loops, parallel
from aot.ir.conditions import Condition, alike, at_most_equal, axis_of
from aot.ir.op import ComputeOp, Element, LoopOp, Work
from aot.ir.operand import Input, Operand, has_symbols
from aot.ir.registry import attr, op
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.opset.base.row_major import unravel, volume
from aot.opset.movement.gather import wrapped
from aot.opset.movement.slicing import python_slice, range_of
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, ShapeError


class Combination(StrEnum):
    """Function that combines an update with the element it is written to."""

    NONE = "none"
    SUM = "sum"
    SUB = "sub"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"


NUMBER_REDUCTIONS = {"sum": "add", "sub": "sub", "prod": "mul", "min": "min", "max": "max", "mean": "add"}
BOOLEAN_REDUCTIONS = {"sum": "or", "sub": "xor", "prod": "and", "min": "and", "max": "or"}
UFUNCS = {"sum": np.add, "sub": np.subtract, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "mean": np.add}
LOGICAL_UFUNCS = {
    "sum": np.logical_or,
    "sub": np.logical_xor,
    "prod": np.logical_and,
    "min": np.logical_and,
    "max": np.logical_or,
}


def combined(how: Combination, old: Expr, new: Expr) -> Expr:
    if how is Combination.NONE:
        return new
    return prim((BOOLEAN_REDUCTIONS if old.dtype is DType.BOOL else NUMBER_REDUCTIONS)[how], old, new)


def copied(out: Buffer, x: Input) -> Definition:
    """Return the definition that copies the data, before updates are written into the copy."""
    index = tuple(Const(0) if n == 1 else Var(f"i{d}", n) for d, n in enumerate(x.shape))
    return Definition(out, tuple(i for i in index if isinstance(i, Var)), x(*index), index)


def inside(position: Expr, extent: Dim) -> Expr:
    return prim("and", prim("ge", position, 0), prim("lt", position, extent))


def all_inside(positions: Sequence[Expr], extents: Sequence[Dim]) -> Expr:
    """Return whether each place is inside of its dimension; there may be more dimensions."""
    return reduce(partial(prim, "and"), (inside(i, n) for i, n in zip(positions, extents, strict=False)))


def put(out: Array, at: tuple[int | slice, ...], update: Array, how: str) -> None:
    """Apply one update, for references."""
    if how == "none":
        out[at] = update
    else:
        out[at] = (LOGICAL_UFUNCS if out.dtype == np.bool_ else UFUNCS)[how](out[at], update)


@op("opset3")
class ScatterUpdate(LoopOp):
    """A copy of the data with out[.., indices[i..], ..] = updates[.., i.., ..] along the axis of the last input."""

    symbolic, moved = True, (0, 2)

    def infer(self, data: Operand, indices: Operand, updates: Operand, axis: Operand) -> TensorType:
        check_updates("ScatterUpdate", data, updates, self._wanted(data, indices, axis))
        return data.type

    def conditions(self, data: Operand, indices: Operand, updates: Operand, axis: Operand) -> Sequence[Condition]:
        return fitting_updates(updates, self._wanted(data, indices, axis))

    @staticmethod
    def _wanted(data: Operand, indices: Operand, axis: Operand) -> Shape:
        along = axis_of(axis.ints("ScatterUpdate: axis")[0], data.rank, "ScatterUpdate")
        return (*data.shape[:along], *indices.shape, *data.shape[along + 1 :])

    def nest(
        self, outs: tuple[Buffer, ...], data: Input, indices: Input, updates: Input, axis: Input
    ) -> tuple[Work, ...]:
        along = axis_of(axis.operand().ints("ScatterUpdate: axis")[0], data.rank, "ScatterUpdate")
        return (copied(outs[0], data), _rows(outs[0], indices.buffer, updates.buffer, data.shape, indices.shape, along))

    def reference(self, data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        out, along = data.copy(), int(axis.reshape(-1)[0]) % data.ndim
        rows, written = np.moveaxis(out, along, 0), updates.reshape(*data.shape[:along], -1, *data.shape[along + 1 :])
        for i, row in zip(indices.reshape(-1), np.moveaxis(written, along, 0), strict=True):
            if -data.shape[along] <= i < data.shape[along]:
                rows[int(i)] = row
        return out


@loops
def _rows(out: Scripted, indices: Scripted, updates: Scripted, shape: Shape, many: Scripted, along: int) -> None:
    for o in parallel(volume(shape[:along])):
        before = unravel(o, shape[:along])
        for t in range(volume(many)):
            at = unravel(t, many)
            place = wrapped(indices[at], shape[along])
            if inside(place, shape[along]):
                for e in range(volume(shape[along + 1 :])):
                    after = unravel(e, shape[along + 1 :])
                    out[(*before, place, *after)] = updates[(*before, *at, *after)]


@op("opset12", "opset3")
class ScatterElementsUpdate(LoopOp):
    """A copy of the data with out[.., indices[p], ..] = reduction(out[..], updates[p]) for each p = (.., i, ..).

    Without `use_init_val`, the original values of updated elements do not take part in the reduction.
    """

    symbolic, moved = True, (0, 2)

    reduction: Combination = attr(Combination.NONE, since="opset12")
    use_init_val: bool = attr(True, since="opset12")

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        return None if self.reduction is not Combination.NONE and has_symbols(*operands) else super().fold(*operands)

    def infer(self, data: Operand, indices: Operand, updates: Operand, axis: Operand) -> TensorType:
        axis_of(axis.ints("ScatterElementsUpdate: axis")[0], data.rank, "ScatterElementsUpdate")
        if indices.rank != data.rank:
            raise ShapeError(f"ScatterElementsUpdate: ranks must be equal, got {data.type} and {indices.type}")
        if self.reduction is Combination.SUB or (self.reduction is Combination.MEAN and data.dtype is DType.BOOL):
            raise ModelError(f"ScatterElementsUpdate: {data.dtype.value} has no reduction {self.reduction}")
        check_updates("ScatterElementsUpdate", data, updates, indices.shape)
        return data.type

    def conditions(self, data: Operand, indices: Operand, updates: Operand, axis: Operand) -> Sequence[Condition]:
        along = axis_of(axis.ints("ScatterElementsUpdate: axis")[0], data.rank, "ScatterElementsUpdate")
        rule = "dimensions of indices but the axis are at most those of data"
        within = [at_most_equal(rule, n, m) for n, m in zip(indices.shape, data.shape, strict=True)]
        del within[along]
        return [*fitting_updates(updates, indices.shape), *within]

    def nest(
        self, outs: tuple[Buffer, ...], data: Input, indices: Input, updates: Input, axis: Input
    ) -> tuple[Work, ...]:
        along = axis_of(axis.operand().ints("ScatterElementsUpdate: axis")[0], data.rank, "ScatterElementsUpdate")
        (out,), fresh = outs, self.reduction is not Combination.NONE and not self.use_init_val
        places, shapes = (indices.buffer, indices.shape), (data.shape, along)
        count = dense("count", *data.shape, space=Space.ARENA, dtype=DType.I32)
        works: list[Work] = [copied(out, data)]
        if fresh:
            works.append(
                _filled(out, *places, *shapes, identity(NUMBER_REDUCTIONS[self.reduction], data.dtype.compute))
            )
        if self.reduction is Combination.MEAN:
            works.append(_filled(count, *places, *shapes, int(self.use_init_val)))
        works.append(_elements(out, count, *places, updates.buffer, *shapes, self.reduction))
        if self.reduction is Combination.MEAN:
            works.append(_divided(out, count, *places, *shapes))
        return tuple(works)

    def reference(self, data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        along, out = int(axis.reshape(-1)[0]) % data.ndim, data.copy()
        n, count = data.shape[along], np.zeros(data.shape, np.int64)
        for p in np.ndindex(*indices.shape):
            if -n <= indices[p] < n:
                at = (*p[:along], int(indices[p]), *p[along + 1 :])
                first = not count[at] and not self.use_init_val
                put(out, at, updates[p], "none" if first else str(self.reduction.value))
                count[at] += 1
        if self.reduction is Combination.MEAN:
            met = np.nonzero(count)
            total, terms = out[met], count[met] + self.use_init_val
            wide = total.astype(np.float32) if out.dtype.itemsize == 2 and out.dtype.kind in "fV" else total
            mean = total // terms if out.dtype.kind in "iu" else wide / terms.astype(wide.dtype)
            out[met] = mean.astype(out.dtype)
        return out


@loops
def _filled(out: Scripted, indices: Scripted, many: Scripted, shape: Shape, along: int, value: Scripted) -> None:
    others = many[:along] + many[along + 1 :]
    for o in parallel(volume(others)):
        row = unravel(o, others)
        for j in range(many[along]):
            place = wrapped(indices[(*row[:along], j, *row[along:])], shape[along])
            if inside(place, shape[along]):
                out[(*row[:along], place, *row[along:])] = value


@loops
def _elements(
    out: Scripted,
    count: Scripted,
    indices: Scripted,
    many: Scripted,
    updates: Scripted,
    shape: Shape,
    along: int,
    how: Combination,
) -> None:
    others = many[:along] + many[along + 1 :]
    for o in parallel(volume(others)):
        row = unravel(o, others)
        for j in range(many[along]):
            here = (*row[:along], j, *row[along:])
            place = wrapped(indices[here], shape[along])
            if inside(place, shape[along]):
                there = (*row[:along], place, *row[along:])
                out[there] = combined(how, out[there], updates[here])
                if how is Combination.MEAN:
                    count[there] += 1


@loops
def _divided(out: Scripted, count: Scripted, indices: Scripted, many: Scripted, shape: Shape, along: int) -> None:
    others = many[:along] + many[along + 1 :]
    for o in parallel(volume(others)):
        row = unravel(o, others)
        for j in range(many[along]):
            place = wrapped(indices[(*row[:along], j, *row[along:])], shape[along])
            if inside(place, shape[along]):
                there = (*row[:along], place, *row[along:])
                if count[there] > 0:  # only once per element
                    terms = cast(count[there], out.dtype.compute)
                    out[there] = out[there] / terms if out.dtype.is_float else floor_divided(out[there], terms)
                    count[there] = 0


def floor_divided(a: Expr, b: Expr) -> Expr:
    return prim("floordiv", a, b)


@op("opset15", "opset4")
class ScatterNDUpdate(LoopOp):
    """A copy of the data with out[indices[p]] = reduction(out[indices[p]], updates[p]); rows of indices are tuples."""

    symbolic, moved = True, (0, 2)

    reduction: Combination = attr(Combination.NONE, since="opset15")

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        return None if self.reduction is not Combination.NONE and has_symbols(*operands) else super().fold(*operands)

    def infer(self, data: Operand, indices: Operand, updates: Operand) -> TensorType:
        if self.reduction is Combination.MEAN:
            raise ModelError("ScatterNDUpdate: reduction mean is not supported")
        depth = self._depth(data, indices, updates)
        if not 0 < depth <= data.rank:
            raise ShapeError(f"ScatterNDUpdate: {depth} indices must fit {data.type}")
        check_updates("ScatterNDUpdate", data, updates, (*indices.shape[:-1], *data.shape[depth:]))
        return data.type

    def conditions(self, data: Operand, indices: Operand, updates: Operand) -> Sequence[Condition]:
        depth = self._depth(data, indices, updates)
        tuples = (indices.shape[-1], depth, "the last dimension of indices must be how many there are in a tuple")
        return [tuples, *fitting_updates(updates, (*indices.shape[:-1], *data.shape[depth:]))]

    @staticmethod
    def _depth(data: Operand | Input, indices: Operand | Input, updates: Operand | Input) -> int:
        """Return the number of indices in a tuple, derived from the ranks if the dimension is dynamic."""
        if not indices.rank:
            raise ShapeError("ScatterNDUpdate: indices must have rank 1 at least, got 0")
        depth = indices.shape[-1]
        return depth if isinstance(depth, int) else data.rank + indices.rank - 1 - updates.rank

    def nest(self, outs: tuple[Buffer, ...], data: Input, indices: Input, updates: Input) -> tuple[Work, ...]:
        depth, buffers = self._depth(data, indices, updates), (outs[0], indices.buffer, updates.buffer)
        writes = _tuples(*buffers, data.shape, indices.shape[:-1], depth, updates.rank, self.reduction)
        return (copied(outs[0], data), writes)

    def reference(self, data: Array, indices: Array, updates: Array) -> Array:
        out, depth = data.copy(), indices.shape[-1]
        written = updates.reshape((*indices.shape[:-1], *data.shape[depth:]))
        for p in np.ndindex(*indices.shape[:-1]):
            at = tuple(int(i) for i in indices[p])
            if all(-n <= i < n for i, n in zip(at, data.shape, strict=False)):
                put(out, (*at, ...), written[p], str(self.reduction.value))  # type: ignore[arg-type]
        return out


@loops
def _tuples(
    out: Scripted,
    indices: Scripted,
    updates: Scripted,
    shape: Shape,
    many: Scripted,
    depth: int,
    rank: int,
    how: Combination,
) -> None:
    for t in range(volume(many)):  # sequential, because tuples may be equal
        at = unravel(t, many)
        places = [wrapped(indices[(*at, k)], shape[k]) for k in range(depth)]
        if all_inside(places, shape):
            for e in range(volume(shape[depth:])):
                rest = unravel(e, shape[depth:])
                there, here = (*places, *rest), (*at, *rest)
                update = updates[here if len(here) == rank else (0,) * rank]  # one element may have any rank
                out[there] = combined(how, out[there], update)


def check_updates(what: str, data: Operand, updates: Operand, expected: Shape) -> None:
    """Raise ShapeError if the updates do not fit; a single element may have any rank."""
    if data.dtype is not updates.dtype:
        raise ShapeError(f"{what}: element types must be equal, got {data.dtype.value} and {updates.dtype.value}")
    if updates.rank != len(expected) and not all(n == 1 for n in (*updates.shape, *expected)):
        raise ShapeError(
            f"{what}: updates of shape {TensorType(data.dtype, expected)} must be given, got {updates.type}"
        )


def fitting_updates(updates: Operand, expected: Shape) -> list[Condition]:
    """Return the conditions that updates fit; a single element may have any rank."""
    return alike("updates must fit indices and data", updates.shape, expected) if updates.rank == len(expected) else []


@op("opset15")
class SliceScatter(ComputeOp):
    """A copy of the data with out[start:stop:step] = updates along `axes`, or along the first ones."""

    symbolic, moved = True, (0, 1)

    def infer(self, data: Operand, updates: Operand, *bounds: Operand | None) -> TensorType:
        check_updates("SliceScatter", data, updates, self._wanted(data, *bounds))
        return data.type

    def conditions(self, data: Operand, updates: Operand, *bounds: Operand | None) -> Sequence[Condition]:
        return fitting_updates(updates, self._wanted(data, *bounds))

    def _wanted(self, data: Operand, *bounds: Operand | None) -> Shape:
        """Return the shape of the updates."""
        shape = list(data.shape)
        for k, (_, count, _) in self._parts(data, *bounds).items():
            shape[k] = count
        return tuple(shape)

    @staticmethod
    def _parts(data: Operand, *bounds: Operand | None) -> dict[int, tuple[Dim, Dim, int]]:
        """Return first index, number of elements and step along each sliced axis."""
        starts, stops, steps, axes = (*bounds, None)[:4]
        assert starts is not None and stops is not None and steps is not None
        low, high = starts.dims("SliceScatter: start"), stops.dims("SliceScatter: stop")
        by = steps.ints("SliceScatter: step")
        where = axes.ints("SliceScatter: axes") if axes is not None else tuple(range(len(low)))
        if not len(low) == len(high) == len(by) == len(where):
            counts = f"{len(low)}, {len(high)}, {len(by)} and {len(where)}"
            raise ShapeError(f"SliceScatter: starts, stops, steps and axes must have equal lengths, got {counts}")
        parts: dict[int, tuple[Dim, Dim, int]] = {}
        for a, start, stop, step in zip(where, low, high, by, strict=True):
            k = axis_of(a, data.rank, "SliceScatter")
            parts[k] = *range_of(data.shape[k], start, stop, step, "SliceScatter"), step
        return parts

    def compute(self, out: TensorType, data: Input, updates: Input, *bounds: Input | None) -> Element:
        parts = self._parts(data.operand(), *(None if b is None else b.operand() for b in bounds))

        def element(*index: Expr) -> Expr:
            at, old = list(index), data(*index)
            gone = {k: index[k] - first if step > 0 else first - index[k] for k, (first, _, step) in parts.items()}
            for k, (_, _, step) in parts.items():
                at[k] = gone[k] // abs(step)
            value = updates(*at)
            for k, (_, count, step) in parts.items():
                value = prim("within", at[k], count, value, old)
                if abs(step) > 1:
                    value = select(prim("eq", gone[k] % abs(step), 0), value, old)
            return value

        return element

    def reference(
        self, data: Array, updates: Array, starts: Array, stops: Array, steps: Array, axes: Array | None = None
    ) -> Array:
        where = [int(a) for a in axes.reshape(-1)] if axes is not None else range(starts.size)
        index, out = [slice(None)] * data.ndim, data.copy()
        for a, low, high, by in zip(where, starts.reshape(-1), stops.reshape(-1), steps.reshape(-1), strict=True):
            index[a] = python_slice(data.shape[a], int(low), int(high), int(by))
        out[tuple(index)] = updates
        return out
