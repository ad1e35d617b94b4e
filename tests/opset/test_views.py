"""View operations: their pieces cover the outputs once, and say what the references say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from aot.ir.op import ComputeOp, Element, ViewOp
from aot.ir.operand import Input, Operand, Piece
from aot.ir.types import TensorType
from tests.cases import Case, tables
from tests.evaluate import computed

CASES = [
    pytest.param(case, id=f"{name}-{i}-{case.name}")
    for name, table in sorted(tables().items())
    for i, case in enumerate(table)
    if isinstance(case.op, ViewOp)
]


@dataclass(frozen=True)
class Read(ComputeOp):
    """The elements of one piece."""

    piece: Piece

    def compute(self, out: TensorType, *xs: Input) -> Element:
        return lambda *index: xs[self.piece.source](*self.piece.index(*index))


@pytest.mark.parametrize("case", CASES)
def test_pieces_agree_with_reference(case: Case) -> None:
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
