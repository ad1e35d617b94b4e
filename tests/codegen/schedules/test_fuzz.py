"""Random definition x random legal schedule == its meaning, exactly: the data are small integers."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Buffer, Expr, Reduce, Size, Space, Var, cast, dense, prim, select
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.runtime.abi import DType
from tests.codegen.meaning import Meaning
from tests.codegen.running import aligned, compiled, runs_dots

NUMPY = {DType.F32: "f4", DType.F64: "f8", DType.I32: "i4", DType.I64: "i8", DType.I8: "i1", DType.U8: "u1"}

TAILS = (Tail.BALANCE, Tail.CUT, Tail.PEEL)  # of a definition; a short one is for groups


def tiles(r: random.Random, axes: tuple[str, ...], most: int = 6) -> tuple[Tile, ...]:
    return tuple(Tile(a, r.randint(1, most), r.choice(TAILS)) for a in axes if r.random() < 0.6)


def schedule(r: random.Random, outputs: list[str], reductions: list[str], written: dict[str, int]) -> Schedule:
    """`written`: static extents, so that these axes may be unrolled."""
    fuse: tuple[tuple[str, tuple[str, ...]], ...] = ()
    names = [outputs[:], reductions[:]]
    for group, new in zip(names, ("p", "q"), strict=True):
        if len(group) > 1 and r.random() < 0.4:
            at = r.randrange(len(group) - 1)
            fuse += ((new, (group[at], group[at + 1])),)
            group[at : at + 2] = [new]
    outs, reds = names
    axes = outs + reds
    parallel = r.choice(outs) if r.random() < 0.5 else None
    order = [a for a in r.sample(axes, len(axes)) if a != parallel]
    lanes = (r.choice(axes), r.choice((2, 4, 8, 16))) if r.random() < 0.8 else None
    tile = tuple(t for t in tiles(r, tuple(axes)) if not (lanes and t.axis == lanes[0] and lanes[0] in reds))
    unroll = tuple(
        a
        for a in axes
        if a != parallel and written.get(a, 99) <= 4 and r.random() < 0.2 and not (lanes and a == lanes[0])
    )
    return Schedule(
        fuse=fuse,
        order=((parallel,) if parallel else ()) + tuple(order),
        tile=tile,
        unroll=unroll,
        lanes=lanes,
        partials=r.choice((1, 2, 4)),
        parallel=parallel,
    )


def blocks(r: random.Random, work: Definition, plan: Schedule) -> tuple[tuple[str, int], ...]:
    """Draw blocks of the parallel axis, of one more output axis, and of a summed axis if that is legal."""
    assert work.reduction is not None
    reductions = [a for a in plan.order if a in {"q", *(a.name for a in work.reduction.axes)}]
    outputs = [a for a in plan.order if a not in reductions]
    chosen = r.sample(outputs, r.randint(0, len(outputs)))
    if plan.parallel and plan.parallel not in chosen:
        static = {a.name for a in work.axes if isinstance(a.extent, int)}
        if static & set(chosen) and r.random() < 0.5:
            return ((next(a for a in chosen if a in static), r.randint(1, 9)),)
        chosen = [plan.parallel, *chosen] if r.random() < 0.5 else []
    chosen.sort(key=lambda a: a != plan.parallel)
    lanes_on_sum = plan.lanes and plan.lanes[0] in reductions
    if (chosen or not plan.parallel) and work.out.dtype is work.reduction.dtype and not lanes_on_sum:
        chosen += r.sample(reductions, r.randint(0, min(2, len(reductions))))
    return tuple((a, r.randint(1, 9)) for a in chosen)


def check(
    r: random.Random,
    work: Definition | Group,
    plan: Schedule,
    params: tuple[Buffer, ...],
    data: dict[str, np.ndarray],
    sizes: dict[Var, int] | None = None,
    origins: dict[str, tuple[int, ...]] | None = None,
) -> None:
    sizes = sizes or {}
    kernel = apply("k", work, plan, params, tuple(sizes))
    wanted = {n: a.copy() for n, a in data.items()}
    Meaning(wanted, sizes, origins).run(work)
    packs = {p.operand: p for p in plan.pack}
    arrays = [
        aligned(pack_array(data[b.name], packs[b.name]) if b.name in packs else data[b.name]) for b in kernel.buffers
    ]
    call = compiled(kernel, level=r.choice((None, None, 1)))
    if plan.parallel and not sizes:
        cut = r.randint(0, 3)
        call(*arrays, *sizes.values(), end=cut)
        call(*arrays, *sizes.values(), begin=cut)
    else:
        call(*arrays, *sizes.values())
    for b, a in zip(kernel.buffers, arrays, strict=True):
        if b.name not in packs:
            np.testing.assert_array_equal(a, wanted[b.name], err_msg=b.name)


def numbers(r: random.Random, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    low = 0 if dtype is DType.U8 else -3
    return np.random.default_rng(r.randint(0, 9999)).integers(low, 4, shape).astype(NUMPY[dtype])


@pytest.mark.parametrize("seed", range(48))
def test_products_compute_the_same_by_any_schedule(seed: int) -> None:
    r = random.Random(seed)
    m, n, k, l_ = r.randint(1, 20), r.randint(1, 40), r.randint(1, 9), r.randint(1, 19)
    dtype = r.choice((DType.F32, DType.F32, DType.F64, DType.I32, DType.I64, DType.I8))
    size: Size = Var("m") if r.random() < 0.4 else m
    depth: Size = Var("l") if r.random() < 0.3 else l_
    i, j, kk, ll = Var("i", size), Var("j", n), Var("k", k), Var("l_", depth)
    a, b, c = dense("a", m, k, l_, dtype=dtype), dense("b", k, n, dtype=dtype), dense("c", m, n, dtype=dtype)
    bias = dense("bias", n, dtype=dtype)
    fn = r.choice(("add", "add", "max", "min"))
    body = a[i, kk, ll] * b[kk, j] if fn == "add" else a[i, kk, ll] + b[kk, j]
    value: Expr = Reduce(fn, (kk, ll), body, bias[j] if r.random() < 0.5 else None)
    value = prim("max", value, 0) if r.random() < 0.5 else value
    work = Definition(c, (i, j), value)
    written = {"k": k, "j": n} | ({"i": m} if size == m else {}) | ({"l_": l_} if depth == l_ else {})
    plan = schedule(r, ["i", "j"], ["k", "l_"], written)
    symbols = {s: v for s, v in ((size, m), (depth, l_)) if isinstance(s, Var)}
    if symbols:  # only the outermost of fused axes may have a size known at run time
        lanes = plan.lanes if plan.lanes and plan.lanes[0] not in "pq" else None
        plan = Schedule(
            order=tuple(a for a in plan.order if a not in "pq"),
            lanes=lanes,
            tile=tuple(t for t in plan.tile if t.axis not in "pq"),
            partials=plan.partials,
        )
    elif r.random() < 0.4:
        plan = replace(plan, pack=(Pack("b", (1, 0), 1, r.choice((4, 8))),), prefetch=r.choice((None, "b")))
        plan = replace(plan, prefetch_within=r.choice((None, 0, 2)) if plan.prefetch else None)
    if not symbols:
        plan = replace(plan, blocks=blocks(r, work, plan), prefetch_epilogue=r.random() < 0.3)
    if not symbols and not {"k", "l_", "q"} & {a for a, _ in plan.blocks} and r.random() < 0.5:
        overlap = {"i", "p"} - {plan.lanes[0] if plan.lanes else ""}
        plan = replace(plan, tile=tuple(replace(t, tail=Tail.LAP) if t.axis in overlap else t for t in plan.tile))
    tiled = [t.axis for t in plan.tile if t.size in (2, 4) and t.axis in ("k", "l_", "q")]
    plan = replace(plan, row_vectors=r.choice((*tiled, None)))
    data = {
        "a": numbers(r, (m, k, l_), dtype),
        "b": numbers(r, (k, n), dtype),
        "bias": numbers(r, (n,), dtype),
        "c": numbers(r, (m, n), dtype),
    }
    check(r, work, plan, (a, b, bias, c), data, symbols)


@runs_dots
@pytest.mark.parametrize("seed", range(24))
def test_products_of_bytes(seed: int) -> None:
    r = random.Random(3000 + seed)
    m, n, k, l_ = r.randint(1, 20), r.randint(1, 40), r.randint(1, 9), r.randint(1, 5)
    i, j, kk, ll = Var("i", m), Var("j", n), Var("k", k), Var("l_", l_)
    a, b = dense("a", m, l_, k, dtype=DType.U8), dense("b", l_, k, n, dtype=DType.I8)
    bias, c = dense("bias", n, dtype=DType.I32), dense("c", m, n, dtype=DType.I32)
    body = cast(a[i, ll, kk], DType.I32) * cast(b[ll, kk, j], DType.I32)
    value: Expr = Reduce("add", (ll, kk), body, bias[j] if r.random() < 0.5 else None)
    work = Definition(c, (i, j), prim("max", value, 0) if r.random() < 0.5 else value)
    fused, width = r.random() < 0.5, r.choice((4, 8, 16))
    inner, parallel = "q" if fused else "k", r.choice((None, "i", "j"))
    order = r.sample(["i", "j", *(["q"] if fused else ["l_", "k"])], 3 if fused else 4)
    order.sort(key=lambda x: x != parallel)
    rows = Tile("i", r.randint(1, 6), r.choice(TAILS))
    columns, terms = Tile("j", width * r.randint(1, 3), Tail.CUT), Tile(inner, 4 * r.randint(1, 4), Tail.CUT)
    plan = Schedule(
        fuse=(("q", ("l_", "k")),) if fused else (),
        order=tuple(order),
        tile=(rows, columns, terms),
        lanes=("j", r.choice([x for x in (1, 2, 4, 8, 16) if x <= width])),
        dots=inner,
        prefetch_epilogue=r.random() < 0.3,
        pack=(Pack("b", (2, 0, 1), 2, width, 2 if fused else 1),),
        parallel=parallel,
    )
    shapes = {"a": (m, l_, k), "b": (l_, k, n), "bias": (n,), "c": (m, n)}
    data = {x.name: numbers(r, shapes[x.name], x.dtype) for x in (a, b, bias, c)}
    check(r, work, plan, (a, b, bias, c), data)


@pytest.mark.parametrize("seed", range(24))
def test_windows_and_gathers(seed: int) -> None:
    r = random.Random(1000 + seed)
    h, w, c = r.randint(1, 9), r.randint(1, 9), r.randint(1, 20)
    kernel, stride = r.choice((1, 2, 3)), r.choice((1, 2))
    y, x_, ch, kh, kw = Var("y", h), Var("x_", w), Var("c", c), Var("kh", kernel), Var("kw", kernel)
    rows, columns = h * stride + kernel, w * stride + kernel
    out = dense("out", h, w, c)
    kind = r.choice(("halo", "within", "gather", "where"))
    data = {"out": numbers(r, (h, w, c), DType.F32), "table": np.asarray(numbers(r, (h,), DType.U8), "i8") % rows}
    table = dense("table", h, dtype=DType.I64)
    origins: dict[str, tuple[int, ...]] = {}
    where: tuple[tuple[Expr, Size], ...] = ()
    source = dense("source", rows, columns, c)
    data["source"] = numbers(r, (rows, columns, c), DType.F32)
    row, column = y * stride + kh, x_ * stride + kw
    if kind == "halo":
        source = Buffer("source", source.shape, source.strides, origin=(columns + 1) * c)
        origins["source"] = (1, 1, 0)
        body: Expr = source[row - 1, column - 1, ch]
    elif kind == "within":
        body = prim(
            "within", row - 1, rows - 2, prim("within", column - 2, columns - 3, source[row - 1, column - 2, ch])
        )
    elif kind == "gather":
        body = source[table[y], column, ch] * prim("cast", kh + 1, dtype=DType.F32)
    else:
        body = select(prim("lt", y * 3 + kh, 5), source[row, column, ch], 1.0)
        where = ((y * 2 + x_, h + w - 2),)
    work = Definition(out, (y, x_, ch), Reduce(r.choice(("add", "max")), (kh, kw), body), where=where)
    plan = schedule(r, ["y", "x_", "c"], ["kh", "kw"], {"kh": kernel, "kw": kernel})
    check(r, work, plan, (source, table, out), data, origins=origins)


@pytest.mark.parametrize("seed", range(24))
def test_groups_compute_the_same_by_any_schedule(seed: int) -> None:
    r = random.Random(2000 + seed)
    n, rows = r.randint(1, 40), r.randint(1, 12)
    symbols: dict[Var, int] = {}
    count: Size = rows
    if r.random() < 0.3:
        count = Var("rows")
        symbols = {count: rows}
    length: Size = n
    if r.random() < 0.3:
        length = Var("n", 64)
        symbols[length] = n
    i, j = Var("i", count), Var("j", length)
    x, y = dense("x", rows, n), dense("y", rows, n)
    if symbols:
        x, y = (Buffer(b.name, b.shape, (n, 1)) for b in (x, y))
    space = r.choice((Space.REGISTERS, Space.STACK, Space.ARENA))
    e, top, total = (
        dense("e", i, length, space=r.choice((Space.STACK, Space.ARENA))),
        dense("top", i, space=space),
        dense("total", i, space=space),
    )
    work = Group(
        "rows",
        (i,),
        (e, top, total),
        (
            Definition(top, (i,), Reduce("max", (j,), x[i, j])),
            Definition(e, (i, j), x[i, j] - top[i]),
            Definition(total, (i,), Reduce("add", (j,), e[i, j]) + 1.0),
            Definition(y, (i, j), e[i, j] * total[i]),
        ),
    )
    shared = Schedule(tile=tiles(r, ("i",)), parallel="i" if r.random() < 0.5 else None)

    def member(names: list[str]) -> Schedule:
        lanes = (r.choice(names), r.choice((4, 8))) if r.random() < 0.8 else None
        order = tuple(r.sample(names, len(names)))
        tile = tuple(t for t in tiles(r, tuple(names)) if not (lanes and t.axis == lanes[0]))
        return Schedule(order=order, lanes=lanes, tile=tile, partials=r.choice((1, 2, 4)))

    pitch = (("e", 16),) if r.random() < 0.5 else ()
    plan = Schedule(
        tile=shared.tile, parallel=shared.parallel, pitch=pitch, members=tuple(member(["i", "j"]) for _ in range(4))
    )
    data = {"x": numbers(r, (rows, n), DType.F32), "y": np.zeros((rows, n), "f4")}
    temps = {"e": np.zeros((rows, n), "f4"), "top": np.zeros(rows, "f4"), "total": np.zeros(rows, "f4")}
    check(r, work, plan, (x, y), {**data, **temps}, symbols)
