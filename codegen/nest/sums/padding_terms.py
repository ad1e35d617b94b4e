"""Padding terms of a reduction: they read outside of an operand, do not change the result and can be skipped.

    y[h] = add[k](x[h + 6 k - 6] * w[k])      for k:  if 0 <= h + 6 k - 6 < n:  y[h] += x[h + 6 k - 6] * w[k]

These terms read a halo, or `within` guards them. Where all points of a tile have the same index, one check for the
tile replaces `within`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, rewrite, variables, walk
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Const, Expr, If, Load, Prim, Reduce, Var, as_expr, prim
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.nest.points import Points, Spans, Stmts, depending
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class PaddingTerms:
    """Padding of a dimension: terms count only where 0 <= `index` < `extent`; its one reduction axis is `axis`."""

    axis: Var
    index: Expr
    extent: int
    test: Prim | None = None  # the `within` that guards the terms; None: a halo


def padding_terms(d: Definition) -> tuple[PaddingTerms, ...]:
    """Return the padding of the reduction with terms that can be skipped; none if that would change the result."""
    r = d.reduction
    terms = () if r is None else (*_tested_terms(r), *_halos(r))
    return tuple({(b.axis, normal(b.index, {}).key, b.extent): b for b in reversed(terms)}.values())[::-1]


def _halos(r: Reduce) -> Iterator[PaddingTerms]:
    for x in loads(r.body):
        for i, n in zip(x.index, x.buffer.shape, strict=True) if _is_neutral(r, x) else ():
            axes = variables(i) & set(r.axes)
            low, high = bounds(normal(i, {}))
            if len(axes) == 1 and isinstance(n, int) and (low < 0 or high >= n):
                yield PaddingTerms(next(iter(axes)), i, n)


def _tested_terms(r: Reduce) -> Iterator[PaddingTerms]:
    for e in walk(r.body) if r.fn in ("add", CHAINS) else ():
        match e:
            case Prim("within", (i, Const(int(n)), _, *other)) if not other or other[0] == Const(0.0, e.dtype):
                axes = variables(i) & set(r.axes)
                if len(axes) == 1 and _vanishes(r.body, e):
                    yield PaddingTerms(next(iter(axes)), i, n, e)
            case _:
                pass


def without_hoisted_tests(r: Reduce, passed: Iterable[PaddingTerms], points: Points) -> Reduce:
    """Drop each `within` of `passed` that has one value at all points of the tile: `skip_padding_terms` tests it."""
    moving = {*points.axes, *(a for v in points.axes for a, _ in depending(points.lets, v))}
    sure: dict[Expr, Expr] = {}
    for b in passed:
        if b.test is not None and variables(b.index).isdisjoint(moving) and _ends(b.index, points, {}) is not None:
            sure[b.test] = b.test.args[2]

    def change(e: Expr) -> Expr | None:
        return rewrite(sure[e], change) if e in sure else None

    return r if not sure else replace(r, body=rewrite(r.body, change))


def _is_neutral(r: Reduce, x: Load) -> bool:
    """True if a term does not change the result where `x` has the value of its halo."""
    match r.fn:
        case "add" | "chains":
            return x.buffer.halo == 0 and _vanishes(r.body, x)
        case "max":
            return x.buffer.halo == -inf and r.body == x
        case "min":
            return x.buffer.halo == inf and r.body == x
        case _:
            return False


def _vanishes(e: Expr, x: Expr) -> bool:
    """True if `e` is 0 wherever `x` is 0."""
    if e == x:
        return True
    if isinstance(e, Prim) and e.fn == "within" and (len(e.args) == 3 or e.args[3] == Const(0.0, e.dtype)):
        return _vanishes(e.args[2], x)
    return isinstance(e, Prim) and e.fn in ("mul", "cast") and any(_vanishes(a, x) for a in e.args)


def skip_padding_terms(border: PaddingTerms, points: Points, inner: Spans, stmts: Stmts) -> Stmts:
    """Skip `stmts` if no point of the tile reads inside; `inner`: the current tiles of the reduction axes."""
    ends = _ends(border.index, points, inner)
    if ends is None:
        return stmts
    first, last = ends
    if bounds(normal(first, {}))[1] >= border.extent:
        stmts = (If(prim("lt", first, Const(border.extent)), stmts),)
    if bounds(normal(last, {}))[0] < 0:
        stmts = (If(prim("ge", last, Const(0)), stmts),)
    return stmts


def _ends(index: Expr, points: Points, inner: Spans) -> tuple[Expr, Expr] | None:
    """Return `index` at the first and last point of the tile; None if these may not be its least and greatest value."""
    lets, moving = dict(points.lets), set(points.axes)
    for a, c in normal(index, {}).terms.items():
        if c < 0 or not isinstance(a, Var):
            return None
        turns = any(isinstance(e, Prim) and e.fn == "mod" for e in walk(lets[a])) if a in lets else False
        if turns and variables(lets[a]) & moving:
            return None

    def at(starts: dict[Expr, Expr]) -> Expr:
        known = starts | {a: s.start for a, s in inner.items()}
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        return rewrite(index, known)

    spans = points.spans.items()
    return at({a: s.start for a, s in spans}), at({a: s.start + as_expr(s.extent, DType.I64) - 1 for a, s in spans})
