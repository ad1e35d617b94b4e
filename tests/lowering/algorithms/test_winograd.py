"""Winograd convolutions against sums in double precision: sizes, ragged edges, and how large the error may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import aot.compilation.session
import aot.lowering.algorithms.use_winograd
from aot.codegen.costs import COSTS
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Group
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.options import CompileOptions
from tests.lowering.check import compiled, conv, weights
from tests.passes.check import graph_of

# Relative to the standard deviation of the output; a plain f32 convolution has 4.3e-7 and 3.3e-6 with 64 channels.
RMS = {4: 5e-7, 5: 1.2e-6, 6: 1.5e-6}
MOST = {4: 4e-6, 5: 1e-5, 6: 1.2e-5}


def points_of(made: Compilation) -> int:
    """Products of a tile, in all directions; 0 for a plain convolution."""
    points = {typical(v.buffer.shape[0]) for name, v in made.steps.values.items() if ".winograd" in name}
    return points.pop() if points else 0


def exact(x: Array, w: Array, step: int = 1) -> Array:
    """Padded so that the output has the size of the input, or is one smaller. Taps lie `step` apart."""
    kh, kw = w.shape[2:]
    around = [((k - 1) * step // 2, (k - 1) * step // 2) for k in (kh, kw)]
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *around))
    h, width = padded.shape[2] - (kh - 1) * step, padded.shape[3] - (kw - 1) * step
    places = [(i * step, j * step) for i in range(kh) for j in range(kw)]
    windows = [padded[:, :, i : i + h, j : j + width] for i, j in places]
    taps = [w[:, :, i, j].astype(np.float64) for i in range(kh) for j in range(kw)]
    return sum(np.einsum("nchw,oc->nohw", a, b) for a, b in zip(windows, taps, strict=True))


def same(b: Builder, x: OutPort, window: tuple[int, int], channels: int = 64) -> OutPort:
    """Build a convolution with the same padding on both sides."""
    w = weights(b, channels, x.type.static_shape[1], *window)
    pads = ((window[0] - 1) // 2, (window[1] - 1) // 2)
    return b.Convolution(x, w, strides=(1, 1), dilations=(1, 1), pads_begin=pads, pads_end=pads)


@pytest.mark.parametrize(
    ("window", "size", "points", "products"),
    [
        ((3, 3), (28, 28), 6, 36),
        ((3, 3), (6, 6), 4, 16),
        ((3, 3), (9, 9), 5, 25),
        ((5, 5), (28, 28), 6, 36),
        ((4, 4), (29, 29), 6, 36),
        ((1, 3), (16, 28), 6, 6),
        ((5, 1), (28, 16), 6, 6),
        ((3, 7), (28, 28), 6, 6),
    ],
)
def test_error_is_near_that_of_a_plain_convolution(
    window: tuple[int, int], size: tuple[int, int], points: int, products: int
) -> None:
    graph = graph_of(lambda b, x: same(b, x, window), (1, 64, *size))
    made = stages(graph, CompileOptions(level=None))
    w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 4)
    x = np.random.default_rng(1).normal(size=(1, 64, *size)).astype(np.float32)
    wanted = exact(x, w)
    found = np.asarray(in_memory(made.built, 1)(x)[0])
    assert points_of(made) == products
    error = (found - wanted) / wanted.std()
    assert np.sqrt(np.mean(error**2)) < RMS[points]
    assert np.abs(error).max() < MOST[points]


@pytest.mark.parametrize(("taps", "length"), [(3, 4), (4, 5), (5, 27), (4, 64), (3, 509)])
def test_one_direction(taps: int, length: int) -> None:
    """Over time: a few blocks of tiles, for each core alike."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 96, 32, taps)
        pads = (taps // 2,)
        return b.Relu(b.Convolution(x, w, strides=(1,), dilations=(1,), pads_begin=pads, pads_end=pads))

    assert points_of(compiled(make, (2, 32, length))) in ((5, 6) if length >= 27 else (0, 4, 5, 6))


@pytest.mark.parametrize("side", [(4, 4), (5, 7), (9, 8), (21, 4)])
def test_ragged_sizes(side: tuple[int, int]) -> None:
    made = compiled(lambda b, x: b.Relu(conv(b, x, 24)), (1, 16, *side))
    assert points_of(made) in (0, 16, 25, 36)


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_blocks_that_run_time_counts_are_shared(cores: int) -> None:
    """14 x 14 outputs are 16 tiles, too few for two full blocks: there is one for each core, of 7 tiles at least."""

    def make(b: Builder, x: OutPort) -> OutPort:
        ones = (1, 1)
        w = weights(b, 64, 64, 3, 3)
        return b.Convolution(x, w, strides=ones, pads_begin=ones, pads_end=ones, dilations=ones)

    graph = graph_of(make, (1, 64, "h=14", "w=14"))
    made = stages(graph, CompileOptions(level=None, cores=cores))
    groups = [w for s in made.steps.steps for w in s.works if isinstance(w, Group) and w.name == "winograd"]
    h, w = (n for n in made.optimized.parameters[0].out_port(0).shape if not isinstance(n, int))
    blocks = made.steps.sizes.written_out(groups[0].axes[0].extent or 0)
    assert normal(rewrite(blocks, {h: Const(14), w: Const(14)}), {}).expr() == Const(min(cores, 2))


def test_sizes_are_chosen_by_the_work() -> None:
    assert points_of(compiled(lambda b, x: conv(b, x, 16), (1, 16, 24, 24))) == 36
    assert points_of(compiled(lambda b, x: conv(b, x, 4), (1, 3, 24, 24))) == 0
    assert points_of(compiled(lambda b, x: conv(b, x, 16, stride=2), (1, 16, 24, 24))) == 0
    assert points_of(compiled(lambda b, x: conv(b, x, 16, 7, stride=2, begin=(3, 3)), (1, 16, 24, 24))) == 0


def test_several_pictures_and_no_padding() -> None:
    compiled(lambda b, x: conv(b, x, 20, begin=(0, 0)), (3, 16, 16, 18))
    compiled(lambda b, x: conv(b, x, 16, begin=(2, 0), end=(0, 1)), (2, 16, 16, 16))


def test_epilogue_and_halo_around() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 16))
        return conv(b, b.Relu(b.Add(conv(b, y, 16, seed=1), y)), 16, seed=2)

    compiled(make, (1, 16, 18, 15))


@pytest.mark.parametrize("depth", [2, 3])
def test_deep_windows_are_sums_of_flat_ones(depth: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        pads = (depth // 2, 1, 1)
        w = weights(b, 24, 16, depth, 3, 3)
        return b.Relu(b.Convolution(x, w, strides=(1, 1, 1), dilations=(1, 1, 1), pads_begin=pads, pads_end=pads))

    assert points_of(compiled(make, (2, 16, 6, 12, 13))) == 36


def test_a_step_in_depth_is_summed_plainly() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 16, 16, 3, 3, 3)
        return b.Convolution(x, w, strides=(2, 1, 1), dilations=(1, 1, 1), pads_begin=(1, 1, 1), pads_end=(1, 1, 1))

    assert points_of(compiled(make, (1, 16, 6, 12, 12))) == 0


@pytest.mark.parametrize(
    ("cpu", "l2", "channels", "rows"),
    [("x86-64", 2 << 20, 512, 2), ("x86-64", 8 << 20, 512, 1), ("x86-64", 2 << 20, 64, 1), ("znver4", 2 << 20, 512, 1)],
)
def test_weights_from_afar_pass_by_for_as_many_tiles_as_the_cache_holds(
    cpu: str, l2: int, channels: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 x 512 x 128 weights take 6.5 MB; 12 tiles of a row, 0.8 MB, of which two stay in 3/4 of 2 MB."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 128, channels, 3, 3)
        return b.Convolution(x, w, strides=(1, 1), dilations=(6, 6), pads_begin=(6, 6), pads_end=(6, 6))

    target = replace(Target.parse("x86-64-v4"), cpu=cpu, l2=l2)
    monkeypatch.setattr(aot.compilation.session, "parse_target", lambda *_: target)
    groups = stages(graph_of(make, (1, channels, 28, 28)), CompileOptions(target="native")).groups
    assert f"tile[ty:{rows}/rest] parallel=py" in groups


@pytest.mark.parametrize(
    ("cpu", "kept", "points"), [("x86-64", 1 << 30, 16), ("x86-64", 1 << 10, 0), ("znver4", 1 << 10, 16)]
)
def test_weights_from_memory_are_not_made_more(
    cpu: str, kept: int, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images have 7x7 points, and a far L3 holds fewer bytes than the model has."""
    target = replace(Target.parse("x86-64-v4"), cpu=cpu)
    monkeypatch.setattr(aot.compilation.session, "parse_target", lambda *_: target)
    monkeypatch.setattr(COSTS, "evicted_weight_bytes", kept)
    graph = graph_of(lambda b, x: conv(b, x, 64), (1, 64, 7, 7))
    assert points_of(stages(graph, CompileOptions(target="native"))) == points


@pytest.mark.parametrize(
    ("groups", "channels", "window", "size", "stride"),
    [
        (3, 24, (3, 3), (14, 17), 1),
        (2, 96, (3, 3), (33, 28), 2),
        (4, 16, (1, 3), (1, 120), 1),
        (2, 16, (3, 3), ("h=21", "w=14"), 1),
    ],
)
def test_groups_of_channels(
    groups: int, channels: int, window: tuple[int, int], size: tuple[int | str, int | str], stride: int
) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, groups, channels, channels, *window)
        pads, ones = tuple(k // 2 for k in window), (1, 1)
        y = b.GroupConvolution(x, w, strides=(stride,) * 2, dilations=ones, pads_begin=pads, pads_end=pads)
        return b.Relu(y)

    made = compiled(make, (2, groups * channels, *size))
    assert any(typical(v.buffer.shape[1]) >= 6 for name, v in made.steps.values.items() if ".winograd" in name)


def test_groups_of_a_few_channels_are_summed_plainly() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        ones = (1, 1)
        return b.GroupConvolution(
            x, weights(b, 8, 4, 4, 3, 3), strides=ones, dilations=ones, pads_begin=ones, pads_end=ones
        )

    assert points_of(compiled(make, (1, 32, 28, 28))) == 0
