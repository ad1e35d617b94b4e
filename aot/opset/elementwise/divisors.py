"""Greatest common divisors, by Euclid's algorithm: its steps depend on the numbers."""

from __future__ import annotations

import numpy as np

from aot.codegen.ir.loops import Buffer, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.base.row_major import unravel, volume
from aot.runtime.errors import ShapeError


@loops
def _divisors(out: Scripted, x: Buffer, y: Buffer, shape: Scripted) -> None:
    for e in parallel(volume(shape)):
        at = unravel(e, shape)
        a = var(x[at], x.dtype)
        b = var(y[at], y.dtype)
        while b != 0:
            rest = var(prim("rem", a, b), x.dtype)
            a = b
            b = rest
        out[at] = prim("abs", a) if out.dtype.is_signed else a


@op()
class GreatestDivisor(LoopOp):
    """The greatest integer that divides both, 0 for two zeros. An internal operation; shapes are equal."""

    elements = Elements.INTEGER

    def infer(self, x: Operand, y: Operand) -> TensorType:
        if x.dtype is not y.dtype or x.rank != y.rank:
            raise ShapeError(f"GreatestDivisor: inputs must have one type, got {x.type} and {y.type}")
        return TensorType(x.dtype, x.shape)

    def conditions(self, x: Operand, y: Operand) -> list[Condition]:
        return list(alike("GreatestDivisor: shapes are equal", x.shape, y.shape))

    def nest(self, outs: tuple[Buffer, ...], x: Input, y: Input) -> tuple[Work, ...]:
        return (_divisors(outs[0], x.buffer, y.buffer, x.shape),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.gcd(x, y)
