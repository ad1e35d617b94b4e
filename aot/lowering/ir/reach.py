"""Distance by which an index can exceed a dimension at any size: a constant, or unknown.

oh * 2 + kh - 1 - (h - 1)   with oh < (h + 1) // 2, kh < 3      <=  2 * ((h + 1) // 2) - h  <=  1
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, inf

from aot.codegen.ir.index import Affine, atom_bounds, bounds, factors, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var
from aot.lowering.ir.symbolic_sizes import Sizes


def before(index: Expr) -> int | None:
    """Return the most points that `index` can lie before the first element; None if there is no limit."""
    low, _ = bounds(_without_rests(normal(index, {}), False))
    return None if low == -inf else max(0, -int(low))


def after(index: Expr, extent: Size, sizes: Sizes, symbols: tuple[Var, ...]) -> int | None:
    """Return by how many elements `index` can exceed its dimension; None if there is no bound."""
    high = bounds(normal(index, {}))[1]
    if isinstance(extent, int) and high < inf:
        return max(0, int(high) - extent + 1)
    end = last(index, sizes, symbols) or last(_loose(normal(index, {})).expr(), sizes, symbols)
    if end is None:
        return None
    forms = [extent] if isinstance(extent, int) else sizes.alike(extent)
    ends = [_quotient_bound(_over_quotients(normal(sizes.written_out(end) - form, {}))) for form in forms]
    return min((max(0, n + 1) for n in ends if n is not None), default=None)


def _loose(a: Affine) -> Affine:
    """Return an upper bound: quotients of axes with constant extents become their greatest value."""
    total = Affine({}, a.const)
    for atom, c in _without_rests(a, True).terms.items():
        low, high = atom_bounds(atom)
        end = high if c > 0 else low
        total = total.plus(Affine({atom: c}) if isinstance(atom, Var) or abs(end) == inf else Affine({}, c * int(end)))
    return total


def last(index: Expr, sizes: Sizes, symbols: tuple[Var, ...]) -> Expr | None:
    """Return the tight upper bound of `index`, which it reaches at the ends of all axes; None if it is unknown."""
    return _last(_without_rests(normal(index, {}), True), lambda v: v in sizes.meaning or v in symbols)


def _without_rests(a: Affine, top: bool) -> Affine:
    """Replace remainders in `a` by a bound: x - m * (x // m) is m - 1 at most, and at least 0."""
    while (
        match := next((r for t, c in a.terms.items() if (r := _match_remainder(t, c)) is not None), None)
    ) is not None:
        whole, x, m, times = match
        end = normal(m - 1, {}).times(times) if top else Affine({})
        a = a.plus(Affine({whole: a.terms[whole]}), -1).plus(normal(x, {}).times(times), -1).plus(end)
    return a


def _match_remainder(term: Expr, c: int) -> tuple[Expr, Expr, Expr, int] | None:
    """Match c * term = -k * m * (x // m) for positive k; return the term, x, m and k."""
    parts = list(factors(term))
    for part in parts if c < 0 else ():
        match part:
            case Prim("floordiv", (x, Const(n))) if len(parts) == 1 and n > 0 and c % int(n) == 0:
                return term, x, Const(n), -c // int(n)
            case Prim("floordiv", (x, m)) if sorted(map(repr, factors(m))) == sorted(
                repr(p) for p in parts if p is not part
            ):
                return term, x, m, -c
            case _:
                pass
    return None


def _last(a: Affine, is_size: Callable[[Var], bool]) -> Expr | None:
    """Return the value of `a` where all axes are at their ends: an upper bound in sizes."""
    total: Expr = Const(a.const)
    for atom, c in a.terms.items():
        end = _end(atom, c > 0, is_size)
        if end is None:
            return None
        total = total + end * c
    return total


def _end(atom: Expr, top: bool, is_size: Callable[[Var], bool]) -> Expr | None:
    match atom:
        case Var() if is_size(atom):
            return atom
        case Var(_, extent, low):
            return Const(low) if not top else None if extent is None else Const(-1) + extent
        case Prim("floordiv", (a, Const(n))) if n > 0 and top:
            inner = _last(normal(a, {}), is_size)
            return None if inner is None else inner // int(n)
        case _:
            return None


def _over_quotients(a: Affine) -> Affine:
    """Rewrite quotients over subtracted ones of smaller divisors: (x + 3) // 4 = ((x + 1) // 2 + 1) // 2."""
    for k, whole in enumerate([t for t, c in a.terms.items() if c < 0 and _divisor(t) > 1]):
        name, (x, m) = Var(f"quotient{k}", None, -(1 << 62)), _parts(whole)
        total = Affine({}, a.const)
        for t, c in a.terms.items():
            if t == whole:
                total = total.plus(Affine({name: c}))
                continue
            if (n := _divisor(t)) and n % m == 0:
                y, _ = _parts(t)
                ahead = normal(y - x, {})
                if ahead.is_const and ahead.const % m == 0:
                    t = (name + ahead.const // m) // (n // m)
            total = total.plus(normal(t, {}).times(c))
        a = total
    return a


def _parts(quotient: Expr) -> tuple[Expr, int]:
    assert isinstance(quotient, Prim)
    return quotient.args[0], _divisor(quotient)


def _quotient_bound(a: Affine) -> int | None:
    """Return an upper bound, by c * (x // m) <= c / g * (x // (m / g)) with g = gcd(c, m), for positive c."""
    while True:
        terms = ((t, c) for t, c in a.terms.items() if c > 0 and _divisor(t) > 1)
        common = next(((t, c) for t, c in terms if gcd(c, _divisor(t)) > 1), None)
        if common is None:
            break
        term, c = common
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
