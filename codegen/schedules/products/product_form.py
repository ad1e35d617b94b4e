"""Roles of a reduction's axes in a product: lanes, rows, loops outside of the tile, and sums in memory order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import Access, fills, reads, store, typical, varies
from aot.codegen.ir.definition import Definition, unused_axis
from aot.codegen.ir.loops import Var
from aot.codegen.ir.numbers.bf16_chains import chain_factors, is_chain_sum
from aot.codegen.ir.numbers.dot_forms import dot_factors, elements_per_dot, is_arranged, scaled_sum, small_factors
from aot.codegen.ir.schedule import Tail, Tile
from aot.codegen.schedules.pointwise import is_packable
from aot.codegen.schedules.products.register_tile import can_overlap
from aot.codegen.schedules.request import Fused
from aot.codegen.target import Target
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class MatmulShape:
    """Axes by role: `lane`, rows (outermost first), loops outside of the tile, reduction axes in memory order."""

    lane: Var
    rows: tuple[Var, ...]
    outer: tuple[Var, ...]
    sums: tuple[Var, ...]
    window: bool  # all operands move with the lanes: nothing is shared between rows but the window


def extent(a: Var) -> int:
    assert a.extent is not None, f"axis {a.name} has no extent"
    return typical(a.extent)


def matmul_shape(
    d: Definition, constants: frozenset[str], shared: frozenset[Var], lanes: int, pairs: bool = False
) -> MatmulShape | None:
    """Return the roles of axes; None if no output axis serves as lanes. `pairs`: dots sum products of bf16."""
    assert d.reduction is not None
    body, out = reads(d, body=True), store(d)
    candidates = [a for a in d.axes if a not in shared and extent(a) > 1 and _serves(a, d, body, constants)]
    candidates = [a for a in candidates if any(x.moves(a) for x in body)]
    if not candidates:
        candidates = [
            a for a in d.axes if a not in shared and out.strides[a] == 1 and all(_are_close(x, a) for x in body)
        ]
    if not candidates:
        return None

    def rank(a: Var) -> tuple[bool, bool, int]:
        return out.strides[a] == 1, extent(a) >= lanes, min(extent(a), 4 * lanes)

    lane = max(candidates, key=rank)
    others = [a for a in d.axes if a is not lane and a not in shared]
    fixed = [x for x in body if x.moves(lane)]
    window = all(x.moves(lane) for x in body)
    outer = [a for a in others if any(x.moves(a) for x in fixed)] if not window else []
    rows = sorted((a for a in others if a not in outer), key=lambda a: -out.reach(a))
    return MatmulShape(lane, tuple(rows), tuple(outer), _sums(d, body, lane, pairs), window)


def is_thin(d: Definition, shape: MatmulShape) -> bool:
    """True if the output axis is too short for lanes, which then run along the reduction."""
    along = (a for a in shape.sums if any(x.strides.get(a) == 1 for x in reads(d, body=True)))
    return extent(shape.lane) < COSTS.min_product_lanes and any(extent(a) >= 2 * COSTS.min_product_lanes for a in along)


def _serves(a: Var, d: Definition, body: tuple[Access, ...], constants: frozenset[str]) -> bool:
    return all(
        x.strides[a] in (0, 1) or (x.buffer.name in constants and is_packable(x, a)) or _has_words(x, a, d)
        for x in body
    )


def _has_words(x: Access, a: Var, d: Definition) -> bool:
    """True if the words of the sum's terms are contiguous along `a`."""
    assert d.reduction is not None
    if x.load is None or x.strides[a] != elements_per_dot(DType.BF16):
        return False
    return is_arranged(x.load, d.reduction.axes) is not None


def _are_close(x: Access, a: Var) -> bool:
    """True if the elements of all lanes fit few vectors, so that shuffles can take them from there."""
    stride = x.strides[a]
    return stride is not None and 0 < stride < COSTS.gather_distance


def _sums(d: Definition, body: tuple[Access, ...], lane: Var, pairs: bool) -> tuple[Var, ...]:
    """Return the reduction axes, the largest step outermost, so that the innermost runs along memory.

    In products that dots compute, only steps of the data count: one word of it is read at a time.
    """
    assert d.reduction is not None
    dots = pairs or small_factors(scaled_sum(d.reduction) or d.reduction) is not None
    factors = dot_factors(d.reduction, lane.name) if dots else None
    if factors is not None:
        body = tuple(x for x in body if x.load == factors[0])
    steps = {a: max((x.reach(a) for x in body), default=0) for a in d.reduction.axes}
    return tuple(sorted(d.reduction.axes, key=lambda a: -steps[a]))


def row_terms(d: Definition, shape: MatmulShape, terms: int, target: Target) -> int:
    """Return the terms of a row that one vector holds, where instructions multiply by one of its lanes; else 1.

    `terms`: terms of the innermost loop of the sum.
    """
    r, inner = d.reduction, shape.sums[-1]
    if r is None or r.dtype is not DType.F32 or is_chain_sum(r) or varies(shape.sums):
        return 1
    shared = [x for x in reads(d, body=True) if not x.moves(shape.lane) and x.moves(inner)]
    beside = bool(shared) and all(x.strides[inner] == 1 and x.buffer.dtype.compute is DType.F32 for x in shared)
    lanes = target.lanes(DType.F32) * (2 if sums_in_f16(d, shape, target) else 1)
    return lanes if target.abilities.multiplies_lanes and beside and terms >= lanes else 1


def sums_in_f16(d: Definition, shape: MatmulShape, target: Target) -> bool:
    """True if products of f16, of a static number of terms, are summed in f16 within a tile of the sum."""
    r = d.reduction
    if r is None or r.fn != "add" or not target.abilities.sums_half or varies(shape.sums):
        return False
    factors = chain_factors(r)
    return factors is not None and all(x.buffer.dtype is DType.F16 for x in factors)


def loops_of(d: Definition, axes: Sequence[Var], fused: Fused = ()) -> tuple[list[str], Fused]:
    """Return the loops around a tile and what they fuse: dynamic axes that may each have one iteration only.

    `fused`: axes that other loops fuse, whose names are taken.
    """
    if len(axes) < 2 or not varies(axes):
        return [a.name for a in axes], ()
    taken = {name for name, _ in fused}
    name = next(n for n in (unused_axis(letter, d) for letter in "pqr") if n not in taken)
    return [name], ((name, tuple(a.name for a in axes)),)


def row_tile(
    rows: Sequence[Var], name: str, height: int, few: bool = False, once: bool = False, count: int = 0
) -> Tile:
    """Return the tile of the rows. A dynamic count is balanced (a loop for each height), or cut if there are many rows.

    Cutting takes five loops. Tiles overlap, in one loop, if there are never fewer rows than a tile has; those of a
    static count, if that repeats few of the rows: they are balanced in two loops otherwise. `few`: do not cut, because
    the short tiles at the end would take too much of the time. `once`: no row may be computed again. `count`: static
    rows of a block, by default all of them.
    """
    if not once and (fills(rows, height) if varies(rows) else can_overlap(count or prod(map(extent, rows)), height)):
        return Tile(name, height, Tail.LAP)
    high = not few and height > COSTS.balanced_tile_rows
    many = high and varies(rows) and prod(map(extent, rows)) >= COSTS.balanced_row_tiles * height
    return Tile(name, height, Tail.CUT if many else Tail.BALANCE)


def parts(n: int) -> list[int]:
    """Return the divisors of `n`, the largest first."""
    return [n // m for m in range(1, n + 1) if n % m == 0]
