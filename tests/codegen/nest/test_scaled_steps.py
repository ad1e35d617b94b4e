"""Sums in steps with factors of their own: the same sums, exactly on integers, for any place of the factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Expr, Reduce, Var, cast, dense, prim
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.nest.sums.scaled_steps import count_register_values, shared_factors
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

M, G, R, H, N = 3, 4, 8, 2, 40
i, j, g, r, h = Var("i", M), Var("j", N), Var("g", G), Var("r", R), Var("h", H)
x, w, z, t = dense("x", M, G, R, H), dense("w", G, R, H, N), dense("z", G, N, dtype=DType.I8), dense("t", G, N)
y = dense("y", M, N)
NUMBER = w[g, r, h, j]
PRODUCTS = {
    "one factor": x[i, g, r, h] * NUMBER * t[g, j],
    "the factor first": t[g, j] * (NUMBER * x[i, g, r, h]),
    "two factors": x[i, g, r, h] * (NUMBER * (t[g, j] * cast(z[g, j], DType.F32))),
    "a zero point": x[i, g, r, h] * (NUMBER - cast(z[g, j], DType.F32)) * t[g, j],
    "a zero point that moves": x[i, g, r, h] * (NUMBER - (cast(z[g, j], DType.F32) + cast(h, DType.F32))),
    "one zero point": x[i, g, r, h] * (NUMBER - cast(z[1, j], DType.F32)),
    "no factor": x[i, g, r, h] * NUMBER,
}
SCHEDULES = {
    "vectors": Schedule(
        order=("i", "j", "g", "r", "h"), lanes=("j", 8), tile=(Tile("j", 16, Tail.CUT),), scaled_steps="g"
    ),
    "rows": Schedule(
        order=("j", "i", "g", "r", "h"),
        lanes=("j", 8),
        tile=(Tile("i", 2), Tile("j", 16, Tail.CUT), Tile("h", 2)),
        scaled_steps="g",
        parallel="j",
    ),
    "scalars": Schedule(order=("i", "j", "g", "r", "h"), scaled_steps="g"),
    "inside of another axis": Schedule(order=("j", "i", "r", "g", "h"), lanes=("j", 8), scaled_steps="g"),
    "all steps together": Schedule(order=("j", "i", "g", "r", "h"), lanes=("j", 8)),
    "one loop": Schedule(fuse=(("q", ("g", "r", "h")),), order=("j", "i", "q"), lanes=("j", 8)),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("product", PRODUCTS)
def test_sums_in_steps_are_the_same_sums(product: str, schedule: str) -> None:
    rng = np.random.default_rng(0)
    a, b, zeros, scales = (rng.integers(-4, 5, shape) for shape in ((M, G, R, H), (G, R, H, N), (G, N), (G, N)))
    wide = {"x": a[..., None], "w": b[None], "z": zeros[None, :, None, None], "t": scales[None, :, None, None]}
    terms = {
        "one factor": wide["x"] * wide["w"] * wide["t"],
        "the factor first": wide["x"] * wide["w"] * wide["t"],
        "two factors": wide["x"] * wide["w"] * wide["t"] * wide["z"],
        "a zero point": wide["x"] * (wide["w"] - wide["z"]) * wide["t"],
        "a zero point that moves": wide["x"] * (wide["w"] - wide["z"] - np.arange(H).reshape(1, 1, 1, H, 1)),
        "one zero point": wide["x"] * (wide["w"] - zeros[1].reshape(1, 1, 1, 1, N)),
        "no factor": wide["x"] * wide["w"],
    }
    work = Definition(y, (i, j), Reduce("add", (g, r, h), PRODUCTS[product]) + 1.0)
    kernel = apply("k", work, SCHEDULES[schedule], (x, w, z, t, y))
    out = aligned(np.zeros((M, N), np.float32))
    floats = [aligned(p.astype(np.float32)) for p in (a, b, scales)]
    compiled(kernel)(floats[0], floats[1], aligned(zeros.astype(np.int8)), floats[2], out)
    np.testing.assert_array_equal(out, terms[product].sum((1, 2, 3)) + 1)


def test_a_value_that_is_equal_in_the_whole_sum_is_computed_before_it() -> None:
    work = Definition(y, (i, j), Reduce("add", (g, r, h), PRODUCTS["one zero point"]))
    for schedule in ("all steps together", "one loop"):
        text = kernel_text(apply("k", work, SCHEDULES[schedule], (x, w, z, t, y)))
        before, inside = text.split("for q in 64:" if schedule == "one loop" else "for g in 4:")
        assert "f32(z[1, j])" in before
        assert "z[" not in inside


def test_terms_of_a_sum_that_is_written_out_stay_sums() -> None:
    work = Definition(y, (i, j), Reduce("add", (h,), x[i, 0, 0, h] * w[0, 0, h, j]))
    plan = Schedule(order=("i", "j"), lanes=("j", 8), tile=(Tile("h", 2),))
    assert "acc[j.t] += x[i, 0, 0, h] * w[0, 0, h, j]" in kernel_text(apply("k", work, plan, (x, w, y)))


def test_values_under_a_condition_stay_where_they_are() -> None:
    guarded = prim("within", g - 1, 2, t[1, j])
    work = Definition(y, (i, j), Reduce("add", (g, r, h), x[i, g, r, h] * guarded))
    before, inside = kernel_text(apply("k", work, SCHEDULES["all steps together"], (x, t, y))).split("for g in 4:")
    assert "t[" not in before
    assert "t[1, j]" in inside


def test_a_value_that_is_equal_in_a_step_is_computed_before_its_loop() -> None:
    work = Definition(y, (i, j), Reduce("add", (g, r, h), PRODUCTS["a zero point"]))
    plan = Schedule(order=("i", "j", "g", "r", "h"), lanes=("j", 8), scaled_steps="g")
    text = kernel_text(apply("k", work, plan, (x, w, z, t, y)))
    before, inside = text.split("for r in 8:")
    assert "kept0[j.t] = f32(z[g, j])" in before
    assert "part[j.t] += x[i, g, r, h] * (w[g, r, h, j] - kept0[j.t])" in inside
    assert "acc[j.t] += part[j.t] * t[g, j]" in inside


@pytest.mark.parametrize(
    ("product", "factors", "kept"),
    [("one factor", 1, 0), ("two factors", 2, 0), ("a zero point", 1, 1), ("no factor", 0, 0)],
)
def test_factors_and_values_of_a_step(product: str, factors: int, kept: int) -> None:
    found = Reduce("add", (g, r, h), PRODUCTS[product])
    assert len(shared_factors(found, g)[0]) == factors
    assert count_register_values(found, g, (h,)) == kept


def test_values_along_an_unrolled_axis_are_kept_for_each_of_its_points() -> None:
    value: Expr = PRODUCTS["a zero point that moves"]
    assert count_register_values(Reduce("add", (g, r, h), value), g, (h,)) == H


@pytest.mark.parametrize("data", [DType.I8, DType.U8])
@pytest.mark.parametrize("outputs", [40, 1536])
@pytest.mark.parametrize("rows", [(1,), (3,), (128,), (9, 100), (2, 512)], ids=str)
def test_steps_of_bytes_add_up_integers(rows: tuple[int, ...], outputs: int, data: DType) -> None:
    """However the rows are blocked, which belong to the cores of the target."""
    axes, e, column = tuple(Var(f"m{k}", n) for k, n in enumerate(rows)), Var("e", 32), Var("j", outputs)
    q, scale, out = dense("q", *rows, G, 32, dtype=data), dense("s", *rows, G), dense("y", *rows, outputs)
    v = dense("v", outputs, G, 32, dtype=DType.U8 if data is DType.I8 else DType.I8)
    term = cast(cast(q[(*axes, g, e)], DType.I32) * cast(v[column, g, e], DType.I32), DType.F32) * scale[(*axes, g)]
    work = Definition(out, (*axes, column), Reduce("add", (g, e), term) * 0.5)
    plan = choose(work, replace(Target.parse("x86-64-v4-bf16"), cores=2), frozenset({"v"}))
    assert (plan.dots, plan.scaled_steps) == ("e", "g")
    text = kernel_text(apply("k", work, plan, (q, v, scale, out)))
    assert "alloc part: i32" in text
    assert "+= f32(part[" in text
    with pytest.raises(ScheduleError, match="dots are sums of"):
        apply("k", work, replace(plan, scaled_steps=None), (q, v, scale, out))
