"""Recurrent layers with states that the model keeps: LSTM, RNN, SVDF, over one step or a sequence.

Each gives its outputs, then the new values of its states, in the order of its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.tflite.registry import RANGES, RELU, RELU6, RELU_N1_TO_1, TANH, TfliteNode, tflite
from aot.ir.graph import OutPort

SIGMOID = 6  # number of the sigmoid, an activation that only recurrent layers have
GATES = 4  # input, forget, cell, output
STATE, CELL = 18, 19  # inputs of an LSTM that are its states h and c
BASIC = 1  # kernel_type of the LSTM with five inputs


def activated(node: TfliteNode, x: OutPort, kind: int) -> OutPort:
    """`x` after an activation by its number."""
    build = node.build
    node.refuse(kind not in (0, RELU, RELU_N1_TO_1, RELU6, TANH, SIGMOID), f"activation {kind} is not supported")
    if kind == TANH:
        return build.Tanh(x)
    if kind == SIGMOID:
        return build.Sigmoid(x)
    if kind == RELU:
        return build.Relu(x)
    low, high = RANGES.get(kind, (None, None))
    return x if low is None or high is None else build.Clamp(x, min=low, max=high)


def product(node: TfliteNode, x: OutPort, w: OutPort) -> OutPort:
    return node.build.MatMul(x, node.cast(w, x.type.dtype), transpose_b=True)


def steps(node: TfliteNode, x: OutPort, axis: int) -> list[OutPort]:
    """Return the slices of a sequence; its length must be known."""
    count = node.extent(x, axis, "the length of the sequence")
    node.refuse(not 0 < count <= MAX_STEPS, f"sequences of 1 to {MAX_STEPS} steps are supported, got {count}")
    return [node.build.Gather(x, node.scalar(k), node.scalar(axis)) for k in range(count)]


MAX_STEPS = 512


def stacked(node: TfliteNode, parts: Sequence[OutPort], axis: int) -> OutPort:
    each = [node.build.Unsqueeze(p, node.list([axis])) for p in parts]
    return each[0] if len(each) == 1 else node.build.Concat(*each, axis=axis)


@dataclass(frozen=True, slots=True)
class Cell:
    """Weights of an LSTM by gate; None for those that it does without."""

    w: Sequence[OutPort | None]
    r: Sequence[OutPort | None]
    peepholes: Sequence[OutPort | None]  # input, forget, output
    b: Sequence[OutPort | None]
    projection: OutPort | None
    projection_bias: OutPort | None
    norms: Sequence[OutPort | None]
    activation: int
    cell_clip: float
    projection_clip: float

    def step(self, node: TfliteNode, x: OutPort, h: OutPort, c: OutPort) -> tuple[OutPort, OutPort]:
        """Return the output, which is the next h, and the next c."""
        build = node.build
        forget = build.Sigmoid(self._gate(node, 1, x, h, c, 1))
        own = self.w[0]
        enter = (
            build.Subtract(node.like(1, forget), forget)
            if own is None
            else build.Sigmoid(self._gate(node, 0, x, h, c, 0))
        )
        fresh = activated(node, self._gate(node, 2, x, h, c, None), self.activation)
        c = build.Add(build.Multiply(forget, c), build.Multiply(enter, fresh))
        c = build.Clamp(c, min=-self.cell_clip, max=self.cell_clip) if self.cell_clip > 0 else c
        leave = build.Sigmoid(self._gate(node, 3, x, h, c, 2))
        h = build.Multiply(leave, activated(node, c, self.activation))
        if self.projection is not None:
            h = product(node, h, self.projection)
            h = h if self.projection_bias is None else build.Add(h, self.projection_bias)
            h = build.Clamp(h, min=-self.projection_clip, max=self.projection_clip) if self.projection_clip > 0 else h
        return h, c

    def _gate(self, node: TfliteNode, k: int, x: OutPort, h: OutPort, c: OutPort, peephole: int | None) -> OutPort:
        """Gate k before its activation."""
        build, w = node.build, node.present(self.w[k], f"of the weights of gate {k}")
        r, b = (
            node.present(p[k], f"of {what} of gate {k}")
            for p, what in ((self.r, "recurrent weights"), (self.b, "biases"))
        )
        total = build.Add(product(node, x, w), product(node, h, r))
        weights = None if peephole is None else self.peepholes[peephole]
        if weights is not None:
            total = build.Add(total, build.Multiply(c, node.cast(weights, c.type.dtype)))
        norm = self.norms[k]
        if norm is not None:
            axes = node.list([1])
            total = build.Multiply(build.MVN(total, axes, eps=NORM_EPSILON), norm)
        return build.Add(total, b)


NORM_EPSILON = 1e-8  # epsilon of LiteRT's layer normalisation


def cell_of(node: TfliteNode, operands: Sequence[OutPort | None]) -> Cell:
    """Return the weights in their places after the data: w, r, peepholes, biases, projection, any layer norms."""
    at = [*operands, *[None] * (24 - len(operands))]
    norms = at[20:24] if len(operands) > 20 else [None] * GATES
    return Cell(
        at[1:5],
        at[5:9],
        at[9:12],
        at[12:16],
        at[16],
        at[17],
        norms,
        node.integer("fused_activation_function", 0),
        node.number("cell_clip", 0.0),
        node.number("proj_clip", 0.0),
    )


def data_and_states(node: TfliteNode, operands: Sequence[OutPort | None]) -> tuple[OutPort, OutPort, OutPort]:
    """Return the data, and the states h and c of an LSTM."""
    x, h, c = (node.present(operands[i] if i < len(operands) else None, str(i)) for i in (0, STATE, CELL))
    return x, h, c


@tflite("UNIDIRECTIONAL_SEQUENCE_LSTM", activates=False)
def sequence_lstm(node: TfliteNode, *operands: OutPort | None) -> tuple[OutPort, ...]:
    """Data [batch, time, inputs], or time first; the states are inputs 18 and 19."""
    x, h, c = data_and_states(node, operands)
    axis = 0 if node.flag("time_major") else 1
    cell, outs = cell_of(node, operands), list[OutPort]()
    for part in steps(node, x, axis):
        h, c = cell.step(node, part, h, c)
        outs.append(h)
    return stacked(node, outs, axis), h, c


@tflite("LSTM", activates=False)
def lstm(node: TfliteNode, *operands: OutPort | None) -> tuple[OutPort, ...]:
    """One step of data [batch, inputs]; the basic kernel has five inputs, and states as outputs."""
    if node.integer("kernel_type", 0) == BASIC:
        return _basic(node, *operands)
    x, h, c = data_and_states(node, operands)
    h, c = cell_of(node, operands).step(node, x, h, c)
    return h, h, c


def _basic(node: TfliteNode, *operands: OutPort | None) -> tuple[OutPort, ...]:
    """Inputs: data, previous output, weights [4 outputs, inputs], biases, previous state; gates i, j, f, o."""
    x, h, w, b, c = (p for p in operands[:5] if p is not None)
    build = node.build
    both = build.Concat(x, h, axis=1)
    total = build.Add(product(node, both, w), b)
    i, j, f, o = build.Split(total, node.scalar(1), num_splits=GATES, outputs=GATES).node.out_ports().values()
    c = build.Add(build.Multiply(build.Sigmoid(i), build.Tanh(j)), build.Multiply(build.Sigmoid(f), c))
    return build.Multiply(build.Sigmoid(o), build.Tanh(c)), c, both, total


def _rnn_step(node: TfliteNode, x: OutPort, h: OutPort, w: OutPort, r: OutPort, b: OutPort) -> OutPort:
    node.refuse(node.quantization(4) is not None, "integer states are not supported")
    total = node.build.Add(node.build.Add(product(node, x, w), product(node, h, r)), b)
    return activated(node, total, node.integer("fused_activation_function", 0))


@tflite("RNN", activates=False)
def rnn(node: TfliteNode, x: OutPort, w: OutPort, r: OutPort, b: OutPort, h: OutPort) -> tuple[OutPort, ...]:
    h = _rnn_step(node, x, h, w, r, b)
    return h, h


@tflite("UNIDIRECTIONAL_SEQUENCE_RNN", activates=False)
def sequence_rnn(node: TfliteNode, x: OutPort, w: OutPort, r: OutPort, b: OutPort, h: OutPort) -> tuple[OutPort, ...]:
    axis, outs = 0 if node.flag("time_major") else 1, list[OutPort]()
    for part in steps(node, x, axis):
        h = _rnn_step(node, part, h, w, r, b)
        outs.append(h)
    return stacked(node, outs, axis), h


@tflite("SVDF", activates=False)
def svdf(
    node: TfliteNode, x: OutPort, by_feature: OutPort, by_time: OutPort, bias: OutPort | None, state: OutPort
) -> tuple[OutPort, ...]:
    """Filters of rank `rank`: the state [batch, filters * memory] moves by one, and gets the features of this step."""
    build, rank = node.build, node.integer("rank", 1)
    filters, memory = (node.extent(by_time, a, "the size of filters") for a in range(2))
    node.refuse(rank < 1 or filters % rank != 0, f"filters are a multiple of the rank, got {filters} and {rank}")
    batch = node.dims(x, [0])
    rows = build.Reshape(state, build.Concat(batch, node.list([filters, memory]), axis=0))
    old = build.Slice(rows, node.list([1]), node.list([memory]), node.list([1]), node.list([2]))
    fresh = build.Unsqueeze(product(node, x, by_feature), node.list([2]))
    rows = build.Concat(old, fresh, axis=2) if memory > 1 else fresh
    total = build.ReduceSum(build.Multiply(rows, node.cast(by_time, rows.type.dtype)), node.list([2]))
    if rank > 1:
        wide = build.Reshape(total, build.Concat(batch, node.list([filters // rank, rank]), axis=0))
        total = build.ReduceSum(wide, node.list([2]))
    total = total if bias is None else build.Add(total, bias)
    y = activated(node, total, node.integer("fused_activation_function", 0))
    return y, build.Reshape(rows, build.Concat(batch, node.list([filters * memory]), axis=0))
