"""Rules of levels of quantised networks, and of the numbers that they stand for."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.rules import levels
from runtime.abi import DType
from tests.rules.proof import Entry, Pattern

ROUNDED = "numbers are levels times a scale, rounded in f32, which real numbers do not show"
SCALE, ZERO = 0.25, 3.0


def levels_of(b: Builder, x: OutPort, dtype: DType = DType.U8, zero: float = ZERO, scale: float = SCALE) -> OutPort:
    low, high = (0.0, 255.0) if dtype is DType.U8 else (-128.0, 127.0)
    x = b.Round(b.Divide(x, scale))
    return b.Convert(b.Clamp(b.Add(x, zero) if zero else x, min=low, max=high), destination_type=dtype)


def numbers_of(b: Builder, q: OutPort, zero: float = ZERO, scale: float = SCALE, whole: bool = True) -> OutPort:
    x = b.Convert(q, destination_type=DType.I32 if whole else DType.F32)
    x = b.Subtract(x, zero) if zero else x
    return b.Multiply(b.Convert(x, destination_type=DType.F32) if whole else x, scale)


def again(b: Builder, x: OutPort, dtype: DType = DType.U8, zero: float = ZERO, whole: bool = True) -> OutPort:
    return levels_of(b, numbers_of(b, levels_of(b, x, dtype, zero), zero, whole=whole), dtype, zero)


def joined(b: Builder, x: OutPort, y: OutPort) -> OutPort:
    return levels_of(b, b.Concat(b.Negative(x), b.Abs(y), axis=1))


def pooled(b: Builder, x: OutPort, pad: int = 1) -> OutPort:
    q = b.Convert(x, destination_type=DType.U8)
    return b.MaxPool(numbers_of(b, q), kernel=(3, 3), strides=(2, 2), pads_begin=(pad, pad), pads_end=(1, 1))


def levels_of_pool(
    b: Builder, x: OutPort, low: float = 0.0, high: float = 255.0, zero: float = 0.0, scale: float = SCALE
) -> OutPort:
    x = b.MaxPool(x, kernel=(3, 3), strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1))
    x = b.Round(b.Divide(x, scale))
    return b.Clamp(b.Add(x, zero) if zero else x, min=low, max=high)


def number(b: Builder, x: OutPort) -> OutPort:
    return b.Select(b.IsNaN(x), b.const(0.0, DType.F32), x)


ENTRIES = (
    Entry(
        levels.drop_levels_of_levels,
        (
            Pattern(again, (("n=2", 3),)),
            Pattern(lambda b, x: again(b, x, DType.I8), (("n=2", 3),)),
            Pattern(lambda b, x: again(b, x, zero=0.0, whole=False), (("n=2", 3),)),
            Pattern(
                lambda b, x: levels_of(b, b.Transpose(numbers_of(b, levels_of(b, x)), b.const([1, 0], DType.I64))),
                ((2, 3),),
            ),
        ),
        why=ROUNDED,
    ),
    Entry(
        levels.levels_before_concat,
        (Pattern(joined, ((2, 3), (2, 4))),),
        why="conversions of floats to integers are not expressed",
    ),
    Entry(levels.pool_levels, (Pattern(pooled, ((1, 2, 5, 6),)),), why=ROUNDED),
    Entry(
        levels.levels_before_pool,
        (
            Pattern(lambda b, x: levels_of_pool(b, number(b, x)), ((1, 2, 5, 6),)),
            Pattern(lambda b, x: levels_of_pool(b, number(b, x), -128.0, 127.0, ZERO), ((1, 2, 5, 6),)),
        ),
        why="conversions of floats to integers are not expressed; NaN, which has no level, is left out",
    ),
)
