"""Counts of the loads of values in kernels: each load of a number of 16 bits is a conversion."""

from __future__ import annotations

from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import all_axes, typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.loops import Load, Var
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.traverse import Work, members
from aot.lowering.ir.steps import Steps


def axes_around(work: Work) -> set[Var]:
    """Return the axes of a group, around all of its definitions."""
    return set(work.axes) if isinstance(work, Group) else set()


def loads_together(steps: Steps) -> dict[str, float]:
    """Return how often the kernel that reads it most loads each element of a value, in one iteration of its group."""
    load_counts: dict[str, float] = {}
    for work in (w for block in steps.blocks() for s in block.steps for w in s.works):
        shared = axes_around(work)
        for d in members(work):
            for x in loads(d.value):
                again = (a for a in all_axes(d) if a not in shared and a not in variables(*x.index))
                times = prod(typical(a.extent or 1) for a in again)
                load_counts[x.buffer.name] = max(load_counts.get(x.buffer.name, 0), times)
    return load_counts


def read_by_windows(steps: Steps) -> frozenset[str]:
    """Return the values that only depthwise windows read: their dots read bf16 in place."""
    windows: set[str] = set()
    others: set[str] = set()
    for d in (d for block in steps.blocks() for s in block.steps for w in s.works for d in members(w)):
        factors = chain_factors(d.reduction) if d.reduction is not None else None
        if factors is not None:
            names = windows if _is_window(d, factors) else others
            names |= {x.buffer.name for x in factors}
    return frozenset(windows - others)


def _is_window(d: Definition, factors: tuple[Load, Load]) -> bool:
    """True if all axes of a sum of products move along an axis of the output."""
    assert d.reduction is not None
    axes = d.reduction.axes
    indices = [variables(i) for x in factors for i in x.index]
    sliding = {a for moving in indices if not moving.isdisjoint(d.axes) for a in moving}
    return sliding.issuperset(axes) and prod(typical(a.extent or 1) for a in axes) >= COSTS.min_converted_window
