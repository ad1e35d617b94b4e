"""Proofs that no load and no store of steps leaves its buffer, at any sizes that the rules allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import reduce
from math import isqrt

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import Affine, bounds, exactly, factors, normal
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    Prim,
    Reduce,
    Size,
    Space,
    Stmt,
    Store,
    TileOp,
    Var,
    While,
    as_expr,
    prim,
)
from aot.codegen.ir.printer import expr_text, size_text
from aot.codegen.ir.program import Region, Rule
from aot.codegen.ir.proof import Either, Facts, before_end, conditions
from aot.codegen.ir.traverse import Work, move_loads, writes
from aot.ir.dims import shortest
from aot.lowering.ir.steps import Steps
from aot.runtime.abi import DType

_MAX_SHIFT = 8  # of a size in a rule of broadcasting: more is not searched for


class Proof(StrEnum):
    """Reason for which an access is inside of its buffer."""

    PROVED = "proved"  # by ranges of axes and sizes
    CHECKED = "checked"  # by rules on sizes that are tested before
    CLAMPED = "clamped"  # data in the index are clamped or tested in the definition
    TRUSTED = "trusted"  # by the algorithm: counters that the operation keeps, without data, or the room of a state
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Obligation:
    """0 <= index < extent, of a load or a store.

    `has_loads`: True if memory that is read decides the place.
    """

    layers: tuple[str, ...]
    what: str
    buffer: Buffer
    place: tuple[Expr, ...]
    dimension: int
    proof: Proof
    has_loads: bool = False

    @property
    def index(self) -> Expr:
        return self.place[self.dimension]

    @property
    def extent(self) -> Size:
        return self.buffer.shape[self.dimension]

    def __str__(self) -> str:
        bound = f"0 <= {expr_text(self.index)} < {size_text(self.extent)}"
        layers = " + ".join(self.layers)
        return f"{self.proof.value}: {layers}: {self.what} {self.buffer.name}, dimension {self.dimension}: {bound}"


def prove(steps: Steps) -> list[Obligation]:
    """Return what has to hold for each load and store of the steps, and whether it does."""
    found = [*Prover(steps).block(steps, list(steps.rules))]
    return _trusting(found, [w for b in steps.blocks() for s in b.steps for w in s.works], steps)


def _trusting(obligations: Iterable[Obligation], works: Iterable[Work], steps: Steps) -> list[Obligation]:
    """Return obligations with those marked that are trusted where no proof was found.

    Counters of the works alone decide their places, or they are in a state, which has more room than its extents say.
    """
    found = list(obligations)
    if all(o.proof is not Proof.UNKNOWN for o in found):
        return found
    counters = Counters(works)

    def is_trusted(o: Obligation) -> bool:
        value = steps.values.get(o.buffer.name)
        return (value is not None and value.region is Region.STATE) or (o.has_loads and counters.make(o.index))

    return [replace(o, proof=Proof.TRUSTED) if o.proof is Proof.UNKNOWN and is_trusted(o) else o for o in found]


def proof_text(steps: Steps) -> str:
    """Return a line for each obligation, and their numbers by how they are proven."""
    found = prove(steps)
    counts = Counter(o.proof for o in found)
    total = ", ".join(f"{counts[p]} {p.value}" for p in Proof)
    return "\n".join((*dict.fromkeys(map(str, found)), f"{len(found)} obligations: {total}")) + "\n"


def facts_of(rule: Rule) -> list[Affine]:
    """Return affine facts that follow from a rule."""
    one, other = (as_expr(s, DType.I64) for s in (rule.one, rule.other))
    found = [normal(one - other, {}), normal(other - one, {})]
    for a, b in ((one, other), (other, one)):
        match a:
            case Prim("max", (x, y), DType.I64):
                found += [normal(b - x, {}), normal(b - y, {})]
            case Prim("min", (x, y), DType.I64):
                found += [normal(x - b, {}), normal(y - b, {})]
            case _:
                pass
    return found


def either_of(rule: Rule) -> list[Either]:
    """Return n = m or n = 1 for the rule (n - m) * (n - 1) = 0, where n is a size times a number, plus a number."""
    product = normal(as_expr(rule.one, DType.I64) - rule.other, {})
    for atom, c in product.terms.items():
        parts = factors(atom)
        if len(parts) == 2 and parts[0] == parts[1] and isqrt(abs(c)) ** 2 == abs(c):
            a = product if c > 0 else product.times(-1)
            for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1):
                if (sizes := _stretched(a, parts[0], isqrt(abs(c)), shift)) is not None:
                    n, m = sizes
                    return [(_equal(n, m), _equal(n, exactly(1)))]
    return []


def _stretched(product: Affine, size: Expr, scale: int, shift: int) -> tuple[Affine, Affine] | None:
    """Return n = scale * size + shift and m if (n - m) * (n - 1) is the product, else None."""
    n = normal(size * scale + shift, {})
    linear = normal(Const(0), {})
    for atom, c in product.terms.items():
        parts = list(factors(atom))
        if parts.count(size) == 1:
            parts.remove(size)
            if c % scale:
                return None
            linear = linear.plus(normal(reduce(lambda p, q: prim("mul", p, q), parts, Const(1)), {}), c // scale)
    m = exactly(2 * shift - 1).plus(linear, -1)
    return (n, m) if normal((n.expr() - m.expr()) * (n.expr() - 1), {}).key == product.key else None


def _not_negative(name: Var, meaning: Expr) -> list[Affine]:
    """Return the fact that a named size is not below its range, which rules on shapes check."""
    return [normal(meaning - name.low, {})] if name.low >= 0 > bounds(normal(meaning, {}))[0] else []


def _equal(a: Affine, b: Affine) -> tuple[Affine, Affine]:
    return a.plus(b, -1), b.plus(a, -1)


class Prover:
    """Walks works and proves their accesses. `plain`: facts without rules; `checked`: with those that are tested."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.layers: tuple[str, ...] = ()
        self._ranges: dict[str, list[int]] = {}

    def block(self, steps: Steps, rules: list[Rule]) -> Iterator[Obligation]:
        """Yield the obligations of a block, which `rules` precede."""
        plain, checked = self.under([]), self.under(rules)
        for step in steps.steps:
            self.layers = step.layers
            if step.checks:
                rules = [*rules, *step.checks]
                checked = self.under(rules)
            place = _Place(plain, checked)
            for load in step.binds.values():
                yield from self.value(load, place)
            for work in step.works:
                yield from self.work(work, place)
            for block in step.blocks():
                yield from self.block(block, rules)

    def under(self, rules: Sequence[Rule]) -> Facts:
        """Return the facts that rules state, and that sizes are not negative."""
        meaning = self.steps.sizes.meaning
        sizes = [f for s, m in meaning.items() for f in _not_negative(s, m)]
        forms = [form for r in rules for form in self._forms(r)]
        facts = [*sizes, *(f for r in forms for f in facts_of(r))]
        return Facts(meaning, facts, [e for r in forms for e in either_of(r)], shortest=shortest)

    def _forms(self, rule: Rule) -> list[Rule]:
        """Return a rule over the model's symbols, and over named sizes."""
        one, other = self.steps.sizes.named(rule.one), self.steps.sizes.named(rule.other)
        return [rule] if (one, other) == (rule.one, rule.other) else [rule, Rule(one, other, rule.text)]

    def work(self, work: Work, at: _Place) -> Iterator[Obligation]:
        """Yield the obligations of a work."""
        match work:
            case Definition():
                yield from self._definition(work, at)
            case Group():
                for member in work.members:
                    yield from self.work(member, at.inside(*work.axes))
            case _:
                for stmt in work:
                    yield from self._statement(stmt, at)

    def _definition(self, d: Definition, at: _Place) -> Iterator[Obligation]:
        at = at.inside(*d.axes)
        for i, _ in d.where:
            yield from self.value(i, at)
        at = at.guarded([g for i, n in d.where for g in (normal(i, {}), before_end(i, n))])
        yield from self.value(d.value, at)
        yield from self._access("store", d.out, d.target, at)
        for r in d.results:
            yield from self.value(r.value, at)
            yield from self._access("store", r.out, r.index, at)

    def value(self, e: Expr, at: _Place) -> Iterator[Obligation]:
        """Yield the obligations of the loads in an expression."""
        if not loads(e):
            return
        match e:
            case Prim("within", (index, extent, value, *other)):
                place = normal(index, at.env)
                guards = [place, normal(extent, at.env).plus(exactly(-1)).plus(place, -1)]
                inside = at.guarded(guards).under(_test_of(index, extent), True, ())
                yield from self.value(value, inside)
                for part in (index, extent, *other):
                    yield from self.value(part, at)
            case Prim(_, args):
                for a in args:
                    yield from self.value(a, at)
            case Reduce(_, axes, body, init):
                yield from self.value(body, at.inside(*axes))
                if init is not None:
                    yield from self.value(init, at)
            case Load(buffer, index):
                yield from self._access("load", buffer, index, at)
                for i in index:
                    yield from self.value(i, at)
            case _:
                return

    def _statement(self, s: Stmt, at: _Place) -> Iterator[Obligation]:
        match s:
            case Store(buffer, index, value):
                for e in (value, *index):
                    yield from self.value(e, at)
                yield from self._access("store", buffer, index, at)
            case TileOp(_, _, buffer, index):
                if buffer is not None:
                    yield from self._access("tile", buffer, index, at)
            case If(condition, body, otherwise):
                yield from self.value(condition, at)
                for part, holds in ((body, True), (otherwise, False)):
                    yield from self.work(part, at.under(condition, holds, writes((*body, *otherwise))))
            case Prefetch():
                return
            case _:
                for e in _evaluated(s):
                    yield from self.value(e, at)
                yield from self.work(s.body, at.enter(s))

    def _access(self, what: str, buffer: Buffer, index: tuple[Expr, ...], at: _Place) -> Iterator[Obligation]:
        places = [normal(i, at.env) for i in index]
        found: list[Obligation] = []
        for k, (place, n) in enumerate(zip(places, buffer.shape, strict=True)):
            extent = n.extent if isinstance(n, Var) and n in at.checked.axes else n  # a temporary has all of an axis
            end = normal(as_expr(1 if extent is None else extent, DType.I64), at.env).plus(exactly(-1))
            first = place.plus(normal(buffer.start[k], at.env), -1) if buffer.start else place
            goals = first, end.plus(first, -1)
            proof = self._proof(goals, loads(index[k]), at)
            has_loads = proof is Proof.UNKNOWN and _has_loads(place.expr())
            found.append(Obligation(self.layers, what, buffer, index, k, proof, has_loads))
        if any(o.proof is Proof.UNKNOWN for o in found):
            proof = self._in_memory(buffer, places, at)
            found = [replace(o, proof=proof) if o.proof is Proof.UNKNOWN else o for o in found]
        yield from found

    def _in_memory(self, buffer: Buffer, places: list[Affine], at: _Place) -> Proof:
        """Prove that an element of a halo is in the memory of its value, by its address."""
        value = self.steps.values.get(buffer.name)
        if value is None or value.elements == 0:
            return Proof.UNKNOWN
        address = normal(as_expr(buffer.origin, DType.I64), {})
        for place, stride in zip(places, buffer.strides, strict=True):
            address = address.plus(normal(place.expr() * stride, {}))
        read = tuple(x for p in places for x in loads(p.expr()))
        return self._proof((address, before_end(address.expr(), value.elements)), read, at)

    def _proof(self, goals: tuple[Affine, ...], read: tuple[Load, ...], at: _Place) -> Proof:
        if read and (ranges := [f for x in read for f in self.data(x)]):
            at = at.guarded(ranges)
        if not all(map(at.checked.proves, goals)):
            return Proof.UNKNOWN
        if read or at.has_guards:
            return Proof.CLAMPED if read else Proof.PROVED
        return Proof.PROVED if all(map(at.plain.proves, goals)) else Proof.CHECKED

    def data(self, x: Load) -> list[Affine]:
        """Return the range of the elements of a constant or a table, as facts on one of them."""
        name, value = x.buffer.name, self.steps.values.get(x.buffer.name)
        if name not in self._ranges:
            found: list[float] = []
            if x.buffer.space is Space.TABLE:
                found = [*x.buffer.values]
            elif value is not None and value.region is Region.CONSTANT and value.buffer.dtype.is_integer:
                array = value.array
                found = [] if array is None or not array.size else [array.min(), array.max()]
            self._ranges[name] = [int(min(found)), int(max(found))] if found else []
        if not (ends := self._ranges[name]):
            return []
        atom = Affine({(x if x.dtype is DType.I64 else Prim("cast", (x,), DType.I64)): 1})
        return [atom.plus(exactly(-ends[0])), atom.times(-1).plus(exactly(ends[1]))]


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a work: what is known there, and the values of names in it."""

    plain: Facts
    checked: Facts
    env: dict[Var, Affine] = field(default_factory=dict[Var, Affine])
    has_guards: bool = False

    def inside(self, *axes: Var) -> _Place:
        return replace(self, plain=self.plain.inside(*axes), checked=self.checked.inside(*axes)) if axes else self

    def enter(self, s: For | While | Let | Alloc) -> _Place:
        """Return the place in the body of a statement."""
        match s:
            case For(var, body):
                if not isinstance(var.extent, Expr) or not (
                    loads(var.extent) or self.env.keys() & variables(var.extent)
                ):
                    return self.inside(var)
                made = replace(var, extent=_as_now(self.value_of(var.extent), var, body))
                return replace(self.inside(made), env={**self.env, var: Affine({made: 1})})
            case Let(var, value, body):
                return replace(self, env={**self.env, var: normal(_as_now(self.value_of(value), var, body), {})})
            case _:
                return self

    def value_of(self, e: Expr) -> Expr:
        """Return an expression without names: what they stand for is in their place."""
        return normal(e, self.env).expr()

    def guarded(self, facts: list[Affine]) -> _Place:
        """Return the place behind a test."""
        if not facts:
            return self
        return replace(self, plain=self.plain.where(*facts), checked=self.checked.where(*facts), has_guards=True)

    def under(self, condition: Expr, holds: bool, stored: tuple[Buffer, ...]) -> _Place:
        """Return the place where a condition holds or not; what it says of memory that is written there is left out."""
        known: dict[Expr, Expr] = {v: a.expr() for v, a in self.env.items()}
        condition = rewrite(condition, known) if known else condition
        names = {b.name for b in stored}
        found = conditions(condition, holds)
        return self.guarded([f for f in found if all(x.buffer.name not in names for x in loads(f.expr()))])


def _as_now(e: Expr, name: Var, body: tuple[Stmt, ...]) -> Expr:
    """Return an expression that `name` stands for: memory that the body writes is apart from what it is later."""
    if not loads(e):
        return e
    return rewrite(e, move_loads({b.name: replace(b, name=f"{b.name}.{name.name}") for b in writes(body)}))


def _evaluated(s: For | While | Let | Alloc) -> tuple[Expr, ...]:
    """Return what a statement evaluates before its body."""
    match s:
        case For(var):
            return (var.extent,) if isinstance(var.extent, Expr) else ()
        case While(condition):
            return (condition,)
        case Let(_, value):
            return (value,)
        case _:
            return ()


def _test_of(index: Expr, extent: Expr) -> Expr:
    """Return the condition under which an index, 0 or one that is outside, is inside; true for other indices."""
    match index, extent:
        case Prim("select", (condition, Const(0), Const(n))), Const(end) if n >= end:
            return condition
        case _:
            return Const(1, DType.BOOL)


def _has_loads(place: Expr) -> bool:
    return bool(loads(place, *(v.extent for v in variables(place) if isinstance(v.extent, Expr))))


class Counters:
    """Integers that works compute from loops, sizes and each other alone: data choose among them, but are not in them.

    child[] = select(x[child[]] < x[child[] + 1], child[] + 1, child[])    is one, cast(x[child[]]) is none
    """

    def __init__(self, works: Iterable[Work]) -> None:
        self._made: dict[str | Var, list[Expr | None]] = {}  # values by name of a buffer, or by variable; None: data
        for work in works:
            self._collect(work)
        self._own = set(self._made)
        while data := {n for n in self._own if not all(v is not None and self.make(v) for v in self._made[n])}:
            self._own -= data

    def make(self, e: Expr) -> bool:
        """True if no data are in the value of `e`."""
        if e.dtype is DType.BOOL:
            return True
        match e:
            case Load(buffer):
                return buffer.space is Space.TABLE or buffer.name in self._own
            case Var():
                return e not in self._made or e in self._own
            case Prim("select", (_, *args)) | Prim("within", (_, _, *args)):
                return all(map(self.make, args))
            case Prim(_, args):
                return all(a.dtype is DType.BOOL or a.dtype.is_integer for a in args) and all(map(self.make, args))
            case Reduce(_, _, body, init):
                return self.make(body) and (init is None or self.make(init))
            case _:
                return True

    def _collect(self, work: Work) -> None:
        match work:
            case Definition():
                self._add(work.out, work.value)
                for r in work.results:
                    self._add(r.out, r.value)
            case Group():
                for member in work.members:
                    self._collect(member)
            case _:
                for stmt in work:
                    self._collect_from(stmt)

    def _collect_from(self, s: Stmt) -> None:
        match s:
            case Store(buffer, _, value):
                self._add(buffer, value)
            case TileOp(_, _, buffer):
                if buffer is not None:
                    self._add(buffer, None)
            case If(_, body, otherwise):
                self._collect((*body, *otherwise))
            case Prefetch():
                return
            case For(var):
                self._made.setdefault(var, []).append(as_expr(1 if var.extent is None else var.extent, DType.I64))
                self._collect(s.body)
            case Let(var, value):
                self._made.setdefault(var, []).append(value)
                self._collect(s.body)
            case _:
                self._collect(s.body)

    def _add(self, buffer: Buffer, value: Expr | None) -> None:
        self._made.setdefault(buffer.name, []).append(value if buffer.dtype.is_integer else None)
