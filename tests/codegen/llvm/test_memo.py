"""Memory of the emitter: a sum is rebuilt only if its variables differ, and nothing is left of a kernel."""

from __future__ import annotations

import gc
from dataclasses import replace

from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import Affine, exactly, normal
from aot.codegen.ir.loops import Const, For, Kernel, LoopKind, Prim, Reduce, Store, Var, dense
from aot.codegen.llvm.emit.function_text import number
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.emit.memo import Memo
from aot.codegen.llvm.emit.values import Values
from aot.codegen.llvm.host import parse_target
from aot.runtime.abi import DType

ROW, COLUMN = Var("i", 8), Var("j", 4)


def test_zeros_of_both_signs_stay_apart() -> None:
    assert Const(0.0, DType.F32) != Const(-0.0, DType.F32)
    assert number(0.0, "float").name == "0x0000000000000000"
    assert number(-0.0, "float").name == "0x8000000000000000"


def test_sums_are_made_once_for_each_state_of_their_variables() -> None:
    expr, made = ROW * 4 + COLUMN, list[Affine]()
    seen = Memo[Affine](expr)

    def at(env: dict[Var, Affine], lane: Var | None = None) -> Affine:
        def make() -> Affine:
            made.append(normal(expr, env))
            return made[-1]

        return seen.of(env, lane, make)

    one, two = exactly(1), exactly(2)
    assert at({ROW: one}).const == 4 and at({ROW: two}).const == 8 and at({}).terms == {ROW: 4, COLUMN: 1}
    assert at({ROW: one}) is made[0] and at({ROW: two, Var("other", 3): one}) is made[1] and len(made) == 3
    assert at({ROW: one}, Var("lane", 8)) is made[3]


def test_the_emitter_is_freed_without_the_garbage_collector() -> None:
    x, y = dense("x", 8, 4), dense("y", 8, 4)
    store = Store(y, (ROW, COLUMN), Prim("exp", (x[ROW, COLUMN],), DType.F32))
    kernel = Kernel("k", (), (x, y), (For(ROW, (For(COLUMN, (store,), LoopKind.UNROLLED),)),))
    gc.collect()
    gc.disable()
    try:
        emit(kernel, target=replace(parse_target("native"), compact_code=True))
        left = [o for o in gc.get_objects() if isinstance(o, Values)]
    finally:
        gc.enable()
    assert not left


def test_loads_and_variables_of_an_expression() -> None:
    x, w = dense("x", 8), dense("w", 8)
    inner = x[ROW] * w[COLUMN]
    total = Reduce("add", (COLUMN,), inner, x[ROW])
    assert loads(total) == (x[ROW], w[COLUMN]) and loads(total, w[ROW]) == (x[ROW], w[COLUMN], w[ROW])
    assert variables(total) == {ROW, COLUMN} and variables(x[ROW]) == variables(x[ROW], Const(1)) == {ROW}
    nested = x[Prim("cast", (w[ROW],), DType.I64)]
    assert loads(nested) == loads(nested) == (nested, w[ROW])
