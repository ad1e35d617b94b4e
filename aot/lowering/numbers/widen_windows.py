"""Widens windows of bytes with few channels, so that columns and channels together fill words of tile registers.

    add[kh in 7, kw in 7, ic in 3](i32(x[h + kh, w + kw, ic]) * i32(f[c, kh, kw, ic]))         21 terms side by side
    add[kh in 7, kw in 8, ic in 3](i32(x[h + kh, w + kw, ic]) * i32(f[c, kh, kw, ic]))         24 terms

Filters are zero in the columns that are added, so that the data there count for nothing: their layout has a halo.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Var, prim
from aot.codegen.ir.numbers.matrix_form import BYTES, ROWS, byte_terms
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.ir.steps import Steps
from aot.lowering.numbers.precision.few_channels import MAX_CHANNELS
from aot.runtime.abi import DType

MAX_ADDED = 3  # columns


def widen_windows(steps: Steps) -> None:
    """Add columns to windows of bytes, so that their rows are blocks of tile registers."""
    for step in steps.steps:
        d = step.definition
        window = _window(d, steps) if d is not None else None
        if d is not None and window is not None:
            step.works = (_widened(d, window, steps),)


@dataclass(frozen=True, slots=True)
class _Window:
    """A sum of data `x` and filters `w` over columns, dimension `across` of the data, that become those of `padded`."""

    x: Load
    w: Load
    across: int
    padded: Var


def _window(d: Definition, steps: Steps) -> _Window | None:
    """Return the window of a definition if wider ones fill words; None for others."""
    r = d.reduction
    factors = _factors(r) if r is not None else None
    if r is None or factors is None:
        return None
    x, w = factors if _is_constant(factors[1], steps) else factors[::-1]
    if _is_constant(x, steps) or not _is_constant(w, steps):
        return None
    lanes = [a for a in d.axes if a in w.index and a not in variables(*x.index)]
    channels = [a for a in r.axes if a in x.index and a in w.index and _is_few(a)]
    if len(channels) != 1 or not any(isinstance(a.extent, int) and a.extent >= ROWS for a in lanes):
        return None
    across = max(k for k, i in enumerate(x.index) if i != channels[0])
    columns = [a for a in r.axes if a in w.index and normal(x.index[across], {}).terms.get(a) == 1]
    if len(columns) != 1 or columns[0] in channels or sum(columns[0] in variables(i) for i in x.index) != 1:
        return None
    few, taps = channels[0].extent, columns[0].extent
    if not isinstance(few, int) or not isinstance(taps, int) or byte_terms(few * taps):
        return None
    wide = next((n for n in range(taps + 1, taps + MAX_ADDED + 1) if byte_terms(few * n) == few * n), 0)
    return _Window(x, w, across, replace(columns[0], extent=wide)) if wide else None


def _factors(r: Reduce) -> tuple[Load, Load] | None:
    """Return the bytes that a sum multiplies, without the guards of padding."""
    if r.fn != "add" or r.dtype is not DType.I32 or not isinstance(r.body, Prim) or r.body.fn != "mul":
        return None
    match tuple(map(_without_guards, r.body.args)):
        case (Load() as one, Load() as other) if (one.dtype, other.dtype) in BYTES:
            return one, other
        case _:
            return None


def _without_guards(e: Expr) -> Expr:
    while isinstance(e, Prim) and e.fn in ("cast", "within"):
        e = e.args[0] if e.fn == "cast" else e.args[2]
    return e


def _is_constant(x: Load, steps: Steps) -> bool:
    return steps.values[x.buffer.name].region is MemoryRegion.CONSTANT


def _is_few(channel: Var) -> bool:
    return isinstance(channel.extent, int) and channel.extent <= MAX_CHANNELS


def _widened(d: Definition, window: _Window, steps: Steps) -> Definition:
    r, x, padded = d.reduction, window.x, window.padded
    assert r is not None
    axis = next(a for a in r.axes if a.name == padded.name)
    change: dict[Expr, Expr] = {window.w: Load(_filters(window.w, axis, padded, steps), window.w.index)}
    checked = [normal(e.args[0], {}).key for e in walk(r.body) if isinstance(e, Prim) and e.fn == "within"]
    column = x.index[window.across]
    if normal(column, {}).key not in checked:
        change[x] = prim("within", column, x.buffer.shape[window.across], x, Const(0, x.dtype))
    body = rewrite(rewrite(r.body, change), {axis: padded})
    wider = replace(r, axes=tuple(padded if a == axis else a for a in r.axes), body=body)
    return replace(d, value=rewrite(d.value, {r: wider}))


def _filters(w: Load, axis: Var, wide: Var, steps: Steps) -> Buffer:
    """Return the filters, padded with columns of zeros at the end."""
    data = steps.values[w.buffer.name].array
    assert data is not None and isinstance(axis.extent, int) and isinstance(wide.extent, int)
    beside = [(0, wide.extent - axis.extent if i == axis else 0) for i in w.index]
    return steps.constant(f"{w.buffer.name}.wide", np.pad(data, beside))
