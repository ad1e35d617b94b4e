"""@loops: what Python would do, the statements do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.codegen.ir.loops import Buffer, Expr, For, If, LoopKind, Stmt, Store, Var, While, dense
from aot.codegen.script.script import ScriptError, array, lanes, loops, parallel, select, unrolled, var
from aot.runtime.abi import DType
from tests.codegen.interpreter import Interpreter, cells


def run(stmts: tuple[Stmt, ...], **arrays: Any) -> dict[str, Any]:
    """Values of each buffer after the statements, as dictionaries by index."""
    memory = {name: cells(np.asarray(a)) for name, a in arrays.items()}
    Interpreter(**memory).run(stmts)
    return memory


X, Y = dense("x", 3, 4), dense("y", 3, 4)
N = dense("n", 3, dtype=DType.I32)


@loops
def cumulate(x: Buffer, y: Buffer, rows: int, length: int):
    for i in parallel(rows):
        total = var(0.0, DType.F32)
        for j in range(length):
            total += x[i, j]
            y[i, j] = total


def test_a_scalar_that_changes() -> None:
    x = np.arange(12.0).reshape(3, 4)
    found = run(cumulate(X, Y, rows=3, length=4), x=x, y=np.zeros((3, 4)))
    assert [found["y"][i] for i in np.ndindex(3, 4)] == np.cumsum(x, 1).reshape(-1).tolist()


def test_kinds_of_loops() -> None:
    @loops
    def f(y: Buffer):
        for i in unrolled(3):
            for j in parallel(4):
                y[i, j] = 1.0

    (outer,) = f(Y)
    assert isinstance(outer, For) and outer.kind is LoopKind.UNROLLED
    (inner,) = outer.body
    assert isinstance(inner, For) and inner.kind is LoopKind.PARALLEL


@loops
def insertion_sort(x: Buffer, n: int):
    for i in range(1, n):
        item = x[0, i]
        j = var(i, DType.I64)
        while j > 0 and x[0, j - 1] > item:
            x[0, j] = x[0, j - 1]
            j -= 1
        x[0, j] = item


def test_while_does_not_read_behind_a_deciding_condition() -> None:
    found = run(insertion_sort(X, 4), x=[[3.0, 1.0, 2.0, 0.0]])
    assert [found["x"][0, j] for j in range(4)] == [0.0, 1.0, 2.0, 3.0]


def test_a_value_read_from_memory_stays() -> None:
    @loops
    def swap(x: Buffer):
        first = x[0, 0]
        x[0, 0] = x[0, 1]
        x[0, 1] = first

    found = run(swap(X), x=[[1.0, 2.0]])
    assert found["x"] == {(0, 0): 2.0, (0, 1): 1.0}


def test_steps_and_run_time_extents() -> None:
    @loops
    def f(n: Buffer, y: Buffer):
        for i in range(2, -1, -1):
            for j in range(n[i]):
                y[i, j] += 1.0
        for j in range(1, 4, 2):
            y[0, j] = 7.0

    found = run(f(N, Y), n=np.array([0, 2, 3]), y=np.zeros((3, 4)))
    assert [found["y"][i] for i in np.ndindex(3, 4)] == [0, 7, 0, 7, 1, 1, 0, 0, 1, 1, 1, 0]


def test_python_values_are_folded() -> None:
    @loops
    def f(y: Buffer, shape: tuple[int, ...], flag: bool):
        for i, n in enumerate(shape):
            for j in range(n):
                if flag and n > 1:
                    y[i, j] = float(n)
                else:
                    y[i, j] = -1.0

    stmts = f(Y, (2, 1), True)
    assert all(isinstance(s, For) and not isinstance(s.body[0], If) for s in stmts)
    assert run(stmts, y=np.zeros((2, 2)))["y"] == {(0, 0): 2.0, (0, 1): 2.0, (1, 0): -1.0, (1, 1): 0.0}


@loops
def larger(a: Expr, b: Expr):
    best = var(a, DType.F32)
    if b > best:
        best = b
    return best


def test_calls_are_inlined_with_names_of_their_own() -> None:
    @loops
    def f(x: Buffer, y: Buffer):
        best = var(-1.0)
        for i in range(4):
            best = larger(best, x[0, i])
        y[0, 0] = best

    assert run(f(X, Y), x=[[1.0, 5.0, 2.0, 4.0]], y=[[0.0]])["y"] == {(0, 0): 5.0}


def test_local_arrays_comprehensions_and_choices() -> None:
    @loops
    def f(x: Buffer, y: Buffer, rank: int):
        counts = array(2, dtype=DType.I32)
        for k in range(2):
            counts[k] = 0
        for i in range(4):
            k = 1 if x[0, i] > 1.0 else 0
            counts[k] += 1
        y[tuple([0] * rank)] = select(0 <= counts[0] < 2, counts[0], 9)
        y[0, 1] = sum([counts[k] for k in (0, 1)], 0)

    found = run(f(X, Y, 2), x=[[1.0, 5.0, 2.0, 4.0]], y=np.zeros((1, 2)))
    assert found["y"] == {(0, 0): 1.0, (0, 1): 4.0}


def test_an_or_guards_the_memory_behind_it() -> None:
    @loops
    def f(x: Buffer, y: Buffer):
        for i in range(4):
            if i == 0 or x[0, i - 1] > 2.0:
                y[0, i] = 1.0

    found = run(f(X, Y), x=[[1.0, 5.0, 2.0, 4.0]], y=np.zeros((1, 4)))
    assert [found["y"][0, i] for i in range(4)] == [1.0, 0.0, 1.0, 0.0]


def test_while_with_a_plain_condition_has_no_flag() -> None:
    @loops
    def f(y: Buffer):
        i = var(0, DType.I64)
        while i < 3:
            y[0, i] = 2.0
            i += 1

    (alloc,) = f(Y)
    assert isinstance(alloc.body[1], While)
    assert run((alloc,), y=np.zeros((1, 4)))["y"][0, 2] == 2.0


def test_errors_name_file_and_line() -> None:
    @loops
    def changes(y: Buffer):
        total = 0.0
        for i in range(4):
            total = total + y[0, i]

    @loops
    def mixes(n: Buffer, y: Buffer):
        y[0, 0] = y[0, 1] + n[0]

    @loops
    def breaks(y: Buffer):
        for _ in range(4):
            break

    @loops
    def shares(y: Buffer):
        for v in lanes(4):
            column = v + 0
            term = y[0, column]
            y[1, v] = term

    with pytest.raises(ScriptError, match=r"values that differ between lanes are in arrays, got the name 'term'"):
        shares(Y)
    with pytest.raises(ScriptError, match=r"test_script.py:\d+: 'total' is not a var\(\)"):
        changes(Y)
    with pytest.raises(ScriptError, match=r"test_script.py:\d+: .*cast one side: f32 and i32"):
        mixes(N, Y)
    with pytest.raises(ScriptError, match="Break is not part of the language"):
        breaks(Y)


def test_a_name_may_be_negative() -> None:
    """The inferred range of a name must also hold for values from memory."""

    @loops
    def f(n: Buffer, y: Buffer):
        for i in range(3):
            spare = n[i] * 1
            if spare >= 0:
                y[i, 0] = 1.0
            else:
                y[i, 0] = 2.0

    (loop,) = f(dense("n", 3, dtype=DType.I64), Y)
    assert isinstance(loop, For) and "spare" in str(loop)
    found = run((loop,), n=np.array([-1, 0, 5]), y=np.zeros((3, 4)))
    assert [found["y"][i, 0] for i in range(3)] == [2.0, 1.0, 1.0]
    low = next(s.var.low for s in loop.body if hasattr(s, "var"))
    assert low < 0


def test_an_extent_from_memory_is_read_once() -> None:
    @loops
    def f(n: Buffer, y: Buffer):
        for i in range(n[0]):
            n[0] = 1
            y[0, i] = 7.0

    found = run(f(dense("n", 3, dtype=DType.I64), Y), n=np.array([3, 0, 0]), y=np.zeros((3, 4)))
    assert [found["y"][0, i] for i in range(4)] == [7.0, 7.0, 7.0, 0.0]


class Held:
    """An object that holds a size, as arguments of kernels do."""

    def __init__(self, size: Expr) -> None:
        self.size = size

    def last(self) -> Expr:
        return self.size - 1


# where a size lies in an argument, and how a script reads it
HOLDERS: dict[str, tuple[Callable[[Expr], Any], Callable[[Any], Expr]]] = {
    "itself": (lambda n: n, lambda held: held - 1),
    "a buffer": (lambda n: dense("given", n), lambda held: held.shape[0] - 1),
    "tuples": (lambda n: ((n,),), lambda held: held[0][0] - 1),
    "an object": (Held, lambda held: held.last()),
    "a method": (lambda n: Held(n).last, lambda held: held()),
    "a closure": (lambda n: lambda k: n - k, lambda held: held(1)),
}


@pytest.mark.parametrize("name", ["n", "i", "j", "other"])
@pytest.mark.parametrize(("hold", "read"), HOLDERS.values(), ids=HOLDERS)
def test_a_size_with_the_name_of_a_local_is_another_variable(
    name: str, hold: Callable[[Expr], Any], read: Callable[[Any], Expr]
) -> None:
    size = Var(name)

    @loops
    def inner(y: Buffer, at: Any):
        n = at // 2 + 3
        y[1, at] = n + size

    @loops
    def outer(y: Buffer, held: Any):
        for i in range(4):
            n = i // 2
            j = n * 2
            y[0, i] = n + j + read(held)
            inner(y, i)

    interpreter = Interpreter({name: 7}, y=cells(np.zeros((2, 4))))
    interpreter.run(outer(Y, hold(size)))
    found = interpreter.memory["y"]
    assert [found[0, i] for i in range(4)] == [6, 6, 9, 9]
    assert [found[1, i] for i in range(4)] == [10, 10, 11, 11]


def test_an_argument_may_have_captured_a_name_that_is_not_bound_yet() -> None:
    def read(k: int) -> Any:
        return later - k

    @loops
    def f(y: Buffer, unused: Any):
        y[0, 0] = 1.0

    (store,) = f(Y, read)
    later = 2
    assert isinstance(store, Store) and read(1) == 1
