"""Products of bf16 by dots of two terms, which `--fast-math` allows: what is emitted, and how near sums are to f64."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Reduce, Size, Var, dense, prim
from aot.codegen.ir.schedule import Schedule, ScheduleError
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from aot.runtime.machine import missing_features
from tests.codegen.running import Array, aligned, compiled

BF16 = ml_dtypes.bfloat16
CONSTANT = frozenset({"w"})
PAIRS = replace(Target.parse("x86-64-v4-bf16"), fast_math=True)
LACKS = missing_features(PAIRS.isa_features)
TARGETS = [
    pytest.param(PAIRS, id="pairs", marks=pytest.mark.skipif(bool(LACKS), reason=f"this machine lacks {LACKS}")),
    pytest.param(replace(Target.parse("x86-64-v3"), fast_math=True), id="multiply-adds"),
]
SIZES = [(1, 8, 4), (5, 32, 16), (33, 49, 40), (50, 320, 48), (3, 11, 7), (16, 196, 100)]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(BF16)


def product(rows: Size, terms: int, columns: int) -> tuple[Definition, tuple[Buffer, ...]]:
    """y[i, j] = max(add[k](x[i, k] * w[k, j]) + b[j], 0)."""
    i, j, k = Var("i", rows), Var("j", columns), Var("k", terms)
    x, w = dense("x", rows, terms, dtype=DType.BF16), dense("w", terms, columns, dtype=DType.BF16)
    b, y = dense("b", columns), dense("y", rows, columns)
    return Definition(y, (i, j), prim("max", Reduce("add", (k,), x[i, k] * w[k, j]) + b[j], 0.0)), (x, w, b, y)


def close(found: Array, x: Array, w: Array, bias: Array) -> None:
    """Sums of exact products, each addition of which rounds in f32."""
    wide, columns = np.asarray(x, np.float64), np.asarray(w, np.float64)
    bound = 2.0**-22 * (x.shape[1] + 2) * np.add(np.abs(wide) @ np.abs(columns), np.abs(bias))
    assert (np.abs(found - np.maximum(np.add(wide @ columns, bias), 0)) <= bound).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("constant", [True, False], ids=["weights", "data"])
@pytest.mark.parametrize(("rows", "terms", "columns"), SIZES)
def test_products_of_pairs_are_those_of_numpy(
    target: Target, constant: bool, rows: int, terms: int, columns: int
) -> None:
    work, params = product(rows, terms, columns)
    plan = choose(work, target, CONSTANT if constant else frozenset())
    assert (plan.dots == "k") == target.abilities.sums_pairs
    x, w, bias = numbers(rows, terms), numbers(terms, columns), np.arange(columns, dtype=np.float32)
    y = aligned(np.zeros((rows, columns), np.float32))
    given = pack_array(w.view(np.uint16), plan.pack[0]) if plan.pack else w.view(np.uint16)
    compiled(apply("k", work, plan, params), target)(aligned(x), aligned(given), aligned(bias), y)
    close(y, x, w, bias)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 15, 70])
def test_dynamic_rows(target: Target, rows: int) -> None:
    n = Var("n", 1 << 20)
    work, params = product(n, 32, 24)
    plan = choose(work, target, CONSTANT)
    x, w, bias = numbers(rows, 32), numbers(32, 24), np.zeros(24, np.float32)
    y = aligned(np.full((rows, 24), -1, np.float32))
    packed = pack_array(w.view(np.uint16), plan.pack[0])
    compiled(apply("k", work, plan, params, (n,)), target)(aligned(x), aligned(packed), aligned(bias), y, rows)
    close(y, x, w, bias)


@pytest.mark.parametrize("target", TARGETS)
def test_terms_in_padding_that_is_not_stored_are_zero(target: Target) -> None:
    """y[i, j] = add[t, k](within(i + t - 2, 9, x[i + t - 2, k]) * w[t, k, j]): each row asks, so no word is read."""
    i, j, t, k = Var("i", 9), Var("j", 16), Var("t", 5), Var("k", 32)
    x, w, y = dense("x", 9, 32, dtype=DType.BF16), dense("w", 5, 32, 16, dtype=DType.BF16), dense("y", 9, 16)
    body = prim("within", i + t - 2, 9, x[i + t - 2, k]) * w[t, k, j]
    work = Definition(y, (i, j), Reduce("add", (t, k), body))
    plan = choose(work, target, CONSTANT)
    data, weights = numbers(9, 32), numbers(5, 32, 16)
    packed = pack_array(weights.view(np.uint16), plan.pack[0])
    out = aligned(np.zeros((9, 16), np.float32))
    compiled(apply("k", work, plan, (x, w, y)), target)(aligned(data), aligned(packed), out)
    wide, factors = np.zeros((13, 32)), np.asarray(weights, np.float64)
    wide[2:11] = np.asarray(data, np.float64)
    expected = np.zeros((9, 16))
    for tap in range(5):
        expected += wide[tap : tap + 9] @ factors[tap]
    np.testing.assert_allclose(np.asarray(out, np.float64), expected, atol=1e-4)


@pytest.mark.parametrize("constant", [True, False], ids=["weights", "data"])
def test_the_instruction_is_emitted_on_any_machine(constant: bool) -> None:
    work, params = product(6, 32, 32)
    kernel = apply("k", work, choose(work, PAIRS, CONSTANT if constant else frozenset()), params)
    text = emit(kernel, target=PAIRS).text()
    assert "llvm.x86.avx512bf16.dpbf16ps.512" in text and "llvm.fma" not in text


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4-bf16", "x86-64-v4-amx"])
def test_other_targets_and_exact_sums_use_none(name: str) -> None:
    work, _ = product(6, 32, 32)
    assert choose(work, Target.parse(name), CONSTANT).dots is None
    fast = replace(Target.parse(name), fast_math=True)
    assert (choose(work, fast, CONSTANT).dots is not None) == (name == "x86-64-v4-bf16")


def test_words_are_not_cut() -> None:
    work, params = product(6, 32, 32)
    plan: Schedule = choose(work, PAIRS, CONSTANT)
    wrong = replace(plan, tile=tuple(replace(t, size=3) if t.axis == "k" else t for t in plan.tile))
    with pytest.raises(ScheduleError, match="dots are sums of"):
        apply("k", work, wrong, params)


@pytest.mark.parametrize(("target", "dots"), [(PAIRS, "k"), (replace(PAIRS, fast_math=False), None)])
def test_columns_in_words_are_read_as_they_lie(target: Target, dots: str | None) -> None:
    """w[k // 2, j, k % 2]: words side by side along the lanes; columns with room between them are no words."""
    i, j, k = Var("i", 12), Var("j", 32), Var("k", 64)
    x, y = dense("x", 12, 64, dtype=DType.BF16), dense("y", 12, 32)
    near, far = dense("w", 32, 32, 2, dtype=DType.BF16), dense("w", 32, 32, 2, 2, dtype=DType.BF16)
    plan = choose(Definition(y, (i, j), Reduce("add", (k,), x[i, k] * near[k // 2, j, k % 2])), target, frozenset())
    assert plan.dots == dots
    apart = Definition(y, (i, j), Reduce("add", (k,), x[i, k] * far[k // 2, j, 0, k % 2]))
    assert choose(apart, target, frozenset()).dots is None
