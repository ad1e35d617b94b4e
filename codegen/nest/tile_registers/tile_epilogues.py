"""Rows of a tile's epilogue between the steps of the next tile's sum: tile registers and vectors have their own units.

for i.o in 4:                           alloc c: f32[32, 32]
  alloc c: f32[32, 32]                    for i.o in 4:
    tile 0 = 0                              tile 0 = 0
    for k.o in 16:                          for k.o in 16:
      tile 0 += tile 4 * tile 6               tile 0 += tile 4 * tile 6
    c = tile 0                                if i.o > 0:
    for i.r in 32:                              for i.r in 2:
      y[i.o, i.r] = value(c[i.r])                 y[i.o - 1, k.o * 2 + i.r] = value(c[k.o * 2 + i.r])
                                            c = tile 0
                                          for i.r in 32:
                                            y[3, i.r] = value(c[i.r])

A processor looks ahead by about 500 operations, fewer than an epilogue has. Behind its own sum it would run alone, and
so would the sum after it. Elsewhere: software pipelining. Measured on an Emerald Rapids: a tile of 512 terms takes
686 ns instead of 758; with two steps it gains nothing (`COSTS.min_overlapped_steps`).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.loops import Alloc, Const, Expr, For, If, Let, LoopKind, TileOp, Var, While, prim
from aot.codegen.ir.traverse import rewrite_work
from aot.codegen.nest.points import Stmts


def overlap_epilogues(stmts: Stmts) -> Stmts:
    """Spread the epilogue of each tile in a loop over the sum of the tile after it."""
    statements: Stmts = ()
    for s in stmts:
        match s:
            case For():
                statements += _overlapped(replace(s, body=overlap_epilogues(s.body)))
            case If():
                statements += (replace(s, body=overlap_epilogues(s.body), otherwise=overlap_epilogues(s.otherwise)),)
            case Let() | Alloc() | While():
                statements += (replace(s, body=overlap_epilogues(s.body)),)
            case _:
                statements += (s,)
    return statements


def _overlapped(loop: For) -> Stmts:
    """Return a loop over tiles and the last tile's epilogue; loops without tiles or steps as they are."""
    count = loop.var.extent
    if loop.kind is not LoopKind.SERIAL or not isinstance(count, int) or count < 2:
        return (loop,)
    if len(loop.body) != 1 or not isinstance(alloc := loop.body[0], Alloc):
        return (loop,)
    at = [n for n, s in enumerate(alloc.body) if isinstance(s, For)]
    if len(at) != 2 or at[1] != len(alloc.body) - 1:
        return (loop,)
    start, stores = alloc.body[: at[0]], alloc.body[at[0] + 1 : -1]
    total, rows = alloc.body[at[0]], alloc.body[-1]
    assert isinstance(total, For) and isinstance(rows, For)
    if not all(isinstance(s, TileOp) and s.op == "zero" for s in start):
        return (loop,)
    if not stores or not all(isinstance(s, TileOp) and s.op == "store" and s.buffer == alloc.buffer for s in stores):
        return (loop,)
    later = prim("lt", Const(0), loop.var)
    sums = _with_rows(total, _at(rows, loop.var, loop.var - 1), later)
    if sums is None:
        return (loop,)
    return (Alloc(alloc.buffer, (replace(loop, body=(*start, sums, *stores)), _at(rows, loop.var, Const(count - 1)))),)


def _with_rows(total: For, rows: For, condition: Expr) -> For | None:
    """Return a sum with steps that run, under a condition, the rows of an epilogue in equal parts.

    None for rows that are transposed together, and for few steps.
    """
    chain = [total]
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], For):
        chain.append(inner)
    extents = [f.var.extent for f in chain if isinstance(f.var.extent, int)]
    if rows.kind is not LoopKind.SERIAL or not isinstance(count := rows.var.extent, int):
        return None
    if len(extents) < len(chain) or any(f.kind is not LoopKind.SERIAL for f in chain):
        return None
    iterations = prod(extents)
    if iterations < COSTS.min_overlapped_steps:
        return None
    iteration: Expr = chain[0].var
    for f, extent in zip(chain[1:], extents[1:], strict=True):
        iteration = iteration * extent + f.var
    each = -(-count // iterations)
    part = Var(rows.var.name, each)
    row = iteration * each + part if each > 1 else iteration
    some: Stmts = _body_at(rows, row)
    if each * iterations > count:
        some = (If(prim("lt", row, Const(count)), some),)
    body: Stmts = (*chain[-1].body, If(condition, (For(part, some),) if each > 1 else some))
    for f in reversed(chain):
        body = (replace(f, body=body),)
    (loop,) = body
    assert isinstance(loop, For)
    return loop


def _body_at(loop: For, value: Expr) -> Stmts:
    result = rewrite_work(loop.body, lambda e: value if e == loop.var else None)
    assert isinstance(result, tuple)
    return result


def _at(loop: For, axis: Var, value: Expr) -> For:
    """Return the loop for a value of the variable of a loop around it."""
    rewritten = rewrite_work((loop,), lambda e: value if e == axis else None)
    assert isinstance(rewritten, tuple) and isinstance(rewritten[0], For)
    return rewritten[0]
