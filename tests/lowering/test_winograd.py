"""Winograd convolutions against sums in double precision: sizes, ragged edges, and how large the error may be."""

from __future__ import annotations

import numpy as np
import pytest

from aot.driver import Compilation, in_memory, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.options import CompileOptions
from codegen.access import known
from codegen.schedules.winograd import transforms, weight_matrix
from tests.lowering.check import compiled, conv, weights
from tests.passes.check import graph_of

# Relative to the standard deviation of the output; a plain f32 convolution has 4.3e-7 and 3.3e-6 with 64 channels.
RMS = {2: 5e-7, 4: 1.5e-6}
MOST = {2: 4e-6, 4: 1.2e-5}


def size_of(made: Compilation) -> int:
    """Outputs of a tile in each direction; 0 for a plain convolution."""
    points = {known(v.buffer.shape[0]) for name, v in made.steps.values.items() if ".winograd" in name}
    return {16: 2, 36: 4}[points.pop()] if points else 0


def exact(x: Array, w: Array) -> Array:
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    h, width = x.shape[2:]
    windows = [padded[:, :, i : i + h, j : j + width] for i in range(3) for j in range(3)]
    taps = [w[:, :, i, j].astype(np.float64) for i in range(3) for j in range(3)]
    return sum(np.einsum("nchw,oc->nohw", a, b) for a, b in zip(windows, taps, strict=True))


@pytest.mark.parametrize("m", [2, 4])
def test_transforms_are_a_convolution(m: int) -> None:
    into, back = transforms(m)
    d, g = np.random.default_rng(0).normal(size=m + 2), np.array([0.5, -1.25, 2.0])
    v = np.array(into.combine) @ (np.array(into.split) @ d)
    y = np.array(back.combine) @ (np.array(back.split) @ (v * (weight_matrix(m) @ g)))
    np.testing.assert_allclose(y, [d[k : k + 3] @ g for k in range(m)], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("m", "side"), [(4, 28), (2, 6)])
def test_error_is_near_that_of_a_plain_convolution(m: int, side: int) -> None:
    graph = graph_of(lambda b, x: conv(b, x, 64), (1, 64, side, side))
    made = stages(graph, CompileOptions(level=None))
    w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 4)
    x = np.random.default_rng(1).normal(size=(1, 64, side, side)).astype(np.float32)
    wanted = exact(x, w)
    found = np.asarray(in_memory(made.built, 1)(x)[0])
    assert size_of(made) == m
    error = (found - wanted) / wanted.std()
    assert np.sqrt(np.mean(error**2)) < RMS[m]
    assert np.abs(error).max() < MOST[m]


@pytest.mark.parametrize("side", [(4, 4), (5, 7), (6, 13), (9, 8), (14, 14), (15, 17), (21, 4)])
def test_ragged_sizes(side: tuple[int, int]) -> None:
    made = compiled(lambda b, x: b.Relu(conv(b, x, 24)), (1, 16, *side))
    assert size_of(made) in (0, 2, 4)


def test_sizes_are_chosen_by_the_work() -> None:
    assert size_of(compiled(lambda b, x: conv(b, x, 16), (1, 16, 24, 24))) == 4
    assert size_of(compiled(lambda b, x: conv(b, x, 4), (1, 3, 24, 24))) == 0
    assert size_of(compiled(lambda b, x: conv(b, x, 16, stride=2), (1, 16, 24, 24))) == 0
    assert size_of(compiled(lambda b, x: conv(b, x, 16, 5, begin=(2, 2)), (1, 16, 24, 24))) == 0


def test_several_pictures_and_no_padding() -> None:
    compiled(lambda b, x: conv(b, x, 20, begin=(0, 0)), (3, 16, 16, 18))
    compiled(lambda b, x: conv(b, x, 16, begin=(2, 0), end=(0, 1)), (2, 16, 16, 16))


def test_epilogue_and_halo_around() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 16))
        return conv(b, b.Relu(b.Add(conv(b, y, 16, seed=1), y)), 16, seed=2)

    compiled(make, (1, 16, 18, 15))


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_deep_windows_are_sums_of_flat_ones(depth: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        pads = (depth // 2, 1, 1)
        w = weights(b, 24, 16, depth, 3, 3)
        return b.Relu(b.Convolution(x, w, strides=(1, 1, 1), dilations=(1, 1, 1), pads_begin=pads, pads_end=pads))

    assert size_of(compiled(make, (2, 16, 6, 12, 13))) == 4


def test_a_step_in_depth_is_summed_plainly() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 16, 16, 3, 3, 3)
        return b.Convolution(x, w, strides=(2, 1, 1), dilations=(1, 1, 1), pads_begin=(1, 1, 1), pads_end=(1, 1, 1))

    assert size_of(compiled(make, (1, 16, 6, 12, 12))) == 0
