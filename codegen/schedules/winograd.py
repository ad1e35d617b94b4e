"""Convolution 3x3 with stride 1 as F(m x m, 3 x 3): definitions over blocks of tiles (Winograd 1980; Lavin, Gray 2015).

    V = transform(x)      (m+2)^2 products  M = V U      y = end(transform(M))      U = transform(w), at compile time

Each one-dimensional transform is two constant matrices, so that the even and odd parts are shared by being definitions
themselves:   v = Combine (Split d).   A zero in a matrix is structural: the term does not exist. The points of F(4x4)
are 0, +-3/4, +-3/2 and infinity: exact in binary, and twice the error of a plain convolution where 0, +-1, +-2 have
four times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from codegen.access import known, varies, volume
from codegen.define import Definition, Group
from codegen.expressions import rewrite, variables
from codegen.index import normal
from codegen.loops import Buffer, Const, Expr, Load, Prim, Reduce, Size, Space, Var, as_expr, dense, prim
from codegen.schedule import Schedule, Tail, Tile
from codegen.schedules.product import product
from codegen.target import Target
from runtime.abi import DType

Matrix = tuple[tuple[float, ...], ...]
WEIGHT = 8.0  # multiply-adds that take as long as a weight from memory
BLOCK = 64  # input channels that are transformed at a time
TILES = 14  # of a block, about: full register tiles, within the cache, and enough blocks for threads to share
MOST_TILES = 2 * TILES, 16  # where run time tells their number: weights are read once for each block
BLOCK_BYTES = 1 << 20  # that a block's transforms take: below that, the larger of both


@dataclass(frozen=True, slots=True)
class Transform:
    """Combine @ Split."""

    split: Matrix
    combine: Matrix


@dataclass(frozen=True, slots=True)
class Form:
    """A 3x3 convolution as it reads: `x` and `w` loads of the product, its axes, and where `w` has them.

    `deep` are axes of the sum besides: 3x3x3 is a sum of 3x3 over three pictures.
    """

    x: Load
    w: Load
    guarded: Expr  # x, inside of what asks for its bounds
    n: tuple[Var, ...]
    h: Var
    w_axis: Var
    oc: Var
    ic: Var
    kh: Var
    kw: Var
    deep: tuple[Var, ...]

    @property
    def terms(self) -> int:
        """Of one point of the window."""
        return prod(known(a.extent or 1) for a in (*self.deep, self.ic))


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of m x m outputs as a group walks them: `shared` axes of its blocks, `inside` one all others.

    `place`: indices of the temps; `at`: of the picture, row and column of tiles, by what the form calls its axes.
    """

    m: int
    shared: tuple[Var, ...]
    inside: tuple[Var, ...]
    place: tuple[Var, ...]
    shape: tuple[Size, ...]
    at: dict[Var, Expr]


@dataclass(frozen=True, slots=True)
class Winograd:
    """`work` with its schedule; `weights`: buffer of the transformed ones [points, ic, oc]; `blocks` for threads."""

    work: Group
    schedule: Schedule
    weights: Buffer
    blocks: int


def f4(a: float = 0.75, b: float = 1.5) -> tuple[Transform, Transform]:
    """Input and output transform for the points 0, +-a, +-b, infinity."""
    p, q = a * a, b * b
    split_in = (
        (p * q, 0.0, -(p + q), 0.0, 1.0, 0.0),
        (0.0, 0.0, -q, 0.0, 1.0, 0.0), (0.0, -q, 0.0, 1.0, 0.0, 0.0),
        (0.0, 0.0, -p, 0.0, 1.0, 0.0), (0.0, -p, 0.0, 1.0, 0.0, 0.0),
        (0.0, p * q, 0.0, -(p + q), 0.0, 1.0),
    )  # fmt: skip
    combine_in = (
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, a, 0.0, 0.0, 0.0), (0.0, 1.0, -a, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, b, 0.0), (0.0, 0.0, 0.0, 1.0, -b, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    )  # fmt: skip
    split_out = (
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (0.0, 1.0, -1.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0, -1.0, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    )  # fmt: skip
    combine_out = (
        (1.0, 1.0, 0.0, 1.0, 0.0, 0.0), (0.0, 0.0, a, 0.0, b, 0.0),
        (0.0, p, 0.0, q, 0.0, 0.0), (0.0, 0.0, a * p, 0.0, b * q, 1.0),
    )  # fmt: skip
    return Transform(split_in, combine_in), Transform(split_out, combine_out)


def f2() -> tuple[Transform, Transform]:
    """Points 0, +-1, infinity: nothing to share."""
    identity = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
    return (
        Transform(identity, (
            (1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, -1.0, 0.0, 1.0),
        )),
        Transform(identity, ((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, 1.0))),
    )  # fmt: skip


def transforms(m: int) -> tuple[Transform, Transform]:
    return f4() if m == 4 else f2()


def weight_matrix(m: int) -> NDArray[np.float64]:
    """[m + 2, 3]: what makes the other two transforms a convolution, solved from them."""
    into, back = transforms(m)
    b = np.array(into.combine) @ np.array(into.split)
    a = np.array(back.combine) @ np.array(back.split)
    n = m + 2
    system: NDArray[np.float64] = np.einsum("kx,xi->kix", a, b).reshape(m * n, n)
    wanted = np.array([[float(i == k + j) for j in range(3)] for k in range(m) for i in range(n)])
    return np.matmul(np.linalg.pinv(system), wanted)


def transformed(weights: NDArray[np.generic], form: Form, m: int) -> NDArray[np.float32]:
    """[(m + 2)^2, deep.., ic, oc] from the weights, computed in f64."""
    order = [form.w.index.index(a) for a in (form.kh, form.kw, *form.deep, form.ic, form.oc)]
    rest = [k for k in range(weights.ndim) if k not in order]
    *deep, oc = (weights.shape[k] for k in order[2:])
    ic = prod(deep)
    plain = weights.transpose(*rest, *order).reshape(3, 3, ic, oc)
    g = weight_matrix(m)
    n = m + 2
    made = np.empty((n, n, ic, oc), np.float32)
    for start in range(0, ic, BLOCK):  # f64 takes twice the memory
        part = np.asarray(plain[:, :, start : start + BLOCK], np.float64)
        down = np.matmul(g, part.reshape(3, -1)).reshape(n, 3, -1)
        made[:, :, start : start + BLOCK] = np.matmul(g, down).reshape(n, n, -1, oc)
    return made.reshape(n * n, *deep, oc)


def form_of(d: Definition, constants: frozenset[str]) -> Form | None:
    """The form, if `d` is a 3x3 convolution with stride 1 and constant weights."""
    r = d.reduction
    if r is None or r.fn != "add" or r.init is not None or d.where or d.out.dtype is not DType.F32:
        return None
    if not (isinstance(r.body, Prim) and r.body.fn == "mul"):
        return None
    for guarded, w in (r.body.args, r.body.args[::-1]):
        x = guarded
        while isinstance(x, Prim) and x.fn == "within" and (len(x.args) == 3 or x.args[3] == Const(0.0, DType.F32)):
            x = x.args[2]
        if not isinstance(w, Load) or not isinstance(x, Load):
            continue
        if w.buffer.name in constants and x.buffer.name not in constants:
            return _matched(d, r, x, w, guarded)
    return None


def _matched(d: Definition, r: Reduce, x: Load, w: Load, guarded: Expr) -> Form | None:
    if not all(isinstance(i, Var | Const) for i in w.index) or x.buffer.dtype is not DType.F32:
        return None
    windows: list[tuple[Var, Var]] = []
    plain: list[Var] = []
    for i in x.index:
        at = normal(i, {})
        found = [a for a in at.terms if isinstance(a, Var)]
        if len(found) != len(at.terms) or any(c != 1 for c in at.terms.values()):
            return None
        sums, outs = [a for a in found if a in r.axes], [a for a in found if a in d.axes]
        if len(sums) == len(outs) == 1:
            windows.append((outs[0], sums[0]))
        elif len(found) == 1:
            plain.append(found[0])
        elif found:
            return None
    channels = [a for a in plain if a in r.axes]
    flat = [pair for pair in windows if pair[1].extent == 3][-2:]
    if len(flat) != 2 or len(channels) != 1 or len(r.axes) != 1 + len(windows):
        return None
    (h, kh), (wide, kw) = flat
    lanes = [a for a in d.axes if a in w.index]
    others = [pair for pair in windows if pair not in flat]
    batch, deep = (*(a for a in plain if a in d.axes), *(a for a, _ in others)), tuple(k for _, k in others)
    if len(lanes) != 1 or {*batch, h, wide, lanes[0]} != set(d.axes) or not set(r.axes) <= set(w.index):
        return None
    if not all(isinstance(a.extent, int) for a in (lanes[0], *r.axes)):
        return None
    return Form(x, w, guarded, batch, h, wide, lanes[0], channels[0], kh, kw, deep)


def choose_size(form: Form) -> int:
    """4, 2, or 0 for a plain convolution: the least work, transforms and ragged tiles counted."""
    h, w, oc = (known(a.extent or 1) for a in (form.h, form.w_axis, form.oc))
    ic = form.terms
    if ic < 16 or oc < 16 or min(h, w) < 4:
        return 0
    plain = 9.0 * h * w * ic * oc
    costs = {0: plain + 9.0 * ic * oc * WEIGHT}
    for m in (2, 4):
        tiles, points = -(-h // m) * -(-w // m), (m + 2) ** 2
        # about 8 operations for each point and channel of both transforms
        costs[m] = tiles * points * (ic * oc + 8.0 * (ic + oc)) * 1.1 + points * ic * oc * WEIGHT
    return min(costs, key=lambda m: (costs[m], m))


def winograd(d: Definition, form: Form, m: int, target: Target, named: Callable[[Size], Size]) -> Winograd:
    """`d` over tiles of m x m outputs. `named`: a size that run time computes, by a name."""
    into, back = transforms(m)
    n = m + 2
    tiles = _blocks(form, m, named) if varies((*form.n, form.h, form.w_axis)) else _rows(form, m)
    ic, oc = Var("ic", form.ic.extent), Var("oc", form.oc.extent)
    sums, outs = (*form.deep, ic), known(oc.extent or 1)
    terms = [known(a.extent or 1) for a in sums]
    u = dense(f"{form.w.buffer.name}.winograd{m}", n * n, *terms, outs)
    v = dense("v", n * n, *tiles.shape, *terms, space=Space.ARENA)
    mm = dense("m", n * n, *tiles.shape, outs, space=Space.ARENA)
    axes, place = (*tiles.shared, *tiles.inside), tiles.place
    guarded = _inside(form, m)

    def read(i: Var, j: Var) -> Expr:
        return rewrite(guarded, {**_places(form, tiles), form.kh: i, form.kw: j, form.ic: ic})

    def write(p: Var, o: Var, total: Expr) -> Definition:
        at = {**_places(form, tiles, p, o), form.oc: oc}
        assert d.reduction is not None
        ragged = [(at[a], a.extent) for a in (form.h, form.w_axis) if a.extent is not None and _ragged(a, m)]
        value = rewrite(d.value, {**at, d.reduction: total})
        index = tuple(rewrite(i, at) for i in d.target)
        return Definition(d.out, (*axes, oc, o, p), value, index, tuple(ragged))

    xn = Var("xn", n * n)
    outer = tuple(a for a in tiles.shared if a not in (*place, *form.n))
    total = Reduce("add", sums, v[xn, *place, *sums] * u[xn, *sums, oc])
    products = Definition(mm, (*outer, xn, *place, oc), total, (xn, *place, oc))

    def fill(i: Var, j: Var, e: Expr) -> Definition:
        return Definition(v, (*axes, *sums, j, i), e, (i * n + j, *place, *sums))

    forward = _transform("input", (*axes, *sums), into, n, read, fill)
    backward = _transform("output", (*axes, oc), back, n, lambda i, j: mm[i * n + j, *place, oc], write)
    group = Group("winograd", tiles.shared, (v, mm), (forward, products, backward))
    rows = max(1, min(round(TILES / known(tiles.inside[-1].extent or 1)), known(tiles.shared[-1].extent or 1)))
    if varies(tiles.inside):
        return Winograd(group, _plan(group, u.name, m, 1, False, target), u, known(tiles.shared[0].extent or 1))
    peeled = _ragged(form.h, m) or _ragged(form.w_axis, m)
    blocks = -(-known(tiles.shared[-1].extent or 1) // rows) * prod(known(a.extent or 1) for a in form.n)
    return Winograd(group, _plan(group, u.name, m, rows, peeled, target), u, blocks)


def _rows(form: Form, m: int) -> Tiles:
    """Rows of tiles of a picture whose size is known; `ty` is tiled by the schedule."""
    ty, tx = (Var(name, -(-known(a.extent or 1) // m)) for name, a in (("ty", form.h), ("tx", form.w_axis)))
    at: dict[Var, Expr] = {form.h: ty, form.w_axis: tx}
    return Tiles(m, (*form.n, ty), (tx,), (ty, tx), (ty, known(tx.extent or 1)), at)


def _blocks(form: Form, m: int, named: Callable[[Size], Size]) -> Tiles:
    """Blocks of about as many tiles each, whatever rows and pictures they lie in; the last one has those left."""
    sizes = [a.extent or 1 for a in form.n]
    sizes += [named((as_expr(a.extent or 1, DType.I64) + (m - 1)) // m) for a in (form.h, form.w_axis)]
    held = 4 * (m + 2) ** 2 * (form.terms + known(form.oc.extent or 1))
    most = next((n for n in MOST_TILES if n * held <= BLOCK_BYTES), MOST_TILES[-1])
    count = as_expr(named(volume(sizes)), DType.I64)
    blocks = as_expr(named((count + (most - 1)) // most), DType.I64)
    size = named((count + blocks - 1) // prim("max", blocks, 1))
    block = Var("block", blocks)
    tile = Var("tile", prim("min", prim("min", count - block * size, size), most))
    rest: Expr = block * size + tile
    at: dict[Var, Expr] = {}
    outermost, *others = (*form.n, form.h, form.w_axis)
    for axis, extent in reversed(list(zip(others, sizes[1:], strict=True))):
        at[axis] = prim("mod", rest, extent)
        rest = prim("floordiv", rest, extent)
    at[outermost] = rest
    return Tiles(m, (block,), (tile,), (tile,), (most,), at)


def _places(form: Form, tiles: Tiles, p: Size = 0, o: Size = 0) -> dict[Expr, Expr]:
    """The form's output axes at point p, o of a tile."""
    found: dict[Expr, Expr] = {**tiles.at}
    found[form.h] = tiles.at[form.h] * tiles.m + p
    found[form.w_axis] = tiles.at[form.w_axis] * tiles.m + o
    return found


def _ragged(a: Var, m: int) -> bool:
    """Can the last tile reach over the edge?"""
    return not isinstance(a.extent, int) or a.extent % m != 0


def _inside(form: Form, m: int) -> Expr:
    """What is read, and 0 where a ragged tile reaches over the edge: what lies there would not cancel out exactly."""
    asked: set[object] = set()
    e = form.guarded
    while isinstance(e, Prim):
        asked.add(normal(e.args[0], {}).key)
        e = e.args[2]
    made = form.guarded
    for axis in (form.h, form.w_axis):
        k = next(k for k, i in enumerate(form.x.index) if axis in variables(i))
        index, size = form.x.index[k], form.x.buffer.shape[k]
        if _ragged(axis, m) and normal(index, {}).key not in asked:
            made = prim("within", index, size, made)
    return made


def _transform(
    name: str,
    axes: tuple[Var, ...],
    t: Transform,
    n: int,
    read: Callable[[Var, Var], Expr],
    write: Callable[[Var, Var, Expr], Definition],
) -> Group:
    """T X T^t: along j for each row i, then along i for each column o."""
    lane, k = axes[-1], len(t.combine)
    split, combine = _table("split", t.split), _table("combine", t.combine)
    i, j, q, o, p = Var("i", n), Var("j", n), Var("q", n), Var("o", k), Var("p", k)
    a = dense("a", i, n, lane, space=Space.REGISTERS)
    b = dense("b", n, k, lane, space=Space.REGISTERS)
    c = dense("c", n, o, lane, space=Space.REGISTERS)
    rows = Group("rows", (i,), (a,), (
        Definition(a, (*axes, i, q), Reduce("add", (j,), split[q, j] * read(i, j)), (i, q, lane)),
        Definition(b, (*axes, i, o), Reduce("add", (q,), combine[o, q] * a[i, q, lane]), (i, o, lane)),
    ))  # fmt: skip
    columns = Group("columns", (o,), (c,), (
        Definition(c, (*axes, q, o), Reduce("add", (j,), split[q, j] * b[j, o, lane]), (q, o, lane)),
        write(p, o, Reduce("add", (q,), combine[p, q] * c[q, o, lane])),
    ))  # fmt: skip
    return Group(name, axes, (b,), (rows, columns))


def _table(name: str, matrix: Matrix) -> Buffer:
    return dense(name, len(matrix), len(matrix[0]), space=Space.TABLE, values=tuple(v for row in matrix for v in row))


def _plan(group: Group, weights: str, m: int, rows: int, ragged: bool, target: Target) -> Schedule:
    """Blocks of `rows` tile rows; transforms written out. `ragged`: the last tiles stand apart, for their bounds."""
    n, k, axes = m + 2, m, group.axes
    forward, products, backward = group.members
    assert isinstance(products, Definition)

    def transform(lane: Var, size: int, peel: bool) -> Schedule:
        lanes = target.lanes(DType.F32)
        while lanes > known(lane.extent or 1):
            lanes //= 2

        def full(*axes: tuple[str, int]) -> Schedule:
            return Schedule(tile=tuple(Tile(a, extent) for a, extent in axes), lanes=(lane.name, lanes))

        edges = tuple(Tile(a, 1, Tail.PEEL) for a in ("ty", "tx") if peel and ragged)
        return Schedule(
            tile=(Tile(lane.name, lanes, Tail.CUT), *edges),
            members=(
                Schedule(unroll=("i",), members=(full(("q", n), ("j", n)), full(("o", size), ("q", n)))),
                Schedule(unroll=("o",), members=(full(("q", n), ("j", n)), full(("p", size), ("q", n)))),
            ),
        )

    sizes = {"ty": rows, "tile": Var("tiles", None, 1, TILES)}
    block = replace(products, axes=tuple(replace(a, extent=sizes.get(a.name, a.extent)) for a in products.axes))
    plan = product(block, target, frozenset({weights}), frozenset(a for a in axes if a.name == "block"))
    assert plan is not None and isinstance(forward, Group) and isinstance(backward, Group)
    return Schedule(
        tile=(Tile(axes[-1].name, rows, Tail.CUT),),
        pitch=(("v", 16), ("m", 16)),
        parallel=axes[0].name if len(axes) == 1 or known(axes[0].extent or 1) > 1 else axes[-1].name,
        members=(
            transform(forward.axes[-1], n, False),
            replace(plan, parallel=None),
            transform(backward.axes[-1], k, True),
        ),
    )
