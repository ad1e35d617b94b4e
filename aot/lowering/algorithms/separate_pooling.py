"""Separable pooling: windows of a maximum or a sum as columns, then rows of their results, where that is less work.

y[h, w, c] = max[i, j](x[h + i, w + j, c])                    25 terms for 5x5
t[h, v, c] = max[i](x[h + i, v, c])                           a group over h and blocks of c: 5 terms for each v
y[h, w, c] = max[j](t[h, w + j, c])                           and 5
"""

from __future__ import annotations

from math import inf, prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import coefficient, fixed_extent, offset, unravel, volume
from aot.codegen.ir.definition import LOCAL, Definition, Group, unused_axis
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.index import Affine, normal
from aot.codegen.ir.loops import Expr, Load, Reduce, Size, Space, Var, dense
from aot.codegen.ir.traverse import Work
from aot.lowering.context import Context
from aot.lowering.fusion.substitute import simplified
from aot.lowering.ir.steps import Steps


def separate_pooling(steps: Steps, _context: Context) -> None:
    """Rewrite poolings; strides and halos are final."""
    for step in steps.steps:
        if step.schedule is None:
            step.works = tuple(map(_separated, step.works))


@dataclass(frozen=True, slots=True)
class _Slide:
    """A window that slides along dimension `dim` of its input: at axis * stride + tap * dilation + a constant."""

    dim: int
    axis: Var
    tap: Var
    index: Affine

    @property
    def place(self) -> Expr:
        """Return the index without its constant."""
        return self.axis * self.index.terms[self.axis] + self.tap * self.index.terms[self.tap]

    @property
    def reach(self) -> int:
        """Return the number of elements from the first one to the last one that all windows read."""
        return 1 + sum(
            stride * (fixed_extent(a) - 1) for a, stride in ((a, self.index.terms[a]) for a in (self.axis, self.tap))
        )


def _separated(work: Work) -> Work:
    if not isinstance(work, Definition) or work.reduction is None or work.where:
        return work
    d, r = work, work.reduction
    x = r.body
    if r.init is not None or r.fn not in ("add", "max", "min") or not isinstance(x, Load) or len(r.axes) < 2:
        return work
    slides = [s for s in (_slide(x, tap, d.axes) for tap in r.axes) if s is not None]
    if len(slides) < len(r.axes) or len({s.dim for s in slides}) < len(slides):
        return work
    *columns, row = sorted(slides, key=lambda s: _step(x, s.axis), reverse=True)
    column_step = min(_step(x, s.axis) for s in columns)
    inner = [a for a in d.axes if _step(x, a) < column_step and a is not row.axis]
    if not all(isinstance(a.extent, int) for a in (row.axis, *inner)):
        return work
    high, wide, width = prod(fixed_extent(s.tap) for s in columns), fixed_extent(row.tap), fixed_extent(row.axis)
    worth = COSTS.max_pooling_terms if r.fn == "add" or not inner else COSTS.max_pooling_lane_terms
    if high * row.reach + wide * width > worth * high * wide * width:
        return work
    return _group(d, r, x, columns, row, inner)


def _group(d: Definition, r: Reduce, x: Load, columns: list[_Slide], row: _Slide, inner: list[Var]) -> Group:
    """Group both definitions over the axes outside of a row of `x`, and over blocks of the `inner` ones."""
    down = [s.axis for s in columns]
    around = [a for a in d.axes if a not in (*inner, row.axis, *down)]
    inner_axes, block = list(inner), COSTS.line_bytes // x.buffer.dtype.stored_bytes
    change: dict[Expr, Expr] = {}
    if len(inner) == 1 and fixed_extent(inner[0]) % block == 0:
        (c,) = inner
        blocks, inner_axes = Var(f"{c.name}.block", fixed_extent(c) // block), [Var(c.name, block)]
        around.append(blocks)
        change[c] = blocks * block + inner_axes[0]
    shared = (*around, *down)
    p = Var(unused_axis("p", d), volume(_size(a) for a in shared))
    flat = unravel(shared, p)
    change = {a: rewrite(e, flat) for a, e in change.items()} | flat
    v = Var(unused_axis("v", d), row.reach)
    along = (v, *sorted(inner_axes, key=lambda a: -_step(x, a)))
    t = dense(f"t{LOCAL}", p, *map(fixed_extent, along), space=Space.ARENA, dtype=r.dtype)
    index = [rewrite(i, change) for i in x.index]
    index[row.dim] = v + row.index.const
    sums = Reduce(r.fn, tuple(s.tap for s in columns), Load(x.buffer, tuple(index)))
    first = Definition(t, (p, *along), sums, (p, *along))
    across = Reduce(r.fn, (row.tap,), Load(t, (p, row.place, *along[1:])))
    value = simplified(rewrite(rewrite(d.value, {r: across}), change))
    target = tuple(normal(rewrite(i, change), {}).expr() for i in d.target)
    return Group("window", (p,), (t,), (first, Definition(d.out, (p, row.axis, *along[1:]), value, target)))


def _slide(x: Load, tap: Var, axes: tuple[Var, ...]) -> _Slide | None:
    """Return the window over which `tap` slides with a single other axis in a single dimension; None without one."""
    dims = [k for k, i in enumerate(x.index) if tap in variables(i)]
    if len(dims) != 1 or not isinstance(tap.extent, int):  # a sum over a repeated dimension reads no index at all
        return None
    (dim,) = dims
    index = normal(x.index[dim], {})
    axis = next((a for a in axes if a in index.terms), None)
    if axis is None:
        return None
    is_window = set(index.terms) == {tap, axis} and min(index.terms.values()) > 0
    alone = all(axis not in variables(i) for k, i in enumerate(x.index) if k != dim)
    return _Slide(dim, axis, tap, index) if is_window and alone else None


def _step(x: Load, a: Var) -> float:
    """Return the elements from one point to the next."""
    index = coefficient(offset(x.buffer, x.index), a)
    return index.const if index is not None and index.is_const else inf


def _size(a: Var) -> Size:
    assert a.extent is not None
    return a.extent
