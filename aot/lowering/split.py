"""Axes that are read by quotient and remainder become two: transposed convolutions with stride become products.

    y[c, h, w] = add[ic](x[ic, h // 2, w // 2] * k[ic, c, h % 2, w % 2])
    y[c, 2 h + p, 2 w + q] = add[ic](x[ic, h, w] * k[ic, c, p, q])              one product for each p, q
    y[j // 4, 2 h + j // 2 % 2, 2 w + j % 2] = ...                              few channels: p and q are columns, too
"""

from __future__ import annotations

from dataclasses import replace

from aot.lowering.steps import Steps
from codegen.define import Definition
from codegen.expressions import loads, rewrite, variables, walk
from codegen.index import normal
from codegen.loops import Const, Expr, Load, Prim, Var

FEW = 8  # channels that do not fill a vector


def split(steps: Steps) -> None:
    """Rewrite every reduction that has such axes."""
    for step in steps.steps:
        d = step.definition
        if d is not None and d.reduction is not None and not d.where:
            made = _split(d)
            if made is not None:
                step.works = (made,)


def _split(d: Definition) -> Definition | None:
    change: dict[Expr, Expr] = {}
    quotients: list[Var] = []
    rests: list[Var] = []
    for a in d.axes:
        step = _step(d, a)
        if step:
            assert isinstance(a.extent, int)
            quotients.append(Var(a.name, a.extent // step))
            rests.append(Var(f"{a.name}{step}", step))
            change[a] = quotients[-1] * step + rests[-1]
    if not change:
        return None
    value = _normalised(rewrite(d.value, change))
    index = tuple(normal(rewrite(i, change), {}).expr() for i in d.target)
    kept = [a for a in d.axes if a not in change]
    made = Definition(d.out, (*kept, *quotients, *rests), value, index)
    if not _plain(made, (*quotients, *rests)):
        return None
    return _merged(made, [a for a in kept if _is_channel(made, a)], rests)


def _step(d: Definition, a: Var) -> int:
    """What `a` is divided by wherever the reduction reads with it; 0 if that is not one number."""
    assert d.reduction is not None
    found = {
        int(q.args[1].value)
        for x in loads(d.reduction.body)
        for i in x.index
        for q in walk(normal(i, {}).expr())
        if isinstance(q, Prim) and q.fn == "floordiv" and q.args[0] == a and isinstance(q.args[1], Const)
    }
    step = found.pop() if len(found) == 1 else 0
    return step if step > 1 and isinstance(a.extent, int) and a.extent % step == 0 else 0


def _normalised(e: Expr) -> Expr:
    def change(x: Expr) -> Expr | None:
        if isinstance(x, Load):
            return Load(x.buffer, tuple(normal(rewrite(i, change), {}).expr() for i in x.index))
        return None

    return rewrite(e, change)


def _plain(d: Definition, axes: tuple[Var, ...]) -> bool:
    """Is each axis alone in the indices that it is in, wherever the reduction reads?"""
    assert d.reduction is not None
    return all(i in axes or not variables(i) & set(axes) for x in loads(d.reduction.body) for i in x.index)


def _is_channel(d: Definition, a: Var) -> bool:
    assert d.reduction is not None
    return any(a in x.index for x in loads(d.reduction.body)) and not all(a in x.index for x in loads(d.reduction.body))


def _merged(d: Definition, channels: list[Var], rests: list[Var]) -> Definition:
    """The remainders as part of the channel axis, where there are few channels."""
    extent = 1
    for a in (*channels, *rests):
        assert isinstance(a.extent, int)
        extent *= a.extent
    count = extent
    for a in rests:
        assert isinstance(a.extent, int)
        count //= a.extent
    if len(channels) > 1 or count >= FEW:
        return d
    taken = {a.name for a in d.axes if a not in channels}
    j = Var(next(n for n in ("c", "j", "channel") if n not in taken), extent)
    change: dict[Expr, Expr] = {}
    rest: Expr = j
    for a in reversed((*channels, *rests)):
        assert isinstance(a.extent, int)
        change[a] = rest % a.extent
        rest = rest // a.extent
    kept = tuple(a for a in d.axes if a not in change)
    return replace(
        d, axes=(*kept, j), value=_normalised(rewrite(d.value, change)),
        index=tuple(normal(rewrite(i, change), {}).expr() for i in d.target),
    )  # fmt: skip
