"""Definitions and statements as later passes expect them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.codegen.ir.definition import LOCAL, Definition, Group, identity
from aot.codegen.ir.expressions import loads, rewrite
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Reduce, Var, prim
from aot.codegen.ir.traverse import Work, local, move_loads, rewrite_work
from aot.ir.values.deferred import Deferred
from aot.lowering.ir.steps import Value


def apart(work: Work) -> Work:
    """Give buffers that are local to statements names that no value in memory has."""
    if isinstance(work, Definition | Group):
        return work
    inner = {b.name: replace(b, name=f"{b.name}{LOCAL}") for b in local(work)}
    return rewrite_work(work, move_loads(inner), lambda b: inner.get(b.name, b))


def is_empty(work: Work) -> bool:
    """True if a definition has no points."""
    return isinstance(work, Definition) and any(a.extent == 0 for a in work.axes)


def foreign(buffer: Buffer) -> Buffer:
    """Return the buffer as memory of the caller, which is aligned to its elements only."""
    return replace(buffer, align=buffer.dtype.stored_bytes)


def tidy(d: Definition, values: dict[str, Value]) -> Definition:
    """Drop reduction axes of extent 1, rename those named like output axes, and inline constants of one element."""
    reduction, taken = d.reduction, {a.name.removesuffix(LOCAL) for a in d.axes}
    value = d.value
    if reduction is not None:
        change: dict[Expr, Expr] = {}
        axes: list[Var] = []
        for a in reduction.axes:
            fresh = replace(a, name=f"{a.name}r") if a.name in taken else a
            change[a] = Const(0) if a.extent == 1 else fresh
            axes += [] if a.extent == 1 else [fresh]
        if tuple(axes) != reduction.axes or any(a.extent == 0 for a in axes):
            body = rewrite(reduction.body, change)
            init = rewrite(reduction.init, change) if reduction.init is not None else None
            value = rewrite(value, {reduction: _reduced(reduction.fn, tuple(axes), body, init)})
    if any(_number(x, values) is not None for x in loads(value)):
        value = rewrite(value, lambda e: _number(e, values))
    return d if value is d.value else replace(d, value=value)


def _reduced(fn: str, axes: tuple[Var, ...], body: Expr, init: Expr | None) -> Expr:
    if any(a.extent == 0 for a in axes):
        return identity(fn, body.dtype) if init is None else init
    if axes:
        return Reduce(fn, axes, body, init)
    return body if init is None else prim(fn, init, body)


def _number(e: Expr, values: dict[str, Value]) -> Expr | None:
    if not isinstance(e, Load) or e.buffer.name not in values:
        return None
    data = values[e.buffer.name].data
    if data is None or isinstance(data, Deferred) or data.size != 1:
        return None
    number = np.asarray(data).reshape(-1)[0]
    return Const(float(number) if e.dtype.is_float else int(number), e.dtype)
