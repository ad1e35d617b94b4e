"""Products of bf16 numbers in one order on all targets, and in tile registers: the bits of a NumPy model of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Alloc, Buffer, Expr, For, Prefetch, Reduce, Size, Stmt, Var, cast, dense, prim
from aot.codegen.ir.numbers.bf16_chains import (
    MAX_BLOCK_TERMS,
    MIN_BLOCK_TERMS,
    block_terms,
    is_contiguous,
    padded_terms,
)
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs, tile_registers
from tests.codegen.running import Array, aligned, compiled, number

BF16 = ml_dtypes.bfloat16
W = frozenset({"w"})
TILES = replace(Target.parse("x86-64-v4-amx"), keeps_sum_order=True)


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


TARGETS = [
    pytest.param(t, marks=pytest.mark.skipif(not runs(t), reason="this machine lacks its instructions"), id=name)
    for name in ("x86-64-v3", "x86-64-v4", "x86-64-v4-amx", "aarch64")
    for t in (replace(Target.parse(name), keeps_sum_order=True),)
]
on_targets = pytest.mark.parametrize("target", TARGETS)


def fused(total: Array, product: Array) -> Array:
    """A multiply-add of f32: the product of two bf16 numbers is exact in f64, and the sum rounds once."""
    return (total.astype(np.longdouble) + product.astype(np.longdouble)).astype(np.float32)


def chain_sum(x: Array, w: Array) -> Array:
    """The sum of x[i, k] * w[k, j] over k in the order of chains, for numbers far from the denormal ones."""
    terms = x.shape[1]
    size = block_terms(terms)
    total = np.zeros((len(x), w.shape[1]), np.float32)
    wide, columns = x.astype(np.float64), w.astype(np.float64)
    for block in range(0, terms, size):
        parts = [np.zeros_like(total), np.zeros_like(total)]
        for k in range(block, block + size):
            parts[k % 2] = fused(parts[k % 2], wide[:, k, None] * columns[k])
        total = total + (parts[0] + parts[1])
    return total


def numbers(*shape: int) -> Array:
    r = np.random.default_rng(shape)
    return (r.standard_normal(shape) * 10.0 ** r.integers(-3, 4, shape)).astype(BF16)


def product(rows: Size, terms: int, columns: int, out: DType = DType.F32) -> tuple[Definition, tuple[Buffer, ...]]:
    """y[i, j] = max(chains[k](x[i, k] * w[k, j]) + b[j], 0)."""
    i, j, k = Var("i", rows), Var("j", columns), Var("k", terms)
    x, w = dense("x", rows, terms, dtype=DType.BF16), dense("w", terms, columns, dtype=DType.BF16)
    b, y = dense("b", columns), dense("y", rows, columns, dtype=out)
    return Definition(y, (i, j), prim("max", Reduce(CHAINS, (k,), x[i, k] * w[k, j]) + b[j], 0.0)), (x, w, b, y)


@pytest.mark.parametrize(
    ("terms", "block"),
    [(32, 32), (64, 32), (48, 24), (80, 20), (40, 20), (16, 16), (24, 24), (96, 32), (8, 0), (30, 30), (34, 0), (0, 0)],
)
def test_blocks_are_equal_and_even(terms: int, block: int) -> None:
    assert block_terms(terms) == block
    assert block == 0 or (MIN_BLOCK_TERMS <= block <= MAX_BLOCK_TERMS and terms % block == 0 and block % 2 == 0)


@pytest.mark.parametrize(
    ("terms", "filled"),
    [(32, 32), (80, 80), (15, 0), (0, 0), (17, 18), (37, 40), (50, 52), (77, 78), (197, 210), (257, 270)],
)
def test_zeros_fill_the_last_of_as_few_blocks_as_there_can_be(terms: int, filled: int) -> None:
    assert padded_terms(terms) == filled
    if filled > terms:
        assert filled // block_terms(filled) == -(-terms // MAX_BLOCK_TERMS)


@on_targets
def test_terms_behind_a_row_are_zero_whatever_lies_there(target: Target) -> None:
    """Guards that no halo replaced: the next rows hold infinity where the last word and block go on."""
    rows, terms, columns = 6, 37, 16
    i, j, k = Var("i", rows), Var("j", columns), Var("k", padded_terms(terms))
    x, w = dense("x", rows, terms, dtype=DType.BF16), dense("w", terms + 3, columns, dtype=DType.BF16)
    y = dense("y", rows, columns)
    guarded = prim("within", k, terms, x[i, k], 0.0) * prim("within", k, terms, w[k, j], 0.0)
    work = Definition(y, (i, j), Reduce(CHAINS, (k,), guarded))
    left, right = numbers(rows, terms), numbers(terms + 3, columns)
    left[1::2, :3], right[terms:] = np.inf, np.nan  # a row of finite numbers reads before one with infinities
    out = aligned(np.zeros((rows, columns), np.float32))
    compiled(apply("k", work, choose(work, target, frozenset()), (x, w, y)), target)(aligned(left), aligned(right), out)
    finite, below = np.pad(left[::2], ((0, 0), (0, 3))), np.pad(right[:terms], ((0, 3), (0, 0)))
    np.testing.assert_array_equal(out[::2], chain_sum(finite, below))
    assert not np.isfinite(out[1::2]).any()


@on_targets
@pytest.mark.parametrize(
    ("rows", "terms", "columns", "out"),
    [
        (5, 32, 16, DType.F32),
        (33, 48, 40, DType.BF16),
        (33, 48, 40, DType.F32),
        (64, 64, 32, DType.BF16),
        (16, 80, 17, DType.F32),
        (7, 16, 100, DType.BF16),
        (50, 320, 48, DType.F32),
        (33, 48, 12, DType.BF16),
        (20, 32, 8, DType.F32),
    ],
)
def test_all_targets_compute_the_same_bits(target: Target, rows: int, terms: int, columns: int, out: DType) -> None:
    work, params = product(rows, terms, columns, out)
    plan = choose(work, target, W)
    assert (plan.matrix is not None) == target.abilities.tiles
    kernel = apply("k", work, plan, params)
    x, w, bias = numbers(rows, terms), numbers(terms, columns), np.arange(columns, dtype=np.float32)
    y = aligned(np.zeros((rows, columns), BF16 if out is DType.BF16 else np.float32))
    packed = pack_array(w.view(np.uint16), plan.pack[0])
    compiled(kernel, target)(aligned(x), aligned(packed), aligned(bias), y)
    expected = np.maximum(chain_sum(x, w) + bias, 0).astype(y.dtype)
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))


@on_targets
@pytest.mark.parametrize("rows", [1, 15, 32, 70])
def test_dynamic_rows(target: Target, rows: int) -> None:
    n = Var("n", 1 << 20)
    work, params = product(n, 32, 24)
    plan = choose(work, target, W)
    x, w, bias = numbers(rows, 32), numbers(32, 24), np.zeros(24, np.float32)
    y = aligned(np.full((rows, 24), -1, np.float32))
    packed = pack_array(w.view(np.uint16), plan.pack[0])
    compiled(apply("k", work, plan, params, (n,)), target)(aligned(x), aligned(packed), aligned(bias), y, rows)
    np.testing.assert_array_equal(y, np.maximum(chain_sum(x, w), 0))


@on_targets
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_pass_over_padding(target: Target, stride: int) -> None:
    """A convolution of 3x3 whose rows above and below are asked for; a halo lies left and right."""
    size, channels, columns = 9, 32, 16
    place = (size - 1) // stride + 1
    h, v, c = Var("h", place), Var("v", place), Var("c", columns)
    kh, kw, ic = Var("kh", 3), Var("kw", 3), Var("ic", channels)
    x = replace(dense("x", size, size + 2, channels, dtype=DType.BF16), halo=0.0)
    w = dense("w", 3, 3, channels, columns, dtype=DType.BF16)
    y = dense("y", place, place, columns)
    row = h * stride + kh - 1
    term: Expr = prim("within", row, size, x[row, v * stride + kw, ic] * w[kh, kw, ic, c])
    work = Definition(y, (h, v, c), Reduce(CHAINS, (kh, kw, ic), term))
    plan = choose(work, target, W)
    assert (plan.matrix is not None) == target.abilities.tiles
    picture, filters = numbers(size, size + 2, channels), numbers(3, 3, channels, columns)
    out = aligned(np.zeros((place, place, columns), np.float32))
    packed = pack_array(filters.view(np.uint16), plan.pack[0])
    compiled(apply("k", work, plan, (x, w, y)), target)(aligned(picture), aligned(packed), out)
    expected = np.zeros_like(out)
    wide = np.pad(picture, ((1, 1), (0, 0), (0, 0)))
    for a in range(3):
        for b in range(3):
            last = stride * (place - 1) + 1
            part = wide[a : a + last : stride, b : b + last : stride].reshape(-1, channels)
            expected += chain_sum(part, filters[a, b]).reshape(expected.shape)
    np.testing.assert_array_equal(out, expected)


@on_targets
@pytest.mark.parametrize("size", [5, 7, 16])
def test_two_lines_of_a_low_picture_fill_both_tiles(target: Target, size: int) -> None:
    """A convolution of 3x3 with a halo all around; an odd number of lines computes one of them twice."""
    channels, columns = 32, 48
    h, v, c = Var("h", size), Var("v", size), Var("c", columns)
    kh, kw, ic = Var("kh", 3), Var("kw", 3), Var("ic", channels)
    x = dense("x", size + 2, size + 2, channels, dtype=DType.BF16)
    w, y = dense("w", 3, 3, channels, columns, dtype=DType.BF16), dense("y", size, size, columns, dtype=DType.BF16)
    total = Reduce(CHAINS, (kh, kw, ic), x[h + kh, v + kw, ic] * w[kh, kw, ic, c])
    work = Definition(y, (h, v, c), prim("max", total, 0.0))
    plan = choose(work, target, W)
    assert (Tile("h", 2, Tail.LAP) in plan.tile) == target.abilities.tiles
    picture, filters = numbers(size + 2, size + 2, channels), numbers(3, 3, channels, columns)
    out = aligned(np.zeros((size, size, columns), BF16))
    packed = pack_array(filters.view(np.uint16), plan.pack[0])
    compiled(apply("k", work, plan, (x, w, y)), target)(aligned(picture), aligned(packed), out)
    expected = np.zeros(out.shape, np.float32)
    for a in range(3):
        for b in range(3):
            part = picture[a : a + size, b : b + size].reshape(-1, channels)
            expected += chain_sum(part, filters[a, b]).reshape(expected.shape)
    np.testing.assert_array_equal(out.view(np.uint16), np.maximum(expected, 0).astype(BF16).view(np.uint16))


@on_targets
@pytest.mark.parametrize(
    ("heads", "rows", "columns", "terms"), [(2, 40, 24, 48), (1, 7, 17, 48), (3, 64, 64, 48), (2, 40, 40, 1024)]
)
def test_products_of_data(target: Target, heads: int, rows: int, columns: int, terms: int) -> None:
    """Columns of data are arranged in words; results lie along rows or columns."""
    b, i, j, k = Var("b", heads), Var("i", rows), Var("j", columns), Var("k", terms)
    x, w = dense("x", heads, rows, terms, dtype=DType.BF16), dense("w", heads, terms, columns, dtype=DType.BF16)
    left, right = numbers(heads, rows, terms), numbers(heads, terms, columns)
    expected = np.stack([chain_sum(p, q) for p, q in zip(left, right, strict=True)])
    for across in (False, True):
        y = dense("y", heads, columns, rows) if across else dense("y", heads, rows, columns)
        total = Reduce(CHAINS, (k,), x[b, i, k] * w[b, k, j])
        work = Definition(y, (b, i, j), total, (b, j, i) if across else (b, i, j))
        plan = choose(work, target, frozenset())
        assert (plan.matrix is not None) == target.abilities.tiles
        out = aligned(np.zeros(tuple(map(int, y.shape)), np.float32))  # type: ignore[arg-type]
        compiled(apply("k", work, plan, (x, w, y)), target)(aligned(left), aligned(right), out)
        np.testing.assert_array_equal(out, expected.swapaxes(1, 2) if across else expected)


def byte_product(rows: int, terms: int, columns: int, start: bool = False) -> tuple[Definition, tuple[Buffer, ...]]:
    i, j, k = Var("i", rows), Var("j", columns), Var("k", terms)
    x, w = dense("x", rows, terms, dtype=DType.U8), dense("w", terms, columns, dtype=DType.I8)
    b, y = dense("b", columns, dtype=DType.I32), dense("y", rows, columns, dtype=DType.I32)
    total = Reduce("add", (k,), cast(x[i, k], DType.I32) * cast(w[k, j], DType.I32), b[j] if start else None)
    return Definition(y, (i, j), prim("max", total, -1000)), (x, w, b, y)


@pytest.mark.skipif(not runs(TILES), reason="this machine has no AVX-512")
@pytest.mark.parametrize(("rows", "terms", "columns"), [(4, 64, 16), (49, 96, 40), (32, 36, 17), (100, 640, 64)])
def test_sums_of_bytes_are_exact(rows: int, terms: int, columns: int) -> None:
    work, params = byte_product(rows, terms, columns)
    plan = choose(work, TILES, W)
    assert plan.matrix == "i"
    r = np.random.default_rng(rows)
    x, w = r.integers(0, 256, (rows, terms), np.uint8), r.integers(-128, 128, (terms, columns), np.int8)
    y = aligned(np.zeros((rows, columns), np.int32))
    bias = aligned(np.zeros(columns, np.int32))
    compiled(apply("k", work, plan, params), TILES)(aligned(x), aligned(pack_array(w, plan.pack[0])), bias, y)
    np.testing.assert_array_equal(y, np.maximum(x.astype(np.int32) @ w.astype(np.int32), -1000))


def byte_window(channels: int, stride: int, columns: int) -> tuple[Definition, tuple[Buffer, ...]]:
    """Return 9x9 outputs of 3x3 windows."""
    h, v, c, kh, kw, ic = (
        Var(n, m) for n, m in zip("h v c kh kw ic".split(), (9, 9, columns, 3, 3, channels), strict=True)
    )
    x = dense("x", 9 * stride + 2, 9 * stride + 2, channels, dtype=DType.U8)
    w, y = dense("w", 3, 3, channels, columns, dtype=DType.I8), dense("y", 9, 9, columns, dtype=DType.I32)
    factors = cast(x[h * stride + kh, v * stride + kw, ic], DType.I32) * cast(w[kh, kw, ic, c], DType.I32)
    return Definition(y, (h, v, c), Reduce("add", (kh, kw, ic), factors)), (x, w, y)


WINDOWS = [(16, 1, 24, 48), (16, 2, 16, 48), (20, 1, 40, 60), (32, 1, 32, 48), (64, 1, 32, 64)]


@pytest.mark.parametrize(("channels", "stride", "columns", "terms"), WINDOWS)
def test_blocks_of_bytes_run_across_columns_of_a_window(channels: int, stride: int, columns: int, terms: int) -> None:
    work, _ = byte_window(channels, stride, columns)
    plan = choose(work, TILES, W)
    assert plan.matrix == "v"
    assert plan.fuse == ((("kc", ("kw", "ic")),) if terms != channels else ())
    assert Tile("kc" if plan.fuse else "ic", terms, Tail.CUT) in plan.tile


@pytest.mark.skipif(not runs(TILES), reason="this machine has no AVX-512")
@pytest.mark.parametrize(("channels", "stride", "columns", "terms"), WINDOWS)
def test_windows_of_bytes_are_exact(channels: int, stride: int, columns: int, terms: int) -> None:
    work, params = byte_window(channels, stride, columns)
    plan = choose(work, TILES, W)
    r, side = np.random.default_rng(terms), 9 * stride + 2
    x = r.integers(0, 256, (side, side, channels), np.uint8)
    w = r.integers(-128, 128, (3, 3, channels, columns), np.int8)
    y = aligned(np.zeros((9, 9, columns), np.int32))
    compiled(apply("k", work, plan, params), TILES)(aligned(x), aligned(pack_array(w, plan.pack[0])), y)
    parts = [(x[a:, b:][: 9 * stride : stride, : 9 * stride : stride], w[a, b]) for a in range(3) for b in range(3)]
    np.testing.assert_array_equal(y, sum(p.astype(np.int32) @ q.astype(np.int32) for p, q in parts))


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "start"),
    [(3, 64, 16, False), (8, 64, 8, False), (8, 68, 16, False), (8, 64, 16, True)],
)
def test_small_sums_of_bytes_stay_in_vectors(rows: int, terms: int, columns: int, start: bool) -> None:
    work, _ = byte_product(rows, terms, columns, start)
    assert choose(work, TILES, W).matrix is None


def test_heads_are_read_in_aligned_runs() -> None:
    k = Var("k", 64)
    x = dense("x", 4, 5, 16, dtype=DType.BF16)
    assert is_contiguous(x[k // 16, 2, k % 16], k, 16)
    assert not is_contiguous(x[k // 16, 2, k % 16], k, 32)


def test_the_nest_of_tile_registers() -> None:
    work, params = product(64, 64, 32)
    text = kernel_text(apply("k", work, choose(work, TILES, W), params))
    lines = [line.strip() for line in text.splitlines()]
    assert lines[1] == "tiles 16x64 16x64 16x64 16x64 16x64 16x64 16x64 16x64"
    assert [line for line in lines if line.startswith("tile 4")] == ["tile 4 = x[i.o * 32, k.o * 32] by 64"]
    assert "tile 3 += tile 5 * tile 7 of bf16" in lines
    assert lines[-1] == "tiles released"


def test_tiles_of_equal_height_are_configured_once() -> None:
    work, params = product(49, 32, 64)
    text = kernel_text(apply("k", work, choose(work, TILES, W), params))
    configured = [line.strip() for line in text.splitlines() if line.strip().startswith("tiles ")]
    assert [line.split(" ")[1] for line in configured] == ["13x64", "released"]
    assert "tile 4 = x[min(i.o * 25, 24), k.o * 32] by 32" in text


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"tile": (Tile("k", 16, Tail.CUT),)}, "have blocks of 32"),
        ({"tile": (Tile("k", 32),)}, "have blocks of 32"),
        ({"tile": (Tile("k", 32, Tail.CUT),), "lanes": ("k", 8)}, "neither cut, fused, spread"),
        ({"tile": (Tile("k", 32, Tail.CUT),), "order": ("i", "j", "k"), "matrix": "i"}, "rows and columns"),
        ({"tile": (Tile("k", 32, Tail.CUT), Tile("j", 64)), "lanes": ("j", 16), "matrix": "i"}, "at most 32 rows"),
    ],
)
def test_schedules_that_would_change_the_order_are_refused(change: dict[str, object], rule: str) -> None:
    work, params = product(64, 64, 64)
    with pytest.raises(ScheduleError, match=rule):
        apply("k", work, Schedule(**change), params)  # type: ignore[arg-type]


def test_words_are_halves_of_one_load() -> None:
    work, params = product(4, 32, 16)
    text = kernel_text(
        apply("k", work, choose(work, replace(Target.parse("x86-64-v4"), keeps_sum_order=True), W), params)
    )
    assert "even[i.t, j.t] += even(x[i, k]) * even(w[j // 16, k // 2, j % 16, k % 2])" in text


def fetched(stmts: tuple[Stmt, ...], env: dict[Var, int]) -> Iterator[tuple[int, int]]:
    """Yield the panel and the line in it of each prefetch that a nest runs."""
    for s in stmts:
        match s:
            case Prefetch(_, index):
                yield number(index[0], env), number(index[-1], env) * 2 // 64
            case For(var, body) if isinstance(var.extent, int):
                for n in range(var.extent):
                    yield from fetched(body, {**env, var: n})
            case Alloc(_, body):
                yield from fetched(body, env)
            case _:
                pass


@pytest.mark.parametrize(("rows", "terms", "columns"), [(49, 512, 96), (40, 64, 512), (70, 320, 128)])
def test_panels_are_fetched_while_tiles_use_those_before_them(rows: int, terms: int, columns: int) -> None:
    """All lines of both panels behind those in use, some of them twice: rows of the last tile overlap."""
    work, params = product(rows, terms, columns)
    plan = choose(work, TILES, W)
    assert plan.order[0] == "j" and plan.prefetch == "w" and plan.prefetch_level == 2
    found = list(fetched(apply("k", work, plan, params).body, {}))
    lines = 32 * terms * 2 // 64
    for panel in range(2, columns // 16, 2):
        assert set(range(lines)) <= {line for first, line in found if first == panel}
    assert len(found) <= 1.6 * lines * (columns // 32)


def test_panels_that_one_tile_of_rows_uses_are_not_fetched() -> None:
    assert choose(product(32, 512, 96)[0], TILES, W).prefetch is None
    assert choose(product(49, 512, 96)[0], replace(TILES, cpu="znver5"), W).prefetch is None
