"""Convolutions of few channels to few outputs read planes of channels, with lanes along the columns of the picture."""

from __future__ import annotations

import re

import numpy as np
import pytest

from aot.compilation.driver import in_memory, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from tests.lowering.check import conv, weights
from tests.passes.check import Make, graph_of


def head(channels: int, outputs: int, taps: int, *, deep: bool = False) -> Make:
    """Return a convolution of `channels`, which others make, by `deep` ones of Winograd's."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, channels, 3))
        y = b.Relu(conv(b, y, channels, 3, seed=2)) if deep else y
        pads = (taps // 2, taps // 2)
        return b.Sigmoid(conv(b, y, outputs, taps, begin=pads, seed=1))

    return make


def depthwise(b: Builder, x: OutPort) -> OutPort:
    y, ones = b.Relu(conv(b, x, 8, 3)), (1, 1)
    return b.GroupConvolution(
        y, weights(b, 8, 1, 1, 3, 3), strides=ones, pads_begin=ones, pads_end=ones, dilations=ones
    )


def spread(b: Builder, x: OutPort) -> OutPort:
    """A transposed convolution writes every other column."""
    y, zeros = b.Relu(conv(b, x, 8, 3)), (0, 0)
    y = b.ConvolutionBackpropData(
        y, weights(b, 8, 8, 2, 2), strides=(2, 2), pads_begin=zeros, pads_end=zeros, dilations=(1, 1)
    )
    return conv(b, y, 1, 3, seed=1)


CASES: dict[str, tuple[Make, tuple[int, ...], bool]] = {
    "one output": (head(8, 1, 5), (1, 4, 17, 33), True),
    "two outputs": (head(16, 2, 3), (2, 4, 16, 20), True),
    "three outputs": (head(3, 3, 7), (1, 4, 9, 70), True),
    "behind winograd": (head(16, 1, 3, deep=True), (1, 4, 24, 24), True),
    "outputs that fill a vector": (head(8, 4, 3), (1, 4, 17, 33), False),
    "channels that fill vectors": (head(64, 1, 3), (1, 4, 17, 33), False),
    "few columns": (head(8, 1, 3), (1, 4, 17, 9), False),
    "elements that are read once": (head(8, 3, 1), (1, 4, 17, 33), False),
    "windows over channels": (depthwise, (1, 4, 17, 33), False),
    "scattered columns": (spread, (1, 4, 17, 33), False),
}


@pytest.mark.parametrize("name", CASES)
def test_lanes_are_columns(name: str) -> None:
    make, shape, along = CASES[name]
    made = stages(graph_of(make, shape), CompileOptions(level=None))
    last = made.groups.split("\ncall ")[-1]
    lanes = re.findall(r"lanes\[(\w+):", last)  # of the sum, before those of functions of it
    assert ("w" in lanes[:1]) == along
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    (expected,) = interpret(graph_of(make, shape), [x])
    found = np.asarray(in_memory(made.built, threads=1)(x)[0])
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
