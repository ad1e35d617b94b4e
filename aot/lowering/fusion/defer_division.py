"""Softmax before a product: rows of the result are divided by the sum of the exponentials, not each probability.

    e[r, j] = exp(x[r, j] - m[r])   i[r] = 1 / add[j](e[r, j])   p[r, j] = e[r, j] * i[r]
    y[r, d] = add[j](p[r, j] * v[j, d])
->  p[r, j] = exp(x[r, j] - m[r])   i[r] = 1 / add[j](p[r, j])
    y[r, d] = add[j](p[r, j] * v[j, d]) * i[r]

That saves a pass over the scores. The exponentials of a softmax are 1 at most: a sum overflows only where values are
near the largest float. In bf16 the sum of a row adds the rounded exponentials, which the product reads.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical, varies
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Expr, Load, Prim, Reduce, Var, dense, prim
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.context import Context
from aot.lowering.fusion.substitute import substitution
from aot.lowering.ir.steps import Step, Steps, Value

POWERS = frozenset({"exp_normal", "exp_short"})  # exponentials of x - max(x): `aot.lowering.fusion.tails`


@dataclass(frozen=True, slots=True)
class _Softmax:
    """Members of a group of rows: exponentials, the sum of a row or 1 over it, and `fn` of both, which is stored."""

    powers: Definition
    scale: Definition
    shares: Definition
    fn: str


def defer_division(steps: Steps, _context: Context) -> None:
    """Move the division of softmax after the product that is the only consumer of its result."""
    consumers: dict[str, list[Step]] = {}
    for step in steps.steps:
        for name in {x.buffer.name for x in step.reads()}:
            consumers.setdefault(name, []).append(step)
    for step in steps.steps:
        group = step.works[0] if len(step.works) == 1 else None
        softmax = _softmax(group) if isinstance(group, Group) and len(step.writes()) == 1 else None
        if softmax is None or steps.values[softmax.shares.out.name].region is not MemoryRegion.ARENA:
            continue
        product = consumers.get(softmax.shares.out.name, [])
        if len(product) == 1 and isinstance(group, Group):
            _defer(step, group, softmax, product[0], steps)


def _softmax(g: Group) -> _Softmax | None:
    """Return the last members of a softmax."""
    if len(g.axes) != 1 or not all(isinstance(m, Definition) for m in g.members):
        return None
    definitions = {m.out.name: m for m in g.members if isinstance(m, Definition)}
    shares = g.members[-1]
    match shares:
        case Definition(value=Prim("mul" | "div" as fn, (Load(one), Load(other)))):
            pair = [definitions[b.name] for b in (one, other) if b in g.temps and b.name in definitions]
        case _:
            return None
    if fn == "mul" and len(pair) == 2 and pair[0].axes == g.axes:
        pair.reverse()
    if len(pair) != 2 or pair[1].axes != g.axes or shares.where:
        return None
    powers, scale = pair
    r = scale.reduction
    if not isinstance(powers.value, Prim) or powers.value.fn not in POWERS or r is None or r.fn != "add":
        return None
    summed = isinstance(r.body, Load) and r.body.buffer.name == powers.out.name and r.init is None
    others = [m for m in definitions.values() if m not in (scale, shares)]
    read = {x.buffer.name for m in others for x in loads(m.value)}
    alone = powers.out.name not in read and scale.out.name not in read
    return _Softmax(powers, scale, shares, fn) if summed and alone else None


def _defer(step: Step, group: Group, softmax: _Softmax, product: Step, steps: Steps) -> None:
    """Rewrite a softmax and the product that sums along its rows, so that the division follows the product."""
    d, shares = product.definition, softmax.shares
    r = d.reduction if d is not None else None
    if d is None or r is None or r.fn not in ("add", CHAINS) or r.init is not None or d.where:
        return
    factors = chain_factors(r) or ()
    share_loads = [x for x in loads(d.value, *d.index) if x.buffer.name == shares.out.name]
    if len(share_loads) != 1 or share_loads[0] not in factors or not variables(*shares.target) >= set(shares.axes):
        return
    rows = [k for k, i in enumerate(shares.target) if group.axes[0] in variables(i)]
    rows_only = all(variables(i).isdisjoint(shares.axes[1:]) for k, i in enumerate(shares.target) if k in rows)
    if not rows_only or any(not variables(share_loads[0].index[k]).isdisjoint(r.axes) for k in rows):
        return
    if not _is_shorter(d, r, share_loads[0]) or any(steps.sizes.is_late(shares.out.shape[k]) for k in rows):
        return
    buffer = dense(
        steps.unused(f"{shares.out.name}.scale"), *(shares.out.shape[k] for k in rows), dtype=softmax.scale.out.dtype
    )
    steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA)
    step.works = (_with_powers(group, softmax, Load(buffer, tuple(shares.target[k] for k in rows))),)
    factor = Load(buffer, tuple(share_loads[0].index[k] for k in rows))
    product.works = (replace(d, value=rewrite(d.value, {r: prim(softmax.fn, r, factor)})),)


def _is_shorter(d: Definition, r: Reduce, p: Load) -> bool:
    """True if the product has no more results than there are probabilities; sums of dynamic length count as long."""
    shared = variables(*p.index) - set(r.axes)
    columns = [a for a in d.axes if a not in shared]
    if varies(r.axes) or varies(columns):
        return varies(r.axes)
    return prod(typical(a.extent or 1) for a in columns) <= prod(typical(a.extent or 1) for a in r.axes)


def _with_powers(group: Group, softmax: _Softmax, scale: Load) -> Group:
    """Return the group that stores the exponentials, and the scales of rows at `scale`."""
    powers, shares = softmax.powers, softmax.shares
    own = next(x for x in loads(shares.value) if x.buffer.name == powers.out.name)
    stored = replace(shares, value=substitution(powers)(own) or own)
    change: dict[Expr, Expr] = {i: a for i, a in zip(own.index, powers.target, strict=True) if isinstance(i, Var)}
    at = tuple(rewrite(i, change) for i in shares.target)

    def from_memory(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer.name != powers.out.name:
            return None
        here: dict[Expr, Expr] = dict(zip(powers.target, e.index, strict=True))
        return Load(shares.out, tuple(rewrite(i, here) for i in at))

    sums = Definition(scale.buffer, softmax.scale.axes, rewrite(softmax.scale.value, from_memory), scale.index)
    gone = {powers.out.name, softmax.scale.out.name}
    other_members = (m for m in group.members if m not in (powers, softmax.scale, shares))
    temps = tuple(t for t in group.temps if t.name not in gone)
    return replace(group, temps=temps, members=(*other_members, stored, sums))
