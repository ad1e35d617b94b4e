"""LSTM and SVDF on integers: data of 8 or 16 bits, weights of 8, cell states of 16.

    gate  = sat16(sat16(round((W (x - zx) + b) sx)) + round(R (h - zh) sh))   in 2^-12, or in a unit of the file
    c     = sat16(round(f c) + round(i g))         f, i, o: sigmoid in 2^-15; g: tanh in 2^-15; c: a power of two
    h     = sat(round(o tanh(c) s) + zero)         or a projection of it

Sums, their factors and roundings are those of LiteRT's kernels. Sigmoid, tanh and norms are computed in f32 and
rounded, where LiteRT approximates them in fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.tflite.integers.fixed_point import limits, of_input, scaled, shifted, single, whole
from aot.frontends.tflite.neural.recurrent import (
    BASIC,
    CELL,
    GATES,
    NORM_EPSILON,
    STATE,
    data_and_states,
    stacked,
    steps,
)
from aot.frontends.tflite.registry import TfliteNode, conversion_of, exact
from aot.frontends.tflite.tensors import Quantization
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

GATE_BITS = 12  # fraction bits of a gate before its activation
UNIT_BITS = 15  # fraction bits of a sigmoid's or tanh's output
HALF = 1 << 30  # 0.5 as a factor
BEFORE, FORGET, FRESH, LEAVE = range(GATES)  # places of gates
HIDDEN = GATES  # index of the hidden state's intermediate tensor, after the gates'
WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, PROJECTION_BIAS, NORMS = 1, 5, 9, 12, 16, 17, 20
PEEPHOLE_OF = {BEFORE: 0, FORGET: 1, LEAVE: 2}


def clamped(node: TfliteNode, x: OutPort, low: int, high: int) -> OutPort:
    """`x` within limits."""
    build, dtype = node.build, x.type.dtype
    return build.Minimum(build.Maximum(x, build.const(low, dtype)), build.const(high, dtype))


def saturated(node: TfliteNode, x: OutPort, dtype: DType) -> OutPort:
    """`x` within the limits of a type, in its own."""
    return clamped(node, x, *limits(dtype))


def shifted_right(node: TfliteNode, product: OutPort, bits: int) -> OutPort:
    """Return a product of two numbers of 16 bits divided by 2^bits, halves away from zero."""
    build = node.build
    twice = build.Multiply(product, build.const(2, DType.I32))
    return build.FixedPointProduct(twice, build.const(HALF, DType.I32), build.const(bits, DType.I32))


def summed(node: TfliteNode, x: OutPort, q: Quantization, weights: Array, bias: Array | None) -> OutPort:
    """(x - zero) weights^T + bias, in i32, or in i64 if 32 bits may not hold it."""
    build, (low, high) = node.build, limits(x.type.dtype)
    size = max(abs(low - q.zeros[0]), abs(high - q.zeros[0]))
    most = int(np.abs(weights).sum(1).max(initial=0)) * size + (0 if bias is None else int(np.abs(bias).max(initial=0)))
    dtype = DType.I32 if most < 1 << 31 else DType.I64
    integers = node.cast(shifted(node, x, q), dtype)
    total = build.MatMul(integers, build.const(weights, dtype), transpose_b=True)
    return total if bias is None else build.Add(total, build.const(bias, dtype))


def whole_input(node: TfliteNode, i: int) -> Quantization:
    """Scale and zero point of input i, which must be those of the whole tensor."""
    q = of_input(node, i)
    node.refuse(q.is_by_axis or not q.scales[0], f"input {i} has one scale above 0")
    return q


@dataclass(frozen=True, slots=True)
class IntegerCell:
    """An LSTM's weights in the places of the operator's inputs; `gates`: those that it has."""

    node: TfliteNode
    given: Sequence[OutPort | None]
    gates: tuple[int, ...]

    def port(self, i: int) -> OutPort | None:
        return self.given[i] if i < len(self.given) else None

    def has(self, i: int) -> bool:
        return self.port(i) is not None

    def array(self, i: int) -> Array:
        """Return the value of a weight or bias."""
        port = self.node.present(self.port(i), str(i))
        return self.node.known(port, f"input {i}").astype(np.int64)

    @property
    def normed(self) -> bool:
        return self.has(NORMS + FORGET)

    def unit(self, gate: int) -> float:
        """Scale of a gate's sum."""
        return self._intermediate(gate).scales[0] if self.normed else 2.0**-GATE_BITS

    def _intermediate(self, i: int) -> Quantization:
        intermediates = self.node.attrs.get("intermediates", ())
        q = intermediates[i].quantization if i < len(intermediates) else None
        if q is None or not q.scales or not q.scales[0]:
            raise ModelError(f"{self.node.kind}: intermediate tensor {i} must have a scale above 0, got none")
        return q

    @property
    def hidden(self) -> Quantization:
        """Scale and zero point of the product of output gate and cell state."""
        if self.has(PROJECTION) or len(self.node.attrs.get("intermediates", ())) > HIDDEN:
            return self._intermediate(HIDDEN)
        return whole_input(self.node, STATE)

    @property
    def cell_bits(self) -> int:
        """Return the fraction bits of the cell state."""
        mantissa, exponent = math.frexp(whole_input(self.node, CELL).scales[0])
        bits = 1 - exponent
        known = mantissa == 0.5 and 0 <= bits <= 2 * UNIT_BITS
        self.node.refuse(not known, "the scale of the cell state is a power of two, 1 to 2^-30")
        return bits

    def sums(self, x: OutPort, position: int, first: int, biased: bool) -> OutPort:
        """Return products of all gates, joined on the last axis, in their units. `position`: of the scale of `x`."""
        node, q = self.node, whole_input(self.node, position)
        weights = [self.array(first + k) for k in self.gates]
        bias = np.concatenate([self.array(BIASES + k) for k in self.gates]) if biased else None
        total = summed(node, x, q, np.concatenate(weights), bias)
        factors = [
            single(single(whole_input(node, first + k).scales[0] * q.scales[0]) / self.unit(k)) for k in self.gates
        ]
        rows = [len(w) for w in weights]
        row_factors = [f for f, n in zip(factors, rows, strict=True) for _ in range(n)]
        return scaled(node, total, row_factors, (sum(rows),))

    def entered(self, x: OutPort) -> OutPort:
        """Return the sums that the data adds to all gates."""
        return saturated(self.node, self.sums(x, 0, WEIGHTS, not self.normed), DType.I16)

    def step(self, entered: OutPort, h: OutPort, c: OutPort) -> tuple[OutPort, OutPort]:
        """Return the next h and c in their types."""
        node, build = self.node, self.node.build
        total = saturated(node, build.Add(entered, self.sums(h, STATE, RECURRENT, False)), DType.I16)
        parts = build.Split(total, node.scalar(1), num_splits=len(self.gates), outputs=len(self.gates))
        before = dict(zip(self.gates, parts.node.out_ports().values(), strict=True))
        wide = node.cast(c, DType.I32)
        forget = self._activated(FORGET, before[FORGET], wide)
        top = build.const((1 << UNIT_BITS) - 1, DType.I32)
        enter = self._activated(BEFORE, before[BEFORE], wide) if BEFORE in before else build.Subtract(top, forget)
        fresh = self._activated(FRESH, before[FRESH], wide)
        kept = shifted_right(node, build.Multiply(forget, wide), UNIT_BITS)
        added = shifted_right(node, build.Multiply(enter, fresh), 2 * UNIT_BITS - self.cell_bits)
        wide = self._clipped(saturated(node, build.Add(kept, added), DType.I16), "cell_clip", CELL)
        leave = self._activated(LEAVE, before[LEAVE], wide)
        product = build.Multiply(leave, self._unit(build.Tanh, wide, self.cell_bits))
        return self._output(product), node.cast(wide, DType.I16)

    def _activated(self, gate: int, total: OutPort, c: OutPort) -> OutPort:
        """Return a gate after its peephole, its norm and its activation."""
        node, build = self.node, self.node.build
        position = PEEPHOLES + PEEPHOLE_OF.get(gate, 0)
        if gate in PEEPHOLE_OF and self.has(position):
            factor = single(2.0**-self.cell_bits * whole_input(node, position).scales[0] / self.unit(gate))
            product = build.Multiply(c, build.const(self.array(position), DType.I32))
            total = saturated(node, build.Add(total, scaled(node, product, [factor])), DType.I16)
        total = self._normed(gate, total) if self.normed else total
        return self._unit(build.Tanh if gate == FRESH else build.Sigmoid, total, GATE_BITS)

    def _normed(self, gate: int, total: OutPort) -> OutPort:
        """Return the norm over the units, times coefficients, plus the bias, in 2^-12."""
        node, build = self.node, self.node.build
        scale = whole_input(node, NORMS + gate).scales[0]
        port = build.MVN(node.cast(total, DType.F32), node.list([1]), eps=NORM_EPSILON)
        port = build.Multiply(port, build.const(self.array(NORMS + gate) * scale, DType.F32))
        port = build.Add(port, build.const(self.array(BIASES + gate) * (scale / 1024), DType.F32))
        port = build.Round(build.Multiply(port, build.const(float(1 << GATE_BITS), DType.F32)))
        low, high = limits(DType.I16)
        return node.cast(build.Clamp(port, min=float(low), max=float(high)), DType.I32)

    def _unit(self, function: object, x: OutPort, bits: int) -> OutPort:
        """Return a function of x 2^-bits in 2^-15, within 16 bits."""
        node, build = self.node, self.node.build
        assert callable(function)
        real = build.Multiply(node.cast(x, DType.F32), build.const(2.0**-bits, DType.F32))
        port = build.Round(build.Multiply(function(real), build.const(float(1 << UNIT_BITS), DType.F32)))
        return clamped(node, node.cast(port, DType.I32), *limits(DType.I16))

    def _clipped(self, x: OutPort, name: str, position: int) -> OutPort:
        clip, (low, high) = self.node.number(name, 0.0), limits(x.type.dtype)
        if clip <= 0:
            return x
        most = int(min(max(single(clip / whole_input(self.node, position).scales[0]), low), high))
        return clamped(self.node, x, -most, most)

    def _output(self, product: OutPort) -> OutPort:
        """Return the next h of a product in 2^-30."""
        node, build, hidden, state = self.node, self.node.build, self.hidden, whole_input(self.node, STATE)
        dtype = node.output_type()
        port = scaled(node, product, [single(2.0 ** (-2 * UNIT_BITS) / hidden.scales[0])])
        zero = build.const(hidden.zeros[0], DType.I32)
        if not self.has(PROJECTION):
            return node.cast(saturated(node, build.Add(port, zero), dtype), dtype)
        port = build.Add(saturated(node, build.Subtract(port, zero), DType.I8), zero)
        bias = self.array(PROJECTION_BIAS) if self.has(PROJECTION_BIAS) else None
        total = summed(node, node.cast(port, DType.I16), Quantization((1.0,), (0,)), self.array(PROJECTION), bias)
        factor = single(single(whole_input(node, PROJECTION).scales[0] * hidden.scales[0]) / state.scales[0])
        port = build.Add(scaled(node, total, [factor]), build.const(state.zeros[0], DType.I32))
        return self._clipped(node.cast(saturated(node, port, dtype), dtype), "proj_clip", STATE)


def _cell(node: TfliteNode, operands: Sequence[OutPort | None]) -> tuple[IntegerCell, OutPort, OutPort, OutPort]:
    """Return the cell, the data and both states of an LSTM with integer states."""
    x, h, c = data_and_states(node, operands)
    types = [p.type.dtype for p in (x, h, c)]
    known = types[0] in (DType.I8, DType.I16) and types[1] is types[0] and types[2] is DType.I16
    rule = "data and outputs of i8 or i16 and a cell state of i16 are supported"
    node.refuse(not known, f"{rule}, got {', '.join(t.value for t in types)}")
    count = len(node.attrs.get("intermediates", ()))
    node.refuse(count > HIDDEN + 1, f"5 intermediate tensors are supported, got {count}")
    cell = IntegerCell(node, operands, (BEFORE, FORGET, FRESH, LEAVE))
    return (cell if cell.has(WEIGHTS) else IntegerCell(node, operands, (FORGET, FRESH, LEAVE))), x, h, c


def is_real(operands: Sequence[OutPort | None]) -> bool:
    """True if the data is of floats."""
    return bool(operands) and operands[0] is not None and operands[0].type.dtype.is_float


def by_numbers(node: TfliteNode, *operands: OutPort | None) -> tuple[OutPort, ...]:
    """Convert by real numbers."""
    function: Any = conversion_of(node.kind, False)
    return function(node, *operands)


@exact("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(node: TfliteNode, *operands: OutPort | None) -> tuple[OutPort, ...]:
    """Data [batch, time, inputs], or time first; the products with all data come before the steps."""
    if is_real(operands):
        return by_numbers(node, *operands)
    cell, x, h, c = _cell(node, operands)
    axis, outs = 0 if node.flag("time_major") else 1, list[OutPort]()
    for part in steps(node, cell.entered(x), axis):
        h, c = cell.step(part, h, c)
        outs.append(h)
    return stacked(node, outs, axis), h, c


@exact("LSTM")
def lstm(node: TfliteNode, *operands: OutPort | None) -> tuple[OutPort, ...]:
    """One step of data [batch, inputs]; the basic kernel is computed by real numbers."""
    if node.integer("kernel_type", 0) == BASIC or is_real(operands):
        return by_numbers(node, *operands)
    cell, x, h, c = _cell(node, operands)
    h, c = cell.step(cell.entered(x), h, c)
    return h, h, c


@exact("SVDF")
def svdf(
    node: TfliteNode, x: OutPort, by_feature: OutPort, by_time: OutPort, bias: OutPort | None, state: OutPort
) -> tuple[OutPort, ...]:
    """The state gets the features of this step, in its type; sums over it are in the units of both."""
    if is_real([x]):
        return by_numbers(node, x, by_feature, by_time, bias, state)
    build, out, rank, dtype = node.build, whole(node), node.integer("rank", 1), state.type.dtype
    known = x.type.dtype is DType.I8 and dtype in (DType.I8, DType.I16)
    types = f"{x.type.dtype.value}, {dtype.value}"
    node.refuse(not known, f"data of i8 with a state of i8 or i16 is supported, got {types}")
    features, times = (node.known(w, "weights").astype(np.int64) for w in (by_feature, by_time))
    if features.ndim != 2 or times.ndim != 2 or len(features) != len(times) or rank < 1 or len(times) % rank:
        raise ModelError(
            f"{node.kind}: weights must have a row for each filter, a multiple of the rank {rank}, got others"
        )
    filters, memory = times.shape
    data, held_q = whole_input(node, 0), whole_input(node, 4)
    factor = single(single(data.scales[0] * whole_input(node, 1).scales[0]) / held_q.scales[0])
    fresh = scaled(node, summed(node, x, data, features, None), [factor])
    fresh = node.cast(saturated(node, build.Add(fresh, build.const(held_q.zeros[0], DType.I32)), dtype), dtype)
    batch = node.dims(x, [0])
    rows = build.Reshape(state, build.Concat(batch, node.list([filters, memory]), axis=0))
    old = build.Slice(rows, node.list([1]), node.list([memory]), node.list([1]), node.list([2]))
    fresh = build.Unsqueeze(fresh, node.list([2]))
    new_state = build.Concat(old, fresh, axis=2) if memory > 1 else fresh
    numbers = None if bias is None else node.known(bias, "bias").astype(np.int64)
    total = _over_time(node, new_state, held_q, times.reshape(filters // rank, rank * memory), numbers)
    factor = single(single(held_q.scales[0] * whole_input(node, 2).scales[0]) / out.scales[0])
    total = build.Add(scaled(node, total, [factor]), build.const(out.zeros[0], DType.I32))
    y = node.cast(saturated(node, total, node.output_type()), node.output_type())
    return y, build.Reshape(new_state, build.Concat(batch, node.list([filters * memory]), axis=0))


def _over_time(node: TfliteNode, state: OutPort, q: Quantization, weights: Array, bias: Array | None) -> OutPort:
    """Return sums of the state [batch, filters, memory] times weights [units, rank * memory] plus a bias."""
    build, (low, high) = node.build, limits(state.type.dtype)
    most = int(np.abs(weights).sum(1).max(initial=0)) * max(high - q.zeros[0], q.zeros[0] - low)
    most += 0 if bias is None else int(np.abs(bias).max(initial=0))
    dtype = DType.I32 if most < 1 << 31 else DType.I64
    integers = node.cast(shifted(node, state, q), dtype)
    state_rows = build.Reshape(integers, build.Concat(node.dims(state, [0]), node.list(weights.shape), axis=0))
    total = build.ReduceSum(build.Multiply(state_rows, build.const(weights, dtype)), node.list([2]))
    return total if bias is None else build.Add(total, build.const(bias, dtype))
