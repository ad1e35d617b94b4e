"""Quotients and remainders in indices: rounded down whatever the signs."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.index import Affine, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Var, dense, prim
from aot.codegen.ir.schedule import Schedule
from aot.codegen.nest.nest import apply
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

DIVISORS = [n for n in range(-7, 8) if n]


@pytest.mark.parametrize("n", DIVISORS)
def test_normal_form_is_that_of_python(n: int) -> None:
    for x in range(-20, 21):
        for fn, expected in (("floordiv", x // n), ("mod", x % n)):
            j = Var("j", low=-20)
            assert normal(prim(fn, j, n), {j: Affine({}, x)}).expr() == Const(expected)


def test_a_buffer_has_an_index_for_each_dimension() -> None:
    for index in (0, (0, 0, 0)):
        with pytest.raises(ValueError, match=r"x: 2 dimensions, got [13] indices"):
            _ = dense("x", 2, 3)[index]


def test_a_quotient_by_zero_is_zero() -> None:
    assert normal(prim("floordiv", Var("j", 9), 0), {}).expr() == Const(0)


@pytest.mark.parametrize("n", DIVISORS)
def test_constant_divisors(n: int) -> None:
    j, x, y = Var("j", 24), dense("x", 64, dtype=DType.I64), dense("y", 24, dtype=DType.I64)
    kernel = apply("g", Definition(y, (j,), x[prim("floordiv", j - 11, n) + 32]), Schedule(), (x, y))
    out = aligned(np.zeros(24, np.int64))
    compiled(kernel)(aligned(np.arange(64)), out)
    assert out.tolist() == [(k - 11) // n + 32 for k in range(24)]


@pytest.mark.parametrize("n", DIVISORS)
def test_divisors_of_run_time(n: int) -> None:
    j, size, x = Var("j", 24), Var("n", None, low=-8), dense("x", 64, dtype=DType.I64)
    y = dense("y", 24, dtype=DType.I64)
    place = prim("floordiv", j - 11, size) + 32
    kernel = apply("g", Definition(y, (j,), x[place]), Schedule(), (x, y), sizes=(size,))
    out = aligned(np.zeros(24, np.int64))
    compiled(kernel)(aligned(np.arange(64)), out, n)
    assert out.tolist() == [(k - 11) // n + 32 for k in range(24)]


def test_quotients_by_run_time_sizes_are_taken_apart() -> None:
    """(c h w + y w + x) // (8 h w) = c // 8, and what is left over; as Python has it for all h and w."""
    h, w = Var("h", 5, 1), Var("w", 4, 1)
    c, y, x = Var("c", 24), Var("y", h), Var("x", w)
    row, whole = y * w + x, c * h * w + y * w + x
    assert normal(whole // (h * w), {}) == normal(c, {})
    assert normal(whole // (h * w * 8), {}) == normal(c // 8, {})
    assert normal((c * w + row) // w, {}) == normal(c + y, {})
    some = (c * h * w * 8 + y * h + 3) // (h * w * 8)
    assert normal(some, {}) == normal(c + (y * h + 3) // (h * w * 8), {})
    values = ({h: a, w: b, c: n, y: a - 1, x: b - 1} for a in range(1, 5) for b in range(1, 4) for n in range(24))
    for env in values:
        a, b, n = env[h], env[w], env[c]
        numbers: dict[Var, Affine] = {v: Affine({}, k) for v, k in env.items()}
        found = normal(normal(some, {}).expr(), numbers)
        assert found.const == (n * a * b * 8 + (a - 1) * a + 3) // (a * b * 8)


def test_quotients_that_can_exceed_zero_stay() -> None:
    h, w = Var("h"), Var("w")
    x, wide = Var("x", w), Var("y", w + 1)
    assert normal((x * 2 + Var("c", 8) * w) // w, {}).terms.keys() > {Var("c", 8)}
    for e in (wide // w, (x + 1) // w, x * h // w, (x - 1) // w):
        assert not normal(e, {}).is_const


def test_a_long_sum_is_not_deep() -> None:
    total = Affine({Var(f"n{k}"): k + 1 for k in range(200)}, 1)
    spelled = total.expr()
    assert depth(spelled) < 30
    assert normal(spelled, {}) == total


def test_large_products_of_sums_stay_products_with_one_spelling() -> None:
    a, b, c = (Affine({Var(f"{s}{k}"): 1 for k in range(9)}).expr() for s in "abc")
    found = normal(a * b * c, {})
    assert len(found.terms) == 1
    assert found == normal(c * a * b, {}) == normal(b * (c * a), {})


def depth(e: Expr) -> int:
    return 1 + max(map(depth, e.args), default=0) if isinstance(e, Prim) else 1
