"""Convolutions as F(m, r) in one or two directions: definitions over blocks of tiles.

    V = transform(x)      a product V U for each point      y = end(transform(M))      U = transform(w), at compile time

`aot.lowering.algorithms.winograd_matrices` has the matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical, varies, volume
from aot.codegen.ir.definition import LOCAL, Definition, Group
from aot.codegen.ir.expressions import calls_functions, rewrite, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Prim, Reduce, Size, Space, Var, as_expr, cast, dense, prim
from aot.codegen.ir.schedule import Schedule, Tail, Tile, width_of
from aot.codegen.ir.traverse import members, move_loads, rewrite_definition
from aot.codegen.schedules.products.product import product
from aot.codegen.schedules.request import Request
from aot.codegen.target import Target
from aot.lowering.algorithms.winograd_form import Tiling, WinogradForm
from aot.lowering.algorithms.winograd_matrices import Matrix, Transform, back, into
from aot.lowering.algorithms.winograd_tilings import tiles_of
from aot.lowering.program.kernel_parameters import with_roles
from aot.runtime.abi import DType

WEIGHTS = f"w{LOCAL}"  # in place of the name of a layer's transformed weights


@dataclass(frozen=True, slots=True)
class Tiles:
    """The axes of a group over tiles of outputs: `shared` ones step through blocks, `inside` ones through a block.

    `tile_index`: indices of a tile in the temporaries. `at`: indices of its image, row and column, by the form's axes.
    `phase`: where outputs that lie several steps apart begin.
    """

    sides: tuple[int, ...]
    shared: tuple[Var, ...]
    inside: tuple[Var, ...]
    tile_index: tuple[Var, ...]
    shape: tuple[Size, ...]
    at: dict[Var, Expr]
    phase: dict[Var, Expr]


@dataclass(frozen=True, slots=True)
class Winograd:
    """`works` with their schedules; `weights`: the transformed ones [groups.., points, ic, oc].

    `temps`: values in memory between the works, which run one after another over all threads; none for a group.
    """

    works: tuple[Definition | Group, ...]
    schedules: tuple[Schedule | None, ...]
    weights: Buffer
    temps: tuple[Buffer, ...] = ()


def winograd(
    d: Definition,
    form: WinogradForm,
    tiling: Tiling,
    target: Target,
    named: Callable[[Size], Size],
    unused: Callable[[str], str],
) -> Winograd:
    """Build the outputs of `d` that `tiling` makes. `named` names a size known at run time, `unused` a value."""
    vary = varies((*form.n, *form.outs))
    tiles = _blocks(form, tiling, target, named) if vary else _rows(form, tiling)
    convolution = _TiledConvolution(d, form, tiling, tiles)
    *around, high = (typical(a.extent or 1) for a in tiles.shared)
    rows = 1 if vary else _height(form, tiles, tiling.points, target)
    blocks = typical(tiles.shared[0].extent or 1) if vary else -(-high // rows) * prod(around)
    one_picture = len(tiles.shared) == 1 and not varies(tiles.shared)
    if blocks < COSTS.min_winograd_blocks and one_picture:  # too few blocks to share out
        return _apart(convolution, target, unused)
    group = Group("winograd", tiles.shared, (convolution.inputs, convolution.sums), convolution.works())
    schedule = _schedule(group, convolution.weights, tiling, rows, target)
    return Winograd((group,), (schedule,), convolution.weights)


def _apart(convolution: _TiledConvolution, target: Target, unused: Callable[[str], str]) -> Winograd:
    """Run transforms and products as separate kernels over all threads."""
    name, temps = convolution.d.out.name, list[Buffer]()
    for temp in (convolution.inputs, convolution.sums):
        shape = [n.extent if isinstance(n, Var) and n.extent is not None else n for n in temp.shape]
        temps.append(dense(unused(f"{name}.{temp.name}"), *shape, dtype=temp.dtype))
    convolution.inputs, convolution.sums = temps
    forward, products, backward = convolution.works()
    (rows,) = convolution.tiles.shared
    into_schedule, back_schedule = _transform_schedules(forward, backward, convolution.tiling, temps, target)
    schedules = (replace(into_schedule, parallel=rows.name), None, replace(back_schedule, parallel=rows.name))
    return Winograd((forward, products, backward), schedules, convolution.weights, tuple(temps))


class _TiledConvolution:
    """The definitions of a convolution over tiles, with the memory between them.

    `weights`: transformed at compile time; `inputs` and `sums`: transformed data and their products, for each point.
    """

    def __init__(self, d: Definition, form: WinogradForm, tiling: Tiling, tiles: Tiles) -> None:
        self.d, self.form, self.tiling, self.tiles = d, form, tiling, tiles
        self.axes = (*tiles.shared, *tiles.inside)
        self.ic, self.oc = _axis("ic", form.ic.extent), _axis("oc", form.oc.extent)
        self.sum_axes = (*form.summed, self.ic)
        points, outs = tiling.points, typical(self.oc.extent or 1)
        terms, groups = ([typical(a.extent or 1) for a in axes] for axes in (self.sum_axes, form.groups))
        name = f"{form.w.buffer.name}.winograd{tiling.name}.{form.arrangement}{LOCAL}"
        self.weights = dense(name, *groups, points, *terms, outs, dtype=form.dtype)
        self.inputs = dense(f"v{LOCAL}", points, *tiles.shape, *terms, space=Space.ARENA, dtype=form.dtype)
        self.sums = dense(f"m{LOCAL}", points, *tiles.shape, outs, space=Space.ARENA, dtype=form.sum_type)
        spans = (m * step for m, step in zip(tiling.sides, form.steps, strict=True))
        tiled = zip(form.outs, spans, strict=True)
        self.ragged = [a for a, span in tiled if not tiling.phases and _is_ragged(a, span)]

    def works(self) -> tuple[Group, Definition, Group]:
        """Return the transform of data, the products, and the transform of their sums."""
        return self.input_transform(), self.products(), self.output_transform()

    def input_transform(self) -> Group:
        """Transform the data of a tile, for each input channel."""
        form, tiling, tile = self.form, self.tiling, self.tiles.tile_index
        guarded = form.x if tiling.phases else _inside(form, [*self.ragged, *form.reaching])

        def read(at: tuple[Var, ...]) -> Expr:
            taps = {k: i + 1 if tiling.phases else i for k, i in zip(form.taps, at, strict=True)}  # tap 0 finds zeros
            x = rewrite(guarded, {**_axis_values(form, self.tiles), **taps, form.ic: self.ic})
            return cast(x, form.dtype) if form.is_whole else x

        def write(at: tuple[Var, ...], e: Expr) -> Definition:
            index = (_point(at, tiling), *tile, *self.sum_axes)
            return Definition(self.inputs, (*self.axes, *self.sum_axes, *reversed(at)), e, index)

        transforms = tuple(map(into, tiling.kinds))
        return _transform("input", (*self.axes, *self.sum_axes), transforms, form.dtype.compute, read, write)

    def products(self) -> Definition:
        """Multiply transformed data and weights, for each point."""
        form, tile, sum_axes, point = self.form, self.tiles.tile_index, self.sum_axes, _axis("xn", self.tiling.points)
        data, weights = self.inputs[point, *tile, *sum_axes], self.weights[*form.groups, point, *sum_axes, self.oc]
        total = Reduce("add", sum_axes, form.number(data) * form.number(weights))
        outer = self.tiles.shared if varies((*form.n, *form.outs)) else form.groups
        return Definition(self.sums, (*outer, point, *tile, self.oc), total, (point, *tile, self.oc))

    def output_transform(self) -> Group:
        """Transform the sums of a tile, for each output channel, and compute the values of `d` from them."""
        d, form, tiling, oc = self.d, self.form, self.tiling, self.oc
        assert d.reduction is not None
        reduction = d.reduction

        def read(at: tuple[Var, ...]) -> Expr:
            return self.sums[_point(at, tiling), *self.tiles.tile_index, oc]

        def write(at: tuple[Var, ...], total: Expr) -> Definition:
            axis_values = {**_axis_values(form, self.tiles, at), form.oc: oc}
            value = rewrite(d.value, {**axis_values, reduction: _divided(total, form.factor(tiling))})
            index = tuple(rewrite(i, axis_values) for i in d.target)
            where = tuple((axis_values[a], a.extent) for a in self.ragged if a.extent)
            return Definition(d.out, (*self.axes, oc, *reversed(at)), value, index, where)

        return _transform("output", (*self.axes, oc), tuple(map(back, tiling.kinds)), form.sum_type, read, write)


@lru_cache(maxsize=1 << 10)
def _axis(name: str, extent: Size | None) -> Var:
    """Return an axis, the same for all layers: what is known of equal layers is found by axes that compare fast."""
    return Var(name, extent)


def _divided(total: Expr, factor: int) -> Expr:
    """Return a sum, taken modulo 2^32, of products with weights that were multiplied by `factor`; nothing is left over.

    The odd part of the factor is invertible modulo 2^32.
    """
    even = factor & -factor
    if even < factor:
        inverse = pow(factor // even, -1, 1 << 32)
        total = total * Const(inverse - (inverse >> 31 << 32), DType.I32)
    return total if even == 1 else prim("shr", total, Const(even.bit_length() - 1, DType.I32))


def _point(at: tuple[Var, ...], tiling: Tiling) -> Expr:
    """Return the number of a point."""
    first, *rest = at
    point: Expr = first
    for i, kind in zip(rest, tiling.kinds[1:], strict=True):
        point = point * kind.points + i
    return point


def _height(form: WinogradForm, tiles: Tiles, count: int, target: Target) -> int:
    """Return the rows of tiles in a block: they fill the cache, and in one direction all cores get equally many.

    In two directions a block also has enough rows to amortise reloading weights that exceed L2.
    """
    rows, outs = typical(tiles.shared[-1].extent or 1), typical(form.oc.extent or 1)
    beside = prod(typical(a.extent or 1) for a in tiles.inside)
    tile_bytes = count * (form.dtype.stored_bytes * form.terms + 4 * outs)
    if len(tiles.sides) > 1:
        passing = not target.near_l3 and form.dtype.stored_bytes * count * form.terms * outs > target.l2
        wanted = max(COSTS.winograd_tiles / beside, target.l2 * 3 // 4 // tile_bytes // beside if passing else 0)
        if form.groups:  # a group's panels are small, so tiles may be many
            wanted = max(wanted, target.l2 // 4 // tile_bytes // beside)
        return max(1, min(round(wanted), rows))
    max_rows = max(COSTS.winograd_tiles, target.l2 // tile_bytes) // beside
    blocks = -(-rows // max(1, max_rows))
    if blocks > 1:
        blocks = -(-blocks // target.cores) * target.cores
    return -(-rows // blocks)


def _rows(form: WinogradForm, tiling: Tiling) -> Tiles:
    """Return the rows of tiles of an image of known size; the schedule tiles `ty`.

    Where taps lie apart, every few rows are an image of their own, and every few columns lie side by side.
    """
    at: dict[Var, Expr] = {}
    phase: dict[Var, Expr] = {}
    row_axes: list[list[Var]] = []
    for d, (axis, name) in enumerate(zip(form.outs, "yx", strict=False)):
        if tiling.phases:
            tile = _axis(f"t{name}", len(tiling.phases[d]))
            at[axis], phase[axis] = Const(0), tile + tiling.phases[d].start
            row_axes.append([tile])
            continue
        m, step = tiling.sides[d], form.steps[d]
        at[axis] = tile = _axis(f"t{name}", tiles_of(typical(axis.extent or 1), m, step) // step)
        row_axes.append([tile])
        if step > 1:
            phase[axis] = phase_axis = _axis(f"p{name}", step)
            row_axes[-1].insert(0, phase_axis)
    (*first, ty), *others = row_axes
    inside = tuple(a for axes in others for a in axes)
    if not others:
        first, inside = list[Var](), tuple(first)
    shape = (ty, *(typical(a.extent or 1) for a in inside))
    return Tiles(tiling.sides, (*form.n, *form.groups, *first, ty), inside, (ty, *inside), shape, at, phase)


def _blocks(form: WinogradForm, tiling: Tiling, target: Target, named: Callable[[Size], Size]) -> Tiles:
    """Return blocks of about equally many tiles, across rows and images; the last block has the rest.

    One for each core, if there are tiles enough: a thread makes all of a block.
    """
    sizes = [a.extent or 1 for a in form.n]
    for axis, m, step in zip(form.outs, tiling.sides, form.steps, strict=True):
        span = m * step
        sizes.append(named((as_expr(axis.extent or 1, DType.I64) + (span - 1)) // span * step))
    tile_bytes = tiling.points * (form.dtype.stored_bytes * form.terms + 4 * typical(form.oc.extent or 1))
    counts = COSTS.dynamic_winograd_tiles
    max_tiles = next((t for t in counts if t * tile_bytes <= COSTS.winograd_block_bytes), counts[-1])
    count = as_expr(named(volume(sizes)), DType.I64)
    blocks = as_expr(named((count + (max_tiles - 1)) // max_tiles), DType.I64)
    if target.cores > 1:
        shared = prim("min", count // COSTS.min_winograd_tiles, as_expr(target.cores, DType.I64))
        blocks = as_expr(named(prim("max", blocks, shared)), DType.I64)
    size = named((count + blocks - 1) // prim("max", blocks, 1))
    block = Var("block", blocks)
    tile = Var("tile", prim("min", prim("min", count - block * size, size), max_tiles))
    linear: Expr = block * size + tile
    at: dict[Var, Expr] = {}
    outermost, *others = (*form.n, *form.outs)
    for axis, extent in reversed(list(zip(others, sizes[1:], strict=True))):
        at[axis] = prim("mod", linear, extent)
        linear = prim("floordiv", linear, extent)
    at[outermost] = linear
    phase: dict[Var, Expr] = {}
    for axis, step in zip(form.outs, form.steps, strict=True):
        if step > 1:
            phase[axis], at[axis] = prim("mod", at[axis], step), prim("floordiv", at[axis], step)
    return Tiles(tiling.sides, (*form.groups, block), (tile,), (tile,), (max_tiles,), at, phase)


def _axis_values(form: WinogradForm, tiles: Tiles, at: tuple[Expr, ...] = ()) -> dict[Expr, Expr]:
    """Return the values of the output axes at the outputs `at` of a tile; without `at`, at its first outputs."""
    values: dict[Expr, Expr] = {**tiles.at}
    for k, (axis, m, step) in enumerate(zip(form.outs, tiles.sides, form.steps, strict=True)):
        values[axis] = (tiles.at[axis] * m + (at[k] if at else 0)) * step + tiles.phase.get(axis, 0)
    return values


def _is_ragged(a: Var, span: int) -> bool:
    """True if the last tile can reach over the edge."""
    return not isinstance(a.extent, int) or a.extent % span != 0


def _inside(form: WinogradForm, reaching: Sequence[Var]) -> Expr:
    """Guard the load: 0 where a tile reaches over the edge, since values there would not cancel out exactly."""
    checked: set[object] = set()
    e = form.guarded
    while isinstance(e, Prim):
        checked.add(normal(e.args[0], {}).key)
        e = e.args[2]
    result = form.guarded
    for axis in dict.fromkeys(reaching):
        k = next(k for k, i in enumerate(form.x.index) if axis in variables(i))
        index, size = form.x.index[k], form.x.buffer.shape[k]
        if normal(index, {}).key not in checked:
            result = prim("within", index, size, result)
    return result


def _transform(
    name: str,
    axes: tuple[Var, ...],
    transforms: tuple[Transform, ...],
    dtype: DType,
    read: Callable[[tuple[Var, ...]], Expr],
    write: Callable[[tuple[Var, ...], Expr], Definition],
) -> Group:
    """Compute T X S^t: along j for each row i, then along i for each column o; T x alone in one direction."""
    lane, first = axes[-1], transforms[0]
    split, combine = _table("split", first.split, dtype), _table("combine", first.combine, dtype)
    j, q, p = _axis("j", first.inputs), _axis("q", len(first.split)), _axis("p", len(first.combine))
    if len(transforms) == 1:
        c = dense(f"c{LOCAL}", len(first.split), lane, space=Space.REGISTERS, dtype=dtype)
        parts = Definition(c, (*axes, q), Reduce("add", (j,), split[q, j] * read((j,))), (q, lane))
        return Group(name, axes, (c,), (parts, write((p,), Reduce("add", (q,), combine[p, q] * c[q, lane]))))
    rows, b = _row_transforms(axes, first.inputs, transforms[1], dtype, read)
    o = _axis("o", len(transforms[1].combine))
    c = dense(f"c{LOCAL}", len(first.split), o, lane, space=Space.REGISTERS, dtype=dtype)
    parts = Definition(c, (*axes, q, o), Reduce("add", (j,), split[q, j] * b[j, o, lane]), (q, o, lane))
    results = write((p, o), Reduce("add", (q,), combine[p, q] * c[q, o, lane]))
    return Group(name, axes, (b,), (rows, Group("columns", (o,), (c,), (parts, results))))


def _row_transforms(
    axes: tuple[Var, ...],
    rows: int,
    across: Transform,
    dtype: DType,
    read: Callable[[tuple[Var, ...]], Expr],
) -> tuple[Group, Buffer]:
    """Return X S^t as a group over the rows of X, and the buffer that it fills."""
    lane, i, o = axes[-1], _axis("i", rows), _axis("o", len(across.combine))
    split, combine = _table("splits", across.split, dtype), _table("combines", across.combine, dtype)
    k, r = _axis("j", across.inputs), _axis("q", len(across.split))
    a = dense(f"a{LOCAL}", i, len(across.split), lane, space=Space.REGISTERS, dtype=dtype)
    b = dense(f"b{LOCAL}", rows, len(across.combine), lane, space=Space.REGISTERS, dtype=dtype)
    parts = Definition(a, (*axes, i, r), Reduce("add", (k,), split[r, k] * read((i, k))), (i, r, lane))
    results = Definition(b, (*axes, i, o), Reduce("add", (r,), combine[o, r] * a[i, r, lane]), (i, o, lane))
    return Group("rows", (i,), (a,), (parts, results)), b


@lru_cache(maxsize=1 << 8)
def _table(name: str, matrix: Matrix, dtype: DType) -> Buffer:
    values = tuple(v if dtype.is_float else int(v) for row in matrix for v in row)
    return dense(f"{name}{LOCAL}", len(matrix), len(matrix[0]), space=Space.TABLE, dtype=dtype, values=values)


def _schedule(group: Group, weights: Buffer, tiling: Tiling, rows: int, target: Target) -> Schedule:
    """Return blocks of `rows` tile rows, transforms unrolled."""
    axes = group.axes
    forward, products, backward = group.members
    assert isinstance(products, Definition)
    sizes = {"ty": rows, "tile": Var("tiles", None, 1, COSTS.winograd_tiles)}
    block = replace(products, axes=tuple(replace(a, extent=sizes.get(a.name, a.extent)) for a in products.axes))
    around = frozenset(a for a in axes if a in products.axes and a.name not in sizes)
    alike = rewrite_definition(block, move_loads({weights.name: replace(weights, name=WEIGHTS)}))
    product_schedule = with_roles(_product_schedule(alike, target, around), {WEIGHTS: weights.name})
    assert isinstance(forward, Group) and isinstance(backward, Group)
    into_schedule, back_schedule = _transform_schedules(forward, backward, tiling, group.temps, target)
    return Schedule(
        tile=(Tile(axes[-1].name, rows, Tail.REST),),
        pitch=((f"v{LOCAL}", 16), (f"m{LOCAL}", 16)),
        parallel=axes[0].name if len(axes) == 1 or typical(axes[0].extent or 1) > 1 else axes[-1].name,
        members=(into_schedule, replace(product_schedule, parallel=None), back_schedule),
    )


def _transform_schedules(
    forward: Group, backward: Group, tiling: Tiling, temps: Sequence[Buffer], target: Target
) -> tuple[Schedule, Schedule]:
    """Return the schedules of both transforms."""
    v, m = temps
    starts, ends = (tuple(map(make, tiling.kinds)) for make in (into, back))
    return (
        _written_out(forward, starts, target.lanes(v.dtype)),
        _written_out(backward, ends, target.lanes(m.dtype)),
    )


@lru_cache(maxsize=1 << 8)  # equal layers differ in the names of their weights
def _product_schedule(products: Definition, target: Target, around: frozenset[Var]) -> Schedule:
    """Return the schedule of the products with `WEIGHTS`."""
    schedule, _ = product(Request(products, target, frozenset({WEIGHTS}), around))
    assert schedule is not None
    return schedule


def _written_out(group: Group, transforms: tuple[Transform, ...], lanes: int) -> Schedule:
    """Schedule the transforms of all directions, unrolled, in vectors of up to `lanes`.

    Columns whose results call functions are a loop, for the size of the code.
    """
    lane, results = group.axes[-1], list(members(group))[-1]  # the others are sums alone
    calls = len(transforms) > 1 and calls_functions(results.value)
    sizes = tuple((len(t.split), t.inputs, len(t.combine)) for t in transforms)
    return _unrolled(lane.name, width_of(typical(lane.extent or 1), lanes), sizes, calls)


@lru_cache(maxsize=1 << 8)
def _unrolled(lane: str, lanes: int, sizes: tuple[tuple[int, int, int], ...], calls: bool) -> Schedule:
    """`sizes`: parts, inputs and outputs of the transform of each direction."""

    def full(size: tuple[int, int, int], output: str) -> tuple[Schedule, ...]:
        parts = ("q", size[0]), ("j", size[1]), (output, size[2])
        splits, combines = (tuple(Tile(*p) for p in pair) for pair in (parts[:2], (parts[2], parts[0])))
        return tuple(Schedule(tile=tile, lanes=(lane, lanes)) for tile in (splits, combines))

    down = full(sizes[0], "p")
    tile = (Tile(lane, lanes, Tail.CUT),)
    if len(sizes) == 1:
        return Schedule(tile=tile, members=down)
    rows = Schedule(unroll=("i",), members=full(sizes[1], "o"))
    return Schedule(tile=tile, members=(rows, Schedule(unroll=() if calls else ("o",), members=down)))
