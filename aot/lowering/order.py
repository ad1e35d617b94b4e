"""Which steps a step needs, and an order that runs.

A value may be made in parts by several steps (a Concat made in place); whoever reads one part needs only its maker.
A symbol counts as a value: who uses it needs the step that sets it, and the checks of it.
"""

from __future__ import annotations

from math import inf

from aot.lowering.steps import Step, Steps
from codegen.expressions import variables
from codegen.index import Affine, atom_bounds, bounds, normal
from codegen.loops import Expr, Load, Var, as_expr
from codegen.traverse import members
from runtime.abi import DType
from runtime.errors import InternalError


class Makers:
    """Who makes what, as the steps are now."""

    def __init__(self, steps: Steps) -> None:
        self.of: dict[str, list[Step]] = {}
        self.sizes, self.known = steps.sizes, frozenset(steps.known())
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
                if maker is not step and (len(made) == 1 or overlaps(load, maker, self.known)):
                    found[id(maker)] = maker
        if self.setters or self.checks:
            found |= {id(s): s for s in self._before_symbols(step) if s is not step}
        return list(found.values())

    def _before_symbols(self, step: Step) -> list[Step]:
        """Steps that set the symbols that `step` uses, and check them; no check waits for what `step` itself sets."""
        used = self.sizes.late_of(*step.sizes())
        mine = frozenset(step.sets())
        setters = [self.setters[v] for v in sorted(used, key=lambda v: v.name) if v in self.setters]
        checks = [s for checked, s in self.checks if checked <= used and not checked & mine]
        return setters + (checks if used and not step.checks else [])


def overlaps(load: Load, maker: Step, symbols: frozenset[Var]) -> bool:
    """May `load` read what `maker` writes, as far as ranges tell? Other variables than `symbols` are axes."""
    for work in maker.works:
        definitions = list(members(work))
        if not definitions:
            return True
        for d in definitions:
            if d.out.name == load.buffer.name and not _apart(load.index, d.target, symbols):
                return True
    return False


def _apart(one: tuple[Expr, ...], other: tuple[Expr, ...], symbols: frozenset[Var]) -> bool:
    return any(_before(a, b, symbols) or _before(b, a, symbols) for a, b in zip(one, other, strict=True))


def _before(a: Expr, b: Expr, symbols: frozenset[Var]) -> bool:
    """Is `a` less than `b`, wherever the axes of both are and whatever the symbols are?"""
    most, least = _end(normal(a, {}), True, symbols), _end(normal(b, {}), False, symbols)
    return most is not None and least is not None and bounds(least.plus(most, -1))[0] > 0


def _end(a: Affine, top: bool, symbols: frozenset[Var]) -> Affine | None:
    """The greatest or the least value over the axes, which the two sides do not share; None if it is not known."""
    total = Affine({}, a.const)
    for atom, c in a.terms.items():
        highest = (c > 0) is top
        if all(v in symbols or v.extent is None for v in variables(atom)):
            end = Affine({atom: 1})
        elif isinstance(atom, Var):
            last = normal(as_expr(atom.extent or 0, DType.I64) - 1, {})
            end = _end(last, True, symbols) if highest else Affine({}, atom.low)
        else:
            number = atom_bounds(atom)[highest]
            end = Affine({}, int(number)) if abs(number) < inf else None
        if end is None:
            return None
        total = total.plus(end.times(c))
    return total


def sort(steps: Steps) -> None:
    """Makers before readers; otherwise as it was."""
    makers = Makers(steps)
    begun: set[int] = set()
    done: set[int] = set()
    order: list[Step] = []
    for root in steps.steps:
        stack = [(root, False)]
        while stack:
            step, ready = stack.pop()
            if ready:
                order.append(step)
                done.add(id(step))
            elif id(step) not in begun:
                begun.add(id(step))
                stack.append((step, True))
                above = makers.above(step)
                if circular := next((m for m in above if id(m) in begun and id(m) not in done), None):
                    raise InternalError(f"order: {_named(step)} and {_named(circular)} need each other")
                stack += [(m, False) for m in reversed(above)]
    steps.steps = order


def _named(step: Step) -> str:
    return " + ".join(step.layers)
