"""Recurrent networks over a sequence: per direction one product with the whole input, then the recurrence.

a = x W^T + B     [batch, time, gates]     MatMul, Add
y, h = recurrence(a, h0, R)                aot.opset.recurrent.recurrence
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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


Rest = tuple[Sequence[OutPort], OutPort | None]


@dataclass(frozen=True)
class Directed(Recurrent, ABC):
    """One or two directions: x [B, T, I], states [B, D, H], lengths [B], W [D, .., I], R [D, .., H], B [D, ..]."""

    direction: Direction = Direction.FORWARD

    @property
    def reversals(self) -> tuple[bool, ...]:
        """True for each direction that runs backwards."""
        return (False, True) if self.direction is Direction.BIDIRECTIONAL else (self.direction is Direction.REVERSE,)

    def infer(self, x: Operand, *rest: Operand) -> tuple[TensorType, ...]:
        *states, lengths, w, r, b = rest
        self.check_weights(x, states, w, r, b)
        count = len(self.reversals)
        if x.rank != 3:
            raise ShapeError(f"{self.type}: X must have rank 3, got {x.rank}")
        if lengths.rank != 1 or not lengths.dtype.is_integer:
            raise ShapeError(f"{self.type}: sequence lengths must be one integer for each sequence, got {lengths.type}")
        for p in (w, r, b):
            self.expect("directions", p.shape[0], count)
        self.expect("number of sequence lengths", lengths.shape[0], x.shape[0])
        after = [TensorType(x.dtype, (batch_of(s, x), count, self.hidden_size)) for s in states]
        return TensorType(x.dtype, (x.shape[0], count, x.shape[1], self.hidden_size)), *after

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        """Require that states have the batch size of the data."""
        data, *states = [o for o in operands[: 1 + self.state_count] if o is not None]
        rule = "the batch of a state must be that of the data"
        return [c for s in states for c in alike(rule, s.shape[:1], data.shape[:1])]

    def settings(self, reverse: bool) -> dict[str, Any]:
        """Return the attributes of the recurrence of one direction."""
        names = ("hidden_size", "activations", "activations_alpha", "activations_beta", "clip")
        return {n: getattr(self, n) for n in names} | {"reverse": reverse}

    def decompose(self, build: Builder, x: OutPort, *rest: OutPort) -> tuple[OutPort, ...]:
        """Build the outputs: for each direction the products with the input, then the recurrence."""
        *states, lengths, w, r, b = rest
        count, rows = len(self.reversals), self.gates * self.hidden_size
        dtype, short = x.type.dtype, None if is_full(x, lengths) else lengths
        x, w, r, b = (widened(build, p) for p in (x, w, r, b))
        first = [one_each(build, widened(build, s), (0, self.hidden_size), count, 1) for s in states]
        weights, inner = (one_each(build, p, (rows, -1), count, 0) for p in (w, r))
        biases = one_each(build, b, (-1,), count, 0)
        results = [
            ports(self.recurrence(build, x, each, self.settings(backwards), ([s[d] for s in first], short)))
            for d, (backwards, *each) in enumerate(zip(self.reversals, weights, inner, biases, strict=True))
        ]
        outs = [[build.Unsqueeze(p, numbers(build, (1,))) for p in ports] for ports in zip(*results, strict=True)]
        joined = [p[0] if count == 1 else build.Concat(*p, axis=1) for p in outs]
        return tuple(narrowed(build, p, dtype) for p in joined)

    @abstractmethod
    def recurrence(
        self, build: Builder, x: OutPort, weights: Sequence[OutPort], settings: Mapping[str, Any], rest: Rest
    ) -> OutPort:
        """Build the recurrence of one direction. `rest`: its first states, and its lengths if they differ."""

    def reference(self, x: Array, *rest: Array) -> tuple[Array, ...]:
        *states, lengths, w, r, b = rest
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

    arity = (6, 6)

    def recurrence(
        self, build: Builder, x: OutPort, weights: Sequence[OutPort], settings: Mapping[str, Any], rest: Rest
    ) -> OutPort:
        (w, r, b), (states, lengths) = weights, rest
        return build(RNNRecurrence(**settings), product(build, x, w, b), *states, r, lengths, outputs=2)


@op("opset5")
class GRUSequence(Directed, GRU, DecomposedOp):
    """GRUCell over time: Y [B, D, T, H] and the last state [B, D, H]."""

    arity = (6, 6)

    def recurrence(
        self, build: Builder, x: OutPort, weights: Sequence[OutPort], settings: Mapping[str, Any], rest: Rest
    ) -> OutPort:
        (w, r, b), (states, lengths), n = weights, rest, self.hidden_size
        layer = GRURecurrence(**settings, linear_before_reset=self.linear_before_reset)
        outer, inner = gru_biases(build, self, b)
        if not self.linear_before_reset:
            r, inner = sections(build, r, (2 * n, n), 0)
        return build(layer, product(build, x, w, outer), *states, r, inner, lengths, outputs=2)


@op("opset5")
class LSTMSequence(Directed, LSTM, DecomposedOp):
    """LSTMCell over time: Y [B, D, T, H], the last hidden state and the last cell state [B, D, H]."""

    arity = (7, 7)

    def recurrence(
        self, build: Builder, x: OutPort, weights: Sequence[OutPort], settings: Mapping[str, Any], rest: Rest
    ) -> OutPort:
        (w, r, b), (states, lengths) = weights, rest
        layer = LSTMRecurrence(**settings, bound=self.state_clip())
        return build(layer, product(build, x, w, b), *states, r, lengths, outputs=3)


@op()
class ClippedLSTMSequence(LSTMSequence):
    """LSTMSequence whose `clip` bounds the inputs of all activations, as in ONNX. Internal: not in IR files."""

    def state_clip(self) -> float:
        return self.clip
