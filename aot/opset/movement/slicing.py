"""Slice and StridedSlice: parts of a tensor by bounds and steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Const, Expr, Prim, as_expr, prim, select
from aot.ir.conditions import Condition, axis_of, in_range
from aot.ir.dims import can_be_negative, is_data
from aot.ir.op import Op, ViewOp
from aot.ir.operand import Operand, Piece
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, dim_text, simplify
from aot.opset.base.index_maps import same, whole
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

MAX_SIZE = 1 << 48  # upper bound of any dimension
OPEN_BOUND = 1 << 31  # bounds this far from 0 are open ends


def range_of(n: Dim, start: Dim | None, stop: Dim | None, step: Dim, what: str) -> tuple[Dim, Dim]:
    """Return first index and number of elements of n[start:stop:step]; None is an open end.

    Bounds mean the same as in Python, but a backward start before the first element is clamped to the first element.
    A dynamic step must not be 0, which the condition `not_zero` checks.
    """
    if not isinstance(step, int):
        step = prim("max", prim("min", step, MAX_SIZE), -MAX_SIZE)
        up, down = (_any_range(n, start, stop, step, forward) for forward in (True, False))
        first, count = (select(prim("gt", step, 0), a, b) for a, b in zip(up, down, strict=True))
        return first, count
    if step == 0:
        raise ShapeError(f"{what}: steps cannot be 0, got 0")
    step = max(-MAX_SIZE, min(step, MAX_SIZE))
    if any(b is not None and is_data(b) for b in (start, stop)):
        return _any_range(n, start, stop, step, step > 0)
    if isinstance(n, int) and all(b is None or isinstance(b, int) for b in (start, stop)):
        first, last, by = slice(start, stop, step).indices(n)
        first = min(0, n - 1) if first < 0 else first
        return first, len(range(first, last, by))
    if step < 0 and (start is None or _is_far(start)) and (stop is None or _is_far(stop)):
        return n - 1, (n + (-step - 1)) // -step
    if step < 0:
        start, stop = (OPEN_BOUND if start is None else start), (-OPEN_BOUND if stop is None else stop)
        return _by_sign(_backward, n, start, stop, step)
    return _by_sign(_forward, n, 0 if start is None else start, n if stop is None else stop, step)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A bound of known sign; a negative one counts from the end."""

    at: Dim
    is_negative: bool


Form = Callable[[Dim, _Bound, _Bound, int], tuple[Dim, Dim]]


def _by_sign(form: Form, n: Dim, start: Dim, stop: Dim, step: int) -> tuple[Dim, Dim]:
    """Return first index and count of `form`; a condition chooses them where a range does not decide a bound's sign."""
    rows = [[form(n, low, high, step) for high in _signed(stop)] for low in _signed(start)]
    return _choice(start, [_choice(stop, row) for row in rows])


def _signed(bound: Dim) -> list[_Bound]:
    """Return the bound as one of each sign that its range has, the negative one first."""
    low, high = (bound, bound) if isinstance(bound, int) else bounds(normal(bound, {}))
    return [_Bound(bound, True)] * (low < 0) + [_Bound(bound if high else 0, False)] * (high >= 0)


def _choice(bound: Dim, ranges: list[tuple[Dim, Dim]]) -> tuple[Dim, Dim]:
    """Return the result for the sign that a bound has, of those in the order of `_signed`."""
    if len(ranges) == 1:
        return ranges[0]
    first, count = (_either(bound, a, b) for a, b in zip(*ranges, strict=True))
    return simplify(first), simplify(count)


def _either(bound: Dim, a: Dim, b: Dim) -> Dim:
    """Return `a` where a bound is negative, else `b`."""
    sign = as_expr(bound, DType.I64)
    if a == b:
        return a
    return (
        prim("max", sign, 0)
        if a == 0 and b == simplify(sign)
        else select(prim("lt", sign, 0), as_expr(a, DType.I64), b)
    )


def _forward(n: Dim, start: _Bound, stop: _Bound, step: int) -> tuple[Dim, Dim]:
    low = start.at if isinstance(start.at, Expr) and not start.is_negative else _bound(n, start)
    high = _bound(n, stop)
    if start.is_negative and high == n and not isinstance(start.at, int):
        return simplify(low), simplify((prim("min", as_expr(n, DType.I64), 0 - start.at) + (step - 1)) // step)
    count = (high - low + (step - 1)) // step
    return simplify(low), simplify(count if low == 0 else prim("max", as_expr(count, DType.I64), 0))


def _backward(n: Dim, start: _Bound, stop: _Bound, step: int) -> tuple[Dim, Dim]:
    first, last = _bound_of_backward(n, start, 0), _bound_of_backward(n, stop, -1)
    return simplify(first), simplify(prim("max", as_expr((first - last + (-step - 1)) // -step, DType.I64), 0))


def not_zero(step: Dim) -> list[Condition]:
    """Return the condition that a dynamic step is not 0."""
    return [] if isinstance(step, int) else [(select(prim("eq", step, 0), 1, step), step, "steps are not 0")]


def _any_range(n: Dim, start: Dim | None, stop: Dim | None, step: Dim, forward: bool) -> tuple[Expr, Expr]:
    """Return the result of `range_of` for dynamic bounds, with a step of known sign."""
    least, high = ((0, 0), n) if forward else ((0, -1), n - 1)
    ends = (0, n) if forward else (n - 1, -1)
    bounds = zip((start, stop), least, ends, strict=True)
    first, last = (end if b is None else _clamped(n, b, low, high) for b, low, end in bounds)
    gap, by = (last - first, step) if forward else (first - last, -step)
    count = prim("max", as_expr(gap - 1, DType.I64) // by + 1, 0)  # `by` may be as large as the type allows
    return as_expr(first, DType.I64), prim("min", count, n)


def _clamped(n: Dim, bound: Dim, low: Dim, high: Dim) -> Expr:
    """Clamp a bound to low..high; a negative one counts from the end."""
    near = prim("max", prim("min", as_expr(bound, DType.I64), n), -1 - as_expr(n, DType.I64))
    return prim("max", prim("min", select(prim("lt", near, 0), near + n, near), high), low)


def _is_far(bound: Dim) -> bool:
    return isinstance(bound, int) and not -OPEN_BOUND < bound < OPEN_BOUND


def _bound(n: Dim, bound: _Bound) -> Dim:
    """Clamp a bound of a positive step to 0..n."""
    at = bound.at
    if not isinstance(at, int):
        if bound.is_negative:  # n + at <= n - at - 2
            return 0 if bounds(normal(n - at, {}))[1] <= 2 else prim("max", as_expr(n + at, DType.I64), 0)
        return prim("min", n, at) if _can_exceed(at, n) else at
    if at >= OPEN_BOUND:
        return n
    if at < 0:
        return 0 if at <= -OPEN_BOUND else prim("max", n + at, 0)
    return at if at == 0 else prim("min", n, at)


def _can_exceed(bound: Expr, n: Dim) -> bool:
    """True if a bound that is not negative is not known to be within the size `n`."""
    if bounds(normal(n - bound, {}))[0] >= 0:
        return False
    match bound:
        case Prim("floordiv" | "div", (whole, Const(k))) if k > 0:
            return bounds(normal(whole - n * int(k), {}))[1] >= k
        case _:
            return True


def _bound_of_backward(n: Dim, bound: _Bound, least: int) -> Dim:
    """Clamp a bound of a negative step to least..n - 1."""
    last, at = as_expr(n - 1, DType.I64), bound.at
    if isinstance(at, int) and at >= OPEN_BOUND:
        return last
    if not bound.is_negative:
        return prim("min", last, at) if isinstance(at, int) else prim("min", at, last)
    if isinstance(at, int) and at <= -OPEN_BOUND:
        return least if least < 0 else prim("min", last, least)
    bounded = prim("max", as_expr(n + at, DType.I64), least)
    return bounded if least < 0 else prim("min", last, bounded)


def python_slice(n: int, start: int | None, stop: int | None, step: int) -> slice:
    """Return `range_of` as a Python slice, for references."""
    return slice(start if start is None or step > 0 else max(start, -n), stop, step)


def _is_axis(a: Dim, k: int, rank: int) -> Expr | None:
    """Return the condition that a dynamic axis `a` is dimension k; None if `a` is static."""
    return prim("or", prim("eq", a, k), prim("eq", a, k - rank)) if isinstance(a, Expr) else None


@op("opset8")
class Slice(ViewOp):
    """x[start:stop:step] along `axes`, or along the first ones; negative bounds count from the end."""

    def _parts(self, x: Operand, *bounds: Operand | None) -> tuple[list[Dim], list[Dim], list[Dim]]:
        starts, stops, steps, axes = (*bounds, None)[:4]
        assert starts is not None and stops is not None and steps is not None
        low, high, by = starts.dims("Slice: start"), stops.dims("Slice: stop"), steps.dims("Slice: step")
        where = axes.dims("Slice: axes") if axes is not None else tuple(range(len(low)))
        if not len(low) == len(high) == len(by) == len(where):
            counts = f"{len(low)}, {len(high)}, {len(by)} and {len(where)}"
            raise ShapeError(f"Slice: starts, stops, steps and axes must have equal lengths, got {counts}")
        firsts: list[Dim] = [0] * x.rank
        strides: list[Dim] = [1] * x.rank
        counts = list(x.shape)
        for a, start, stop, step in zip(where, low, high, by, strict=True):
            for k in range(x.rank) if isinstance(a, Expr) else [axis_of(a, x.rank, "Slice")]:
                here = _is_axis(a, k, x.rank)
                first, count = range_of(x.shape[k], start, stop, step, "Slice")
                for parts, value in ((firsts, first), (counts, count), (strides, step)):
                    parts[k] = value if here is None else select(here, value, parts[k])
        return firsts, counts, strides

    def conditions(self, *operands: Operand | None) -> list[Condition]:
        """Require that dynamic axes are axes of the data, and that dynamic steps are not 0."""
        x, axes = operands[0], (*operands, None)[4]
        if x is None or operands[3] is None:
            return []
        steps = [c for step in operands[3].dims("Slice: step") for c in not_zero(step)]
        if axes is None:
            return steps
        rule = f"axes are {-x.rank} to {x.rank - 1}"
        dynamic = [a for a in axes.dims("Slice: axes") if isinstance(a, Expr)]
        return [*steps, *(in_range(rule, a, -x.rank, x.rank - 1) for a in dynamic)]

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
            index[a] = python_slice(x.shape[a], int(low), int(high), int(by))
        return x[tuple(index)]


@dataclass(frozen=True, slots=True)
class _Slices:
    """The first index, step and count of each dimension of an input, and the dimensions of the output's axes.

    An axis of None is new.
    """

    firsts: list[Dim]
    steps: list[Dim]
    counts: list[Dim]
    axes: list[int | None]

    @property
    def shape(self) -> Shape:
        """Return the shape of the output."""
        return tuple(1 if d is None else self.counts[d] for d in self.axes)


@op("opset1")
class StridedSlice(ViewOp):
    """Slice as in Python with masks: an entry of 1 in `begin_mask` or `end_mask` leaves that bound open."""

    begin_mask: tuple[int, ...] = ()
    end_mask: tuple[int, ...] = ()
    new_axis_mask: tuple[int, ...] = ()
    shrink_axis_mask: tuple[int, ...] = ()
    ellipsis_mask: tuple[int, ...] = ()

    def written_out(self) -> Op:
        masks: dict[str, tuple[int, ...]] = dict(vars(self))
        size = max(map(len, masks.values()))
        return replace(self, **{name: mask + (0,) * (size - len(mask)) for name, mask in masks.items()})

    def _entries(self, rank: int, count: int) -> list[tuple[int, int]]:
        """Return (entry, dimension) for each dimension that an entry slices; new axes and the ellipsis have none."""
        new = [self._is_set(self.new_axis_mask, k) and not self._is_set(self.ellipsis_mask, k) for k in range(count)]
        dots = next((k for k in range(count) if self._is_set(self.ellipsis_mask, k)), count)
        left = [k for k in range(dots) if not new[k]]
        right = [k for k in range(dots + 1, count) if not new[k]]
        if len(left) + len(right) > rank:
            raise ShapeError(f"StridedSlice: {len(left) + len(right)} entries slice a tensor of rank {rank}")
        return [*((k, d) for d, k in enumerate(left)), *((k, rank - len(right) + d) for d, k in enumerate(right))]

    @staticmethod
    def _is_set(mask: tuple[int, ...], k: int) -> bool:
        return k < len(mask) and bool(mask[k])

    def _slices(self, x: Operand, begin: Operand, end: Operand, strides: Operand | None) -> _Slices:
        low, high = begin.dims("StridedSlice: begin"), end.dims("StridedSlice: end")
        by = strides.dims("StridedSlice: strides") if strides is not None else (1,) * len(low)
        firsts: list[Dim] = [0] * x.rank
        steps: list[Dim] = [1] * x.rank
        counts = list(x.shape)
        gone: set[int] = set()
        entries = self._entries(x.rank, len(low))
        for k, d in entries:
            if self._is_set(self.shrink_axis_mask, k):
                first, _ = range_of(x.shape[d], low[k], None, 1, "StridedSlice")
                inside = isinstance(low[k], int) or not can_be_negative(low[k])
                firsts[d] = first if inside else prim("min", as_expr(first, DType.I64), x.shape[d] - 1)
                gone.add(d)
                continue
            start = None if self._is_set(self.begin_mask, k) else low[k]
            stop = None if self._is_set(self.end_mask, k) else high[k]
            firsts[d], counts[d] = range_of(x.shape[d], start, stop, by[k], "StridedSlice")
            steps[d] = by[k]
        axes = self._axes(x.rank, len(low), entries, gone)
        return _Slices(firsts, steps, counts, axes)

    def _axes(self, rank: int, count: int, entries: list[tuple[int, int]], gone: set[int]) -> list[int | None]:
        """Return the output's axes in order: dimensions of the input, None for a new one."""
        dims = dict(entries)
        axes: list[int | None] = []
        following = 0
        for k in range(count):
            if self._is_set(self.ellipsis_mask, k):
                until = min((d for e, d in entries if e > k), default=rank)
                axes += list(range(following, until))
                following = until
            elif k in dims:
                axes += [] if dims[k] in gone else [dims[k]]
                following = dims[k] + 1
            else:
                axes.append(None)
        return [*axes, *range(following, rank)]

    def conditions(
        self, x: Operand, begin: Operand, end: Operand, strides: Operand | None = None
    ) -> Sequence[Condition]:
        """Require indices in range if index or dimension is dynamic, and dynamic steps other than 0."""
        low = begin.dims("StridedSlice: begin")
        by = strides.dims("StridedSlice: strides") if strides is not None else ()
        rules: list[Condition] = []
        for k, d in self._entries(x.rank, len(low)):
            if not self._is_set(self.shrink_axis_mask, k):
                rules += not_zero(by[k]) if k < len(by) else []
            elif not isinstance(low[k], int) or not isinstance(x.shape[d], int):
                n = x.shape[d]
                rules.append(in_range(f"an index of dimension {d} is one of {dim_text(n)}", low[k], -n, n - 1))
        return rules

    def infer(self, x: Operand, begin: Operand, end: Operand, strides: Operand | None = None) -> TensorType:
        return TensorType(x.dtype, self._slices(x, begin, end, strides).shape)

    def pieces(
        self, outs: tuple[TensorType, ...], x: Operand, begin: Operand, end: Operand, strides: Operand | None = None
    ) -> tuple[Piece, ...]:
        slices = self._slices(x, begin, end, strides)

        def index(*at: Expr) -> tuple[Expr, ...]:
            positions = {d: i for d, i in zip(slices.axes, at, strict=True) if d is not None}
            terms = enumerate(zip(slices.firsts, slices.steps, strict=True))
            return tuple(positions[k] * s + f if k in positions else as_expr(f, DType.I64) for k, (f, s) in terms)

        return (whole(outs[0], index),)

    def reference(self, x: Array, begin: Array, end: Array, strides: Array | None = None) -> Array:
        by = strides.reshape(-1) if strides is not None else np.ones(begin.size, np.int64)
        index: list[object] = []
        dims = dict(self._entries(x.ndim, begin.size))
        for k, (low, high, step) in enumerate(zip(begin.reshape(-1), end.reshape(-1), by, strict=True)):
            if self._is_set(self.ellipsis_mask, k):
                index.append(Ellipsis)
            elif self._is_set(self.new_axis_mask, k):
                index.append(None)
            elif self._is_set(self.shrink_axis_mask, k):
                index.append(int(low))
            else:
                start = None if self._is_set(self.begin_mask, k) else int(low)
                stop = None if self._is_set(self.end_mask, k) else int(high)
                index.append(python_slice(x.shape[dims[k]], start, stop, int(step)))
        return np.asarray(x[tuple(index)])  # type: ignore[index]


@op()
class Prefix(ViewOp):
    """The first `input 1` elements of x along `axis`: the filled part of an oversized tensor."""

    axis: int = 0

    def infer(self, x: Operand, count: Operand) -> TensorType:
        most = as_expr(x.shape[self.axis], DType.I64)
        number = prim("max", prim("min", as_expr(count.dims("Prefix: count")[0], DType.I64), most), 0)
        return TensorType(x.dtype, (*x.shape[: self.axis], number, *x.shape[self.axis + 1 :]))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, count: Operand) -> tuple[Piece, ...]:
        return (whole(outs[0], same),)

    def reference(self, x: Array, count: Array) -> Array:
        return np.take(x, range(int(count.reshape(-1)[0])), self.axis)
