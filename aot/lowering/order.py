"""Which steps a step needs, and an order that runs.

A value may be made in parts by several steps (a Concat made in place); whoever reads one part needs only its maker.
A symbol counts as a value: who uses it needs the step that sets it, and the checks of it.
"""

from __future__ import annotations

from aot.lowering.steps import Step, Steps
from codegen.index import bounds, normal
from codegen.loops import Expr, Load, Var
from codegen.traverse import members


class Makers:
    """Who makes what, as the steps are now."""

    def __init__(self, steps: Steps) -> None:
        self.of: dict[str, list[Step]] = {}
        self.sizes = steps.sizes
        self.setters: dict[Var, Step] = {}
        self.checks: list[tuple[frozenset[Var], Step]] = []
        for step in steps.steps:
            for b in step.writes():
                self.of.setdefault(b.name, []).append(step)
            self.setters |= dict.fromkeys(step.sets(), step)
            if step.checks:
                self.checks.append((self.sizes.late_of(*step.sizes()), step))

    def above(self, step: Step) -> list[Step]:
        """Steps that make what `step` reads; not itself."""
        found: dict[int, Step] = {}
        for load in step.reads():
            made = self.of.get(load.buffer.name, [])
            for maker in made:
                if maker is not step and (len(made) == 1 or overlaps(load, maker)):
                    found[id(maker)] = maker
        if self.setters or self.checks:
            found |= {id(s): s for s in self._before_symbols(step) if s is not step}
        return list(found.values())

    def _before_symbols(self, step: Step) -> list[Step]:
        """Steps that set the symbols that `step` uses, and check them."""
        used = self.sizes.late_of(*step.sizes())
        setters = [self.setters[v] for v in sorted(used, key=lambda v: v.name) if v in self.setters]
        return setters + [s for checked, s in self.checks if not step.checks and used and checked <= used]


def overlaps(load: Load, maker: Step) -> bool:
    """May `load` read what `maker` writes, as far as ranges tell?"""
    for work in maker.works:
        definitions = list(members(work))
        if not definitions:
            return True
        for d in definitions:
            if d.out.name == load.buffer.name and not _apart(load.index, d.target):
                return True
    return False


def _apart(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
    for a, b in zip(one, other, strict=True):
        (low, high), (least, most) = bounds(normal(a, {})), bounds(normal(b, {}))
        if high < least or most < low:
            return True
    return False


def sort(steps: Steps) -> None:
    """Makers before readers; otherwise as it was."""
    makers = Makers(steps)
    done: set[int] = set()
    order: list[Step] = []
    for root in steps.steps:
        stack = [(root, False)]
        while stack:
            step, ready = stack.pop()
            if ready:
                order.append(step)
            elif id(step) not in done:
                done.add(id(step))
                stack.append((step, True))
                stack += [(m, False) for m in reversed(makers.above(step))]
    steps.steps = order
