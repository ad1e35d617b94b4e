"""Recurrent layers: stacks of LSTM, GRU and RNN, and single cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.pt2.registry import AtenNode, aten
from aot.ir.graph import OutPort
from aot.opset.recurrent.recurrent import Direction
from aot.runtime.errors import ModelError

ORDERS = {"lstm": "1023", "gru": "102", "rnn": "0"}  # the gates of the opset, each by its number in PyTorch


@dataclass(slots=True)
class Stack:
    """Layers one after the other; `weights`: of each layer and direction, w_ih, w_hh, b_ih, b_hh.

    PyTorch sorts the gates i f g o (LSTM), r z n (GRU); the opset f i c o and z r h.
    """

    node: AtenNode
    weights: Sequence[OutPort]
    has_biases: bool
    directions: int
    batch_first: bool
    projected: bool = False  # the last weight of each is w_hr: h = w_hr m for the outputs m of the cell

    @property
    def family(self) -> str:
        return self.node.kind.partition(".")[0].partition("_")[0]

    def run(self, x: OutPort, layers: int, *states: OutPort) -> tuple[OutPort, ...]:
        """Return the outputs of the last layer, and the last states of all."""
        node, build, each = self.node, self.node.build, (4 if self.has_biases else 2) + self.projected
        if len(self.weights) != layers * self.directions * each:
            raise ModelError(f"{node.kind}: {layers * self.directions * each} weights, got {len(self.weights)}")
        x = x if self.batch_first else build.Transpose(x, node.list([1, 0, 2]))
        last: list[list[OutPort]] = []
        for layer in range(layers):
            first = layer * self.directions
            own = [self._rows(s, first) for s in states]
            parts = [self.weights[(first + d) * each : (first + d + 1) * each] for d in range(self.directions)]
            y, *after = self._projection(x, own, parts) if self.projected else self._layer(x, own, parts)
            last.append(after)
            rows = build.Transpose(y, node.list([0, 2, 1, 3]))
            x = build.Reshape(rows, build.Concat(node.dims(rows, [0, 1]), node.list([-1]), axis=0))
        y = x if self.batch_first else build.Transpose(x, node.list([1, 0, 2]))
        stacked = [build.Concat(*parts, axis=1) if layers > 1 else parts[0] for parts in zip(*last, strict=True)]
        return y, *(build.Transpose(s, node.list([1, 0, 2])) for s in stacked)

    def _rows(self, state: OutPort, first: int) -> OutPort:
        """Return the states of a layer as [batch, directions, hidden]."""
        build, node = self.node.build, self.node
        positions = node.list(range(first, first + self.directions))
        return build.Transpose(build.Gather(state, positions, node.scalar(0)), node.list([1, 0, 2]))

    def _layer(self, x: OutPort, states: Sequence[OutPort], parts: Sequence[Sequence[OutPort]]) -> list[OutPort]:
        node, build = self.node, self.node.build
        hidden = node.extent(parts[0][1], 1, "the number of hidden units")
        direction = Direction.BIDIRECTIONAL if self.directions == 2 else Direction.FORWARD
        fields: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
        w, r = ([self.sorted(p[k], hidden) for p in parts] for k in (0, 1))
        b = [self.bias(p, hidden, x) for p in parts]
        lengths = build.Broadcast(build.Squeeze(node.dims(x, [1]), node.list([0])), node.dims(x, [0]))
        inputs = [x, *states, lengths, *(self._stacked(ps) for ps in (w, r, b))]
        if self.family == "gru":
            fields["linear_before_reset"] = True
        elif self.family == "rnn":
            fields["activations"] = ("relu",) if "relu" in node.kind else ("tanh",)
        sequence = getattr(build, f"{self.family.upper()}Sequence")(*inputs, **fields, outputs=1 + len(states))
        return list(sequence.node.out_ports().values())

    def _projection(self, x: OutPort, states: Sequence[OutPort], parts: Sequence[Sequence[OutPort]]) -> list[OutPort]:
        """Return outputs and last states of a layer of h = w_hr m: a cell of m with recurrent weights w_hh w_hr.

        The first state is no m: features of the first step, the last one in reverse, have it, by weights w_hh.
        """
        node, build = self.node, self.node.build
        h, c = states
        batch, steps = node.dims(x, [0]), node.dims(x, [1])
        features, changed, turned = [x], list[list[OutPort]](), list[OutPort]()
        for d, own in enumerate(parts):
            row = build.Gather(h, node.list([d]), node.scalar(1))  # [batch, 1, projected]
            zeros_shape = build.Concat(batch, build.Subtract(steps, node.list([1])), node.dims(row, [2]), axis=0)
            zeros = build.Broadcast(node.like(0, x), zeros_shape)
            features.append(build.Concat(*((zeros, row) if d else (row, zeros)), axis=1))
            none = build.Broadcast(node.like(0, x), node.dims(own[1], [0, 1]))
            columns = [own[1] if k == d else none for k in range(self.directions)]
            changed.append([build.Concat(own[0], *columns, axis=1), build.MatMul(own[1], own[-1]), *own[2:-1]])
            turned.append(build.Unsqueeze(own[-1], node.list([0])))
        zero = build.Broadcast(node.like(0, c), build.ShapeOf(c))
        y, m, last = self._layer(build.Concat(*features, axis=2), [zero, c], changed)
        heads = turned[0] if len(turned) == 1 else build.Concat(*turned, axis=0)
        state = build.MatMul(build.Unsqueeze(m, node.list([2])), heads, transpose_b=True)
        return [build.MatMul(y, heads, transpose_b=True), build.Squeeze(state, node.list([2])), last]

    def _stacked(self, ports: Sequence[OutPort]) -> OutPort:
        build, zero = self.node.build, self.node.list([0])
        rows = [build.Unsqueeze(p, zero) for p in ports]
        return rows[0] if len(rows) == 1 else build.Concat(*rows, axis=0)

    def sorted(self, p: OutPort, hidden: int) -> OutPort:
        """Weights with the gates in the opset's order."""
        order = ORDERS[self.family]
        if p.shape[0] != len(order) * hidden:
            raise ModelError(f"{self.node.kind}: weights of {len(order)} gates, {hidden} units each, got {p.type}")
        if order == "0":
            return p
        positions = [int(c) * hidden + i for c in order for i in range(hidden)]
        return self.node.build.Gather(p, self.node.list(positions), self.node.scalar(0))

    def bias(self, parts: Sequence[OutPort], hidden: int, x: OutPort) -> OutPort:
        """Return the sum of both biases; the biases of GRU's last gate stay separate."""
        node, build = self.node, self.node.build
        gates = len(ORDERS[self.family]) + (self.family == "gru")
        if not self.has_biases:
            return build.Broadcast(node.like(0, x), node.list([gates * hidden]))
        first, second = (self.sorted(p, hidden) for p in parts[2:4])
        if self.family != "gru":
            return build.Add(first, second)
        cut = node.list([2 * hidden, hidden])
        outer, inner = (build.VariadicSplit(p, node.scalar(0), cut, outputs=2) for p in (first, second))
        return build.Concat(build.Add(outer, inner), outer.node.out_port(1), inner.node.out_port(1), axis=0)


@aten("lstm.input")
def lstm(
    node: AtenNode,
    x: OutPort,
    hx: Sequence[OutPort],
    params: Sequence[OutPort],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[OutPort, ...]:
    node.refuse(train and dropout > 0, "dropout in training is not supported: export model.eval()")
    projected = node.kind.startswith("lstm") and params[1].shape[0] != 4 * params[1].shape[1]
    stack = Stack(node, params, has_biases, 2 if bidirectional else 1, batch_first, projected)
    return stack.run(x, num_layers, *hx)


@aten("gru.input", "rnn_tanh.input", "rnn_relu.input")
def gru(
    node: AtenNode,
    x: OutPort,
    hx: OutPort,
    params: Sequence[OutPort],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[OutPort, ...]:
    return lstm(node, x, (hx,), params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@aten("lstm_cell.default", "gru_cell.default", "rnn_tanh_cell.default", "rnn_relu_cell.default")
def cell(
    node: AtenNode,
    x: OutPort,
    hx: OutPort | Sequence[OutPort],
    w_ih: OutPort,
    w_hh: OutPort,
    b_ih: OutPort | None = None,
    b_hh: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """One step for x [batch, inputs]; states are [batch, hidden]."""
    weights = [p for p in (w_ih, w_hh, b_ih, b_hh) if p is not None]
    stack = Stack(node, weights, b_ih is not None, 1, False)
    build, zero = node.build, node.list([0])
    states = (hx,) if isinstance(hx, OutPort) else hx
    ports = stack.run(build.Unsqueeze(x, zero), 1, *(build.Unsqueeze(s, zero) for s in states))
    return tuple(build.Squeeze(p, zero) for p in ports[1:])
