"""Proofs that affine expressions are not negative: intervals, ends of loops, cases of min and max, and linear facts.

y[i, j] = x[i * m + j] for i in n, j in m, x of n * m elements:
    n m - 1 - (i m + j)   >=   n m - 1 - i m - (m - 1)   >=   n m - (n - 1) m - m   =   0
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, inf

from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import Affine, bounds, exactly, factors, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Var, as_expr, prim
from aot.codegen.ir.proof.affine_facts import (
    coefficient,
    conditions,
    direction,
    is_greatest,
    iterates,
    occurs,
    plain,
    plus_product,
    replaced,
    rewritten,
)
from aot.codegen.ir.proof.known_facts import KnownFacts
from aot.codegen.ir.proof.search_state import (
    FIRST_GOALS,
    MAX_CASES,
    MAX_DEPTH,
    MAX_GOALS,
    MAX_TRIES,
    MAX_WORK,
    MIN_TRIES,
    Keys,
)
from aot.runtime.abi import DType

ZERO = exactly(0)

Goals = list[tuple["Facts", Affine]]


class Facts(KnownFacts):
    """Facts that hold at one place, and the search for proofs from them."""

    def inside(self, *axes: Var) -> Facts:
        """Return the facts inside of loops; each loop has at least one iteration."""
        if not axes:
            return self
        if axes not in self._inner:
            self._inner[axes] = type(self)(
                self.meaning, [f for a in axes for f in iterates(a)], (), axes, self, None, axes
            )
        return self._inner[axes]

    def where(self, *facts: Affine) -> Facts:
        """Return these facts and further ones."""
        if not facts:
            return self
        key = tuple(f.key for f in facts)
        if key not in self._inner:
            self._inner[key] = type(self)(self.meaning, facts, (), (), self, None, key)
        return self._inner[key]

    def proves(self, goal: Affine, goals: int = MAX_GOALS) -> bool:
        """True if `goal` is shown not to be negative; False if no proof is found within a budget of goals."""
        if bounds(goal)[0] >= 0 or self.are_contrary:
            return True
        search, key = self._search_state, (goal.key, self._place)
        if key in search.proved:
            return True
        home = self._home(goal)
        if home is not self and home.proves(goal, goals):
            return True
        if self._age != search.age:
            self._age = search.age
            for verdicts in (*self._results, self._failed):
                verdicts.clear()
        if result := self._is_shown(goal) if goals > FIRST_GOALS else self._search(goal, False, goals):
            search.proved.add(key)
        return result

    def knows(self, goal: Affine) -> bool:
        """True if `goal` follows from one fact, without a search."""
        return bounds(goal)[0] >= 0 or self.are_contrary or self._is_known(goal)

    def _home(self, goal: Affine) -> Facts:
        """Return the outermost place with no loop and no test about a goal inside of it: a proof there holds here."""
        atoms = frozenset[Expr]((*variables(*goal.terms), *loads(*goal.terms)))
        return next(f for f in self._around if f._is_base or not f._subjects.isdisjoint(atoms))

    def _is_shown(self, goal: Affine) -> bool:
        key = self._cases_of_sizes(goal) if len(self._told) < MAX_CASES else None
        is_broadcast = key is not None and any(len(factors(atom)) > 1 for atom in goal.terms)  # as i * (0 or 1)
        if not is_broadcast and self._search(goal, False, FIRST_GOALS):
            return True
        if key is not None:
            return self._is_shown_by_cases(goal, key)
        if self._search(goal, False) or self._search(self.written(goal), True) or self._is_ruled(goal):
            return True
        key = self._cases_of_sizes(goal, inside=True) if len(self._told) < MAX_CASES else None
        return key is not None and self._is_shown_by_cases(goal, key)

    def _is_shown_by_cases(self, goal: Affine, key: Keys) -> bool:
        if (search := self._search_state).cases >= MAX_CASES:  # a place around the pair may split into its cases again
            return False
        sides = next(f._either[key] for f in self._around if key in f._either)
        search.cases += 1
        result = all(self._on(key, side).proves(self._settled(goal, side)) for side in sides)
        search.cases -= 1
        return result

    def _is_ruled(self, goal: Affine) -> bool:
        """True if a rule tests the least value of a goal where loops have iterations, and those around it have some."""
        for least in self._least_values(goal) if any(f._in_loops for f in self._around) else ():
            counts = [n for f in self._around for n in f._in_loops.get(least.key, ())]
            if any(self._search(n.plus(exactly(-1)), True) for n in counts):
                return True
        return False

    def _least_values(self, goal: Affine) -> Iterator[Affine]:
        """Yield least values of a goal as sums of sizes: by the loops around it, or by tests of one of their axes."""
        if (least := self.residue(goal)) is not None:
            yield least
        for axis in reversed(self.axes):
            facts = self._facts_about(axis) if axis in goal.terms else ()
            yield from (self.written(goal.plus(f, -1)) for f in facts if f.terms[axis] == goal.terms[axis])

    def _search(self, goal: Affine, is_written: bool, goals: int = MAX_GOALS) -> bool:
        search, key = self._search_state, (goal.key, is_written)
        tries = max(min(MAX_TRIES, search.left), MIN_TRIES)
        failed = self._failed.get(key)
        if failed is not None and goals <= failed[0] and tries <= failed[1]:  # equal layers have equal goals
            search.left -= min(tries, failed[2])
            return False
        search.goals, search.tries, search.is_written = goals, tries, is_written
        result = self._holds(goal, MAX_DEPTH)
        spent = tries - search.tries
        search.left -= spent
        if not result:
            self._failed[key] = goals, tries, spent
        return result

    def begin(self, work: int = MAX_WORK) -> None:
        """Reset the number of goals that proofs of the next operation may examine."""
        self._search_state.left = work

    def residue(self, goal: Affine) -> Affine | None:
        """Return the least value of `goal` in the loops around it, as a sum of sizes; None if that is not known."""
        search = self._search_state
        search.goals, search.tries, search.is_written = MAX_GOALS, MAX_TRIES, True
        goal = self.written(goal)
        for axis in reversed(self.axes):
            if occurs(axis, goal):
                ends = self._at_ends(goal, axis, MAX_DEPTH)
                if ends is None or len(ends) > 1:
                    return None
                goal = self.written(ends[0])
        return goal

    def _holds(self, goal: Affine, depth: int) -> bool:
        search = self._search_state
        verdicts = self._results[search.is_written]
        result = verdicts.get(goal.key)
        if result is None and bounds(goal)[0] >= 0:
            return True
        search.tries -= 1
        if result is not None:
            return result
        if depth <= 0 or search.goals <= 0 or search.tries <= 0:
            return False
        search.goals -= 1
        verdicts[goal.key] = False  # ends the recursion if a fact leads back to it
        result = self._is_known(goal) or self.are_contrary or self._follows(goal, depth)
        if result or (search.goals > 0 and search.tries > 0 and depth > 4):
            verdicts[goal.key] = result
        else:
            verdicts.pop(goal.key)
        return result

    def _follows(self, goal: Affine, depth: int) -> bool:
        for goals in self._ways(goal, depth):
            if self._all(goals, depth):
                return True
            if self._search_state.tries <= 0:
                return False
        return False

    def _all(self, goals: Goals, depth: int) -> bool:
        return all(facts._holds(goal, depth - 1) for facts, goal in goals)

    def _is_known(self, goal: Affine) -> bool:
        return any(bounds(goal.plus(f, -1))[0] >= 0 for f in self._facts_about(next(iter(goal.terms), None)))

    def _ways(self, goal: Affine, depth: int) -> Iterator[Goals]:
        """Yield sets of goals; `goal` follows from each set."""
        if any(is_greatest(atom, -c) for atom, c in goal.terms.items()):
            yield from self._cases(goal, depth)
        yield from self._by_constants(goal)
        axis = next((a for a in reversed(self.axes) if occurs(a, goal)), None)
        if axis is not None and (ends := self._at_ends(goal, axis, depth)) is not None:
            yield [(self, g) for g in ends]
        yield from self._cases(goal, depth)
        yield from self._over_quotients(goal, depth)
        yield from self._by_facts(goal)
        if not self._search_state.is_written and not self.meaning.keys().isdisjoint(variables(*goal.terms)):
            yield [(self, rewritten(goal, self._meaning_of))]
        for v in sorted(plain(goal), key=lambda v: not isinstance(v.extent, int)):
            if v not in self.axes and (ends := self._at_ends(goal, v, depth)) is not None:
                yield [(self, g) for g in ends]

    def _cases_of_sizes(self, goal: Affine, inside: bool = False) -> Keys | None:
        """Return the key of a pair of cases on a size in the goal and another one of the goal or the loops; or None.

        `inside`: the size may be inside of a minimum or a quotient.
        """
        names, parts = None, {*goal.terms, *(variables(*goal.terms) if inside else ())}
        for scope in self._around:
            for key in [k for atom in scope._cases_about.keys() & parts for k in scope._cases_about[atom]]:
                equal, one = scope._either[key]
                if key in self._told or not one[0].terms.keys() <= parts:
                    continue
                names = self._names(goal) if names is None else names
                if all(variables(atom) <= names for atom in equal[0].terms):
                    return key
        return None

    def _settled(self, goal: Affine, side: tuple[Affine, ...]) -> Affine:
        """Return a goal with `m` in place of `n`, if a case has n - m >= 0 and m - n >= 0."""
        gap = side[0]
        for v, c in gap.terms.items():
            if isinstance(v, Var) and c in (1, -1) and not any(v in variables(t) for t in gap.terms if t is not v):
                meanings: dict[Expr, Expr] = {
                    u: m for u in variables(*goal.terms) if v in variables(m := self.meaning.get(u, ZERO.expr()))
                }
                if meanings or v in variables(*goal.terms):
                    goal = rewritten(goal, meanings.get) if meanings else goal
                    return replaced(goal, v, gap.plus(Affine({v: c}), -1).times(-c).expr())
        return self.written(goal)

    def _names(self, goal: Affine) -> frozenset[Var]:
        """Return the sizes in a goal and in the ends of the loops around it, and those that they are made of."""
        ends = [a.extent for a in self.axes if isinstance(a.extent, Expr)]
        names = variables(*goal.terms, *ends)
        while not (more := variables(*(self.meaning[v] for v in names if v in self.meaning))) <= names:
            names |= more
        return names

    def _on(self, key: Keys, side: tuple[Affine, ...]) -> Facts:
        """Return the facts on one side of a pair, which is not looked at again."""
        case = key, side[0].key
        if case not in self._inner:
            side_facts = self._inner[case] = type(self)(self.meaning, side, (), (), self, None, case)
            side_facts._told = self._told | {key}
        return self._inner[case]

    def _at_ends(self, goal: Affine, v: Var, depth: int) -> list[Affine] | None:
        """Return the goal with `v` at the end of its range where it is least, or at both; None if that is not known."""
        factor, nested = coefficient(goal, v)
        if factor is None:
            return None
        way = 0
        if nested:
            ways = {direction(atom, v) * (1 if c > 0 else -1) for atom, c in nested.items()}
            if factor.key != ZERO.key:
                ways.add(1 if self._holds(factor, depth - 4) else -1 if self._holds(factor.times(-1), depth - 4) else 0)
            if len(ways) > 1 or 0 in ways:
                return None
            (way,) = ways
        elif (ends := bounds(factor))[0] >= 0 or ends[1] <= 0:
            way = 1 if ends[0] >= 0 else -1
        elif self._holds(factor, depth - 4):
            way = 1
        elif self._holds(factor.times(-1), depth - 4):
            way = -1
        low, top = self._low(v), self._top(v)
        ends_of_range = [end for end, sides in ((low, (1, 0)), (top, (-1, 0))) if way in sides]
        if any(e is None for e in ends_of_range):
            return None
        return [replaced(goal, v, e) for e in ends_of_range if e is not None]

    def _low(self, v: Var) -> Expr | None:
        low = max(v.low, *(f._lows.get(v, -inf) for f in self._around))
        return Const(int(low)) if low > -(1 << 62) else None

    def _top(self, v: Var) -> Expr | None:
        if v.extent is None:
            return None
        end = normal(as_expr(v.extent, DType.I64) - 1, {})
        return (self.written(end) if self._search_state.is_written else end).expr()

    def _cases(self, goal: Affine, depth: int) -> Iterator[Goals]:
        """Replace a minimum, maximum or choice by its operands: by all, or by one where each bounds the goal."""
        for atom, c in sorted(goal.terms.items(), key=lambda term: is_greatest(*term)):
            parts = factors(atom)
            for k, part in enumerate(parts):
                if not isinstance(part, Prim) or part.fn not in ("min", "max", "select") or part.dtype is not DType.I64:
                    continue
                others = [p for i, p in enumerate(parts) if i != k]
                if not all(self._holds(normal(p, {}), depth - 2) for p in others):
                    continue
                remainder = goal.plus(Affine({atom: c}), -1)
                each = [plus_product(p, others, c, remainder) for p in part.args[-2:]]
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
                    yield [(self, plus_product(a + b, others, c, remainder.times(2)).plus(odd))]

    def _by_constants(self, goal: Affine) -> Iterator[Goals]:
        """Replace a minimum or maximum with a constant by the constant where that makes the goal smaller."""
        for atom, c in goal.terms.items():
            parts = factors(atom)
            for k, part in enumerate(parts):
                match part:
                    case Prim("min" | "max" as fn, (Const(), _) | (_, Const()), DType.I64) if (fn == "min") == (c < 0):
                        others = [p for i, p in enumerate(parts) if i != k]
                        if all(bounds(normal(p, {}))[0] >= 0 for p in others):
                            constant = next(a for a in part.args if isinstance(a, Const))
                            yield [(self, plus_product(constant, others, c, goal.plus(Affine({atom: c}), -1)))]
                    case _:
                        pass

    def _by_facts(self, goal: Affine) -> Iterator[Goals]:
        """Subtract multiples of facts that cancel a term."""
        for atom, c in goal.terms.items():
            for f in self._facts_about(atom):
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
        remainder = goal.plus(Affine({atom: c}), -1)
        if not all(self._holds(normal(p, {}), depth - 2) for p in others):
            return
        divisor = normal(m, {}).plus(exactly(-1))
        if not others and c in (1, -1):  # q <= u where x < m (u + 1), q >= l where x >= m l
            scaled = normal(m, {}) if c < 0 else ZERO
            product = normal(prim("mul", m, remainder.expr()), {})
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
                yield [(self, plus_product(bound, others, c // g, remainder.times(n // g)))]
                if c > 0:  # not negative where x is not
                    yield [(self, normal(x, {})), (self, remainder)]
            return
        needed, left = list(factors(m)), list(others)
        for f in needed:
            if f not in left:
                break
            left.remove(f)
        else:
            bound = x if c < 0 else x - m + 1
            yield [(self, divisor), (self, plus_product(bound, left, c, remainder))]
        if c < 0 and self._holds(normal(x, {}), depth - 2) and self._holds(normal(m, {}), depth - 2):
            yield [(self, plus_product(x, others, c, remainder))]
