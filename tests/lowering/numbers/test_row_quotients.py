"""Rows divided by a number of their own: one division a row in layers of 16 bits, and quotients in f32."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Expr, Space, Var, dense, prim
from aot.codegen.ir.printer import expr_text
from aot.codegen.ir.traverse import members
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.lowering.numbers.precision.row_quotients import invert_divisors
from tests.lowering.check import ints, weights
from tests.lowering.numbers.short_networks import ERROR, run_here, short
from tests.passes.check import graph_of, values

r, j = Var("r", 8), Var("j", 64)
X, Y, S = dense("x", 8, 64), dense("y", 8, 64), dense("s", r, space=Space.REGISTERS)


def norms(b: Builder, x: OutPort) -> OutPort:
    """Norms before a product, and as the output."""
    y = b.MatMul(b.MVN(b.MatMul(x, weights(b, 64, 64)), ints(b, 1), eps=1e-5), weights(b, 64, 64, seed=1))
    return b.MVN(y, ints(b, 1), eps=1e-5)


@pytest.mark.parametrize(("precision", "count"), [("bf16", 0), ("f16", 0), ("f32", 2)])
def test_norms_divide_once_a_row(precision: str, count: int) -> None:
    x = values((48, 64))[0]
    expected = interpret(graph_of(norms, x.shape), [x])[0]
    found: set[bytes] = set()
    for target in run_here()[:2]:
        made = short(norms, x.shape, target=target, precision=precision)
        assert made.groups.count("] / t") == count
        y = np.asarray(in_memory(made.built, threads=1)(x)[0])
        assert np.abs(y - expected).max() < ERROR["bf16"] * np.abs(expected).max()
        found.add(y.tobytes())
    assert len(found) == 1 or precision == "f32"


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (X[r, j] / S[r], "x[r, j] * s[r]"),
        (X[r, j] / S[r] / S[r] + 1.0, "x[r, j] * s[r] * s[r] + 1"),
        (X[r, j] / S[r] + S[r], None),
        (S[r] / X[r, j], None),
        (X[r, j] / (S[r] + 1.0), None),
    ],
)
def test_a_number_is_inverted_if_it_only_divides(value: Expr, made: str | None) -> None:
    root = prim("sqrt", X[r, 0])
    group = Group("rows", (r,), (S,), (Definition(S, (r,), root), Definition(Y, (r, j), value)))
    found = invert_divisors(group)
    assert isinstance(found, Group)
    divisor, quotient = (expr_text(d.value) for d in members(found))
    assert (divisor, quotient) == (("1 / sqrt(x[r, 0])", made) if made else (expr_text(root), expr_text(value)))
