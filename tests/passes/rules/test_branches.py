"""Branches of one tensor that are added up become one; those that do not fit, or have other consumers, stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.values.deferred import Deferred
from aot.opset.products.pool_windows import AutoPad
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.rewrite import RuleSet
from aot.passes.rules import branches, conv
from aot.runtime.abi import DType
from tests.cases import LOOSE
from tests.passes.check import Make, Size, after, graph_of, weights

RULES = [fold_constants, RuleSet("rules", (*conv.RULES, *branches.RULES)), fold_constants]
IMAGE: tuple[Size, ...] = (2, 4, 6, 5)
SIZES = {"Convolution": (4, 4), "GroupConvolution": (2, 2, 2)}


def f32(b: Builder, *shape: int) -> OutPort:
    return b.const(weights(*shape), DType.F32)


def window(
    b: Builder, x: OutPort, size: int, kind: str = "Convolution", pad: int | None = None, **more: Any
) -> OutPort:
    """A convolution of 4 to 4 channels whose windows have the middle that the pixel has."""
    padding = (size // 2 if pad is None else pad,) * 2
    fields: Any = {"pads_begin": padding, "pads_end": padding, "strides": (1, 1), "dilations": (1, 1)}
    return getattr(b, kind)(x, f32(b, *SIZES[kind], size, size), **(fields | more))


def left(make: Make, *shapes: tuple[Size, ...]) -> list[str]:
    return after(RULES, make, *(shapes or (IMAGE,)), tolerance=LOOSE)


@pytest.mark.parametrize("kind", SIZES)
def test_block_of_several_branches(kind: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        total = b.Add(window(b, x, 3, kind), f32(b, 1, 4, 1, 1))
        for size in (3, 1, 5):
            total = b.Add(b.Add(window(b, x, size, kind), f32(b, 1, 4, 1, 1)), total)
        return b.Relu(b.Add(total, b.Add(b.Multiply(x, f32(b, 1, 4, 1, 1)), f32(b, 1, 4, 1, 1))))

    assert left(make) == [kind, "Add", "Relu"]


def test_strides_and_dilations() -> None:
    def strided(b: Builder, x: OutPort) -> OutPort:
        return b.Add(window(b, x, 3, strides=(2, 1)), window(b, x, 1, strides=(2, 1)))

    def dilated(b: Builder, x: OutPort) -> OutPort:
        wide = window(b, x, 3, pad=2, dilations=(2, 2))
        return b.Add(b.Add(wide, window(b, x, 1)), b.Multiply(x, f32(b, 4, 1, 1)))

    assert left(strided) == left(dilated) == ["Convolution"]


def test_products() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Add(b.MatMul(x, f32(b, 3, 7), transpose_a=True), b.MatMul(x, f32(b, 3, 7), transpose_a=True))

    assert left(make, (2, 3, "n=5")) == ["MatMul"]


def test_batch_of_dynamic_size() -> None:
    assert left(lambda b, x: b.Add(window(b, x, 3), window(b, x, 1)), ("n=2", 4, "h=6", 5)) == ["Convolution"]


@pytest.mark.parametrize(
    "second",
    [
        lambda b, x: window(b, b.Relu(x), 3),
        lambda b, x: window(b, x, 3, pad=2, dilations=(2, 2)),
        lambda b, x: window(b, x, 1, auto_pad=AutoPad.SAME_UPPER),
        lambda b, x: b.Multiply(x, f32(b, 1, 4, 1, 5)),
        lambda b, x: x,
    ],
    ids=["another tensor", "another dilation", "padding by sizes", "a scale of columns", "the tensor itself"],
)
def test_others_stay(second: Make) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Add(window(b, x, 3), second(b, x))

    assert left(make)[-1] == "Add"


def test_other_consumers() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        first = window(b, x, 3)
        return b.Add(first, window(b, x, 1)), b.Relu(first)

    assert sorted(left(make)) == ["Add", "Convolution", "Convolution", "Relu"]


def test_whole_numbers_keep_their_weights() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        levels = [b.const(v, DType.F32) for v in (-1.0, 1.0, -1.0, 1.0)]
        y = b.FakeQuantize(x, *levels, levels=256)
        return b.Add(window(b, y, 3), window(b, y, 1))

    assert left(make) == ["FakeQuantize", "Convolution", "Convolution", "Add"]


def test_weights_without_a_partner_are_not_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A residual around each product of a language model is a sum with one branch, of weights of 4 or 8 bits."""

    def make(b: Builder, x: OutPort) -> OutPort:
        small = b.const(np.ones((512, 512), np.uint8), DType.U8)
        product = b.MatMul(x, b.Convert(small, destination_type=DType.F32), transpose_a=False, transpose_b=False)
        return b.Add(x, product)

    graph = graph_of(make, (2, 512))
    fold_constants(graph)
    assert any(isinstance(node.constant_data, Deferred) for node in graph.nodes.values())
    monkeypatch.setattr(Deferred, "array", None)
    RuleSet("rules", branches.RULES)(graph)
