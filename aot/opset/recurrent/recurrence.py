"""Recurrences: the part of a recurrent network that depends on the previous step.

    for t:  gates = h[t] R^T                       [batch, gates]
            h[t + 1] = cell(a[t], gates, h[t])     a = x W^T + B for all steps, computed before

Internal operations: sequences decompose into them, IR files do not contain them. Sequences shorter than the tensor keep
their last state, and their output is zero from then on; in reverse, a sequence starts at its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Space, Var, cast, dense, prim, select
from aot.ir.conditions import Condition, alike
from aot.ir.op import LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType
from aot.opset.base.decomposition import wide
from aot.opset.base.families import axis
from aot.opset.recurrent.recurrent_cells import GRU, LSTM, RNN, Recurrent
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class Walk:
    """Axes of a recurrence: time, batch (0 if there is one sequence), and the position of step `t` in the tensors."""

    t: Var
    b: Var | Const
    steps: Dim
    lengths: Input | None
    reverse: bool

    @property
    def batch(self) -> tuple[Var, ...]:
        return (self.b,) if isinstance(self.b, Var) else ()

    @property
    def length(self) -> Expr | None:
        return None if self.lengths is None else prim("min", cast(self.lengths(self.b), DType.I64), self.steps)

    @property
    def place(self) -> Expr:
        """Position in the sequence that step `t` reads."""
        if not self.reverse:
            return self.t
        if self.length is None:
            return as_index(self.steps - 1 - self.t)
        return select(prim("lt", self.t, self.length), self.length - 1 - self.t, self.t)

    def new_or_old(self, new: Expr, old: Expr) -> Expr:
        """Return the new state, or the old one if the sequence is over."""
        return new if self.length is None else select(prim("lt", self.t, self.length), new, old)

    def output(self, y: Buffer, h: Buffer, j: Var) -> Definition:
        """Return the definition of y[b, t] from the states h[t + 1], in the order of the sequence."""
        slot = as_index(self.steps - self.t) if self.reverse else self.t + 1
        value: Expr = h[slot, self.b, j]
        if self.length is not None:
            slot = prim("max", self.length - self.t, 0) if self.reverse else slot
            value = select(prim("lt", self.t, self.length), h[slot, self.b, j], 0.0)
        return Definition(y, (*self.batch, self.t, j), value, (self.b, self.t, j))


def batch_of(state: Operand, data: Operand) -> Dim:
    """Return the batch of a state after the last step: the first state's, if it is a number, else the data's."""
    return state.shape[0] if isinstance(state.shape[0], int) else data.shape[0]


def as_index(n: Dim) -> Expr:
    return Const(n) if isinstance(n, int) else n


def walk(a: Input, lengths: Input | None, reverse: bool) -> Walk:
    batch, steps = a.shape[:2]
    return Walk(Var("t", steps), Const(0) if batch == 1 else Var("b", batch), steps, lengths, reverse)


@dataclass(frozen=True)
class Recurrence(Recurrent):
    """Recurrence from a [B, T, gates], first state [B, H] and R to outputs [B, T, H] and last state [B, H]."""

    reverse: bool = False

    def types(self, a: Operand, *states: Operand) -> tuple[TensorType, ...]:
        after = [TensorType(a.dtype, (batch_of(s, a), self.hidden_size)) for s in states]
        return TensorType(a.dtype, (*a.shape[:2], self.hidden_size)), *after

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        """Require that states and lengths have the batch size of the data."""
        position = 4 if isinstance(self, LSTM) else 4 - isinstance(self, RNN)
        data, *first = operands[: 1 + self.state_count]
        lengths = operands[position] if position < len(operands) else None
        assert data is not None
        rule = "the batch of a state must be that of the data"
        rules = [c for s in first if s is not None for c in alike(rule, s.shape[:1], data.shape[:1])]
        if lengths is not None:
            rules += alike("there is a length for each sequence", lengths.shape, data.shape[:1])
        return rules

    def states(self, name: str, at: Walk, first: Input, last: Buffer, j: Var) -> tuple[Buffer, Definition, Definition]:
        """Return memory for a state before each step and after the last, and the definitions of its start and end."""
        shape = (at.steps + 1, last.shape[0], self.hidden_size)
        memory = dense(name, *shape, space=Space.ARENA, dtype=last.dtype.compute)
        begin = Definition(memory, (*at.batch, j), first(at.b, j), (Const(0), at.b, j))
        end = Definition(last, (*at.batch, j), memory[at.steps, at.b, j], (at.b, j))
        return memory, begin, end

    def gate_sums(self, at: Walk, h: Buffer, r: Input, count: int, batch: Dim) -> tuple[Buffer, Definition]:
        """Return the buffer and definition of h[t] R^T for the first `count` gates."""
        n = self.hidden_size
        sums = dense("gates", batch, count * n, space=Space.ARENA, dtype=h.dtype)
        g, k = Var("g", count * n), axis("k", n)
        total = Reduce("add", (k,), h[at.t, at.b, k] * r(g, k))
        return sums, Definition(sums, (at.t, *at.batch, g), total, (at.b, g))


def recur(
    layer: Recurrent, a: Array, states: list[Array], r: Array, rb: Array | None, lengths: Array | None, reverse: bool
) -> list[Array]:
    """Compute outputs and last states step by step, for references."""
    batch, steps = a.shape[:2]
    ends = np.full(batch, steps) if lengths is None else np.clip(lengths.astype(np.int64), 0, steps)
    rows: Array = np.array(range(batch))
    y = np.zeros((batch, steps, layer.hidden_size))
    states = [wide(s) for s in states]
    for s in range(steps):
        alive = s < ends
        position = np.where(alive, ends - 1 - s if reverse else s, 0)
        shown = [np.where((s <= ends)[:, None], v, 0) for v in states]  # sequences that ended before have no state
        new = layer.step(wide(a[rows, position]), shown, r, rb)
        states = [np.where(alive[:, None], n, old) for n, old in zip(new, states, strict=True)]
        y[rows[alive], position[alive]] = states[0][alive]
    return [y, *states]


@op()
class RNNRecurrence(Recurrence, RNN, LoopOp):
    """h' = f(a + h R^T) over time."""

    def infer(self, a: Operand, h: Operand, r: Operand, lengths: Operand | None = None) -> tuple[TensorType, ...]:
        return self.types(a, h)

    def nest(
        self, outs: tuple[Buffer, ...], a: Input, h0: Input, r: Input, lengths: Input | None = None
    ) -> tuple[Work, ...]:
        at, j, k = walk(a, lengths, self.reverse), Var("j", self.hidden_size), axis("k", self.hidden_size)
        h, begin, end = self.states("h", at, h0, outs[1], j)
        (f,) = self.bounded()
        total = Reduce("add", (k,), h[at.t, at.b, k] * r(j, k), a(at.b, at.place, j))
        new = at.new_or_old(f.scalar(total), h[at.t, at.b, j])
        step = Definition(h, (at.t, *at.batch, j), new, (at.t + 1, at.b, j))
        return begin, Group("rnn", (at.t,), (), (step,)), at.output(outs[0], h, j), end

    def reference(self, a: Array, h: Array, r: Array, lengths: Array | None = None) -> tuple[Array, ...]:
        return tuple(x.astype(a.dtype) for x in recur(self, a, [h], r, None, lengths, self.reverse))


@op()
class GRURecurrence(Recurrence, GRU, LoopOp):
    """z, r = f(a_zr + h R_zr^T), n = g(a_n + ...), h' = (1 - z) n + z h over time.

    With `linear_before_reset`, R has all three gates and `inner` is the optional bias of h R_n^T; otherwise R has z and
    r, and `inner` is R_n, so that each product packs its own weights.
    """

    def infer(
        self, a: Operand, h: Operand, r: Operand, inner: Operand | None = None, lengths: Operand | None = None
    ) -> tuple[TensorType, ...]:
        return self.types(a, h)

    def nest(
        self,
        outs: tuple[Buffer, ...],
        a: Input,
        h0: Input,
        r: Input,
        inner: Input | None = None,
        lengths: Input | None = None,
    ) -> tuple[Work, ...]:
        at, j = walk(a, lengths, self.reverse), Var("j", self.hidden_size)
        h, begin, end = self.states("h", at, h0, outs[1], j)
        if self.linear_before_reset:
            members = self._before(at, h, a, r, inner, j)
        else:
            assert inner is not None, "R_n is an input of its own"
            members = self._after(at, h, a, r, inner, j)
        return begin, Group("gru", (at.t,), (), members), at.output(outs[0], h, j), end

    def _before(self, at: Walk, h: Buffer, a: Input, r: Input, rb: Input | None, j: Var) -> tuple[Definition, ...]:
        """Apply reset to the product with R_n: one product for all three gates."""
        n = self.hidden_size
        f, g = self.bounded()
        sums, sum_up = self.gate_sums(at, h, r, 3, h.shape[1])
        z, reset = (f.scalar(a(at.b, at.place, j + i * n) + sums[at.b, j + i * n]) for i in range(2))
        inner = sums[at.b, j + 2 * n] if rb is None else sums[at.b, j + 2 * n] + rb(j)
        new = g.scalar(a(at.b, at.place, j + 2 * n) + reset * inner)
        return sum_up, self._mix(at, h, z, new, j)

    def _after(self, at: Walk, h: Buffer, a: Input, r: Input, rn: Input, j: Var) -> tuple[Definition, ...]:
        """Apply reset to the state, before the product with R_n."""
        n, batch = self.hidden_size, h.shape[1]
        f, g = self.bounded()
        sums, sum_up = self.gate_sums(at, h, r, 2, batch)
        reset, fresh = (dense(name, batch, n, space=Space.ARENA, dtype=h.dtype) for name in ("reset", "fresh"))
        z, opened = (f.scalar(a(at.b, at.place, j + i * n) + sums[at.b, j + i * n]) for i in range(2))
        k = axis("k", n)
        total = Reduce("add", (k,), reset[at.b, k] * rn(j, k), a(at.b, at.place, j + 2 * n))
        axes = (at.t, *at.batch, j)
        return (
            sum_up,
            Definition(reset, axes, opened * h[at.t, at.b, j], (at.b, j)),
            Definition(fresh, axes, g.scalar(total), (at.b, j)),
            self._mix(at, h, z, fresh[at.b, j], j),
        )

    @staticmethod
    def _mix(at: Walk, h: Buffer, z: Expr, new: Expr, j: Var) -> Definition:
        old = h[at.t, at.b, j]
        return Definition(h, (at.t, *at.batch, j), at.new_or_old(new + z * (old - new), old), (at.t + 1, at.b, j))

    def reference(
        self, a: Array, h: Array, r: Array, inner: Array | None = None, lengths: Array | None = None
    ) -> tuple[Array, ...]:
        stacked = r if inner is None or self.linear_before_reset else np.concatenate([r, inner])
        rb = inner if self.linear_before_reset else None
        return tuple(x.astype(a.dtype) for x in recur(self, a, [h], stacked, rb, lengths, self.reverse))


@op()
class LSTMRecurrence(Recurrence, LSTM, LoopOp):
    """f, i, c~, o from a + h R^T; c' = f c + i c~; h' = o h(c') over time."""

    bound: float = 0.0

    def state_clip(self) -> float:
        return self.bound

    def infer(
        self, a: Operand, h: Operand, c: Operand, r: Operand, lengths: Operand | None = None
    ) -> tuple[TensorType, ...]:
        return self.types(a, h, c)

    def nest(
        self, outs: tuple[Buffer, ...], a: Input, h0: Input, c0: Input, r: Input, lengths: Input | None = None
    ) -> tuple[Work, ...]:
        def products(at: Walk, h: Buffer) -> tuple[Buffer, tuple[Definition, ...]]:
            sums, sum_up = self.gate_sums(at, h, r, 4, a.shape[0])
            return sums, (sum_up,)

        return self.works(outs, a, h0, c0, lengths, products)

    def works(
        self,
        outs: tuple[Buffer, ...],
        a: Input,
        h0: Input,
        c0: Input,
        lengths: Input | None,
        products: Callable[[Walk, Buffer], tuple[Buffer, tuple[Definition, ...]]],
    ) -> tuple[Work, ...]:
        """Return the works. `products`: the buffer of h[t] R^T, of all states h, and the definitions that write it."""
        n, j = self.hidden_size, Var("j", self.hidden_size)
        at = walk(a, lengths, self.reverse)
        h, begin_h, end_h = self.states("h", at, h0, outs[1], j)
        c, begin_c, end_c = self.states("c", at, c0, outs[2], j)
        f, g, last = (*self.bounded()[:2], self.state_activation())
        sums, product_works = products(at, h)
        forget, update, cell, out = (a(at.b, at.place, j + i * n) + sums[at.b, j + i * n] for i in range(4))
        axes, now, then = (at.t, *at.batch, j), (at.t, at.b, j), (at.t + 1, at.b, j)
        new_c = f.scalar(forget) * c[now] + f.scalar(update) * g.scalar(cell)
        members = (
            *product_works,
            Definition(c, axes, at.new_or_old(new_c, c[now]), then),
            Definition(h, axes, at.new_or_old(f.scalar(out) * last.scalar(c[then]), h[now]), then),
        )
        return begin_h, begin_c, Group("lstm", (at.t,), (), members), at.output(outs[0], h, j), end_h, end_c

    def reference(self, a: Array, h: Array, c: Array, r: Array, lengths: Array | None = None) -> tuple[Array, ...]:
        return tuple(x.astype(a.dtype) for x in recur(self, a, [h, c], r, None, lengths, self.reverse))
