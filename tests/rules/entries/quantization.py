"""Rules of levels of quantised networks, and of the numbers that they stand for."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.image.resize import Interpolate_11
from aot.opset.image.resize_weights import Mode
from aot.opset.movement.movement import Split
from aot.opset.movement.padding import PadMode
from aot.passes.rules import fake_quantize, levels
from aot.runtime.abi import DType
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


def halves(b: Builder, x: OutPort) -> OutPort:
    split = b.node(Split(num_splits=2), numbers_of(b, levels_of(b, x)), b.const(1, DType.I64), outputs=2)
    return levels_of(b, split.out_port(1))


def joined_numbers(b: Builder, x: OutPort, y: OutPort) -> OutPort:
    p, q = (b.Convert(v, destination_type=DType.U8) for v in (x, y))
    return b.Concat(turned(b, numbers_of(b, p)), numbers_of(b, q), axis=0)


def turned(b: Builder, x: OutPort) -> OutPort:
    return b.Transpose(x, b.const([1, 0], DType.I64))


def fake(b: Builder, x: OutPort, low: float = -2.0, high: float = 1.0) -> OutPort:
    return b.FakeQuantize(x, *(b.const(v, DType.F32) for v in (low, high, low, high)), levels=7)


def mirrored(b: Builder, x: OutPort) -> OutPort:
    begin, end = b.const([0, 1], DType.I64), b.const([1, 0], DType.I64)
    return fake(b, b.Pad(x, begin, end, pad_mode=PadMode.REFLECT))


def enlarged(b: Builder, x: OutPort) -> OutPort:
    sizes, axes = b.const([6], DType.I64), b.const([1], DType.I64)
    return fake(b, b(Interpolate_11(mode=Mode.NEAREST), x, sizes, axes))


def windows(b: Builder, x: OutPort) -> OutPort:
    return b.MaxPool(x, kernel=(2, 2), strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))


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
            Pattern(halves, ((2, 4),)),
        ),
        why=ROUNDED,
    ),
    Entry(
        levels.levels_before_concat,
        (Pattern(joined, ((2, 3), (2, 4))),),
        why="conversions of floats to integers are not expressed",
    ),
    Entry(levels.pool_levels, (Pattern(pooled, ((1, 2, 5, 6),)),), why=ROUNDED),
    Entry(levels.join_levels, (Pattern(joined_numbers, ((3, 2), (1, 3))),), why=ROUNDED),
    Entry(
        fake_quantize.quantize_once,
        (Pattern(lambda b, x: fake(b, turned(b, fake(b, x))), ((2, 3),)),),
        why=ROUNDED,
    ),
    Entry(
        fake_quantize.quantize_before_concat,
        (Pattern(lambda b, x, y: fake(b, b.Concat(x, y, axis=0)), (("n=2", 3), ("m=3", 3))),),
    ),
    Entry(
        fake_quantize.quantize_before_pool,
        (Pattern(lambda b, x: fake(b, windows(b, x)), ((1, 1, 2, 3),)),),
    ),
    Entry(
        fake_quantize.quantize_before_view,
        (
            Pattern(lambda b, x: fake(b, turned(b, x)), (("n=2", "m=3"),)),
            Pattern(mirrored, ((3, 4),)),
            Pattern(enlarged, ((2, 3),)),
        ),
    ),
)
