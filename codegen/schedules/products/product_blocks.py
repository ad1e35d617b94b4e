"""Blocks of products for caches: parts of the sum, of the rows, or of a window, with data that stay in L2."""

from __future__ import annotations

from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import buffer_bytes, reads, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.numbers.dot_forms import halved_factors
from aot.codegen.schedules.products.product_form import MatmulShape, extent, parts
from aot.codegen.schedules.products.product_loops import ProductLoops
from aot.codegen.schedules.products.scaled import column_bytes, panel_bytes, step_axis
from aot.codegen.target import Target

Blocks = tuple[tuple[str, int], ...]


def cache_blocks(
    d: Definition, shape: MatmulShape, loops: ProductLoops, width: int, outside: bool, target: Target
) -> Blocks:
    """Return the blocks of a product without loops around its tiles. `width`: columns of a panel.

    `outside`: the loop over panels encloses that over rows.
    """
    if not outside:
        return _tap_blocks(d, shape, loops.sums[:-1], width, target) if len(loops.rows) > 1 else ()
    blocks = _sum_blocks(d, shape, width, target)
    if blocks or not loops.rows or varies(shape.rows):
        return blocks
    return _core_blocks(loops.rows[0], loops.count(loops.rows[0], shape), prod(map(extent, shape.rows)), target)


def near_rows(d: Definition, shape: MatmulShape, loops: ProductLoops, outside: bool, target: Target) -> Blocks:
    """Return blocks of rows that reuse a panel, where each row tile would otherwise read all panels from L2.

    Products by half of the multiplications read two words of weights for one, faster than L2 brings them.
    """
    if outside or halved_factors(d.reduction) is None or len(loops.rows) != 1 or varies(shape.rows):
        return ()
    if extent(shape.lane) * column_bytes(d, shape, None) <= target.l1 // 2:
        return ()
    rows = loops.count(loops.rows[0], shape)
    block_rows = next((n for n in parts(rows) if n <= COSTS.max_near_rows), rows)
    return ((loops.rows[0], block_rows),) if COSTS.min_near_rows <= block_rows < rows else ()


def has_panels_outside(d: Definition, shape: MatmulShape, target: Target) -> bool:
    """True if the loop over panels (of the lanes' operand) is outside: each panel is read once, the rows once a panel.

    That is so if the panels are the larger operand, or would leave L2 while the rows are read.
    """
    return _panel_operand_bytes(d, shape) > min(_row_operand_bytes(d, shape), target.l2 // 2)


def panels_text(d: Definition, shape: MatmulShape, target: Target) -> str:
    """Return the reason of `has_panels_outside` as text."""
    order = "panels outside" if has_panels_outside(d, shape, target) else "rows outside"
    panels, rows = _panel_operand_bytes(d, shape), _row_operand_bytes(d, shape)
    return f"{order}: panels take {panels} bytes; the rows' operand {rows}, half of L2 {target.l2 // 2}"


def _sum_blocks(d: Definition, shape: MatmulShape, width: int, target: Target) -> Blocks:
    """Return blocks of the sum if the rows' operand exceeds L2: a block serves several panels in turn.

    L2 holds a block of the rows, the panel in use, the next one, and the accumulators. A near L3 is fast enough to read
    the rows for each panel, without the cost of storing and loading accumulators.
    """
    if target.near_l3 and _row_operand_bytes(d, shape) <= target.l3 // (2 * target.cores):
        return ()
    panels, rest = divmod(extent(shape.lane), width)
    if len(shape.sums) != 1 or varies((*shape.sums, shape.lane, *shape.rows)) or rest or not _can_wait_in_output(d):
        return ()
    (k,), size = shape.sums, d.out.dtype.compute.bytes
    together = next((n for n in parts(panels) if n <= COSTS.max_block_panels and panels // n >= 2 * target.cores), 1)
    room = target.l2 * 3 // 4 - prod(map(extent, shape.rows)) * together * width * size
    each = _row_operand_bytes(d, shape) // extent(k) + 2 * width * panel_bytes(d, shape)
    steps = next((n for n in parts(extent(k)) if n * each <= room), 0)
    if not COSTS.min_block_steps <= steps < extent(k) or together == 1:
        return ()
    return (shape.lane.name, width * together), (k.name, steps)


def _core_blocks(axis: str, n: int, rows: int, target: Target) -> Blocks:
    """Return blocks of rows, one for each core, so that a core reads the rows that it wrote in the call before.

    Each core then reads all weights, so a block needs rows enough to hide that: `COSTS.min_core_rows`.
    """
    count = next((c for c in parts(n) if c <= target.cores and rows // c >= COSTS.min_core_rows), 1)
    return ((axis, n // count),) if count > 1 else ()


def _tap_blocks(d: Definition, shape: MatmulShape, taps: tuple[str, ...], width: int, target: Target) -> Blocks:
    """Return blocks of one tap of a window for some rows, if not even one panel of the whole sum fits half of L2."""
    window = [a for a in shape.sums if a.name in taps]
    if len(window) < len(taps) or varies((*shape.rows, shape.lane, *shape.sums)) or not _can_wait_in_output(d):
        return ()
    size, terms = panel_bytes(d, shape), prod(map(extent, shape.sums))
    steps = terms // prod(map(extent, window))
    if terms * width * size <= target.l2 // 2 or steps < COSTS.min_block_steps:
        return ()
    rows = extent(shape.rows[0])
    count = next(n for n in reversed(parts(rows)) if n >= min(2 * target.cores, rows))
    reused = prod(map(extent, shape.rows)) // count >= COSTS.fetch_rows
    if steps * extent(shape.lane) * size > target.l2 // 2 or not reused:
        return ()
    return (shape.rows[0].name, rows // count), *((a.name, 1) for a in window)


def _can_wait_in_output(d: Definition) -> bool:
    """True if partial sums can be accumulated in the output, which the value must not read."""
    own = not d.where and not d.overwrites
    return own and d.reduction is not None and d.reduction.dtype is d.out.dtype


def _panel_operand_bytes(d: Definition, shape: MatmulShape) -> int:
    """Return the bytes of the lanes' operand: of all panels."""
    return extent(shape.lane) * column_bytes(d, shape, step_axis(d, shape))


def _row_operand_bytes(d: Definition, shape: MatmulShape) -> int:
    """Return the bytes of the rows' largest operand in one point of the outer loops: each panel reads all of it."""
    rows = (x for x in reads(d, body=True) if not x.moves(shape.lane))
    return max((buffer_bytes(x.buffer) // prod(extent(a) for a in shape.outer if x.moves(a)) for x in rows), default=0)
