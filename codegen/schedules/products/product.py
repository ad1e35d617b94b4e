"""Reductions whose loads move with an output axis: products of matrices, convolutions, windows over channels.

    y[i, j] = add[k](a[i, k] * b[k, j])     order[j i k] tile[i:6 j:16/cut] lanes[j:8] pack[b.1:16]

The lanes run along the axis where every load is equal, moves by one element, or is a constant that can be packed. The
other output axes are rows: those that all operands move with stay loops of their own, the rest is flattened where its
tiles come out better, and the register tile is the one that costs least for these extents on this target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import reads, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Var
from aot.codegen.ir.numbers.bf16_chains import is_chain_sum
from aot.codegen.ir.numbers.dot_forms import (
    BLOCK_BYTES,
    BLOCK_COLUMNS,
    dot_factors,
    elements_per_dot,
    has_k_paired_weights,
    has_k_words,
    is_centred,
    is_guarded,
    packed_field,
    scaled_sum,
    takes_blocks,
    takes_rows,
)
from aot.codegen.ir.schedule import WORD_BYTES, Pack, Schedule, Tail, Tile, width_of
from aot.codegen.nest.sums.scaled_steps import has_equal_steps
from aot.codegen.schedules.pointwise import packs
from aot.codegen.schedules.products.chain_tiles import chain_tiles
from aot.codegen.schedules.products.depthwise import window
from aot.codegen.schedules.products.grouped import grouped
from aot.codegen.schedules.products.matrix import tile_register_schedule
from aot.codegen.schedules.products.product_blocks import (
    Blocks,
    cache_blocks,
    has_panels_outside,
    near_rows,
    panels_text,
)
from aot.codegen.schedules.products.product_form import (
    MatmulShape,
    extent,
    is_thin,
    matmul_shape,
    row_terms,
    row_tile,
    sums_in_f16,
)
from aot.codegen.schedules.products.product_loops import ProductLoops, product_loops
from aot.codegen.schedules.products.product_prefetch import (
    epilogue_steps,
    operand_across_pages,
    prefetch_level,
    prefetch_within,
)
from aot.codegen.schedules.products.register_tile import (
    Product,
    row_word_tile_of,
    tile_count,
    tile_of,
    tile_text,
)
from aot.codegen.schedules.products.scaled import column_bytes, field_axes, register_vectors, step_axis, takes_pairs
from aot.codegen.schedules.request import Reasons, Request, ScheduleChoice
from aot.codegen.target import Target
from aot.runtime.abi import DType

# Unrolled terms of a sum, by the type of its weights. One word of i16: more would reorder sums.
UNROLLED_DOT_TERMS = {DType.I8: 16, DType.U8: 16, DType.I16: 2, DType.U16: 2, DType.BF16: 16}

ROW_BYTES = 16  # bytes of a row's data that a vector register holds
HALF_TERMS = 64  # products of f16 that are summed in f16: with 128 errors double, and time falls by 2 %


def product(request: Request) -> tuple[Schedule | None, Reasons]:
    """Return the schedule of a product; None if no output axis serves as lanes."""
    d, target = request.work, request.target
    shape = matmul_shape(d, request.constants, request.points, request.lanes, target.abilities.sums_pairs)
    if shape is None:
        return None, ()
    summary: Reasons = (lambda: _shape_text(d, shape),)
    choice = tile_register_schedule(request, shape)
    if choice is None and is_chain_sum(d.reduction):
        choice = chain_tiles(request, shape)
    choice = choice or grouped(request, shape)
    if choice is None and is_thin(d, shape):
        thin = f"fewer than {COSTS.min_product_lanes} iterations for lanes, and the sum runs along memory"
        return None, (*summary, lambda: thin)
    schedule, reasons = choice or (window(request, shape) if shape.window else in_register_tiles(request, shape))
    return schedule, summary + reasons


def _shape_text(d: Definition, shape: MatmulShape) -> str:
    kind = "windows over channels" if shape.window else "a product"
    roles = {"rows": shape.rows, "outside": shape.outer, "sums": shape.sums}
    parts = (f"{role} {' '.join(f'{a.name}:{extent(a)}' for a in axes)}" for role, axes in roles.items() if axes)
    return f"{d.out.name}: {kind}: lanes {shape.lane.name}:{extent(shape.lane)}, {', '.join(parts)}"


def in_register_tiles(request: Request, shape: MatmulShape) -> ScheduleChoice:
    """Return the schedule of a product in register tiles of rows by vectors of columns."""
    tiles = _RegisterTiles(request, shape)
    reasons = (partial(tile_text, tiles.product, request.target), partial(panels_text, tiles.d, shape, request.target))
    return tiles.schedule(), (*tiles.loop_reasons, *reasons)


class _RegisterTiles:
    """The choices for a product in register tiles: loops, the tile, dots, blocks; each uses those before it."""

    def __init__(self, request: Request, shape: MatmulShape) -> None:
        self.d, self.shape, self.target, self.is_shared = request.work, shape, request.target, bool(request.points)
        d, target = self.d, self.target
        self.in_f16 = sums_in_f16(d, shape, target)
        self.width = width_of(extent(shape.lane), request.lanes * (1 + self.in_f16))
        self.loops, self.loop_reasons = product_loops(d, shape, self.width, target, request.constants)
        self.inner = tuple(a for n in self.loops.axes(self.loops.innermost) for a in shape.sums if a.name == n)
        self.steps = None if self.in_f16 else step_axis(d, shape)
        self.is_scaled = self.steps is not None and d.reduction is not None and scaled_sum(d.reduction) is not None
        self.product = self._product()
        has_words = self.width == BLOCK_COLUMNS and self.product.rows > 1
        word_bytes = _row_words(request, shape, self.inner) if has_words else 0
        self.height, vectors = self._tile(word_bytes)
        self.columns = self.width * vectors
        self.panels_outside, order = _order(d, shape, self.loops, self.height, self.columns, target)
        packings = _packs(d, shape, request.constants, self.columns)
        self.terms, self.packings = _dots(d, shape, self.inner, packings, target)
        if word_bytes:
            self.packings = tuple(replace(p, word_bytes=word_bytes) for p in self.packings)
        self.sums_integers = self.terms > 0 and self.is_scaled  # steps add up integers
        self.run = _run_axis(d, shape, self.terms, target)
        self.blocks, self.order = self._blocks(order)
        self.page_operand = (
            None
            if self.packings or len(self.loops.sums) > 1
            else operand_across_pages(d, shape, request.constants, target)
        )

    @property
    def has_only_own_loops(self) -> bool:
        """True if no loops are around those of the product's own tiles."""
        return not (self.loops.outer or self.is_shared)

    @property
    def can_prefetch_panels(self) -> bool:
        """True if there is a next panel, and time to prefetch it."""
        return self.panels_outside and self.columns < extent(self.shape.lane) and _has_many_rows(self.shape)

    @property
    def sums_i16_pairs(self) -> bool:
        """True if dots of i16 sum plain weights for a known number of rows."""
        d, shape = self.d, self.shape
        is_plain = not (self.is_scaled or field_axes(d, shape) or varies(shape.rows))
        return self.terms == UNROLLED_DOT_TERMS[DType.I16] and is_plain

    def schedule(self) -> Schedule:
        """Return the schedule with all choices."""
        shape, loops, terms = self.shape, self.loops, self.terms
        # Each word of i16 is a step of its own, which a prefetch would lengthen by a seventh.
        is_lengthened = terms == UNROLLED_DOT_TERMS[DType.I16] or self.in_f16
        fetch_steps = 0 if is_lengthened else epilogue_steps(shape, self.columns, self.width, self.target)
        unrolled_steps = HALF_TERMS if self.in_f16 else max(self.product.terms, fetch_steps)
        scaled_steps = None
        if self.steps is not None and (self.sums_integers or not (terms or self.blocks)):
            scaled_steps = self.steps.name
        row_vectors = loops.innermost if self.product.terms > 1 and not terms else None
        prefetch, prefetch_within = self._prefetch()
        return Schedule(
            fuse=loops.fuse,
            blocks=self.blocks,
            order=self.order,
            tile=(
                *_row_tiles(self.d, shape, loops, self.height, self.can_prefetch_panels, dict(self.blocks)),
                Tile(shape.lane.name, self.columns, Tail.CUT),
                *_sum_tiles(self.d, shape, loops.innermost, terms, unrolled_steps, self.run),
            ),
            skip_padding=tuple(b.axis.name for b in loops.skipped),
            lanes=(shape.lane.name, self.width),
            pack=self.packings,
            prefetch=prefetch,
            prefetch_within=prefetch_within,
            scaled_steps=scaled_steps,
            row_vectors=self.run.name if self.run is not None else row_vectors,
            f16_sums=loops.innermost if self.in_f16 else None,
            dots=loops.innermost if terms else None,
            prefetch_epilogue=fetch_steps > 0,
            prefetch_level=self._prefetch_level(),
            parallel=None if self.is_shared else self.order[0],
        )

    def _product(self) -> Product:
        """Return the product as the cost of register tiles sees it."""
        d, shape, loops, target = self.d, self.shape, self.loops, self.target
        in_pairs = takes_pairs(d, shape) or len(field_axes(d, shape)) > 0
        return Product(
            loops.count(loops.tiled, shape),
            extent(shape.lane),
            self.width,
            depth=0 if len(loops.rows) > 1 else column_bytes(d, shape, self.steps),
            cores=1 if self.is_shared or shape.outer else target.cores,
            kept=register_vectors(d, shape, self.steps),
            sums=1 + self.is_scaled,
            terms=1 if in_pairs else row_terms(d, shape, prod(map(extent, self.inner)), target),
            has_code=len(loops.rows) < 2,
        )

    def _tile(self, word_bytes: int) -> tuple[int, int]:
        """Return the rows and vectors of the register tile; `word_bytes`: bytes of a word of rows, 0 without."""
        height, vectors = tile_of(self.product, self.target)
        if word_bytes:
            all_vectors = tile_count(extent(self.shape.lane), self.width)
            height, vectors = row_word_tile_of(self.product.rows, all_vectors, self.target, word_bytes)
        is_streamed = _are_streamed(self.d, self.shape, self.loops, self.target)
        return height, COSTS.streamed_vectors if is_streamed else vectors

    def _blocks(self, order: tuple[str, ...]) -> tuple[Blocks, tuple[str, ...]]:
        """Return the blocks, and the order of loops: `order`, but for rows that reuse a panel."""
        d, shape, loops, target = self.d, self.shape, self.loops, self.target
        if not self.has_only_own_loops:
            return (), order
        if blocks := near_rows(d, shape, loops, self.panels_outside, target):
            return blocks, (shape.lane.name, *loops.rows, *loops.sums)
        if self.panels_outside or not self.sums_integers:
            return cache_blocks(d, shape, loops, self.columns, self.panels_outside, target), order
        return (), order

    def _prefetch(self) -> tuple[str | None, int | None]:
        """Return the operand to prefetch, and the units of a call from which on it is fetched further ahead."""
        reads_ahead = self.panels_outside and self.has_only_own_loops and len(self.packings) == 1
        within = None
        if reads_ahead and not (self.blocks or self.terms or len(self.loops.rows) > 1):
            within = prefetch_within(self.d, self.shape, self.columns, self.target)
        # Only dots of i16 prefetch panels: bytes take half of the memory, and gained nothing.
        panels = self.can_prefetch_panels and len(self.packings) == 1 and (self.sums_i16_pairs or not self.terms)
        return self.packings[0].operand if within is not None or panels else self.page_operand, within

    def _prefetch_level(self) -> int:
        is_far = self.sums_i16_pairs or self.page_operand is not None
        return 2 if is_far else prefetch_level(self.shape, self.target)


def _row_words(request: Request, shape: MatmulShape, inner: tuple[Var, ...]) -> int:
    """Return the bytes of a word of a product of bytes that loads data 16 at a time; 0 for other products."""
    d, abilities = request.work, request.target.abilities
    if d.reduction is None or not (abilities.multiplies_blocks or is_centred(d.reduction)):
        return 0
    packings = _packs(d, shape, request.constants, BLOCK_COLUMNS)
    if (
        len(packings) != 1
        or not has_k_words(d, inner, packings[0], shape.lane.name)
        or scaled_sum(d.reduction) is not None
    ):
        return 0
    if is_centred(d.reduction):
        return WORD_BYTES
    return BLOCK_BYTES if takes_blocks(d, packings[0], shape.lane.name) else 0


def _are_streamed(d: Definition, shape: MatmulShape, loops: ProductLoops, target: Target) -> bool:
    """True if few rows multiply a dynamic number of columns by dots of pairs: these read long runs of two rows."""
    factors = (
        dot_factors(d.reduction, shape.lane.name) if target.abilities.sums_pairs and d.reduction is not None else None
    )
    if factors is None or not varies((shape.lane,)) or not takes_rows(d, shape.sums[-1], shape.lane.name):
        return False
    fits_registers = (loops.count(loops.tiled, shape) + 1) * COSTS.streamed_vectors <= target.registers
    return fits_registers and not varies(a for a in shape.rows if a.name in loops.axes(loops.tiled))


def _order(
    d: Definition, shape: MatmulShape, loops: ProductLoops, height: int, columns: int, target: Target
) -> tuple[bool, tuple[str, ...]]:
    """Return the loop order, and True if the panel loop is outside of the row loops.

    Both give way to threads: the outermost loop shall have two units a core at least, if either has.
    """
    panels = tile_count(extent(shape.lane), columns)
    if len(loops.rows) < 2:
        outer_units = tile_count(loops.count(loops.tiled, shape), height)
    elif varies(shape.rows):
        outer_units = prod(extent(a) for a in shape.rows if a.name != loops.tiled)
    else:
        outer_units = extent(shape.rows[0])
    panels_outside = has_panels_outside(d, shape, target)
    enough = 2 * target.cores
    if not loops.outer and min(outer_units, panels) < enough <= max(outer_units, panels):
        panels_outside = panels > outer_units
    if loops.outer and _shares_badly(shape.outer, target) and outer_units >= enough:
        return False, (*loops.rows, *loops.outer, shape.lane.name, *loops.sums)
    inner = (shape.lane.name, *loops.rows) if panels_outside else (*loops.rows, shape.lane.name)
    return panels_outside, (*loops.outer, *inner, *loops.sums)


def _has_many_rows(shape: MatmulShape) -> bool:
    """True if a panel serves enough rows to hide the prefetch of the next one."""
    return not varies(shape.sums) and prod(map(extent, shape.rows)) >= COSTS.fetch_rows


def _row_tiles(
    d: Definition,
    shape: MatmulShape,
    loops: ProductLoops,
    height: int,
    can_prefetch_panels: bool,
    blocks: Mapping[str, int],
) -> list[Tile]:
    """Return the tile of the rows, if there are any. Balanced, not cut, with `can_prefetch_panels`."""
    tiled = [a for a in shape.rows if a.name in loops.axes(loops.tiled)]
    once = d.overwrites or not blocks.keys().isdisjoint(loops.sums)
    count = blocks.get(loops.tiled, 0)
    return [row_tile(tiled, loops.tiled, height, few=can_prefetch_panels, once=once, count=count)] if loops.rows else []


def _sum_tiles(
    d: Definition, shape: MatmulShape, inner: str, terms: int, steps: int, run: Var | None = None
) -> list[Tile]:
    """Return the tiles of the sum; `inner` is its innermost loop. `terms`: unrolled terms of dots, 0 without dots.

    `steps`: terms unrolled for loads or prefetches, without dots. `run`: see `_run_axis`.
    """
    if terms:
        fields = field_axes(d, shape)
        if run is not None and fields:
            return [Tile(run.name, _run_steps(d, shape, run), Tail.CUT), *_sum_tiles(d, shape, inner, terms, steps)]
        return [*(Tile(a.name, extent(a), Tail.CUT) for a in field_axes(d, shape)), Tile(inner, terms, Tail.CUT)]
    if takes_pairs(d, shape):
        return [Tile(inner, 2, Tail.CUT)]
    return [Tile(inner, steps, Tail.CUT)] if steps > 1 else []


def _run_axis(d: Definition, shape: MatmulShape, terms: int, target: Target) -> Var | None:
    """Return the outermost axis of a run of 16 bytes of data: scaled dots take its words from a register. Or None."""
    if not terms or d.reduction is None or scaled_sum(d.reduction) is None or not target.abilities.multiplies_lanes:
        return None
    fields = field_axes(d, shape)
    axis_index = shape.sums.index(fields[0]) - 1 if fields else len(shape.sums) - 1
    if axis_index < 0 or shape.sums[axis_index] is step_axis(d, shape):
        return None
    axis = shape.sums[axis_index]
    steps = _run_steps(d, shape, axis)
    return axis if steps and extent(axis) % steps == 0 else None


def _run_steps(d: Definition, shape: MatmulShape, axis: Var) -> int:
    """Return the steps of an axis that fill 16 contiguous bytes of data; 0 if they are not contiguous."""
    factors = dot_factors(d.reduction, shape.lane.name) if d.reduction is not None else None
    data = None if factors is None else next((x for x in reads(d, body=True) if x.load == factors[0]), None)
    stride = 0 if data is None else data.strides.get(axis) or 0
    return 0 if not stride or ROW_BYTES % stride else ROW_BYTES // stride


def _shares_badly(loops: tuple[Var, ...], target: Target) -> bool:
    """True if few iterations surround the tile, so that cores get unequal shares of work."""
    count = extent(loops[0])
    return not varies(loops) and len(loops) == 1 and count < 2 * target.cores and count % target.cores > 0


def _dots(
    d: Definition, shape: MatmulShape, inner: tuple[Var, ...], packings: tuple[Pack, ...], target: Target
) -> tuple[int, tuple[Pack, ...]]:
    """Return the unrolled terms of a sum by dots, 0 without, and the packing of its weights.

    Dots of i16 are used only where the target has dots of bytes, too.
    """
    factors = dot_factors(d.reduction, shape.lane.name) if d.reduction is not None else None
    kind = factors[1].buffer.dtype if factors is not None else None
    if d.reduction is None or kind is None or not target.abilities.dot_terms(kind):
        return 0, packings
    if kind.is_float and is_guarded(d.reduction):
        return 0, packings
    if scaled_sum(d.reduction) is not None:
        steps = step_axis(d, shape)
        if steps is None or steps in inner or not has_equal_steps(d.reduction, steps):
            return 0, packings
    packing = next((p for p in packings if p.operand == factors[1].buffer.name), None) if factors is not None else None
    if packing is not None and has_k_words(d, inner, packing, shape.lane.name):
        # Only the elements of one word are unrolled where their loop is inside of the loop over fields.
        has_fields = packed_field(d.reduction) is not None
        terms = elements_per_dot(kind) if has_fields else UNROLLED_DOT_TERMS[kind]
        return terms, tuple(replace(p, words=len(inner)) if p == packing else p for p in packings)
    if packings or len(inner) != 1:
        return 0, packings
    if takes_rows(d, inner[0], shape.lane.name):
        varies_in_size = varies(
            (*shape.rows, shape.lane, *inner)
        )  # a loop for each size of the tile: little code for each
        return elements_per_dot(kind) if varies_in_size else UNROLLED_DOT_TERMS[kind], packings
    return UNROLLED_DOT_TERMS[kind] if has_k_paired_weights(d, inner[0], shape.lane.name) else 0, packings


def _packs(d: Definition, shape: MatmulShape, constants: frozenset[str], width: int) -> tuple[Pack, ...]:
    return packs(reads(d, body=True), shape.lane, constants, width, shape.sums, shape.outer)
