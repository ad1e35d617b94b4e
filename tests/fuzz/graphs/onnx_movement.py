"""Steps of random ONNX graphs that move elements: shapes, parts, order, repeats, padding."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from tests.fuzz.graphs.growing import Refused
from tests.fuzz.graphs.onnx_elementwise import is_float, ranked
from tests.fuzz.graphs.onnx_growing import OnnxGrowing
from tests.properties.gathering import span


def reshape(g: OnnxGrowing) -> str:
    d, name = g.d, g.pick(ranked(1))
    x = g.values[name]
    at = d.integer(0, x.ndim - 1)
    to = d.integer(at, x.ndim - 1)
    if d.flag():
        shape = g.one("Shape", name)
        parts = [g.one("Slice", shape, g.ints(a), g.ints(b), g.ints(0)) for a, b in ((0, at), (to + 1, x.ndim))]
        return g.one("Reshape", name, g.one("Concat", parts[0], g.ints(-1), parts[1], axis=0))
    if d.flag():
        return g.one("Flatten", name, axis=d.integer(-x.ndim, x.ndim))
    whole = int(np.prod(x.shape[at : to + 1]))
    factor = d.pick([k for k in range(1, whole + 1) if not whole % k])
    target = [*x.shape[:at], *d.pick([[whole], [factor, whole // factor]]), *x.shape[to + 1 :]]
    target = [0 if k < at and d.flag() else n for k, n in enumerate(target)]
    if d.flag():
        target[at] = -1
    return g.one("Reshape", name, g.ints(*target))


def transpose(g: OnnxGrowing) -> str:
    name = g.pick(ranked(2))
    n = g.values[name].ndim
    return g.one("Transpose", name, **({"perm": list(g.d.subset(n, n))} if g.d.integer(0, 3) else {}))


def unsqueeze(g: OnnxGrowing) -> str:
    name = g.pick(ranked(0, 4))
    n = g.values[name].ndim
    return g.one("Unsqueeze", name, g.ints(g.d.integer(-n - 1, n)))


def squeeze(g: OnnxGrowing) -> str:
    name = g.pick(lambda v: 1 in v.shape)
    shape = g.values[name].shape
    axis = g.d.pick([k for k, n in enumerate(shape) if n == 1])
    return g.one("Squeeze", name, g.ints(axis - g.d.pick([0, len(shape)])))


def concat(g: OnnxGrowing) -> str:
    name = g.pick(ranked(1))
    x = g.values[name]
    axis = g.d.axis(x.ndim)
    k = axis % x.ndim

    def fits(v: Array) -> bool:
        cut = (*x.shape[:k], *x.shape[k + 1 :])
        return v.dtype == x.dtype and v.ndim == x.ndim and (*v.shape[:k], *v.shape[k + 1 :]) == cut

    return g.one("Concat", name, *(g.pick(fits) for _ in range(g.d.integer(0, 2))), axis=axis)


def split(g: OnnxGrowing) -> list[str]:
    name = g.pick(ranked(1))
    x = g.values[name]
    axis = g.d.axis(x.ndim)
    n = x.shape[axis]
    if g.d.flag():
        parts = g.d.integer(1, n)
        if (parts - 1) * -(-n // parts) >= n:
            raise Refused("an empty part")
        return g.node("Split", name, outputs=parts, axis=axis, num_outputs=parts)
    cut = g.d.integer(0, n)
    return g.node("Split", name, g.ints(cut, n - cut), outputs=2, axis=axis)


def slices(g: OnnxGrowing) -> str:
    name = g.pick(ranked(1))
    x, d = g.values[name], g.d
    axes = d.subset(x.ndim, 1)
    starts, stops, steps = zip(*(span(d, x.shape[a]) for a in axes), strict=True)
    if d.flag():
        return g.one("Slice", name, *(g.ints(*v) for v in (starts, stops, axes, steps)))
    return g.one("Slice", name, g.ints(*starts), g.ints(*stops), g.ints(*d.signed(axes, x.ndim)))


def gather(g: OnnxGrowing) -> str:
    name = g.pick(ranked(1))
    x, d = g.values[name], g.d
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    places = d.generator().integers(-n, n, d.shape((0, 2), (1, 4)))
    if d.integer(0, 2):
        return g.one("Gather", name, g.constant(places), axis=axis)
    shape = [d.integer(1, m) for m in x.shape]
    shape[axis] = d.integer(1, 4)
    return g.one("GatherElements", name, g.constant(d.generator().integers(-n, n, shape)), axis=axis)


def repeat(g: OnnxGrowing) -> str:
    name = g.pick(ranked(1, 4))
    x, d = g.values[name], g.d
    if d.flag():
        return g.one("Tile", name, g.ints(*d.ints(x.ndim, 1, 2)))
    wanted = [d.integer(1, 3) if n == 1 else d.pick([1, n]) for n in x.shape]
    return g.one("Expand", name, g.ints(*d.ints(d.integer(0, 1), 1, 2), *wanted))


def pad(g: OnnxGrowing) -> str:
    name = g.pick(lambda v: is_float(v) and ranked(1, 4)(v))
    x, d = g.values[name], g.d
    mode = d.pick(["constant", "constant", "edge", "reflect"])
    most = [min(n - 1, 2) if mode == "reflect" else 2 for n in x.shape]
    return g.one("Pad", name, g.ints(*(d.integer(0, m) for m in [*most, *most])), mode=mode)
