"""Sums of scaled integers in tile registers: each step is a sum of bytes, which vectors scale and add up.

alloc c: f32[32, 32], part: i32[32, 32], words: u32[2, 16, 16] @stack
c = 0
for g in 9:                                        a group of 64 numbers
  words[m, k, j] = w[m, g, k / 2, j] >> .. & 15    where bytes hold several numbers each
  tile 0..3 = 0
  tile 0..3 += tile 4, 5 * tile 6, 7               rows of x[i, g], words of 64 terms
  part = tile 0..3
  for i in 32:
    c[i, j] += f32(part[i, j]) * s[i, g] * t[g, j]
for i in 32: y[i, j] = value(c[i, j])

Integers are exact and steps are added in order, so results have the same bits as on vectors
(`aot.codegen.nest.sums.scaled_steps`), which sum the few rows after the last full tile of a dynamic number.
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.access import unravel
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Prim,
    Reduce,
    Space,
    Store,
    TileOp,
    Var,
    as_expr,
    cast,
    dense,
    prim,
)
from aot.codegen.ir.numbers.dot_forms import scaled_sum
from aot.codegen.ir.numbers.matrix_form import MIN_ROWS, ROWS, MatrixForm, matrix_form
from aot.codegen.ir.schedule import Schedule, ScheduleError
from aot.codegen.nest.points import Points, Span, Spans, Stmts
from aot.codegen.nest.stored import unused_name
from aot.codegen.nest.sums.scaled_steps import ScaledStep, register_operands, with_register_values
from aot.codegen.nest.tile_registers.matrix_tiles import (
    Tiles,
    cell,
    column_place,
    dots,
    each_row,
    epilogue,
    loaded,
    shape_of,
    stored,
    tiles_of,
    zeroed,
)
from aot.runtime.abi import DType


def is_summed_by_vectors(schedule: Schedule, points: Points) -> bool:
    """True if a tile of a scaled sum has too few rows for tile registers."""
    row = next((a for a in points.spans if a.name == schedule.matrix), None)
    return schedule.scaled_steps is not None and row is not None and points.extent(row) < MIN_ROWS


def scaled_tile(d: Definition, reduction: Reduce, schedule: Schedule, points: Points) -> Stmts:
    """Return the statements of up to 32 rows and columns."""
    steps = next((a for a in reduction.axes if a.name == schedule.scaled_steps), None)
    form = matrix_form(reduction, points.vector, steps)
    if form is None or steps is None or scaled_sum(reduction) is None or reduction.init is not None:
        raise ScheduleError(f"{d.out.name}: tile registers sum scaled products of bytes, got {reduction.fn}")
    tiles, step = tiles_of(d, schedule, points), Var(f"{steps.name}.o", steps.extent)
    here: Spans = {steps: Span(step, 1)}
    words = None if form.field is None else _words(form, tiles, unused_name("words", d))
    unpacked = () if words is None else _unpacked(form, words, points, reduction, here)
    form = form if words is None else replace(form, w=Load(words, column_place(form, points)), field=None)
    shape, tile_index = (sum(tiles.heights), tiles.columns * ROWS), cell(points, tiles)
    total = dense(unused_name("c", d), *shape, space=Space.STACK, dtype=reduction.dtype)
    part = dense(unused_name("part", d), *shape, space=Space.STACK, dtype=DType.I32)
    scaled_step = ScaledStep(reduction, steps, schedule, points, unused_name("", d))
    hoisted, scaled = register_operands(
        scaled_step.scaled(scaled_step.terms), tiles.row, schedule, points, unused_name("", d)
    )
    add = Store(total, tile_index, rewrite(scaled, {scaled_step.terms: Load(part, tile_index)}), "add")
    added = with_register_values(hoisted, here, each_row(add, points, tiles, here))
    each = *unpacked, *zeroed(tiles), *_blocks(form, tiles, points, here), *stored(tiles, part), *added
    begin = each_row(Store(total, tile_index, as_expr(0, total.dtype)), points, tiles)
    stmts: Stmts = (*begin, For(step, each), *epilogue(d, reduction, points, tiles, total))
    for buffer in (words, part, total):
        stmts = stmts if buffer is None else (Alloc(buffer, stmts),)
    return TileOp("configure", shape=shape_of(form, tiles)), *stmts


def _blocks(form: MatrixForm, tiles: Tiles, points: Points, inner: Spans) -> Stmts:
    """Add the products of a step to the results."""
    assert isinstance(form.axis.extent, int)
    block = Var(f"{form.axis.name}.o", form.axis.extent // form.terms)
    here = inner | {form.axis: Span(block * form.terms, form.terms)}
    return (For(block, (*loaded(form, tiles, points, here), *dots(form, tiles))),)


def _words(form: MatrixForm, tiles: Tiles, name: str) -> Buffer:
    """Return the buffer of the words of a step of some columns: [columns / 16, words, 16]."""
    assert isinstance(form.axis.extent, int)
    shape = tiles.columns, form.axis.extent // form.word, ROWS
    return dense(name, *shape, space=Space.STACK, dtype=DType.U32)


def _unpacked(form: MatrixForm, words: Buffer, points: Points, reduction: Reduce, inner: Spans) -> Stmts:
    """Write the words of a step: each has the fields of the elements that are loaded at once."""
    few, lane = form.field, points.vector
    assert few is not None and lane is not None and isinstance(form.axis.extent, int)
    column, mask = points.point(lane), Const(sum(few.mask << 8 * n for n in range(form.word)), DType.U32)
    parts = [a for a in reduction.axes if a not in inner]
    stores: Stmts = ()
    for n in range(form.axis.extent // form.word):
        known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | inner).items()}
        known |= {lane: points.spans[lane].start + column, **unravel(parts, Const(n * form.word))}
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        word = Prim("word", (rewrite(few.load, known),), DType.U32)
        shifted = prim("shr", word, cast(rewrite(few.shift, known), DType.U32))
        stores += (Store(words, (column // ROWS, Const(n), column % ROWS), prim("and", shifted, mask)),)
    return (For(column, stores, LoopKind.VECTOR, points.lanes),)
