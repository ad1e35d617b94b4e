"""The recurrence of an LSTM with weights of bytes: the state is quantised before each step, and sums are integers.

    for t:  low, high = min(h[t], 0), max(h[t], 0)                over all sequences that have not ended
            scale = (high - low) / 255, or 1 for zeros            zero = round(-low / scale)
            q = u8(round(h[t] / scale) + zero)                    [batch, hidden]
            gates = scale S[g] (q R^T - zero sum(R[g]))           [batch, gates]
            h[t + 1] = cell(a[t], gates, h[t])

So DynamicQuantizeLSTM of ONNX Runtime computes. Internal: IR files do not contain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Space, Var, cast, dense, prim, select
from aot.ir.conditions import Condition
from aot.ir.op import LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.base.families import axis
from aot.opset.recurrent.recurrence import LSTMRecurrence, Walk, recur
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

LEVELS = 255.0  # steps between the least and the largest u8


@op()
class QuantisedLSTMRecurrence(LSTMRecurrence, LoopOp):
    """LSTMRecurrence with R [gates, H] in i8, and its scales and sums of rows, [gates] each."""

    def infer(  # pyrefly: ignore[bad-override]  it has other operands
        self,
        a: Operand,
        h: Operand,
        c: Operand,
        r: Operand,
        scale: Operand,
        sums: Operand,
        lengths: Operand | None = None,
    ) -> tuple[TensorType, ...]:
        if (r.dtype, scale.dtype, sums.dtype) != (DType.I8, DType.F32, DType.I32):
            raise ShapeError(
                f"{self.type}: R must be i8, scales f32, sums i32, got {r.type}, {scale.type}, {sums.type}"
            )
        return self.types(a, h, c)

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        return super().conditions(*operands[:4], *operands[6:])

    def nest(  # pyrefly: ignore[bad-override]  it has other operands
        self, outs: tuple[Buffer, ...], a: Input, h0: Input, c0: Input, *rest: Input | None
    ) -> tuple[Work, ...]:
        r, scale, sums, lengths = (*rest, None)[:4]
        assert r is not None and scale is not None and sums is not None
        return self.works(outs, a, h0, c0, lengths, lambda at, h: self._quantized(at, h, r, scale, sums))

    def _quantized(
        self, at: Walk, h: Buffer, r: Input, scales: Input, sums: Input
    ) -> tuple[Buffer, tuple[Definition, ...]]:
        """Return the gates, and the definitions that find the range of h[t], quantise it, and sum its products."""
        n, batch = self.hidden_size, h.shape[1]
        low, high, step = (dense(name, 1, space=Space.ARENA) for name in ("low", "high", "step"))
        zero = dense("zero", 1, space=Space.ARENA, dtype=DType.I32)
        q = dense("q", batch, n, space=Space.ARENA, dtype=DType.U8)
        gates = dense("gates", batch, 4 * n, space=Space.ARENA)
        rows: tuple[Var, ...] = (Var("row", batch),) if at.batch else ()
        k, g, first = axis("k", n), Var("g", 4 * n), (Const(0),)
        row = replace(at, b=rows[0]) if rows else at
        every = h[at.t, row.b, k]
        if row.length is not None:  # sequences that ended before have no part in the range
            every = select(prim("le", at.t, row.length), every, 0.0)
        span = high[0] - low[0]
        width = select(prim("eq", span, 0.0), 1.0, span / LEVELS)
        level = prim("round_even", h[at.t, at.b, k] / step[0]) + cast(zero[0], DType.F32)
        total = Reduce("add", (k,), cast(q[at.b, k], DType.I32) * cast(r(g, k), DType.I32)) - zero[0] * sums(g)
        return gates, (
            Definition(low, (at.t,), prim("min", Reduce("min", (*rows, k), every), 0.0), first),
            Definition(high, (at.t,), prim("max", Reduce("max", (*rows, k), every), 0.0), first),
            Definition(step, (at.t,), width, first),
            Definition(zero, (at.t,), cast(_bounded(prim("round_even", -low[0] / step[0])), DType.I32), first),
            Definition(q, (at.t, *at.batch, k), cast(_bounded(level), DType.U8), (at.b, k)),
            Definition(gates, (at.t, *at.batch, g), cast(total, DType.F32) * (step[0] * scales(g)), (at.b, g)),
        )

    def step(self, a: Array, states: Sequence[Array], r: Array, rb: Array | None) -> tuple[Array, ...]:
        """Compute a step from the numbers of R and, in `rb`, its scales."""
        assert rb is not None
        h = states[0].astype(np.float32)
        low, high = min(h.min(initial=0), np.float32(0)), max(h.max(initial=0), np.float32(0))
        scale = (high - low) / np.float32(LEVELS) if high > low else np.float32(1)
        zero = np.clip(np.rint(-low / scale), 0, LEVELS)
        q = np.clip(np.rint(h / scale) + zero, 0, LEVELS)
        total = (q.astype(np.int64) - int(zero)) @ r.T.astype(np.int64)
        gates = total.astype(np.float32) * (scale * rb)
        f, g, _ = self.bounded()
        forget, update, cell, out = np.split(a + gates, 4, 1)
        new = f.array(forget) * states[1] + f.array(update) * g.array(cell)
        return f.array(out) * self.state_activation().array(new), new

    def reference(  # pyrefly: ignore[bad-override]  it has other operands
        self, a: Array, h: Array, c: Array, r: Array, scale: Array, sums: Array, lengths: Array | None = None
    ) -> tuple[Array, ...]:
        return tuple(x.astype(a.dtype) for x in recur(self, a, [h, c], r, scale, lengths, self.reverse))


def _bounded(x: Expr) -> Expr:
    return prim("min", prim("max", x, 0.0), LEVELS)
