"""Sums of products of bytes: how weights lie, how nests look, what kernels compute, and what no schedule may say."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import pytest

from codegen.ir.definition import Definition
from codegen.ir.dot_widths import word
from codegen.ir.expressions import loads as loads_of
from codegen.ir.loops import Buffer, Expr, Load, Reduce, Size, Var, cast, dense
from codegen.ir.printer import kernel_text, schedule_text
from codegen.ir.schedule import Pack, Schedule, ScheduleError, Tail, Tile
from codegen.llvm.emit.kernel import emit
from codegen.llvm.host import parse_target
from codegen.llvm.object.optimize import assembly
from codegen.nest.nest import apply
from codegen.nest.pack import pack, pack_array, pack_buffer
from codegen.schedules.choose import choose
from codegen.target import Target
from runtime.abi import DType
from tests.codegen.interpreter import Interpreter, cells, filled
from tests.codegen.llvm.test_assembly import loops
from tests.codegen.running import aligned, compiled, runs_dots

NATIVE = parse_target("native")
MACHINE = NATIVE.machine
V4 = Target.parse("x86-64-v4")
SERVER = replace(V4, cpu="icelake-server", features=(*V4.features, "avx512vnni"))
V3 = Target.parse("x86-64-v3")
CLIENT = replace(V3, cpu="alderlake", features=(*V3.features, "avxvnni"))
PLAN = Schedule(
    order=("i", "j", "k"),
    tile=(Tile("i", 2), Tile("j", 16, Tail.CUT), Tile("k", 4, Tail.CUT)),
    lanes=("j", 8),
    pack=(Pack("w", (1, 0), 1, 16, 1),),
    dots="k",
)


class Kind(NamedTuple):
    """Types of data and weights, and where such products are computed."""

    x: DType
    w: DType
    target: Target


BYTES = Kind(DType.U8, DType.I8, NATIVE)
PAIRS = [Kind(DType.I16, DType.I16, t) for t in (Target.parse("x86-64-v2"), V3, NATIVE) if t.machine == MACHINE]
NUMPY: dict[DType, type[np.integer]] = {DType.U8: np.uint8, DType.I8: np.int8, DType.I16: np.int16}
all_kinds = pytest.mark.parametrize(
    "kind",
    [pytest.param(BYTES, marks=runs_dots), *PAIRS],
    ids=["bytes", *(f"i16-{8 * k.target.lanes_bytes}" for k in PAIRS)],
)


def product(
    rows: Size, terms: Size, columns: int, *, start: bool = False, kind: Kind = BYTES
) -> tuple[Definition, tuple[Buffer, ...]]:
    """y[i, j] = add[k](x[i, k] * w[k, j]), from the numbers of `b` on."""
    i, j, k = Var("i", rows), Var("j", columns), Var("k", terms)
    x, w = dense("x", rows, terms, dtype=kind.x), dense("w", terms, columns, dtype=kind.w)
    b, y = dense("b", columns, dtype=DType.I32), dense("y", rows, columns, dtype=DType.I32)
    total = Reduce("add", (k,), cast(x[i, k], DType.I32) * cast(w[k, j], DType.I32), b[j] if start else None)
    return Definition(y, (i, j), total), (x, w, b, y)


def numbers(*shape: int, dtype: type[np.integer]) -> np.ndarray:
    """All of a type, both ends often."""
    r, info = np.random.default_rng(shape), np.iinfo(dtype)
    found = r.integers(info.min, info.max + 1, shape)
    return np.where(r.random(shape) < 0.2, r.choice([info.min, info.max], shape), found).astype(dtype)


def check(rows: int, terms: int, columns: int, plan: Schedule, *, start: bool = False, kind: Kind = BYTES) -> None:
    """The compiled kernel is exact, up to sums that overflow."""
    work, params = product(rows, terms, columns, start=start, kind=kind)
    x, w = numbers(rows, terms, dtype=NUMPY[kind.x]), numbers(terms, columns, dtype=NUMPY[kind.w])
    if plan.lanes is not None:
        plan = replace(plan, lanes=(plan.lanes[0], min(plan.lanes[1], kind.target.lanes(DType.I32))))
    b, y = np.arange(columns, dtype=np.int32) * 1000 - 7, aligned(np.full((rows, columns), -1, np.int32))
    packed = pack_array(w, plan.pack[0]) if plan.pack else w
    compiled(apply("k", work, plan, params), kind.target)(aligned(x), aligned(packed), aligned(b), y)
    np.testing.assert_array_equal(y, x.astype(np.int32) @ w + (b if start else 0))


# ---- packing


@pytest.mark.parametrize(
    ("shape", "plan"),
    [
        ((8, 16), Pack("w", (1, 0), 1, 16, 1)),
        ((9, 16), Pack("w", (1, 0), 1, 16, 1)),  # a four that is not full
        ((3, 37), Pack("w", (1, 0), 1, 16, 1)),  # and a block
        ((3, 5, 20), Pack("w", (2, 0, 1), 2, 16, 1)),
        ((3, 5, 20), Pack("w", (2, 0, 1), 2, 16, 2)),  # two dimensions in fours
        ((3, 5, 20), Pack("w", (0, 2, 1), 2, 8, 1)),
        ((20, 3, 5), Pack("w", (0, 2, 1), 0, 8, 2)),
    ],
)
def test_packed_weights_are_found_where_the_packed_definition_reads(shape: tuple[int, ...], plan: Pack) -> None:
    w = numbers(*shape, dtype=np.int8)
    source, out = dense("w", *shape, dtype=DType.I8), dense("y", *shape, dtype=DType.I8)
    axes = tuple(Var(f"i{d}", n) for d, n in enumerate(shape))
    packed = pack_array(w, plan)
    assert packed.shape == pack_buffer(source, plan).shape
    assert packed.shape[-2:] == (plan.width, 4)
    assert np.count_nonzero(packed) == np.count_nonzero(w), "what is added is zero"
    run = Interpreter(w=cells(packed))
    run.work((pack(Definition(out, axes, Load(source, axes)), plan),))
    np.testing.assert_array_equal(filled(run.memory["y"], shape, DType.I8), w)


def test_four_terms_of_a_column_lie_side_by_side() -> None:
    w = np.arange(6 * 3, dtype=np.int8).reshape(6, 3)
    packed = pack_array(w, Pack("w", (1, 0), 1, 2, 1))
    assert packed.shape == (2, 2, 2, 4)
    assert packed[0, 0].tolist() == [w[:4, 0].tolist(), w[:4, 1].tolist()]
    assert packed[1, 1].tolist() == [[w[4, 2], w[5, 2], 0, 0], [0, 0, 0, 0]]


# ---- nests


def test_product_prints() -> None:
    work, params = product(4, 11, 16)
    assert schedule_text(PLAN).endswith("pack[w.1:16(1,0) words of 1] dots=k")
    x, w, _, y = params
    assert kernel_text(apply("product", work, PLAN, (x, w, y))) == dedent("""\
        kernel product(x: u8[4, 11], w: i8[1, 3, 16, 4], y: i32[4, 16])
          for i.o in 2:
            alloc acc: i32[2, 16] @registers
            unrolled i.t in 2:
              vector j.t in 16 by 8:
                acc[i.t, j.t] = 0
            for k.o in 2:
              let k = k.o * 4
              unrolled i.t in 2:
                let i = i.o * 2 + i.t
                vector j.t in 16 by 8:
                  let j = j.t
                  acc[i.t, j.t] += dot(x[i, k], w[j // 16, k // 4, j % 16, k % 4], 4)
            let k = 8
            unrolled i.t in 2:
              let i = i.o * 2 + i.t
              vector j.t in 16 by 8:
                let j = j.t
                acc[i.t, j.t] += dot(x[i, k], w[j // 16, k // 4, j % 16, k % 4], 3)
            unrolled i.t in 2:
              let i = i.o * 2 + i.t
              vector j.t in 16 by 8:
                let j = j.t
                y[i, j] = acc[i.t, j.t]
        """)


@pytest.mark.parametrize("terms", [1, 3, 4, 6, 11])
def test_nests_mean_the_same(terms: int) -> None:
    """Without a code generator, on every machine."""
    plan = replace(
        PLAN,
        tile=(Tile("i", 2), Tile("j", 4, Tail.CUT), Tile("k", 8, Tail.CUT)),
        lanes=("j", 4),
        pack=(Pack("w", (1, 0), 1, 4, 1),),
    )
    work, params = product(3, terms, 6)
    x, w = numbers(3, terms, dtype=np.uint8), numbers(terms, 6, dtype=np.int8)
    run = Interpreter(x=cells(x), w=cells(pack_array(w, plan.pack[0])))
    run.run(apply("k", work, plan, params).body)
    np.testing.assert_array_equal(filled(run.memory["y"], (3, 6), DType.I32), x.astype(np.int32) @ w)


# ---- kernels


@all_kinds
@pytest.mark.parametrize("terms", [*range(1, 10), 16, 27, 64])
@pytest.mark.parametrize("depth", [4, 16])
def test_sums_of_any_length(terms: int, depth: int, kind: Kind) -> None:
    plan = replace(PLAN, tile=(*PLAN.tile[:2], Tile("k", depth, Tail.CUT)))
    check(5, terms, 24, plan, kind=kind)
    check(5, terms, 24, plan, start=True, kind=kind)


@all_kinds
@pytest.mark.parametrize("columns", range(1, 41))
def test_any_number_of_columns(columns: int, kind: Kind) -> None:
    check(3, 7, columns, PLAN, kind=kind)


@all_kinds
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("rows", [1, 2, 15])
def test_vectors_of_any_length(rows: int, lanes: int, kind: Kind) -> None:
    check(rows, 18, 39, replace(PLAN, tile=(Tile("i", 4), *PLAN.tile[1:]), lanes=("j", lanes)), kind=kind)


@runs_dots
def test_sums_of_the_largest_numbers_do_not_saturate() -> None:
    work, params = product(1, 64, 16)
    y = aligned(np.zeros((1, 16), np.int32))
    x, w = np.full((1, 64), 255, np.uint8), np.full((64, 16), -128, np.int8)
    call = compiled(apply("k", work, PLAN, params))
    call(aligned(x), aligned(pack_array(w, PLAN.pack[0])), aligned(np.zeros(16, np.int32)), y)
    assert y.tolist() == [[-64 * 255 * 128] * 16]


@runs_dots
@pytest.mark.parametrize(("c", "taps"), [(1, 3), (3, 3), (5, 2), (8, 1)])
def test_windows_whose_innermost_sums_are_one(c: int, taps: int) -> None:
    """y[h, j] = add[t, c](x[h + t, c] * w[t, c, j]): taps and channels of the data lie side by side."""
    h, j, t, k = Var("h", 9), Var("j", 20), Var("t", taps), Var("c", c)
    x, w = dense("x", 8 + taps, c, dtype=DType.U8), dense("w", taps, c, 20, dtype=DType.I8)
    y = dense("y", 9, 20, dtype=DType.I32)
    total = Reduce("add", (t, k), cast(x[h + t, k], DType.I32) * cast(w[t, k, j], DType.I32))
    plan = replace(
        PLAN,
        order=("h", "j", "q"),
        fuse=(("q", ("t", "c")),),
        pack=(Pack("w", (2, 0, 1), 2, 16, 2),),
        tile=(Tile("h", 4), Tile("j", 16, Tail.CUT), Tile("q", 16, Tail.CUT)),
        dots="q",
    )
    data, weights = numbers(8 + taps, c, dtype=np.uint8), numbers(taps, c, 20, dtype=np.int8)
    found = aligned(np.zeros((9, 20), np.int32))
    compiled(apply("k", Definition(y, (h, j), total), plan, (x, w, y)))(
        aligned(data), aligned(pack_array(weights, plan.pack[0])), found
    )
    windows = np.stack([data[n : n + taps].ravel() for n in range(9)]).astype(np.int32)
    np.testing.assert_array_equal(found, windows @ weights.reshape(-1, 20))


def window(taps: int, stride: int, channels: int, lanes: int) -> tuple[Definition, Schedule]:
    """y[h, v, c] = add[k, t](x[h + k, stride v + t, c] * w[c, k, t]) over four rows of five columns."""
    h, v, c, k, t = Var("h", 4), Var("v", 5), Var("c", channels), Var("k", taps), Var("t", 3)
    x = dense("x", 3 + taps, 4 * stride + 3, channels, dtype=DType.U8)
    w, y = dense("w", channels, taps, 3, dtype=DType.I8), dense("y", 4, 5, channels, dtype=DType.I32)
    total = Reduce("add", (k, t), cast(x[h + k, v * stride + t, c], DType.I32) * cast(w[c, k, t], DType.I32))
    plan = Schedule(
        order=("h", "v", "c", "k", "t"),
        tile=(Tile("v", 3), Tile("c", lanes, Tail.CUT), Tile("k", 4, Tail.CUT)),
        unroll=("t",),
        lanes=("c", lanes),
        pack=(Pack("w", (0, 2, 1), 0, lanes, 1),),
        dots="k",
    )
    return Definition(y, (h, v, c), total), plan


def windowed(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), w.shape[1:], (0, 1))[:, ::stride]
    return np.einsum("hvckt,ckt->hvc", windows, w.astype(np.int32))


@pytest.mark.parametrize("taps", [1, 3, 4, 5])
def test_windows_over_channels_mean_the_same(taps: int) -> None:
    work, plan = window(taps, 2, 6, 4)
    params = (*(x.buffer for x in loads_of(work.value)), work.out)
    x, w = numbers(3 + taps, 11, 6, dtype=np.uint8), numbers(6, taps, 3, dtype=np.int8)
    run = Interpreter(x=cells(x), w=cells(pack_array(w, plan.pack[0])))
    run.run(apply("k", work, plan, params).body)
    np.testing.assert_array_equal(filled(run.memory["y"], (4, 5, 6), DType.I32), windowed(x, w, 2))


@runs_dots
@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
@pytest.mark.parametrize(("taps", "stride"), [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1), (8, 1)])
def test_windows_over_channels(taps: int, stride: int, lanes: int) -> None:
    """Words of data are made of rows, and shared by the columns of a tile."""
    work, plan = window(taps, stride, 21, lanes)
    params = (*(x.buffer for x in loads_of(work.value)), work.out)
    x, w = numbers(3 + taps, 4 * stride + 3, 21, dtype=np.uint8), numbers(21, taps, 3, dtype=np.int8)
    found = aligned(np.zeros((4, 5, 21), np.int32))
    compiled(apply("k", work, plan, params))(aligned(x), aligned(pack_array(w, plan.pack[0])), found)
    np.testing.assert_array_equal(found, windowed(x, w, stride))


@all_kinds
@pytest.mark.parametrize(
    ("rows", "terms", "columns"), [(1, 64, 64), (3, 27, 16), (50, 147, 40), (7, 9, 17), (33, 8, 4)]
)
def test_chosen_schedules(rows: int, terms: int, columns: int, kind: Kind) -> None:
    work, _ = product(rows, terms, columns, kind=kind)
    target = kind.target if kind is BYTES else replace(kind.target, features=V3.features)
    plan = choose(work, target, frozenset({"w"}))
    assert plan.dots == "k"
    check(rows, terms, columns, plan, kind=kind)


# ---- targets


@pytest.mark.parametrize(("name", "dots"), [("x86-64-v2", 2), ("x86-64-v3", 2), ("x86-64-v4", 2), ("aarch64", 0)])
def test_levels_promise_pairs(name: str, dots: int) -> None:
    target = parse_target(name)
    assert target.dots == dots
    kind = Kind(DType.I16, DType.I16, target)
    plan = choose(product(50, 64, 64, kind=kind)[0], target, frozenset({"w"}))
    assert plan.dots == ("k" if dots else None)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_bytes_are_no_pairs(name: str) -> None:
    """A sum of bytes, as a network may have it, has no instruction where there are pairs only."""
    assert choose(product(50, 64, 64)[0], parse_target(name), frozenset({"w"})).dots is None


def test_features_that_bring_dots_of_bytes() -> None:
    assert SERVER.dots == CLIENT.dots == 4
    assert replace(V3, features=(*V3.features, "avx512vnni")).dots == 2, "of 512 bits only"


INSTRUCTIONS = [
    (Kind(DType.U8, DType.I8, SERVER), "vpdpbusd", 14, 16, 4),
    (Kind(DType.U8, DType.I8, CLIENT), "vpdpbusd", 6, 8, 4),
    (Kind(DType.I16, DType.I16, V4), "vpmaddwd", 14, 16, 1),
    (Kind(DType.I16, DType.I16, V3), "vpmaddwd", 6, 8, 1),
]


@pytest.mark.parametrize(
    ("kind", "instruction", "rows", "lanes", "words"), INSTRUCTIONS, ids=["avx512", "avx", "avx512-i16", "avx-i16"]
)
def test_a_tile_stays_in_registers(kind: Kind, instruction: str, rows: int, lanes: int, words: int) -> None:
    target, terms = kind.target, words * word(kind.w)
    tiles = (Tile("i", rows), Tile("j", 2 * lanes, Tail.CUT), Tile("k", terms, Tail.CUT))
    plan = replace(PLAN, tile=tiles, lanes=("j", lanes), pack=(Pack("w", (1, 0), 1, 2 * lanes, 1),))
    work, (x, w, _, y) = product(rows * 8, 256, 128, kind=kind)
    function = emit(apply("product", work, plan, (x, w, y)), target=target)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    found = [(sum(instruction in line for line in loop), loop) for loop in loops(assembly(text, target, None))]
    count, loop = max(found, key=lambda x: x[0])
    assert count == rows * 2 * words
    assert [line for line in loop if re.search(r"\(%rsp", line)] == []


def test_halved_products_stay_in_registers() -> None:
    """Four rows of two vectors: of weights of both halves, sums of data and weights are multiplied."""
    i, j, k = Var("i", 32), Var("j", 128), Var("k", 128)
    x, w, y = (
        dense("x", 32, 256, dtype=DType.I16),
        dense("w", 256, 128, dtype=DType.I16),
        dense("y", 32, 128, dtype=DType.I32),
    )
    one, other = x[i, k] + w[k + 128, j], x[i, k + 128] + w[k, j]
    work = Definition(y, (i, j), Reduce("add", (k,), cast(one, DType.I32) * cast(other, DType.I32)))
    plan = choose(work, V3, frozenset({"w"}))
    assert schedule_text(plan).startswith(
        "order[j i k] tile[i:4 j:16/cut k:2/cut] lanes[j:8] pack[w.1:16(1,0) words of 1] dots=k"
    )
    kernel = apply("product", work, plan, (x, w, y))
    assert "dot(x[i, k] + w[j // 16, (k + 128) // 2, j % 16, (k + 128) % 2], x[i, k + 128] + w[j //" in kernel_text(
        kernel
    )
    function = emit(kernel, target=V3)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    found = [
        [sum(op in line for line in loop) for op in ("pmaddwd", "paddw", "paddd", "(%rsp")]
        for loop in loops(assembly(text, V3, None))
    ]
    assert max(found) == [8, 16, 8, 0]


# ---- what does not fit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pack": (Pack("w", (1, 0), 1, 16, 2),)}, "y: pack of 'w' has 1 dimensions in its blocks, got 2"),
        ({"pack": (Pack("w", (1, 0), 1, 16, -1),)}, "y: pack of 'w' has 1 dimensions in its blocks, got -1"),
        ({"pack": (Pack("w", (0, 1), 1, 16, 1),)}, "y: pack of 'w' has 0 dimensions in its blocks, got 1"),
        ({"pack": (Pack("w", (1, 0), 1, 16),)}, "y: dots are sums of u8"),  # not in fours
        ({"pack": ()}, "y: dots are sums of u8"),
        ({"lanes": None}, "y: dots are sums of u8"),
        ({"dots": "j"}, "y: dots are sums of u8"),
        ({"dots": "q"}, "y: dots are sums of u8"),
    ],
)
def test_illegal_schedules(change: dict[str, Any], message: str) -> None:
    work, params = product(4, 11, 16)
    with pytest.raises(ScheduleError, match=re.escape(message)):
        apply("k", work, replace(PLAN, **change), params)


@pytest.mark.parametrize(
    "change",
    [
        {"tile": (*PLAN.tile[:2], Tile("k", 6, Tail.CUT))},  # 6 + 5
        {"tile": (*PLAN.tile[:2], Tile("k", 8, Tail.BALANCE))},
        {"blocks": (("k", 6),)},
        {"tile": PLAN.tile[:2]},  # one by one
        {"lanes": ("k", 8)},
        {"lanes": ("i", 2)},
        {"tile": (Tile("i", 2), Tile("j", 12, Tail.CUT), PLAN.tile[2])},  # the second begins within a panel
        {"tile": (Tile("i", 2), Tile("j", 16, Tail.BALANCE), PLAN.tile[2])},
    ],
    ids=[
        "tile of six",
        "balanced tile",
        "block of six",
        "no tile",
        "lanes on the sum",
        "lanes on rows",
        "vectors across panels",
        "balanced panels",
    ],
)
def test_fours_and_panels_are_not_cut(change: dict[str, Any]) -> None:
    work, params = product(4, 11, 40)
    with pytest.raises(ScheduleError, match="dots"):
        apply("k", work, replace(PLAN, **change), params)


def test_vectors_longer_than_the_instruction() -> None:
    """Refused: there is no such function to call."""
    plan = replace(
        PLAN,
        lanes=("j", 32),
        tile=(PLAN.tile[0], Tile("j", 32, Tail.CUT), PLAN.tile[2]),
        pack=(Pack("w", (1, 0), 1, 32, 1),),
    )
    work, params = product(4, 11, 64)
    with pytest.raises(ScheduleError, match="y: dots are sums of u8"):
        apply("k", work, plan, params)


@pytest.mark.parametrize("case", ["types", "order", "steps", "maximum", "size"])
def test_illegal_sums(case: str) -> None:
    i, j, k = Var("i", 4), Var("j", 16), Var("k", Var("n") if case == "size" else 12)
    x, w = dense("x", 4, 24, dtype=DType.I8 if case == "types" else DType.U8), dense("w", 12, 16, dtype=DType.I8)
    body: Expr = cast(x[i, k * 2 if case == "steps" else k], DType.I32) * cast(w[k, j], DType.I32)
    total = Reduce("max" if case == "maximum" else "add", (k,), body)
    if case == "order":  # the data's rows are what is summed
        x = dense("x", 12, 4, dtype=DType.U8)
        total = Reduce("add", (k,), cast(x[k, i], DType.I32) * cast(w[k, j], DType.I32))
    work = Definition(dense("y", 4, 16, dtype=DType.I32), (i, j), total)
    with pytest.raises(ScheduleError, match="y: dots are sums of u8"):
        apply("k", work, PLAN, (x, w, work.out))
