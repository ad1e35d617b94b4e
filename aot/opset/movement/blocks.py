"""Blocks of pixels that move between axes: space and depth, space and batch, patches and columns, ShuffleChannels."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import prod

import numpy as np

from aot.codegen.ir.loops import Expr, prim
from aot.ir.conditions import Condition, at_least, axis_of
from aot.ir.op import ComputeOp, Element, ViewOp
from aot.ir.operand import Input, Operand, Piece
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, differs, dim_text, dtype_of, simplify
from aot.opset.base.index_maps import whole
from aot.opset.base.row_major import ravel, unravel
from aot.runtime.errors import ShapeError


class DepthMode(StrEnum):
    """Slower-varying part of the deep axis: the place within a block, or the channel."""

    BLOCKS_FIRST = "blocks_first"
    DEPTH_FIRST = "depth_first"


def divided(n: Dim, by: Dim, what: str) -> Dim:
    """Return n / by; raise ShapeError if `by` is known to be below 1 or not to divide n."""
    if isinstance(by, int) and (by < 1 or (isinstance(n, int) and n % by)):
        raise ShapeError(f"{what}: a dimension must divide by {by}, got {dim_text(n)}")
    return simplify(n // by)


def dividing(*pairs: tuple[Dim, Dim]) -> list[Condition]:
    """Return the conditions that `by` divides n, for the pairs that are not known at compile time."""
    return [
        (n % by, 0, f"a dimension must divide by {dim_text(by)}")
        for n, by in pairs
        if not isinstance(by, int) or (not isinstance(n, int) and by > 1)
    ]


@op("opset1")
class DepthToSpace(ViewOp):
    """[N, C b^k, D..] to [N, C, D b..]: the places of a b x .. x b block come from the channels."""

    mode: DepthMode = DepthMode.BLOCKS_FIRST
    block_size: int = 1

    def infer(self, x: Operand) -> TensorType:
        if x.rank < 3:
            raise ShapeError(f"DepthToSpace: rank must be at least 3, got {x.rank}")
        channels = divided(x.shape[1], self.block_size ** (x.rank - 2), "DepthToSpace")
        return TensorType(x.dtype, (x.shape[0], channels, *(n * self.block_size for n in x.shape[2:])))

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return dividing((x.shape[1], self.block_size ** (x.rank - 2)))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        b, k, channels = self.block_size, x.rank - 2, outs[0].shape[1]

        def index(n: Expr, c: Expr, *at: Expr) -> tuple[Expr, ...]:
            inner = ravel([i % b for i in at], [b] * k)
            channel = inner * channels + c if self.mode is DepthMode.BLOCKS_FIRST else c * b**k + inner
            return (n, channel, *(i // b for i in at))

        return (whole(outs[0], index),)

    def reference(self, x: Array) -> Array:
        b, k, space = self.block_size, x.ndim - 2, x.shape[2:]
        channels = x.shape[1] // b**k
        first = self.mode is DepthMode.BLOCKS_FIRST
        split = x.reshape(x.shape[0], *([b] * k + [channels] if first else [channels] + [b] * k), *space)
        blocks, channel_axis = (range(1, k + 1), k + 1) if first else (range(2, k + 2), 1)
        order = [0, channel_axis, *(a for s, o in zip(range(k + 2, 2 * k + 2), blocks, strict=True) for a in (s, o))]
        return split.transpose(order).reshape(x.shape[0], channels, *(n * b for n in space))


@op("opset1")
class SpaceToDepth(ViewOp):
    """[N, C, D b..] to [N, C b^k, D..]: the places of a b x .. x b block become channels."""

    mode: DepthMode = DepthMode.BLOCKS_FIRST
    block_size: int = 1

    def infer(self, x: Operand) -> TensorType:
        if x.rank < 3:
            raise ShapeError(f"SpaceToDepth: rank must be at least 3, got {x.rank}")
        space = tuple(divided(n, self.block_size, "SpaceToDepth") for n in x.shape[2:])
        return TensorType(x.dtype, (x.shape[0], x.shape[1] * self.block_size ** (x.rank - 2), *space))

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return dividing(*((n, self.block_size) for n in x.shape[2:]))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        b, k, channels = self.block_size, x.rank - 2, x.shape[1]

        def index(n: Expr, channel: Expr, *at: Expr) -> tuple[Expr, ...]:
            first = self.mode is DepthMode.BLOCKS_FIRST
            inner, c = (channel // channels, channel % channels) if first else (channel % b**k, channel // b**k)
            return (n, c, *(i * b + o for i, o in zip(at, unravel(inner, (b,) * k), strict=True)))

        return (whole(outs[0], index),)

    def reference(self, x: Array) -> Array:
        b, k = self.block_size, x.ndim - 2
        space = [n // b for n in x.shape[2:]]
        split = x.reshape(*x.shape[:2], *(d for n in space for d in (n, b)))
        outer, inner = range(2, 2 * k + 2, 2), range(3, 2 * k + 2, 2)
        channel_axes = [*inner, 1] if self.mode is DepthMode.BLOCKS_FIRST else [1, *inner]
        return split.transpose(0, *channel_axes, *outer).reshape(x.shape[0], -1, *space)


@op("opset2")
class BatchToSpace(ViewOp):
    """Blocks of places come from the batch; then `crops_begin` and `crops_end` are cut off each dimension."""

    def infer(self, x: Operand, block: Operand, begin: Operand, end: Operand) -> TensorType:
        sizes, low, high = _block(x, block, begin, end, "BatchToSpace")
        dims = [n * b - i - j for n, b, i, j in zip(x.shape, sizes, low, high, strict=True)]
        return TensorType(x.dtype, (divided(x.shape[0], prod(sizes), "BatchToSpace"), *dims[1:]))

    def conditions(self, x: Operand, block: Operand, begin: Operand, end: Operand) -> Sequence[Condition]:
        sizes = _checked_shapes(x, block, begin, end, "BatchToSpace")[0]
        blocks = prod(b if isinstance(b, int) else prim("max", b, 1) for b in sizes[1:])
        return [*_whole_blocks(x, block, begin, end, "BatchToSpace"), *dividing((x.shape[0], blocks))]

    def pieces(
        self, outs: tuple[TensorType, ...], x: Operand, block: Operand, begin: Operand, end: Operand
    ) -> tuple[Piece, ...]:
        sizes, low, _ = _block(x, block, begin, end, "BatchToSpace")
        batches = outs[0].shape[0]

        def index(n: Expr, *at: Expr) -> tuple[Expr, ...]:
            positions = [i + c for i, c in zip(at, low[1:], strict=True)]
            inner = ravel([i % b for i, b in zip(positions, sizes[1:], strict=True)], sizes[1:])
            return (inner * batches + n, *(i // b for i, b in zip(positions, sizes[1:], strict=True)))

        return (whole(outs[0], index),)

    def reference(self, x: Array, block: Array, begin: Array, end: Array) -> Array:
        sizes, k = [int(b) for b in block[1:]], x.ndim - 1
        batches = x.shape[0] // prod(sizes)
        order = [k, *(a for d in range(k) for a in (k + 1 + d, d))]
        full = x.reshape(*sizes, batches, *x.shape[1:]).transpose(order)
        full = full.reshape(batches, *(n * b for n, b in zip(x.shape[1:], sizes, strict=True)))
        return full[tuple(slice(int(i), n - int(j)) for n, i, j in zip(full.shape, begin, end, strict=True))]


@op("opset2")
class SpaceToBatch(ComputeOp):
    """Zeros are added on both sides of each dimension; then the places within blocks become batches."""

    def infer(self, x: Operand, block: Operand, begin: Operand, end: Operand) -> TensorType:
        sizes, low, high = _block(x, block, begin, end, "SpaceToBatch")
        dims = [divided(n + i + j, b, "SpaceToBatch") for n, b, i, j in zip(x.shape, sizes, low, high, strict=True)]
        return TensorType(x.dtype, (x.shape[0] * prod(sizes), *dims[1:]))

    def conditions(self, x: Operand, block: Operand, begin: Operand, end: Operand) -> Sequence[Condition]:
        parts = zip(x.shape, *_block(x, block, begin, end, "SpaceToBatch"), strict=True)
        whole = dividing(*((n + i + j, b) for n, b, i, j in parts))
        return [*_whole_blocks(x, block, begin, end, "SpaceToBatch"), *whole]

    def compute(self, out: TensorType, x: Input, block: Input, begin: Input, end: Input) -> Element:
        sizes, low, _ = _block(x.operand(), block.operand(), begin.operand(), end.operand(), "SpaceToBatch")
        batches = x.shape[0]

        def element(n: Expr, *at: Expr) -> Expr:
            inner = unravel(n // batches, sizes[1:])
            positions = [i * b + o - a for i, b, o, a in zip(at, sizes[1:], inner, low[1:], strict=True)]
            return x.padded(n % batches, *positions)

        return element

    def reference(self, x: Array, block: Array, begin: Array, end: Array) -> Array:
        sizes, k = [int(b) for b in block[1:]], x.ndim - 1
        full = np.pad(x, [(int(i), int(j)) for i, j in zip(begin, end, strict=True)])
        dims = [n // b for n, b in zip(full.shape[1:], sizes, strict=True)]
        split = full.reshape(full.shape[0], *(d for n, b in zip(dims, sizes, strict=True) for d in (n, b)))
        return split.transpose(*range(2, 2 * k + 1, 2), 0, *range(1, 2 * k + 1, 2)).reshape(-1, *dims)


def _block(x: Operand, block: Operand, begin: Operand, end: Operand, what: str) -> tuple[Shape, Shape, Shape]:
    """Return block sizes and amounts added or cut off at begin and end, one entry a dimension; 1 and 0 for the batch.

    Dynamic entries are clamped to valid values, since memory is laid out for no others; `_whole_blocks` checks them.
    """
    sizes, low, high = _checked_shapes(x, block, begin, end, what)
    blocks = (1, *(b if isinstance(b, int) else prim("max", prim("min", b, x.shape[0]), 1) for b in sizes[1:]))
    low, high = ((0, *(v if isinstance(v, int) else prim("max", v, 0) for v in sides[1:])) for sides in (low, high))
    return blocks, low, high


def _checked_shapes(x: Operand, block: Operand, begin: Operand, end: Operand, what: str) -> tuple[Shape, Shape, Shape]:
    names, fixed = ("block_shape", "begin", "end"), what == "SpaceToBatch"
    sizes: Shape = block.ints(f"{what}: block_shape") if fixed else block.dims(f"{what}: block_shape")
    low, high = (o.dims(f"{what}: {name}") for o, name in zip((begin, end), names[1:], strict=True))
    for name, values in zip(names, (sizes, low, high), strict=True):
        known = [v for v in values if isinstance(v, int)]
        if len(values) != x.rank or differs(values[0], name == "block_shape") or min(known, default=0) < 0:
            texts = [dim_text(v) for v in values]
            raise ShapeError(f"{what}: {name} must have one entry a dimension and none for the batch, got {texts}")
    return sizes, low, high


def _whole_blocks(x: Operand, block: Operand, begin: Operand, end: Operand, what: str) -> list[Condition]:
    """Return conditions on dynamic entries: blocks are not empty, nothing negative is added or cut off."""
    rules: list[Condition] = []
    for name, values in zip(("block_shape", "begin", "end"), _checked_shapes(x, block, begin, end, what), strict=True):
        least = int(name == "block_shape")
        rules += [(v, least, f"{name} must be {least} for the batch") for v in values[:1] if not isinstance(v, int)]
        rules += [at_least(f"{name} must be at least {least}", v, least) for v in values[1:] if not isinstance(v, int)]
    return rules


class PatchPad(StrEnum):
    """Padding: none, or enough for ceil(extent / stride) patches, with an odd remainder at the end or at the start."""

    VALID = "valid"
    SAME_UPPER = "same_upper"
    SAME_LOWER = "same_lower"


@op("opset3")
class ExtractImagePatches(ComputeOp):
    """out[n, (kh, kw, c), i, j] = x[n, c, i s + kh r - before, j s + kw r - before], 0 in the padding."""

    sizes: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    rates: tuple[int, ...] = (1, 1)
    auto_pad: PatchPad = PatchPad.VALID

    def infer(self, x: Operand) -> TensorType:
        if x.rank != 4 or not len(self.sizes) == len(self.strides) == len(self.rates) == 2:
            rule = "an image [N, C, H, W] and two sizes, strides and rates are needed"
            raise ShapeError(f"ExtractImagePatches: {rule}, got {x.type}")
        counts = (self._count(x.shape[2 + a], a) for a in range(2))
        return TensorType(x.dtype, (x.shape[0], x.shape[1] * prod(self.sizes), *counts))

    def _reach(self, a: int) -> int:
        return (self.sizes[a] - 1) * self.rates[a] + 1

    def _count(self, n: Dim, a: int) -> Dim:
        if self.auto_pad is not PatchPad.VALID:
            return (n + (self.strides[a] - 1)) // self.strides[a]
        if isinstance(n, int) and n < self._reach(a):
            return 0
        return (n - self._reach(a)) // self.strides[a] + 1

    def _before(self, n: Dim, count: Dim, a: int) -> Dim:
        if self.auto_pad is PatchPad.VALID:
            return 0
        added = simplify((count - 1) * self.strides[a] + self._reach(a) - n)
        added = max(added, 0) if isinstance(added, int) else prim("max", added, 0)
        return added // 2 if self.auto_pad is PatchPad.SAME_UPPER else (added + 1) // 2

    def compute(self, out: TensorType, x: Input) -> Element:
        channels = x.shape[1]
        before = [self._before(x.shape[2 + a], out.shape[2 + a], a) for a in range(2)]

        def element(n: Expr, channel: Expr, *at: Expr) -> Expr:
            inner = unravel(channel // channels, self.sizes)
            window = zip(at, self.strides, inner, self.rates, before, strict=True)
            positions = [i * s + k * r - p for i, s, k, r, p in window]
            return x.padded(n, channel % channels, *positions)

        return element

    def reference(self, x: Array) -> Array:
        counts = self.infer(Operand(TensorType(dtype_of(x), x.shape))).static_shape[2:]
        pads = [(0, 0), (0, 0)]
        for a in range(2):
            last = (counts[a] - 1) * self.strides[a] + self._reach(a)
            added = max(last - x.shape[2 + a], 0)
            low = added // 2 if self.auto_pad is not PatchPad.SAME_LOWER else added - added // 2
            pads.append((low, added - low))
        full = np.pad(x, pads)
        parts: list[Array] = []
        for h, w in np.ndindex(*self.sizes):
            top, left = h * self.rates[0], w * self.rates[1]
            rows = slice(top, top + (counts[0] - 1) * self.strides[0] + 1, self.strides[0])
            columns = slice(left, left + (counts[1] - 1) * self.strides[1] + 1, self.strides[1])
            parts.append(full[:, :, rows, columns])
        return np.concatenate(parts, 1)


@op("opset1")
class ShuffleChannels(ViewOp):
    """`axis` as a matrix of `group` rows, transposed."""

    axis: int = 1
    group: int = 1

    def infer(self, x: Operand) -> TensorType:
        divided(x.shape[axis_of(self.axis, x.rank, "ShuffleChannels")], self.group, "ShuffleChannels")
        return x.type

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return dividing((x.shape[axis_of(self.axis, x.rank, "ShuffleChannels")], self.group))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        axis = axis_of(self.axis, x.rank, "ShuffleChannels")
        each = simplify(x.shape[axis] // self.group)

        def index(*at: Expr) -> tuple[Expr, ...]:
            c = at[axis]
            return (*at[:axis], (c % self.group) * each + c // self.group, *at[axis + 1 :])

        return (whole(outs[0], index),)

    def reference(self, x: Array) -> Array:
        axis = self.axis % x.ndim
        rows = x.reshape(*x.shape[:axis], self.group, x.shape[axis] // self.group, *x.shape[axis + 1 :])
        return rows.swapaxes(axis, axis + 1).reshape(x.shape)


@op("opset2")
class ReorgYolo(ViewOp):
    """[N, C, H, W] to [N, C s^2, H/s, W/s] in Darknet's order.

    The output is the flat copy of an array [C, H, W] whose element (c, h, w) is pixel (c % c', h s + c // c' // s,
    w s + c // c' % s) of the input read as [c' = C / s^2, H s, W s].
    """

    stride: tuple[int, ...] = (1,)

    def infer(self, x: Operand) -> TensorType:
        s = self.stride[0]
        if x.rank != 4:
            raise ShapeError(f"ReorgYolo: rank must be 4, got {x.rank}")
        divided(x.shape[1], s * s, "ReorgYolo")
        return TensorType(x.dtype, (x.shape[0], x.shape[1] * s * s, *(divided(n, s, "ReorgYolo") for n in x.shape[2:])))

    def conditions(self, x: Operand) -> Sequence[Condition]:
        s = self.stride[0]
        return dividing((x.shape[1], s * s), *((n, s) for n in x.shape[2:]))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        """In memory [N, s, s, C', H, W] of [N, C', H, s, W, s]: a row of the output is every s-th element of a row."""
        s, low = self.stride[0], outs[0].shape[2]
        channels, height = x.shape[1] // (s * s), x.shape[2]

        def index(n: Expr, c: Expr, h: Expr, w: Expr) -> tuple[Expr, ...]:
            plane, part = c // (s * s), c % (s * s) * low + h  # its rows are the s parts of each of H rows
            down, right, channel = plane // channels // s, plane // channels % s, plane % channels
            row = (part // s * s + down) * s + part % s
            return n, channel * (s * s) + row // height, row % height, w * s + right

        return (whole(outs[0], index),)

    def reference(self, x: Array) -> Array:
        s, (n, c, h, w) = self.stride[0], x.shape
        image = x.reshape(n, c // (s * s), h, s, w, s)
        return image.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * s * s, h // s, w // s)
