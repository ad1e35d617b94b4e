"""Prefetches of products: from L3 within a panel, across pages, and of the epilogue's operands."""

from __future__ import annotations

from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import reads, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.schedules.products.product_form import MatmulShape, extent
from aot.codegen.schedules.products.register_tile import tile_count
from aot.codegen.schedules.products.scaled import panel_bytes
from aot.codegen.target import Target


def prefetch_within(d: Definition, shape: MatmulShape, width: int, target: Target) -> int | None:
    """Return `Schedule.prefetch_within`; None without prefetching.

    It pays where a call reads more weights than its core's L2 keeps between inferences and L3 has the rest, and few
    rows use them. Weights from memory come as fast without.
    """
    if not target.fetches_from_l3:
        return None
    if varies((*shape.sums, *shape.rows, shape.lane)) or prod(map(extent, shape.rows)) > COSTS.stream_rows:
        return None
    panel = prod(map(extent, shape.sums)) * width * panel_bytes(d, shape)
    total, cached_bytes = panel * tile_count(extent(shape.lane), width), target.l2 * 7 // 8
    if not max(cached_bytes, panel) < total <= target.l3:
        return None
    return 0 if total > target.cores * target.l2 else cached_bytes // panel + 1


def operand_across_pages(d: Definition, shape: MatmulShape, constants: frozenset[str], target: Target) -> str | None:
    """Return the operand that may exceed L2 and has its next step of the sum in another page; None without one.

    Each step begins elsewhere, as in a product of keys that lie token by token: hardware follows fewer sequences than a
    sum has steps, and none into another page. So half of the memory's speed is lost without prefetches.
    """
    k = shape.sums[-1]
    if varies(shape.sums):
        return None
    for x in reads(d, body=True):
        crosses_pages = x.reach(k) * x.buffer.dtype.stored_bytes >= COSTS.page_bytes or x.strides[k] is None
        large = varies((shape.lane,)) or extent(shape.lane) * extent(k) * x.buffer.dtype.stored_bytes > target.l2
        if x.buffer.name not in constants and x.strides[shape.lane] == 1 and crosses_pages and large:
            return x.buffer.name
    return None


def prefetch_level(shape: MatmulShape, target: Target) -> int:
    """Return the cache to prefetch into: L2 if few rows use a panel, as more lines are in flight than fit L1."""
    near = target.fetches_near and (varies(shape.rows) or prod(map(extent, shape.rows)) > COSTS.single_use_rows)
    return 1 if near else 2


def epilogue_steps(shape: MatmulShape, columns: int, width: int, target: Target) -> int:
    """Return the steps of the sum between prefetches of the epilogue's lines; 0 if a tile's sum cannot hide them.

    There are none where the strides of the rows would take registers that the tile needs. Little code does without.
    Where the last tile of `columns` has vectors of `width` lanes and a shorter one, LLVM moves accumulators between
    registers in each iteration, so there are more steps in one; so there are where the loop carries no pointers.
    """
    if varies((*shape.sums, *shape.rows)) or not target.machine.prefetches_rows or target.compact_code:
        return 0
    rows, steps = prod(map(extent, shape.rows)), prod(map(extent, shape.sums))
    if rows < COSTS.fetch_rows or steps < COSTS.epilogue_fetch_steps:
        return 0
    last = extent(shape.lane) % columns
    is_mixed = last > width and last % width > 0
    each = COSTS.fetch_steps if target.carries_pointers and not is_mixed else COSTS.long_fetch_steps
    return 0 if extent(shape.sums[-1]) % each else each
