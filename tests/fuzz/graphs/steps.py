"""Steps of random graphs: sums, products, control flow and state; the tables that all are drawn from."""

from __future__ import annotations

import numpy as np

from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.opset.control.control_flow import If, Loop, TensorIterator
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.opset.control.state import Assign, ReadValue_3
from aot.opset.reduction.sorting import TopK
from tests.fuzz.graphs.elementwise import (
    BOOL,
    F16,
    F32,
    I32,
    I64,
    binary,
    choose,
    compare,
    convert,
    is_float,
    logic,
    ranked,
    rounded,
    unary,
)
from tests.fuzz.graphs.growing import Growing, Refused, Step, Value, grow
from tests.fuzz.graphs.movement import (
    concat,
    expand,
    gather,
    pad,
    repeat,
    reshape,
    slices,
    split,
    squeeze,
    strided,
    transpose,
)
from tests.fuzz.seeds import MAKERS

REDUCED = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")


def reduce(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype is not BOOL and v.array.size > 0 and len(v.shape) > 0))
    axes = g.d.subset(len(x.shape), 1)
    return g.tame(g.named(g.d.pick(REDUCED), x, g.ints(*axes), keep_dims=g.d.flag()))


def softmax(g: Growing) -> Value:
    x = g.pick(lambda v: v.dtype.is_float and len(v.shape) > 0 and v.array.size > 0)
    return g.named(g.d.pick(["Softmax", "LogSoftmax"]), g.tame(x), axis=g.d.axis(len(x.shape)))


def mvn(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype.is_float and len(v.shape) > 1 and v.array.size > 0))
    return g.named("MVN", x, g.ints(*g.d.subset(len(x.shape), 1)), eps=1e-3)


def matmul(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype.is_float and len(v.shape) > 1))
    rows = x.shape[-1]
    if g.d.flag():
        y = g.noise((rows, g.d.integer(1, 9)), x.dtype)
        return g.tame(g.named("MatMul", x, y))
    y = g.tame(g.pick(lambda v: v.dtype is x.dtype and len(v.shape) == len(x.shape) and rows in v.shape[-2:]))
    return g.tame(g.named("MatMul", x, y, transpose_b=y.shape[-1] == rows))


def convolution(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype in (F32, F16) and 3 <= len(v.shape) <= 5 and v.array.size > 0))
    d, spatial = g.d, len(x.shape) - 2
    kernel = tuple(d.integer(1, min(n, 3)) for n in x.shape[2:])
    w = g.noise((d.integer(1, 9), x.shape[1], *kernel), x.dtype)
    pads = {"pads_begin": d.ints(spatial, 0, 1), "pads_end": d.ints(spatial, 0, 1)}
    y = g.named("Convolution", x, w, strides=d.ints(spatial, 1, 2), dilations=(1,) * spatial, **pads)
    if d.flag():
        y = g.named("Add", y, g.noise((1, y.shape[1], *([1] * spatial)), x.dtype))
    return y


def pool(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype in (F32, F16) and 3 <= len(v.shape) <= 5 and v.array.size > 0))
    d, spatial = g.d, len(x.shape) - 2
    kernel = tuple(d.integer(1, min(n, 3)) for n in x.shape[2:])
    pads = {k: tuple(d.integer(0, n // 2) for n in kernel) for k in ("pads_begin", "pads_end")}
    strides = d.ints(spatial, 1, 2)
    if d.flag():
        return g.named("AvgPool", x, strides=strides, kernel=kernel, exclude_pad=d.flag(), **pads)
    return g.named("MaxPool", x, strides=strides, kernel=kernel, **pads)


def top(g: Growing) -> list[Value]:
    x = g.pick(lambda v: v.dtype in (F32, I32, I64) and len(v.shape) > 0 and v.array.size > 0)
    axis = g.d.axis(len(x.shape))
    k = g.d.integer(1, x.shape[axis])
    return g.add(TopK(axis=axis), x, g.constant(np.array(k)))


def running_sum(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype is not BOOL and len(v.shape) > 0))
    axis = g.constant(np.array(g.d.axis(len(x.shape))))
    return g.tame(g.named("CumSum", x, axis, exclusive=g.d.flag(), reverse=g.d.flag()))


def sizes(g: Growing) -> Value:
    """A few of the sizes, and arithmetic of them."""
    x = g.pick(ranked(1))
    found = g.named("ShapeOf", x, output_type=g.d.pick([I64, I32]))
    places = g.constant(g.d.whole(I64, (g.d.integer(1, 2),), 0, len(x.shape) - 1))
    found = g.named("Gather", found, places, g.constant(np.array(0)))
    for _ in range(g.d.integer(0, 2)):
        other = g.constant(g.d.whole(found.dtype, (), 1, 3))
        found = g.named(g.d.pick(["Add", "Multiply", "Divide", "Subtract", "Maximum", "FloorMod"]), found, other)
    return found


def trial(g: Growing) -> list[Value]:
    """An operation of the tables; what it needs is made of values, or an input, or a constant."""
    d = g.d
    drawn = d.pick(MAKERS)(d)
    inputs = [None if a is None else _operand(g, a, k in drawn.fixed) for k, a in enumerate(drawn.arrays)]
    return g.add(drawn.op, *inputs)


def _operand(g: Growing, array: Array, fixed: bool) -> Value:
    if fixed or g.depth or array.dtype == object:
        return g.constant(array)
    if array.dtype.kind in "fV" and g.d.integer(0, 2):
        try:
            return g.fitted(g.pick(lambda v: v.dtype is not BOOL), array)
        except Refused:
            pass
    return g.parameter(array) if len(g.fed) < 8 else g.constant(array)


def _inside(g: Growing, *given: Value) -> Growing:
    """A body that takes these values."""
    body = Growing(g.d, Graph("body"), g.varying, depth=g.depth + 1)
    for v in given:
        body.parameter(v.array, like=v.port)
    return body


def _condition(g: Growing) -> Value:
    """A scalar that is known when it runs, or a constant."""
    d = g.d
    if not d.integer(0, 3):
        return g.constant(np.array(d.flag()))
    x = g.pick(lambda v: v.dtype in (F32, I32, I64) and v.array.size > 0)
    flat = g.named("Reshape", x, g.ints(-1))
    one = g.named("Gather", flat, g.constant(np.array(0)), g.constant(np.array(0)))
    return g.named("Greater", one, g.constant(d.array(x.dtype, (), -2, 2)))


def branches(g: Growing) -> list[Value]:
    """If: both branches give what has one type and rank; sizes may differ."""
    if g.depth > 1:
        raise Refused("deep enough")
    given = [g.pick(is_float) for _ in range(g.d.integer(1, 2))]
    condition, graphs = _condition(g), list[Graph]()
    for _ in range(2):
        body = _inside(g, *given)
        grow(body, g.d.integer(0, 3), ALIKE)
        fit = [v for v in body.pool if v.dtype is given[0].dtype and len(v.shape) == len(given[0].shape)]
        body.graph.add(Result(), fit[-1].port)
        graphs.append(body.graph)
    maps = tuple(InputMap(1 + k, k) for k in range(len(given)))
    outs = (OutputMap(0, 0),)
    return g.add(If(maps, outs, maps, outs), condition, *given, regions={"then": graphs[0], "else": graphs[1]})


def loop(g: Growing) -> list[Value]:
    """Loop or TensorIterator: a carried value, perhaps slices of another one, and parts that are collected."""
    if g.depth > 1:
        raise Refused("deep enough")
    d, carried = g.d, g.tame(g.pick(lambda v: v.dtype.is_float and v.array.size > 0))
    more = [g.pick(lambda v: v.dtype.is_float and v.array.size > 0 and len(v.shape) > 0)] if d.flag() else []
    body = _inside(g, carried)
    for sliced in more:
        body.parameter(sliced.array[:1], like=sliced.port)
        node = body.graph.parameters[-1]
        node.op = Parameter(sliced.dtype, (1, *sliced.port.type.shape[1:]))
    grow(body, d.integer(1, 3), KEEPING)
    last = body.tame([v for v in body.pool if v.dtype is carried.dtype and v.shape == carried.shape][-1])
    body.graph.add(Result(), last.port)
    outs = [OutputMap(0, 0)]
    parts = [v for v in body.pool if v.shape and isinstance(v.port.type.shape[0], int)]
    if parts:
        collected = d.pick(parts)
        body.graph.add(Result(), collected.port)
        outs.append(OutputMap(1, 1, axis=0, part_size=collected.shape[0]))
    edges, regions = (BackEdge(0, 0),), {"body": body.graph}
    if more and d.flag():
        iterator = TensorIterator((InputMap(0, 0), InputMap(1, 1, axis=0)), tuple(outs), edges)
        return g.add(iterator, carried, *more, outputs=len(outs), regions=regions)
    most = min(more[0].shape[0], 3) if more else 3
    trips = np.array(d.integer(1, most))
    given = g.parameter(trips) if not d.integer(0, 2) and not g.depth else g.constant(trips)
    body.graph.add(Result(), body.constant(np.array(True)).port)
    maps = (InputMap(2, 0), *(InputMap(3, 1, axis=0) for _ in more))
    op = Loop(maps, tuple(outs), edges, -1, len(outs))
    return g.add(op, given, g.constant(np.array(True)), carried, *more, outputs=len(outs), regions=regions)


def state(g: Growing) -> Value:
    """A variable that is read, changed and kept."""
    if g.depth:
        raise Refused("not in bodies")
    start = g.tame(g.pick(lambda v: v.dtype is F32 and all(isinstance(n, int) for n in v.port.type.shape)))
    name = f"v{len(g.graph.sinks)}"
    read = g.add(ReadValue_3(name), start)[0]
    y = g.named("Tanh", g.named("Add", read, start))
    g.graph.add(Assign(name), y.port)
    return y


ALIKE: tuple[Step, ...] = (unary, binary, choose, compare, slices, repeat, concat, softmax, running_sum, pad, rounded)
KEEPING: tuple[Step, ...] = (
    unary,
    unary,
    binary,
    binary,
    softmax,
    running_sum,
    compare,
    choose,
    matmul,
    trial,
    loop,
    branches,
)
STEPS: tuple[Step, ...] = (
    unary,
    unary,
    binary,
    binary,
    binary,
    compare,
    choose,
    logic,
    convert,
    convert,
    rounded,
    reshape,
    reshape,
    transpose,
    transpose,
    expand,
    squeeze,
    concat,
    concat,
    split,
    split,
    slices,
    strided,
    gather,
    repeat,
    pad,
    reduce,
    reduce,
    softmax,
    mvn,
    matmul,
    matmul,
    convolution,
    pool,
    top,
    running_sum,
    sizes,
    trial,
    trial,
    trial,
    trial,
    trial,
    branches,
    loop,
    state,
)
