"""The points of one tile: unrolled loops, the vector axis innermost, each index named where it becomes known.

unrolled p.t in 6:
  let p = p.o * 6 + p.t
  vector oc.t in 16 by 8:
    let oc = oc.o * 16 + oc.t
    ...
"""

from __future__ import annotations

from copy import copy

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    LoopKind,
    Prefetch,
    Size,
    Space,
    Stmt,
    Store,
    TileOp,
    Var,
    While,
    dense,
)
from aot.codegen.ir.schedule import Schedule, ScheduleError
from aot.codegen.ir.traverse import tile_expressions
from aot.runtime.abi import DType

Stmts = tuple[Stmt, ...]
Lets = list[tuple[Var, Expr]]


@dataclass(frozen=True, slots=True)
class Span:
    """Part of an axis: `extent` points from `start`. `lengths`: two numbers of which `extent` is one, if known."""

    start: Expr
    extent: Size
    lengths: tuple[int, int] | None = None


Spans = dict[Var, Span]


class Points:
    """All points of a tile of the output axes."""

    def __init__(self, axes: tuple[Var, ...], spans: Spans, lets: Lets, schedule: Schedule) -> None:
        self.spans, self.lets = spans, lets
        self.lanes = schedule.lanes[1] if schedule.lanes else 1
        self.vector = next((a for a in axes if schedule.lanes and a.name == schedule.lanes[0]), None)
        wide = [a for a in axes if spans[a].extent != 1 and a is not self.vector]
        self.axes = [*wide, *([self.vector] if self.vector else [])]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.extent(a) for a in self.axes) or (1,)

    @property
    def cell(self) -> tuple[Expr, ...]:
        """Return the index of the point in a register buffer of `shape`."""
        return tuple(map(self.point, self.axes)) or (Const(0),)

    def extent(self, axis: Var) -> int:
        extent = self.spans[axis].extent
        if not isinstance(extent, int):
            raise ScheduleError(f"{axis.name}: a tile has a static size, got {extent}")
        return extent

    def accumulator(self, name: str, dtype: DType, *more: int) -> Buffer:
        return dense(name, *self.shape, *more, space=Space.REGISTERS, dtype=dtype)

    def point(self, axis: Var) -> Var:
        return Var(f"{axis.name}.t", self.spans[axis].extent)

    def each(self, stmts: Stmts, extra: Spans | None = None, looped: Var | None = None) -> Stmts:
        """Build loops that run `stmts` for every point, all unrolled but that over the axis `looped`.

        `extra`: the current tiles of the reduction axes.
        """
        lets, used = self.values(extra or {}), free(stmts)
        for axis in reversed(self.axes):
            point = self.point(axis)
            ready = depending(lets, point)
            stmts, used = _bound(stmts, used, ready)
            lets = [x for x in lets if x not in ready]
            kind = LoopKind.VECTOR if axis is self.vector else LoopKind.SERIAL if axis is looped else LoopKind.UNROLLED
            loop = For(point, stmts, kind, self.lanes if axis is self.vector else 1)
            stmts, used = (loop,), _around(used, point)
        return _bound(stmts, used, lets)[0]

    def lanes_from(self, first: Expr, count: int) -> Points:
        """Return the points of `count` lanes, from the lane `first` of the tile on."""
        assert self.vector is not None
        some = copy(self)
        some.spans = {**self.spans, self.vector: Span(self.spans[self.vector].start + first, count)}
        return some

    def values(self, extra: Spans) -> Lets:
        """Return the value of each original axis; axes that depend on others come first."""
        lets = list(self.lets)
        for axis, span in (self.spans | extra).items():
            value = span.start
            if axis in extra:
                value = value if span.extent == 1 else value + Var(f"{axis.name}.u", span.extent)
            elif axis in self.axes:
                value = value + self.point(axis)
            if value != axis:
                lets.append((axis, value))
        return lets


def unrolled(stmts: Stmts, axes: tuple[Var, ...], inner: Spans) -> Stmts:
    """Write out the iterations of a tile along the axes of a sum."""
    for axis in reversed(axes):
        if inner[axis].extent != 1:
            stmts = (For(Var(f"{axis.name}.u", inner[axis].extent), stmts, LoopKind.UNROLLED),)
    return stmts


def bound(stmts: Stmts, lets: Lets) -> Stmts:
    """Wrap `stmts` in the lets that they read."""
    return _bound(stmts, free(stmts), lets)[0]


def _bound(stmts: Stmts, used: frozenset[Var], lets: Lets) -> tuple[Stmts, frozenset[Var]]:
    """Wrap `stmts`, which read `used`, in the lets that they read. Return the variables that the result reads, too."""
    for axis, value in lets:
        if axis in used:
            stmts = (Let(axis, value, stmts),)
            used = (used - {axis}) | variables(value)
    return stmts, used


def depending(lets: Lets, var: Var) -> Lets:
    """Return the lets that read `var`, directly or through another let."""
    moving = {var}
    for axis, value in reversed(lets):
        if variables(value) & moving:
            moving.add(axis)
    return [x for x in lets if x[0] in moving]


def free(stmts: Stmts) -> frozenset[Var]:
    """Return the variables that are read and not bound inside."""
    axes: frozenset[Var] = frozenset()
    for s in stmts:
        match s:
            case Store(_, index, value):
                axes |= variables(*index, value)
            case Prefetch(_, index):
                axes |= variables(*index)
            case TileOp():
                axes |= variables(*tile_expressions(s))
            case If(condition, body, otherwise):
                axes |= variables(condition) | free(body) | free(otherwise)
            case While(condition, body):
                axes |= variables(condition) | free(body)
            case Let(var, value, body):
                axes |= variables(value) | (free(body) - {var})
            case For(var, body):
                axes |= _around(free(body), var)
            case Alloc(_, body):
                axes |= free(body)
    return axes


def _around(used: frozenset[Var], var: Var) -> frozenset[Var]:
    """Return the variables that the loop over `var` reads, whose body reads `used`."""
    inside = used - {var}
    return inside if var.extent is None or isinstance(var.extent, int) else inside | variables(var.extent)


def size_of(extent: Size | None) -> Size:
    """Return the extent of a loop, which has one."""
    assert extent is not None
    return extent
