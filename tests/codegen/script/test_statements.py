"""Hand-written nests: run-time loops, choices, values read from memory, registers across all of them."""

from __future__ import annotations

import numpy as np

from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    For,
    If,
    Kernel,
    Let,
    LoopKind,
    Space,
    Stmt,
    Store,
    Var,
    While,
    cast,
    dense,
    prim,
    select,
)
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

ZERO = Const(0)


def kernel(params: tuple[Buffer, ...], *body: Stmt, sizes: tuple[Var, ...] = ()) -> Kernel:
    return Kernel("k", sizes, params, body)


def cell(name: str, dtype: DType = DType.I64) -> Buffer:
    return dense(name, 1, space=Space.REGISTERS, dtype=dtype)


def test_while_carries_registers() -> None:
    """Steps of the Collatz sequence."""
    x, y = dense("x", 8, dtype=DType.I64), dense("y", 8, dtype=DType.I64)
    now, steps, i = cell("now"), cell("steps"), Var("i", 8)
    following = select(prim("eq", now[0] % 2, 0), now[0] // 2, now[0] * 3 + 1)
    k = kernel(
        (x, y),
        For(
            i,
            (
                Alloc(
                    now,
                    (
                        Alloc(
                            steps,
                            (
                                Store(now, (ZERO,), x[i]),
                                Store(steps, (ZERO,), Const(0)),
                                While(
                                    prim("gt", now[0], 1),
                                    (Store(now, (ZERO,), following), Store(steps, (ZERO,), Const(1), "add")),
                                ),
                                Store(y, (i,), steps[0]),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
    out = aligned(np.zeros(8, "i8"))
    compiled(k)(aligned(np.array([1, 2, 3, 6, 7, 27, 1, 97])), out)
    assert out.tolist() == [0, 1, 7, 8, 16, 111, 0, 118]


def test_loop_over_a_size_that_may_be_zero() -> None:
    n, i = Var("n"), Var("i", Var("n"))
    x, y, total = Buffer("x", (n,), (1,)), dense("y", 1), cell("total", DType.F32)
    k = kernel(
        (x, y),
        Alloc(
            total,
            (
                Store(total, (ZERO,), Const(7.0, DType.F32)),
                For(i, (Store(total, (ZERO,), x[i], "add"),)),
                Store(y, (ZERO,), total[0]),
            ),
        ),
        sizes=(n,),
    )
    data, out = aligned(np.arange(5, dtype="f4")), aligned(np.zeros(1, "f4"))
    call = compiled(k)
    for count, want in ((0, 7), (1, 7), (5, 17)):
        call(data, out, count)
        assert out[0] == want


def test_if_merges_registers() -> None:
    x, y, r, i = dense("x", 6), dense("y", 6), cell("r", DType.F32), Var("i", 6)
    k = kernel(
        (x, y),
        For(
            i,
            (
                Alloc(
                    r,
                    (
                        If(
                            prim("lt", x[i], 0.0),
                            (Store(r, (ZERO,), prim("neg", x[i])),),
                            (Store(r, (ZERO,), x[i] * 2.0),),
                        ),
                        Store(y, (i,), r[0]),
                    ),
                ),
            ),
        ),
    )
    data, out = np.array([1, -1, 2, -2, 0, -3], "f4"), aligned(np.zeros(6, "f4"))
    compiled(k)(aligned(data), out)
    assert out.tolist() == np.where(data < 0, -data, data * 2).tolist()


def test_if_in_a_vector_is_each_lane() -> None:
    x, y, i = dense("x", 11), dense("y", 11), Var("i", 11)
    k = kernel((x, y), For(i, (If(prim("lt", x[i], 0.0), (Store(y, (i,), x[i]),)),), LoopKind.VECTOR, 4))
    data, out = np.array([1, -1, 2, -2, 0, -3, 5, 5, -5, 6, -7], "f4"), aligned(np.full(11, 9, "f4"))
    compiled(k)(aligned(data), out)
    assert out.tolist() == np.where(data < 0, data, 9).tolist()


def test_let_reads_memory_once() -> None:
    """A swap: the name keeps the value that was there before the store."""
    x, i, old = dense("x", 4, dtype=DType.I64), Var("i", 2), Var("old")
    k = kernel((x,), For(i, (Let(old, x[i], (Store(x, (i,), x[i + 2]), Store(x, (i + 2,), old))),)))
    data = aligned(np.array([1, 2, 3, 4]))
    compiled(k)(data)
    assert data.tolist() == [3, 4, 1, 2]


def test_index_from_memory_sees_stores() -> None:
    """Insertion by a counter that lies in memory."""
    x, y, count, i = dense("x", 6), dense("y", 6), dense("count", 1, dtype=DType.I32), Var("i", 6)
    at = cast(count[0], DType.I64)
    keep = (Store(y, (at,), x[i]), Store(count, (ZERO,), Const(1, DType.I32), "add"))
    k = kernel((x, y, count), For(i, (If(prim("gt", x[i], 0.0), keep),)))
    out, n = aligned(np.zeros(6, "f4")), aligned(np.zeros(1, "i4"))
    compiled(k)(aligned(np.array([1, -1, 2, -2, 0, 3], "f4")), out, n)
    assert (out.tolist(), n[0]) == ([1, 2, 3, 0, 0, 0], 3)


def test_registers_with_a_run_time_index_go_to_memory() -> None:
    x, y, h, i, j = dense("x", 9), dense("y", 3), dense("h", 3, space=Space.REGISTERS), Var("i", 9), Var("j", 3)
    k = kernel(
        (x, y),
        Alloc(
            h,
            (
                For(j, (Store(h, (j,), Const(0.0, DType.F32)),)),
                For(i, (Store(h, (i % 3,), x[i], "add"),)),
                For(j, (Store(y, (j,), h[j]),)),
            ),
        ),
    )
    out = aligned(np.zeros(3, "f4"))
    compiled(k)(aligned(np.arange(9, dtype="f4")), out)
    assert out.tolist() == [9, 12, 15]


def test_tables_are_read_at_run_time() -> None:
    y, i, t = dense("y", 7), Var("i", 7), dense("t", 4, space=Space.TABLE, values=(1.0, -2.5, 4.0, 8.0))
    k = kernel((y,), For(i, (Store(y, (i,), t[i % 4]),)))
    out = aligned(np.zeros(7, "f4"))
    compiled(k)(out)
    assert out.tolist() == [1, -2.5, 4, 8, 1, -2.5, 4]


def test_names_need_not_be_identifiers() -> None:
    x, y, i = dense('layer 1/"x"', 4), dense("ü:0", 4), Var("i", 4)
    k = Kernel('conv "1"/ä', (), (x, y), (For(i, (Store(y, (i,), x[i]),)),))
    out = aligned(np.zeros(4, "f4"))
    compiled(k)(aligned(np.arange(4, dtype="f4")), out)
    assert out.tolist() == [0, 1, 2, 3]


def test_array_read_by_a_let_at_an_index_that_varies_lies_in_memory() -> None:
    x, y, places = dense("x", 4), dense("y", 4), dense("places", 4, space=Space.REGISTERS, dtype=DType.I64)
    i, j, at = Var("i", 4), Var("j", 4), Var("at")
    k = kernel(
        (x, y),
        Alloc(
            places,
            (
                For(i, (Store(places, (i,), (i * 3 + 1) % 4),), LoopKind.UNROLLED),
                For(j, (Let(at, places[j], (Store(y, (j,), x[at]),)),)),
            ),
        ),
    )
    out = aligned(np.zeros(4, np.float32))
    compiled(k)(aligned(np.array([10, 20, 30, 40], np.float32)), out)
    assert out.tolist() == [20, 10, 40, 30]
