"""Reductions whose loads move with an output axis: products of matrices, convolutions, windows over channels.

    y[i, j] = add[k](a[i, k] * b[k, j])     order[j i k] tile[i:6 j:16/cut] lanes[j:8] pack[b.1:16]

The lanes run along the axis where every load is equal, moves by one element, or is a constant that can be packed. The
other output axes are rows: those that all operands move with stay loops of their own, the rest is flattened where its
tiles come out better, and the register tile is the one that costs least for these extents on this target.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

from codegen.costs import COSTS
from codegen.ir.access import buffer_bytes, reads, runs_on, store, varies
from codegen.ir.chains import is_chains
from codegen.ir.definition import Definition
from codegen.ir.dot_widths import (
    dot_factors,
    fields,
    is_guarded,
    scaled_sum,
    takes_arranged,
    takes_rows,
    takes_words,
    word,
)
from codegen.ir.expressions import variables
from codegen.ir.loops import Var
from codegen.ir.schedule import Pack, Schedule, Tail, Tile
from codegen.nest.apart import has_equal_steps
from codegen.nest.padding_terms import PaddingTerms, padding_terms
from codegen.schedules.chains import chained
from codegen.schedules.depthwise import window
from codegen.schedules.grouped import grouped
from codegen.schedules.matrix import in_tiles
from codegen.schedules.pointwise import fresh, lane_count, packs
from codegen.schedules.product_form import (
    MatmulShape,
    extent,
    is_thin,
    loops_of,
    matmul_shape,
    parts,
    row_tile,
    width_of,
)
from codegen.schedules.reasons import note
from codegen.schedules.register_tile import tile_count, tile_of
from codegen.schedules.scaled import column_bytes, field_axes, kept_vectors, panel_bytes, step_axis, takes_pairs
from codegen.target import Target
from runtime.abi import DType

# Unrolled terms of a sum, by the type of its weights. Of i16 one word: more would reorder sums.
UNROLLED_DOT_TERMS = {DType.I8: 16, DType.U8: 16, DType.I16: 2, DType.U16: 2, DType.BF16: 16}


def product(d: Definition, target: Target, constants: frozenset[str], shared: frozenset[Var]) -> Schedule | None:
    """Return the schedule of a product; None if no output axis serves as lanes."""
    form = matmul_shape(d, constants, shared, lane_count(d, target), target.sums_pairs)
    if form is None:
        return None
    lanes = lane_count(d, target)
    note(lambda: _shape_text(d, form))
    if (plan := in_tiles(d, form, target, constants, shared)) is not None:
        return plan
    if is_chains(d.reduction):
        return chained(d, form, lanes, target, constants, shared)
    if (plan := grouped(d, form, lanes, target, constants, shared)) is not None:
        return plan
    if is_thin(d, form):
        note(lambda: f"fewer than {COSTS.min_product_lanes} iterations for lanes, and the sum runs along memory")
        return None
    if form.window:
        return window(d, form, lanes, target, constants, shared)
    return _matrix(d, form, lanes, target, constants, shared)


def _shape_text(d: Definition, form: MatmulShape) -> str:
    kind = "windows over channels" if form.window else "a product"
    roles = {"rows": form.rows, "outside": form.outer, "sums": form.sums}
    parts = (f"{role} {' '.join(f'{a.name}:{extent(a)}' for a in axes)}" for role, axes in roles.items() if axes)
    return f"{d.out.name}: {kind}: lanes {form.lane.name}:{extent(form.lane)}, {', '.join(parts)}"


def _matrix(
    d: Definition, form: MatmulShape, lanes: int, target: Target, constants: frozenset[str], shared: frozenset[Var]
) -> Schedule:
    width = width_of(extent(form.lane), lanes)
    fuse: list[tuple[str, tuple[str, ...]]] = []
    sums = _fused_sums(d, form, fuse)
    skipped = [b for b in padding_terms(d) if b.axis.name in sums[:-1] and b.share >= COSTS.min_skipped_share]
    rows, row_loops = _rows(d, form, width, target, fuse, skipped, constants)
    apart = step_axis(d, form)
    depth = 0 if row_loops else column_bytes(d, form, apart)
    cores = 1 if shared or form.outer else target.cores
    kept = kept_vectors(d, form, apart)
    scaled = apart is not None and d.reduction is not None and scaled_sum(d.reduction) is not None
    height, vectors = tile_of(
        _count(form, rows, fuse), extent(form.lane), width, target, depth, cores, kept, 1 + scaled
    )
    loops = loops_of(d, form.outer, fuse)
    down, across = [*row_loops, *([rows] if rows else [])], [form.lane.name]
    panels = tile_count(extent(form.lane), width * vectors)
    if row_loops:
        first = prod(extent(a) for a in form.rows if a.name != rows) if varies(form.rows) else extent(form.rows[0])
    else:
        first = tile_count(_count(form, rows, fuse), height)
    outside = _weights_outside(d, form, target)
    if not loops and min(first, panels) < 2 * target.cores <= max(first, panels):
        outside = panels > first  # enough units for the threads comes first
    if loops and _shares_badly(form.outer, target) and first >= 2 * target.cores:
        outside, order = False, (*down, *loops, *across, *sums)
    else:
        order = (*loops, *(across + down if outside else down + across), *sums)
    fetched = outside and panels > 1 and not varies(form.sums) and prod(map(extent, form.rows)) >= COSTS.fetch_rows
    tiles = [Tile(form.lane.name, width * vectors, Tail.CUT)]
    if rows:
        tiled = dict(fuse).get(rows, (rows,))
        tiles.insert(0, row_tile([a for a in form.rows if a.name in tiled], rows, height, few=fetched))
    plans = _packs(d, form, constants, width * vectors)
    inner = tuple(a for n in dict(fuse).get(sums[-1], (sums[-1],)) for a in form.sums if a.name == n)
    terms, plans = _dots(d, form, inner, plans, target)
    dots = terms > 0
    whole = dots and scaled  # steps add up integers
    # Of i16 each word is a step of its own, which a prefetch would lengthen by a seventh.
    epilogue = _prefetches_epilogue(form, target) and terms != UNROLLED_DOT_TERMS[DType.I16]
    tiles += _sum_tiles(d, form, sums[-1], terms, epilogue)
    blocked = outside and not loops and not shared
    blocks = _blocks(d, form, width * vectors, target) if blocked else ()
    if blocked and not blocks and down and not varies(form.rows):
        blocks = _halves(down[0], _count(form, down[0], fuse), prod(map(extent, form.rows)), target)
    if row_loops and not (outside or loops or shared or whole):
        blocks = _slices(d, form, sums[:-1], width * vectors, target)
    within = (
        _prefetch_within(d, form, width * vectors, target)
        if outside and len(plans) == 1 and not (loops or blocks or row_loops or dots or shared)
        else None
    )
    streamed = None if plans or dots or len(sums) > 1 else _lying_across(d, form, constants, target)
    return Schedule(
        fuse=tuple(fuse),
        blocks=blocks,
        order=order,
        tile=tuple(tiles),
        skip_padding=tuple(b.axis.name for b in skipped),
        lanes=(form.lane.name, width),
        pack=plans,
        prefetch=plans[0].operand if within is not None or (fetched and len(plans) == 1 and not dots) else streamed,
        prefetch_within=within,
        apart=apart.name if apart is not None and (whole or not (dots or blocks)) else None,
        dots=sums[-1] if dots else None,
        prefetch_epilogue=epilogue,
        prefetch_level=2 if streamed is not None else _prefetch_level(form, target),
        parallel=None if shared else order[0],
    )


def _sum_tiles(d: Definition, form: MatmulShape, inner: str, terms: int, epilogue: bool) -> list[Tile]:
    """Return the tiles of the sum, whose innermost loop is `inner`. `terms`: those that dots unroll, 0 without dots."""
    if terms:
        return [*(Tile(a.name, extent(a), Tail.CUT) for a in field_axes(d, form)), Tile(inner, terms, Tail.CUT)]
    if takes_pairs(d, form):
        return [Tile(inner, 2, Tail.CUT)]
    return [Tile(inner, COSTS.fetch_steps, Tail.CUT)] if epilogue else []


def _shares_badly(loops: tuple[Var, ...], target: Target) -> bool:
    """True if so few iterations surround the tile that some cores get one more than others."""
    count = extent(loops[0])
    return not varies(loops) and len(loops) == 1 and count < 2 * target.cores and count % target.cores > 0


def _prefetch_within(d: Definition, form: MatmulShape, width: int, target: Target) -> int | None:
    """Return `Schedule.prefetch_within`; None without prefetching.

    It pays where a call reads more weights than its core's L2 keeps between inferences and L3 has the rest, and few
    rows use them. Weights from memory come as fast without.
    """
    if not target.fetches_from_l3:
        return None
    if varies((*form.sums, *form.rows, form.lane)) or prod(map(extent, form.rows)) > COSTS.stream_rows:
        return None
    panel = prod(map(extent, form.sums)) * width * panel_bytes(d, form)
    total, kept = panel * tile_count(extent(form.lane), width), target.l2 * 7 // 8
    if not max(kept, panel) < total <= target.l3:
        return None
    return 0 if total > target.cores * target.l2 else kept // panel + 1


def _lying_across(d: Definition, form: MatmulShape, constants: frozenset[str], target: Target) -> str | None:
    """Return the operand whose next step of the sum lies in another page, if it may be larger than L2; else None.

    Each step begins elsewhere, as in a product of keys that lie token by token: hardware follows fewer sequences than a
    sum has steps, and none into another page. So half of the memory's speed is lost without prefetches.
    """
    k = form.sums[-1]
    if varies(form.sums):
        return None
    for x in reads(d, body=True):
        far = x.reach(k) * x.buffer.dtype.stored_bytes >= COSTS.page_bytes or x.steps[k] is None
        large = varies((form.lane,)) or extent(form.lane) * extent(k) * x.buffer.dtype.stored_bytes > target.l2
        if x.buffer.name not in constants and x.steps[form.lane] == 1 and far and large:
            return x.buffer.name
    return None


def _prefetch_level(form: MatmulShape, target: Target) -> int:
    """Return the cache to prefetch into: L2 where few rows use a panel, as more lines are in flight than fit L1."""
    near = target.fetches_near and (varies(form.rows) or prod(map(extent, form.rows)) > COSTS.single_use_rows)
    return 1 if near else 2


def _dots(
    d: Definition, form: MatmulShape, inner: tuple[Var, ...], plans: tuple[Pack, ...], target: Target
) -> tuple[int, tuple[Pack, ...]]:
    """Return the unrolled terms of a sum by dots, 0 without, and the packing of its weights.

    Dots of i16 are used only where there are those of bytes, too.
    """
    factors = dot_factors(d.reduction, form.lane.name) if d.reduction is not None else None
    kind = factors[1].buffer.dtype if factors is not None else None
    if d.reduction is None or kind is None or not target.dot_terms(kind):
        return 0, plans
    if kind.is_float and is_guarded(d.reduction):
        return 0, plans
    if scaled_sum(d.reduction) is not None:
        steps = step_axis(d, form)
        if steps is None or steps in inner or not has_equal_steps(d.reduction, steps):
            return 0, plans
    plan = next((p for p in plans if p.operand == factors[1].buffer.name), None) if factors is not None else None
    if plan is not None and takes_words(d, inner, plan, form.lane.name):
        few = fields(d.reduction) is not None  # elements of a word alone, since their loop is inside of that of fields
        terms = word(kind) if few else UNROLLED_DOT_TERMS[kind]
        return terms, tuple(replace(p, words=len(inner)) if p == plan else p for p in plans)
    rows = not plans and len(inner) == 1 and any(f(d, inner[0], form.lane.name) for f in (takes_arranged, takes_rows))
    return UNROLLED_DOT_TERMS[kind] if rows else 0, plans


def _prefetches_epilogue(form: MatmulShape, target: Target) -> bool:
    """True if there is time to fetch while a tile is summed.

    There is none on aarch64, where the strides of the rows would take registers that the tile needs.
    """
    if varies((*form.sums, *form.rows)) or target.machine == "aarch64":
        return False
    rows, steps = prod(map(extent, form.rows)), prod(map(extent, form.sums))
    if rows < COSTS.fetch_rows or steps < COSTS.epilogue_fetch_steps:
        return False
    return extent(form.sums[-1]) % COSTS.fetch_steps == 0


def _packs(d: Definition, form: MatmulShape, constants: frozenset[str], width: int) -> tuple[Pack, ...]:
    return packs(reads(d, body=True), form.lane, constants, width, form.sums, form.outer)


def _rows(
    d: Definition,
    form: MatmulShape,
    width: int,
    target: Target,
    fuse: list[tuple[str, tuple[str, ...]]],
    skipped: list[PaddingTerms],
    constants: frozenset[str],
) -> tuple[str, list[str]]:
    """Return the axis that is tiled and the loops around it. Rows are flattened into one axis if its tiles are fuller.

    They are not if padding along the last axis can be skipped: more of its tiles then lie in the padding as a whole.
    """
    if not form.rows:
        return "", []
    last = form.rows[-1]
    if varies(form.rows):
        accesses = (store(d), *(x for x in reads(d) if any(x.moves(a) for a in form.rows)))
        if len(form.rows) > 1 and all(runs_on(accesses, a, b) for a, b in pairwise(form.rows)):
            fuse.append((fresh("p", d), tuple(a.name for a in form.rows)))
            return fuse[-1][0], []
        packed = any(x.buffer.name in constants for x in reads(d, body=True))
        last = last if packed else _certain(form.rows)
        return last.name, loops_of(d, [a for a in form.rows if a is not last], fuse)
    alone, _ = tile_of(extent(last), extent(form.lane), width, target)
    count = prod(extent(a) for a in form.rows)
    together, _ = tile_of(count, extent(form.lane), width, target)
    apart = any(last in variables(b.index) for b in skipped)
    fewer = tile_count(extent(last), alone) * (count // extent(last)) <= tile_count(count, together)
    if len(form.rows) == 1 or apart or fewer:
        return last.name, [a.name for a in form.rows[:-1]]
    name = fresh("p", d)
    fuse.append((name, tuple(a.name for a in form.rows)))
    return name, []


def _certain(rows: tuple[Var, ...]) -> Var:
    """Return the row axis to tile: the last one, but a longer static one if it is dynamic and may have one iteration.

    Queries of the heads that share keys, for instance: their number is known, that of the tokens is often 1.
    """
    static = [a for a in rows if isinstance(a.extent, int) and a.extent >= COSTS.static_tile_rows]
    return max(static, key=extent) if static and not isinstance(rows[-1].extent, int) else rows[-1]


def _count(form: MatmulShape, rows: str, fuse: list[tuple[str, tuple[str, ...]]]) -> int:
    together = dict(fuse).get(rows, (rows,))
    return prod(extent(a) for a in form.rows if a.name in together)


def _fused_sums(d: Definition, form: MatmulShape, fuse: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the loops of the sum; the two innermost are fused if all shared operands are contiguous across them."""
    names = [a.name for a in form.sums]
    if len(form.sums) < 2:
        return names
    outer, inner = form.sums[-2:]
    shared = [x for x in reads(d, body=True) if not x.moves(form.lane)]
    if not isinstance(inner.extent, int) or any(x.steps[outer] != inner.extent * (x.steps[inner] or 0) for x in shared):
        return names
    if takes_pairs(d, form) or field_axes(d, form):
        return names
    name = fresh("kc", d)
    fuse.append((name, (outer.name, inner.name)))
    return [*names[:-2], name]


def _weights_outside(d: Definition, form: MatmulShape, target: Target) -> bool:
    """True if the loop over panels (of the lanes' operand) is outside: each panel is read once, the rows once a panel.

    That is so if the panels are the larger operand, or would leave L2 while the rows are read.
    """
    panels = extent(form.lane) * column_bytes(d, form, step_axis(d, form))
    most = min(_passing(d, form), target.l2 // 2)
    order = "panels outside" if panels > most else "rows outside"
    room = target.l2 // 2
    note(lambda: f"{order}: panels take {panels} bytes; the rows' operand {_passing(d, form)}, half of L2 {room}")
    return panels > most


def _blocks(d: Definition, form: MatmulShape, width: int, target: Target) -> tuple[tuple[str, int], ...]:
    """Return blocks of the sum if the rows' operand exceeds L2: a block serves several panels in turn.

    L2 holds a block of the rows, the panel in use, the next one, and the accumulators. A near L3 is fast enough to read
    the rows for each panel, without the cost of storing and loading accumulators.
    """
    if target.near_l3 and _passing(d, form) <= target.l3 // (2 * target.cores):
        return ()
    panels, rest = divmod(extent(form.lane), width)
    if len(form.sums) != 1 or varies((*form.sums, form.lane, *form.rows)) or rest or not _waits(d):
        return ()
    (k,), size = form.sums, d.out.dtype.compute.bytes
    together = next((n for n in parts(panels) if n <= COSTS.max_block_panels and panels // n >= 2 * target.cores), 1)
    room = target.l2 * 3 // 4 - prod(map(extent, form.rows)) * together * width * size
    each = _passing(d, form) // extent(k) + 2 * width * panel_bytes(d, form)
    steps = next((n for n in parts(extent(k)) if n * each <= room), 0)
    if not COSTS.min_block_steps <= steps < extent(k) or together == 1:
        return ()
    return (form.lane.name, width * together), (k.name, steps)


def _halves(axis: str, n: int, rows: int, target: Target) -> tuple[tuple[str, int], ...]:
    """Return blocks of rows, one for each core, so that a core reads the rows that it wrote in the call before.

    Each core then reads all weights, so a block needs rows enough to hide that: `COSTS.min_core_rows`.
    """
    count = next((c for c in parts(n) if c <= target.cores and rows // c >= COSTS.min_core_rows), 1)
    return ((axis, n // count),) if count > 1 else ()


def _slices(
    d: Definition, form: MatmulShape, taps: list[str], width: int, target: Target
) -> tuple[tuple[str, int], ...]:
    """Return blocks of one tap of a window for some rows, if not even one panel of the whole sum fits half of L2."""
    window = [a for a in form.sums if a.name in taps]
    if len(window) < len(taps) or varies((*form.rows, form.lane, *form.sums)) or not _waits(d):
        return ()
    size, terms = panel_bytes(d, form), prod(map(extent, form.sums))
    steps = terms // prod(map(extent, window))
    if terms * width * size <= target.l2 // 2 or steps < COSTS.min_block_steps:
        return ()
    rows = extent(form.rows[0])
    count = next(n for n in reversed(parts(rows)) if n >= min(2 * target.cores, rows))
    reused = prod(map(extent, form.rows)) // count >= COSTS.fetch_rows
    if steps * extent(form.lane) * size > target.l2 // 2 or not reused:
        return ()
    return (form.rows[0].name, rows // count), *((a.name, 1) for a in window)


def _waits(d: Definition) -> bool:
    """True if partial sums can wait in the output."""
    return not d.where and d.reduction is not None and d.reduction.dtype is d.out.dtype


def _passing(d: Definition, form: MatmulShape) -> int:
    """Return the bytes of the rows' largest operand in one point of the outer loops: each panel reads all of it."""
    rows = (x for x in reads(d, body=True) if not x.moves(form.lane))
    return max((buffer_bytes(x.buffer) // prod(extent(a) for a in form.outer if x.moves(a)) for x in rows), default=0)
