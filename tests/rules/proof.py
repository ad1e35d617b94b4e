"""Proofs that a rule keeps what a graph computes: the graph before and after the rewrite, compared by z3.

The rule itself is run, on a graph of the pattern; there is no second writing of it that could differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import z3

from aot.ir.copies import copy_graph
from aot.ir.graph import Graph
from aot.passes.rewrite import RewriteLog, Rule, RuleSet
from aot.runtime.abi import DType
from tests.cases import LOOSE, Tolerance
from tests.passes.check import Make, Size, graph_of
from tests.rules.symbolic import Meaning, Term

FIRST_STEPS, STEPS = 2_000_000, 100_000_000  # of z3, for a claim on all elements, on one: four million a second
MAX_PLACES = 200  # elements of an output that are claims of their own


@dataclass(frozen=True)
class Pattern:
    """A graph in which a rule fires: `make(build, *ports)` over inputs of `shapes`, where "n=3" is a symbolic size.

    `within`: relative error that the rule may make, where it takes a number for another one that rounds to it.
    """

    make: Make
    shapes: tuple[tuple[Size, ...], ...]
    dtype: DType = DType.F32
    within: float = 0.0

    def graphs(self, rule: Rule) -> tuple[Graph, Graph]:
        """Return the graph before and after the rule, which must have fired."""
        before = graph_of(self.make, *self.shapes, dtype=self.dtype)
        after, log = copy_graph(before), RewriteLog()
        RuleSet("one rule", (rule,)).rewrite(after, log)
        assert log.fired[rule.name], f"{rule.name} does not fire on its pattern"
        return before, after


@dataclass(frozen=True)
class Entry:
    """A rule with its patterns: proved on all of them; or, with `why` it is not, tested on them with numbers.

    `note`: what is assumed, for the page. `tolerance`: of the test with numbers.
    """

    rule: Rule
    patterns: tuple[Pattern, ...]
    why: str = ""
    note: str = ""
    tolerance: Tolerance = LOOSE

    @property
    def is_proved(self) -> bool:
        return not self.why


def counterexample(before: Graph, after: Graph, within: float = 0.0) -> str | None:
    """Return an assignment under which the outputs differ; None if there is none: they are proved equal.

    `within`: relative error up to which they count as equal.

    TimeoutError if z3 can tell neither, NotExpressibleError for a graph that it cannot hold.
    """
    one, other = Meaning(copy_graph(before)), Meaning(copy_graph(after))
    for n in range(len(before.results)):
        shapes = one.shape(n), other.shape(n)
        if len(shapes[0]) != len(shapes[1]):
            return "ranks differ"
        same = z3.And(*(a == b for a, b in zip(*shapes, strict=True)))
        if (found := _refutation([], same, one, other)) is not None:
            return found
        if (found := _elements(n, shapes[0], one, other, within)) is not None:
            return found
    return None


def _elements(n: int, shape: list[Term], one: Meaning, other: Meaning, within: float) -> str | None:
    """Compare all elements of an output in one claim; where z3 cannot tell, in one for each place of small outputs."""
    index = [z3.Int(f"i{k}") for k in range(len(shape))]

    def refuted(index: tuple[Term, ...], steps: int) -> str | None:
        inside = [z3.And(i >= 0, i < size) for i, size in zip(index, shape, strict=True)]
        claim = _equal(one.output(n, index), other.output(n, index), within)
        return _refutation(inside, claim, one, other, steps)

    try:
        return refuted(tuple(index), FIRST_STEPS)
    except TimeoutError:
        sizes = [size.as_long() if z3.is_int_value(size) else None for size in shape]
        if prod(size for size in sizes if size is not None) > MAX_PLACES:
            raise
        choices = [[i] if size is None else map(z3.IntVal, range(size)) for i, size in zip(index, sizes, strict=True)]
        found = (refuted(place, STEPS) for place in product(*choices))
        return next((one for one in found if one is not None), None)


def _equal(a: Term, b: Term, within: float) -> Term:
    if not within:
        return a == b
    gap, size = a - b, z3.If(a >= 0, a, -a)
    return z3.And(gap <= size * z3.RealVal(within), -gap <= size * z3.RealVal(within))


def _refutation(given: list[Term], claim: Term, one: Meaning, other: Meaning, steps: int = STEPS) -> str | None:
    solver = z3.Solver()
    solver.set("rlimit", steps)
    solver.add(*given, *one.facts, *other.facts, z3.Not(claim))
    match str(solver.check()):
        case "unsat":
            return None
        case "sat":
            return str(solver.model())
        case _:
            raise TimeoutError(f"z3: {solver.reason_unknown()}")
