"""Steps of random ONNX graphs: sums, products, filling, control flow; the tables that all are drawn from."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.graphs.growing import Refused
from tests.fuzz.graphs.onnx_elementwise import (
    F32,
    I64,
    binary,
    cast,
    compare,
    is_float,
    logic,
    of,
    ranked,
    remainder,
    unary,
    where,
)
from tests.fuzz.graphs.onnx_growing import OnnxGrowing, Step, grow
from tests.fuzz.graphs.onnx_movement import (
    concat,
    gather,
    pad,
    repeat,
    reshape,
    slices,
    split,
    squeeze,
    transpose,
    unsqueeze,
)

REDUCED = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare")


def reduce(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32, np.int32, I64)(v) and ranked(1)(v)))
    d, n = g.d, g.values[name].ndim
    kind = d.pick(REDUCED if is_float(g.values[name]) else REDUCED[:1] + REDUCED[2:4])
    axes = [g.ints(*d.signed(d.subset(n, 1), n))] if d.integer(0, 4) else []
    return g.tame(g.one(kind, name, *axes, keepdims=d.integer(0, 1)))


def best(g: OnnxGrowing) -> str:
    name = g.pick(lambda v: of(F32, np.int32)(v) and ranked(1)(v))
    d = g.d
    axis = d.axis(g.values[name].ndim)
    kind = d.pick(["ArgMax", "ArgMin"])
    return g.one(kind, name, axis=axis, keepdims=d.integer(0, 1), select_last_index=d.integer(0, 1))


def normalised(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32)(v) and ranked(1)(v)))
    d, x = g.d, g.values[name]
    axis = d.axis(x.ndim)
    if d.integer(0, 2) or x.ndim < 2:
        return g.one(d.pick(["Softmax", "LogSoftmax", "Hardmax"]), name, axis=axis)
    inner = x.shape[axis % x.ndim :]
    return g.one("LayerNormalization", name, g.noise(*inner), g.noise(*inner), axis=axis, epsilon=1e-3)


def matmul(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32, F32, np.float64)(v) and ranked(2, 4)(v)))
    d, x = g.d, g.values[name]
    if x.ndim == 2 and d.flag():
        ta = d.integer(0, 1)
        w = g.noise(x.shape[1 - ta], d.integer(1, 9), dtype=x.dtype)
        return g.tame(g.one("Gemm", name, w, transA=ta, alpha=0.5))
    return g.tame(g.one("MatMul", name, g.noise(x.shape[-1], d.integer(1, 9), dtype=x.dtype)))


def convolution(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32)(v) and ranked(3, 4)(v)))
    d, x = g.d, g.values[name]
    spatial = x.ndim - 2
    kernel = [d.integer(1, min(n, 3)) for n in x.shape[2:]]
    w = g.noise(d.integer(1, 9), x.shape[1], *kernel)
    pads, strides = list(d.ints(2 * spatial, 0, 1)), list(d.ints(spatial, 1, 2))
    return g.one("Conv", name, w, kernel_shape=kernel, pads=pads, strides=strides, dilations=[1] * spatial)


def pool(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32)(v) and ranked(3, 4)(v)))
    d, x = g.d, g.values[name]
    spatial = x.ndim - 2
    if not d.integer(0, 3):
        return g.one(d.pick(["GlobalAveragePool", "GlobalMaxPool"]), name)
    kernel = [d.integer(1, min(n, 3)) for n in x.shape[2:]]
    pads = [d.integer(0, n // 2) for n in kernel]
    common = {"kernel_shape": kernel, "strides": list(d.ints(spatial, 1, 2)), "pads": [*pads, *pads]}
    if d.flag():
        return g.one("MaxPool", name, **common)
    return g.one("AveragePool", name, count_include_pad=d.integer(0, 1), **common)


def top(g: OnnxGrowing) -> list[str]:
    name = g.pick(lambda v: of(F32, I64)(v) and ranked(1)(v))
    x, d = g.values[name], g.d
    axis = d.axis(x.ndim)
    return g.node("TopK", name, g.ints(d.integer(1, x.shape[axis])), outputs=2, axis=axis, largest=d.integer(0, 1))


def running_sum(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32, I64, np.int32)(v) and ranked(1)(v)))
    axis = g.constant(np.array(g.d.axis(g.values[name].ndim)))
    return g.tame(g.one("CumSum", name, axis, exclusive=g.d.integer(0, 1), reverse=g.d.integer(0, 1)))


def sizes(g: OnnxGrowing) -> str:
    name = g.pick(ranked(1))
    d, n = g.d, g.values[name].ndim
    if not d.integer(0, 3):
        return g.one("Size", name)
    start = d.integer(-n, n - 1)
    found = g.one("Shape", name, **({"start": start} if d.flag() else {}))
    for _ in range(d.integer(0, 2)):
        other = g.constant(np.array(d.integer(1, 3)))
        found = g.one(d.pick(["Add", "Mul", "Div", "Sub", "Max"]), found, other)
    return found


def filled(g: OnnxGrowing) -> str:
    """A tensor whose shape is computed from sizes: ConstantOfShape, Range, OneHot, EyeLike."""
    name = g.pick(ranked(1, 3))
    match g.d.integer(0, 2):
        case 0:
            return g.one("ConstantOfShape", g.one("Shape", name), value=helper.make_tensor("v", 1, [1], [0.5]))
        case 1:
            size = g.one("Gather", g.one("Shape", name), g.constant(np.array(0)), axis=0)
            return g.one("Range", g.constant(np.array(0)), size, g.constant(np.array(g.d.integer(1, 2))))
        case _:
            places = g.pick(lambda v: of(I64)(v) and v.ndim < 4)
            ends = g.constant(np.array([-1, 2], F32))
            return g.one("OneHot", places, g.constant(np.array(g.d.integer(1, 4))), ends, axis=-1)


def scattered(g: OnnxGrowing) -> str:
    name = g.pick(lambda v: of(F32)(v) and ranked(1, 4)(v))
    x, d = g.values[name], g.d
    axis = d.axis(x.ndim)
    shape = [d.integer(1, m) for m in x.shape]
    order = d.generator().permutation(x.shape[axis])[: shape[axis]]
    wide = [1] * x.ndim
    wide[axis] = len(order)
    places = np.broadcast_to(order.reshape(wide), shape).copy()
    how = d.pick(["none", "add", "max", "min", "mul"])
    return g.one("ScatterElements", name, g.constant(places), g.noise(*shape), axis=axis, reduction=how)


def resize(g: OnnxGrowing) -> str:
    name = g.tame(g.pick(lambda v: of(F32)(v) and ranked(3, 4)(v)))
    x, d = g.values[name], g.d
    wanted = [*x.shape[:2], *(d.integer(1, 9) for _ in x.shape[2:])]
    mode = d.pick(["nearest", "linear"])
    how = d.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    return g.one("Resize", name, "", "", g.ints(*wanted), mode=mode, coordinate_transformation_mode=how)


def _condition(g: OnnxGrowing) -> str:
    d = g.d
    if not d.integer(0, 3):
        return g.constant(np.array(d.flag()))
    name = g.pick(lambda v: of(F32, np.int32, I64)(v) and v.size > 0)
    one = g.one("Gather", g.one("Reshape", name, g.ints(-1)), g.constant(np.array(0)), axis=0)
    return g.one("Greater", one, g.constant(np.array(d.integer(-2, 2), g.values[one].dtype)))


def branches(g: OnnxGrowing) -> list[str]:
    """If; the ranks of the branches are equal, their sizes are not."""
    if g.depth > 1:
        raise Refused("deep enough")
    condition, bodies = _condition(g), list[onnx.GraphProto]()
    like = g.values[g.pick(is_float)]
    for _ in range(2):
        body = g.inside()
        grow(body, g.d.integer(0, 3), ALIKE)
        name = body.pick(lambda v: v.dtype == like.dtype and v.ndim == like.ndim)
        bodies.append(body.graph([name]))
    return g.node("If", condition, then_branch=bodies[0], else_branch=bodies[1])


def loop(g: OnnxGrowing) -> list[str]:
    """A carried value, and perhaps one that is collected; the number of iterations is a constant or an input."""
    if g.depth > 1:
        raise Refused("deep enough")
    d, carried = g.d, g.tame(g.pick(lambda v: of(F32)(v) and v.size > 0))
    body = g.inside()
    x = g.values[carried]
    names = [g.names.new(n) for n in ("i", "going", "state")]
    types = [(onnx.TensorProto.INT64, []), (onnx.TensorProto.BOOL, []), (onnx.TensorProto.FLOAT, None)]
    body.inputs.extend(helper.make_tensor_value_info(n, t, s) for n, (t, s) in zip(names, types, strict=True))
    body.values |= {names[0]: np.array(0), names[1]: np.array(True), names[2]: x}
    grow(body, d.integer(1, 3), KEEPING)
    last = body.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
    outputs = [names[1], body.tame(last)]
    if d.flag():
        outputs.append(body.pick(lambda v: is_float(v) and v.size > 0))
    most = np.array(d.integer(0 if len(outputs) == 2 else 1, 3))
    trips = g.parameter(most) if not g.depth and d.flag() else g.constant(most)
    return g.node("Loop", trips, "", carried, outputs=len(outputs) - 1, body=body.graph(outputs))


def scan(g: OnnxGrowing) -> list[str]:
    if g.depth > 1:
        raise Refused("deep enough")
    rows = g.tame(g.pick(lambda v: of(F32)(v) and ranked(2, 4)(v)))
    x = g.values[rows]
    body = g.inside()
    names = [g.names.new(n) for n in ("state", "row")]
    body.inputs.extend(helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names)
    body.values |= dict.fromkeys(names, x[0])
    grow(body, g.d.integer(1, 3), KEEPING)
    last = body.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape[1:])
    part = body.pick(lambda v: is_float(v) and v.size > 0)
    start, last = g.noise(*x.shape[1:]), body.tame(last)
    part = body.one("Identity", part) if part == last else part  # its second use is unset in ONNX Runtime
    return g.node("Scan", start, rows, outputs=2, num_scan_inputs=1, body=body.graph([last, part]))


ALIKE: tuple[Step, ...] = (unary, binary, slices, repeat, concat, normalised, running_sum, pad, squeeze, unsqueeze)
KEEPING: tuple[Step, ...] = (unary, unary, binary, binary, normalised, running_sum, where, compare, branches, loop)
STEPS: tuple[Step, ...] = (
    unary,
    unary,
    binary,
    binary,
    binary,
    remainder,
    compare,
    where,
    logic,
    cast,
    cast,
    reshape,
    reshape,
    transpose,
    transpose,
    unsqueeze,
    squeeze,
    concat,
    concat,
    split,
    split,
    slices,
    gather,
    repeat,
    pad,
    reduce,
    reduce,
    best,
    normalised,
    matmul,
    matmul,
    convolution,
    pool,
    top,
    running_sum,
    sizes,
    sizes,
    filled,
    scattered,
    resize,
    branches,
    loop,
    scan,
)
