"""Windows of more than five taps as sums of short ones: the same sums, for all kinds of edges, and small errors."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.access import typical
from aot.codegen.ir.loops import Var, dense
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.lowering.algorithms.long_windows import split_load, split_taps, split_weights
from aot.options import CompileOptions
from tests.lowering.algorithms.test_winograd import exact
from tests.lowering.check import compiled, weights
from tests.passes.check import graph_of


def parts_of(made: Compilation) -> set[tuple[int, ...]]:
    """Products of a tile, and parts of its windows."""
    shapes = [v.buffer.shape for name, v in made.steps.values.items() if ".winograd" in name]
    return {tuple(typical(n) for n in shape[:-2]) for shape in shapes}


@pytest.mark.parametrize(
    ("taps", "parts", "short"), [(6, 2, 3), (7, 2, 4), (8, 2, 4), (9, 3, 3), (11, 3, 4), (64, 16, 4)]
)
def test_taps_are_split_where_products_are_fewest(taps: int, parts: int, short: int) -> None:
    split = split_taps(k := Var("k", taps))
    assert (split.parts.extent, split.short.extent) == (parts, short)
    ic, oc = Var("ic", 3), Var("oc", 2)
    load = split_load(dense("w", 2, 3, taps)[oc, ic, k], (split,))
    assert load.index == (oc, ic, split.parts, split.short)
    w = np.arange(6.0 * taps).reshape(2, 3, taps)
    found = split_weights(w, (2, 3, parts, short)).reshape(2, 3, -1)
    assert (found[..., :taps] == w).all() and not found[..., taps:].any()


@pytest.mark.parametrize(("taps", "pad"), [(7, 0), (7, 8), (9, 3), (16, 8), (16, 0)])
def test_one_direction(taps: int, pad: int) -> None:
    """Zeros behind the taps meet elements behind the last window, or nothing at all."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 48, 32, taps)
        return b.Relu(b.Convolution(x, w, strides=(1,), dilations=(1,), pads_begin=(pad,), pads_end=(pad // 2,)))

    assert parts_of(compiled(make, (2, 32, 75))) == {(6, *(typical(split_taps(Var("k", taps)).parts.extent or 1),))}


def test_taps_that_lie_apart_and_groups() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Convolution(x, weights(b, 64, 64, 7), strides=(1,), dilations=(3,), pads_begin=(9,), pads_end=(9,))
        w = weights(b, 2, 32, 32, 11)
        return b.GroupConvolution(y, w, strides=(1,), dilations=(1,), pads_begin=(5,), pads_end=(5,))

    assert parts_of(compiled(make, (1, 64, 200))) == {(6, 2), (2, 6, 3)}


def test_dynamic_length() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Convolution(x, weights(b, 64, 64, 7), strides=(1,), dilations=(1,), pads_begin=(0,), pads_end=(0,))

    made = stages(graph := graph_of(make, (1, 64, "t=60")), CompileOptions(level=None))
    w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 3)
    x = np.random.default_rng(1).normal(size=(1, 64, 60)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 7, 2)
    wanted = np.einsum("nctk,ock->not", windows, w.astype(np.float64))
    np.testing.assert_allclose(np.asarray(in_memory(made.built, 1)(x)[0]), wanted, rtol=0, atol=2e-5)
    assert parts_of(made) == {(6, 2)}


def test_error_in_two_directions_is_near_that_of_a_plain_convolution() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        ones, pads = (1, 1), (3, 3)
        return b.Convolution(x, weights(b, 32, 32, 7, 7), strides=ones, dilations=ones, pads_begin=pads, pads_end=pads)

    made = stages(graph := graph_of(make, (1, 32, 30, 29)), CompileOptions(level=None))
    w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 4)
    x = np.random.default_rng(1).normal(size=(1, 32, 30, 29)).astype(np.float32)
    wanted = exact(x, w)
    error = (np.asarray(in_memory(made.built, 1)(x)[0]) - wanted) / wanted.std()
    assert parts_of(made) == {(36, 2, 2)}
    assert np.sqrt(np.mean(error**2)) < 1.5e-6
    assert np.abs(error).max() < 1.2e-5


def test_a_few_channels_and_steps_of_two_are_summed_plainly() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        ones = {"dilations": (1,), "pads_begin": (3,), "pads_end": (3,)}
        y = b.Convolution(x, weights(b, 32, 8, 7), strides=(1,), **ones)
        return b.Convolution(y, weights(b, 32, 32, 7), strides=(2,), **ones)

    assert parts_of(compiled(make, (1, 8, 64))) == set()
