"""Choices of the cost model for products, on targets that differ in their caches."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Reduce, Size, Var, as_expr, dense, prim
from aot.codegen.ir.schedule import Schedule, Tail
from aot.codegen.schedules.choose import choose, explain
from aot.codegen.schedules.request import Request, texts
from aot.codegen.schedules.rows import rows
from aot.codegen.target import Target
from aot.runtime.abi import DType

FAR = replace(Target.parse("x86-64-v3"), l2=512 << 10, l3=32 << 20, cores=2)
NEAR = replace(FAR, cpu="znver3")


def product(rows: Size, columns: int, steps: int, batch: int = 1) -> Definition:
    """y[b, i, j] = add[k](x[b, i, k] * w[b, k, j]), without b for one."""
    b, i, j, k = (Var(name, n) for name, n in zip("bijk", (batch, rows, columns, steps), strict=True))
    x, w, y = dense("x", batch, rows, steps), dense("w", batch, steps, columns), dense("y", batch, rows, columns)
    outer = (b,) if batch > 1 else ()
    place = b if batch > 1 else 0
    value = Reduce("add", (k,), x[place, i, k] * w[place, k, j])
    return Definition(y, (*outer, i, j), value, (as_expr(place, DType.I64), i, j))


def chosen(d: Definition, target: Target) -> Schedule:
    return choose(d, target, frozenset({"w"}))


def test_panels_are_no_wider_than_the_columns() -> None:
    """A group of 16 channels has panels of 16 columns: half of a panel of 32 would be padding."""
    (pack,) = chosen(product(16, 16, 16, batch=6), Target.parse("x86-64-v4")).pack
    assert pack.width == 16


def test_long_sums_are_blocked_where_the_rows_would_come_from_far() -> None:
    work = product(128, 768, 3072)
    assert dict(chosen(work, FAR).blocks)["k"] < 3072
    assert "k" not in dict(chosen(work, NEAR).blocks)


@pytest.mark.parametrize(("tokens", "wanted"), [(Var("tokens", None, 1), "keys"), (8192, "keys"), (64, None)], ids=str)
def test_data_that_lie_across_a_sum_are_prefetched_unless_a_cache_holds_them(tokens: Size, wanted: str | None) -> None:
    i, j, k = Var("i", 3), Var("j", tokens), Var("k", 64)
    x, keys, y = dense("x", 3, 64), dense("keys", 64, tokens), dense("y", 3, tokens)
    assert chosen(Definition(y, (i, j), Reduce("add", (k,), x[i, k] * keys[k, j])), NEAR).prefetch == wanted


def test_each_core_has_its_rows_where_they_are_many() -> None:
    assert chosen(product(128, 768, 768), NEAR).blocks == (("i", 64),)
    assert chosen(product(128, 768, 768), replace(NEAR, cores=1)).blocks == ()
    assert chosen(product(400, 768, 768), replace(NEAR, cores=16)).blocks == (("i", 50),)
    assert chosen(product(64, 768, 768), NEAR).blocks == ()


@pytest.mark.parametrize(
    ("columns", "steps", "cores", "panel"),
    [
        (96, 12288, 2, 48),
        (128, 9216, 2, 64),
        (128, 9216, 1, 128),
        (384, 1024, 2, 96),
        (512, 784, 2, 128),
        (128, 256, 2, 128),
        (32, 12288, 2, 32),
    ],
)
def test_cores_share_the_panels_of_one_row(columns: int, steps: int, cores: int, panel: int) -> None:
    """Each core gets the same number of panels if the weights have 256 KB or more; sharing less does not pay."""
    target = replace(Target.parse("x86-64-v4"), cores=cores)
    assert chosen(product(1, columns, steps), target).size("j").size == panel
    batch = chosen(product(1, columns, steps, batch=36), target)
    assert batch.size("j").size == min(columns, 128), "cores share the batch"


def depthwise(channels: int, side: int, taps: int = 3) -> Definition:
    """y[h, w, c] = add[i, j](x[h + i, w + j, c] * w[i, j, c])"""
    h, w, c, i, j = (Var(name, n) for name, n in zip("hwcij", (side, side, channels, taps, taps), strict=True))
    x, k = dense("x", side + taps - 1, side + taps - 1, channels), dense("w", taps, taps, channels)
    value = Reduce("add", (i, j), x[h + i, w + j, c] * k[i, j, c])
    return Definition(dense("y", side, side, channels), (h, w, c), value)


@pytest.mark.parametrize(
    ("channels", "side", "block"), [(384, 14, 64), (144, 56, 16), (32, 112, 16), (24, 112, 0), (16, 14, 0)]
)
def test_rows_of_a_block_of_channels_stay_in_the_nearest_cache(channels: int, side: int, block: int) -> None:
    """In whole lines of it, 16 channels; 32 KB of cache hold 3 rows of 114 for 16, and none of 322."""
    plan = chosen(depthwise(channels, side), replace(FAR, cores=1, l2=8 << 20))
    assert plan.blocks == ((("c", block),) if block else ())
    assert plan.parallel == "h"
    assert chosen(depthwise(64, 320), FAR).blocks == ()


@pytest.mark.parametrize(
    ("side", "cores", "rows"), [(14, 2, 7), (28, 4, 7), (28, 16, 4), (56, 3, 14), (56, 2, 28), (7, 2, 0), (14, 1, 0)]
)
def test_a_core_has_the_same_rows_of_all_channels(side: int, cores: int, rows: int) -> None:
    """Each core gets the same number of rows, four at least; channels are blocks inside of these rows."""
    plan = chosen(depthwise(384, side), replace(FAR, cores=cores, l2=8 << 20))
    assert dict(plan.blocks).get("h", 0) == rows
    assert plan.blocks[-1][0] == "c"


@pytest.mark.parametrize(
    ("l2", "cores", "rows"), [(2 << 20, 1, 14), (2 << 20, 2, 14), (1 << 20, 1, 8), (8 << 20, 1, 0)]
)
def test_blocks_of_rows_fit_the_second_cache(l2: int, cores: int, rows: int) -> None:
    """In half of it: a row of 56 pixels and 2 of padding takes 58 x 4 x 192 bytes; 16 of them 696 KB."""
    plan = chosen(depthwise(192, 56), replace(FAR, cores=cores, l2=l2))
    assert dict(plan.blocks).get("h", 0) == rows


def test_taps_of_a_panel_larger_than_the_cache_are_used_one_after_the_other() -> None:
    """A dilated convolution of 512 to 128 channels: each of two panels has 1.2 MB of weights, a tap 131 KB."""
    h, w, c, i, j, k = (Var(name, n) for name, n in zip("hwcijk", (28, 28, 128, 3, 3, 512), strict=True))
    x, kernel = replace(dense("x", 28, 28, 512), halo=0.0), dense("w", 3, 3, 512, 128)
    value = Reduce("add", (i, j, k), x[h + i * 6 - 6, w + j * 6 - 6, k] * kernel[i, j, k, c])
    target = replace(Target.parse("x86-64-v4"), l2=1 << 20, cores=2)
    plan = chosen(Definition(dense("y", 28, 28, 128), (h, w, c), value), target)
    assert (plan.blocks, plan.parallel) == ((("h", 7), ("i", 1), ("j", 1)), "h")


@pytest.mark.parametrize(
    ("rows", "steps", "panel"),
    [(16, 256, 32), (16, 128, 64), (49, 256, 64)],
)
def test_a_panel_that_few_rows_use_stays_in_the_nearest_cache(rows: int, steps: int, panel: int) -> None:
    """48 KB of it: 32 columns of 256 are 32 KB. Many rows hide where a panel comes from."""
    target = replace(Target.parse("x86-64-v4"), l1=48 << 10, l2=1 << 20, l3=32 << 20, cores=2)
    plan = chosen(product(rows, 256, steps, batch=36), target)
    assert plan.size("j").size == panel


def test_a_near_cache_has_an_end() -> None:
    assert chosen(product(16384, 768, 3072), replace(NEAR, l3=8 << 20)).prefetch == "w"
    assert chosen(product(128, 768, 3072), replace(NEAR, l3=1 << 20)).blocks != ()


def test_panels_are_read_once_in_each_product_of_a_batch() -> None:
    """256 KB of weights for 16 rows: what counts is one product's rows, not those of all."""
    plan = chosen(product(16, 256, 256, batch=36), FAR)
    assert plan.order.index("j") < plan.order.index("i")
    assert plan.prefetch == "w"


@pytest.mark.parametrize(
    ("rows", "columns", "steps", "units"),
    [
        (1, 512, 784, 3),
        (1, 512, 512, 4),
        (4, 512, 784, 5),
        (1, 1024, 1024, 0),
        (1, 256, 512, None),
        (6, 512, 784, None),
        (1, 4096, 4096, None),
    ],
)
def test_weights_that_few_rows_read_from_l3_are_fetched_as_they_are_read(
    rows: int, columns: int, steps: int, units: int | None
) -> None:
    """By calls that read more than stays in a core's cache of 1 MB; in any case where all cores' do not hold them."""
    target = replace(Target.parse("x86-64-v4"), cpu="znver5", l2=1 << 20, l3=32 << 20, cores=2)
    plan = chosen(product(rows, columns, steps), target)
    elsewhere = chosen(product(rows, columns, steps), replace(target, cpu="znver4"))
    assert elsewhere.prefetch_within is None, "it takes longer there"
    assert plan.prefetch_within == units
    assert (plan.prefetch == "w") == (units is not None)


def test_rows_are_outermost_where_all_weights_stay_in_the_cache() -> None:
    plan = chosen(product(3136, 64, 64), FAR)
    assert plan.order.index("i") < plan.order.index("j")


@pytest.mark.parametrize(("heads", "parallel"), [(2, "b"), (3, "i"), (4, "b"), (5, "b")])
def test_threads_share_rows_where_heads_are_few(heads: int, parallel: str) -> None:
    plan = choose(product(197, 197, 64, batch=heads), NEAR, frozenset())
    assert (plan.parallel, plan.order[0]) == (parallel, parallel)


def test_panels_lie_in_the_order_of_their_use() -> None:
    """The batch of the weights first, then their panels."""
    assert [p.order for p in chosen(product(16, 256, 256, batch=36), FAR).pack] == [(0, 2, 1)]


def test_a_window_without_rows_sums_several_vectors() -> None:
    c, r = Var("c", 1024), Var("r", 256)
    x, y = dense("x", 256, 1024), dense("y", 1024)
    plan = chosen(Definition(y, (c,), Reduce("max", (r,), x[r, c])), FAR)
    assert plan.lanes == ("c", 8)
    assert plan.size("c").size == 64


def test_large_windows_keep_in_registers_what_neighbours_read() -> None:
    c, h, w, kh, kw = (Var(name, n) for name, n in zip(("c", "h", "w", "kh", "kw"), (64, 28, 28, 7, 7), strict=True))
    x, k, y = dense("x", 34, 34, 64), dense("w", 64, 7, 7), dense("y", 28, 28, 64)
    work = Definition(y, (h, w, c), Reduce("add", (kh, kw), x[h + kh, w + kw, c] * k[c, kh, kw]))
    narrow, wide = chosen(work, FAR), chosen(work, replace(FAR, registers=32, lanes_bytes=64))
    assert (narrow.size("w").size, wide.size("w").size) == (7, 14)
    assert narrow.size("kw").size == wide.size("kw").size == 7


def test_rows_that_may_be_few_are_balanced() -> None:
    """If weights come from far memory, a tile of one row takes about as long as one of six."""
    m = Var("m", typical=1000)
    wide = replace(NEAR, registers=32, lanes_bytes=64)
    far, near = chosen(product(m, 768, 768), wide), chosen(product(m, 32, 64), wide)
    assert (far.prefetch, near.prefetch) == ("w", None)
    assert min(far.size("i").size, near.size("i").size) > 6
    assert (far.size("i").tail, near.size("i").tail) == (Tail.BALANCE, Tail.CUT)


def test_threads_share_an_axis_with_enough_rows() -> None:
    c, h, k = Var("c", 3), Var("h", 64), Var("k", 32)
    x, w, y = dense("x", 64, 32), dense("w", 3, 32), dense("y", 3, 64)
    d = Definition(y, (c, h), Reduce("add", (k,), x[h, k] * w[c, k]))
    plan, _ = rows(Request(d, FAR, frozenset({"w"})))
    assert (plan.parallel, plan.order) == ("h", ("h", "c"))


def test_lanes_that_are_read_by_themselves_are_few() -> None:
    sizes = {"n": 8, "h": 32, "w": 64, "kd": 3, "kh": 3, "kw": 3}
    n, h, w, kd, kh, kw = (Var(name, extent) for name, extent in sizes.items())
    x, y = dense("x", 10, 66, 130, dtype=DType.I8), dense("y", 8, 32, 64, dtype=DType.I8)
    value = Reduce("max", (kd, kh, kw), x[n + kd, h * 2 + kh, w * 2 + kw])
    plan = chosen(Definition(y, (n, h, w), value), FAR)
    assert plan.lanes == ("w", 16)
    assert plan.size("h").size * plan.size("kw").size * 16 <= 1024


def test_rows_of_both_operands_are_read_by_tiles_of_outputs() -> None:
    """y[i, j] = add[k](a[i, k] * b[j, k]) at run-time sizes: none of the outer axes would do for lanes."""
    i, j, k = (Var(name, Var(f"s{name}")) for name in "ijk")
    a, b, y = dense("a", Var("si"), Var("sk")), dense("b", Var("sj"), Var("sk")), dense("y", Var("si"), Var("sj"))
    d = Definition(y, (i, j), Reduce("add", (k,), a[i, k] * b[j, k]))
    for target, size in ((FAR, 3), (replace(FAR, registers=32, lanes_bytes=64), 4)):
        plan, _ = rows(Request(d, target, frozenset()))
        assert plan.lanes is not None and plan.lanes[0] == "k"
        assert (plan.size("i").size, plan.size("j").size) == (size, size)
        assert plan.parallel == plan.blocks[0][0]


@pytest.mark.parametrize(("rows_of_a", "rows_of_b", "parallel"), [(4096, 16, "i"), (16, 4096, "j")])
def test_threads_share_the_operand_with_more_rows(rows_of_a: int, rows_of_b: int, parallel: str) -> None:
    i, j, k = Var("i", rows_of_a), Var("j", rows_of_b), Var("k", 64)
    a, b, y = dense("a", rows_of_a, 64), dense("b", rows_of_b, 64), dense("y", rows_of_a, rows_of_b)
    plan, _ = rows(Request(Definition(y, (i, j), Reduce("add", (k,), a[i, k] * b[j, k])), FAR, frozenset()))
    assert (plan.parallel, plan.blocks[0][0]) == (parallel, parallel)


def test_rows_with_padding_stay_apart_where_run_time_tells_their_length() -> None:
    h, w = Var("h", Var("sh")), Var("w", Var("sw"))
    x, y = dense("x", Var("sh"), Var("sw")), dense("y", Var("sh"), Var("sw"))
    copied = Definition(y, (h, w), x[h, w] * 2.0)
    padded = Definition(y, (h, w), prim("within", w - 1, as_expr(Var("sw"), DType.I64), x[h, w - 1], 0.0))
    assert [len(parts) for _, parts in chosen(copied, FAR).fuse] == [2]
    above = Definition(y, (h, w), prim("within", h - 1, as_expr(Var("sh"), DType.I64), x[h - 1, w], 0.0))
    for d in (padded, above):
        assert (chosen(d, FAR).fuse, chosen(d, FAR).lanes) == ((), ("w", 8))


@pytest.mark.parametrize(
    ("cpu", "rows", "steps", "panel"),
    [
        ("x86-64", 49, 4608, 32),
        ("x86-64", 49, 3072, 48),
        ("znver4", 49, 4608, 48),
        ("x86-64", 9, 4608, 48),
    ],
)
def test_a_panel_that_is_used_again_stays_in_the_cache_with_the_next_one(
    cpu: str, rows: int, steps: int, panel: int
) -> None:
    """1.5 MB for both: 48 columns of 4608 are 0.9 MB."""
    target = replace(Target.parse("x86-64-v4"), cpu=cpu, l2=2 << 20, cores=1)
    assert chosen(product(rows, 768, steps), target).size("j").size == panel


@pytest.mark.parametrize("columns", [20, 23, 28, 31, 42, 60])
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_accumulators_of_columns_that_are_cut_fit_the_registers(columns: int, level: str) -> None:
    """28 columns are vectors of 16, 8 and 4: three for each row."""
    target = Target.parse(level)
    found = chosen(product(4096, columns, 64), target)
    assert found.lanes is not None
    lane, width = found.lanes
    rows, panel = (found.size(a).size for a in ("i", lane))
    cut = columns % panel
    vectors = max(panel // width if columns >= panel else 0, cut // width + (cut % width).bit_count())
    assert (rows + 1) * vectors <= target.registers


@pytest.mark.parametrize(("rows", "columns", "steps"), [(64, 64, 64), (1, 256, 512), (7, 1000, 33)])
def test_reasons_name_the_tile_that_is_chosen_and_what_others_would_cost(rows: int, columns: int, steps: int) -> None:
    work = product(rows, columns, steps)
    plan = chosen(work, FAR)
    shape, *reasons = explain(work, FAR, frozenset({"w"}))
    lane, width = plan.lanes or ("", 1)
    assert shape == f"y: a product: lanes {lane}:{columns}, rows i:{rows}, sums k:{steps}"
    tiles = [r for r in reasons if r.startswith(f"register tile of {rows} rows, {columns} columns: ")]
    assert tiles, reasons
    costs = [float(c) for c in re.findall(r"costs ([\d.e+]+)", tiles[-1])]
    assert costs[0] == min(costs), "the cheapest is chosen"
    assert f": {min(plan.size('i').size, 14)}x{plan.size(lane).size // width} costs" in tiles[-1]
    assert any("outside: panels take" in r for r in reasons)


def test_a_reason_that_repeats_the_last_one_is_left_out() -> None:
    assert texts((lambda: "a", lambda: "a", lambda: "b", lambda: "a")) == ("a", "b", "a")


@pytest.mark.parametrize(("heads", "tiled"), [(3, "g"), (7, "g"), (2, "h")])
def test_queries_of_heads_that_share_keys_are_a_tile_where_the_number_of_tokens_varies(heads: int, tiled: str) -> None:
    """scores[g, h, j] = add[k](q[g, h, k] * keys[k, j]) + mask[h, j]: often there is one token h."""
    tokens, past = Var("tokens", None, 1), Var("past", None, 1)
    g, h, j, k = Var("g", heads), Var("h", tokens), Var("j", past), Var("k", 64)
    q, keys, mask = dense("q", heads, tokens, 64), dense("keys", 64, past), dense("mask", tokens, past)
    value = Reduce("add", (k,), q[g, h, k] * keys[k, j]) + mask[h, j]
    schedule = choose(Definition(dense("y", heads, tokens, past), (g, h, j), value, (g, h, j)), FAR, frozenset())
    assert schedule.tile[0].axis == tiled


@pytest.mark.parametrize(
    ("columns", "steps", "unrolled"), [(96, 64, 2), (24, 64, 4), (24, 66, 0), (8, 64, 2), (96, 46, 0)]
)
def test_a_short_vector_in_a_tile_takes_more_steps_between_prefetches(columns: int, steps: int, unrolled: int) -> None:
    schedule = chosen(product(196, columns, steps), replace(Target.parse("x86-64-v4"), cores=1))
    assert {t.axis: t.size for t in schedule.tile}.get("k", 0) == unrolled
    assert schedule.prefetch_epilogue == (unrolled > 0)
