"""Recurrent networks over a sequence: per direction one product with the whole input, then the recurrence.

a = x W^T + B     [batch, time, gates]     MatMul, Add
y, h = recurrence(a, h0, R)                aot.opset.recurrent.recurrence
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.conditions import Condition, alike
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType, simplify
from aot.opset.base.decomposition import narrowed, numbers, reshaped, wide, widened
from aot.opset.elementwise.broadcasting import Broadcast
from aot.opset.recurrent.recurrence import GRURecurrence, LSTMRecurrence, RNNRecurrence, batch_of, recur
from aot.opset.recurrent.recurrent_cells import GRU, LSTM, RNN, Recurrent, gru_biases, linear, product, sections, split
from aot.runtime.errors import ShapeError


class Direction(StrEnum):
    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"


@dataclass(frozen=True)
class Directed(Recurrent, ABC):
    """One or two directions: x [B, T, I], states [B, D, H], lengths [B], W [D, .., I], R [D, .., H], B [D, ..]."""

    direction: Direction = Direction.FORWARD

    @property
    def reversals(self) -> tuple[bool, ...]:
        """True for each direction that runs backwards."""
        return (False, True) if self.direction is Direction.BIDIRECTIONAL else (self.direction is Direction.REVERSE,)

    def types(self, x: Operand, states: Sequence[Operand], lengths: Operand, *parts: Operand) -> tuple[TensorType, ...]:
        count = len(self.reversals)
        if x.rank != 3:
            raise ShapeError(f"{self.type}: X must have rank 3, got {x.rank}")
        if lengths.rank != 1 or not lengths.dtype.is_integer:
            raise ShapeError(f"{self.type}: sequence lengths are one integer for each sequence, got {lengths.type}")
        for p in parts:
            self.expect("directions", p.shape[0], count)
        self.expect("number of sequence lengths", lengths.shape[0], x.shape[0])
        after = [TensorType(x.dtype, (batch_of(s, x), count, self.hidden_size)) for s in states]
        return TensorType(x.dtype, (x.shape[0], count, x.shape[1], self.hidden_size)), *after

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        """Require that states have the batch size of the data."""
        data, *states = [o for o in operands[: 3 if isinstance(self, LSTM) else 2] if o is not None]
        rule = "the batch of a state must be that of the data"
        return [c for s in states for c in alike(rule, s.shape[:1], data.shape[:1])]

    def settings(self, reverse: bool) -> dict[str, Any]:
        """Return the attributes of the recurrence of one direction."""
        names = ("hidden_size", "activations", "activations_alpha", "activations_beta", "clip")
        return {n: getattr(self, n) for n in names} | {"reverse": reverse}

    def unrolled(
        self, build: Builder, x: OutPort, states: list[OutPort], lengths: OutPort, w: OutPort, r: OutPort, b: OutPort
    ) -> tuple[OutPort, ...]:
        """Build the outputs: for each direction the products with the input, then the recurrence."""
        count, rows = len(self.reversals), self.gates * self.hidden_size
        dtype, short = x.type.dtype, None if is_full(x, lengths) else lengths
        x, w, r, b = (widened(build, p) for p in (x, w, r, b))
        first = [one_each(build, widened(build, s), (0, self.hidden_size), count, 1) for s in states]
        weights, inner = (one_each(build, p, (rows, -1), count, 0) for p in (w, r))
        biases = one_each(build, b, (-1,), count, 0)
        results = [
            self.recurrence(build, backwards, x, [s[d] for s in first], weights[d], inner[d], biases[d], short)
            for d, backwards in enumerate(self.reversals)
        ]
        outs = [[build.Unsqueeze(p, numbers(build, (1,))) for p in ports] for ports in zip(*results, strict=True)]
        joined = [p[0] if count == 1 else build.Concat(*p, axis=1) for p in outs]
        return tuple(narrowed(build, p, dtype) for p in joined)

    @abstractmethod
    def recurrence(
        self,
        build: Builder,
        reverse: bool,
        x: OutPort,
        states: list[OutPort],
        w: OutPort,
        r: OutPort,
        b: OutPort,
        lengths: OutPort | None,
    ) -> list[OutPort]:
        """Build outputs and last states of one direction."""

    def run(self, x: Array, states: list[Array], lengths: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        """Compute all directions, for references."""
        rows = self.gates * self.hidden_size
        results = [
            recur(
                self,
                linear(x, w[d]) + wide(b[d, :rows]),
                [s[:, d] for s in states],
                r[d],
                b[d, rows:] if b.shape[1] > rows else None,
                lengths,
                backwards,
            )
            for d, backwards in enumerate(self.reversals)
        ]
        return tuple(np.stack(parts, 1).astype(x.dtype) for parts in zip(*results, strict=True))


def one_each(build: Builder, port: OutPort, shape: tuple[int, ...], count: int, axis: int) -> list[OutPort]:
    """Return the slice of each direction, without the direction axis."""
    parts = split(build, port, count, axis) if count > 1 else [port]
    return [reshaped(build, p, shape) for p in parts]


def is_full(x: OutPort, lengths: OutPort) -> bool:
    """True if every sequence is known to be as long as the tensor."""
    same = lengths.node.source(0) if isinstance(lengths.node.op, Broadcast) else lengths
    known = same.value
    return known is not None and all(simplify(n) == x.shape[1] for n in known.reshape(-1).tolist())


def ports(first: OutPort) -> list[OutPort]:
    return list(first.node.out_ports().values())


@op("opset5")
class RNNSequence(Directed, RNN, DecomposedOp):
    """RNNCell over time: Y [B, D, T, H] and the last state [B, D, H]."""

    def infer(
        self, x: Operand, h: Operand, lengths: Operand, w: Operand, r: Operand, b: Operand
    ) -> tuple[TensorType, ...]:
        self.check_weights(x, h, w, r, b, 1)
        return self.types(x, [h], lengths, w, r, b)

    def decompose(
        self, build: Builder, x: OutPort, h: OutPort, lengths: OutPort, w: OutPort, r: OutPort, b: OutPort
    ) -> tuple[OutPort, ...]:
        return self.unrolled(build, x, [h], lengths, w, r, b)

    def recurrence(
        self,
        build: Builder,
        reverse: bool,
        x: OutPort,
        states: list[OutPort],
        w: OutPort,
        r: OutPort,
        b: OutPort,
        lengths: OutPort | None,
    ) -> list[OutPort]:
        layer = RNNRecurrence(**self.settings(reverse))
        return ports(build(layer, product(build, x, w, b), states[0], r, lengths, outputs=2))

    def reference(self, x: Array, h: Array, lengths: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        return self.run(x, [h], lengths, w, r, b)


@op("opset5")
class GRUSequence(Directed, GRU, DecomposedOp):
    """GRUCell over time: Y [B, D, T, H] and the last state [B, D, H]."""

    def infer(
        self, x: Operand, h: Operand, lengths: Operand, w: Operand, r: Operand, b: Operand
    ) -> tuple[TensorType, ...]:
        self.check_weights(x, h, w, r, b, self.bias_gates)
        return self.types(x, [h], lengths, w, r, b)

    def decompose(
        self, build: Builder, x: OutPort, h: OutPort, lengths: OutPort, w: OutPort, r: OutPort, b: OutPort
    ) -> tuple[OutPort, ...]:
        return self.unrolled(build, x, [h], lengths, w, r, b)

    def recurrence(
        self,
        build: Builder,
        reverse: bool,
        x: OutPort,
        states: list[OutPort],
        w: OutPort,
        r: OutPort,
        b: OutPort,
        lengths: OutPort | None,
    ) -> list[OutPort]:
        layer = GRURecurrence(**self.settings(reverse), linear_before_reset=self.linear_before_reset)
        n = self.hidden_size
        outer, inner = gru_biases(build, self, b)
        if not self.linear_before_reset:
            r, inner = sections(build, r, (2 * n, n), 0)
        return ports(build(layer, product(build, x, w, outer), states[0], r, inner, lengths, outputs=2))

    def reference(self, x: Array, h: Array, lengths: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        return self.run(x, [h], lengths, w, r, b)


@op("opset5")
class LSTMSequence(Directed, LSTM, DecomposedOp):
    """LSTMCell over time: Y [B, D, T, H], the last hidden state and the last cell state [B, D, H]."""

    def infer(
        self, x: Operand, h: Operand, c: Operand, lengths: Operand, w: Operand, r: Operand, b: Operand
    ) -> tuple[TensorType, ...]:
        self.check_weights(x, h, w, r, b, 4, c)
        return self.types(x, [h, c], lengths, w, r, b)

    def decompose(
        self, build: Builder, x: OutPort, h: OutPort, c: OutPort, lengths: OutPort, w: OutPort, r: OutPort, b: OutPort
    ) -> tuple[OutPort, ...]:
        return self.unrolled(build, x, [h, c], lengths, w, r, b)

    def recurrence(
        self,
        build: Builder,
        reverse: bool,
        x: OutPort,
        states: list[OutPort],
        w: OutPort,
        r: OutPort,
        b: OutPort,
        lengths: OutPort | None,
    ) -> list[OutPort]:
        layer = LSTMRecurrence(**self.settings(reverse), bound=self.state_clip())
        return ports(build(layer, product(build, x, w, b), *states, r, lengths, outputs=3))

    def reference(
        self, x: Array, h: Array, c: Array, lengths: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        return self.run(x, [h, c], lengths, w, r, b)


@op()
class ClippedLSTMSequence(LSTMSequence):
    """LSTMSequence whose `clip` bounds the inputs of all activations, as in ONNX. Internal: not in IR files."""

    def state_clip(self) -> float:
        return self.clip
