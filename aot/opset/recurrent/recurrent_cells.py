"""One step of the recurrent networks: gate equations of RNN, GRU and LSTM, and the cells themselves.

a(x) = x W^T + B        contribution of the input to the gates
RNN     h' = f(a + h R^T)
GRU     z, r = f(a_zr + h R_zr^T)    n = g(a_n + (r h) R_n^T)    h' = (1 - z) n + z h
        linear_before_reset:         n = g(a_n + r (h R_n^T + Rb_n))
LSTM    f, i, o = f(a_fio + h R_fio^T)    c~ = g(a_c + h R_c^T)    c' = f c + i c~    h' = o h(c')
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import zip_longest
from typing import ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, Op
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, dim_text
from aot.opset.base.decomposition import narrowed, numbers, wide, widened
from aot.opset.recurrent.cell_activations import Activation, activation
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class Recurrent(Op, ABC):
    """Attributes of all recurrent operations. `clip`, if positive, bounds the inputs of the gates' activations."""

    hidden_size: int = 0
    activations: tuple[str, ...] = ()
    activations_alpha: tuple[float, ...] = ()
    activations_beta: tuple[float, ...] = ()
    clip: float = 0.0

    gates: ClassVar[int] = 1
    state_count: ClassVar[int] = 1
    usual: ClassVar[tuple[str, ...]] = ("tanh",)

    @property
    def bias_gates(self) -> int:
        """Gates that B has biases for."""
        return self.gates

    def written_out(self) -> Op:
        return replace(self, activations=self.activations or self.usual)

    def functions(self) -> tuple[Activation, ...]:
        """Return the activations with their parameters."""
        names = self.activations or self.usual
        if len(names) != len(self.usual):
            raise ShapeError(f"{self.type}: there must be {len(self.usual)} activations, got {len(names)}")
        parameters = zip_longest(names, self.activations_alpha[: len(names)], self.activations_beta[: len(names)])
        return tuple(activation(self.type, name, alpha, beta) for name, alpha, beta in parameters)

    @abstractmethod
    def step(self, a: Array, states: Sequence[Array], r: Array, rb: Array | None) -> tuple[Array, ...]:
        """Return the next states, from the input's contribution `a` to the gates and the last states; a reference."""

    def bounded(self) -> tuple[Activation, ...]:
        """Return the activations of the gates, with their inputs clipped."""
        return tuple(a.clipped(self.clip) for a in self.functions())

    def expect(self, what: str, size: Dim, expected: Dim) -> None:
        if isinstance(size, int) and isinstance(expected, int) and size != expected:
            raise ShapeError(f"{self.type}: {what} must be {dim_text(expected)}, got {dim_text(size)}")

    def next_state(self, state: Operand) -> TensorType:
        """Return the type of the next state. Its batch has the name of the state's, so that loops can carry it."""
        return TensorType(state.dtype, (state.shape[0], self.hidden_size))

    def check_weights(self, x: Operand, states: Sequence[Operand], w: Operand, r: Operand, b: Operand | None) -> None:
        """Check the last axes of all inputs; an axis of directions may precede them."""
        size = self.hidden_size
        if size < 1:
            raise ShapeError(f"{self.type}: hidden_size must be positive, got {size}")
        operands = [o for o in (x, *states, w, r, b) if o is not None]
        if any(o.rank != x.rank - (o is b) for o in operands) or any(o.dtype is not x.dtype for o in operands):
            rule = "data, state and weights have one rank and element type, biases a dimension less"
            raise ShapeError(f"{self.type}: {rule}, got {', '.join(str(o.type) for o in operands)}")
        self.functions()
        for state in states:
            self.expect("batch of a state", state.shape[0], x.shape[0])
            self.expect("elements of a state", state.shape[-1], size)
        self.expect("rows of W", w.shape[-2], self.gates * size)
        self.expect("columns of W", w.shape[-1], x.shape[-1])
        self.expect("rows of R", r.shape[-2], self.gates * size)
        self.expect("columns of R", r.shape[-1], size)
        if b is not None:
            self.expect("length of B", b.shape[-1], self.bias_gates * size)


def with_batch_of(build: Builder, port: OutPort, state: OutPort) -> OutPort:
    """Reshape [B, I] to the batch symbol of `state`, if their sizes are equal but not known to be at compile time."""
    if port.shape[0] == state.shape[0]:
        return port
    sizes = ((state, 0), (port, 1))
    parts = [build.Gather(build.ShapeOf(p), numbers(build, (k,)), numbers(build, (0,))) for p, k in sizes]
    return build.Reshape(port, build.Concat(*parts, axis=0), special_zero=False)


def product(build: Builder, x: OutPort, w: OutPort, bias: OutPort | None) -> OutPort:
    """Build x W^T + bias."""
    total = build.MatMul(x, w, transpose_b=True)
    return total if bias is None else build.Add(total, bias)


def split(build: Builder, port: OutPort, parts: int, axis: int) -> list[OutPort]:
    first = build.Split(port, build.const(axis, DType.I64), num_splits=parts, outputs=parts)
    return [first.node.out_port(i) for i in range(parts)]


def sections(build: Builder, port: OutPort, lengths: tuple[int, ...], axis: int) -> list[OutPort]:
    first = build.VariadicSplit(port, build.const(axis, DType.I64), numbers(build, lengths), outputs=len(lengths))
    return [first.node.out_port(i) for i in range(len(lengths))]


def linear(x: Array, w: Array) -> Array:
    """Return x W^T, for references."""
    return wide(x) @ wide(w).T


@dataclass(frozen=True)
class RNN(Recurrent):
    """A layer without gates."""

    elements = Elements.FLOAT

    def step(self, a: Array, states: Sequence[Array], r: Array, rb: Array | None) -> tuple[Array, ...]:
        (f,) = self.bounded()
        return (f.array(a + linear(states[0], r)),)


@dataclass(frozen=True)
class GRU(Recurrent):
    """A layer with update and reset gates, in the order z, r, n."""

    elements = Elements.FLOAT

    linear_before_reset: bool = False

    gates: ClassVar[int] = 3
    usual: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh")

    @property
    def bias_gates(self) -> int:
        return 4 if self.linear_before_reset else 3

    def step(self, a: Array, states: Sequence[Array], r: Array, rb: Array | None) -> tuple[Array, ...]:
        (h,), n = states, self.hidden_size
        f, g = self.bounded()
        zr = f.array(a[:, : 2 * n] + linear(h, r[: 2 * n]))
        z, reset = zr[:, :n], zr[:, n:]
        if self.linear_before_reset:
            inner = reset * (linear(h, r[2 * n :]) + (0 if rb is None or not len(rb) else wide(rb)))
        else:
            inner = linear(reset * h, r[2 * n :])
        return ((1 - z) * g.array(a[:, 2 * n :] + inner) + z * h,)


@dataclass(frozen=True)
class LSTM(Recurrent):
    """A layer with forget, input, cell and output gates, in this order, and a cell state."""

    elements = Elements.FLOAT

    gates: ClassVar[int] = 4
    state_count: ClassVar[int] = 2
    usual: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh", "tanh")

    def state_clip(self) -> float:
        """Return the bound on the input of the third activation; 0: none. OpenVINO clips the gates only."""
        return 0.0

    def state_activation(self) -> Activation:
        """Return the third activation, which computes h' from c'."""
        return self.functions()[2].clipped(self.state_clip())

    @staticmethod
    def inputs(build: Builder, x: OutPort, h: OutPort, w: OutPort, b: OutPort | None) -> OutPort:
        """Build the input's contribution to the gates."""
        return product(build, with_batch_of(build, x, h), w, None if b is None else widened(build, b))

    def step(self, a: Array, states: Sequence[Array], r: Array, rb: Array | None) -> tuple[Array, ...]:
        h, c = states
        f, g, _ = self.bounded()
        forget, update, cell, out = np.split(a + linear(h, r), 4, 1)
        new = f.array(forget) * c + f.array(update) * g.array(cell)
        return f.array(out) * self.state_activation().array(new), new


@op("opset1")
class RNNCell(RNN, DecomposedOp):
    """x [B, I], h [B, H], W [H, I], R [H, H], bias [H] give h' [B, H]."""

    def infer(self, x: Operand, h: Operand, w: Operand, r: Operand, b: Operand | None = None) -> TensorType:
        self.check_weights(x, [h], w, r, b)
        return self.next_state(h)

    def decompose(
        self, build: Builder, x: OutPort, h: OutPort, w: OutPort, r: OutPort, b: OutPort | None = None
    ) -> OutPort:
        dtype = x.type.dtype
        x, h, w, r = (widened(build, p) for p in (x, h, w, r))
        a = product(build, with_batch_of(build, x, h), w, None if b is None else widened(build, b))
        (f,) = self.bounded()
        return narrowed(build, f.graph(build, product(build, h, r, a)), dtype)

    def reference(self, x: Array, h: Array, w: Array, r: Array, b: Array | None = None) -> Array:
        return self.step(linear(x, w) + (0 if b is None else wide(b)), [wide(h)], r, None)[0].astype(x.dtype)


@op("opset3")
class GRUCell(GRU, DecomposedOp):
    """x [B, I], h [B, H], W [3H, I], R [3H, H], bias [3H] or [4H] (z, r, W's n, R's n) give h' [B, H]."""

    def infer(self, x: Operand, h: Operand, w: Operand, r: Operand, b: Operand | None = None) -> TensorType:
        self.check_weights(x, [h], w, r, b)
        return self.next_state(h)

    def decompose(
        self, build: Builder, x: OutPort, h: OutPort, w: OutPort, r: OutPort, b: OutPort | None = None
    ) -> OutPort:
        n, dtype = self.hidden_size, x.type.dtype
        x, h, w, r = (widened(build, p) for p in (x, h, w, r))
        bias, inner_bias = gru_biases(build, self, None if b is None else widened(build, b))
        f, g = self.bounded()
        a_zr, a_n = sections(build, product(build, with_batch_of(build, x, h), w, bias), (2 * n, n), 1)
        r_zr, r_n = sections(build, r, (2 * n, n), 0)
        z, reset = split(build, f.graph(build, product(build, h, r_zr, a_zr)), 2, 1)
        if self.linear_before_reset:
            inner = build.Multiply(reset, product(build, h, r_n, inner_bias))
        else:
            inner = product(build, build.Multiply(reset, h), r_n, None)
        new = g.graph(build, build.Add(a_n, inner))
        return narrowed(build, build.Add(new, build.Multiply(z, build.Subtract(h, new))), dtype)

    def reference(self, x: Array, h: Array, w: Array, r: Array, b: Array | None = None) -> Array:
        n = self.hidden_size
        bias = np.zeros(4 * n) if b is None else wide(b)
        return self.step(linear(x, w) + bias[: 3 * n], [wide(h)], r, bias[3 * n :])[0].astype(x.dtype)


def gru_biases(build: Builder, layer: GRU, b: OutPort | None) -> tuple[OutPort | None, OutPort | None]:
    """Return the bias added to x W^T, and the bias added to h R_n^T."""
    if b is None or not layer.linear_before_reset:
        return b, None
    n = layer.hidden_size
    outer, inner = sections(build, b, (3 * n, n), b.type.rank - 1)
    return outer, inner


@op("opset4", type="LSTMCell")
class LSTMCell_4(LSTM, DecomposedOp):
    """x [B, I], h and c [B, H], W [4H, I], R [4H, H], bias [4H] give h' and c'."""

    def infer(
        self, x: Operand, h: Operand, c: Operand, w: Operand, r: Operand, b: Operand | None = None
    ) -> tuple[TensorType, TensorType]:
        self.check_weights(x, [h, c], w, r, b)
        return self.next_state(h), self.next_state(c)

    def decompose(
        self, build: Builder, x: OutPort, h: OutPort, c: OutPort, w: OutPort, r: OutPort, b: OutPort | None = None
    ) -> tuple[OutPort, OutPort]:
        dtype = x.type.dtype
        x, h, c, w, r = (widened(build, p) for p in (x, h, c, w, r))
        last = with_batch_of(build, c, h)
        total = product(build, h, r, self.inputs(build, x, h, w, b))
        f, g, _ = self.bounded()
        forget, update, cell, out = split(build, total, 4, 1)
        old = build.Multiply(f.graph(build, forget), last)
        new = build.Add(old, build.Multiply(f.graph(build, update), g.graph(build, cell)))
        state = build.Multiply(f.graph(build, out), self.state_activation().graph(build, new))
        return narrowed(build, state, dtype), narrowed(build, with_batch_of(build, new, c), dtype)

    def reference(self, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array | None = None) -> tuple[Array, ...]:
        a = linear(x, w) + (0 if b is None else wide(b))
        return tuple(s.astype(x.dtype) for s in self.step(a, [wide(h), wide(c)], r, None))


class WeightsFormat(StrEnum):
    """Order of the gates in W, R and B: f forget, i input, c cell, o output."""

    FICO = "fico"
    ICOF = "icof"
    IFCO = "ifco"
    IFOC = "ifoc"
    IOFC = "iofc"


@op("opset1", type="LSTMCell")
class LSTMCell_1(LSTM, DecomposedOp):
    """LSTMCell with peepholes P [3H] (terms of the cell state in input, output, forget); `input_forget`: i = 1 - f."""

    input_forget: bool = False
    weights_format: WeightsFormat = WeightsFormat.FICO

    couples_forget: ClassVar[bool] = False  # with `input_forget`, f is computed from i instead

    def infer(
        self,
        x: Operand,
        h: Operand,
        c: Operand,
        w: Operand,
        r: Operand,
        b: Operand | None = None,
        p: Operand | None = None,
    ) -> tuple[TensorType, TensorType]:
        self.check_weights(x, [h, c], w, r, b)
        if p is not None:
            self.expect("length of P", p.shape[0], 3 * self.hidden_size)
        return self.next_state(h), self.next_state(c)

    def decompose(
        self,
        build: Builder,
        x: OutPort,
        h: OutPort,
        c: OutPort,
        w: OutPort,
        r: OutPort,
        b: OutPort | None = None,
        p: OutPort | None = None,
    ) -> tuple[OutPort, OutPort]:
        dtype = x.type.dtype
        x, h, c, w, r = (widened(build, q) for q in (x, h, c, w, r))
        last = with_batch_of(build, c, h)
        total = product(build, h, r, self.inputs(build, x, h, w, b))
        gate = dict[str, OutPort](zip(self.weights_format.value, split(build, total, 4, 1), strict=True))
        peep = dict[str, OutPort]()
        if p is not None:
            peep = dict[str, OutPort](zip("iof", split(build, widened(build, p), 3, 0), strict=True))
        f, g, _ = self.bounded()

        def opened(name: str, state: OutPort) -> OutPort:
            value = build.Add(gate[name], build.Multiply(state, peep[name])) if peep else gate[name]
            return f.graph(build, value)

        def rest(gate: OutPort) -> OutPort:
            return build.Subtract(build.const(1.0, gate.type.dtype), gate)

        first, second = "if" if self.couples_forget else "fi"
        own = opened(first, last)
        other = rest(own) if self.input_forget else opened(second, last)
        forget, update = (other, own) if self.couples_forget else (own, other)
        new = build.Add(build.Multiply(forget, last), build.Multiply(update, g.graph(build, gate["c"])))
        state = build.Multiply(opened("o", new), self.state_activation().graph(build, new))
        return narrowed(build, state, dtype), narrowed(build, with_batch_of(build, new, c), dtype)

    def reference(
        self, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array | None = None, p: Array | None = None
    ) -> tuple[Array, ...]:
        total = linear(x, w) + linear(h, r) + (0 if b is None else wide(b))
        gate = dict(zip(self.weights_format.value, np.split(total, 4, 1), strict=True))
        zeros = np.zeros(3 * self.hidden_size)
        pi, po, pf = np.split(zeros if p is None else wide(p), 3)
        f, g, _ = self.bounded()
        forget, update = f.array(gate["f"] + pf * c), f.array(gate["i"] + pi * c)
        if self.input_forget:
            forget, update = (1 - update, update) if self.couples_forget else (forget, 1 - forget)
        new = forget * wide(c) + update * g.array(gate["c"])
        state = f.array(gate["o"] + po * new) * self.state_activation().array(new)
        return state.astype(x.dtype), new.astype(x.dtype)


@op()
class OnnxLSTMCell(LSTMCell_1):
    """LSTMCell of ONNX: `clip` bounds the inputs of all activations; `input_forget`: f = 1 - i. Not in IR files."""

    couples_forget: ClassVar[bool] = True

    def state_clip(self) -> float:
        return self.clip
