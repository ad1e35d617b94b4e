"""Data that moves: slices, padding, shapes, blocks."""

from __future__ import annotations

from math import prod

import numpy as np

from aot.ir.types import numpy_dtype
from aot.opset.control.generators import Eye, Range, Range_1
from aot.opset.elementwise.activation import Identity
from aot.opset.movement.blocks import (
    BatchToSpace,
    DepthMode,
    DepthToSpace,
    ExtractImagePatches,
    PatchPad,
    ReorgYolo,
    ShuffleChannels,
    SpaceToBatch,
    SpaceToDepth,
)
from aot.opset.movement.columns import Col2Im
from aot.opset.movement.movement import (
    Concat,
    Reverse,
    ReverseMode,
    ReverseSequence,
    Roll,
    Split,
    Transpose,
    VariadicSplit,
)
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.movement.shape import Reshape, ShapeOf, ShapeOf_1, Squeeze, Squeeze_15, Unsqueeze
from aot.opset.movement.slicing import Slice, StridedSlice
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE
from tests.properties.drawing import ANY, INDICES, NUMBERS, Draw, Trial, listed
from tests.properties.gathering import span


def slices(d: Draw) -> Trial:
    shape, index = d.shape((1, 5), (1, 5)), d.pick(INDICES)
    axes = d.subset(len(shape), 1)
    starts, stops, steps = zip(*(span(d, shape[a]) for a in axes), strict=True)
    far = {0: 2**31 - 1, 1: -(2**31)}
    stops = tuple(far.get(d.integer(0, 5), s) for s in stops)
    inputs = [d.array(d.pick(ANY), shape), *(listed(index, v) for v in (starts, stops, steps))]
    if axes != tuple(range(len(axes))) or d.flag():
        inputs.append(listed(index, d.signed(axes, len(shape))))
    return Trial(Slice(), inputs, frozenset({1, 2, 3, 4}), EXACT)


def strided_slice(d: Draw) -> Trial:
    shape = d.shape((1, 5), (1, 5))
    entries, masks = list[tuple[int, int, int]](), {k: list[int]() for k in ("b", "e", "n", "s", "l")}
    left = list(shape)
    ellipsis = d.integer(0, 4)
    for k in range(d.integer(1, len(shape) + 1)):
        kind = "n" if not left else d.pick(["b", "b", "n", "s", "p"])
        kind = "l" if k == ellipsis and left else kind
        n = 1
        if kind == "l":
            gone = d.integer(0, len(left))
            left, ellipsis = left[gone:], -1
            for name, mask in masks.items():
                mask.append(int(name == "l"))
            entries.append((0, 0, 1))
            entries += [_plain(d, m, masks) for m in left]
            break
        if kind != "n":
            n = left.pop(0)
        start, stop, step = (d.integer(-n, n - 1), 0, 1) if kind == "s" else span(d, n)
        entries.append((start, stop, step))
        for name, mask in masks.items():
            mask.append(int(name == kind or (name in "be" and kind == "b" and d.flag())))
    begin, end, steps = (listed(DType.I64, v) for v in zip(*entries, strict=True))
    named = (tuple(masks[k]) for k in ("b", "e", "n", "s", "l"))
    inputs = [d.array(d.pick(ANY), shape), begin, end, steps]
    return Trial(StridedSlice(*named), inputs, frozenset({1, 2, 3}), EXACT)


def _plain(d: Draw, n: int, masks: dict[str, list[int]]) -> tuple[int, int, int]:
    for name, mask in masks.items():
        mask.append(int(name in "be" and d.flag()))
    return span(d, n)


def pad(d: Draw) -> Trial:
    shape, mode = d.shape((1, 5), (1, 4)), d.pick(list(PadMode))
    most = {PadMode.REFLECT: -1, PadMode.SYMMETRIC: 0}
    begins, ends = [], []
    for n in shape:
        top = n + most[mode] if mode in most else 3
        begins.append(d.integer(-1 if n > 2 else 0, max(top, 0)))
        ends.append(d.integer(-1 if n > 2 else 0, max(top, 0)))
    dtype, index = d.pick(ANY), d.pick(INDICES)
    inputs = [d.array(dtype, shape), listed(index, begins), listed(index, ends)]
    if mode is PadMode.CONSTANT and d.flag():
        inputs.append(d.array(dtype, ()))
    return Trial(Pad(mode), inputs, frozenset({1, 2}), EXACT)


def transpose(d: Draw) -> Trial:
    shape = d.shape()
    order = d.subset(len(shape), len(shape)) if d.integer(0, 3) else ()
    return Trial(Transpose(), [d.array(d.pick(ANY), shape), listed(d.pick(INDICES), order)], frozenset({1}), EXACT)


def reshape(d: Draw) -> Trial:
    shape = d.shape((0, 5), (1, 4))
    merged, at = list[int](), 0
    while at < len(shape):
        to = d.integer(at + 1, len(shape))
        merged.append(prod(shape[at:to]))
        at = to
    merged += [1] * d.integer(0, 1)
    target, special = list(merged), d.flag()
    if special:
        target = [0 if k < len(shape) and shape[k] == n and d.flag() else n for k, n in enumerate(target)]
    if target and d.flag():
        target[d.integer(0, len(target) - 1)] = -1
    inputs = [d.array(d.pick(ANY), shape), listed(d.pick(INDICES), target)]
    return Trial(Reshape(special), inputs, frozenset({1}), EXACT)


def squeeze(d: Draw) -> Trial:
    shape = tuple(n if d.flag() else 1 for n in d.shape())
    ones = [k for k, n in enumerate(shape) if n == 1]
    data, index = d.array(d.pick(ANY), shape), d.pick(INDICES)
    if d.flag():
        made = d.integer(1, 3)
        axes = d.signed(d.subset(len(shape) + made, made)[:made], len(shape) + made)
        return Trial(Unsqueeze(), [data, listed(index, axes)], frozenset({1}), EXACT)
    chosen = d.signed(tuple(ones[k] for k in d.subset(len(ones))), len(shape))
    inputs = [data, listed(index, chosen)] if d.flag() else [data]
    # without axes it must be known which dimensions are 1
    fixed = frozenset({1} if chosen and len(inputs) > 1 else {0, 1})
    return Trial(d.pick([Squeeze(), Squeeze_15()]), inputs, fixed, EXACT)


def concat(d: Draw) -> Trial:
    shape, dtype = d.shape((1, 5)), d.pick(ANY)
    axis = d.axis(len(shape))
    k = axis % len(shape)
    parts = [(*shape[:k], d.integer(0, 4), *shape[k + 1 :]) for _ in range(d.integer(1, 4))]
    return Trial(Concat(axis), [d.array(dtype, p) for p in parts], tolerance=EXACT)


def split(d: Draw) -> Trial:
    shape = list(d.shape((1, 5), (1, 4)))
    axis = d.axis(len(shape))
    where = np.array(axis, d.pick(["i4", "i8"]))
    if d.flag():
        count = d.integer(1, 3)
        shape[axis] *= count
        return Trial(Split(count), [d.array(d.pick(ANY), shape), where], frozenset({1}), EXACT)
    parts = list(d.ints(d.integer(1, 4), 0, 3))
    shape[axis] = sum(parts)
    if d.flag():
        parts[d.integer(0, len(parts) - 1)] = -1
    inputs = [d.array(d.pick(ANY), shape), where, listed(d.pick(INDICES), parts)]
    return Trial(VariadicSplit(), inputs, frozenset({1, 2}), EXACT)


def reverse(d: Draw) -> Trial:
    shape = d.shape((1, 5))
    if d.flag():
        axes = listed(DType.I64, d.subset(len(shape)))
        return Trial(Reverse(), [d.array(d.pick(ANY), shape), axes], frozenset({1}), EXACT)
    mask = d.array(DType.BOOL, (len(shape),))
    return Trial(Reverse(ReverseMode.MASK), [d.array(d.pick(ANY), shape), mask], frozenset({1}), EXACT)


def reverse_sequence(d: Draw) -> Trial:
    shape = d.shape((2, 4), (1, 5))
    batch, along = d.subset(len(shape), 2)[:2]
    lengths = d.whole(d.pick(INDICES), (shape[batch],), 1, shape[along])
    op = ReverseSequence(*d.signed((batch, along), len(shape)))
    return Trial(op, [d.array(d.pick(ANY), shape), lengths], tolerance=EXACT)


def roll(d: Draw) -> Trial:
    shape = d.shape((1, 4))
    axes = [d.axis(len(shape)) for _ in range(d.integer(1, 3))]
    shift = d.ints(len(axes), -7, 7)
    inputs = [d.array(d.pick(ANY), shape), listed(d.pick(INDICES), shift), listed(DType.I64, axes)]
    return Trial(Roll(), inputs, frozenset({2}) if d.flag() else frozenset({1, 2}), EXACT)


def shape_of(d: Draw) -> Trial:
    op = d.pick([ShapeOf(d.pick(INDICES)), ShapeOf_1()])
    return Trial(op, [d.array(d.pick(ANY), d.shape())], tolerance=EXACT)


def identity(d: Draw) -> Trial:
    return Trial(Identity(), [d.array(d.pick(ANY), d.shape())], tolerance=EXACT)


def depth(d: Draw) -> Trial:
    block, mode = d.integer(1, 3), d.pick(list(DepthMode))
    spatial, dtype = d.ints(d.integer(1, 3), 1, 3), d.pick(ANY)
    channels, batch = d.integer(1, 3), d.integer(1, 2)
    if d.flag():
        shape = (batch, channels * block ** len(spatial), *spatial)
        return Trial(DepthToSpace(mode, block), [d.array(dtype, shape)], tolerance=EXACT)
    shape = (batch, channels, *(n * block for n in spatial))
    return Trial(SpaceToDepth(mode, block), [d.array(dtype, shape)], tolerance=EXACT)


def batches(d: Draw) -> Trial:
    rank, dtype = d.integer(2, 5), d.pick(ANY)
    block = (1, *d.ints(rank - 1, 1, 3))
    out = (d.integer(1, 2), *d.ints(rank - 1, 1, 3))
    begin, end = (0, *d.ints(rank - 1, 0, 2)), (0, *d.ints(rank - 1, 0, 2))
    lists = [listed(DType.I64, v) for v in (block, begin, end)]
    if d.flag():
        rest = [max(n * b - i - j, 0) for n, b, i, j in zip(out[1:], block[1:], begin[1:], end[1:], strict=True)]
        shape = (out[0], *(r or b for r, b in zip(rest, block[1:], strict=True)))
        lists[2] = listed(
            DType.I64, (0, *((-(n + i)) % b for n, b, i in zip(shape[1:], block[1:], begin[1:], strict=True)))
        )
        return Trial(SpaceToBatch(), [d.array(dtype, shape), *lists], frozenset({1, 2, 3}), EXACT)
    shape = (out[0] * prod(block), *out[1:])
    begin = (0, *(d.integer(0, n * b - 1) for n, b in zip(out[1:], block[1:], strict=True)))
    end = (0, *(d.integer(0, n * b - 1 - i) for n, b, i in zip(out[1:], block[1:], begin[1:], strict=True)))
    lists = [listed(DType.I64, v) for v in (block, begin, end)]
    return Trial(BatchToSpace(), [d.array(dtype, shape), *lists], frozenset({1, 2, 3}), EXACT)


def shuffle(d: Draw) -> Trial:
    shape, group = list(d.shape((2, 5), (1, 3))), d.integer(1, 3)
    axis = d.axis(len(shape))
    shape[axis] *= group
    return Trial(ShuffleChannels(axis, group), [d.array(d.pick(ANY), shape)], tolerance=EXACT)


def reorg(d: Draw) -> Trial:
    s = d.integer(1, 3)
    shape = (d.integer(1, 2), s * s * d.integer(1, 2), s * d.integer(1, 3), s * d.integer(1, 3))
    return Trial(ReorgYolo((s,)), [d.array(DType.F32, shape)], tolerance=EXACT)


def patches(d: Draw) -> Trial:
    sizes, strides, rates = d.ints(2, 1, 3), d.ints(2, 1, 4), d.ints(2, 1, 2)
    shape = (d.integer(1, 2), d.integer(1, 3), d.integer(5, 9), d.integer(5, 9))
    return Trial(ExtractImagePatches(sizes, strides, rates, d.pick(list(PatchPad))), [d.array(DType.F32, shape)])


def columns(d: Draw) -> Trial:
    kernel, strides, dilations = d.ints(2, 1, 3), d.ints(2, 1, 3), d.ints(2, 1, 2)
    begin, end, size = d.ints(2, 0, 2), d.ints(2, 0, 2), d.ints(2, 5, 8)
    count = prod(
        (n + a + b - r * (k - 1) - 1) // s + 1
        for n, a, b, r, k, s in zip(size, begin, end, dilations, kernel, strides, strict=True)
    )
    rows = d.integer(1, 3) * prod(kernel)
    shape = (d.integer(1, 2), rows, count) if d.flag() else (rows, count)
    lists = [listed(DType.I64, size), listed(DType.I64, kernel)]
    inputs = [d.array(DType.F32, shape), *lists]
    return Trial(Col2Im(strides, dilations, begin, end), inputs, frozenset({1, 2}), LOOSE)


def ranges(d: Draw) -> Trial:
    dtype = d.pick((DType.F32, DType.I32, DType.I64))
    step = d.integer(10, 30) / 10 if dtype.is_float else d.integer(1, 4)
    start, stop = d.integer(-50, 50) / 10, d.integer(-50, 50) / 10
    if d.flag():
        step = -step
    lists = [np.array(v).astype(numpy_dtype(dtype)) for v in (start, stop, step)]
    if d.flag():
        return Trial(Range_1(), lists, frozenset({0, 1, 2}))
    return Trial(Range(d.pick(NUMBERS[:8])), lists, frozenset({0, 1, 2}))


def eye(d: Draw) -> Trial:
    lists = [np.array(d.integer(0, 5)), np.array(d.integer(0, 5)), np.array(d.integer(-6, 6))]
    batch = [listed(DType.I64, d.ints(d.integer(0, 2), 1, 3))] if d.flag() else []
    return Trial(Eye(d.pick((DType.F32, DType.I32, DType.I64, DType.U8))), [*lists, *batch], frozenset(range(4)), EXACT)


TRIALS = [
    slices,
    strided_slice,
    pad,
    transpose,
    reshape,
    squeeze,
    concat,
    split,
    reverse,
    reverse_sequence,
    roll,
    shape_of,
    identity,
    depth,
    batches,
    shuffle,
    reorg,
    patches,
    columns,
    ranges,
    eye,
]
