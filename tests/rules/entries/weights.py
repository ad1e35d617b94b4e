"""Rules that change weights: scales, shifts, padding and orders of channels of convolutions and products; pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.products.pooling import MaxPool_8
from aot.passes.rules import branches, conv, pooling
from aot.runtime.abi import DType
from tests.passes.check import Make
from tests.rules.proof import Entry, Pattern

WEIGHTS = {
    "Convolution": (4, 2, 2, 2),
    "GroupConvolution": (2, 2, 1, 2, 2),
    "ConvolutionBackpropData": (2, 4, 2, 2),
    "GroupConvolutionBackpropData": (2, 1, 2, 2, 2),
}
PLAIN: dict[str, Any] = {"pads_begin": (0, 0), "pads_end": (0, 0), "strides": (1, 1), "dilations": (1, 1)}
PADDED = PLAIN | {"pads_begin": (1, 0), "pads_end": (1, 1), "strides": (2, 1)}
IMAGE = ("n=2", 2, 4, 3)
SAMPLED = "all inputs; weights are multiples of 1/8"


def eighths(*shape: int, seed: int = 3) -> np.ndarray[Any, Any]:
    """Numbers whose products are exact in f32; none is zero."""
    found = np.random.default_rng(seed).integers(1, 9, shape) * np.random.default_rng(seed + 1).choice([-1, 1], shape)
    return (found / 8).astype(np.float32)


def f32(b: Builder, *shape: int, seed: int = 3) -> OutPort:
    return b.const(eighths(*shape, seed=seed), DType.F32)


def convolved(b: Builder, x: OutPort, kind: str, **attributes: Any) -> OutPort:
    return getattr(b, kind)(x, f32(b, *WEIGHTS[kind]), **(PADDED | attributes))


def by_kind(make: Any, *kinds: str) -> tuple[Pattern, ...]:
    return tuple(Pattern(lambda b, x, kind=kind: make(b, x, kind), (IMAGE,)) for kind in kinds or WEIGHTS)


def product(transposed: bool, make: Any) -> Pattern:
    def whole(b: Builder, x: OutPort) -> OutPort:
        return make(b, b.MatMul(x, f32(b, *((4, 3) if transposed else (3, 4))), transpose_b=transposed))

    return Pattern(whole, (("n=2", 3),))


def scaled(b: Builder, x: OutPort, kind: str) -> OutPort:
    return b.Multiply(convolved(b, x, kind), f32(b, 1, 4, 1, 1, seed=5))


def shifted(b: Builder, x: OutPort, kind: str) -> OutPort:
    return b.Multiply(b.Add(convolved(b, x, kind), f32(b, 1, 4, 1, 1)), f32(b, 1, 4, 1, 1, seed=5))


def padded(b: Builder, x: OutPort, kind: str) -> OutPort:
    pads = [b.const(p, DType.I64) for p in ([0, 0, 1, 2], [0, 0, 0, 1])]
    return convolved(b, b.Pad(x, *pads), kind)


def ordered(b: Builder, x: OutPort) -> OutPort:
    turned = b.Gather(x, b.const([2, 0, -2], DType.I64), b.const(-3, DType.I64))
    return b.Convolution(turned, f32(b, 2, 3, 2, 2), **PADDED)


def two_windows(b: Builder, x: OutPort, kind: str) -> OutPort:
    """Windows of 2x2, and of the elements in their second rows and first columns."""
    inner = getattr(b, kind)(x, f32(b, *WEIGHTS[kind][:-2], 1, 1, seed=5), **(PLAIN | {"strides": (2, 1)}))
    return b.Add(b.Add(convolved(b, x, kind, pads_end=(0, 1)), f32(b, 1, 4, 1, 1)), inner)


def window_and_scale(b: Builder, x: OutPort) -> OutPort:
    wide = b.Convolution(x, f32(b, 2, 2, 3, 1), **(PLAIN | {"pads_begin": (1, 0), "pads_end": (1, 0)}))
    return b.Add(wide, b.Multiply(x, f32(b, 1, 2, 1, 1, seed=5)))


def one(make: Make, shape: tuple[int | str, ...] = ("n=2", 3)) -> Pattern:
    return Pattern(make, (shape,))


def pooled(kind: str, size: int, pads: tuple[int, int], stride: int = 1, **more: Any) -> Pattern:
    fields: Any = {"kernel": (size, 2), "strides": (stride, 1), "pads_begin": (pads[0], 0), "pads_end": (pads[1], 1)}
    return Pattern(lambda b, x: getattr(b, kind)(x, **(fields | more)), (("n=2", 1, 3, 3),), within=1e-6)


ENTRIES = (
    Entry(
        conv.divide_by_constant,
        (one(lambda b, x: b.Divide(x, 4.0)), one(lambda b, x: b.Divide(x, np.float32([2.0, 0.5, -8.0])))),
        note="powers of two; other divisors round",
    ),
    Entry(conv.subtract_constant, (one(lambda b, x: b.Subtract(x, np.float32([1.5, -2, 3]))),)),
    Entry(
        conv.merge_constants,
        (
            one(lambda b, x: b.Add(b.Add(x, np.float32([1.5, -2, 3])), 0.25)),
            one(lambda b, x: b.Multiply(b.Multiply(x, 0.5), np.float32([1.5, -2, 3]))),
        ),
        note=SAMPLED,
    ),
    Entry(conv.constant_second, (one(lambda b, x: b.Add(b.const([1, 2, 3], DType.F32), x)),)),
    Entry(
        conv.scale_into_weights,
        (
            *by_kind(scaled),
            *(product(t, lambda b, y: b.Multiply(y, f32(b, 4, seed=5))) for t in (False, True)),
        ),
        note=SAMPLED,
    ),
    Entry(
        conv.scale_behind_shift,
        (
            *by_kind(shifted),
            product(False, lambda b, y: b.Multiply(b.Add(y, f32(b, 4)), f32(b, 4, seed=5))),
        ),
        note=SAMPLED,
    ),
    Entry(
        conv.scale_before_into_weights,
        by_kind(lambda b, x, kind: convolved(b, b.Multiply(x, f32(b, 1, 2, 1, 1, seed=5)), kind)),
        note=SAMPLED,
    ),
    Entry(
        conv.pad_into_windows,
        by_kind(padded, "Convolution", "GroupConvolution"),
        note=SAMPLED,
    ),
    Entry(conv.channel_order_into_weights, (Pattern(ordered, (("n=2", 3, 4, 3),)),), note=SAMPLED),
    Entry(
        conv.shift_before_into_bias,
        by_kind(
            lambda b, x, kind: convolved(b, b.Add(x, f32(b, 1, 2, 1, 1, seed=5)), kind, **PLAIN),
            *("Convolution", "GroupConvolution"),
        ),
        note=SAMPLED,
    ),
    Entry(
        branches.merge_branches,
        (
            *by_kind(two_windows, "Convolution", "GroupConvolution"),
            Pattern(window_and_scale, (("n=2", 2, 3, 3),)),
            Pattern(lambda b, x: b.Add(b.MatMul(x, f32(b, 3, 4)), b.MatMul(x, f32(b, 3, 4, seed=5))), (("n=2", 3),)),
        ),
        note=SAMPLED,
    ),
    Entry(
        pooling.drop_unused_indices,
        (
            one(
                lambda b, x: b(MaxPool_8((1, 1), (0, 1), (0, 0), (2, 2), dilations=(1, 1)), x, outputs=2),
                ("n=2", 1, 3, 3),
            ),
        ),
    ),
    Entry(
        pooling.clip_windows,
        (
            pooled("MaxPool", 7, (3, 3)),
            pooled("MaxPool", 7, (3, 4), 2),
            pooled("AvgPool", 7, (3, 3), exclude_pad=True),
            pooled("AvgPool", 7, (3, 3), exclude_pad=False),
            pooled("AvgPool", 6, (5, 3), 2, exclude_pad=False),
        ),
        note="within 1e-6: the ratio of two sizes is rounded",
    ),
)
