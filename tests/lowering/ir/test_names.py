"""Values that lowering makes have names of their own, whatever writes into one Concat and however sizes are called."""

from __future__ import annotations

import numpy as np
import pytest

from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from tests.cases import LOOSE
from tests.lowering.check import compiled, weights
from tests.passes.check import graph_of

Branch = tuple[int, int, int, int]  # channels, taps, dilation, groups


def branch(b: Builder, x: OutPort, one: Branch, stride: int = 1, seed: int = 0) -> OutPort:
    """A convolution that keeps the size where the stride is 1; in as many directions as `x` has."""
    channels, taps, step, groups = one
    rank, depth = x.type.rank - 2, x.type.dims[1] if x.type.dims else 0
    assert isinstance(depth, int)
    pads, strides, steps = (step * (taps - 1) // 2,) * rank, (stride,) * rank, (step,) * rank
    if groups == 1:
        w = weights(b, channels, depth, *[taps] * rank, seed=seed)
        return b.Convolution(x, w, strides=strides, dilations=steps, pads_begin=pads, pads_end=pads)
    w = weights(b, groups, channels // groups, depth // groups, *[taps] * rank, seed=seed)
    return b.GroupConvolution(x, w, strides=strides, dilations=steps, pads_begin=pads, pads_end=pads)


PLAIN, WIDE, APART, FAR, LONG, POINT = (
    (32, 3, 1, 1),
    (64, 3, 1, 1),
    (32, 3, 2, 1),
    (32, 3, 3, 1),
    (32, 5, 1, 1),
    (32, 1, 1, 1),
)
GROUPED, DEPTHWISE = (32, 3, 1, 2), (16, 3, 1, 16)


@pytest.mark.parametrize(
    ("shape", "branches"),
    [
        ((1, 16, 40), (PLAIN, APART)),
        ((1, 16, 40), (LONG, APART, FAR)),
        ((1, 16, 40), (GROUPED, APART, PLAIN)),
        ((1, 16, 40), (DEPTHWISE, POINT, PLAIN, APART)),
        ((2, 16, 33), (PLAIN, LONG)),
        ((1, 16, 15, 14), (PLAIN, WIDE)),
    ],
    ids=str,
)
def test_convolutions_make_the_parts_of_a_concat_in_place(shape: tuple[int, ...], branches: tuple[Branch, ...]) -> None:
    compiled(lambda b, x: b.Concat(*(branch(b, x, one, seed=i) for i, one in enumerate(branches)), axis=1), shape)


def test_strided_convolutions_make_the_parts_of_a_concat_in_place() -> None:
    branches = (PLAIN, (48, 3, 1, 1), LONG)
    compiled(lambda b, x: b.Concat(*(branch(b, x, one, 2, i) for i, one in enumerate(branches)), axis=1), (1, 16, 40))


@pytest.mark.parametrize("size", [9])
def test_strides_that_share_weights_have_transformed_weights_of_their_own(size: int) -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        w = weights(b, 32, 32, 3, 3)
        return tuple(
            b.Convolution(x, w, strides=(n, n), dilations=(1, 1), pads_begin=(1, 1), pads_end=(1, 1)) for n in (1, 2)
        )

    compiled(make, (1, 32, size, size))


@pytest.mark.parametrize("name", ["s0", "s1", "oc", "block"])
def test_sizes_of_the_model_may_be_called_as_those_of_the_compiler(name: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Concat(branch(b, x, PLAIN, 2), branch(b, x, APART, 2, 1), axis=1)

    graph = graph_of(make, (1, 16, f"{name}=19"))
    x = np.random.default_rng(0).normal(size=(1, 16, 19)).astype(np.float32)
    (expected,) = interpret(graph, [x])
    found = compile_model(graph, CompileOptions(level=None), threads=1)(x)[0]
    assert LOOSE.allows(found, expected)
