"""Loops that are recurrent layers, however their gates are written, become LSTMSequence, GRUSequence, RNNSequence.

    Loop(n) { z = x_t W + h R + b; f, i, c~, o = split(z); c = f c + i c~; h = o tanh(c) }     ->     LSTMSequence

What goes into an activation is a sum of products with constant matrices; which columns of which product it takes does
not matter (`_Linear`). A loop that computes anything else, as with masks, stays a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import Array, simplify
from aot.opset.control.control_flow import Loop, known_truth
from aot.opset.control.port_maps import InputMap, OutputMap
from aot.opset.elementwise.activation import Relu, Sigmoid
from aot.opset.elementwise.binary import Add, Multiply, Subtract
from aot.opset.elementwise.unary import Tanh
from aot.opset.movement.movement import Concat, Split, VariadicSplit
from aot.opset.movement.shape import Squeeze, Unsqueeze
from aot.opset.movement.slicing import Slice, StridedSlice
from aot.opset.products.matmul import MatMul
from aot.opset.recurrent.recurrent import GRUSequence, LSTMSequence, RNNSequence
from aot.passes.match import constant
from aot.runtime.abi import DType

ACTIVATIONS = {Sigmoid: "sigmoid", Tanh: "tanh", Relu: "relu"}


def loops_to_sequences(graph: Graph) -> bool:
    """Replace every Loop of a graph that is a recurrent layer."""
    changed = False
    for node in graph.order():
        if isinstance(node.op, Loop):
            node.operands()
            changed = _replaced(node, node.op) or changed
    return changed


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum: each of some values times a matrix [K, N] (None: times 1), and a vector of N."""

    terms: Mapping[OutPort, Array | None] = field(default_factory=dict[OutPort, "Array | None"])
    bias: Array | None = None

    def plus(self, other: _Linear) -> _Linear | None:
        """Return the sum; None if a value occurs in both, once without a matrix."""
        terms = dict(self.terms)
        for port, matrix in other.terms.items():
            own_matrix = terms.get(port)
            if port in terms and (own_matrix is None or matrix is None):
                return None
            terms[port] = matrix if own_matrix is None or matrix is None else own_matrix + matrix
        bias = [b for b in (self.bias, other.bias) if b is not None]
        return _Linear(terms, bias[0] + bias[1] if len(bias) == 2 else bias[0] if bias else None)

    def columns(self, part: slice | Array) -> _Linear | None:
        """Return some columns; None if a value has no matrix, or numbers are fewer than columns."""
        terms = {port: matrix[:, part] for port, matrix in self.terms.items() if matrix is not None}
        if len(terms) < len(self.terms):
            return None
        return _Linear(terms, self.bias if self.bias is None or self.bias.shape[-1] == 1 else self.bias[..., part])


def _linear(port: OutPort) -> _Linear:
    """Return a value as a sum; one that is none is a term by itself."""
    linear = _sum(port)
    return linear if linear is not None else _Linear({port: None})


def _sum(port: OutPort) -> _Linear | None:
    node, value = port.node, constant(port)
    if value is not None:
        flat = value.reshape(-1) if value.size in (1, value.shape[-1] if value.ndim else 1) else None
        return None if flat is None else _Linear({}, flat)
    if isinstance(node.op, Add):
        return _linear(node.source(0)).plus(_linear(node.source(1)))
    if isinstance(node.op, MatMul):
        return _product(node, node.op)
    if isinstance(node.op, Split | VariadicSplit):
        return _part(node, port)
    return _columns(node) if isinstance(node.op, Slice | StridedSlice) else None


def _product(node: Node, op: MatMul) -> _Linear | None:
    """Return a product with a constant matrix; values side by side are several products."""
    x, w = node.source(0), constant(node.source(1))
    if w is None or w.ndim != 2 or op.transpose_a or x.type.rank != 2:
        return None
    w = w.T if op.transpose_b else w
    if not isinstance(x.node.op, Concat) or x.node.op.axis % 2 != 1:
        return _Linear({x: w})
    linear, begin = _Linear(), 0
    for source in x.node.sources():
        if source is None or not isinstance(size := source.shape[1], int):
            return None
        more = linear.plus(_Linear({source: w[begin : begin + size]}))
        if more is None:
            return None
        linear, begin = more, begin + size
    return linear


def _part(node: Node, port: OutPort) -> _Linear | None:
    """Some columns of a sum that is split."""
    axis, sizes = constant(node.source(1)), [p.shape[-1] for p in node.out_ports().values()]
    numbers = [n for n in sizes if isinstance(n, int)]
    if axis is None or int(axis.reshape(-1)[0]) % port.type.rank != port.type.rank - 1 or len(numbers) < len(sizes):
        return None
    begin = sum(numbers[: port.idx])
    return _linear(node.source(0)).columns(slice(begin, begin + numbers[port.idx]))


def _columns(node: Node) -> _Linear | None:
    """Some columns of a sum, as a slice takes them."""
    x, constants = node.source(0), [constant(p) for p in node.sources()[1:] if p is not None]
    count = x.shape[-1]
    keeps_rank = x.type.rank == 2 == node.out_port(0).type.rank and x.shape[0] == node.out_port(0).shape[0]
    if not keeps_rank or not isinstance(count, int) or len(constants) != sum(w is not None for w in constants):
        return None
    columns = np.asarray(node.op.reference(np.arange(count)[None], *constants))
    return _linear(x).columns(columns[0]) if len(columns) == 1 else None


@dataclass(frozen=True, slots=True)
class _Gate:
    """An activation of a sum."""

    activation: str
    sum: _Linear


def _gate(port: OutPort) -> _Gate | None:
    name = next((n for cls, n in ACTIVATIONS.items() if isinstance(port.node.op, cls)), None)
    return None if name is None else _Gate(name, _linear(port.node.source(0)))


def _factors(port: OutPort, known: OutPort | None = None) -> tuple[OutPort, OutPort] | None:
    """Return the two factors of a product, `known` first if it is given."""
    if not isinstance(port.node.op, Multiply):
        return None
    a, b = port.node.source(0), port.node.source(1)
    if known is None or a is known:
        return a, b
    return (b, a) if b is known else None


@dataclass(frozen=True, slots=True)
class _Cell:
    """One step: gates in the operation's order, each with matrices for x and h, and the states by their parameters."""

    kind: str
    gates: tuple[_Gate, ...]
    states: tuple[int, ...]  # parameters
    activations: tuple[str, ...]
    inner: _Linear | None = None  # GRU: the operand of the reset gate, if that is a sum


class _Step:
    """The body of a loop as one step of a recurrent layer."""

    def __init__(self, node: Node, op: Loop) -> None:
        self.body, self.op = node.regions["body"], op
        self.edges = {e.parameter: e.result for e in op.back_edges}
        parts = [m for m in op.input_maps if m.axis is not None]
        self.slice = parts[0] if len(parts) == 1 else None
        self.x = self._part() if self.slice is not None else None

    def _part(self) -> OutPort | None:
        """Return the part of the input without its axis, [B, I]."""
        assert self.slice is not None
        consumers = [d.node for d in self.body.parameters[self.slice.parameter].out_port(0).destinations]
        if len(consumers) != 1 or not isinstance(consumers[0].op, Squeeze):
            return None
        port = consumers[0].out_port(0)
        return port if port.type.rank == 2 else None

    def port(self, parameter: int) -> OutPort:
        return self.body.parameters[parameter].out_port(0)

    def after(self, parameter: int) -> OutPort:
        return self.body.results[self.edges[parameter]].source(0)

    def cell(self) -> _Cell | None:
        """Return the layer that the step is one of; None if it is none."""
        for h in self.edges:
            if self.port(h).type.rank == 2:
                result = self._lstm(h) or self._gru(h) or self._rnn(h)
                if result is not None:
                    return result
        return None

    def _fits(self, gate: _Gate | None, h: int, *more: OutPort) -> bool:
        """True if a gate is a sum of products with x and h, and of nothing else."""
        return gate is not None and self.x is not None and {*gate.sum.terms} == {self.x, self.port(h), *more}

    def _lstm(self, h: int) -> _Cell | None:
        """h' = o g(c'), c' = f c + i c~"""
        for c in self.edges:
            out = _factors(self.after(h))
            if c == h or out is None or not isinstance(self.after(c).node.op, Add):
                continue
            for o, squashed in (out, out[::-1]):
                name = next((n for cls, n in ACTIVATIONS.items() if isinstance(squashed.node.op, cls)), None)
                if name is None or squashed.node.source(0) is not self.after(c):
                    continue
                gates = self._cell_gates(c)
                all_gates = (*gates[:2], *gates[2:], _gate(o)) if gates is not None else ()
                fitting = tuple(g for g in all_gates if g is not None and self._fits(g, h))
                if (
                    len(fitting) == 4
                    and len({fitting[0].activation, fitting[1].activation, fitting[3].activation}) == 1
                ):
                    return _Cell("lstm", fitting, (h, c), (fitting[0].activation, fitting[2].activation, name))
        return None

    def _cell_gates(self, c: int) -> tuple[_Gate | None, _Gate | None, _Gate | None] | None:
        """Gates f, i and c~ of c' = f c + i c~; i is that which has the activation of f."""
        total = self.after(c).node
        for first, second in ((0, 1), (1, 0)):
            old, new = _factors(total.source(first), self.port(c)), _factors(total.source(second))
            if old is None or new is None:
                continue
            forget, one, other = _gate(old[1]), _gate(new[0]), _gate(new[1])
            if forget is not None and one is not None and one.activation == forget.activation:
                return forget, one, other
            return forget, other, one
        return None

    def _gru(self, h: int) -> _Cell | None:
        """h' = z h + (1 - z) n"""
        after, state = self.after(h), self.port(h)
        if not isinstance(after.node.op, Add):
            return None
        for first, second in ((0, 1), (1, 0)):
            kept, new = _factors(after.node.source(first), state), _factors(after.node.source(second))
            if kept is None or new is None:
                continue
            z = kept[1]
            n = next((b for a, b in (new, new[::-1]) if _is_complement(a, z)), None)
            update = _gate(z)
            if n is not None and update is not None and self._fits(update, h):
                return self._gru_cell(h, update, n)
        return None

    def _gru_cell(self, h: int, update: _Gate, n: OutPort) -> _Cell | None:
        """n = g(a_n + (r h) R_n), or g(a_n + r (h R_n + b)): `inner`."""
        new, state = _gate(n), self.port(h)
        others = [p for p in new.sum.terms if p is not self.x] if new is not None else []
        if new is None or len(others) != 1:
            return None
        matrix, reset = new.sum.terms[others[0]], _factors(others[0])
        if reset is None:
            return None
        if matrix is not None:
            inner, factors = None, _factors(others[0], state)
            gate = _gate(factors[1]) if factors is not None else None
        else:
            sides = [(_gate(a), _linear(b)) for a, b in (reset, reset[::-1])]
            gate, inner = next(((g, s) for g, s in sides if g is not None and {*s.terms} == {state}), (None, None))
            if inner is None or inner.terms[state] is None:
                return None
        if (
            gate is None
            or not self._fits(gate, h)
            or gate.activation != update.activation
            or self.x not in new.sum.terms
        ):
            return None
        terms = {port: m for port, m in new.sum.terms.items() if port is self.x}
        terms[state] = matrix if inner is None else inner.terms[state]
        last = _Gate(new.activation, _Linear(terms, new.sum.bias))
        return _Cell("gru", (update, gate, last), (h,), (update.activation, new.activation), inner)

    def _rnn(self, h: int) -> _Cell | None:
        """h' = f(a + h R)"""
        gate = _gate(self.after(h))
        return _Cell("rnn", (gate,), (h,), (gate.activation,)) if gate is not None and self._fits(gate, h) else None


def _is_complement(port: OutPort, z: OutPort) -> bool:
    """True for 1 - z."""
    one = constant(port.node.source(0)) if isinstance(port.node.op, Subtract) else None
    return one is not None and bool((one == 1).all()) and port.node.source(1) is z


def _replaced(node: Node, op: Loop) -> bool:
    """Replace a loop if it is a recurrent layer and all its read outputs are states."""
    step = _Step(node, op)
    counted = op.iterations([node.input(i) for i in range(len(node.in_ports()))], step.body)
    if step.slice is None or step.x is None or counted is None or known_truth(node.input(1)) is not True:
        return False
    sequence = node.source(step.slice.external)
    reads_every_step = step.slice == InputMap(step.slice.external, step.slice.parameter, step.slice.axis)
    axis = step.slice.axis or 0
    if (
        not reads_every_step
        or sequence.type.rank != 3
        or axis not in (0, 1)
        or simplify(counted) != sequence.shape[axis]
    ):
        return False
    cell = step.cell()
    if cell is None:
        return False
    read_maps = [m for m in op.output_maps if _is_wanted(node.out_port(m.external))]
    states = [_read_state(step, cell, m) for m in read_maps]
    if any(a is None for a in states):
        return False
    outputs = _layer(node, step, cell, axis)
    for m, (what, axes) in zip(read_maps, [a for a in states if a is not None], strict=True):
        port, build = outputs[what], Builder(node.graph, node.origin)
        if what == 0:
            port = build.Transpose(port, build.const([1, 0, 2], DType.I64)) if m.axis == 0 else port
        for a in axes:
            port = build.Unsqueeze(port, build.const([a], DType.I64))
        node.out_port(m.external).replace_by(port)
    return True


def _is_wanted(port: OutPort) -> bool:
    return bool(port.destinations or port.names)


def _read_state(step: _Step, cell: _Cell, m: OutputMap) -> tuple[int, list[int]] | None:
    """Return an output of the layer (0: all h, 1: the last h, 2: the last c) and its new axes."""
    port, axes = step.body.results[m.result].source(0), list[int]()
    if isinstance(port.node.op, Unsqueeze):
        indices = constant(port.node.source(1))
        if indices is None or indices.size != 1:
            return None
        axes = [int(indices.reshape(-1)[0]) % port.type.rank]
        port = port.node.source(0)
    which = next((k for k, p in enumerate(cell.states) if step.after(p) is port), None)
    if which is None:
        return None
    if m.axis is None:
        return which + 1, axes
    collects_every_step = (
        m == replace(m, start=0, end=-1, stride=1, part_size=1) and axes == [m.axis] and m.axis in (0, 1)
    )
    return (0, []) if which == 0 and collects_every_step else None


def _layer(node: Node, step: _Step, cell: _Cell, axis: int) -> list[OutPort]:
    """Return the outputs of the layer: all states h as [B, T, H], the last h and c as [B, H]."""
    build = Builder(node.graph, node.origin)
    assert step.slice is not None
    x = node.source(step.slice.external)
    x = x if axis == 1 else build.Transpose(x, build.const([1, 0, 2], DType.I64))
    one, dtype = build.const([1], DType.I64), x.type.dtype
    maps = {m.parameter: m for m in step.op.input_maps}
    states = [build.Unsqueeze(node.source(maps[p].external), one) for p in cell.states]
    sizes = build.ShapeOf(x)
    count = build.Gather(sizes, one, build.const(0, DType.I64))
    batch = build.Gather(sizes, build.const([0], DType.I64), build.const(0, DType.I64))
    lengths = build.Broadcast(count, batch)
    weights = [a[None] for a in _weights(step, cell)]
    hidden, names = weights[1].shape[2], cell.activations
    if cell.kind == "lstm":
        sequence = LSTMSequence(hidden_size=hidden, activations=names)
    elif cell.kind == "gru":
        sequence = GRUSequence(hidden_size=hidden, activations=names, linear_before_reset=cell.inner is not None)
    else:
        sequence = RNNSequence(hidden_size=hidden, activations=names)
    constants = [build.const(a, dtype) for a in weights]
    layer = build.node(sequence, x, *states, lengths, *constants, outputs=1 + len(states))
    return [build.Squeeze(port, one) for port in layer.out_ports().values()]


def _weights(step: _Step, cell: _Cell) -> list[Array]:
    """Return W [gates * H, I], R [gates * H, H] and B [gates * H], or one H more for a reset gate that is a factor."""
    x, h = step.x, step.port(cell.states[0])
    assert x is not None

    def rows(port: OutPort) -> Array:
        terms: Sequence[Array | None] = [g.sum.terms[port] for g in cell.gates]
        return np.concatenate([m.T for m in terms if m is not None])

    recurrent = rows(h)

    def vector(bias: Array | None) -> Array:
        return np.broadcast_to(np.zeros(1) if bias is None else bias, recurrent.shape[1:])

    biases = [vector(g.sum.bias) for g in cell.gates]
    if cell.inner is not None:
        biases.append(vector(cell.inner.bias))
    return [rows(x), recurrent, np.concatenate(biases)]
