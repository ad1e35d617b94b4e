"""Rules on sizes, and proofs that accesses are inside of memory: what neither proves is checked when a program runs."""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import functions_in, loads, variables, walk
from aot.codegen.ir.loops import Reduce, Size, prim
from aot.codegen.ir.program import MemoryRegion, SizeConstraint
from aot.codegen.ir.traverse import Work
from aot.ir.dims import can_be_negative
from aot.ir.graph import Node
from aot.ir.types import dim_text
from aot.lowering.define.extents import fitting
from aot.lowering.define.guarded import guarded
from aot.lowering.define.size_rules import has_static_types, rules
from aot.lowering.ir.obligations import Obligation, Proof
from aot.lowering.ir.proof import Prover, least_in_loops
from aot.lowering.ir.steps import Step, Steps


class SizeChecks:
    """Adds rules on sizes to `steps`. `scope`: of a body, which may never run; None for a whole graph."""

    def __init__(self, steps: Steps, prover: Prover, scope: str | None) -> None:
        self.steps, self.prover, self.scope = steps, prover, scope
        self._inside: set[tuple[object, ...]] = set()  # forms of works whose accesses took no rule
        self._demanded: set[tuple[Size, Size]] = set()  # by Check steps of this block, whose symbols are set once

    def check(self, node: Node) -> None:
        """Add the rules on a node's types. A body may never run: its rules are facts only of sizes that it computes."""
        constraints = rules(node)
        for rule in constraints:
            late = self.steps.sizes.late_of(rule.one, rule.other)
            if self.scope is None or any(v.name.removeprefix("v").startswith(self.scope) for v in late):
                self.steps.sizes.learn(rule.one, rule.other)
        self.demand(node, constraints)

    def demand(self, node: Node, constraints: list[SizeConstraint]) -> None:
        """Add rules to the shape function; rules on late sizes, and of bodies that may not run, become Check steps.

        Equal layers have equal rules: the first of them is tested.
        """
        is_late = self.steps.sizes.is_late
        checked, known = list[SizeConstraint](), list[SizeConstraint]()
        for rule in constraints:
            at_run_time = self.scope is not None or is_late(rule.one) or is_late(rule.other)
            if not at_run_time:
                known.append(rule)
            elif (rule.one, rule.other) not in self._demanded:
                self._demanded.add((rule.one, rule.other))
                checked.append(rule)
        self.steps.rules += known
        for rule in checked:
            self.prover.check(rule)
        for rule in known:
            self.steps.sizes.equate(rule.one, rule.other)
        layers = node.origin.layers or (node.name,)  # a step for each rule: its dependents need not wait for others
        self.steps.steps += [Step((), layers, "Check", checks=(rule,)) for rule in checked]

    def inside(self, node: Node, works: tuple[Work, ...]) -> tuple[Work, ...]:
        """Return works with all accesses inside of their buffers, after the rules that this takes.

        Equal layers have equal accesses: those that took no rule once take none, since facts are only added.
        """
        form, demanded = self._form(works), (len(self.steps.rules), len(self.steps.steps))
        if form in self._inside:
            return works
        if not has_static_types(node):
            text = f"{node.type} {(node.origin.layers or (node.name,))[0]!r}"
            self.demand(node, fitting(works, text, self.steps.sizes, self.steps.symbols))
        tested = self.prove(node, works)
        if form is not None and tested is works and demanded == (len(self.steps.rules), len(self.steps.steps)):
            self._inside.add(form)
        return tested

    def _form(self, works: tuple[Work, ...]) -> tuple[object, ...] | None:
        """Return all that decides whether accesses are inside; None where tests, data or a state do, too."""
        form: list[object] = []
        for d in works:
            if not isinstance(d, Definition) or d.where or d.results or "within" in functions_in(d.value):
                return None
            sums = [e for e in walk(d.value) if isinstance(e, Reduce)] if d.reduction is not None else list[Reduce]()
            if len(sums) > 1:
                return None
            sites = [(d.out, d.target), *((x.buffer, x.index) for x in loads(d.value))]
            values = [self.steps.values.get(b.name) for b, _ in sites]
            if any(v is None or v.region is MemoryRegion.STATE for v in values) or any(loads(*i) for _, i in sites):
                return None
            form += [d.axes, variables(d.value), *(r.axes for r in sums), *((b.shape, i) for b, i in sites)]
        return tuple(form)

    def prove(self, node: Node, works: tuple[Work, ...]) -> tuple[Work, ...]:
        """Return works with all accesses inside of their buffers.

        Where no proof is found, a rule refuses the sizes before anything runs, or, if memory decides an index, it is
        clamped or tested.
        """
        layer = f"{node.op.user_type} {(node.origin.layers or (node.name,))[0]!r}"
        for o in self.prover.names(works):
            if o.proof is Proof.UNKNOWN:
                text = f"{layer}: a number of elements is {o.name.low} at least, got {dim_text(o.meaning)}"
                self.demand(node, [replace(o.rule, text=text)])
        tested: list[Obligation] = []
        for o in self.prover.unproven(works):
            least = [self.steps.sizes.written_out(least_in_loops(r, o.loops)) for r in o.residue]
            if not least or any(loads(n) or not all(map(self.steps.is_known, variables(n))) for n in least):
                tested.append(o)
                continue
            extent = dim_text(self.steps.sizes.written_out(o.extent))
            text = f"{layer}: indices of dimension {o.dimension} are inside of it, got {extent} elements"
            self.demand(node, [SizeConstraint(prim("min", n, 0), 0, text) for n in least if can_be_negative(n)])
        return tuple(guarded(w, tested) for w in works) if tested else works
