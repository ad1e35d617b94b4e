"""Products in tile registers: 32 rows and 32 columns at a time.

y[i, j] = chains[k](x[i, k] * w[k, j])     tile[i:32 j:32/cut k:32/cut] matrix=i lanes[j:16] pack[w.1:16 words]

Steps of scaled sums of bytes have tiles of their own (`aot.codegen.nest.tile_registers.scaled_matrix`). Their schedule
has `dots=` and `scaled_steps=`, as dots on vectors have, and rows in tile registers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import all_continue, coefficient, fills, reads, varies
from aot.codegen.ir.definition import Definition, unused_axis
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.loops import Prim, Var
from aot.codegen.ir.numbers.bf16_chains import block_tile, is_chain_sum, is_contiguous
from aot.codegen.ir.numbers.dot_forms import dot_factors, elements_per_dot, is_arranged, is_k_contiguous, scaled_sum
from aot.codegen.ir.numbers.matrix_form import MIN_ROWS, ROWS, MatrixForm, even_height, matrix_form
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.nest.sums.padding_terms import PaddingTerms, padding_terms
from aot.codegen.nest.sums.scaled_steps import has_equal_steps
from aot.codegen.schedules.products.chain_tiles import word_panels
from aot.codegen.schedules.products.padding_share import padding_share
from aot.codegen.schedules.products.product_form import MatmulShape, extent, loops_of
from aot.codegen.schedules.products.product_loops import tiled_rows
from aot.codegen.schedules.products.scaled import field_axes, step_axis
from aot.codegen.schedules.request import Fused, Request, ScheduleChoice
from aot.codegen.target import Target

PANEL_BYTES = 256 << 10  # most bytes of a panel arranged in words: an eighth of L2 of these processors; estimated


@dataclass(frozen=True, slots=True)
class _TiledSum:
    """A sum in tile registers: `axes` of the sum, some of them `fused` to one, and the packing of the weights."""

    matrix: MatrixForm
    axes: tuple[Var, ...]
    fused: Fused
    packings: tuple[Pack, ...]
    in_chains: bool

    @property
    def has_words(self) -> bool:
        """True if weights are in words; others are arranged in them by the kernel."""
        return bool(self.packings) or is_arranged(self.matrix.w, self.axes) is not None

    @property
    def order(self) -> list[str]:
        """Return the loops of the sum, outermost first."""
        names = [a.name for a in self.axes]
        return [*names[:-2], self.matrix.axis.name] if self.fused else names


@dataclass(frozen=True, slots=True)
class _RowLoops:
    """The rows of a product in tile registers: `row`, whose tiles they are, in loops `around` it.

    `line`: the axis of image lines, if tiles have two; `skipped`: axes with padding that the sum skips.
    """

    row: str
    around: list[str]
    fused: Fused
    line: str | None
    skipped: tuple[str, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the axes that `row` stands for."""
        return dict(self.fused).get(self.row, (self.row,))


def tile_register_schedule(request: Request, shape: MatmulShape) -> ScheduleChoice | None:
    """Return the schedule of a product that the target's tile registers can sum."""
    d, target, shared = request.work, request.target, request.points
    assert d.reduction is not None
    if scaled_sum(d.reduction) is not None:
        return _scaled(request, shape)
    total = _tiled_sum(request, shape)
    rows = None if total is None else _row_loops(d, shape, total, request.constants)
    if total is None or rows is None:
        return None
    matrix, row = total.matrix, rows.row
    size, half_l2 = matrix.w.buffer.dtype.stored_bytes, target.l2 // 2
    panel_bytes = prod(map(extent, shape.sums)) * extent(shape.lane) * size
    data_bytes = prod(map(extent, shape.rows)) * extent(matrix.axis) * size
    panels_outside = not total.has_words or panel_bytes > min(data_bytes, half_l2)
    loops, outside_fused = loops_of(d, shape.outer, total.fused)
    across, down = [shape.lane.name], [*rows.around, row]
    order = (*loops, *(across + down if panels_outside else down + across), *total.order)
    prefetches = panels_outside and not shared and _are_fetched(shape, target)
    row_tile, is_whole = _row_tile(d, shape, rows, total.has_words)
    in_blocks = panels_outside and total.packings and not (shared or rows.around) and is_whole
    terms = block_tile(matrix.axis) if total.in_chains else Tile(matrix.axis.name, matrix.terms, Tail.CUT)
    schedule = Schedule(
        fuse=total.fused + outside_fused + rows.fused,
        blocks=_row_blocks(row, shape, data_bytes, half_l2) if in_blocks else (),
        order=order,
        tile=(
            *([Tile(rows.line, 2, Tail.LAP)] if rows.line is not None else []),
            row_tile,
            Tile(shape.lane.name, 2 * ROWS, Tail.CUT),
            terms,
        ),
        skip_padding=rows.skipped,
        matrix=row,
        lanes=(shape.lane.name, ROWS),
        pack=total.packings,
        prefetch=next((p.operand for p in total.packings if prefetches), None),
        prefetch_level=2 if prefetches else 1,
        parallel=None if shared else order[0],
    )
    return schedule, (lambda: f"tile registers: rows {row}, blocks of {matrix.terms} terms of {matrix.axis.name}",)


def _tiled_sum(request: Request, shape: MatmulShape) -> _TiledSum | None:
    """Return the sum as tile registers add it; None if they cannot, or vectors are faster."""
    d, r = request.work, request.work.reduction
    assert r is not None
    in_chains = is_chain_sum(r)
    if not request.target.abilities.tiles or r.init is not None or not shape.rows:
        return None
    if not in_chains and (varies(shape.sums) or not _is_large(shape)):
        return None
    matrix, fused = (matrix_form(r, shape.lane), Fused()) if in_chains else _bytes(d, shape)
    if matrix is None:
        return None
    axes = r.axes if in_chains else shape.sums
    packings = word_panels(d, shape, request.constants, axes, 2 if fused else 1)
    can_arrange = in_chains and not d.overwrites
    if not (packings or can_arrange) or not _lies_well(d, shape, matrix, packings):
        return None
    return _TiledSum(matrix, axes, fused, packings, in_chains)


def _row_loops(d: Definition, shape: MatmulShape, total: _TiledSum, constants: frozenset[str]) -> _RowLoops | None:
    """Return the loops over rows; None if no axis has rows at equal distances, or a tile would check bounds."""
    row, around, fused = _rows(d, shape, total.matrix, constants)
    if row is None:
        return None
    rows = _RowLoops(row, around, fused, None, ())
    line = None if varies(total.axes) else _line(d, shape, around)
    for axis in dict.fromkeys((line, None)):
        skipped = _skipped(d, total.matrix, (*rows.parts, axis))
        if skipped is not None:
            return replace(rows, line=axis, skipped=skipped)
    return None


def _row_tile(d: Definition, shape: MatmulShape, rows: _RowLoops, has_words: bool) -> tuple[Tile, bool]:
    """Return the tile of rows, and True if it has as many as registers hold."""
    height = 2 * ROWS if has_words else prod(a.extent for a in shape.rows if isinstance(a.extent, int))
    tiled = [a for a in shape.rows if a.name in rows.parts]
    if d.overwrites:
        tile = _whole_tiles(rows.row, tiled)
        return tile, tile.size == height
    may_be_few = varies(tiled) and not fills(tiled, height)
    tail = Tail.CUT if may_be_few else Tail.LAP  # one configuration: another one takes as long as some tiles
    return Tile(rows.row, height, tail), True


def _whole_tiles(row: str, rows: list[Var]) -> Tile:
    """Return the tile of rows that overwrite an operand; tiles divide them, so that none reads what another wrote."""
    count = prod(map(extent, rows))
    if varies(rows) or count <= 2 * ROWS:
        return Tile(row, 2 * ROWS, Tail.CUT)
    height = even_height(count)
    return Tile(row, height or 2 * ROWS, Tail.LAP if height else Tail.CUT)


def _row_blocks(row: str, shape: MatmulShape, data_bytes: int, half_l2: int) -> tuple[tuple[str, int], ...]:
    """Return equal blocks of rows, each of at most `half_l2` of the `data_bytes`, that all panels read in turn."""
    if varies(shape.rows) or data_bytes <= half_l2:
        return ()
    tiles, count = -(-prod(map(extent, shape.rows)) // (2 * ROWS)), -(-data_bytes // half_l2)
    return ((row, 2 * ROWS * -(-tiles // count)),)


def _are_fetched(shape: MatmulShape, target: Target) -> bool:
    """True if panels come from a far L3, and several tiles of rows use one while the next one is fetched."""
    rows = prod(map(extent, shape.rows))
    return not target.near_l3 and not varies(shape.rows) and rows > 2 * ROWS


def _scaled(request: Request, shape: MatmulShape) -> ScheduleChoice | None:
    """Return the schedule of a sum of scaled bytes; None if steps have few terms, or rows are few."""
    d, target, constants = request.work, request.target, request.constants
    r, steps = d.reduction, step_axis(d, shape)
    assert r is not None
    if not target.abilities.tiles or r.init is not None or varies(shape.sums) or not _is_large(shape) or steps is None:
        return None
    matrix, factors, inner = matrix_form(r, shape.lane, steps), dot_factors(r, shape.lane.name), shape.sums[1:]
    if matrix is None or factors is None or not has_equal_steps(r, steps) or not is_k_contiguous(d, inner, factors[0]):
        return None
    few, packings = field_axes(d, shape), word_panels(d, shape, constants, shape.sums)
    if not any(p.operand == matrix.w.buffer.name and p.words for p in packings):
        return None
    row, around, row_fused = _rows(d, shape, matrix, constants)
    if row is None:
        return None
    loops, outside_fused = loops_of(d, shape.outer, row_fused)
    tiled = [a for a in shape.rows if a.name in dict(row_fused).get(row, (row,))]
    tail = Tail.CUT if varies(shape.rows) else Tail.LAP
    terms = Tile(inner[-1].name, elements_per_dot(matrix.w.dtype) if few else matrix.terms, Tail.CUT)
    schedule = Schedule(
        fuse=row_fused + outside_fused,
        order=(*loops, shape.lane.name, *around, row, *(a.name for a in shape.sums)),
        tile=(
            _whole_tiles(row, tiled) if d.overwrites else Tile(row, 2 * ROWS, tail),
            Tile(shape.lane.name, 2 * ROWS, Tail.CUT),
            *(Tile(a.name, extent(a), Tail.CUT) for a in few),
            terms,
        ),
        matrix=row,
        lanes=(shape.lane.name, ROWS),
        pack=packings,
        dots=inner[-1].name,
        scaled_steps=steps.name,
        parallel=None if request.points else (*loops, shape.lane.name)[0],
    )
    return schedule, (
        lambda: f"tile registers: rows {row}, a sum of {matrix.terms} terms for each step of {steps.name}",
    )


def _bytes(d: Definition, shape: MatmulShape) -> tuple[MatrixForm | None, Fused]:
    """Return the form of a sum of bytes; its blocks run along columns of a window and channels if they are fewer so.

    These two axes of the sum are then fused.
    """
    r = d.reduction
    assert r is not None
    alone = matrix_form(r, shape.lane, shape.sums[-1])
    if len(shape.sums) < 2 or any(b.axis in shape.sums[-2:] and _is_passed(b) for b in padding_terms(d)):
        return alone, ()
    outer, inner = shape.sums[-2:]
    n, across = extent(inner), Var(unused_axis("kc", d), extent(outer) * extent(inner))
    both = matrix_form(r, shape.lane, across)
    if both is None or (alone is not None and extent(outer) * n // alone.terms <= extent(across) // both.terms):
        return alone, ()
    index = tuple(rewrite(i, {outer: across // n, inner: across % n}) for i in both.x.index)
    if not is_contiguous(replace(both.x, index=index), across, both.terms):
        return alone, ()
    return both, ((across.name, (outer.name, inner.name)),)


def _is_large(shape: MatmulShape) -> bool:
    """True if rows and columns of a sum of bytes fill tiles enough to be faster than vectors."""
    return extent(shape.lane) >= ROWS and prod(map(extent, shape.rows)) >= MIN_ROWS


def _line(d: Definition, shape: MatmulShape, around: list[str]) -> str | None:
    """Return the axis of image lines, if two lines fill both tiles where one would fill half of them."""
    if not around or varies(shape.rows) or extent(shape.rows[-1]) > ROWS or extent(shape.rows[-2]) < 2:
        return None
    if d.overwrites and extent(shape.rows[-2]) % 2:
        return None
    return around[-1]


def _skipped(d: Definition, form: MatrixForm, parts: tuple[str | None, ...]) -> tuple[str, ...] | None:
    """Return the axes with padding skipped for a whole tile; None if other terms have bounds checks."""
    r = d.reduction
    assert r is not None
    moving = {a for a in d.axes if a.name in parts}
    terms = [b for b in padding_terms(d) if b.axis != form.axis and moving.isdisjoint(variables(b.index))]
    passed = [b for b in terms if _is_passed(b)]
    guards = {e for e in walk(r.body) if isinstance(e, Prim) and e.fn == "within"}
    return tuple(b.axis.name for b in passed) if guards <= {b.test for b in passed} else None


def _is_passed(b: PaddingTerms) -> bool:
    """True if terms in padding are skipped: they have bounds checks, or skipping pays."""
    return b.test is not None or padding_share(b) >= COSTS.min_skipped_share


def _lies_well(d: Definition, shape: MatmulShape, form: MatrixForm, packings: tuple[Pack, ...]) -> bool:
    """True if the rows' operand is contiguous within blocks, and columns are packed in words or may be, in panels."""
    fused = form.axis not in shape.sums  # by `_bytes`, which has looked at it
    if not fused and not is_contiguous(form.x, form.axis, form.terms):
        return False
    if packings:
        return all(p.operand == form.w.buffer.name and p.words for p in packings)
    assert d.reduction is not None
    if is_arranged(form.w, d.reduction.axes) == form.axis:
        return len(d.reduction.axes) == 1
    w = next(x for x in reads(d, body=True) if x.load == form.w)
    panel = extent(form.axis) * 2 * ROWS * form.w.buffer.dtype.stored_bytes
    alone = len(d.reduction.axes) == 1 and len(shape.rows) == 1 and not varies((*shape.rows, shape.lane, form.axis))
    return alone and w.strides[shape.lane] == 1 and panel <= PANEL_BYTES


def _rows(
    d: Definition, shape: MatmulShape, form: MatrixForm, constants: frozenset[str]
) -> tuple[str | None, list[str], Fused]:
    """Return the axis of rows, the loops around it, and what is fused: rows at equal distances are one axis."""
    row_accesses = [a for a in reads(d, body=True) if a.load == form.x]
    if len(shape.rows) > 1 and all(all_continue(row_accesses, a, b) for a, b in pairwise(shape.rows)):
        name = unused_axis("p", d)
        return name, [], ((name, tuple(a.name for a in shape.rows)),)
    if not shape.rows:
        return None, [], ()
    row = tiled_rows(d, shape, constants)
    even = all(coefficient(a.at, row) is not None for a in row_accesses)
    return (row.name if even else None), [a.name for a in shape.rows if a is not row], ()
