"""Loops that a counter drives become loops over slices, and recurrent layers where their body is a step of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.opset.control.control_flow import Loop
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.passes.middle.control.loops_to_sequences import loops_to_sequences
from aot.passes.middle.control.simplify_loops import simplify_loops
from aot.passes.middle.remove_dead_code import remove_dead_code
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from tests.cases import LOOSE
from tests.passes.check import operations, weights

PASSES = [scope_region_symbols, simplify_loops, loops_to_sequences, remove_dead_code]
B, K, H = 2, 3, 4
Step = Callable[[Builder, OutPort, Sequence[OutPort]], Sequence[OutPort]]  # x_t and states give states


def f32(b: Builder, *shape: int, scale: float = 0.5) -> OutPort:
    return b.const(weights(*shape) * scale, DType.F32)


def layer(step: Step, states: int, time: int | str, axis: int = 0, start: int = 0, batch: int | str = B) -> Graph:
    """While t < T: states = step(x[t], states); out[t] = states[0], as TensorFlow writes it."""
    graph, inner = Graph(), Graph("body")
    b, c = Builder(graph), Builder(inner)
    t, n = (Var(d, 64) if isinstance(d, str) else d for d in (time, batch))
    shape = (t, n, K) if axis == 0 else (n, t, K)
    x = b(Parameter(DType.F32, shape), name="x")
    first = [b(Parameter(DType.F32, (n, H)), name=f"s{k}") for k in range(states)]
    at = b.const([axis], DType.I64)
    count = b.Squeeze(b.Gather(b.ShapeOf(x, output_type=DType.I32), at, b.const(0, DType.I64)), b.const([0], DType.I64))
    zero = b.const(start, DType.I32)
    sizes = b.Concat(b.Unsqueeze(count, b.const([0], DType.I64)), b.ShapeOf(first[0], output_type=DType.I32), axis=0)
    rows = b.Broadcast(b.const(0, DType.F32), sizes)
    going = b.Less(zero, count)
    places = [zero, rows, *first, x, count]
    given = [c(Parameter(p.type.dtype, p.type.dims), name=f"p{k}") for k, p in enumerate(places)]
    i, out, *held = given[: 2 + states]
    part = c.Gather(given[-2], i, c.const(axis, DType.I64))
    made = step(c, part, held)
    place = c.Reshape(c.Convert(i, destination_type=DType.I64), c.const([1], DType.I64))
    filled = c.ScatterUpdate(out, place, c.Unsqueeze(made[0], c.const([0], DType.I64)), c.const(0, DType.I64))
    after = c.Add(i, 1)
    for port in (c.Less(after, given[-1]), after, filled, *made):
        c(Result(), port)
    edges = tuple(BackEdge(1 + k, k) for k in range(2 + states))
    outs = tuple(OutputMap(k, 2 + k) for k in range(1 + states))
    op = Loop(tuple(InputMap(2 + k, k) for k in range(len(given))), outs, edges, execution_condition=0)
    node = b.node(op, b.const(-1, DType.I64), going, *places, outputs=1 + states)
    node.regions = {"body": inner}
    for port in node.out_ports().values():
        b(Result(), port)
    return graph


def lstm(b: Builder, x: OutPort, states: Sequence[OutPort], order: str = "ifco", cut: str = "split") -> list[OutPort]:
    h, c = states
    z = b.Add(b.Add(b.MatMul(x, f32(b, K, 4 * H)), f32(b, 4 * H)), b.MatMul(h, f32(b, 4 * H, H), transpose_b=True))
    parts = _parts(b, z, 4, cut)
    gates = {name: parts[k] for k, name in enumerate(order)}
    new = b.Multiply(b.Sigmoid(gates["i"]), b.Tanh(gates["c"]))
    c = b.Add(b.Multiply(c, b.Sigmoid(gates["f"])), new)
    return [b.Multiply(b.Tanh(c), b.Sigmoid(gates["o"])), c]


def _parts(b: Builder, z: OutPort, count: int, cut: str) -> list[OutPort]:
    if cut == "split":
        first = b.Split(z, b.const(1, DType.I64), num_splits=count, outputs=count)
        return list(first.node.out_ports().values())
    ends = [(b.const([k * H], DType.I64), b.const([(k + 1) * H], DType.I64)) for k in range(count)]
    return [b.Slice(z, low, high, b.const([1], DType.I64), b.const([1], DType.I64)) for low, high in ends]


def apart(b: Builder, x: OutPort, states: Sequence[OutPort]) -> list[OutPort]:
    """An LSTM whose gates have matrices of their own, for x and h side by side."""
    h, c = states
    both = b.Concat(x, h, axis=1)
    f, i, o, g = (b.Add(b.MatMul(both, f32(b, K + H, H, scale=k / 4)), f32(b, H)) for k in range(1, 5))
    c = b.Add(b.Multiply(b.Tanh(g), b.Sigmoid(i)), b.Multiply(b.Sigmoid(f), c))
    return [b.Multiply(b.Sigmoid(o), b.Tanh(c)), c]


def gru(b: Builder, x: OutPort, states: Sequence[OutPort], after: bool = True) -> list[OutPort]:
    """`after`: the reset gate multiplies the product with h; else h."""
    (h,) = states
    a = _parts(b, b.Add(b.MatMul(x, f32(b, K, 3 * H)), f32(b, 3 * H)), 3, "split")
    u = weights(H, 3 * H) * 0.5
    r = _parts(b, b.Add(b.MatMul(h, b.const(u, DType.F32)), f32(b, 3 * H, scale=0.3)), 3, "slice")
    z, reset = b.Sigmoid(b.Add(a[0], r[0])), b.Sigmoid(b.Add(r[1], a[1]))
    inner = b.Multiply(reset, r[2]) if after else b.MatMul(b.Multiply(reset, h), b.const(u[:, 2 * H :], DType.F32))
    n = b.Tanh(b.Add(a[2], inner))
    return [b.Add(b.Multiply(z, h), b.Multiply(_rest(b, z), n))]


def _rest(b: Builder, z: OutPort) -> OutPort:
    return b.Subtract(b.const(1.0, DType.F32), z)


def rnn(b: Builder, x: OutPort, states: Sequence[OutPort]) -> list[OutPort]:
    return [b.Relu(b.MatMul(b.Concat(states[0], x, axis=1), f32(b, H + K, H)))]


def masked(b: Builder, x: OutPort, states: Sequence[OutPort]) -> list[OutPort]:
    """Rows whose data are negative keep their states."""
    mask = b.Greater(b.ReduceSum(x, b.const([1], DType.I64), keep_dims=True), 0.0)
    return [b.Select(mask, new, old) for new, old in zip(lstm(b, x, states), states, strict=True)]


def peephole(b: Builder, x: OutPort, states: Sequence[OutPort]) -> list[OutPort]:
    """The gate of the output reads the last c, too."""
    h, c = lstm(b, x, states)
    return [b.Multiply(h, b.Sigmoid(states[1])), c]


def inputs(graph: Graph, time: int) -> list[Array]:
    rng = np.random.default_rng(3)
    shapes = [
        [n if isinstance(n, int) else time if n.name == "t" else B for n in p.out_port(0).shape]
        for p in graph.parameters
    ]
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def after(graph: Graph, time: int) -> list[str]:
    """The operations that passes leave; the results must not change."""
    given = inputs(graph, time)
    expected = interpret(graph, given)
    run_passes(graph, PASSES)
    for found, one in zip(interpret(graph, given), expected, strict=True):
        assert LOOSE.allows(found, one)
    return operations(graph)


CELLS: dict[str, tuple[Step, int, str]] = {
    "lstm": (lstm, 2, "LSTMSequence"),
    "lstm of PyTorch": (lambda b, x, s: lstm(b, x, s, "ifco", "slice"), 2, "LSTMSequence"),
    "lstm of OpenVINO": (lambda b, x, s: lstm(b, x, s, "fico"), 2, "LSTMSequence"),
    "lstm of ONNX": (lambda b, x, s: lstm(b, x, s, "iofc"), 2, "LSTMSequence"),
    "lstm with products of its own": (apart, 2, "LSTMSequence"),
    "gru, reset after": (gru, 1, "GRUSequence"),
    "gru, reset before": (lambda b, x, s: gru(b, x, s, False), 1, "GRUSequence"),
    "rnn": (rnn, 1, "RNNSequence"),
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize(("time", "batch", "axis"), [(5, B, 0), ("t", "n", 0), ("t", B, 1)])
def test_steps_of_recurrent_layers_become_the_layer(name: str, time: int | str, batch: int | str, axis: int) -> None:
    step, states, kind = CELLS[name]
    found = after(layer(step, states, time, axis, batch=batch), 5)
    assert kind in found
    assert "Loop" not in found


@pytest.mark.parametrize("step", [masked, peephole])
def test_other_steps_stay_loops_over_slices(step: Step) -> None:
    graph = layer(step, 2, "t")
    assert "Loop" in after(graph, 4)
    (loop,) = graph.get_op_nodes("Loop")
    kinds = {n.type for n in loop.regions["body"].nodes.values()}
    assert not kinds & {"ScatterUpdate", "Gather"}


@pytest.mark.parametrize("time", [3, "t"])
def test_a_loop_that_begins_late_keeps_reading_at_its_counter(time: int | str) -> None:
    graph = layer(rnn, 1, time, start=1)
    assert "Loop" in after(graph, 3)
    (loop,) = graph.get_op_nodes("Loop")
    assert {"ScatterUpdate", "Gather"} <= {n.type for n in loop.regions["body"].nodes.values()}


def test_rows_whose_sizes_only_data_say_stay_in_a_carried_value() -> None:
    """A mask is drawn into a picture so: zeros before it, what is left of the picture behind it."""
    graph, inner = Graph(), Graph("body")
    b, c = Builder(graph), Builder(inner)
    x = b(Parameter(DType.F32, (1, K)), name="x")
    places = [b.const(0, DType.I64), b.const(np.zeros((0, K)), DType.F32), x]
    i, out, part = (c(Parameter(p.type.dtype, p.type.dims), name=f"p{k}") for k, p in enumerate(places))
    cut = c.Convert(c.ReduceMax(part, c.const([1], DType.I64)), destination_type=DType.I64)
    ends = (part, cut, c.const([1], DType.I64), c.const([1], DType.I64))
    row = c.Concat(
        c.Slice(part, c.const([0], DType.I64), *ends[1:]),
        c.Slice(part, cut, c.const([K], DType.I64), *ends[2:]),
        axis=1,
    )
    for port in (c.const(True, DType.BOOL), c.Add(i, 1), c.Concat(out, row, axis=0)):
        c(Result(), port)
    edges = (BackEdge(1, 0), BackEdge(2, 1))
    op = Loop(tuple(InputMap(2 + k, k) for k in range(3)), (OutputMap(0, 2),), edges, 0, 0)
    node = b.node(op, b.const(2, DType.I64), b.const(True, DType.BOOL), *places, outputs=1)
    node.regions = {"body": inner}
    b(Result(), node.out_port(0))
    run_passes(graph, PASSES)
    (found,) = interpret(graph, [np.array([[0.0, 2.0, 1.0]], np.float32)])
    assert np.array_equal(found, [[0, 2, 1]] * 2)
