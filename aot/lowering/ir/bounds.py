"""Bounds of a size in terms of symbols known before an inference; memory is laid out for the upper bound.

min(v, n) with any v    ->  at most n            2 * v with v at most c (its capacity)    ->  at most 2 * c
v * (n // v)            ->  at most n                    v * w where v * w * z is n, not 0  ->  at most n
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import bounds, factors, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Var, prim
from aot.runtime.abi import DType

Range = tuple[Expr | None, Expr | None]  # None: unbounded
Ends = Callable[[Var], Range]


class Intervals:
    """Interval arithmetic. `late`: True for symbols not known before an inference; `ends`: their ranges.

    `facts`: expressions and their equals, by rules that are checked; an equal may be late, too.
    """

    def __init__(self, late: Callable[[Var], bool], ends: Ends, facts: Mapping[Expr, Expr]) -> None:
        self._late, self._ends, self._facts = late, ends, facts
        self._known: dict[Expr, Range] = {}

    def of(self, e: Expr) -> Range:
        if e not in self._known:
            self._known[e] = None, None  # ends the recursion if facts lead back to it
            least, most = self.of(self._facts[e]) if e in self._facts else (None, None)
            if _low(e) >= 0 > _low(least):
                least = Const(0)
            if most is None:
                self._known[e] = self._of(e)
            else:
                self._known[e] = self._of(e)[0] if least is None else least, most
        return self._known[e]

    def _of(self, e: Expr) -> Range:
        if not any(map(self._late, variables(e))):
            return e, e
        if isinstance(e, Var):
            return self._ends(e)
        if not isinstance(e, Prim):
            return None, None
        if e.dtype is DType.BOOL:
            return Const(0), Const(1)
        if e.fn == "mul":
            return self._product(_cancelled(e))
        if e.fn == "select":
            return _hull(self.of(e.args[1]), self.of(e.args[2]))
        return _RULES.get(e.fn, _unknown)(*map(self.of, e.args))

    def _product(self, parts: tuple[Expr, ...]) -> Range:
        total: Range = (Const(1), Const(1))
        if (counted := self._counted(parts)) is not None:
            parts, known = counted
            total = Const(0), known
        for part in parts:
            total = _times(total, self.of(part))
        return total

    def _counted(self, parts: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr] | None:
        """Replace two or more sizes of one tensor among the factors by the upper bound of its number of elements.

        That number is at least 1, so no size is 0, and the product of some sizes is at most that of all.
        """
        for product, count in self._facts.items():
            whole, rest = list(factors(product)), list(parts)
            for size in whole:
                if size in rest:
                    rest.remove(size)
            if len(rest) > len(parts) - 2 or any(_low(size) < 0 for size in whole):
                continue
            least, most = self.of(count)
            if most is not None and _low(least) >= 1:
                return tuple(rest), most
        return None


def _cancelled(e: Expr) -> tuple[Expr, ...]:
    """Replace d * (m // d) in the factors of a product by its upper bound m, for m and d that are not negative."""
    parts = list(factors(e))
    for part in parts:
        match part:
            case Prim("floordiv", (whole, divisor)):
                rest = [p for p in parts if p is not part]
                needed = list(factors(divisor))
                if all(rest.count(f) >= needed.count(f) for f in needed):
                    for f in needed:
                        rest.remove(f)
                    return (*rest, whole)
            case _:
                pass
    return tuple(parts)


def _low(e: Expr | None) -> float:
    return float("-inf") if e is None else bounds(normal(e, {}))[0]


def _both(fn: str, a: Expr | None, b: Expr | None) -> Expr | None:
    return None if a is None or b is None else normal(prim(fn, a, b), {}).expr()


def _either(fn: str, a: Expr | None, b: Expr | None) -> Expr | None:
    return b if a is None else a if b is None else _both(fn, a, b)


def _hull(a: Range, b: Range) -> Range:
    return _both("min", a[0], b[0]), _both("max", a[1], b[1])


def _times(a: Range, b: Range) -> Range:
    if _low(a[0]) >= 0 and _low(b[0]) >= 0:
        return _both("mul", a[0], b[0]), _both("mul", a[1], b[1])
    ends = [_both("mul", x, y) for x in a for y in b]
    low: Expr | None = ends[0]
    high: Expr | None = ends[0]
    for end in ends[1:]:
        low, high = _both("min", low, end), _both("max", high, end)
    return low, high


def _quotient(a: Range, b: Range) -> Range:
    """Return the range of a floor division.

    A divisor below 1 may change the sign, but does not increase the magnitude.
    """
    if _low(a[0]) >= 0 and _low(b[0]) >= 0:
        return Const(0), _both("floordiv", a[1], b[0]) if _low(b[0]) >= 1 else a[1]
    size = _both("max", a[1], _both("sub", Const(0), a[0]))
    return _both("sub", Const(-1), size), _both("add", size, Const(1))


def _remainder(a: Range, b: Range) -> Range:
    if _low(b[0]) < 1:
        return None, None
    return Const(0), _either("min", _both("sub", b[1], Const(1)), a[1] if _low(a[0]) >= 0 else None)


def _unknown(*parts: Range) -> Range:
    return None, None


def _sum(a: Range, b: Range) -> Range:
    return _both("add", a[0], b[0]), _both("add", a[1], b[1])


def _difference(a: Range, b: Range) -> Range:
    return _both("sub", a[0], b[1]), _both("sub", a[1], b[0])


def _negative(a: Range) -> Range:
    return _difference((Const(0), Const(0)), a)


def _minimum(a: Range, b: Range) -> Range:
    return _both("min", a[0], b[0]), _either("min", a[1], b[1])


def _maximum(a: Range, b: Range) -> Range:
    return _either("max", a[0], b[0]), _both("max", a[1], b[1])


def _same(a: Range) -> Range:
    return a


_RULES: dict[str, Callable[..., Range]] = {
    "add": _sum,
    "sub": _difference,
    "neg": _negative,
    "min": _minimum,
    "max": _maximum,
    "floordiv": _quotient,
    "mod": _remainder,
    "cast": _same,
}
