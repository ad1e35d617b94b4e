"""Levels of quantised networks stay bytes through Concat, MaxPool and views; what is not sure to be equal stays."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.products.pooling import DilatedMaxPool
from aot.passes.pipeline import canonicalize, simplify
from aot.passes.rules import levels
from aot.runtime.abi import DType
from tests.passes.check import after
from tests.rules.entries.quantization import (
    SCALE,
    ZERO,
    again,
    halves,
    joined,
    joined_numbers,
    levels_of,
    numbers_of,
    pooled,
)

PASSES = [canonicalize, simplify]
LEVELS = ["Divide", "Round", "Add", "Clamp", "Convert"]


def test_levels_of_numbers_of_levels_are_these() -> None:
    assert after(PASSES, again, (2, 3)) == LEVELS


@pytest.mark.parametrize(
    ("scale", "zero", "dtype"), [(0.5, ZERO, DType.U8), (SCALE, ZERO + 1, DType.U8), (SCALE, ZERO, DType.I8)]
)
def test_other_levels_are_computed(scale: float, zero: float, dtype: DType) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return levels_of(b, numbers_of(b, levels_of(b, x)), dtype, zero, scale)

    assert after(PASSES, make, (2, 3)).count("Round") == 2


def test_scales_whose_products_may_be_denormal_stay() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return levels_of(b, numbers_of(b, levels_of(b, x, scale=1e-37), scale=1e-37), scale=1e-37)

    assert after(PASSES, make, (2, 3)).count("Round") == 2


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.00363, 1e-29, 7.3e28])
def test_every_level_comes_back(scale: float) -> None:
    """A level less its zero point, times the scale and divided by it, rounds to itself: the rule drops these steps."""
    assert levels.SCALES[0] < scale < levels.SCALES[1]
    q, s = np.arange(-255, 256, dtype=np.float32), np.float32(scale)
    assert (np.rint(q * s / s) == q).all()


def test_levels_are_joined() -> None:
    found = after(PASSES, joined, (2, 3), (2, 4))
    assert found[-1] == "Concat"
    assert found.count("Round") == 2


def test_numbers_that_have_other_consumers_are_joined() -> None:
    def make(b: Builder, x: OutPort, y: OutPort) -> OutPort:
        whole = b.Concat(x, y, axis=1)
        return b.Add(numbers_of(b, levels_of(b, whole)), whole)

    assert after(PASSES, make, (2, 3), (2, 4)).count("Round") == 1


def test_maxima_are_those_of_levels() -> None:
    found = after(PASSES, lambda b, x: levels_of(b, pooled(b, x)), (1, 2, 5, 6))
    assert found == ["Convert", "MaxPool"]


def test_windows_that_may_lie_in_the_padding_read_numbers() -> None:
    """Their maximum is that of no number: the least one of f32, which no level stands for."""

    def make(b: Builder, x: OutPort) -> OutPort:
        q = b.Convert(x, destination_type=DType.U8)
        return b.MaxPool(numbers_of(b, q), kernel=(1, 2), strides=(1, 1), pads_begin=(1, 1), pads_end=(0, 0))

    assert after([canonicalize], make, (1, 2, 5, 6))[-1] == "MaxPool"


def test_taps_that_step_over_the_data_read_numbers() -> None:
    """Three apart, before and after two elements."""

    def make(b: Builder, x: OutPort) -> OutPort:
        pool = DilatedMaxPool(kernel=(1, 2), strides=(1, 1), pads_begin=(0, 1), pads_end=(0, 1), dilations=(1, 3))
        return b(pool, numbers_of(b, b.Convert(x, destination_type=DType.U8)))

    assert after([canonicalize], make, (1, 2, 5, 2))[-1] == "DilatedMaxPool"


def test_parts_of_numbers_have_their_own_levels() -> None:
    assert after(PASSES, halves, (2, 4)) == [*LEVELS, "Split"]


def test_numbers_of_one_scale_are_joined_as_levels() -> None:
    found = after(PASSES, joined_numbers, (3, 2), (1, 3))
    assert found[found.index("Concat") :] == ["Concat", "Convert", "Subtract", "Convert", "Multiply"]


def test_numbers_of_two_scales_are_joined_as_numbers() -> None:
    def make(b: Builder, x: OutPort, y: OutPort) -> OutPort:
        p, q = (b.Convert(v, destination_type=DType.U8) for v in (x, y))
        return b.Concat(numbers_of(b, p), numbers_of(b, q, scale=0.5), axis=1)

    assert after(PASSES, make, (2, 3), (2, 1))[-1] == "Concat"
