"""Loop-invariant code motion: values equal along an axis are computed once, like sampling positions for all channels.

y[c, i, j] = x[c, f(g[i, j])] * h(g[i, j])      group over i { t0[j] = f(g[i, j])   t1[j] = h(g[i, j])
                                                               y[c, i, j] = x[c, t0[j]] * t1[j] }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import COST, typical, unravel, volume
from aot.codegen.ir.definition import LOCAL, Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables, walk
from aot.codegen.ir.index import Affine, bounds, closed, normal
from aot.codegen.ir.loops import Expr, Load, Prim, Space, Var, cast, dense
from aot.lowering.context import Context
from aot.lowering.ir.steps import Steps
from aot.runtime.abi import DType


def hoist_invariants(steps: Steps, _context: Context) -> None:
    """Replace definitions that compute much repeatedly by groups that compute it once."""
    for step in steps.steps:
        step.works = tuple(_hoisted(w) or w if isinstance(w, Definition) else w for w in step.works)


@dataclass(slots=True)
class _Shared:
    """Expressions that depend on `lane` and not on `axis`."""

    axis: Var
    lane: Var
    free: set[Load] = field(default_factory=set[Load])  # loads outside of all guards
    unguarded: dict[Expr, None] = field(default_factory=dict[Expr, None])
    guarded: dict[Expr, None] = field(default_factory=dict[Expr, None])

    def collect(self, e: Expr, guarded: bool) -> None:
        if self.axis not in variables(e):
            self.add(e, guarded)
            return
        match e:
            case Load(_, index):
                for i in index:
                    self.collect(i, guarded)
            case Prim("within", (index, bound, value, *other)):
                for x in (index, bound, *other):
                    self.collect(x, guarded)
                self.collect(value, True)
            case Prim(_, args):
                for x in args:
                    self.collect(x, guarded)
            case _:
                pass

    def add(self, e: Expr, guarded: bool) -> None:
        for x in _atoms(e):
            if self.lane in variables(x) and loads(x):
                (self.guarded if guarded else self.unguarded)[x] = None
                if not guarded:
                    self.free |= set(_unguarded(x))

    def all(self) -> list[Expr]:
        """Return the expressions that are safe to compute at any point."""
        inside = [x for x in self.guarded if x not in self.unguarded and set(loads(x)) <= self.free]
        return [x for x in (*self.unguarded, *inside) if not isinstance(x, Load)]


def _hoisted(d: Definition) -> Group | None:
    lane = d.target[-1] if d.target else None
    if d.reduction is not None or d.where or not isinstance(lane, Var) or not isinstance(lane.extent, int):
        return None
    value, best_shared, most_saved = closed(d.value, {}), None, 0
    for axis in d.axes:
        enough = axis.extent is not None and typical(axis.extent) >= COSTS.min_hoisted_iterations
        if axis != lane and enough and lane.extent >= COSTS.vector_extent:
            shared = _Shared(axis, lane)
            shared.collect(value, False)
            saved = _operations(shared.all())
            if saved > most_saved:
                best_shared, most_saved = shared, saved
    rest = () if best_shared is None else tuple(a for a in d.axes if a not in (best_shared.axis, lane))
    if best_shared is None or most_saved < COSTS.min_hoisted_operations or not rest:
        return None
    return _group(d, value, best_shared, rest)


def _group(d: Definition, value: Expr, shared: _Shared, rest: tuple[Var, ...]) -> Group | None:
    r = Var("r", volume(a.extent for a in rest if a.extent is not None))
    change, lane = unravel(rest, r), shared.lane
    assert isinstance(lane.extent, int)
    definitions: list[Definition] = []
    replacements: dict[Expr, Expr] = {}
    for e in shared.all():
        dtype = DType.I32 if e.dtype is DType.I64 and _fits_i32(e) else e.dtype
        temp = dense(f"{d.out.name}.{len(definitions)}{LOCAL}", r, lane.extent, space=Space.STACK, dtype=dtype)
        definitions.append(Definition(temp, (r, lane), rewrite(cast(e, dtype), change)))
        replacements[e] = cast(temp[r, lane], e.dtype)
    if sum(lane.extent * m.out.dtype.compute.bytes for m in definitions) > COSTS.row_temporary_bytes:
        return None
    last = rewrite(rewrite(value, replacements), change)
    index = tuple(normal(rewrite(i, change), {}).expr() for i in d.target)
    definitions.append(Definition(d.out, (r, shared.axis, lane), last, index))
    return Group("shared", (r,), tuple(m.out for m in definitions[:-1]), tuple(definitions))


def _atoms(e: Expr) -> Iterator[Expr]:
    """Yield an expression, or the terms of an i64 sum: sums are cheap, and addresses consist of them."""
    if e.dtype is not DType.I64:
        yield e
        return
    for atom in normal(e, {}).terms:
        match atom:
            case Prim("cast", (x,)) if x.dtype.is_integer and x.dtype.bits <= 32:
                yield x
            case _:
                yield atom


def _fits_i32(e: Expr) -> bool:
    low, high = bounds(Affine({e: 1}))
    return low >= -(1 << 31) and high < 1 << 31


def _unguarded(e: Expr) -> Iterator[Load]:
    match e:
        case Load(_, index):
            yield e
            for i in index:
                yield from _unguarded(i)
        case Prim("within", (index, bound, _, *other)):
            for x in (index, bound, *other):
                yield from _unguarded(x)
        case Prim(_, args):
            for x in args:
                yield from _unguarded(x)
        case _:
            pass


def _operations(roots: list[Expr]) -> int:
    return sum(COST.get(e.fn, 1) for e in walk(*roots) if isinstance(e, Prim))
