"""How far an index can lie outside of a dimension, at any size: constants, or nothing.

    oh * 2 + kh - 1 - (h - 1)   with oh < (h + 1) // 2, kh < 3      <=  2 * ((h + 1) // 2) - h  <=  1
"""

from __future__ import annotations

from math import gcd, inf

from aot.lowering.sizes import Sizes
from codegen.index import Affine, bounds, normal
from codegen.loops import Const, Expr, Prim, Size, Var


def before(index: Expr) -> int | None:
    """The most points that `index` can lie before the first element; None if there is no limit."""
    low, _ = bounds(normal(index, {}))
    return None if low == -inf else max(0, -int(low))


def after(index: Expr, extent: Size, sizes: Sizes, symbols: tuple[Var, ...]) -> int | None:
    """The most points that `index` can lie behind the last element of a dimension; None if there is no limit."""
    high = bounds(normal(index, {}))[1]
    if isinstance(extent, int) and high < inf:
        return max(0, int(high) - extent + 1)
    last = _last(normal(index, {}), frozenset((*symbols, *sizes.meaning)))
    if last is None:
        return None
    past = normal(sizes.written_out(last) - (extent if isinstance(extent, int) else sizes.written_out(extent)), {})
    most = _most(past)
    return None if most is None else max(0, most + 1)


def _last(a: Affine, sizes: frozenset[Var]) -> Expr | None:
    """`a` where all axes are at their ends: an expression of sizes that is not below it."""
    total: Expr = Const(a.const)
    for atom, c in a.terms.items():
        end = _end(atom, c > 0, sizes)
        if end is None:
            return None
        total = total + end * c
    return total


def _end(atom: Expr, top: bool, sizes: frozenset[Var]) -> Expr | None:
    match atom:
        case Var() if atom in sizes:
            return atom
        case Var(_, extent, low):
            return Const(low) if not top else None if extent is None else Const(-1) + extent
        case Prim("floordiv", (a, Const(n))) if n > 0 and top:
            inner = _last(normal(a, {}), sizes)
            return None if inner is None else inner // int(n)
        case _:
            return None


def _most(a: Affine) -> int | None:
    """An upper bound, by c * (x // m) <= c / g * (x // (m / g)) with g = gcd(c, m), for positive c."""
    while True:
        terms = ((t, c) for t, c in a.terms.items() if c > 0 and _divisor(t) > 1)
        found = next(((t, c) for t, c in terms if gcd(c, _divisor(t)) > 1), None)
        if found is None:
            break
        term, c = found
        g, m = gcd(c, _divisor(term)), _divisor(term)
        assert isinstance(term, Prim)
        part = normal(term.args[0] // (m // g), {})
        a = a.plus(Affine({term: c}), -1).plus(part.times(c // g))
    high = bounds(a)[1]
    return None if high == inf else int(high)


def _divisor(term: Expr) -> int:
    match term:
        case Prim("floordiv", (_, Const(n))):
            return int(n)
        case _:
            return 0
