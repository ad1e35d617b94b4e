"""Steps of random graphs that move elements: shapes, parts, order, repeats, padding."""

from __future__ import annotations

import numpy as np

from aot.opset.movement.movement import Split, VariadicSplit
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.movement.shape import Reshape
from aot.opset.movement.slicing import StridedSlice
from tests.fuzz.graphs.elementwise import BOOL, I64, ranked
from tests.fuzz.graphs.growing import Growing, Value
from tests.properties.gathering import span


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
