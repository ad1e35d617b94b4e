"""What random graphs are made of: drawn operations, what joins operations in real networks, control flow, state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.opset.control.control_flow import If, Loop, TensorIterator
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.opset.control.state import Assign, ReadValue_3
from aot.opset.elementwise.unary import Rounding
from aot.opset.movement.movement import Split, VariadicSplit
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.movement.shape import Reshape
from aot.opset.movement.slicing import StridedSlice
from aot.opset.reduction.sorting import TopK
from runtime.abi import DType
from tests.fuzz.graphs.growing import Growing, Refused, Step, Value, grow
from tests.fuzz.seeds import MAKERS
from tests.properties.gathering import span

F32, F16, F64, BF16, I32, I64, I8, U8, BOOL = (
    DType.F32,
    DType.F16,
    DType.F64,
    DType.BF16,
    DType.I32,
    DType.I64,
    DType.I8,
    DType.U8,
    DType.BOOL,
)
CONVERTED = (F32, F32, F16, BF16, F64, I32, I64, I8, U8, BOOL)
UNARY = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Abs",
    "Negative",
    "Floor",
    "Ceiling",
    "Sqrt",
    "Sin",
    "Erf",
    "Gelu",
    "Swish",
    "SoftPlus",
    "HSwish",
    "HSigmoid",
    "Mish",
    "Sign",
    "SoftSign",
    "Cos",
    "Log",
)
BINARY = (
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Maximum",
    "Minimum",
    "Mod",
    "FloorMod",
    "SquaredDifference",
    "Power",
)
COMPARED = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
REDUCED = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")


def is_float(v: Value) -> bool:
    return v.dtype.is_float


def ranked(least: int, most: int = 6) -> Callable[[Value], bool]:
    return lambda v: least <= len(v.shape) <= most and v.array.size > 0


def unary(g: Growing) -> Value:
    return g.named(g.d.pick(UNARY), g.tame(g.pick(is_float)))


def rounded(g: Growing) -> Value:
    return g.named("Round", g.pick(is_float), mode=g.d.pick(list(Rounding)))


def _beside(g: Growing, x: Value) -> Value:
    """Something of the same type that broadcasts with `x`: another value, a constant, or part of the shape."""
    d = g.d
    if d.flag():
        return g.pick(lambda v: v.dtype is x.dtype and _broadcasts(v.shape, x.shape))
    shape = tuple(1 if d.flag() else n for n in x.shape)[d.integer(0, len(x.shape)) :]
    return g.constant(d.array(x.dtype, shape))


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def binary(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype is not BOOL))
    y = g.tame(_beside(g, x))
    inputs = (x, y) if g.d.integer(0, 2) else (y, x)
    return g.tame(g.named(g.d.pick(BINARY), *inputs))


def compare(g: Growing) -> Value:
    x = g.pick(lambda v: v.dtype is not BOOL)
    return g.named(g.d.pick(COMPARED), x, _beside(g, x))


def choose(g: Growing) -> Value:
    c = g.pick(lambda v: v.dtype is BOOL)
    x = g.pick(lambda v: _broadcasts(v.shape, c.shape))
    return g.named("Select", c, x, _beside(g, x))


def logic(g: Growing) -> Value:
    x = g.pick(lambda v: v.dtype is BOOL)
    if not g.d.integer(0, 2):
        return g.named("LogicalNot", x)
    return g.named(g.d.pick(["LogicalAnd", "LogicalOr", "LogicalXor"]), x, _beside(g, x))


def convert(g: Growing) -> Value:
    return g.named("Convert", g.tame(g.pick()), destination_type=g.d.pick(CONVERTED))


def reshape(g: Growing) -> Value:
    """Dimensions are merged and split; the pattern is a constant, or computed from sizes."""
    d, x = g.d, g.pick(ranked(1))
    n = len(x.shape)
    at = d.integer(0, n - 1)
    to = d.integer(at, n - 1)
    if d.flag():
        sizes = g.named("ShapeOf", x, output_type=I64)
        parts = [_part(g, sizes, 0, at), g.ints(-1), _part(g, sizes, to + 1, n)]
        return g.named("Reshape", x, g.named("Concat", *parts, axis=0))
    whole = int(np.prod(x.shape[at : to + 1]))
    factor = d.pick([k for k in range(1, whole + 1) if not whole % k])
    target = [*x.shape[:at], *d.pick([[whole], [factor, whole // factor], [whole, 1]]), *x.shape[to + 1 :]]
    for k in range(at):
        target[k] = 0 if d.flag() else target[k]
    if d.flag():
        target[-1 if at == 0 else at] = -1
    return g.add(Reshape(special_zero=True), x, g.ints(*target))[0]


def _part(g: Growing, x: Value, start: int, stop: int) -> Value:
    return g.named("Slice", x, g.ints(start), g.ints(stop), g.ints(1), g.ints(0))


def transpose(g: Growing) -> Value:
    x = g.pick(ranked(2))
    return g.named("Transpose", x, g.ints(*g.d.subset(len(x.shape), len(x.shape))))


def expand(g: Growing) -> Value:
    x = g.pick(ranked(0, 4))
    return g.named("Unsqueeze", x, g.ints(g.d.integer(-len(x.shape) - 1, len(x.shape))))


def squeeze(g: Growing) -> Value:
    x = g.pick(lambda v: 1 in v.shape)
    return g.named("Squeeze", x, g.ints(g.d.pick([k for k, n in enumerate(x.shape) if n == 1])))


def concat(g: Growing) -> Value:
    x = g.pick(ranked(1))
    axis = g.d.axis(len(x.shape))
    k = axis % len(x.shape)

    def fits(v: Value) -> bool:
        cut = (*v.shape[:k], *v.shape[k + 1 :])
        return v.dtype is x.dtype and len(v.shape) == len(x.shape) and cut == (*x.shape[:k], *x.shape[k + 1 :])

    return g.named("Concat", x, *(g.pick(fits) for _ in range(g.d.integer(0, 2))), axis=axis)


def split(g: Growing) -> list[Value]:
    x = g.pick(ranked(1))
    k = g.d.integer(0, len(x.shape) - 1)
    n, axis = x.shape[k], g.constant(np.array(k - g.d.pick([0, len(x.shape)])))
    if g.d.flag():
        parts = g.d.pick([p for p in range(1, n + 1) if not n % p])
        return g.add(Split(parts), x, axis)
    cut = g.d.integer(0, n)
    lengths = g.d.pick([[cut, n - cut], [cut, -1], [-1, n - cut]])
    return g.add(VariadicSplit(), x, axis, g.ints(*lengths))


def slices(g: Growing) -> Value:
    x = g.pick(ranked(1))
    axes = g.d.subset(len(x.shape), 1)
    starts, stops, steps = zip(*(span(g.d, x.shape[a]) for a in axes), strict=True)
    return g.named("Slice", x, g.ints(*starts), g.ints(*stops), g.ints(*steps), g.ints(*axes))


def strided(g: Growing) -> Value:
    x = g.pick(ranked(1))
    entries = [span(g.d, n) for n in x.shape[: g.d.integer(1, len(x.shape))]]
    masks = [tuple(g.d.integer(0, 1) for _ in entries) for _ in range(2)]
    zero = (0,) * len(entries)
    op = StridedSlice(*masks, zero, zero, zero)
    return g.add(op, x, *(g.ints(*v) for v in zip(*entries, strict=True)))[0]


def gather(g: Growing) -> Value:
    x = g.pick(ranked(1))
    axis = g.d.integer(0, len(x.shape) - 1)
    n = x.shape[axis]
    if g.d.integer(0, 2):
        places = g.constant(g.d.whole(I64, g.d.shape((0, 2), (1, 4)), -n, n - 1))
    else:
        given = g.pick(lambda v: v.dtype.is_integer and v.dtype is not BOOL and v.array.size < 30)
        places = g.named("Clamp", g.named("Convert", given, destination_type=I64), min=0.0, max=float(n - 1))
    return g.named("Gather", x, places, g.constant(np.array(axis)))


def repeat(g: Growing) -> Value:
    x = g.pick(ranked(1))
    if g.d.flag():
        return g.named("Tile", x, g.ints(*g.d.ints(len(x.shape), 1, 2)))
    wanted = [g.d.integer(1, 3) if n == 1 else n for n in x.shape]
    return g.named("Broadcast", x, g.ints(*g.d.ints(g.d.integer(0, 1), 1, 2), *wanted))


def pad(g: Growing) -> Value:
    x = g.pick(ranked(1, 5))
    mode = g.d.pick(list(PadMode))
    most = [min(n - 1, 2) if mode is PadMode.REFLECT else min(n, 2) for n in x.shape]
    ends = [g.ints(*(g.d.integer(0, max(m, 0)) for m in most)) for _ in range(2)]
    return g.add(Pad(mode), x, *ends)[0]


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
