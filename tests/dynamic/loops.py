"""Networks with control flow that only run time decides, each with inputs that take all its ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array, Dim
from aot.opset.control.control_flow import If, Loop, TensorIterator
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.opset.control.state import Assign, ReadValue_3
from aot.opset.recurrent.recurrent_cells import LSTMCell_4
from aot.runtime.abi import DType
from tests.dynamic.networks import N, parameter, result, weights

ROWS = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8 - 1
ROW = ROWS[0, :2].copy()


@dataclass(frozen=True)
class Network:
    make: Callable[[], Graph]
    inputs: Sequence[Sequence[Array]]


class Body:
    """A body in the making: `x = body.takes(2, 4)`, `body.gives(y)`."""

    def __init__(self) -> None:
        self.graph = Graph("body")
        self.build = Builder(self.graph)

    def takes(self, *shape: Dim, dtype: DType = DType.F32) -> OutPort:
        return parameter(self.graph, f"p{len(self.graph.parameters)}", *shape, dtype=dtype)

    def gives(self, *ports: OutPort) -> Graph:
        for port in ports:
            result(self.graph, port)
        return self.graph

    def number(self, value: float | Sequence[int], dtype: DType = DType.F32) -> OutPort:
        return self.build.const(value, dtype)


def _network(*ports: OutPort) -> Graph:
    graph = ports[0].node.graph
    for port in ports:
        result(graph, port)
    return graph


def _i64(build: Builder, value: int | Sequence[int]) -> OutPort:
    return build.const(value, DType.I64)


def _if(condition: OutPort, inputs: Sequence[OutPort], then: Graph, other: Graph, outputs: int = 1) -> list[OutPort]:
    maps = tuple(InputMap(1 + k, k) for k in range(len(inputs)))
    outs = tuple(OutputMap(k, k) for k in range(outputs))
    node = condition.node.graph.add(If(maps, outs, maps, outs), condition, *inputs, outputs=outputs)
    node.regions = {"then": then, "else": other}
    return list(node.out_ports().values())


def _loop(op: Loop | TensorIterator, inputs: Sequence[OutPort], body: Graph) -> list[OutPort]:
    node = inputs[0].node.graph.add(op, *inputs, outputs=len(op.output_maps))
    node.regions = {"body": body}
    return list(node.out_ports().values())


def shapes_by_branch() -> Graph:
    """Return a network whose branches have different shapes: all of x if c, else its first row twice."""
    graph = Graph("branches")
    c, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 2, 4)
    then, other = Body(), Body()
    whole = then.takes(2, 4)
    then.gives(then.build.Exp(whole))
    y = other.takes(2, 4)
    first = other.build.Slice(y, *(other.number([n], DType.I64) for n in (0, 1, 1, 0)))
    other.gives(other.build.Multiply(first, other.number(2)))
    (y,) = _if(c, [x], then.graph, other.graph)
    build = Builder(graph)
    return _network(build.ReduceSum(y, _i64(build, [0])), build.Add(y, y))


def nested_branches() -> Graph:
    """x, -x or x + 1, by two conditions, of which one is computed inside."""
    graph = Graph("nested")
    c, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 2, 4)
    then, other = Body(), Body()
    then.gives(then.takes(2, 4))
    y = other.takes(2, 4)
    low = other.build.Less(other.build.ReduceMax(y, other.number([0, 1], DType.I64)), other.number(0))
    minus, plus = Body(), Body()
    minus.gives(minus.build.Negative(minus.takes(2, 4)))
    z = plus.takes(2, 4)
    plus.gives(plus.build.Add(z, plus.number(1)))
    other.gives(*_if(low, [y], minus.graph, plus.graph))
    return _network(*_if(c, [x], then.graph, other.graph))


def exchanged() -> Graph:
    """a, b = b, a + b, n times: values change places, and one is the other's old one."""
    graph = Graph("exchanged")
    n, a, b = parameter(graph, "n", dtype=DType.I64), parameter(graph, "a", 3), parameter(graph, "b", 3)
    body = Body()
    x, y = body.takes(3), body.takes(3)
    body.gives(y, body.build.Add(x, y))
    maps = (InputMap(2, 0), InputMap(3, 1)), (OutputMap(0, 0), OutputMap(1, 1)), (BackEdge(0, 0), BackEdge(1, 1))
    return _network(*_loop(Loop(*maps), [n, Builder(graph).const(True, DType.BOOL), a, b], body.graph))


def growing() -> Graph:
    """A list of sums that grows by one row each time, n times; all of it is read inside."""
    graph = Graph("growing")
    build = Builder(graph)
    n, x = parameter(graph, "n", dtype=DType.I64), parameter(graph, "x", 1, 4)
    body = Body()
    rows = body.takes(Var("rows"), 4)
    total = body.build.ReduceSum(rows, body.number([0], DType.I64), keep_dims=True)
    body.gives(body.build.Concat(rows, body.build.Tanh(total), axis=0))
    maps = (InputMap(2, 0),), (OutputMap(0, 0),), (BackEdge(0, 0),)
    (y,) = _loop(Loop(*maps), [n, build.const(True, DType.BOOL), x], body.graph)
    return _network(y, build.ReduceMax(y, _i64(build, [0])))


def waiting(axis: int, stride: int) -> Callable[[], Graph]:
    """v += v while its sum is below a limit; every v, along an axis, forwards or backwards."""

    def make() -> Graph:
        graph = Graph("while")
        build = Builder(graph)
        x, limit = parameter(graph, "x", 2, 4), parameter(graph, "limit")
        body = Body()
        v, top = body.takes(2, 4), body.takes()
        twice = body.build.Add(v, v)
        going = body.build.Less(body.build.ReduceSum(twice, body.number([0, 1], DType.I64)), top)
        body.gives(going, twice, body.build.Unsqueeze(twice, body.number([axis], DType.I64)))
        ends = (0, -1) if stride > 0 else (-1, 0)
        outs = (OutputMap(0, 1), OutputMap(1, 2, axis, *ends, stride))
        op = Loop((InputMap(2, 0), InputMap(3, 1)), outs, (BackEdge(1, 0),), execution_condition=0)
        return _network(*_loop(op, [_i64(build, -1), build.const(True, DType.BOOL), x, limit], body.graph))

    return make


def counted() -> Graph:
    """Row i of x at step i, and i itself; the first step may not be taken."""
    graph = Graph("counted")
    n, first = parameter(graph, "n", dtype=DType.I64), parameter(graph, "first", dtype=DType.BOOL)
    x = parameter(graph, "x", 3, 4)
    body = Body()
    i, rows, total = body.takes(dtype=DType.I64), body.takes(3, 4), body.takes(4)
    row = body.build.Gather(rows, i, body.number(0, DType.I64))
    scaled = body.build.Multiply(row, body.build.Convert(i, destination_type=DType.F32))
    body.gives(body.build.Add(total, scaled))
    op = Loop((InputMap(2, 1), InputMap(3, 2)), (OutputMap(0, 0),), (BackEdge(0, 2),), current_iteration=0)
    start = Builder(graph).const(np.ones(4), DType.F32)
    return _network(*_loop(op, [n, first, x, start], body.graph))


def nested_loops() -> Graph:
    """Outer: m times; inner: as often as the outer has run, over values of both."""
    graph = Graph("loops")
    m, x = parameter(graph, "m", dtype=DType.I64), parameter(graph, "x", 2, 4)
    yes = Builder(graph).const(True, DType.BOOL)
    inner = Body()
    v, scale = inner.takes(2, 4), inner.takes(2, 4)
    inner.gives(inner.build.Tanh(inner.build.Add(v, scale)))
    outer = Body()
    i, w, fixed = outer.takes(dtype=DType.I64), outer.takes(2, 4), outer.takes(2, 4)
    half = outer.build.Multiply(w, outer.number(0.5))
    maps = (InputMap(2, 0), InputMap(3, 1)), (OutputMap(0, 0), OutputMap(1, 0, 0)), (BackEdge(0, 0),)
    last, every = _loop(Loop(*maps), [i, outer.build.const(True, DType.BOOL), half, fixed], inner.graph)
    sums = outer.build.ReduceSum(every, outer.number([0], DType.I64), keep_dims=True)
    outer.gives(last, sums)
    op = Loop((InputMap(2, 1), InputMap(3, 2)), (OutputMap(0, 0), OutputMap(1, 1, 0)), (BackEdge(0, 1),), 0)
    return _network(*_loop(op, [m, yes, x, x], outer.graph))


def branch_in_loop() -> Graph:
    """Each time x loses its last column or is squared, as a mask that the loop reads slice by slice says."""
    graph = Graph("mask")
    mask, x = parameter(graph, "mask", N, dtype=DType.BOOL), parameter(graph, "x", 2, 4)
    weight = weights(Builder(graph), 4, 4)
    body = Body()
    c, v, w = body.takes(1, dtype=DType.BOOL), body.takes(2, 4), body.takes(4, 4)
    then, other = Body(), Body()
    a, b = then.takes(2, 4), then.takes(4, 4)
    then.gives(then.build.Tanh(then.build.MatMul(a, b)))
    a, _ = other.takes(2, 4), other.takes(4, 4)
    other.gives(other.build.Multiply(a, a))
    (y,) = _if(c, [v, w], then.graph, other.graph)
    body.gives(y)
    maps = (InputMap(0, 0, 0), InputMap(1, 1), InputMap(2, 2)), (OutputMap(0, 0), OutputMap(1, 0, 1)), (BackEdge(0, 1),)
    return _network(*_loop(TensorIterator(*maps), [mask, x, weight], body.graph))


def images() -> Graph:
    """A convolution again and again: padded windows inside, its input once from outside and then its own output."""
    graph = Graph("images")
    build = Builder(graph)
    n, x = parameter(graph, "n", dtype=DType.I64), parameter(graph, "x", 1, 3, 5, 6)
    around = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    body = Body()
    v, skip = body.takes(1, 3, 5, 6), body.takes(1, 3, 5, 6)
    a = body.build.Convolution(v, weights(body.build, 8, 3, 3, 3), **around)
    b = body.build.Convolution(body.build.Relu(a), weights(body.build, 3, 8, 3, 3, seed=1), **around)
    c = body.build.Convolution(skip, weights(body.build, 3, 3, 3, 3, seed=2), **around)
    body.gives(body.build.Tanh(body.build.Add(b, c)))
    skipped = build.Relu(build.Convolution(x, weights(build, 3, 3, 3, 3, seed=3), **around))
    maps = (InputMap(2, 0), InputMap(3, 1)), (OutputMap(0, 0),), (BackEdge(0, 0),)
    (y,) = _loop(Loop(*maps), [n, build.const(True, DType.BOOL), x, skipped], body.graph)
    return _network(build.ReduceMean(y, _i64(build, [2, 3])), y)


def places_in_branch() -> Graph:
    """Return a network with a data-dependent size in one branch: the places of nonzero elements if c, else x."""
    graph = Graph("places")
    c, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 2, 4)
    then, other = Body(), Body()
    then.gives(then.build.Convert(then.build.NonZero(then.takes(2, 4)), destination_type=DType.F32))
    other.gives(other.takes(2, 4))
    (y,) = _if(c, [x], then.graph, other.graph)
    return _network(Builder(graph).Negative(y))


def growing_by_data() -> Graph:
    """A list of the places of what is above 0, longer by as many as there are each time."""
    graph = Graph("places_in_loop")
    build = Builder(graph)
    n, x = parameter(graph, "n", dtype=DType.I64), parameter(graph, "x", 2, 4)
    body = Body()
    v, found = body.takes(2, 4), body.takes(Var("found"))
    places = body.build.Reshape(body.build.NonZero(body.build.Relu(v)), body.number([-1], DType.I64))
    more = body.build.Convert(places, destination_type=DType.F32)
    body.gives(body.build.Add(v, body.number(0.3)), body.build.Concat(found, more, axis=0))
    maps = (InputMap(2, 0), InputMap(3, 1)), (OutputMap(0, 0), OutputMap(1, 1)), (BackEdge(0, 0), BackEdge(1, 1))
    start = build.const(np.zeros(1), DType.F32)
    return _network(*_loop(Loop(*maps), [n, build.const(True, DType.BOOL), x, start], body.graph))


def cells() -> Graph:
    """LSTM over the rows of x; x and both states name the batch in ways of their own."""
    graph = Graph("cells")
    x = parameter(graph, "x", N, Var("batch"), 4)
    h, c = (parameter(graph, name, Var(f"{name}_batch"), 3) for name in ("h", "c"))
    body = Body()
    row, before = body.takes(1, Var("b"), 4), [body.takes(Var(f"b{k}"), 3) for k in range(2)]
    now = body.build.Squeeze(row, body.number([0], DType.I64))
    sides = [weights(body.build, 12, n, seed=n) for n in (4, 3)]
    after = body.build.node(LSTMCell_4(hidden_size=3), now, *before, *sides, outputs=2).out_ports()
    body.gives(*after.values(), body.build.Unsqueeze(after[0], body.number([0], DType.I64)))
    edges = (BackEdge(0, 1), BackEdge(1, 2))
    maps = (InputMap(0, 0, 0), InputMap(1, 1), InputMap(2, 2)), (OutputMap(0, 0), OutputMap(1, 1), OutputMap(2, 2, 0))
    return _network(*_loop(TensorIterator(*maps, edges), [x, h, c], body.graph))


def remembering() -> Graph:
    """A loop over what the last inference left, which is kept, too."""
    graph = Graph("remembering")
    build = Builder(graph)
    n, x = parameter(graph, "n", dtype=DType.I64), parameter(graph, "x", 2, 4)
    old = build(ReadValue_3("v"), x)
    body = Body()
    a, b = body.takes(2, 4), body.takes(2, 4)
    body.gives(body.build.Add(body.build.Multiply(a, body.number(0.5)), b))
    maps = (InputMap(2, 0), InputMap(3, 1)), (OutputMap(0, 0),), (BackEdge(0, 0),)
    (y,) = _loop(Loop(*maps), [n, build.const(True, DType.BOOL), old, x], body.graph)
    graph.add(Assign("v"), y)
    return _network(build.Add(y, x))


def _trips(*counts: int) -> list[Array]:
    return [np.array(n, np.int64) for n in counts]


BOTH = (np.array(True), np.array(False))
PICTURE = np.sin(np.arange(90, dtype=np.float32)).reshape(1, 3, 5, 6)
LIMITS = [(ROW + 1, np.array(t, np.float32)) for t in (100, 0, 1e30)]

NETWORKS = {
    "shapes_by_branch": Network(shapes_by_branch, [(c, ROW) for c in BOTH]),
    "nested_branches": Network(nested_branches, [(c, x) for c in BOTH for x in (ROW, ROW - 5)]),
    "exchanged": Network(exchanged, [(n, ROW[0, :3], ROW[1, :3]) for n in _trips(0, 1, 2, 7)]),
    "growing": Network(growing, [(n, ROW[:1]) for n in _trips(3, 0, 1, 130)]),
    "waiting": Network(waiting(0, 1), LIMITS),
    "waiting_inside": Network(waiting(1, 1), LIMITS),
    "waiting_backwards": Network(waiting(2, -1), LIMITS),
    "counted": Network(counted, [(n, c, ROWS[1]) for n in _trips(3, 0) for c in BOTH]),
    "nested_loops": Network(nested_loops, [(n, ROW) for n in _trips(4, 1, 0, 9)]),
    "branch_in_loop": Network(branch_in_loop, [(np.arange(n) % 3 > 0, ROW) for n in (5, 1, 12)]),
    "places_in_branch": Network(places_in_branch, [(c, np.maximum(ROW, -0.5) + 0.5) for c in BOTH]),
    "growing_by_data": Network(growing_by_data, [(n, ROW) for n in _trips(2, 0, 1, 40)]),
    "cells": Network(cells, [(ROWS[:, :n], ROWS[0, :n, :3], ROWS[1, :n, 1:]) for n in (2, 1, 3)]),
    "images": Network(images, [(n, PICTURE) for n in _trips(3, 0, 20)]),
}
