"""Short rows that a group computes some at a time, member by member: the same bits as row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Buffer, Reduce, Size, Space, Var, dense, prim
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from tests.codegen.running import aligned, compiled

NATIVE = replace(parse_target("native"), cores=1)


def softmax(rows: Size, columns: Size) -> tuple[Group, tuple[Buffer, ...]]:
    r, j, k = Var("r", rows), Var("j", columns), Var("k", columns)
    x, y = dense("x", rows, columns), dense("y", rows, columns)
    top, total = (dense(name, r, space=Space.REGISTERS) for name in ("top", "total"))
    powers = dense("powers", r, columns, space=Space.STACK)
    members = (
        (top, (r,), Reduce("max", (k,), x[r, k])),
        (powers, (r, j), prim("exp", x[r, j] - top[r])),
        (total, (r,), prim("div", 1.0, Reduce("add", (k,), powers[r, k]))),
        (y, (r, j), powers[r, j] * total[r]),
    )
    return Group("rows", (r,), (top, powers, total), tuple(Definition(*m) for m in members)), (x, y)


@pytest.mark.parametrize(("rows", "columns", "size"), [(100, 20, 16), (33, 49, 8), (70, 250, 4)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_blocks_have_the_bits_of_rows(rows: int, columns: int, size: int, dynamic: bool) -> None:
    n: Size = Var("n", 1 << 20, typical=rows) if dynamic else rows
    work, params = softmax(n, columns)
    plan = choose(work, NATIVE, frozenset())
    assert [(t.axis, t.size) for t in plan.tile] == [("r", size)]
    x = aligned(np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32))
    found: list[bytes] = []
    for schedule in (plan, replace(plan, tile=())):
        y = aligned(np.zeros((rows, columns), np.float32))
        sizes = (n,) if isinstance(n, Var) else ()
        compiled(apply("k", work, schedule, params, sizes), NATIVE)(x, y, *([rows] if dynamic else []))
        found.append(y.tobytes())
        assert np.allclose(y.sum(-1), 1, atol=1e-6)
    assert found[0] == found[1]


@pytest.mark.parametrize(("rows", "columns", "cores"), [(100, 1000, 1), (3, 20, 1), (100, 20, 64)])
def test_long_rows_and_few_ones_go_alone(rows: int, columns: int, cores: int) -> None:
    """Long rows would leave L1, and each thread gets some rows."""
    work, _ = softmax(rows, columns)
    target: Target = replace(NATIVE, cores=cores)
    assert choose(work, target, frozenset()).tile == ()


def test_rows_of_dynamic_length_go_alone() -> None:
    """Temporaries of 16 rows of dynamic length could fill the stack, so that rows are computed one by one."""
    n = Var("n", 1 << 13)
    work, _ = softmax(100, n)
    assert choose(work, NATIVE, frozenset()).tile == ()
