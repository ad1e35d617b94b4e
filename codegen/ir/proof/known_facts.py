"""Facts at one place: affine expressions that are not negative, pairs with one true side, and values of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import gcd, inf
from typing import Self

from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import Affine, Key, bounds, exactly, factors, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Var
from aot.codegen.ir.proof.search_state import Keys, Place, SearchState

Either = tuple[tuple[Affine, ...], tuple[Affine, ...]]


class KnownFacts:
    """Facts that hold at one place: affine expressions that are not negative there, and loops around it.

    `meaning`: values of named sizes, which `shortest` writes in the form that sizes in facts have. `either`: pairs of
    sets of facts, one of which holds. A place inside of another one has its facts, too.
    """

    def __init__(
        self,
        meaning: Mapping[Var, Expr],
        facts: Iterable[Affine] = (),
        either: Iterable[Either] = (),
        axes: tuple[Var, ...] = (),
        parent: Self | None = None,
        shortest: Callable[[Expr], Expr] | None = None,
        case: Place = (),
    ) -> None:
        self.meaning = meaning
        own = axes
        axes = (*parent.axes, *axes) if parent else axes
        self.axes: tuple[Var, ...] = tuple(dict.fromkeys(axes))
        self._place: Place = (*parent._place, case) if parent else case
        self._search_state = parent._search_state if parent else SearchState(shortest)
        self._around: tuple[Self, ...] = (self, *(parent._around if parent else ()))
        self._is_contrary = False
        self._told: frozenset[Keys] = parent._told if parent else frozenset()  # cases that the place is one of
        self._results: tuple[dict[Key, bool], dict[Key, bool]] = {}, {}
        self._failed: dict[tuple[Key, bool], tuple[int, int, int]] = {}  # searches: goals, tries, and those made
        self._age = 0
        self._inner: dict[object, Self] = {}
        self._lows: dict[Expr, float] = {}
        self._ends: dict[frozenset[tuple[Expr, int]], int] = {}
        self._about: dict[Expr, list[Affine]] = {}
        self._either: dict[Keys, Either] = {}
        self._cases_about: dict[Expr, list[Keys]] = {}
        self._in_loops: dict[Key, list[Affine]] = {}
        self._add(facts, either)
        about = () if own else [*self._about]
        self._subjects = frozenset[Expr]((*own, *variables(*about), *loads(*about)))
        self._is_base = parent is None  # True if facts are learnt here later on, too

    @property
    def are_contrary(self) -> bool:
        """True if the place is never reached."""
        return any(f._is_contrary for f in self._around)

    def learn_in_loops(self, least: Affine, count: Affine) -> None:
        """Add the fact that a sum of sizes is not negative where a number of iterations is not 0."""
        self._search_state.age += 1
        self._in_loops.setdefault(self.written(least).key, []).append(count)

    def learn(self, facts: Iterable[Affine], either: Iterable[Either] = ()) -> None:
        """Add facts, here and at all places inside."""
        self._search_state.age += 1
        self._is_base = True
        self._add(facts, either)

    def _add(self, facts: Iterable[Affine], either: Iterable[Either]) -> None:
        for f in facts:
            self._learn(f)
            self._learn(self.written(f))
        for sides in either:
            key = tuple(f.key for side in sides for f in side)
            if key not in self._either:
                self._either[key] = sides
                self._cases_about.setdefault(next(iter(sides[1][0].terms)), []).append(key)

    def _learn(self, f: Affine) -> None:
        """Add a fact, over its common factor: 2 n >= 1 is n >= 1."""
        if not f.terms:
            self._is_contrary |= f.const < 0
            return
        if bounds(f)[0] >= 0:
            return
        g = gcd(*f.terms.values())
        f = f if g == 1 else Affine({t: c // g for t, c in f.terms.items()}, f.const // g)
        terms = frozenset(f.terms.items())
        if self._end(terms) <= f.const:
            return
        self._ends[terms] = f.const
        opposite = self._end(frozenset((t, -c) for t, c in terms))
        self._is_contrary |= opposite + f.const < 0 or bounds(f)[1] < 0
        for atom in f.terms:
            self._about.setdefault(atom, []).append(f)
        if len(f.terms) == 1 and next(iter(f.terms.values())) > 0:
            self._learn_low(next(iter(f.terms)), -f.const)

    def _end(self, terms: frozenset[tuple[Expr, int]]) -> float:
        return min(f._ends.get(terms, inf) for f in self._around)

    def _facts_about(self, atom: Expr | None) -> Iterator[Affine]:
        for scope in self._around:
            yield from scope._about.get(atom, ()) if atom is not None else ()

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
        e, known = a.expr(), self._search_state.written
        if e not in known:
            expr = e
            while any(v in self.meaning for v in variables(expr)):
                expr = rewrite(expr, self._meaning_of)
            shortest = self._search_state.shortest
            known[e] = shortest(expr) if shortest is not None else expr
        return normal(known[e], {})

    def _meaning_of(self, e: Expr) -> Expr | None:
        return self.meaning.get(e) if isinstance(e, Var) else None
