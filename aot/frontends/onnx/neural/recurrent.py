"""Recurrent layers: ONNX puts time first and sorts the gates in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.recurrent.cell_activations import usual_parameters
from aot.opset.recurrent.recurrent import Direction
from aot.opset.recurrent.recurrent_cells import WeightsFormat
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

DIRECTIONS = {d.value: d for d in Direction}
WITH_BETA = ("hardsigmoid", "scaledtanh", "affine")
WITH_ALPHA = (*WITH_BETA, "leakyrelu", "elu", "thresholdedrelu")
MAX_UNROLLED_CELLS = 64  # steps at most that are unrolled; beyond, there is too much code


class RecurrentLayer:
    """Base of the conversions of RNN, GRU and LSTM."""

    def __init__(self, node: OnnxNode, x: OutPort, w: OutPort, r: OutPort, gates: int) -> None:
        self.node, self.build, self.gates = node, node.build, gates
        self.direction = node.choice("direction", DIRECTIONS, "forward")
        self.directions = 2 if self.direction is Direction.BIDIRECTIONAL else 1
        backwards = self.direction is Direction.REVERSE
        self.reversals = (False, True) if self.directions == 2 else (backwards,)
        self.hidden = node.integer("hidden_size", None) if node.has("hidden_size") else r.type.static_shape[2]
        for what, p, axis, expected in (("R", r, 2, self.hidden), ("W", w, 1, gates * self.hidden)):
            if p.type.rank != 3 or (isinstance(p.shape[axis], int) and p.shape[axis] != expected):
                rule = f"hidden_size {self.hidden} wants {expected} elements along axis {axis} of {what}"
                raise ModelError(f"{node.kind}: {rule}, got {p.type}")
        self.batch_first = node.flag("layout")
        self.x = x if self.batch_first else self._swapped(x)
        self.w, self.r = w, r

    def _swapped(self, p: OutPort) -> OutPort:
        return self.build.Transpose(p, self.node.list([1, 0, *range(2, p.type.rank)]))

    def sorted(self, p: OutPort, order: str) -> OutPort:
        """Reorder gates along axis 1; `order`: the index of each gate in ONNX."""
        positions = [int(c) * self.hidden + i for c in order for i in range(self.hidden)]
        return self.build.Gather(p, self.node.list(positions), self.node.scalar(1))

    def state(self, p: OutPort | None) -> OutPort:
        """Transpose an initial state to [batch, directions, hidden]; zeros if it is absent."""
        if p is not None:
            return p if self.batch_first else self._swapped(p)
        build, node = self.build, self.node
        counts = node.list([self.directions, self.hidden])
        return build.Broadcast(node.like(0, self.x), build.Concat(node.dims(self.x, [0]), counts, axis=0))

    def lengths(self, p: OutPort | None) -> OutPort:
        build, node = self.build, self.node
        if p is not None:
            return node.cast(p, DType.I64)
        return build.Broadcast(build.Squeeze(node.dims(self.x, [1]), node.list([0])), node.dims(self.x, [0]))

    def biases(self, b: OutPort | None) -> tuple[OutPort, OutPort]:
        """Return the biases of the products with the input and the state, [directions, gates * hidden] each."""
        n = self.gates * self.hidden
        if b is None:
            zero = self.build.Broadcast(self.node.like(0, self.x), self.node.list([self.directions, n]))
            return zero, zero
        first = self.build.VariadicSplit(b, self.node.scalar(1), self.node.list([n, n]), outputs=2)
        return first, first.node.out_port(1)

    def fields(self, each: int) -> dict[str, Any]:
        """Return the attributes; `each`: activations of a direction, which must be equal for both."""
        node = self.node
        names = tuple(n.lower() for n in node.texts("activations", ()))
        alphas = _consumed(names, node.numbers("activation_alpha", ()), WITH_ALPHA, 0)
        betas = _consumed(names, node.numbers("activation_beta", ()), WITH_BETA, 1)
        if names and self.directions == 2:
            halves = [(p[:each], p[each:]) for p in (names, alphas, betas)]
            node.refuse(any(a != b for a, b in halves), "directions with different activations are not supported")
            names, alphas, betas = names[:each], alphas[:each], betas[:each]
        has_alpha = any(n in WITH_ALPHA for n in names)
        return {
            "hidden_size": self.hidden,
            "direction": self.direction,
            "clip": node.number("clip", 0.0),
            "activations": names,
            "activations_alpha": alphas if has_alpha else (),
            "activations_beta": betas if has_alpha else (),
        }

    def arranged(self, ports: Sequence[OutPort]) -> tuple[OutPort, ...]:
        """Transpose Y [batch, directions, time, hidden] and states [batch, directions, hidden] to ONNX's layout."""
        order = [0, 2, 1, 3] if self.batch_first else [2, 1, 0, 3]
        first = self.build.Transpose(ports[0], self.node.list(order))
        return first, *(p if self.batch_first else self._swapped(p) for p in ports[1:])


def _consumed(names: Sequence[str], values: Sequence[float], takers: Sequence[str], position: int) -> tuple[float, ...]:
    """Return a parameter for each activation: those that have one take `values` in order, then their defaults."""
    left = iter(values)
    return tuple(next(left, usual_parameters(n)[position]) if n in takers else 0.0 for n in names)


def ports_of(first: OutPort) -> list[OutPort]:
    return list(first.node.out_ports().values())


@onnx("RNN")
def rnn(
    node: OnnxNode,
    x: OutPort,
    w: OutPort,
    r: OutPort,
    b: OutPort | None = None,
    lengths: OutPort | None = None,
    h: OutPort | None = None,
) -> tuple[OutPort, ...]:
    layer = RecurrentLayer(node, x, w, r, 1)
    bias = node.build.Add(*layer.biases(b))
    inputs = (layer.x, layer.state(h), layer.lengths(lengths), w, r, bias)
    return layer.arranged(ports_of(node.build.RNNSequence(*inputs, **layer.fields(1), outputs=2)))


@onnx("GRU")
def gru(
    node: OnnxNode,
    x: OutPort,
    w: OutPort,
    r: OutPort,
    b: OutPort | None = None,
    lengths: OutPort | None = None,
    h: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """Convert to GRUSequence; both order the gates z r h. With `linear_before_reset` h has two biases."""
    layer, build = RecurrentLayer(node, x, w, r, 3), node.build
    linear, n = node.flag("linear_before_reset"), layer.hidden
    outer, inner = layer.biases(b)
    if linear:
        cut = node.list([2 * n, n])
        first, last = (build.VariadicSplit(p, node.scalar(1), cut, outputs=2) for p in (outer, inner))
        bias = build.Concat(build.Add(first, last), first.node.out_port(1), last.node.out_port(1), axis=1)
    else:
        bias = build.Add(outer, inner)
    inputs = (layer.x, layer.state(h), layer.lengths(lengths), w, r, bias)
    sequence = build.GRUSequence(*inputs, **layer.fields(2), linear_before_reset=linear, outputs=2)
    return layer.arranged(ports_of(sequence))


@onnx("LSTM")
def lstm(
    node: OnnxNode,
    x: OutPort,
    w: OutPort,
    r: OutPort,
    b: OutPort | None = None,
    lengths: OutPort | None = None,
    h: OutPort | None = None,
    c: OutPort | None = None,
    p: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """Convert to LSTMSequence: the gates are i o f c in ONNX, f i c o in the opset."""
    layer = RecurrentLayer(node, x, w, r, 4)
    bias = node.build.Add(*layer.biases(b))
    if p is not None or node.flag("input_forget"):
        return _with_peepholes(layer, bias, lengths, (layer.state(h), layer.state(c)), p)
    weights = (layer.sorted(q, "2031") for q in (w, r, bias))
    inputs = (layer.x, layer.state(h), layer.state(c), layer.lengths(lengths), *weights)
    fields = layer.fields(3)
    sequence = node.build.ClippedLSTMSequence if fields["clip"] > 0 else node.build.LSTMSequence
    return layer.arranged(ports_of(sequence(*inputs, **fields, outputs=3)))


def _with_peepholes(
    layer: RecurrentLayer, bias: OutPort, lengths: OutPort | None, states: tuple[OutPort, OutPort], p: OutPort | None
) -> tuple[OutPort, ...]:
    """Build cells step by step, because LSTMSequence has no peepholes; a sequence that has ended keeps its state."""
    node, build = layer.node, layer.build
    steps = node.extent(layer.x, 1, "the number of steps beside peepholes")
    node.refuse(
        steps > MAX_UNROLLED_CELLS, f"peepholes are supported for up to {MAX_UNROLLED_CELLS} steps, got {steps}"
    )
    fields = {k: v for k, v in layer.fields(3).items() if k != "direction"}
    weights = [layer.sorted(q, "2031") for q in (layer.w, layer.r, bias)]
    results: list[tuple[OutPort, ...]] = []
    for d in range(layer.directions):
        backwards = d == 1 or layer.direction is Direction.REVERSE
        ends = layer.lengths(lengths)

        def turned(q: OutPort, ends: OutPort = ends, backwards: bool = backwards) -> OutPort:
            return build.ReverseSequence(q, ends, batch_axis=0, seq_axis=1) if backwards else q

        x, rows = turned(layer.x), [build.Gather(q, node.scalar(d), node.scalar(0)) for q in weights]
        peepholes = () if p is None else (build.Gather(p, node.scalar(d), node.scalar(0)),)
        h, c = (build.Gather(s, node.scalar(d), node.scalar(1)) for s in states)
        outputs: list[OutPort] = []
        for t in range(steps):
            part = build.Gather(x, node.scalar(t), node.scalar(1))
            after = build.OnnxLSTMCell(
                part,
                h,
                c,
                *rows,
                *peepholes,
                **fields,
                input_forget=node.flag("input_forget"),
                weights_format=WeightsFormat.FICO,
                outputs=2,
            )
            alive = None if lengths is None else build.Greater(build.Unsqueeze(ends, node.list([1])), t)
            shown, h, c = _while(node, alive, (after, after.node.out_port(1)), (h, c))
            outputs.append(build.Unsqueeze(shown, node.list([1])))
        results.append((turned(outputs[0] if steps == 1 else build.Concat(*outputs, axis=1)), h, c))
    stacked = [[build.Unsqueeze(q, node.list([1])) for q in parts] for parts in zip(*results, strict=True)]
    return layer.arranged([q[0] if len(q) == 1 else build.Concat(*q, axis=1) for q in stacked])


def _while(
    node: OnnxNode, alive: OutPort | None, after: tuple[OutPort, OutPort], before: tuple[OutPort, OutPort]
) -> tuple[OutPort, OutPort, OutPort]:
    """Return a step's output and states; a sequence that has ended has output 0 and the states `before` the step."""
    if alive is None:
        return after[0], *after
    select, zero = node.build.Select, node.like(0, after[0])
    return select(alive, after[0], zero), select(alive, after[0], before[0]), select(alive, after[1], before[1])
