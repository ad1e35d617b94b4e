"""Values that are no denormal numbers: which ones an instruction may round to bf16 that takes these for zero."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Const, Expr, Space, Var, cast, dense, prim, select
from aot.codegen.ir.numbers.normal_values import is_normal, normal_buffers
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType

i, j = Var("i", 8), Var("j", 64)
X, Y, OUT = dense("x", 8, 64), dense("y", 8, 64), dense("out", 8, 64, dtype=DType.BF16)
SHORT, WHOLE, OWN = dense("s", 8, 64, dtype=DType.BF16), dense("n", 8, 64, dtype=DType.I32), dense("own", 8, 64)
TABLE = replace(dense("t", 8, 64), space=Space.TABLE)
AMX = Target.parse("x86-64-v4-amx")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X[i, j] + Y[i, j], True),
        (X[i, j] * 0.125, True),
        (X[i, j] / Y[i, j] - 1.0, True),
        (prim("max", X[i, j] * Y[i, j], 0.0), True),
        (select(prim("lt", X[i, j], 0.0), X[i, j] * 0.5, X[i, j] * Y[i, j]), True),
        (cast(WHOLE[i, j], DType.F32), True),
        (OWN[i, j], True),
        (prim("neg", OWN[i, j]), True),
        (Const(1e-30, DType.F32), True),
        (Const(1e-40, DType.F32), False),
        (X[i, j], False),
        (SHORT[i, j], False),
        (prim("max", X[i, j], 0.0), False),
        (select(prim("lt", X[i, j], 0.0), X[i, j], X[i, j] * 2.0), False),
        (prim("within", i, 4, X[i, j], 0.0), False),
        (X[i, j] * 1.0, False),
        (X[i, j] + 0.0, False),
        (X[i, j] + Y[i, j] * 0.0, False),
        (X[i, j] + TABLE[i, j] * Y[i, j], False),
        (prim("tanh", X[i, j]), True),
        (prim("gelu_short", X[i, j]), True),
        (prim("exp_normal", X[i, j]), True),
        (prim("sin", X[i, j]), False),
    ],
)
def test_results_of_arithmetic_are_normal(value: Expr, expected: bool) -> None:
    assert is_normal(value, frozenset({"own"})) == expected


@pytest.mark.parametrize(("value", "expected"), [(X[i, j] * 0.5, True), (prim("max", X[i, j], 0.0), False)])
def test_memory_of_the_kernel_is_as_normal_as_what_is_stored_there(value: Expr, expected: bool) -> None:
    temp = dense("temp", i, 64, space=Space.STACK)
    group = Group("rows", (i,), (temp,), (Definition(temp, (i, j), value), Definition(OUT, (i, j), temp[i, j])))
    kernel = apply("k", group, choose(group, AMX, frozenset()), (X, OUT))
    assert ("temp" in normal_buffers(kernel.body)) == expected
    for flushes in (True, False):
        text = emit(kernel, target=AMX, flushes=flushes).text()
        assert ("fptrunc" in text) == (expected and flushes)


def test_targets_without_the_instruction_round_by_integers() -> None:
    work = Definition(OUT, (i, j), X[i, j] + Y[i, j])
    kernel = apply("k", work, choose(work, AMX, frozenset()), (X, Y, OUT))
    for name, instruction in (("x86-64-v4", False), ("x86-64-v4-bf16", True), ("x86-64-v4-amx", True)):
        assert ("fptrunc" in emit(kernel, target=Target.parse(name), flushes=True).text()) == instruction
