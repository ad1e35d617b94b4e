"""Addresses in loops: pointers that an innermost loop moves on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Kernel, Reduce, Var, dense
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.llvm.emit.address import MAX_CARRIED
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply
from tests.codegen.running import aligned, compiled

TERMS = 30


def product(rows: int, columns: int) -> Kernel:
    """y[i, j] = add[k](x[k, i] * w[k, j]), two steps at a time, with rows of x that lie apart."""
    i, j, k = Var("i", rows), Var("j", columns), Var("k", TERMS)
    x, w, y = dense("x", TERMS, rows), dense("w", TERMS, columns), dense("y", rows, columns)
    plan = Schedule(order=("j", "i", "k"), tile=(Tile("i", 3), Tile("j", 8), Tile("k", 2, Tail.CUT)), lanes=("j", 8))
    return apply("k", Definition(y, (i, j), Reduce("add", (k,), x[k, i] * w[k, j])), plan, (x, w, y))


def carried(kernel: Kernel) -> int:
    return len(re.findall(r"= phi ptr", emit(kernel).text()))


@pytest.mark.parametrize(("rows", "columns"), [(3, 8), (7, 24)])
def test_the_innermost_loop_moves_its_pointers(rows: int, columns: int) -> None:
    """Rows and weights each have one: the counter of a loop around it is no part of the steps."""
    kernel = product(rows, columns)
    r = np.random.default_rng(0)
    x, w = (r.integers(-4, 5, n).astype(np.float32) for n in ((TERMS, rows), (TERMS, columns)))
    y = aligned(np.zeros((rows, columns), np.float32))
    compiled(kernel)(aligned(x), aligned(w), y)
    np.testing.assert_array_equal(y, x.T @ w)
    assert carried(kernel) == (2 if rows == 3 else 4)  # tiles of 3 and of 2 rows


def test_a_loop_moves_some_pointers_alone() -> None:
    """The others are computed from the counter: a register each would be too many."""
    k, n = Var("k", TERMS), MAX_CARRIED + 2
    buffers = [dense(f"b{i}", TERMS, 3) for i in range(n)]
    y = dense("y", 1)
    total = buffers[0][k, 0]
    for b in buffers[1:]:
        total = total + b[k, 0]
    kernel = apply("k", Definition(y, (Var("i", 1),), Reduce("add", (k,), total)), Schedule(), (*buffers, y))
    assert carried(kernel) == MAX_CARRIED
    arrays = [np.random.default_rng(i).integers(-4, 5, (TERMS, 3)).astype(np.float32) for i in range(n)]
    result = aligned(np.zeros(1, np.float32))
    compiled(kernel)(*map(aligned, arrays), result)
    assert result[0] == sum(a[:, 0].sum() for a in arrays)
