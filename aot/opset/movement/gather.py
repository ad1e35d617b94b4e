"""Elements picked by indices that are data: Gather, GatherElements, GatherND, GatherTree, OneHot.

An index that points outside of the data gives 0 and reads no memory; -1 is the last element.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, Space, as_expr, cast, dense, prim, select
from aot.codegen.script.script import Scripted, loops, parallel
from aot.ir.conditions import Condition, alike, axis_of
from aot.ir.op import ComputeOp, Element, Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, dim_text
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError


def wrapped(index: Expr, extent: Dim) -> Expr:
    """Return the place of an index; a negative one counts from the end."""
    position = cast(index, DType.I64)
    return select(prim("lt", position, 0), position + extent, position)


def guarded(value: Expr, positions: list[tuple[Expr, Dim]]) -> Expr:
    """Return `value`, or 0 if a place is outside of its extent; then `value` is not evaluated."""
    for position, extent in positions:
        value = prim("within", position, as_expr(extent, DType.I64), value, 0)
    return value


def is_inside(indices: Input, extent: Dim) -> bool:
    """True if the indices are constants in range, none of them negative."""
    known = indices.value
    if known is None or known.dtype == object or not isinstance(extent, int):
        return False
    return bool(np.all((known >= 0) & (known < extent)))


def inside(indices: Array, extent: int) -> tuple[Array, Array]:
    """Return places that can be read, and a mask of the indices in range, for references."""
    positions = indices.astype(np.int64)
    positions = np.where(positions < 0, positions + extent, positions)
    valid = (positions >= 0) & (positions < extent)
    return np.where(valid, positions, 0), valid


def _picked(data: Array, indices: Array, along: int) -> Array:
    """Return np.take, with 0 for indices out of range."""
    positions, valid = inside(indices, data.shape[along])
    if not data.shape[along]:
        return np.zeros((*data.shape[:along], *indices.shape, *data.shape[along + 1 :]), data.dtype)
    values = np.take(data, positions, along)
    if valid.all():
        return values
    keep = valid.reshape(*[1] * along, *valid.shape, *[1] * (data.ndim - along - 1))
    return np.where(keep, values, np.zeros((), data.dtype))


@dataclass(frozen=True)
class Gathering(ComputeOp):
    """out[b.., i.., j.., k..] = data[b.., i.., indices[b.., j..], k..]; the third input is the axis."""

    symbolic, moved = True, (0,)

    @property
    def shared(self) -> int:
        """Number of leading dimensions that data and indices have in common."""
        return int(getattr(self, "batch_dims", 0))

    def infer(self, data: Operand, indices: Operand, axis: Operand) -> TensorType:
        along, shared = self._places(data, indices, axis)
        return TensorType(data.dtype, (*data.shape[:along], *indices.shape[shared:], *data.shape[along + 1 :]))

    def conditions(self, data: Operand, indices: Operand, axis: Operand) -> Sequence[Condition]:
        _, shared = self._places(data, indices, axis)
        return alike("batch dimensions must be equal", data.shape[:shared], indices.shape[:shared])

    def _places(self, data: Operand, indices: Operand, axis: Operand) -> tuple[int, int]:
        """Return the axis and the number of batch dimensions, counted from the front."""
        if not data.rank:
            raise ShapeError(f"Gather: data must have dimensions, got {data.type}")
        along = axis_of(axis.ints("Gather: axis")[0], data.rank, "Gather")
        shared = self.shared + indices.rank if self.shared < 0 else self.shared
        if not 0 <= shared <= min(along, indices.rank):
            raise ShapeError(
                f"Gather: batch_dims must be at most the axis {along} and rank {indices.rank}, got {shared}"
            )
        return along, shared

    def compute(self, out: TensorType, data: Input, indices: Input, axis: Input) -> Element:
        along, shared = self._places(data.operand(), indices.operand(), axis.operand())
        width, extent = indices.rank - shared, data.shape[along]

        def element(*index: Expr) -> Expr:
            raw = indices(*index[:shared], *index[along : along + width])
            before, after = index[:along], index[along + width :]
            if is_inside(indices, extent):
                return data(*before, cast(raw, DType.I64), *after)
            position = wrapped(raw, extent)
            return guarded(data(*before, position, *after), [(position, extent)])

        return element

    def reference(self, data: Array, indices: Array, axis: Array) -> Array:
        along = int(np.reshape(axis, -1)[0]) % data.ndim
        shared = self.shared % indices.ndim if self.shared < 0 else self.shared
        if not shared:
            return _picked(data, indices, along)
        batch = data.shape[:shared]
        shape = (*data.shape[:along], *indices.shape[shared:], *data.shape[along + 1 :])
        out = np.zeros(shape, data.dtype)
        for b in np.ndindex(batch):
            out[b] = _picked(data[b], indices[b], along - shared)
        return out


@op("opset8")
class Gather(Gathering):
    """Slices along an axis; negative indices count from the end; the first `batch_dims` dimensions are common."""

    batch_dims: int = 0


@op("opset7", type="Gather")
class Gather_7(Gathering):
    """Gather for indices that are not negative."""

    batch_dims: int = 0


@op("opset1", type="Gather")
class Gather_1(Gathering):
    """Slices of data along an axis."""


@op("opset6")
class GatherElements(ComputeOp):
    """out[i, j, k] = data[i, indices[i, j, k], k] for axis 1."""

    symbolic, moved = True, (0,)

    axis: int = 0

    def infer(self, data: Operand, indices: Operand) -> TensorType:
        axis_of(self.axis, data.rank, "GatherElements")
        if data.rank != indices.rank:
            raise ShapeError(f"GatherElements: ranks must be equal, got {data.rank} and {indices.rank}")
        return TensorType(data.dtype, indices.shape)

    def conditions(self, data: Operand, indices: Operand) -> Sequence[Condition]:
        pairs = alike("dimensions but the axis must be equal", data.shape, indices.shape)
        del pairs[axis_of(self.axis, data.rank, "GatherElements")]
        return pairs

    def compute(self, out: TensorType, data: Input, indices: Input) -> Element:
        along = axis_of(self.axis, data.rank, "GatherElements")

        def element(*index: Expr) -> Expr:
            position = wrapped(indices(*index), data.shape[along])
            return guarded(data(*index[:along], position, *index[along + 1 :]), [(position, data.shape[along])])

        return element

    def reference(self, data: Array, indices: Array) -> Array:
        positions, valid = inside(indices, data.shape[self.axis])
        return np.where(valid, np.take_along_axis(data, positions, self.axis), np.zeros((), data.dtype))


@dataclass(frozen=True)
class GatheringND(ComputeOp):
    """out[b.., i.., k..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., k..]"""

    symbolic, moved = True, (0,)

    batch_dims: int = 0

    def shape(self, data: Operand, indices: Operand) -> Shape:
        """Return the shape of the output, with all batch dimensions."""
        shared, depth = self.batch_dims, self._depth(indices.shape)
        if shared >= min(data.rank, indices.rank):
            raise ShapeError(f"GatherND: batch_dims must be below ranks {data.rank} and {indices.rank}, got {shared}")
        if shared + depth > data.rank:
            raise ShapeError(
                f"GatherND: {depth} indices after {shared} batch dimensions cannot exceed rank {data.rank}"
            )
        return (*indices.shape[:-1], *data.shape[shared + depth :])

    def conditions(self, data: Operand, indices: Operand) -> Sequence[Condition]:
        shared = self.batch_dims
        return alike("batch dimensions must be equal", data.shape[:shared], indices.shape[:shared])

    @staticmethod
    def _depth(shape: Shape) -> int:
        if not shape or not isinstance(shape[-1], int):
            dims = [*map(dim_text, shape)]
            raise UnsupportedError(f"GatherND: the last dimension of indices must be known, got {dims}")
        return shape[-1]

    def picked(self, data: Input, indices: Input, index: tuple[Expr, ...]) -> Expr:
        shared, depth = self.batch_dims, self._depth(indices.shape)
        row, rest = index[: indices.rank - 1], index[indices.rank - 1 :]
        extents = data.shape[shared : shared + depth]
        positions = [wrapped(indices(*row, k), n) for k, n in enumerate(extents)]
        value = data(*index[:shared], *positions, *rest)
        return guarded(value, list(zip(positions, extents, strict=True)))

    def gathered(self, data: Array, indices: Array) -> Array:
        """Gather for references, with all batch dimensions."""
        shared, depth = self.batch_dims, indices.shape[-1]
        out = np.zeros((*indices.shape[:-1], *data.shape[shared + depth :]), data.dtype)
        for row in np.ndindex(indices.shape[:-1]):
            positions = [int(i) for i in indices[row]]
            extents = data.shape[shared : shared + depth]
            if all(-n <= i < n for i, n in zip(positions, extents, strict=True)):
                out[row] = data[(*row[:shared], *positions)]
        return out


@op("opset8")
class GatherND(GatheringND):
    """Slices picked by tuples of indices; batch dimensions stay."""

    def infer(self, data: Operand, indices: Operand) -> TensorType:
        return TensorType(data.dtype, self.shape(data, indices))

    def compute(self, out: TensorType, data: Input, indices: Input) -> Element:
        return lambda *index: self.picked(data, indices, index)

    def reference(self, data: Array, indices: Array) -> Array:
        return self.gathered(data, indices)


@op("opset5", type="GatherND")
class GatherND_5(GatheringND):
    """Slices picked by tuples of indices; batch dimensions become one."""

    def infer(self, data: Operand, indices: Operand) -> TensorType:
        shape, shared = self.shape(data, indices), self.batch_dims
        return TensorType(data.dtype, (volume(shape[:shared]), *shape[shared:]) if shared > 1 else shape)

    def compute(self, out: TensorType, data: Input, indices: Input) -> Element:
        batch = indices.shape[: self.batch_dims]
        if len(batch) < 2:
            return lambda *index: self.picked(data, indices, index)

        def element(joined: Expr, *rest: Expr) -> Expr:
            return self.picked(data, indices, (*unravel(joined, batch), *rest))

        return element

    def reference(self, data: Array, indices: Array) -> Array:
        values, shared = self.gathered(data, indices), self.batch_dims
        return values.reshape(-1, *values.shape[shared:]) if shared > 1 else values


@op("opset1")
class GatherTree(LoopOp):
    """Beams traced back from the last step: inputs [time, batch, beam], lengths [batch], the token that ends a beam."""

    elements = Elements.NUMBER

    def infer(self, steps: Operand, parents: Operand, lengths: Operand, end: Operand) -> TensorType:
        if steps.rank != 3 or parents.rank != 3:
            raise ShapeError(f"GatherTree: inputs must have rank 3, got {steps.rank} and {parents.rank}")
        if any(o.dtype is not steps.dtype for o in (parents, lengths, end)):
            types = ", ".join(o.dtype.value for o in (steps, parents, lengths, end))
            raise ShapeError(f"GatherTree: element types must be equal, got {types}")
        return steps.type

    def conditions(self, steps: Operand, parents: Operand, lengths: Operand, end: Operand) -> Sequence[Condition]:
        pairs = alike("steps and parents must have one shape", steps.shape, parents.shape)
        return [*pairs, *alike("there is a length for each row of the batch", lengths.shape, steps.shape[1:2])]

    def nest(
        self, outs: tuple[Buffer, ...], steps: Input, parents: Input, lengths: Input, end: Input
    ) -> tuple[Work, ...]:
        stop = end(*[0] * end.rank)
        state = dense("state", *steps.shape[1:], space=Space.ARENA, dtype=DType.I64)
        return (_trace(outs[0], steps.buffer, parents.buffer, lengths.buffer, stop, state),)

    def reference(self, steps: Array, parents: Array, lengths: Array, end: Array) -> Array:
        stop = end.reshape(-1)[0]
        out = np.full_like(steps, stop)
        times, batches, beams = steps.shape
        for b, beam in np.ndindex(batches, beams):
            parent = beam
            for t in reversed(range(_within(lengths[b], times))):
                out[t, b, beam] = steps[t, b, parent]
                parent = _within(parents[t, b, parent], beams - 1)
            ended = np.flatnonzero(out[:, b, beam] == stop)
            out[ended[0] if ended.size else times :, b, beam] = stop
        return out


def _within(number: Array, most: int) -> int:
    """Clamp a number to an integer in 0..most; NaN is 0."""
    return int(np.clip(np.nan_to_num(number), 0, most))


@loops
def _trace(
    out: Scripted, steps: Scripted, parents: Scripted, lengths: Scripted, stop: Scripted, state: Scripted
) -> None:
    """Trace all beams of a row together, step by step; `state`: the beam each came from, then 1 if it has ended."""
    times, batches, beams = out.shape
    for b in parallel(batches):
        last: Scripted = prim("max", prim("min", cast(lengths[b], DType.I64), times), 0)
        for beam in range(beams):
            state[b, beam] = beam
        for back in range(last):
            t = last - 1 - back
            for beam in range(beams):
                parent = state[b, beam]
                out[t, b, beam] = steps[t, b, parent]
                state[b, beam] = prim("max", prim("min", cast(parents[t, b, parent], DType.I64), beams - 1), 0)
        for beam in range(beams):
            state[b, beam] = 0
        for t in range(last):
            for beam in range(beams):
                if state[b, beam] == 1:
                    out[t, b, beam] = stop
                elif out[t, b, beam] == stop:
                    state[b, beam] = 1
        for t in range(last, times):
            for beam in range(beams):
                out[t, b, beam] = stop


class NegativeIndices(StrEnum):
    """Meaning of a negative index: out of range, or counted from the end."""

    IGNORE_NEGATIVE = "ignore_negative"
    NORMALIZE = "normalize"


@dataclass(frozen=True)
class Marking(ComputeOp):
    """out[i, d, j] = on where d is indices[i, j], else off: a new dimension of size `depth`."""

    axis: int = -1

    @property
    def normalizes(self) -> bool:
        return getattr(self, "negative_indices_mode", None) is NegativeIndices.NORMALIZE

    def infer(self, indices: Operand, depth: Operand, on: Operand, off: Operand) -> TensorType:
        if on.dtype is not off.dtype:
            raise ShapeError(f"OneHot: element types must be equal, got {on.dtype.value} and {off.dtype.value}")
        along = axis_of(self.axis, indices.rank + 1, "OneHot")
        return TensorType(on.dtype, (*indices.shape[:along], depth.dims("OneHot: depth")[0], *indices.shape[along:]))

    def compute(self, out: TensorType, indices: Input, depth: Input, on: Input, off: Input) -> Element:
        along = axis_of(self.axis, out.rank, "OneHot")
        yes, no = (x(*[0] * x.rank) for x in (on, off))

        def element(*index: Expr) -> Expr:
            index_value = cast(indices(*index[:along], *index[along + 1 :]), DType.I64)
            position = wrapped(index_value, out.shape[along]) if self.normalizes else index_value
            return select(prim("eq", position, index[along]), yes, no)

        return element

    def reference(self, indices: Array, depth: Array, on: Array, off: Array) -> Array:
        count, along = int(depth.reshape(-1)[0]), self.axis % (indices.ndim + 1)
        classes = np.arange(count).reshape(-1, *[1] * (indices.ndim - along))
        expanded = np.expand_dims(indices.astype(np.int64), along)
        if self.normalizes:
            expanded = np.where(expanded < 0, expanded + count, expanded)
        return np.where(expanded == classes, on.reshape(()), off.reshape(()))


@op("opset16")
class OneHot(Marking):
    """`on` at the places that indices name, `off` elsewhere; indices out of range name none."""

    negative_indices_mode: NegativeIndices = NegativeIndices.IGNORE_NEGATIVE


@op("opset1", type="OneHot")
class OneHot_1(Marking):
    """OneHot without results for negative indices."""
