"""Recurrent cells and layers: LSTMBlockCell, BlockLSTM, GRUBlockCell."""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.opset.control.control_flow import Loop
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class _Cell:
    """Weights [inputs + hidden, 4 hidden] and bias; peepholes, or nothing; limits."""

    w: OutPort
    b: OutPort
    peepholes: tuple[OutPort, OutPort, OutPort] | None
    forget_bias: float
    clip: float
    order: str  # gates in the weights

    def step(self, build: Builder, x: OutPort, h: OutPort, c: OutPort) -> tuple[OutPort, ...]:
        """i, cs, f, o, ci, co, h"""
        one = build.const(1, DType.I64)
        joined = build.Add(build.MatMul(build.Concat(x, h, axis=1), self.w), self.b)
        parts = build.Split(joined, one, num_splits=4, outputs=4)
        gates = dict(zip(self.order, parts.node.out_ports().values(), strict=True))
        i, f, o = gates["i"], build.Add(gates["f"], self.forget_bias), gates["o"]
        if self.peepholes is not None:
            i = build.Add(i, build.Multiply(c, self.peepholes[0]))
            f = build.Add(f, build.Multiply(c, self.peepholes[1]))
        i, f, ci = build.Sigmoid(i), build.Sigmoid(f), build.Tanh(gates["c"])
        cs = build.Add(build.Multiply(ci, i), build.Multiply(c, f))
        if self.clip > 0:
            cs = build.Clamp(cs, min=-self.clip, max=self.clip)
        if self.peepholes is not None:
            o = build.Add(o, build.Multiply(cs, self.peepholes[2]))
        o, co = build.Sigmoid(o), build.Tanh(cs)
        return i, cs, f, o, ci, co, build.Multiply(co, o)


def _cell(node: TfNode, w: OutPort, wci: OutPort, wcf: OutPort, wco: OutPort, b: OutPort) -> _Cell:
    """Version 2 of the layer sorts the gates otherwise and has no forget bias."""
    second = node.kind == "BlockLSTMV2"
    order, bias = ("icfo", node.number("forget_bias")) if not second else ("ifco", 0.0)
    clip = node.number("cell_clip")
    peepholes = (wci, wcf, wco) if node.flag("use_peephole") else None
    return _Cell(w, b, peepholes, bias, clip, order)


@tf("LSTMBlockCell")
def lstm_block_cell(
    node: TfNode, x: OutPort, c: OutPort, h: OutPort, w: OutPort, wci: OutPort, wcf: OutPort, wco: OutPort, b: OutPort
) -> tuple[OutPort, ...]:
    return _cell(node, w, wci, wcf, wco, b).step(node.build, x, h, c)


@tf("BlockLSTM", "BlockLSTMV2")
def block_lstm(
    node: TfNode,
    length: OutPort,
    x: OutPort,
    c: OutPort,
    h: OutPort,
    w: OutPort,
    wci: OutPort,
    wcf: OutPort,
    wco: OutPort,
    b: OutPort,
) -> tuple[OutPort | None, ...]:
    """Inputs [time, batch, size]; all outputs over time, zeros after `length` steps."""
    cell = _cell(node, w, wci, wcf, wco, b)
    hidden = node.extent(w, 1, "the size of states") // 4
    shape = node.build.Concat(node.dims(x, [1]), node.list([hidden]), axis=0)
    h, c = (node.build.Reshape(p, shape) for p in (h, c))
    if not any(node.outputs[:6]) and cell.peepholes is None and cell.clip <= 0:
        return (*[None] * 6, _sequence(node, cell, length, x, h, c))
    return _loop(node, cell, length, x, h, c)


def _sequence(node: TfNode, cell: _Cell, length: OutPort, x: OutPort, h: OutPort, c: OutPort) -> OutPort:
    """Return the hidden states by one LSTMSequence with gates f i c o."""
    build, one, zero = node.build, node.scalar(1), node.list([0])
    hidden = node.extent(cell.w, 1, "the size of states") // 4
    parts: dict[str, OutPort] = {}
    for name, p, axis in (("w", cell.w, 1), ("b", cell.b, 0)):
        first = build.Split(p, node.scalar(axis), num_splits=4, outputs=4)
        gates = dict(zip(cell.order, first.node.out_ports().values(), strict=True))
        if name == "b":
            gates["f"] = build.Add(gates["f"], cell.forget_bias)
        parts[name] = build.Concat(*(gates[g] for g in "fico"), axis=axis)
    transposed = build.Transpose(parts["w"], node.list([1, 0]))
    both = build.VariadicSplit(transposed, one, node.list([-1, hidden]), outputs=2)
    wide = [build.Unsqueeze(p, zero) for p in (*both.node.out_ports().values(), parts["b"])]
    states = [build.Unsqueeze(p, node.list([1])) for p in (h, c)]
    lengths = build.Broadcast(node.cast(node.single(length), DType.I64), node.dims(x, [1]))
    sequence = build.LSTMSequence(
        build.Transpose(x, node.list([1, 0, 2])), *states, lengths, *wide, hidden_size=hidden, outputs=3
    )
    return build.Transpose(build.Squeeze(sequence, node.list([1])), node.list([1, 0, 2]))


def _loop(node: TfNode, cell: _Cell, length: OutPort, x: OutPort, h: OutPort, c: OutPort) -> tuple[OutPort, ...]:
    """Add a Loop over time that collects all outputs. After the end states stay, and outputs are 0."""
    build = node.build
    outer = [x, h, c, cell.w, cell.b, *(cell.peepholes or ()), node.cast(node.single(length), DType.I64)]
    body = Graph(f"{node.node.name}.body", scope=f"{node.node.name}.")
    inner = [body.add(Parameter(p.type.dtype, p.type.dims)).out_port(0) for p in outer]
    inner[0].node.op = Parameter(x.type.dtype, (1, *(x.type.dims or ())[1:]))
    time = body.add(Parameter(DType.I64, ())).out_port(0)
    inside = Builder(body, build.origin)
    own = _Cell(
        inner[3],
        inner[4],
        (inner[5], inner[6], inner[7]) if cell.peepholes else None,
        cell.forget_bias,
        cell.clip,
        cell.order,
    )
    first = inside.const([0], DType.I64)
    stepped = own.step(inside, inside.Squeeze(inner[0], first), inner[1], inner[2])
    alive = inside.Less(time, inner[-1])
    zero = inside.const(0, x.type.dtype)
    states = [inside.Select(alive, stepped[k], inner[i]) for k, i in ((6, 1), (1, 2))]
    going = inside.const(True, DType.BOOL)
    shown = [inside.Unsqueeze(inside.Select(alive, p, zero), first) for p in stepped]
    for port in (going, *states, *shown):
        body.add(Result(), port)
    maps = [InputMap(2 + k, k, 0 if k == 0 else None) for k in range(len(outer))]
    edges = (BackEdge(1, 1), BackEdge(2, 2))
    outputs = tuple(OutputMap(k, 3 + k, 0) for k in range(7))
    loop = Loop(tuple(maps), outputs, edges, current_iteration=len(outer), execution_condition=0)
    steps = node.size(x, 0)
    loop_node = build.node(loop, steps, build.const(True, DType.BOOL), *outer, outputs=7)
    loop_node.regions["body"] = body
    return tuple(loop_node.out_ports().values())


@tf("GRUBlockCell")
def gru_block_cell(
    node: TfNode, x: OutPort, h: OutPort, w_ru: OutPort, w_c: OutPort, b_ru: OutPort, b_c: OutPort
) -> tuple[OutPort, ...]:
    """r, u, c and the state u h + (1 - u) c"""
    build = node.build
    joined = build.Sigmoid(build.Add(build.MatMul(build.Concat(x, h, axis=1), w_ru), b_ru))
    r, u = build.Split(joined, node.scalar(1), num_splits=2, outputs=2).node.out_ports().values()
    fresh = build.Concat(x, build.Multiply(h, r), axis=1)
    c = build.Tanh(build.Add(build.MatMul(fresh, w_c), b_c))
    return r, u, c, build.Add(build.Multiply(u, h), build.Multiply(build.Subtract(node.like(1, u), u), c))
