"""Definitions of the operations of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Space, Var, dense
from aot.compilation.driver import stages
from aot.ir.op import LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.types import TensorType
from aot.runtime.errors import InternalError
from tests.passes.check import graph_of


@dataclass(frozen=True)
class Twice(LoopOp):
    """4 x by way of two temporaries that have one name."""

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        i, n = Var("i", 8), Var("n", 4)
        one, other = dense("kept", 8, space=Space.ARENA), dense("kept", 4, space=Space.ARENA)
        first, second = Definition(one, (i,), x(i) * 4.0), Definition(other, (n,), x(n) * 0.0)
        return first, second, Definition(outs[0], (i,), one[i] + other[i // 2])


def test_temporaries_of_one_operation_have_names_of_their_own() -> None:
    graph = graph_of(lambda b, x: b(Twice(), x), (8,))
    with pytest.raises(InternalError, match="two buffers are called 'kept'"):
        _ = stages(graph).steps
