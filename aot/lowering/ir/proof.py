"""Proofs that no load and no store of steps leaves its buffer, at any sizes that the rules allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import islice

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import functions_in, loads, variables
from aot.codegen.ir.index import Affine, bounds, exactly, normal
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
    Stmt,
    Store,
    TileOp,
    Var,
    While,
    as_expr,
    prim,
)
from aot.codegen.ir.program import MemoryRegion, SizeConstraint
from aot.codegen.ir.proof.affine_facts import before_end
from aot.codegen.ir.proof.facts import Facts
from aot.codegen.ir.proof.search_state import FIRST_GOALS, MAX_WORK, PRINTED_WORK
from aot.codegen.ir.traverse import Work, writes
from aot.ir.dims import shortest
from aot.lowering.ir.counters import Counters
from aot.lowering.ir.element_ranges import ElementRanges
from aot.lowering.ir.halos import halos_of
from aot.lowering.ir.obligations import Least, Obligation, Proof
from aot.lowering.ir.proof_scope import ProofScope
from aot.lowering.ir.rule_facts import either_of, facts_of
from aot.lowering.ir.steps import LoopControl, Steps, sizes_of
from aot.runtime.abi import DType

KEEPING = ("CacheSizes", "CacheRoom")  # operations that compute sizes and room of a state that grows
MIN_LOWER_BOUND = -(1 << 62)  # a lower bound below it counts as no bound


def prove(steps: Steps) -> list[Obligation | Least]:
    """Return the goals of all loads, stores and names of sizes in the steps, and whether each is proven."""
    prover = Prover(steps)
    left = [*prover.block(Facts(steps.sizes.meaning, shortest=shortest))]
    accesses = [o for o in left if isinstance(o, Obligation)]
    works = [w for b in steps.blocks() for s in b.steps for w in s.works]
    return [*prover.trusting(accesses, works), *(o for o in left if isinstance(o, Least))]


def proof_text(obligations: Sequence[Obligation | Least]) -> str:
    """Return a line for each obligation, and their numbers by how they are proven."""
    counts = Counter(o.proof for o in obligations)
    total = ", ".join(f"{counts[p]} {p.value}" for p in Proof)
    return "\n".join((*dict.fromkeys(map(str, obligations)), f"{len(obligations)} obligations: {total}")) + "\n"


class Prover:
    """Walks works and proves their accesses.

    A rule on late sizes is a fact for works with all of its late sizes alone: others need not wait for its test.
    `outer`: the prover of the block around this one, whose rules precede it.
    """

    def __init__(self, steps: Steps, outer: Prover | None = None) -> None:
        self.steps, self.layers = steps, tuple[str, ...]()
        self._elements = ElementRanges(steps.values)
        self._facts = outer._facts if outer else Facts(steps.sizes.meaning, shortest=shortest)
        self._outer = outer
        self._ruled = self._sized = 0  # rules, and names of sizes, that facts are made of
        self._checks: list[tuple[frozenset[Var], SizeConstraint]] = [*outer._checks] if outer else []
        self._learnt: set[tuple[Facts, Size, Size]] = set()
        self._by_late: dict[frozenset[Var], tuple[Facts, int]] = {}
        self._least: dict[Var, Affine] = {}  # what has to hold for names that are not used yet
        self._shown: set[Var] = {*outer._shown} if outer else set()
        self._lists_all = False  # obligations that are proved, too
        self._around: dict[Buffer, list[tuple[int, int]]] = {}
        self._works: Sequence[Work] = ()  # works that are proved now, and their counters
        self._counters: Counters | None = None
        self.kept: set[str] = outer.kept if outer else set()  # values with sizes and room of a state that grows

    def unproven(self, works: Sequence[Work]) -> list[Obligation]:
        """Return the unproven goals of works that run after the rules of the steps and those given to `check`."""
        self._begin(works)
        obligations = [o for w in works for o in self.work(w, ProofScope(partial(self._of, w)))]
        return [o for o in self.trusting(obligations, works) if o.proof is Proof.UNKNOWN] if obligations else []

    def _begin(self, works: Sequence[Work]) -> None:
        self._works, self._counters = works, None
        self._facts.begin(PRINTED_WORK if self._lists_all else MAX_WORK)

    def trusting(self, obligations: Iterable[Obligation], works: Iterable[Work]) -> list[Obligation]:
        """Return the obligations, with unproven ones that are trusted marked as such.

        Counters of the works alone decide their places; or the places are in a state, in its sizes and data between two
        counters. The extents of a state that grows are its sizes once it has grown, while its memory is room for more:
        `aot.lowering.define.growing_variables` keeps room, sizes and the rows that move in step, and no expression has
        its bound.
        """
        all_obligations, works = list(obligations), list(works)
        if all(o.proof is not Proof.UNKNOWN for o in all_obligations):
            return all_obligations
        written = self._written_before(works)
        counters, state_counters = Counters(works, (), written), Counters(works, self.kept, written)

        def is_trusted(o: Obligation) -> bool:
            if self._grows(o.buffer):
                return state_counters.is_free_or_clamped(o.index)
            return o.has_loads and counters.is_free_of_data(o.index)

        return [
            replace(o, proof=Proof.TRUSTED) if o.proof is Proof.UNKNOWN and is_trusted(o) else o
            for o in all_obligations
        ]

    def _grows(self, buffer: Buffer) -> bool:
        """True if a buffer is in a state of dynamic size."""
        value = self.steps.values.get(buffer.name)
        return (
            value is not None
            and value.region is MemoryRegion.STATE
            and not all(isinstance(n, int) for n in buffer.shape)
        )

    def names(self, works: Sequence[Work], plain: Facts | None = None) -> list[Least]:
        """Return the goals of the names of sizes that works are the first to use, and whether each is proven."""
        meaning = self.steps.sizes.meaning
        for name in islice(meaning, self._sized, None):
            if name in self._shown or name.low < MIN_LOWER_BOUND or self.steps.sizes.is_late(name):
                continue  # no more is known of it than its meaning says
            if name.low > bounds(normal(meaning[name], {}))[0]:
                self._least[name] = normal(meaning[name] - name.low, {})
        self._sized = len(meaning)
        if not self._least:
            return []
        used = frozenset[Var]().union(*map(sizes_of, works))
        while not (more := variables(*(meaning[v] for v in used if v in meaning))) <= used:
            used |= more
        facts = self._known(frozenset())
        goals: list[Least] = []
        for v in [v for v in self._least if v in used]:
            goal = self._least.pop(v)
            proof = Proof.CHECKED if facts.proves(goal) else Proof.UNKNOWN
            goals.append(Least(self.layers, v, meaning[v], Proof.PROVED if plain and plain.proves(goal) else proof))
        for o in goals:
            self._shown.add(o.name)
            self.check(o.rule)
        return goals

    def check(self, rule: SizeConstraint) -> None:
        """Learn a rule that is tested before the works that follow, and that have its late sizes, run."""
        late = self.steps.sizes.late_of(rule.one, rule.other)
        if late or self._outer is not None:
            self._checks.append((late, rule))
        else:
            self._learn(self._facts, [rule])

    def _of(self, work: Work) -> Facts:
        """Return the facts that hold around a work."""
        late = self.steps.sizes.late_in(sizes_of(work)) if self._checks and self.steps.sizes.late else frozenset[Var]()
        return self._known(late)

    def _known(self, late: frozenset[Var]) -> Facts:
        """Return the facts of works with some late sizes."""
        if self._outer is not None:
            self._outer._known(frozenset())
        elif self._ruled < len(self.steps.rules):
            self._learn(self._facts, self.steps.rules[self._ruled :])
            self._ruled = len(self.steps.rules)
        if not self._checks:
            return self._facts
        if late not in self._by_late:
            self._by_late[late] = Facts(self.steps.sizes.meaning, (), (), (), self._facts, None, (object(),)), 0
        facts, count = self._by_late[late]
        if count < len(self._checks):
            self._by_late[late] = facts, len(self._checks)
            self._learn(facts, [r for needed, r in self._checks[count:] if needed <= late])
        return facts

    def _learn(self, facts: Facts, rules: Sequence[SizeConstraint]) -> None:
        rules = [r for r in rules if (facts, r.one, r.other) not in self._learnt]  # equal layers have equal ones
        self._learnt.update((facts, r.one, r.other) for r in rules)
        forms = [form for r in rules for form in self._forms(r)]
        if forms:
            for r in forms:
                match r.one:
                    case Prim("min", (Prim("max", (least, Prim("mul", (count, Const(-1))))), Const(0))):
                        facts.learn_in_loops(normal(least, {}), normal(count, {}))
                    case _:
                        pass
            facts.learn([f for r in forms for f in facts_of(r)], [e for r in forms for e in either_of(r)])

    def _forms(self, rule: SizeConstraint) -> list[SizeConstraint]:
        """Return a rule over the model's symbols, and over named sizes."""
        one, other = self.steps.sizes.named(rule.one), self.steps.sizes.named(rule.other)
        return [rule] if (one, other) == (rule.one, rule.other) else [SizeConstraint(one, other, rule.text), rule]

    def block(self, plain: Facts) -> Iterator[Obligation | Least]:
        """Yield the obligations of the steps. `plain`: facts without rules."""
        self._lists_all = True
        for step in self.steps.steps:
            self.layers = step.layers
            if step.kind in KEEPING:
                self.kept.update(b.name for b in step.writes())
            for rule in step.checks:
                self.check(rule)
            self._begin(step.works)
            yield from self.names(step.works, plain)
            for load in step.binds.values():
                yield from self.value(load, ProofScope(partial(self._known, frozenset[Var]()), plain))
            for work in step.works:
                yield from self.work(work, ProofScope(partial(self._of, work), plain))
            for block in step.blocks():
                inner = Prover(block, self)
                if isinstance(step.control, LoopControl):
                    inner.check(SizeConstraint(prim("max", step.control.counter + 1 - step.control.limit, 0), 0, ""))
                yield from inner.block(plain)

    def work(self, work: Work, scope: ProofScope) -> Iterator[Obligation]:
        """Yield the obligations of a work."""
        match work:
            case Definition():
                yield from self._definition(work, scope)
            case Group():
                for member in work.members:
                    yield from self.work(member, scope.inside(*work.axes))
            case _:
                for stmt in work:
                    yield from self._statement(stmt, scope)

    def _definition(self, d: Definition, scope: ProofScope) -> Iterator[Obligation]:
        if not self._lists_all and is_plainly_inside(d):
            return
        scope = scope.inside(*d.axes)
        for i, _ in d.where:
            yield from self.value(i, scope)
        scope = scope.guarded([g for i, n in d.where for g in (normal(i, {}), before_end(i, n))])
        yield from self.value(d.value, scope)
        yield from self._access("store", d.out, d.target, scope)
        for r in d.results:
            yield from self.value(r.value, scope)
            yield from self._access("store", r.out, r.index, scope)

    def value(self, e: Expr, scope: ProofScope) -> Iterator[Obligation]:
        """Yield the obligations of the loads in an expression."""
        if not loads(e):
            return
        match e:
            case Prim("within", (index, extent, value, *other)):
                position = normal(index, scope.env)
                guards = [position, normal(extent, scope.env).plus(exactly(-1)).plus(position, -1)]
                inside = scope.guarded(guards).under(_test_of(index, extent), True, ())
                yield from self.value(value, inside)
                for part in (index, extent, *other):
                    yield from self.value(part, scope)
            case Prim(_, args):
                for a in args:
                    yield from self.value(a, scope)
            case Reduce(_, axes, body, init):
                yield from self.value(body, scope.inside(*axes))
                if init is not None:
                    yield from self.value(init, scope)
            case Load(buffer, index):
                if not self._lists_all and e in scope.seen:
                    return
                scope.seen.add(e)
                yield from self._access("load", buffer, index, scope)
                for i in index:
                    yield from self.value(i, scope)
            case _:
                return

    def _statement(self, s: Stmt, scope: ProofScope) -> Iterator[Obligation]:
        match s:
            case Store(buffer, index, value):
                for e in (value, *index):
                    yield from self.value(e, scope)
                yield from self._access("store", buffer, index, scope)
            case TileOp(_, _, buffer, index):
                if buffer is not None:
                    yield from self._access("tile", buffer, index, scope)
            case If(condition, body, otherwise):
                yield from self.value(condition, scope)
                for part, holds in ((body, True), (otherwise, False)):
                    yield from self.work(part, scope.under(condition, holds, writes((*body, *otherwise))))
            case Prefetch():
                return
            case _:
                for e in _evaluated(s):
                    yield from self.value(e, scope)
                yield from self.work(s.body, scope.enter(s))

    def _access(self, what: str, buffer: Buffer, index: tuple[Expr, ...], scope: ProofScope) -> Iterator[Obligation]:
        grows = self._grows(buffer)
        dimensions = [
            k for k, (i, n) in enumerate(zip(index, buffer.shape, strict=True)) if not _is_plain(i, n, buffer)
        ]
        if not dimensions and not self._lists_all:
            return
        positions, halos = [normal(i, scope.env) for i in index], self._halos(buffer)
        obligations: list[Obligation] = []
        for k, (position, n) in enumerate(zip(positions, buffer.shape, strict=True)):
            if k not in dimensions:
                obligations.append(Obligation(self.layers, what, buffer, index, k, Proof.PROVED))
                continue
            extent = n.extent if isinstance(n, Var) and n in scope.axes else n  # a temporary has all of an axis
            end = normal(as_expr(1 if extent is None else extent, DType.I64), scope.env).plus(exactly(-1))
            first = position.plus(normal(buffer.start[k], scope.env), -1) if buffer.start else position
            before, after = halos[k] if halos else (0, 0)
            goals = first.plus(exactly(before)), end.plus(first, -1).plus(exactly(after))
            proof = Proof.UNKNOWN if grows else self._proof(goals, index[k], scope)
            if proof is not Proof.UNKNOWN:
                obligations.append(Obligation(self.layers, what, buffer, index, k, proof))
                continue
            has_loads = grows or _has_loads(position.expr())
            failing = [g for g in goals if not has_loads and not scope.checked.proves(g)]
            if not has_loads and not failing:  # parts of the first proof were in the way of the last one
                obligations.append(Obligation(self.layers, what, buffer, index, k, Proof.CHECKED))
                continue
            residue = scope.residue(failing) if failing else ()
            loops = tuple(as_expr(a.extent, DType.I64) for a in scope.axes if a.extent is not None)
            has_elements = scope.checked.proves(end, FIRST_GOALS)
            obligations.append(
                Obligation(self.layers, what, buffer, index, k, proof, residue, loops, has_loads, has_elements)
            )
        if not grows and any(o.proof is Proof.UNKNOWN for o in obligations):
            proof = self._in_memory(buffer, positions, scope)
            obligations = [replace(o, proof=proof) if o.proof is Proof.UNKNOWN else o for o in obligations]
        yield from obligations if self._lists_all else (o for o in obligations if o.proof is Proof.UNKNOWN)

    def _halos(self, buffer: Buffer) -> list[tuple[int, int]]:
        """Return the halo before and after each dimension; an empty list if it is unknown."""
        value = self.steps.values.get(buffer.name)
        if value is None or value.elements == 0:
            return []
        if buffer not in self._around:
            self._around[buffer] = halos_of(buffer, value.elements) or []
        return self._around[buffer]

    def _in_memory(self, buffer: Buffer, positions: list[Affine], scope: ProofScope) -> Proof:
        """Prove that an element of a halo is in the memory of its value, by its address."""
        value = self.steps.values.get(buffer.name)
        if value is None or value.elements == 0:
            return Proof.UNKNOWN
        address = normal(as_expr(buffer.origin, DType.I64), {})
        for position, stride in zip(positions, buffer.strides, strict=True):
            address = address.plus(normal(position.expr() * stride, {}))
        return self._proof((address, before_end(address.expr(), value.elements)), address.expr(), scope)

    def _proof(self, goals: tuple[Affine, ...], index: Expr, scope: ProofScope) -> Proof:
        read = loads(index)
        # data that are read are worth no long search
        is_trusted = any(_has_loads(g.expr()) for g in goals) and self._current_counters.is_free_of_data(index)
        if is_trusted and not all(map(scope.checked.knows, goals)):
            return Proof.TRUSTED
        deciding = dict.fromkeys(x for g in goals for x in _loads_of(g.expr()))
        if ranges := [f for x in deciding for f in self.data(x)]:
            scope = scope.guarded(ranges)
        if not all(map(scope.checked.proves, goals)):
            return Proof.UNKNOWN
        if read or scope.has_guards:
            return Proof.CLAMPED if read else Proof.PROVED
        return Proof.PROVED if scope.proves_plainly(goals) else Proof.CHECKED

    def _written_before(self, works: Iterable[Work]) -> set[str]:
        """Return the buffers that works write although a caller or an earlier inference has written them."""
        written = (self.steps.values.get(b.name) for w in works for b in writes(w))
        return {v.name for v in written if v is not None and v.region in (MemoryRegion.INPUT, MemoryRegion.STATE)}

    @property
    def _current_counters(self) -> Counters:
        """The counters of the works that are proved now."""
        if self._counters is None:
            self._counters = Counters(self._works, (), self._written_before(self._works))
        return self._counters

    def data(self, x: Load) -> list[Affine]:
        """Return facts on the value of a load, where constants or tables bound it."""
        if not (ends := self._elements.of(x, self._current_counters.stored)):
            return []
        atom = Affine({(x if x.dtype is DType.I64 else Prim("cast", (x,), DType.I64)): 1})
        return [atom.plus(exactly(-ends[0])), atom.times(-1).plus(exactly(ends[1]))]


def _evaluated(s: For | While | Let | Alloc) -> tuple[Expr, ...]:
    """Return the expressions that a statement evaluates before its body."""
    match s:
        case For(var):
            return (var.extent,) if isinstance(var.extent, Expr) else ()
        case While(condition):
            return (condition,)
        case Let(_, value):
            return (value,)
        case _:
            return ()


def is_plainly_inside(d: Definition) -> bool:
    """True if indices alone, or tests around them, show that all accesses of a definition are inside."""
    if d.where or d.results:
        return False
    return _is_inside(d.out, d.target, ()) and _has_plain_loads(d.value, ())


def _has_plain_loads(e: Expr, tests: tuple[tuple[Expr, Expr], ...]) -> bool:
    """True if all loads are plainly inside; `tests`: indices that are tested around `e`, with their bounds."""
    if "within" not in functions_in(e):
        return all(_is_inside(x.buffer, x.index, tests) for x in loads(e))
    if isinstance(e, Prim) and e.fn == "within" and not loads(*e.args[:2]):
        index, extent, value, *other = e.args
        return _has_plain_loads(value, (*tests, (index, extent))) and all(_has_plain_loads(o, tests) for o in other)
    if not isinstance(e, Load):
        return all(_has_plain_loads(c, tests) for c in e.children)
    return _is_inside(e.buffer, e.index, tests)


def _is_inside(buffer: Buffer, index: tuple[Expr, ...], tests: tuple[tuple[Expr, Expr], ...]) -> bool:
    """True if an access is plainly inside of a buffer; one of dynamic sizes may grow, so loops alone show it."""
    dims = [(i, n) for i, n in zip(index, buffer.shape, strict=True) if not _is_plain(i, n, buffer)]
    is_static = not dims or all(isinstance(n, int) for n in buffer.shape)
    return is_static and all(_is_shown(i, n, buffer, tests) for i, n in dims)


def _is_shown(index: Expr, extent: Size, buffer: Buffer, tests: tuple[tuple[Expr, Expr], ...]) -> bool:
    """True if the ranges of an index's axes are inside of a known extent, or a test around it compares it with that."""
    if buffer.start or loads(index):
        return False
    if any(index == tested and isinstance(n, Const) and n.value == extent for tested, n in tests):
        return True
    low, high = bounds(normal(index, {}))
    return low >= 0 and isinstance(extent, int) and high < extent


def _is_plain(index: Expr, extent: Size, buffer: Buffer) -> bool:
    """True if an index is a loop over exactly its dimension, or a constant inside of it."""
    if buffer.start:
        return False
    if isinstance(index, Var):
        return index.low >= 0 and index.extent is not None and index.extent == extent
    return isinstance(index, Const) and isinstance(extent, int) and 0 <= index.value < extent


def _test_of(index: Expr, extent: Expr) -> Expr:
    """Return the condition under which an index, 0 or one that is outside, is inside; true for other indices."""
    match index, extent:
        case Prim("select", (condition, Const(0), Const(n))), Const(end) if n >= end:
            return condition
        case _:
            return Const(1, DType.BOOL)


def _has_loads(index: Expr) -> bool:
    """True if memory is read by an expression, or by the end of a loop that decides it."""
    return bool(_loads_of(index))


def _loads_of(index: Expr) -> tuple[Load, ...]:
    """Return the loads in an expression and in the ends of loops that decide it."""
    axes = variables(index)
    while not (more := variables(*(v.extent for v in axes if isinstance(v.extent, Expr)))) <= axes:
        axes |= more
    ends = sorted(axes, key=lambda v: v.name)
    return loads(index, *(v.extent for v in ends if isinstance(v.extent, Expr)))


def least_in_loops(least: Affine, loops: Iterable[Expr]) -> Expr:
    """Return a number that is negative if `least` is, and none of the loops is without iterations."""
    counts = reduce(lambda a, b: prim("min", a, b), loops, Const(1))
    return prim("max", least.expr(), 0 - counts)
