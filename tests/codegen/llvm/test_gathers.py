"""Accesses whose index is data: guards and caches of one lane must not reach another."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Kernel, Space, Var, as_expr, cast, dense, prim
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.script.script import loops, parallel, select, var
from aot.ir.types import numpy_dtype
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

LANES = Schedule(order=("k",), tile=(Tile("k", 8, Tail.CUT),), lanes=("k", 8))


def between(i: Buffer, x: Buffer, k: Var) -> Expr:
    """x between its elements floor(i[k]) and the next, zeros outside."""
    place = prim("floor", i[k])
    r, share = cast(place, DType.I64), i[k] - place
    parts = [prim("within", r + n, as_expr(5, DType.I64), x[r + n], 0.0) for n in (0, 1)]
    return parts[0] * (1.0 - share) + parts[1] * share


def expected(i: np.ndarray, x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    def read(r: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.where((r >= 0) & (r < 5), x[np.clip(r, 0, 4)], 0)

    r = np.floor(i).astype(int)
    return (read(r) * (1 - (i - r)) + read(r + 1) * (i - r)).astype(np.float32)


@pytest.mark.parametrize("schedule", [Schedule(), LANES], ids=["scalar", "vector"])
def test_two_guards_around_one_index(schedule: Schedule) -> None:
    k, i, x, y = Var("k", 24), dense("i", 24), dense("x", 5), dense("y", 24)
    kernel = apply("g", Definition(y, (k,), between(i, x, k)), schedule, (i, x, y))
    rng = np.random.default_rng(1)
    places, data = rng.uniform(-3, 8, 24).astype(np.float32), rng.normal(size=5).astype(np.float32)
    out = aligned(np.zeros(24, np.float32))
    compiled(kernel)(aligned(places), aligned(data), out)
    assert np.allclose(out, expected(places, data), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("schedule", [Schedule(), LANES], ids=["scalar", "vector"])
def test_a_guard_inside_of_a_guard(schedule: Schedule) -> None:
    """x[j[i[k]]] where both indices may lie outside."""
    k, i, j = Var("k", 24), dense("i", 24, dtype=DType.I64), dense("j", 6, dtype=DType.I64)
    x, y = dense("x", 5), dense("y", 24)
    inner = prim("within", j[i[k]], as_expr(5, DType.I64), x[j[i[k]]], 1.0)
    value = prim("within", i[k], as_expr(6, DType.I64), inner, 2.0)
    kernel = apply("g", Definition(y, (k,), value), schedule, (i, j, x, y))
    rng = np.random.default_rng(2)
    first, second = rng.integers(-3, 9, 24), rng.integers(-2, 7, 6)
    data, out = rng.normal(size=5).astype(np.float32), aligned(np.zeros(24, np.float32))
    compiled(kernel)(aligned(first), aligned(second), aligned(data), out)

    def one(a: int) -> float:
        b = int(second[a]) if 0 <= a < 6 else -9
        return 2.0 if not 0 <= a < 6 else float(data[b]) if 0 <= b < 5 else 1.0

    assert out.tolist() == [one(int(a)) for a in first]


@pytest.mark.parametrize("schedule", [Schedule(), LANES], ids=["scalar", "vector"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.I64, DType.F16, DType.U8])
def test_rows_at_indices_in_memory_with_a_border(schedule: Schedule, dtype: DType) -> None:
    """y[r, k] = x[i[r], k - 3], 0 outside: lanes hold both; i is read where a lane of the row is inside."""
    r, k, i = Var("r", 5), Var("k", 24), dense("i", 4, dtype=DType.I64)
    x, y = dense("x", 6, 18, dtype=dtype), dense("y", 5, 24, dtype=dtype)
    row = prim("within", i[r], as_expr(6, DType.I64), x[i[r], k - 3], as_expr(0, dtype))
    column = prim("within", k - 3, as_expr(18, DType.I64), row, as_expr(0, dtype))
    value = prim("within", r, as_expr(4, DType.I64), column, as_expr(0, dtype))
    kernel = apply("g", Definition(y, (r, k), value), schedule, (i, x, y))
    places = np.array([5, -1, 0, 6])
    data = np.random.default_rng(5).integers(1, 99, (6, 18)).astype(numpy_dtype(dtype))
    out = aligned(np.ones((5, 24), numpy_dtype(dtype)))
    compiled(kernel)(aligned(places), aligned(data), out)
    expected = np.zeros((5, 24), numpy_dtype(dtype))
    expected[[0, 2], 3:21] = data[[5, 0]]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("schedule", [Schedule(), LANES], ids=["scalar", "vector"])
def test_a_table_at_a_run_time_index(schedule: Schedule) -> None:
    k, i, y = Var("k", 24), dense("i", 24, dtype=DType.I64), dense("y", 24)
    table = dense("t", 7, space=Space.TABLE, values=(1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0))
    kernel = apply("g", Definition(y, (k,), table[i[k] % 7]), schedule, (i, y))
    places, out = np.random.default_rng(3).integers(0, 50, 24), aligned(np.zeros(24, np.float32))
    compiled(kernel)(aligned(places), out)
    assert out.tolist() == [table.values[p % 7] for p in places]


@pytest.mark.parametrize("dtype", [DType.U1, DType.U4, DType.I4, DType.U2])
def test_packed_types_lie_one_element_a_byte(dtype: DType) -> None:
    k, x, y = Var("k", 24), dense("x", 24, dtype=dtype), dense("y", 24, dtype=DType.I32)
    kernel = apply("g", Definition(y, (k,), cast(x[k], DType.I32)), LANES, (x, y))
    low, high = (-8, 8) if dtype is DType.I4 else (0, 1 << dtype.bits)
    data = np.random.default_rng(4).integers(low, high, 24).astype(np.int8)
    out = aligned(np.zeros(24, np.int32))
    compiled(kernel)(aligned(data), out)
    assert out.tolist() == data.tolist()


def test_an_index_that_changes_between_reads() -> None:
    """x[j], then j = 2, then x[j]: the second read is of another element, whether j lies in a register or in memory."""

    @loops
    def script(x: Buffer, i: Buffer, y: Buffer) -> None:
        for k in parallel(3):
            j = var(k, DType.I64)
            y[k, 0] = x[j]
            j = select(x[j] > 0.0, 2, 3)
            y[k, 1] = x[j]
            y[k, 2] = x[i[k]]
            i[k] = 4
            y[k, 3] = x[i[k]]

    x, i, y = dense("x", 5), dense("i", 3, dtype=DType.I64), dense("y", 3, 4)
    kernel = Kernel("g", (), (x, i, y), script(x, i, y))
    data, out = np.array([1, -1, 5, 7, 9], np.float32), aligned(np.zeros((3, 4), np.float32))
    compiled(kernel)(aligned(data), aligned(np.array([1, 0, 3])), out)
    assert out.tolist() == [[1, 5, -1, 9], [-1, 7, 1, 9], [5, 5, 7, 9]]


@pytest.mark.parametrize("lanes", [4, 8])
def test_a_step_that_run_time_says_is_one_or_none(lanes: int) -> None:
    """y[k] = x[s * k]: with s = 0 nothing behind the one element is read, for the page behind it may not be."""
    s, k, x, y = Var("s", 2), Var("k", 24), dense("x", 24), dense("y", 24)
    schedule = Schedule(order=("k",), tile=(Tile("k", lanes, Tail.CUT),), lanes=("k", lanes))
    call = compiled(apply("g", Definition(y, (k,), x[s * k] + 1.0), schedule, (x, y), (s,)))
    data, out = np.arange(24, dtype=np.float32), aligned(np.zeros(24, np.float32))
    call(aligned(data), out, 1)
    assert out.tolist() == (data + 1).tolist()
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    last = np.frombuffer(pages, np.float32)[mmap.PAGESIZE // 4 - 1 : mmap.PAGESIZE // 4]
    last[...] = 6
    libc = ctypes.CDLL(None, use_errno=True)
    behind = ctypes.c_void_p(last.ctypes.data + 4)
    assert libc.mprotect(behind, mmap.PAGESIZE, 0) == 0
    call(last, out, 0)
    assert libc.mprotect(behind, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    assert out.tolist() == [7.0] * 24
