"""Pooling rewritten to the simplest operation and window."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import cast

from aot.ir.build import Builder
from aot.ir.graph import Node
from aot.opset.products.pool_windows import AutoPad, Rounding, Windows
from aot.opset.products.pooling import Average, AvgPool, AvgPool_16, Counted, DilatedMaxPool, MaxPool, MaxPool_8, Pool
from aot.passes.rewrite import Replacement, rule


@rule(MaxPool_8)
def drop_unused_indices(node: Node, op: MaxPool_8, build: Builder) -> Replacement:
    """MaxPool(x) whose second output, the indices of the maxima, has no consumers -> the maxima alone"""
    if node.out_port(1).destinations:
        return None
    rest = (op.strides, op.pads_begin, op.pads_end, op.kernel, op.rounding_type, op.auto_pad)
    is_undilated = set(op.dilations) <= {1} and op.rounding_type in (Rounding.FLOOR, Rounding.CEIL)
    pool = MaxPool(*rest) if is_undilated else DilatedMaxPool(*rest, dilations=op.dilations)
    return build(pool, node.source(0)), None


@rule(MaxPool, DilatedMaxPool, AvgPool, AvgPool_16)
def clip_windows(node: Node, op: Pool, build: Builder) -> Replacement:
    """pool(x) over windows with elements that are padding in every window -> pool(x) over windows without them

    A mean that counts padding is multiplied by the ratio of the window's sizes.
    """
    x = node.source(0)
    windows = op.windows(x.shape)
    if windows.rounding not in (Rounding.FLOOR, Rounding.CEIL) or not isinstance(
        op, MaxPool | DilatedMaxPool | Average
    ):
        return None
    counted = isinstance(op, Average) and op.counts(windows) is not Counted.DATA
    bounds = [_data_range(windows, a) for a in range(windows.rank)]
    if any(k is None for k in bounds) or (counted and (windows.rounding is Rounding.CEIL or not x.type.dtype.is_float)):
        return None
    ranges = [k for k in bounds if k is not None]
    sizes = tuple(last - first + 1 for first, last in ranges)
    if sizes == op.kernel:
        return None
    steps = windows.dilations
    before = [p - first * step for p, (first, _), step in zip(windows.before, ranges, steps, strict=True)]
    behind = [k - 1 - last for k, (_, last) in zip(op.kernel, ranges, strict=True)]
    after = [p - n * step for p, n, step in zip(windows.after, behind, steps, strict=True)]
    begin, end = (cast("tuple[int, ...]", tuple(pads)) for pads in (before, after))  # known where ranges of data are
    pooled = build(replace(op, kernel=sizes, pads_begin=begin, pads_end=end, auto_pad=AutoPad.EXPLICIT), x)
    return build.Multiply(pooled, prod(sizes) / prod(op.kernel)) if counted else pooled


def _data_range(windows: Windows, a: int) -> tuple[int, int] | None:
    """Return the first and last element along an axis that are data in some window; None if unknown."""
    size, before, count, kernel = windows.extents[a], windows.before[a], windows.counts[a], windows.kernel[a]
    if not (isinstance(size, int) and isinstance(before, int) and isinstance(count, int) and isinstance(kernel, int)):
        return None
    step, stride = windows.dilations[a], windows.strides[a]
    first = max(0, -((before - (count - 1) * stride) // -step))
    last = min(kernel - 1, (size - 1 + before) // step)
    return (first, last) if first <= last else None


RULES = (drop_unused_indices, clip_windows)
