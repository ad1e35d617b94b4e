"""Sums of bf16 products in the order of `aot.codegen.ir.numbers.bf16_chains`, by multiply-adds.

    y[i, j] = chains[k](x[i, k] * w[k, j])     order[j i k] tile[i:6 j:32/cut k:32/cut] lanes[j:16] pack[w.1:16 words]

Each output takes three accumulators, of which two are used in the inner loop: tiles are smaller than in f32.
Weights lie in words of two, in panels of 16 columns, for vectors of any length and for tile registers.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.ir.access import reads, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Var
from aot.codegen.ir.numbers.bf16_chains import block_tile, chain_axis
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile, width_of
from aot.codegen.schedules.pointwise import packs
from aot.codegen.schedules.products.product_form import MatmulShape, extent, loops_of
from aot.codegen.schedules.products.product_loops import tiled_rows
from aot.codegen.schedules.products.product_prefetch import operand_across_pages, prefetch_level
from aot.codegen.schedules.request import Request, ScheduleChoice
from aot.codegen.target import Target

MAX_FEW_ROWS = 3  # rows of the tile whose accumulators, of four vectors, the registers of AVX-512 hold
PANEL = 16  # columns of a panel of the weights, as many as a tile register has


def chain_tiles(request: Request, shape: MatmulShape) -> ScheduleChoice:
    """Return the schedule of a product with a fixed order of its sum."""
    d, target, constants = request.work, request.target, request.constants
    assert d.reduction is not None
    axis, width = chain_axis(d.reduction), width_of(extent(shape.lane), request.lanes)
    loops, fused = loops_of(d, shape.outer)
    row = tiled_rows(d, shape, constants) if shape.rows else None
    down = [*(a.name for a in shape.rows if a is not row), *([row.name] if row is not None else [])]
    height, vectors = _tile(1 if row is None else extent(row), extent(shape.lane), width, target)
    tiles = [Tile(shape.lane.name, width * vectors, Tail.CUT), block_tile(axis)]
    if row is not None:
        tiles.insert(0, Tile(row.name, height, Tail.CUT if varies((row,)) else Tail.BALANCE))
    sums, packings = [a.name for a in d.reduction.axes], word_panels(d, shape, constants, d.reduction.axes)
    rows, panels = prod(map(extent, shape.rows)), prod(map(extent, shape.sums)) * extent(shape.lane)
    outside = panels > rows * extent(axis) and not varies(shape.rows)
    order = (*loops, *([shape.lane.name, *down] if outside else [*down, shape.lane.name]), *sums)
    schedule = Schedule(
        fuse=fused,
        order=order,
        tile=tuple(tiles),
        lanes=(shape.lane.name, width),
        pack=packings,
        prefetch=None if packings else operand_across_pages(d, shape, constants, target),
        prefetch_level=1 if packings else prefetch_level(shape, target),
        parallel=None if request.points else order[0],
    )
    return schedule, ()


def word_panels(
    d: Definition, shape: MatmulShape, constants: frozenset[str], sums: tuple[Var, ...], across: int = 1
) -> tuple[Pack, ...]:
    """Return the packing of constant weights, in words where their innermost axes are the last `across` of `sums`."""
    accesses, inner = reads(d, body=True), sums[-across:]
    packings = packs(accesses, shape.lane, constants, PANEL, sums, shape.outer)
    indices = {x.buffer.name: x.load.index for x in accesses if x.load is not None}
    return tuple(
        replace(p, words=across) if tuple(indices[p.operand][k] for k in p.order[-across:]) == inner else p
        for p in packings
    )


def _tile(rows: int, columns: int, width: int, target: Target) -> tuple[int, int]:
    """Return rows and vectors of the register tile; an output takes two accumulators, a vector of words two registers.

    Four vectors where there are few rows: columns of data are then read in one pass, and halves of their words in turn.
    """
    free, widest = target.registers - 3, max(columns, width)
    # aarch64 keeps the words of all rows until their second numbers are used, unless instructions take these out.
    keeps_weights = not target.machine.loads_operands and "add_odd" not in target.abilities.intrinsics
    sizes = [
        (n, v)
        for v in (1, 2)
        for n in range(1, 9)
        if 2 * n * v + 2 * v + keeps_weights * n <= free and v * width <= widest
    ]
    if rows <= MAX_FEW_ROWS and 8 * rows + 2 <= free and 4 * width <= widest:
        sizes.append((rows, 4))
    return max(sizes, key=lambda t: (min(t[0], rows) * t[1] / (min(t[0], rows) + 2 * t[1]), -t[0]))
