"""Proofs that affine expressions are not negative: intervals, ends of loops, cases of min and max, and linear facts.

y[i, j] = x[i * m + j] for i in n, j in m, x of n * m elements:
    n m - 1 - (i m + j)   >=   n m - 1 - i m - (m - 1)   >=   n m - (n - 1) m - m   =   0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from math import gcd, inf

from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import Affine, Key, bounds, exactly, factors, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var, as_expr, prim
from aot.runtime.abi import DType

MAX_DEPTH = 14  # substitutions one after another
MAX_GOALS = 40  # goals that a proof may visit
ZERO = exactly(0)


Goals = list[tuple["Facts", Affine]]
Either = tuple[tuple[Affine, ...], tuple[Affine, ...]]


class Facts:
    """Facts that hold at one place: affine expressions that are not negative there, and loops around it.

    `meaning`: values of named sizes, which `shortest` writes in the form that sizes in facts have. `either`: pairs of
    sets of facts, one of which holds.
    """

    def __init__(
        self,
        meaning: Mapping[Var, Expr],
        facts: Iterable[Affine] = (),
        either: Iterable[Either] = (),
        axes: tuple[Var, ...] = (),
        parent: Facts | None = None,
        shortest: Callable[[Expr], Expr] | None = None,
    ) -> None:
        self.meaning = meaning
        self._shortest = parent._shortest if parent else shortest
        self._written: dict[Expr, Expr] = parent._written if parent else {}
        self._left: list[int] = parent._left if parent else [0, 0]  # goals that a proof may visit; 1: sizes written out
        self.either = (*(parent.either if parent else ()), *either)
        self.axes = tuple(dict.fromkeys((*(parent.axes if parent else ()), *axes)))
        self.are_contrary = parent is not None and parent.are_contrary  # the place is never reached
        self._results: dict[Key, bool] = {}
        self._inner: dict[object, Facts] = {}
        self._lows: dict[Expr, float] = dict(parent._lows) if parent else {}
        self._ends: dict[frozenset[tuple[Expr, int]], int] = dict(parent._ends) if parent else {}
        self._about: dict[Expr, tuple[Affine, ...]] = dict(parent._about) if parent else {}
        for f in facts:
            self._learn(f)
            self._learn(self.written(f))

    def _learn(self, f: Affine) -> None:
        """Add a fact, over its common factor: 2 n >= 1 is n >= 1."""
        if not f.terms:
            self.are_contrary |= f.const < 0
            return
        g = gcd(*f.terms.values())
        f = f if g == 1 else Affine({t: c // g for t, c in f.terms.items()}, f.const // g)
        terms = frozenset(f.terms.items())
        if self._ends.get(terms, inf) <= f.const:
            return
        self._ends[terms] = f.const
        opposite = self._ends.get(frozenset((t, -c) for t, c in terms), inf)
        self.are_contrary |= opposite + f.const < 0 or bounds(f)[1] < 0
        for atom in f.terms:
            self._about[atom] = (*self._about.get(atom, ()), f)
        if len(f.terms) == 1 and next(iter(f.terms.values())) > 0:
            self._learn_low(next(iter(f.terms)), -f.const)

    def _learn_low(self, atom: Expr, least: int) -> None:
        """Note the least value of an atom: a product of sizes that is not 0 has no factor that is."""
        self._lows[atom] = max(self._lows.get(atom, -inf), least)
        parts = factors(atom)
        if least >= 1 and len(parts) > 1 and all(bounds(Affine({p: 1}))[0] >= 0 for p in parts):
            for p in parts:
                self._learn(normal(p, {}).plus(exactly(-1)))
        match atom:
            case Prim("floordiv", (x, Const(n))) if n > 0:
                self._learn(normal(x - int(n) * least, {}))
            case _:
                pass

    def written(self, a: Affine) -> Affine:
        """Write a sum over sizes that have no meaning of their own."""
        if not self.meaning or self.meaning.keys().isdisjoint(v for t in a.terms for v in variables(t)):
            return a
        e = a.expr()
        if e not in self._written:
            found = e
            while any(v in self.meaning for v in variables(found)):
                found = rewrite(found, self._meaning_of)
            self._written[e] = self._shortest(found) if self._shortest is not None else found
        return normal(self._written[e], {})

    def _meaning_of(self, e: Expr) -> Expr | None:
        return self.meaning.get(e) if isinstance(e, Var) else None

    def inside(self, *axes: Var) -> Facts:
        """Return the facts inside of loops: each of them has an iteration there."""
        if not axes:
            return self
        if axes not in self._inner:
            self._inner[axes] = Facts(self.meaning, [f for a in axes for f in _some(a)], (), axes, self)
        return self._inner[axes]

    def where(self, *facts: Affine) -> Facts:
        """Return these facts and further ones."""
        if not facts:
            return self
        key = tuple(f.key for f in facts)
        if key not in self._inner:
            self._inner[key] = Facts(self.meaning, facts, (), (), self)
        return self._inner[key]

    def proves(self, goal: Affine) -> bool:
        """True if `goal` is shown not to be negative; False if no proof is found."""
        if bounds(goal)[0] >= 0 or self.are_contrary:
            return True
        if self._search(goal, False):
            return True
        for k, sides in enumerate(self.either):
            if sides[1][0].terms.keys() <= goal.terms.keys():
                return all(self._without(k, side).proves(goal) for side in sides)
        return self._search(self.written(goal), True)

    def _search(self, goal: Affine, is_written: bool) -> bool:
        if self._left[1] != is_written:
            self._results.clear()
        self._left[:] = MAX_GOALS, is_written
        return self._holds(goal, MAX_DEPTH)

    def _holds(self, goal: Affine, depth: int) -> bool:
        if bounds(goal)[0] >= 0:
            return True
        found = self._results.get(goal.key)
        if found is not None:
            return found
        if depth <= 0 or self._left[0] <= 0:
            return False
        self._left[0] -= 1
        self._results[goal.key] = False  # ends the recursion if a fact leads back to it
        found = (
            self._is_known(goal)
            or self.are_contrary
            or any(self._all(goals, depth) for goals in self._ways(goal, depth))
        )
        if found or (self._left[0] > 0 and depth > 4):
            self._results[goal.key] = found
        else:
            self._results.pop(goal.key)
        return found

    def _all(self, goals: Goals, depth: int) -> bool:
        return all(facts._holds(goal, depth - 1) for facts, goal in goals)

    def _is_known(self, goal: Affine) -> bool:
        atom = next(iter(goal.terms), None)
        return any(bounds(goal.plus(f, -1))[0] >= 0 for f in self._about.get(atom, ())) if atom is not None else False

    def _ways(self, goal: Affine, depth: int) -> Iterator[Goals]:
        """Yield sets of goals, from each of which `goal` follows."""
        axis = next((a for a in reversed(self.axes) if _occurs(a, goal)), None)
        if axis is not None and (ends := self._at_ends(goal, axis, depth)) is not None:
            yield [(self, g) for g in ends]
        yield from self._cases(goal, depth)
        yield from self._over_quotients(goal, depth)
        yield from self._by_facts(goal)
        if not self._left[1] and any(v in self.meaning for v in variables(goal.expr())):
            yield [(self, normal(rewrite(goal.expr(), self._meaning_of), {}))]
        for v in sorted(_plain(goal), key=lambda v: not isinstance(v.extent, int)):
            if v not in self.axes and (ends := self._at_ends(goal, v, depth)) is not None:
                yield [(self, g) for g in ends]

    def _without(self, k: int, side: tuple[Affine, ...]) -> Facts:
        key = k, tuple(f.key for f in side)
        if key not in self._inner:
            made = self._inner[key] = Facts(self.meaning, side, (), (), self)
            made.either = (*self.either[:k], *self.either[k + 1 :])
        return self._inner[key]

    def _at_ends(self, goal: Affine, v: Var, depth: int) -> list[Affine] | None:
        """Return the goal with `v` at the end of its range where it is least, or at both; None if that is not known."""
        factor, nested = _coefficient(goal, v)
        if factor is None:
            return None
        way = 0
        if nested:
            ways = {_direction(atom, v, self) * (1 if c > 0 else -1) for atom, c in nested.items()}
            if factor.key != ZERO.key:
                ways.add(1 if self._holds(factor, depth - 4) else -1 if self._holds(factor.times(-1), depth - 4) else 0)
            if len(ways) > 1 or 0 in ways:
                return None
            (way,) = ways
        elif bounds(factor)[0] >= 0 or self._holds(factor, depth - 4):
            way = 1
        elif bounds(factor)[1] <= 0 or self._holds(factor.times(-1), depth - 4):
            way = -1
        low, top = self._low(v), self._top(v)
        ends = [end for end, sides in ((low, (1, 0)), (top, (-1, 0))) if way in sides]
        if any(e is None for e in ends):
            return None
        return [_replaced(goal, v, e) for e in ends if e is not None]

    def _low(self, v: Var) -> Expr | None:
        low = max(v.low, self._lows.get(v, -inf))
        return Const(int(low)) if low > -(1 << 62) else None

    def _top(self, v: Var) -> Expr | None:
        if v.extent is None:
            return None
        end = normal(as_expr(v.extent, DType.I64) - 1, {})
        return (self.written(end) if self._left[1] else end).expr()

    def _cases(self, goal: Affine, depth: int) -> Iterator[Goals]:
        """Replace a minimum, maximum or choice by its operands: by all, or by one where each bounds the goal."""
        for atom, c in goal.terms.items():
            parts = factors(atom)
            for k, part in enumerate(parts):
                if not isinstance(part, Prim) or part.fn not in ("min", "max", "select") or part.dtype is not DType.I64:
                    continue
                others = [p for i, p in enumerate(parts) if i != k]
                if not all(self._holds(normal(p, {}), depth - 2) for p in others):
                    continue
                rest = goal.plus(Affine({atom: c}), -1)
                each = [_scaled(p, others, c, rest) for p in part.args[-2:]]
                if part.fn == "select":
                    yes, no = conditions(part.args[0], True), conditions(part.args[0], False)
                    yield [(self.where(*yes), each[0]), (self.where(*no), each[1])]
                elif (part.fn == "min") == (c > 0):
                    a, b = (normal(p, {}) for p in part.args)
                    gap = b.plus(a, -1) if part.fn == "min" else a.plus(b, -1)
                    yield [(self.where(gap), each[0]), (self.where(gap.times(-1)), each[1])]
                    return
                else:
                    for one in each:
                        yield [(self, one)]
                    a, b = part.args  # the larger one is at least their mean
                    odd = exactly(0 if others or abs(c) > 1 else 1)
                    yield [(self, _scaled(a + b, others, c, rest.times(2)).plus(odd))]
                return

    def _by_facts(self, goal: Affine) -> Iterator[Goals]:
        """Subtract multiples of facts that cancel a term."""
        for atom, c in goal.terms.items():
            for f in self._about.get(atom, ()):
                d = f.terms[atom]
                if c * d > 0:
                    g = gcd(c, d)
                    yield [(self, goal.times(abs(d) // g).plus(f, -(abs(c) // g)))]

    def _over_quotients(self, goal: Affine, depth: int) -> Iterator[Goals]:
        """Replace x // m by a bound: x - m + 1 <= m (x // m) <= x."""
        for atom, c in goal.terms.items():
            parts = factors(atom)
            for k, part in enumerate(parts):
                if not isinstance(part, Prim) or part.fn != "floordiv":
                    continue
                others = [p for i, p in enumerate(parts) if i != k]
                yield from self._over_quotient(goal, atom, c, part, others, depth)

    def _over_quotient(
        self, goal: Affine, atom: Expr, c: int, part: Prim, others: list[Expr], depth: int
    ) -> Iterator[Goals]:
        x, m = part.args
        rest = goal.plus(Affine({atom: c}), -1)
        if not all(self._holds(normal(p, {}), depth - 2) for p in others):
            return
        divisor = normal(m, {}).plus(exactly(-1))
        if not others and c in (1, -1):  # q <= u where x < m (u + 1), q >= l where x >= m l
            scaled = normal(m, {}) if c < 0 else ZERO
            product = normal(prim("mul", m, rest.expr()), {})
            goal = (
                product.plus(scaled).plus(exactly(-1)).plus(normal(x, {}), -1) if c < 0 else product.plus(normal(x, {}))
            )
            yield [(self, divisor), (self, goal)]
            return
        if isinstance(m, Const):
            n = int(m.value)
            if n > 0:
                g = gcd(c, n)
                bound = x if c < 0 else x - (n - 1)
                yield [(self, _scaled(bound, others, c // g, rest.times(n // g)))]
            return
        needed, left = list(factors(m)), list(others)
        for f in needed:
            if f not in left:
                break
            left.remove(f)
        else:
            bound = x if c < 0 else x - m + 1
            yield [(self, divisor), (self, _scaled(bound, left, c, rest))]
        if c < 0 and self._holds(normal(x, {}), depth - 2) and self._holds(normal(m, {}), depth - 2):
            yield [(self, _scaled(x, others, c, rest))]


def _some(axis: Var) -> list[Affine]:
    """Return the facts that a loop has an iteration, and that no factor of its extent is 0."""
    extent = normal(as_expr(1 if axis.extent is None else axis.extent, DType.I64), {})
    found = [extent.plus(exactly(-1 - axis.low))]
    match axis.extent:
        case Prim("select", (condition, _, Const(n))) if n <= axis.low:
            found += [f for f in conditions(condition, True) if not loads(f.expr())]  # what is loaded can change
        case _:
            pass
    if axis.low == 0 and len(extent.terms) == 1 and extent.const == 0:
        parts = factors(next(iter(extent.terms)))
        if all(bounds(Affine({p: 1}))[0] >= 0 for p in parts):
            found += [normal(p, {}).plus(exactly(-1)) for p in parts]
    return found


def _occurs(v: Var, a: Affine) -> bool:
    return any(v is atom or v in variables(atom) for atom in a.terms)


def _plain(a: Affine) -> list[Var]:
    """Return the variables that are factors of terms."""
    return list(dict.fromkeys(f for atom in a.terms for f in factors(atom) if isinstance(f, Var)))


def _coefficient(a: Affine, v: Var) -> tuple[Affine | None, dict[Expr, int]]:
    """Return the factor of `v` in a sum, and the terms that have `v` inside of other functions; None for a power."""
    total, nested = Affine({}), dict[Expr, int]()
    for atom, c in a.terms.items():
        if v not in variables(atom):
            continue
        parts = factors(atom)
        others = [p for p in parts if p != v]
        if len(others) == len(parts):
            nested[atom] = c
        elif len(others) < len(parts) - 1 or any(v in variables(p) for p in others):
            return None, nested
        else:
            total = total.plus(normal(reduce(lambda p, q: prim("mul", p, q), others, Const(1)), {}), c)
    return total, nested


def _direction(e: Expr, v: Var, facts: Facts) -> int:
    """Return 1 if `e` does not fall as `v` grows, -1 if it does not rise, else 0."""
    match e:
        case Var():
            return int(e == v)
        case Prim("floordiv", (x, Const(n))) if n > 0:
            return _of_sum(normal(x, {}), v, facts)
        case Prim("min" | "max", (a, b)):
            ways = {_of_sum(normal(p, {}), v, facts) for p in (a, b) if v in variables(p)}
            return ways.pop() if len(ways) == 1 else 0
        case Prim("mul"):
            parts = factors(e)
            moving = [p for p in parts if v in variables(p)]
            still = all(bounds(normal(p, {}))[0] >= 0 for p in parts if p not in moving)
            return _direction(moving[0], v, facts) if len(moving) == 1 and still else 0
        case _:
            return 0


def _of_sum(a: Affine, v: Var, facts: Facts) -> int:
    ways = {_direction(t, v, facts) * (1 if c > 0 else -1) for t, c in a.terms.items() if v in variables(t)}
    return ways.pop() if len(ways) == 1 else 0


def _replaced(a: Affine, v: Var, end: Expr) -> Affine:
    return normal(rewrite(a.expr(), {v: end}), {})


def _scaled(part: Expr, others: Iterable[Expr], c: int, rest: Affine) -> Affine:
    """Return rest + c * part * others."""
    return rest.plus(normal(reduce(lambda p, q: prim("mul", p, q), others, part), {}), c)


def conditions(e: Expr, holds: bool) -> list[Affine]:
    """Return the affine facts that follow from a condition on integers, or from its contrary."""
    match e:
        case Prim("and", (a, b)) if holds:
            return [*conditions(a, True), *conditions(b, True)]
        case Prim("or", (a, b)) if not holds:
            return [*conditions(a, False), *conditions(b, False)]
        case Prim("not", (a,)):
            return conditions(a, not holds)
        case Prim("lt", (Prim("cast", (a,), DType.U64), Prim("cast", (b,), DType.U64))) if holds:
            is_size = b.dtype is DType.I64 and bounds(normal(b, {}))[0] >= 0  # else a large one, without a sign
            return [normal(a, {}), before_end(a, b)] if a.dtype is DType.I64 and is_size else []
        case Prim("lt" | "ge" as fn, (a, b)) if a.dtype is DType.I64:
            gap = normal(a - b, {})
            return [gap.times(-1).plus(exactly(-1)) if (fn == "lt") == holds else gap]
        case Prim("le" | "gt" as fn, (a, b)) if a.dtype is DType.I64:
            gap = normal(b - a, {})
            return [gap if (fn == "le") == holds else gap.times(-1).plus(exactly(-1))]
        case Prim("eq" | "ne" as fn, (a, b)) if a.dtype is DType.I64 and (fn == "eq") == holds:
            gap = normal(a - b, {})
            return [gap, gap.times(-1)]
        case Prim("eq" | "ne", (a, b)) if a.dtype is DType.I64:
            gap = normal(a - b, {})  # not 0: decided where it cannot be of one of the signs
            low, high = bounds(gap)
            return [gap.plus(exactly(-1))] if low >= 0 else [gap.times(-1).plus(exactly(-1))] if high <= 0 else []
        case _:
            return []


def before_end(index: Expr, extent: Size) -> Affine:
    """Return extent - 1 - index, which is not negative where an index is before the end."""
    return normal(as_expr(extent, DType.I64) - 1, {}).plus(normal(index, {}), -1)
