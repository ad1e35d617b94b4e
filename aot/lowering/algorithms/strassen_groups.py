"""A product of matrices as seven products of half-sized ones: definitions over a flat axis of half of the rows.

    h[t] = LEFT x      m[t] = add[k](h[t] * RIGHT u)      y = end(OUT m)      u = BASIS w, at compile time

`aot.lowering.algorithms.strassen_matrices` has the matrices. `m` holds a register tile of each product at a
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import fixed_extent, unravel
from aot.codegen.ir.definition import LOCAL, Definition, Group, unused_axis
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Space, Var, dense
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile, width_of
from aot.codegen.target import Target
from aot.lowering.algorithms.strassen_form import StrassenForm
from aot.lowering.algorithms.strassen_matrices import BASIS, LEFT, OUT, RIGHT
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class Planned:
    work: Group
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Strassen:
    """`halves`: sums of quarters of the rows; `products` read them, and `weights` in their basis [4, sum, column]."""

    halves: Planned
    products: Planned
    left: Buffer
    weights: Buffer


def strassen(form: StrassenForm, left: str, weights: str, target: Target) -> Strassen:
    """Build the definitions; `left` and `weights`: names of the intermediate buffers."""
    d = form.d
    k, n = (Var(a.name, fixed_extent(a) // 2) for a in (form.sum, form.column))
    upper = fixed_extent(form.row) - form.shift
    half = tuple(replace(a, extent=upper) if a is form.row else a for a in form.rows)
    p = Var(unused_axis("p", d), prod(map(fixed_extent, half)))
    flat = unravel(half, p)
    rows = {a: flat[b] for a, b in zip(form.rows, half, strict=True)}
    pitch = fixed_extent(k) + COSTS.strassen_pitch
    h = replace(dense(left, len(LEFT), fixed_extent(p), fixed_extent(k)), strides=(fixed_extent(p) * pitch, pitch, 1))
    u = dense(weights, len(BASIS), fixed_extent(k), fixed_extent(n))
    m = dense(f"m{LOCAL}", len(LEFT), p, n, space=Space.ARENA)

    def places(low: int, column: int) -> dict[Expr, Expr]:
        """Return the values of the axes in half `low` of the rows and half `column` of the columns."""
        row = rows[form.row] + low * form.shift
        return {**rows, form.row: row, form.column: n + column * fixed_extent(n)}

    quarters = [rewrite(form.x, {**places(q // 2, 0), form.sum: k + q % 2 * fixed_extent(k)}) for q in range(4)]
    sums = [Definition(h, (p, k), _sum(row, quarters), (Const(t), p, k)) for t, row in enumerate(LEFT)]
    panels = [u[Const(j), k, n] for j in range(len(BASIS))]
    totals = [Reduce("add", (k,), h[Const(t), p, k] * _sum(row, panels)) for t, row in enumerate(RIGHT)]
    products = [Definition(m, (n, p), e, (Const(t), p, n)) for t, e in enumerate(totals)]
    terms = [m[Const(t), p, n] for t in range(len(LEFT))]
    ends: list[Definition] = []
    for q, row in enumerate(OUT):
        assert d.reduction is not None
        change = places(q // 2, q % 2)
        value = rewrite(d.value, {**change, d.reduction: _sum(row, terms)})
        once = ((rows[form.row], form.shift),) if form.shift < upper and q < 2 else ()
        ends.append(Definition(d.out, (p, n), value, tuple(rewrite(i, change) for i in d.target), once))
    end = Group("ends", (p, n), (), tuple(ends))
    halves = Planned(Group("halves", (p, k), (), tuple(sums)), _along(k, len(sums), target, p))
    return Strassen(halves, _products(p, k, n, m, (*products, end), weights, target), h, u)


def _products(
    p: Var, k: Var, n: Var, m: Buffer, members: tuple[Definition | Group, ...], weights: str, target: Target
) -> Planned:
    """Build the products: tiles of rows inside, so that a panel of each part stays in the cache.

    Few rows: tiles of columns inside.
    """
    lanes = width_of(fixed_extent(n), target.lanes(DType.F32))
    vectors = COSTS.strassen_vectors
    width, height = vectors * lanes, min(COSTS.max_tile_rows, (target.registers - vectors - 2) // vectors)
    panels, tiles = -(-fixed_extent(n) // width), -(-fixed_extent(p) // height)
    outside = panels >= min(2 * target.cores, tiles)
    axes = (n, p) if outside else (p, n)
    across, down = Tile(n.name, width, Tail.CUT), Tile(p.name, height)
    product = Schedule(
        order=(n.name, p.name, k.name),
        tile=(down, across, Tile(k.name, COSTS.fetch_steps, Tail.CUT)),
        lanes=(n.name, lanes),
        pack=(Pack(weights, (2, 0, 1), 2, width),),
        prefetch_level=1 if target.fetches_near else 2,
    )
    products = tuple(
        replace(product, prefetch=weights if outside and sum(map(abs, row)) == 1 else None) for row in RIGHT
    )
    schedule = Schedule(tile=(across, down), parallel=axes[0].name, members=(*products, _along(n, len(OUT), target)))
    return Planned(Group("strassen", axes, (m,), members), schedule)


def _along(lane: Var, members: int, target: Target, parallel: Var | None = None) -> Schedule:
    """Schedule definitions without a sum, a vector of each at a time."""
    lanes = width_of(fixed_extent(lane), target.lanes(DType.F32))
    each = Schedule(lanes=(lane.name, lanes))
    tile = (Tile(lane.name, lanes, Tail.CUT),)
    return Schedule(tile=tile, parallel=parallel.name if parallel is not None else None, members=(each,) * members)


def _sum(row: Iterable[int], terms: Sequence[Expr]) -> Expr:
    """Sum the terms with 1 or -1, beginning with one that is added."""
    signed = sorted(((c, e) for c, e in zip(row, terms, strict=True) if c), key=lambda pair: -pair[0])
    (_, total), *others = signed
    for c, e in others:
        total = total + e if c > 0 else total - e
    return total
