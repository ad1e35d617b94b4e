"""Which steps a step needs, and an order that runs.

A value may be made in parts by several steps (a Concat made in place); whoever reads one part needs only its maker.
"""

from __future__ import annotations

from aot.lowering.define import Step, Steps
from codegen.index import bounds, normal
from codegen.loops import Expr, Load
from codegen.traverse import members


class Makers:
    """Who makes what, as the steps are now."""

    def __init__(self, steps: Steps) -> None:
        self.of: dict[str, list[Step]] = {}
        for step in steps.steps:
            for b in step.writes():
                self.of.setdefault(b.name, []).append(step)

    def above(self, step: Step) -> list[Step]:
        """Steps that make what `step` reads; not itself."""
        found: dict[int, Step] = {}
        for load in step.reads():
            made = self.of.get(load.buffer.name, [])
            for maker in made:
                if maker is not step and (len(made) == 1 or overlaps(load, maker)):
                    found[id(maker)] = maker
        return list(found.values())


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
