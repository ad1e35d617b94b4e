"""Slice and StridedSlice."""

from __future__ import annotations

import numpy as np

from aot.ir.op import Operand, Piece, ViewOp, axis_of, op
from aot.ir.types import Array, Dim, TensorType, simplify
from aot.opset.index_maps import whole
from codegen.loops import Expr, as_expr, prim
from runtime.abi import DType
from runtime.errors import ShapeError

FAR = 1 << 31  # a bound so far away means: up to the end


def range_of(n: Dim, start: Dim | None, stop: Dim | None, step: int, what: str) -> tuple[Dim, Dim]:
    """First index and number of elements of n[start:stop:step], as Python counts; None is an open end."""
    if step == 0:
        raise ShapeError(f"{what}: steps are not 0, got 0")
    if isinstance(n, int) and all(b is None or isinstance(b, int) for b in (start, stop)):
        first, last, by = slice(start, stop, step).indices(n)
        return first, len(range(first, last, by))
    if step < 0:
        if (start is None or _is_far(start)) and (stop is None or _is_far(stop)):
            return n - 1, (n + (-step - 1)) // -step
        first = _bound_of_backward(n, FAR if start is None else start)
        last = _bound_of_backward(n, -FAR if stop is None else stop)
        return simplify(first), simplify(prim("max", as_expr((first - last + (-step - 1)) // -step, DType.I64), 0))
    low, high = _bound(n, 0 if start is None else start), _bound(n, n if stop is None else stop)
    count = (high - low + (step - 1)) // step
    return simplify(low), simplify(count if _known_order(low, high) else prim("max", count, 0))


def _is_far(bound: Dim) -> bool:
    return isinstance(bound, int) and not -FAR < bound < FAR


def _bound(n: Dim, bound: Dim) -> Dim:
    """A bound of a positive step within 0..n."""
    if isinstance(bound, int):
        if bound >= FAR:
            return n
        if bound < 0:
            return 0 if bound <= -FAR else prim("max", n + bound, 0)
        return bound if bound == 0 else prim("min", n, bound)
    return bound


def _bound_of_backward(n: Dim, bound: Dim) -> Dim:
    """A bound of a negative step within -1..n - 1."""
    if not isinstance(bound, int):
        return prim("min", bound, as_expr(n - 1, DType.I64))
    if bound <= -FAR:
        return -1
    if bound >= FAR:
        return n - 1
    if bound < 0:
        return prim("max", as_expr(n + bound, DType.I64), -1)
    return prim("min", as_expr(n - 1, DType.I64), bound)


def _known_order(low: Dim, high: Dim) -> bool:
    return low == 0 or isinstance(high, int)


@op("opset8")
class Slice(ViewOp):
    """x[start:stop:step] along `axes`, or along the first ones; negative bounds count from the end."""

    def _parts(self, x: Operand, *bounds: Operand | None) -> tuple[list[Dim], list[Dim], list[int]]:
        starts, stops, steps, axes = (*bounds, None)[:4]
        assert starts is not None and stops is not None and steps is not None
        low, high, by = starts.dims("Slice: start"), stops.dims("Slice: stop"), steps.ints("Slice: step")
        where = axes.ints("Slice: axes") if axes is not None else tuple(range(len(low)))
        if not len(low) == len(high) == len(by) == len(where):
            counts = f"{len(low)}, {len(high)}, {len(by)} and {len(where)}"
            raise ShapeError(f"Slice: starts, stops, steps and axes must be as many, got {counts}")
        firsts: list[Dim] = [0] * x.rank
        counts, strides = list(x.shape), [1] * x.rank
        for a, start, stop, step in zip(where, low, high, by, strict=True):
            k = axis_of(a, x.rank, "Slice")
            firsts[k], counts[k] = range_of(x.shape[k], start, stop, step, "Slice")
            strides[k] = step
        return firsts, counts, strides

    def infer(self, x: Operand, *bounds: Operand | None) -> TensorType:
        return TensorType(x.dtype, tuple(self._parts(x, *bounds)[1]))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, *bounds: Operand | None) -> tuple[Piece, ...]:
        firsts, _, steps = self._parts(x, *bounds)

        def index(*at: Expr) -> tuple[Expr, ...]:
            return tuple(i * s + f for i, f, s in zip(at, firsts, steps, strict=True))

        return (whole(outs[0], index),)

    def reference(self, x: Array, starts: Array, stops: Array, steps: Array, axes: Array | None = None) -> Array:
        where = [int(a) for a in axes.reshape(-1)] if axes is not None else range(starts.size)
        index = [slice(None)] * x.ndim
        for a, low, high, by in zip(where, starts.reshape(-1), stops.reshape(-1), steps.reshape(-1), strict=True):
            index[a] = slice(int(low), int(high), int(by))
        return x[tuple(index)]


@op("opset1")
class StridedSlice(ViewOp):
    """Python's slicing with masks: an entry of 1 in `begin_mask` or `end_mask` leaves that bound open."""

    begin_mask: tuple[int, ...] = ()
    end_mask: tuple[int, ...] = ()
    new_axis_mask: tuple[int, ...] = ()
    shrink_axis_mask: tuple[int, ...] = ()
    ellipsis_mask: tuple[int, ...] = ()

    def _entries(self, rank: int, count: int) -> list[tuple[int, int]]:
        """(entry, dimension) of each dimension that an entry slices; new axes and the ellipsis have none."""
        new = [self._on(self.new_axis_mask, k) and not self._on(self.ellipsis_mask, k) for k in range(count)]
        dots = next((k for k in range(count) if self._on(self.ellipsis_mask, k)), count)
        left = [k for k in range(dots) if not new[k]]
        right = [k for k in range(dots + 1, count) if not new[k]]
        if len(left) + len(right) > rank:
            raise ShapeError(f"StridedSlice: {len(left) + len(right)} entries slice a tensor of rank {rank}")
        return [*((k, d) for d, k in enumerate(left)), *((k, rank - len(right) + d) for d, k in enumerate(right))]

    @staticmethod
    def _on(mask: tuple[int, ...], k: int) -> bool:
        return k < len(mask) and bool(mask[k])

    def _plan(
        self, x: Operand, begin: Operand, end: Operand, strides: Operand | None
    ) -> tuple[list[Dim], list[int], list[Dim], list[int | None]]:
        """First index and step of each dimension; shape of the output, and which dimension each of its axes is."""
        low, high = begin.dims("StridedSlice: begin"), end.dims("StridedSlice: end")
        by = strides.ints("StridedSlice: strides") if strides is not None else (1,) * len(low)
        firsts: list[Dim] = [0] * x.rank
        steps, counts = [1] * x.rank, list(x.shape)
        gone: set[int] = set()
        entries = self._entries(x.rank, len(low))
        for k, d in entries:
            if self._on(self.shrink_axis_mask, k):
                firsts[d], _ = range_of(x.shape[d], low[k], None, 1, "StridedSlice")
                gone.add(d)
                continue
            start = None if self._on(self.begin_mask, k) else low[k]
            stop = None if self._on(self.end_mask, k) else high[k]
            firsts[d], counts[d] = range_of(x.shape[d], start, stop, by[k], "StridedSlice")
            steps[d] = by[k]
        axes = self._axes(x.rank, len(low), entries, gone)
        return firsts, steps, [1 if d is None else counts[d] for d in axes], axes

    def _axes(self, rank: int, count: int, entries: list[tuple[int, int]], gone: set[int]) -> list[int | None]:
        """The output's axes in order: dimensions of the input, None for a new one."""
        dims = dict(entries)
        axes: list[int | None] = []
        following = 0
        for k in range(count):
            if self._on(self.ellipsis_mask, k):
                until = min((d for e, d in entries if e > k), default=rank)
                axes += list(range(following, until))
                following = until
            elif k in dims:
                axes += [] if dims[k] in gone else [dims[k]]
                following = dims[k] + 1
            else:
                axes.append(None)
        return [*axes, *range(following, rank)]

    def infer(self, x: Operand, begin: Operand, end: Operand, strides: Operand | None = None) -> TensorType:
        return TensorType(x.dtype, tuple(self._plan(x, begin, end, strides)[2]))

    def pieces(
        self, outs: tuple[TensorType, ...], x: Operand, begin: Operand, end: Operand, strides: Operand | None = None
    ) -> tuple[Piece, ...]:
        firsts, steps, _, axes = self._plan(x, begin, end, strides)

        def index(*at: Expr) -> tuple[Expr, ...]:
            places = {d: i for d, i in zip(axes, at, strict=True) if d is not None}
            terms = enumerate(zip(firsts, steps, strict=True))
            return tuple(places[k] * s + f if k in places else as_expr(f, DType.I64) for k, (f, s) in terms)

        return (whole(outs[0], index),)

    def reference(self, x: Array, begin: Array, end: Array, strides: Array | None = None) -> Array:
        by = strides.reshape(-1) if strides is not None else np.ones(begin.size, np.int64)
        index: list[object] = []
        for k, (low, high, step) in enumerate(zip(begin.reshape(-1), end.reshape(-1), by, strict=True)):
            if self._on(self.ellipsis_mask, k):
                index.append(Ellipsis)
            elif self._on(self.new_axis_mask, k):
                index.append(None)
            elif self._on(self.shrink_axis_mask, k):
                index.append(int(low))
            else:
                start = None if self._on(self.begin_mask, k) else int(low)
                index.append(slice(start, None if self._on(self.end_mask, k) else int(high), int(step)))
        return np.asarray(x[tuple(index)])  # type: ignore[index]
