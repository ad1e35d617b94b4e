"""Softmax without denormal numbers: next to the greatest element's exponential, which is 1, they are negligible.

    m[r] = max[j](x[r, j])   e[r, j] = exp(x[r, j] - m[r])   s[r] = add[j](e[r, j])       exp -> exp_normal

Applies to softmax and log-softmax, in whatever operations a model writes them. A quarter of exp's instructions (5 of
20) handle denormal results. Where nothing else reads the greatest element, it may lose NaN: the sum keeps NaN, and
passes it to the whole row.

    m[r] = max[j](x[r, j])                                                                max -> larger
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loaded_names, rewrite
from aot.codegen.ir.loops import Expr, Load, Prim, Reduce, Var, prim
from aot.lowering.fusion.substitute import simplified


def without_tails(
    members: tuple[Definition, ...], rows: tuple[Var, ...], own: frozenset[str]
) -> tuple[Definition, ...]:
    """Shorten the exponentials among the members of a group over `rows`; `own`: values without other consumers."""
    shortened = _Members(members, rows, own)
    shorter = tuple(map(shortened.shortened, members))
    changed = {new.out.name: new for old, new in zip(members, shorter, strict=True) if new is not old}
    if not changed:
        return members
    moved = own & _read(changed.values()) - _read(d for d in shorter if d.out.name not in changed)
    # only the exponentials of a softmax read these, and only to subtract them
    return tuple(_without_nan(d) if d.out.name in moved and _is_maximum_of_row(d) else d for d in shorter)


def _read(definitions: Iterable[Definition]) -> frozenset[str]:
    return frozenset[str]().union(*(loaded_names(e) for d in definitions for e in (d.value, *d.target)))


class _Members:
    def __init__(self, members: tuple[Definition, ...], rows: tuple[Var, ...], own: frozenset[str]) -> None:
        self.members, self.rows, self.own = members, rows, own
        self.of = {d.out.name: d for d in members}

    def shortened(self, d: Definition) -> Definition:
        """Use `exp_normal` where flushed denormals do not change a result."""
        r = d.reduction
        if r is not None and r.fn == "add" and self._is_share(r.body, r.axes):
            return replace(d, value=rewrite(d.value, {r: replace(r, body=_normal(r.body))}))
        along = tuple(a for a in d.axes if a not in self.rows)
        if d.out.name in self.own and self._is_share(d.value, along) and self._only_shares(d.out.name):
            return replace(d, value=_normal(d.value))
        return d

    def _is_share(self, e: Expr, along: tuple[Var, ...]) -> bool:
        """True for the exponential of a difference to the maximum of a row."""
        if not isinstance(e, Prim) or e.fn != "exp":
            return False
        gap = e.args[0]
        producer = self.of.get(gap.buffer.name) if isinstance(gap, Load) else None
        if producer is not None:
            gap, along = producer.value, tuple(a for a in producer.axes if a not in self.rows)
        match gap:
            case Prim("sub", (x, Load(top))) if top.name in self.of:
                return _is_maximum(self.of[top.name].value, x, along)
            case _:
                return False

    def _only_shares(self, name: str) -> bool:
        """True if a value is summed, and all its other consumers read the sum as well."""
        consumers = [d for d in self.members if name in loaded_names(d.value)]
        sums = {d.out.name for d in consumers if (r := d.reduction) and r.fn == "add" and isinstance(r.body, Load)}
        beside = (d for d in consumers if d.out.name not in sums)
        return bool(sums) and not any(sums.isdisjoint(loaded_names(d.value)) for d in beside)


def _is_maximum_of_row(d: Definition) -> bool:
    return d.reduction is not None and d.reduction.fn == "max"


def _without_nan(d: Definition) -> Definition:
    r = d.reduction
    assert r is not None
    return replace(d, value=rewrite(d.value, {r: replace(r, fn="larger")}))


def _normal(e: Expr) -> Expr:
    assert isinstance(e, Prim)
    return prim("exp_normal", *e.args)


def _is_maximum(maximum: Expr, x: Expr, along: tuple[Var, ...]) -> bool:
    """True if `maximum` is the maximum of `x`."""
    if (
        not isinstance(maximum, Reduce)
        or maximum.fn != "max"
        or [a.extent for a in along] != [a.extent for a in maximum.axes]
    ):
        return False
    return simplified(rewrite(maximum.body, dict(zip(maximum.axes, along, strict=True)))) == simplified(x)
