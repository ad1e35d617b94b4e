"""View operations: their pieces cover the outputs once, and say what the references say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Var, as_expr
from aot.ir.op import ComputeOp, Element, ViewOp
from aot.ir.operand import Input, Operand, Piece
from aot.ir.types import TensorType
from aot.opset.movement.movement import Rolled
from aot.runtime.abi import DType
from tests.cases import Case, tables
from tests.codegen.interpreter import Interpreter
from tests.each import check_each
from tests.evaluate import computed

CASES = [case for table in tables().values() for case in table if isinstance(case.op, ViewOp)]


@dataclass(frozen=True)
class Read(ComputeOp):
    """The elements of one piece."""

    piece: Piece

    def compute(self, out: TensorType, *xs: Input) -> Element:
        return lambda *index: xs[self.piece.source](*self.piece.index(*index))


def test_pieces_agree_with_reference() -> None:
    check_each(check_pieces, CASES, lambda case: f"{case.op} {case.name}")


def check_pieces(case: Case) -> None:
    assert isinstance(case.op, ViewOp)
    given = zip(case.operands(), case.arrays, strict=True)
    static = [o and Operand(TensorType(o.dtype, a.shape), o.value) for o, a in given if a is not None or o is None]
    types, expected = case.op.outputs(*static), case.op.evaluate(*case.arrays)
    found = [np.zeros_like(a) for a in expected]
    times = [np.zeros(a.shape, np.int64) for a in expected]
    for piece in case.op.pieces(types, *static):
        part = TensorType(types[piece.output].dtype, piece.extent)
        if 0 in part.static_shape:
            continue
        starts = TensorType(part.dtype, piece.start).static_shape
        box = tuple(slice(s, s + n) for s, n in zip(starts, part.static_shape, strict=True))
        found[piece.output][box] = computed(Read(piece), static, case.arrays, part)
        times[piece.output][box] += 1
    for a, count, wanted in zip(found, times, expected, strict=True):
        assert np.all(count == 1)
        assert np.array_equal(a, wanted)


@pytest.mark.parametrize("size", [0, 1, 5, 7])
def test_parts_of_a_roll_are_the_whole(size: int) -> None:
    """A dimension of run time without elements has none in either part: they were stored outside of memory."""
    n = Var("n", None)
    x = Operand(TensorType(DType.F32, (3, n)))
    pieces = Rolled((0, 7)).pieces((x.type,), x)
    counts = [Interpreter().value(rewrite(as_expr(p.extent[1], DType.I64), {n: Const(size)})) for p in pieces]
    assert counts == [7 % size if size else 0, size - 7 % size if size else 0]
