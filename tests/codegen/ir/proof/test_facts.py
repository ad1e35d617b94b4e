"""Proofs about indices: what is shown is so for all sizes, and what is not so is not shown."""

from __future__ import annotations

import pytest

from aot.codegen.ir.index import exactly, normal
from aot.codegen.ir.loops import Expr, Var, cast, prim, select
from aot.codegen.ir.proof.affine_facts import before_end, conditions
from aot.codegen.ir.proof.facts import Facts
from aot.runtime.abi import DType

N, M, K = Var("n"), Var("m"), Var("k")
S = Var("s", None, 0)
A, B = Var("i", N), Var("j", M)
X = Var("x", None, -(1 << 62))
ROOM = N * M * prim("max", prim("min", K, 3), 1)  # a factor is a maximum
WITHIN = [
    (A, N, (A,)),
    (A * M + B, N * M, (A, B)),
    (N - 1 - A, N, (A,)),
    ((Var("h", (N + 1) // 2)) * 2, N + 1, (Var("h", (N + 1) // 2),)),
    (Var("f", N * M) // M, N, (Var("f", N * M),)),
    (Var("f", N * M) % M, M, (Var("f", N * M),)),
    (prim("min", prim("max", A - 3, 0), N - 1), N, (A,)),
    (prim("min", prim("max", A - 1, 1 - A), (N - 1) * 2 - prim("max", A - 1, 1 - A)), N, (A, Var("t", N - 1))),
    (select(prim("lt", K, N), K, 0), N, (A,)),
    (Var("r", prim("min", N, K)) + prim("max", N - K, 0), N, (Var("r", prim("min", N, K)),)),
    (Var("q", S), N // 2, (Var("q", S),)),
    (A - A, M, (A, Var("p", select(prim("lt", 0, M), K, 0)))),
    (prim("max", prim("min", X, ROOM - 1), 0), ROOM, (Var("r", ROOM),)),
    (prim("min", 15 - prim("and", X, 15), N - 1), N, (A,)),
    (N // 14 * 14 + N % 14 // 8 * 8 + Var("t", N % 14 % 8), N, (Var("t", N % 14 % 8),)),
]
OUTSIDE = [
    (A + 1, N, (A,)),
    (A - 1, N, (A,)),
    (A - K, N, (A,)),
    (A * M + B, N * M - 1, (A, B)),
    (prim("min", A, K - 1), N, (A,)),
    (Var("f", N * M) // M, N - 1, (Var("f", N * M),)),
    (prim("max", prim("min", X, ROOM - 1), 0), ROOM, ()),
    (prim("max", prim("min", X, ROOM), 0), ROOM, (Var("r", ROOM),)),
    (prim("min", 14 - prim("and", X, 15), N - 1), N, (A,)),
    (N // 14 * 14 + N % 14 // 8 * 8 + Var("t", N % 14 % 9), N, (Var("t", N % 14 % 9),)),
    (N // 14 * 14 + (N - 14) // 8 * 8, N, (A,)),
]


def is_within(index: Expr, extent: Expr, axes: tuple[Var, ...]) -> bool:
    facts = Facts({S: N // 2}).inside(*axes)
    return facts.proves(normal(index, {})) and facts.proves(before_end(index, extent))


@pytest.mark.parametrize(("index", "extent", "axes"), WITHIN)
def test_indices_inside(index: Expr, extent: Expr, axes: tuple[Var, ...]) -> None:
    assert is_within(index, extent, axes)


@pytest.mark.parametrize(("index", "extent", "axes"), OUTSIDE)
def test_indices_outside(index: Expr, extent: Expr, axes: tuple[Var, ...]) -> None:
    assert not is_within(index, extent, axes)


def test_facts_and_their_alternatives() -> None:
    """i < k follows from n <= k, and i * min(max(n, 1) - 1, 1) < n for i < m from n = m or n = 1."""
    assert Facts({}, [normal(K - N, {})]).inside(A).proves(before_end(A, K))
    flag = Var("flag", 2)
    meaning = {flag: prim("min", prim("max", N, 1) - 1, 1)}
    equal = tuple(normal(a, {}) for a in (N - M, M - N)), tuple(normal(a, {}) for a in (N - 1, 1 - N))
    assert Facts(meaning, [], [equal]).inside(B).proves(before_end(B * flag, N))
    assert not Facts(meaning).inside(B).proves(before_end(B * flag, N))


def test_a_comparison_without_signs_bounds_both_ends() -> None:
    """u64(k) < u64(n) says 0 <= k < n, since n is not negative; its contrary says nothing."""
    test = prim("lt", cast(K - 5, DType.U64), cast(N, DType.U64))
    facts = Facts({}).where(*conditions(test, True))
    assert facts.proves(normal(K - 5, {})) and facts.proves(before_end(K - 5, N))
    assert (
        conditions(test, False) == [] and conditions(prim("lt", cast(K, DType.U64), cast(N - 1, DType.U64)), True) == []
    )


def test_a_proof_holds_inside_of_loops_and_tests_that_are_not_about_it() -> None:
    """i < n is proved once, where the loop over i begins; what a test says of i is known inside of it alone."""
    outer = Facts({}).inside(A)
    inner = outer.inside(B).where(normal(B - 2, {}))
    assert inner.proves(before_end(A, N)) and outer.proves(before_end(A, N))
    assert inner.where(normal(A - 5, {})).proves(normal(A - 4, {})) and not inner.proves(normal(A - 4, {}))


def test_the_least_value_in_loops() -> None:
    found = Facts({}).inside(A).residue(normal(A - K, {}))
    assert found is not None and found.key == normal(-K, {}).key


def test_a_place_that_is_never_reached_proves_all() -> None:
    assert Facts({}, [normal(N - 1, {}), normal(-N, {})]).proves(exactly(-1))
