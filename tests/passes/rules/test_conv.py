"""Scales move into weights, shifts become one Add behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.opset.products.pool_windows import AutoPad
from aot.opset.products.pooling import MaxPool, MaxPool_8
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.rewrite import RuleSet
from aot.passes.rules import algebra, conv, pooling
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE
from tests.passes.check import after, graph_of, weights

RULES = [fold_constants, RuleSet("rules", (*algebra.RULES, *conv.RULES, *pooling.RULES)), fold_constants]
PADS: dict[str, Any] = {"pads_begin": (1, 1), "pads_end": (1, 1), "strides": (1, 1), "dilations": (1, 1)}
SHAPES = {
    "Convolution": ((6, 4, 3, 3), 6),
    "GroupConvolution": ((2, 3, 2, 3, 3), 6),
    "ConvolutionBackpropData": ((4, 6, 3, 3), 6),
    "GroupConvolutionBackpropData": ((2, 2, 3, 3, 3), 6),
}


def f32(b: Builder, array: Array) -> OutPort:
    return b.const(array, DType.F32)


def convolution(b: Builder, x: OutPort, kind: str) -> OutPort:
    return getattr(b, kind)(x, f32(b, weights(*SHAPES[kind][0])), **PADS)


def by_channel(b: Builder, channels: int) -> OutPort:
    return f32(b, weights(1, channels, 1, 1))


@pytest.mark.parametrize("kind", SHAPES)
def test_batch_norm_behind(kind: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Add(convolution(b, x, kind), by_channel(b, 6))
        return b.Add(b.Multiply(b.Divide(b.Subtract(y, by_channel(b, 6)), 3.0), by_channel(b, 6)), by_channel(b, 6))

    assert after(RULES, make, (2, 4, 5, 5), tolerance=LOOSE) == [kind, "Add"]


@pytest.mark.parametrize("kind", SHAPES)
def test_scale_before(kind: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return convolution(b, b.Multiply(by_channel(b, 4), x), kind)

    assert after(RULES, make, (2, 4, 5, 5), tolerance=LOOSE) == [kind]


def padded(b: Builder, x: OutPort, kind: str, begin: list[int], end: list[int], **attributes: Any) -> OutPort:
    pad = b.Pad(x, b.const(begin, DType.I64), b.const(end, DType.I64), *attributes.pop("fill", ()))
    return getattr(b, kind)(pad, f32(b, weights(*SHAPES[kind][0])), **PADS | attributes)


@pytest.mark.parametrize("kind", ["Convolution", "GroupConvolution"])
@pytest.mark.parametrize(
    ("size", "attributes"),
    [
        (5, {}),
        (6, {"auto_pad": AutoPad.VALID, "strides": (2, 2)}),
        (6, {"auto_pad": AutoPad.SAME_UPPER, "strides": (2, 2)}),
        (7, {"auto_pad": AutoPad.SAME_LOWER, "dilations": (2, 2)}),
        ("n=5", {}),
    ],
)
def test_padding_becomes_that_of_the_windows(kind: str, size: Any, attributes: dict[str, Any]) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return padded(b, x, kind, [0, 0, 0, 1], [0, 0, 1, 2], **attributes)

    assert after(RULES, make, (2, 4, size, size)) == [kind]


@pytest.mark.parametrize(
    ("begin", "end", "fill"),
    [([0, 0, -1, 0], [0, 0, 1, 1], 0.0), ([1, 0, 0, 0], [0, 0, 1, 0], 0.0), ([0, 0, 1, 1], [0, 0, 1, 1], 2.0)],
    ids=["crops", "batch", "another value"],
)
def test_other_padding_stays(begin: list[int], end: list[int], fill: float) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return padded(b, x, "Convolution", begin, end, fill=(f32(b, np.array(fill)),))

    assert after(RULES, make, (2, 4, 6, 6)) == ["Pad", "Convolution"]


@pytest.mark.parametrize("transpose", [False, True])
def test_scales_move_into_the_weights_of_a_product(transpose: bool) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        product = b.MatMul(x, f32(b, weights(6, 4) if transpose else weights(4, 6)), transpose_b=transpose)
        return b.Multiply(b.Add(product, f32(b, weights(6))), f32(b, weights(6) + 2))

    assert after(RULES, make, ("n=2", 3, 4), tolerance=LOOSE) == ["MatMul", "Add"]


def test_scale_of_a_tensor_read_twice_stays() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        y = convolution(b, x, "Convolution")
        return b.Multiply(y, 2.0), y

    assert after(RULES, make, (2, 4, 5, 5), tolerance=LOOSE) == ["Convolution", "Multiply"]


def test_scale_that_varies_over_pixels_stays() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Multiply(convolution(b, x, "Convolution"), f32(b, weights(1, 1, 5, 5)))

    assert after(RULES, make, (2, 4, 5, 5), tolerance=LOOSE) == ["Convolution", "Multiply"]


def test_short_floats_stay() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Multiply(b.Multiply(x, b.const(weights(3), DType.F16)), b.const(weights(3), DType.F16))

    assert after(RULES, make, (2, 3), dtype=DType.F16) == ["Multiply", "Multiply"]


def test_constants_that_overflow_stay() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Multiply(b.Multiply(x, 1e30), 1e30)

    assert after(RULES, make, (2, 3)) == ["Multiply", "Multiply"]


def test_division_by_zero_stays() -> None:
    assert after(RULES, lambda b, x: b.Divide(x, f32(b, np.array([1, 0, 2]))), (2, 3)) == ["Divide"]


def test_division_becomes_a_product_where_that_is_exact() -> None:
    assert after(RULES, lambda b, x: b.Divide(x, 255.0), (2, 3)) == ["Divide"]
    powers = np.array([0.5, -4, 2])
    assert after(RULES, lambda b, x: b.Divide(x, f32(b, powers)), (2, 3), tolerance=EXACT) == ["Multiply"]


def test_half_precision_weights_are_widened() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.Convert(b.const(weights(6, 4, 3, 3), DType.F16), destination_type=DType.F32)
        return b.Multiply(b.Convolution(x, w, **PADS), by_channel(b, 6))

    assert after(RULES, make, (2, 4, 5, 5), tolerance=LOOSE) == ["Convolution"]


def test_unread_places_of_maxima() -> None:
    attributes: dict[str, Any] = {"kernel": (2, 2), "strides": (2, 2), "auto_pad": AutoPad.VALID}

    def one(b: Builder, x: OutPort) -> OutPort:
        return b.MaxPool_8(x, outputs=2, **attributes)

    def two(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        node = b.MaxPool_8(x, outputs=2, **attributes).node
        return node.out_port(0), node.out_port(1)

    for make, expected in ((one, MaxPool), (two, MaxPool_8)):
        graph = graph_of(make, (1, 2, 4, 4))
        run_passes(graph, RULES)
        assert expected in [type(n.op) for n in graph.order()]
    assert after(RULES, one, (1, 2, 4, 4)) == ["MaxPool"]
    assert after(RULES, two, (1, 2, 4, 4)) == ["MaxPool"]
