"""Winograd convolutions over phases: dilated taps and strides."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.access import typical
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from tests.lowering.algorithms.test_winograd import MOST, RMS, exact, points_of
from tests.lowering.check import asks, compiled, conv, weights
from tests.passes.check import graph_of


@pytest.mark.parametrize(
    ("taps", "steps", "size"),
    [
        ((3, 3), (2, 2), (27, 30)),
        ((3, 3), (1, 2), (20, 26)),
        ((5, 5), (2, 1), (30, 21)),
        ((3, 3), (3, 2), (9, 50)),
    ],
)
def test_taps_that_lie_apart(taps: tuple[int, int], steps: tuple[int, int], size: tuple[int, int]) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 40, 24, *taps)
        pads = tuple((k - 1) * step // 2 for k, step in zip(taps, steps, strict=True))
        return b.Relu(b.Convolution(x, w, strides=(1, 1), dilations=steps, pads_begin=pads, pads_end=pads))

    assert points_of(compiled(make, (2, 24, *size))) in (16, 25, 36)


def short_phases(made: Compilation) -> set[int]:
    """Return the products of the tiles that are phases."""
    return {typical(v.buffer.shape[-3]) for name, v in made.steps.values.items() if "_finite" in name}


def dilated(b: Builder, x: OutPort, steps: tuple[int, ...], pads: tuple[int, ...]) -> OutPort:
    w = weights(b, 128, 128, *(3 for _ in steps))
    y = b.Convolution(x, w, strides=tuple(1 for _ in steps), dilations=steps, pads_begin=pads, pads_end=pads)
    return b.Relu(y)


@pytest.mark.parametrize(
    ("steps", "size", "points"),
    [
        ((12, 12), (28, 28), {25, 15, 9}),  # phases of 3 and of 2 elements
        ((24, 36), (16, 16), {1}),  # all taps but one see padding alone
        ((12, 18), (25, 30), {15, 5, 9, 3}),
        ((60,), (200,), {6, 5}),
    ],
)
def test_phases_of_a_few_elements_are_tiles(steps: tuple[int, ...], size: tuple[int, ...], points: set[int]) -> None:
    made = compiled(lambda b, x: dilated(b, x, steps, steps), (1, 128, *size))
    assert short_phases(made) == points
    assert not asks(made)


@pytest.mark.parametrize(
    ("steps", "pads", "size"),
    [
        ((12, 12), (11, 12), (28, 28)),  # a row of the picture is missing
        ((4, 4), (4, 4), (28, 28)),  # phases of 7 elements
        ((12, 1), (12, 1), (28, 28)),
        ((12, 12), (12, 12), ("h=28", 28)),
    ],
)
def test_other_phases_are_tiled(
    steps: tuple[int, int], pads: tuple[int, int], size: tuple[int | str, int | str]
) -> None:
    graph = graph_of(lambda b, x: dilated(b, x, steps, pads), (1, 128, *size))
    made = stages(graph, CompileOptions(level=None))
    assert not short_phases(made)


def test_phases_of_run_time_have_the_results_of_plain_products() -> None:
    compiled(lambda b, x: dilated(b, x, (12, 12), (12, 12)), (1, 128, "h=28", 28))


def test_error_of_short_phases_is_near_that_of_a_plain_convolution() -> None:
    step, size = 12, (28, 28)
    graph = graph_of(lambda b, x: dilated(b, x, (step, step), (step, step)), (1, 128, *size))
    made = stages(graph, CompileOptions(level=None))
    w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 4)
    x = np.random.default_rng(1).normal(size=(1, 128, *size)).astype(np.float32)
    wanted = exact(x, w, step)
    error = (np.asarray(in_memory(made.built, 1)(x)[0]) - np.maximum(wanted, 0)) / wanted.std()
    assert short_phases(made)
    assert np.sqrt(np.mean(error**2)) < RMS[5]
    assert np.abs(error).max() < MOST[5]


@pytest.mark.parametrize(("step", "length"), [(2, 100), (8, 257)])
def test_taps_that_lie_apart_in_time(step: int, length: int) -> None:
    """Padding lies in front of a causal convolution alone."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 64, 32, 3)
        return b.Convolution(x, w, strides=(1,), dilations=(step,), pads_begin=(2 * step,), pads_end=(0,))

    assert points_of(compiled(make, (1, 32, length))) == 6


@pytest.mark.parametrize(
    ("taps", "strides", "size"),
    [
        ((3, 3), (2, 2), (27, 31)),
        ((3, 3), (2, 1), (20, 21)),
        ((4, 4), (2, 2), (32, 30)),
        ((1, 3), (1, 2), (4, 400)),
    ],
)
def test_every_other_output(taps: tuple[int, int], strides: tuple[int, int], size: tuple[int, int]) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 72, 96, *taps)
        begin, end = tuple((k - 1) // 2 for k in taps), tuple(k // 2 for k in taps)
        return b.Relu(b.Convolution(x, w, strides=strides, dilations=(1, 1), pads_begin=begin, pads_end=end))

    assert points_of(compiled(make, (2, 96, *size)))


@pytest.mark.parametrize("pads", [((0, 1), (1, 0)), ((2, 2), (0, 0))])
def test_every_other_output_of_unequal_padding(pads: tuple[tuple[int, int], tuple[int, int]]) -> None:
    made = compiled(lambda b, x: conv(b, x, 96, stride=2, begin=pads[0], end=pads[1]), (1, 96, 28, 29))
    assert points_of(made) in (25, 49)


def test_every_other_moment() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 64, 32, 3)
        return b.Convolution(x, w, strides=(2,), dilations=(1,), pads_begin=(1,), pads_end=(1,))

    assert points_of(compiled(make, (1, 32, 500))) in (7, 9, 11)


@pytest.mark.parametrize(
    ("taps", "size", "points", "products"), [(3, 60, 4, 49), (3, 28, 4, 25), (4, 29, 4, 36), (5, 40, 6, 121)]
)
def test_error_with_a_stride(taps: int, size: int, points: int, products: int) -> None:
    """Each result is every other output of a plain convolution."""
    begin = ((taps - 1) // 2,) * 2
    graph = graph_of(lambda b, x: conv(b, x, 64, taps, stride=2, begin=begin), (1, 64, size, size))
    w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 4)
    made = stages(graph, CompileOptions(level=None))
    x = np.random.default_rng(1).normal(size=(1, 64, size, size)).astype(np.float32)
    wanted = exact(x, w)[..., ::2, ::2]
    error = (np.asarray(in_memory(made.built, 1)(x)[0]) - wanted) / wanted.std()
    assert points_of(made) == products
    assert np.sqrt(np.mean(error**2)) < RMS[points]
    assert np.abs(error).max() < MOST[points]
