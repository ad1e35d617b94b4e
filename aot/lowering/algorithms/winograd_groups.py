"""Convolutions as F(m, r) in one or two directions: definitions over blocks of tiles.

    V = transform(x)      a product V U for each point      y = end(transform(M))      U = transform(w), at compile time

The matrices are those of `aot.lowering.algorithms.winograd_matrices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from aot.lowering.algorithms.winograd_form import WinogradForm, tiles_of
from aot.lowering.algorithms.winograd_matrices import Matrix, Transform, back, into
from codegen.costs import COSTS
from codegen.ir.access import known, varies, volume
from codegen.ir.definition import LOCAL, Definition, Group
from codegen.ir.expressions import rewrite, variables
from codegen.ir.index import normal
from codegen.ir.loops import Buffer, Const, Expr, Prim, Reduce, Size, Space, Var, as_expr, dense, prim
from codegen.ir.schedule import Schedule, Tail, Tile
from codegen.schedules.product import product
from codegen.target import Target
from runtime.abi import DType


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of outputs as a group walks them: `shared` axes of its blocks, `inside` all others.

    `place`: indices of the temps; `at`: of the picture, row and column of tiles, by what the form calls its axes;
    `phase`: where outputs that lie several steps apart begin.
    """

    sides: tuple[int, ...]
    shared: tuple[Var, ...]
    inside: tuple[Var, ...]
    place: tuple[Var, ...]
    shape: tuple[Size, ...]
    at: dict[Var, Expr]
    phase: dict[Var, Expr]


@dataclass(frozen=True, slots=True)
class Winograd:
    """`work` with its schedule; `weights`: the transformed ones [groups.., points, ic, oc]; `blocks` for threads."""

    work: Group
    schedule: Schedule
    weights: Buffer
    blocks: int


def winograd(d: Definition, form: WinogradForm, points: int, target: Target, named: Callable[[Size], Size]) -> Winograd:
    """Build `d` over tiles of `points` products in each direction. `named` names a size known at run time."""
    n, sides = points, form.sides(points)
    vary = varies((*form.n, *form.outs))
    tiles = _blocks(form, n, target, named) if vary else _rows(form, n)
    ic, oc = Var("ic", form.ic.extent), Var("oc", form.oc.extent)
    sums, outs, count = (*form.deep, ic), known(oc.extent or 1), n ** len(sides)
    terms = [known(a.extent or 1) for a in sums]
    groups = [known(a.extent or 1) for a in form.groups]
    name = f"{form.w.buffer.name}.winograd{n}.{form.arrangement}{LOCAL}"
    u = dense(name, *groups, count, *terms, outs, dtype=form.dtype)
    v = dense(f"v{LOCAL}", count, *tiles.shape, *terms, space=Space.ARENA, dtype=form.dtype)
    mm = dense(f"m{LOCAL}", count, *tiles.shape, outs, space=Space.ARENA, dtype=form.sum_type)
    axes, place = (*tiles.shared, *tiles.inside), tiles.place
    spans = tuple(m * step for m, step in zip(sides, form.steps, strict=True))
    guarded = _inside(form, spans)

    def read(at: tuple[Var, ...]) -> Expr:
        taps = dict(zip(form.taps, at, strict=True))
        return rewrite(guarded, {**_places(form, tiles), **taps, form.ic: ic})

    def write(at: tuple[Var, ...], total: Expr) -> Definition:
        places = {**_places(form, tiles, at), form.oc: oc}
        assert d.reduction is not None
        ragged = [(places[a], a.extent) for a, n in zip(form.outs, spans, strict=True) if a.extent and _ragged(a, n)]
        value = rewrite(d.value, {**places, d.reduction: _divided(total, form.factor(points))})
        index = tuple(rewrite(i, places) for i in d.target)
        return Definition(d.out, (*axes, oc, *reversed(at)), value, index, tuple(ragged))

    xn = Var("xn", count)
    outer = tiles.shared if vary else form.groups
    total = Reduce("add", sums, form.number(v[xn, *place, *sums]) * form.number(u[*form.groups, xn, *sums, oc]))
    products = Definition(mm, (*outer, xn, *place, oc), total, (xn, *place, oc))

    def fill(at: tuple[Var, ...], e: Expr) -> Definition:
        return Definition(v, (*axes, *sums, *reversed(at)), e, (_point(at, n), *place, *sums))

    kinds = tuple((n, r, stride) for r, stride in zip(form.window_taps, form.strides, strict=True))
    forward = _transform("input", (*axes, *sums), tuple(into(*kind) for kind in kinds), n, v.dtype.compute, read, fill)
    ends = tuple(back(*kind) for kind in kinds)
    backward = _transform(
        "output", (*axes, oc), ends, n, form.sum_type, lambda at: mm[_point(at, n), *place, oc], write
    )
    group = Group("winograd", tiles.shared, (v, mm), (forward, products, backward))
    if vary:
        return Winograd(group, _plan(group, u.name, n, sides, 1, False, target), u, known(tiles.shared[0].extent or 1))
    rows = _height(form, tiles, count, target)
    peeled = any(map(_ragged, form.outs, spans))
    *around, high = (known(a.extent or 1) for a in tiles.shared)
    blocks = -(-high // rows) * prod(around)
    return Winograd(group, _plan(group, u.name, n, sides, rows, peeled, target), u, blocks)


def _divided(total: Expr, factor: int) -> Expr:
    """Return a sum of products with weights that were multiplied by a power of two; nothing is left over."""
    return total if factor == 1 else prim("shr", total, Const(factor.bit_length() - 1, DType.I32))


def _point(at: tuple[Var, ...], n: int) -> Expr:
    """Return the number of a point."""
    first, *rest = at
    found: Expr = first
    for i in rest:
        found = found * n + i
    return found


def _height(form: WinogradForm, tiles: Tiles, count: int, target: Target) -> int:
    """Return the rows of tiles in a block. In one direction, as many as stay in the cache, alike for all cores.

    In two directions so many, too, where weights that do not stay there come from afar for each block.
    """
    rows, outs = known(tiles.shared[-1].extent or 1), known(form.oc.extent or 1)
    beside = prod(known(a.extent or 1) for a in tiles.inside)
    held = count * (form.dtype.stored_bytes * form.terms + 4 * outs)
    if len(tiles.sides) > 1:
        passing = not target.near_l3 and form.dtype.stored_bytes * count * form.terms * outs > target.l2
        wanted = max(COSTS.winograd_tiles / beside, target.l2 * 3 // 4 // held // beside if passing else 0)
        if form.groups:  # a group's panels are small, so tiles may be many
            wanted = max(wanted, target.l2 // 4 // held // beside)
        return max(1, min(round(wanted), rows))
    most = max(COSTS.winograd_tiles, target.l2 // held) // beside
    blocks = -(-rows // max(1, most))
    if blocks > 1:
        blocks = -(-blocks // target.cores) * target.cores
    return -(-rows // blocks)


def _rows(form: WinogradForm, n: int) -> Tiles:
    """Return the rows of tiles of a picture whose size is known; `ty` is tiled by the schedule.

    Where taps lie apart, every few rows are a picture of their own, and every few columns lie side by side.
    """
    sides = form.sides(n)
    at: dict[Var, Expr] = {}
    phase: dict[Var, Expr] = {}
    found: list[list[Var]] = []
    for axis, m, step, name in zip(form.outs, sides, form.steps, "yx", strict=False):
        tile = Var(f"t{name}", tiles_of(known(axis.extent or 1), m, step) // step)
        at[axis] = tile
        found.append([tile])
        if step > 1:
            phase[axis] = apart = Var(f"p{name}", step)
            found[-1].insert(0, apart)
    (*first, ty), *others = found
    inside = tuple(a for axes in others for a in axes)
    if not others:
        first, inside = [], tuple(first)
    shape = (ty, *(known(a.extent or 1) for a in inside))
    return Tiles(sides, (*form.n, *form.groups, *first, ty), inside, (ty, *inside), shape, at, phase)


def _blocks(form: WinogradForm, n: int, target: Target, named: Callable[[Size], Size]) -> Tiles:
    """Return blocks of about equally many tiles, across rows and pictures; the last one has the rest.

    One for each core, if there are tiles enough: a thread makes all of a block.
    """
    sides = form.sides(n)
    sizes = [a.extent or 1 for a in form.n]
    for axis, m, step in zip(form.outs, sides, form.steps, strict=True):
        span = m * step
        sizes.append(named((as_expr(axis.extent or 1, DType.I64) + (span - 1)) // span * step))
    held = n ** len(sides) * (form.dtype.stored_bytes * form.terms + 4 * known(form.oc.extent or 1))
    counts = COSTS.dynamic_winograd_tiles
    most = next((t for t in counts if t * held <= COSTS.winograd_block_bytes), counts[-1])
    count = as_expr(named(volume(sizes)), DType.I64)
    blocks = as_expr(named((count + (most - 1)) // most), DType.I64)
    if target.cores > 1:
        shared = prim("min", count // COSTS.min_winograd_tiles, as_expr(target.cores, DType.I64))
        blocks = as_expr(named(prim("max", blocks, shared)), DType.I64)
    size = named((count + blocks - 1) // prim("max", blocks, 1))
    block = Var("block", blocks)
    tile = Var("tile", prim("min", prim("min", count - block * size, size), most))
    rest: Expr = block * size + tile
    at: dict[Var, Expr] = {}
    outermost, *others = (*form.n, *form.outs)
    for axis, extent in reversed(list(zip(others, sizes[1:], strict=True))):
        at[axis] = prim("mod", rest, extent)
        rest = prim("floordiv", rest, extent)
    at[outermost] = rest
    phase: dict[Var, Expr] = {}
    for axis, step in zip(form.outs, form.steps, strict=True):
        if step > 1:
            phase[axis], at[axis] = prim("mod", at[axis], step), prim("floordiv", at[axis], step)
    return Tiles(sides, (*form.groups, block), (tile,), (tile,), (most,), at, phase)


def _places(form: WinogradForm, tiles: Tiles, at: tuple[Expr, ...] = ()) -> dict[Expr, Expr]:
    """Return the form's output axes at the outputs `at` of a tile, or at its first ones."""
    found: dict[Expr, Expr] = {**tiles.at}
    for k, (axis, m, step) in enumerate(zip(form.outs, tiles.sides, form.steps, strict=True)):
        found[axis] = (tiles.at[axis] * m + (at[k] if at else 0)) * step + tiles.phase.get(axis, 0)
    return found


def _ragged(a: Var, span: int) -> bool:
    """True if the last tile can reach over the edge."""
    return not isinstance(a.extent, int) or a.extent % span != 0


def _inside(form: WinogradForm, spans: tuple[int, ...]) -> Expr:
    """Guard the load: 0 where a ragged tile reaches over the edge, since values there would not cancel out exactly."""
    asked: set[object] = set()
    e = form.guarded
    while isinstance(e, Prim):
        asked.add(normal(e.args[0], {}).key)
        e = e.args[2]
    made = form.guarded
    for axis, span in zip(form.outs, spans, strict=True):
        k = next(k for k, i in enumerate(form.x.index) if axis in variables(i))
        index, size = form.x.index[k], form.x.buffer.shape[k]
        if _ragged(axis, span) and normal(index, {}).key not in asked:
            made = prim("within", index, size, made)
    return made


def _transform(
    name: str,
    axes: tuple[Var, ...],
    transforms: tuple[Transform, ...],
    n: int,
    dtype: DType,
    read: Callable[[tuple[Var, ...]], Expr],
    write: Callable[[tuple[Var, ...], Expr], Definition],
) -> Group:
    """Compute T X S^t: along j for each row i, then along i for each column o; T x alone in one direction."""
    lane, first = axes[-1], transforms[0]
    split, combine = _table("split", first.split, dtype), _table("combine", first.combine, dtype)
    i, j, q, p = Var("i", n), Var("j", n), Var("q", n), Var("p", len(first.combine))
    if len(transforms) == 1:
        c = dense(f"c{LOCAL}", n, lane, space=Space.REGISTERS, dtype=dtype)
        return Group(
            name,
            axes,
            (c,),
            (
                Definition(c, (*axes, q), Reduce("add", (j,), split[q, j] * read((j,))), (q, lane)),
                write((p,), Reduce("add", (q,), combine[p, q] * c[q, lane])),
            ),
        )
    across = transforms[1]
    splits, combines = _table("splits", across.split, dtype), _table("combines", across.combine, dtype)
    o = Var("o", len(across.combine))
    a = dense(f"a{LOCAL}", i, n, lane, space=Space.REGISTERS, dtype=dtype)
    b = dense(f"b{LOCAL}", n, len(across.combine), lane, space=Space.REGISTERS, dtype=dtype)
    c = dense(f"c{LOCAL}", n, o, lane, space=Space.REGISTERS, dtype=dtype)
    rows = Group(
        "rows",
        (i,),
        (a,),
        (
            Definition(a, (*axes, i, q), Reduce("add", (j,), splits[q, j] * read((i, j))), (i, q, lane)),
            Definition(b, (*axes, i, o), Reduce("add", (q,), combines[o, q] * a[i, q, lane]), (i, o, lane)),
        ),
    )
    columns = Group(
        "columns",
        (o,),
        (c,),
        (
            Definition(c, (*axes, q, o), Reduce("add", (j,), split[q, j] * b[j, o, lane]), (q, o, lane)),
            write((p, o), Reduce("add", (q,), combine[p, q] * c[q, o, lane])),
        ),
    )
    return Group(name, axes, (b,), (rows, columns))


def _table(name: str, matrix: Matrix, dtype: DType) -> Buffer:
    values = tuple(v if dtype.is_float else int(v) for row in matrix for v in row)
    return dense(f"{name}{LOCAL}", len(matrix), len(matrix[0]), space=Space.TABLE, dtype=dtype, values=values)


def _plan(
    group: Group, weights: str, n: int, sides: tuple[int, ...], rows: int, ragged: bool, target: Target
) -> Schedule:
    """Plan blocks of `rows` tile rows, transforms unrolled. `ragged`: the last tiles stand apart, for their bounds."""
    axes = group.axes
    forward, products, backward = group.members
    assert isinstance(products, Definition)
    sizes = {"ty": rows, "tile": Var("tiles", None, 1, COSTS.winograd_tiles)}
    block = replace(products, axes=tuple(replace(a, extent=sizes.get(a.name, a.extent)) for a in products.axes))
    around = frozenset(a for a in axes if a in products.axes and a.name not in sizes)
    plan = product(block, target, frozenset({weights}), around)
    assert plan is not None and isinstance(forward, Group) and isinstance(backward, Group)
    v, m = group.temps
    edges = tuple(Tile(a, 1, Tail.PEEL) for a in ("ty", "tx")[: len(sides)] if ragged)
    return Schedule(
        tile=(Tile(axes[-1].name, rows, Tail.CUT),),
        pitch=((f"v{LOCAL}", 16), (f"m{LOCAL}", 16)),
        parallel=axes[0].name if len(axes) == 1 or known(axes[0].extent or 1) > 1 else axes[-1].name,
        members=(
            _written_out(forward.axes[-1], n, (n,) * len(sides), (), target.lanes(v.dtype)),
            replace(plan, parallel=None),
            _written_out(backward.axes[-1], n, sides, edges, target.lanes(m.dtype)),
        ),
    )


def _written_out(lane: Var, n: int, sides: tuple[int, ...], edges: tuple[Tile, ...], lanes: int) -> Schedule:
    """Schedule a transform from n points in each direction to `sides`, unrolled, in vectors of up to `lanes`."""
    while lanes > known(lane.extent or 1):
        lanes //= 2

    def full(*axes: tuple[str, int]) -> Schedule:
        return Schedule(tile=tuple(Tile(a, extent) for a, extent in axes), lanes=(lane.name, lanes))

    down = full(("q", n), ("j", n)), full(("p", sides[0]), ("q", n))
    tile = (Tile(lane.name, lanes, Tail.CUT), *edges)
    if len(sides) == 1:
        return Schedule(tile=tile, members=down)
    across = full(("q", n), ("j", n)), full(("o", sides[1]), ("q", n))
    return Schedule(tile=tile, members=(Schedule(unroll=("i",), members=across), Schedule(unroll=("o",), members=down)))
