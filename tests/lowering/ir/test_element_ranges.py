"""Ranges of integers that constants decide."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.loops import Const, Expr, Load, Space, cast, dense, prim, select
from aot.compilation.compilation import Compilation
from aot.ir.graph import Graph
from aot.lowering.ir.element_ranges import ElementRanges, Range
from aot.lowering.ir.steps import Steps
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.cases import Case, tables
from tests.opset.test_compiled import add

STEPS = Steps("one")
LINKS = STEPS.constant("links", np.array([[9, 1], [7, 3], [8, 0]], np.int32))
CELL = dense("cell", space=Space.REGISTERS, dtype=DType.I64)
X = dense("x", 4)
AT = Load(CELL, ())
NEXT = cast(Load(LINKS, (AT, Const(1))), DType.I64)
MORE = cast(prim("lt", Load(X, (AT,)), 0.0), DType.I64)
DATA = cast(Load(X, (AT,)), DType.I64)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([Const(0), NEXT], (0, 3)),
        ([Const(5), NEXT + MORE], (0, 5)),
        ([select(prim("lt", AT, 2), NEXT, Const(-1))], (-1, 3)),
        ([prim("and", DATA, 31)], (0, 31)),
        ([Const(0), AT + 1], None),
        ([Const(0), DATA], None),
        ([Const(0), NEXT * 2], None),
        ([Const(0), None], None),
    ],
)
def test_cells(stored: list[Expr | None], expected: Range | None) -> None:
    assert ElementRanges(STEPS.values).of(AT, {"cell": stored}) == expected


def test_a_column_of_a_constant_has_a_range_of_its_own() -> None:
    ranges = ElementRanges(STEPS.values)
    assert ranges.of(Load(LINKS, (AT, Const(0))), {}) == (7, 9)
    assert ranges.of(Load(LINKS, (AT, AT)), {}) == (0, 9)
    assert ranges.of(Load(X, (AT,)), {}) is None


@pytest.mark.parametrize("case", tables()["estimators.trees"][:4], ids=lambda c: c.name)
def test_walks_of_trees_have_no_clamps(case: Case) -> None:
    """Each step of a walk waits for the one before: a clamp in it costs a third of its speed."""
    graph = Graph("one")
    add(graph, case, 0)
    assert "max(min(" not in Compilation(graph, CompileOptions(target="x86-64-v3")).loops()
