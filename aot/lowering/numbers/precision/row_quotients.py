"""Rows divided by a number of their own, as in norms of layers in 16 bits: one division a row, and products.

    s[r] = sqrt(add[j](x[r, j] * x[r, j]) + c)         s[r] = 1 / sqrt(add[j](x[r, j] * x[r, j]) + c)
    y[r, j] = x[r, j] / s[r]                           y[r, j] = x[r, j] * s[r]

A product differs from the quotient by the rounding of 1 / s, which is one of f32; it is 0 where s is above 2^126.
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite
from aot.codegen.ir.loops import Const, Expr, Load, Prim, prim
from aot.codegen.ir.traverse import Work, members, rewrite_work
from aot.runtime.abi import DType


def invert_divisors(work: Work) -> Work:
    """Store the inverse of a row's numbers if its group only divides by them."""
    if not isinstance(work, Group):
        return work
    rows = [d for d in work.members if isinstance(d, Definition) and d.axes == work.axes and d.out in work.temps]
    inverted = {d.out.name for d in rows if d.out.dtype is DType.F32 and _only_divides(work, d.out.name)}

    def product(e: Expr) -> Expr | None:
        match e:
            case Prim("div", (x, Load(buffer) as inverse)) if buffer.name in inverted:
                return prim("mul", rewrite(x, product), inverse)
            case _:
                return None

    if not inverted:
        return work
    rewritten = rewrite_work(work, product)
    assert isinstance(rewritten, Group)
    return replace(
        rewritten,
        members=tuple(
            _inverse(m) if isinstance(m, Definition) and m.out.name in inverted else m for m in rewritten.members
        ),
    )


def _only_divides(group: Group, name: str) -> bool:
    """True if the members read a value as a divisor, and nowhere else."""

    def dividend(e: Expr) -> Expr | None:
        match e:
            case Prim("div", (x, Load(buffer))) if buffer.name == name:
                return rewrite(x, dividend)
            case _:
                return None

    expressions = [e for d in members(group) for e in (d.value, *d.target)]
    divisors, elsewhere = (
        {x.buffer.name for x in loads(*parts)} for parts in (expressions, [rewrite(e, dividend) for e in expressions])
    )
    return name in divisors - elsewhere


def _inverse(d: Definition) -> Definition:
    return replace(d, value=prim("div", Const(1.0, DType.F32), d.value))
