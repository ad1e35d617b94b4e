"""Dependencies between steps, and an order that respects them.

Several steps may write parts of a value (a Concat in place); a consumer of one part needs the producer of that part.
A symbol counts as a value: a step that uses it needs the step that sets it, and the steps that check it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import pairwise
from math import inf

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import Affine, atom_bounds, bounds, factors, normal
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Var, as_expr
from aot.codegen.ir.traverse import members
from aot.lowering.ir.steps import Step, Steps
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

IsKnown = Callable[[Var], bool]
AreDisjoint = Callable[[tuple[Expr, ...], tuple[Expr, ...]], bool]
Product = tuple[int, tuple[Expr, ...]]  # a number and sizes, multiplied


class Producers:
    """Producers of values and symbols, as the steps are now."""

    def __init__(self, steps: Steps) -> None:
        self.of: dict[str, list[Step]] = {}
        self.sizes, self._are_disjoint = steps.sizes, disjoint_test(steps.is_known)
        self.setters: dict[Var, Step] = {}
        self.checks: list[tuple[frozenset[Var], Step]] = []
        self._parts: dict[str, PartIndex] = {}
        self._late: dict[int, frozenset[Var]] = {}
        for step in steps.steps:
            for b in step.writes():
                self.of.setdefault(b.name, []).append(step)
            self.setters |= dict.fromkeys(step.sets(), step)
            if step.checks:
                self.checks.append((self._late_of(step), step))

    def producers(self, step: Step) -> list[Step]:
        """Return the producers of the values that `step` reads, without itself."""
        steps: dict[int, Step] = {}
        for load in step.reads():
            writers = self.of.get(load.buffer.name, [])
            for producer in writers if len(writers) <= 1 else self._parts_of(load.buffer.name).near(load):
                if producer is not step and (len(writers) == 1 or overlaps(load, producer, self._are_disjoint)):
                    steps[id(producer)] = producer
        if self.setters or self.checks:
            steps |= {id(s): s for s in self._before_symbols(step) if s is not step}
        return list(steps.values())

    def _parts_of(self, name: str) -> PartIndex:
        if name not in self._parts:
            self._parts[name] = PartIndex(name, self.of[name])
        return self._parts[name]

    def _late_of(self, step: Step) -> frozenset[Var]:
        """Return the late symbols in a step."""
        if id(step) not in self._late:
            self._late[id(step)] = self.sizes.late_in(step.sizes())
        return self._late[id(step)]

    def _before_symbols(self, step: Step) -> list[Step]:
        """Return the steps that set or check the symbols of `step`, unless `step` sets these symbols."""
        used = self._late_of(step)
        setters = [self.setters[v] for v in sorted(used, key=lambda v: v.name) if v in self.setters]
        return setters + self.checks_of(step)

    def checks_of(self, step: Step) -> list[Step]:
        """Return the steps that check symbols of `step`, unless it sets or checks symbols itself."""
        used, own = self._late_of(step), frozenset(step.sets())
        if not used or step.checks:
            return []
        return [s for checked, s in self.checks if checked <= used and not checked & own]


class PartIndex:
    """Producers of parts of one value, found by the index that is read: a Concat may have thousands of parts.

    Parts are sorted by their interval in the first dimension in which no two intervals meet. Without such a dimension
    every producer counts as near. `order`: keys that sort the producers as they were at first.
    """

    def __init__(self, name: str, producers: Iterable[Step]) -> None:
        self.name, self.producers = name, list(producers)
        self.order: dict[int, tuple[int, ...]] = {id(s): (n,) for n, s in enumerate(self.producers)}
        self.dim: int | None = None
        self.lows: list[float] = []
        self.highs: list[float] = []
        self.parts: list[list[Step]] = []
        boxes = [_box(s, name) for s in self.producers]
        for k in range(len(boxes[0]) if boxes and all(boxes) else 0):
            ends = sorted((box[k], n) for n, box in enumerate(boxes))
            finite = all(-inf < low and high < inf for (low, high), _ in ends)
            if finite and all(a[0][1] < b[0][0] for a, b in pairwise(ends)):
                self.dim = k
                self.lows, self.highs = [low for (low, _), _ in ends], [high for (_, high), _ in ends]
                self.parts = [[self.producers[n]] for _, n in ends]
                return

    def near(self, load: Load) -> list[Step]:
        """Return, in order, the producers with a range that overlaps `load` in the dimension that sorts parts."""
        if self.dim is None:
            return self.producers
        low, high = bounds(normal(load.index[self.dim], {}))
        first, last = bisect_left(self.highs, low), bisect_right(self.lows, high)
        steps = [s for part in self.parts[first:last] for s in part]
        return sorted(steps, key=lambda s: self.order[id(s)])

    def replace(self, old: Step, new: list[Step]) -> bool:
        """Register `new` as the producers of the part that `old` wrote.

        False if they write outside of it: then the index is no longer valid.
        """
        boxes = [_box(s, self.name) for s in new]
        if self.dim is None or not all(boxes):
            return False
        n = bisect_left(self.highs, _box(old, self.name)[self.dim][0])
        if not all(self.lows[n] <= box[self.dim][0] and box[self.dim][1] <= self.highs[n] for box in boxes):
            return False
        order = self.order.pop(id(old))
        self.order |= {id(s): (*order, k) for k, s in enumerate(new)}
        self.parts[n] = [s for s in self.parts[n] if s is not old] + new
        return True


def _box(step: Step, name: str) -> list[tuple[float, float]]:
    """Return the least and the greatest index in each dimension that definitions write; empty if unknown."""
    ranges: list[list[tuple[float, float]]] = []
    for work in step.works:
        definitions = list(members(work))
        if not definitions:
            return []
        ranges += [[bounds(normal(i, {})) for i in d.target] for d in definitions if d.out.name == name]
    return [(min(low for low, _ in ends), max(high for _, high in ends)) for ends in zip(*ranges, strict=True)]


def disjoint_test(is_known: IsKnown) -> AreDisjoint:
    """Return the test that no two elements at these indices are the same; it keeps its results: layers are alike.

    Variables that are not known are axes.
    """
    return cache(partial(_are_disjoint, is_known=is_known))


def overlaps(load: Load, producer: Step, are_disjoint: AreDisjoint) -> bool:
    """True if `load` may read elements that `producer` writes, by ranges."""
    for work in producer.works:
        definitions = list(members(work))
        if not definitions:
            return True
        for d in definitions:
            if d.out.name == load.buffer.name and not are_disjoint(load.index, d.target):
                return True
    return False


def _are_disjoint(one: tuple[Expr, ...], other: tuple[Expr, ...], is_known: IsKnown) -> bool:
    return any(_is_before(a, b, is_known) or _is_before(b, a, is_known) for a, b in zip(one, other, strict=True))


def _is_before(a: Expr, b: Expr, is_known: IsKnown) -> bool:
    """True if `a` is less than `b` for all values of their axes and symbols."""
    if a == b:
        return False
    greatest, least = _end(normal(a, {}), True, is_known), _end(normal(b, {}), False, is_known)
    return greatest is not None and least is not None and bounds(least.plus(greatest, -1))[0] > 0


def _end(a: Affine, top: bool, is_known: IsKnown) -> Affine | None:
    """Return the greatest or the least value over the axes, which the two sides do not share; None if unknown."""
    total = Affine({}, a.const)
    for atom, c in _with_remainders(a).items():
        highest = (c > 0) is top
        if all(v.extent is None or is_known(v) for v in variables(atom)):
            end = Affine({atom: 1})
        elif isinstance(atom, Var):
            last = normal(as_expr(atom.extent or 0, DType.I64) - 1, {})
            end = _end(last, True, is_known) if highest else Affine({}, atom.low)
        elif highest and (count := _count(atom)) is not None:
            end = _end(normal(_multiplied(count) - 1, {}), True, is_known)
        else:
            number = atom_bounds(atom)[highest]
            end = Affine({}, int(number)) if abs(number) < inf else None
        if end is None:
            return None
        total = total.plus(end.times(c))
    return total


def _count(e: Expr) -> Product | None:
    """Return the number of values 0, 1, 2, ... of an axis, or of its quotient or remainder.

    Groups flatten their rows: a row of 4 * h * w, divided by w and by h, has 4 values, whatever h and w are.
    """
    match e:
        case Var(_, extent, 0) if extent is not None:
            return _product(as_expr(extent, DType.I64))
        case Prim("mod", (_, size)):
            return _product(size)
        case Prim("floordiv", (x, size)):
            dividend, divisor = _count(x), _product(size)
            if dividend is None or divisor is None or dividend[0] % divisor[0]:
                return None
            left = list(dividend[1])
            for f in divisor[1]:
                if f not in left:
                    return None
                left.remove(f)
            return dividend[0] // divisor[0], tuple(left)
        case _:
            return None


def _with_remainders(a: Affine) -> dict[Expr, int]:
    """Replace x - n * (x // n), which is x mod n, in the terms by an axis of n values."""
    terms = dict(a.terms)
    for atom, c in a.terms.items():
        rest = list(factors(atom))
        quotient = next((f for f in rest if isinstance(f, Prim) and f.fn == "floordiv"), None)
        if quotient is None or c > 0:
            continue
        rest.remove(quotient)
        x, size = quotient.args
        product, affine = _product(size), normal(x, {})
        if product is None or Counter(product[1]) != Counter(rest) or c % product[0] or affine.const:
            continue
        times = -c // product[0]
        if all(terms.get(t) == n * times for t, n in affine.terms.items()):
            for t in (atom, *affine.terms):
                del terms[t]
            terms[Var(f"remainder{len(terms)}", product[0] if not product[1] else size)] = times
    return terms


def _product(size: Expr) -> Product | None:
    """Split a size into a constant factor and its symbols; None for sums."""
    a = normal(size, {})
    if a.is_const:
        return (a.const, ()) if a.const > 0 else None
    ((atom, c), *more) = a.terms.items()
    return (c, factors(atom)) if not more and not a.const and c > 0 else None


def _multiplied(product: Product) -> Expr:
    total: Expr = Const(product[0])
    for f in product[1]:
        total = total * f
    return total


def sort(steps: Steps) -> None:
    """Sort steps so that producers come before consumers, and keep their order otherwise."""
    steps.steps = ordered(steps.steps, Producers(steps).producers)


def ordered(steps: list[Step], producers: Callable[[Step], list[Step]]) -> list[Step]:
    """Order the steps, each after its `producers`, otherwise as before; InternalError for a cycle."""
    begun: set[int] = set()
    done: set[int] = set()
    order: list[Step] = []
    for root in steps:
        stack = [(root, False)]
        while stack:
            step, ready = stack.pop()
            if ready:
                order.append(step)
                done.add(id(step))
            elif id(step) not in begun:
                begun.add(id(step))
                stack.append((step, True))
                needed = [m for m in producers(step) if id(m) not in done]
                if circular := next((m for m in needed if id(m) in begun), None):
                    raise InternalError(f"order: {_description(step)} and {_description(circular)} need each other")
                stack += [(m, False) for m in reversed(needed)]
    return order


def _description(step: Step) -> str:
    return " + ".join(step.layers)
