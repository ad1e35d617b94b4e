"""Operations of real networks that must not fall to single elements: reductions have lanes, and so have copies."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Var
from aot.codegen.ir.schedule import Schedule
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Dim
from aot.opset.movement.padding import PadMode
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.dynamic.networks import check, parameter, result
from tests.lowering.check import Make, calls, compiled, conv, ints, weights

TARGET = Target.parse("x86-64-v3")


def plans(made: Compilation) -> list[Schedule]:
    """Return the schedules of all reductions."""
    constants = made.steps.constants()
    works = [w for step in made.steps.steps for w in step.works if isinstance(w, Definition)]
    return [choose(w, TARGET, constants) for w in works if w.reduction is not None]


def grouped(b: Builder, x: OutPort, groups: int, channels: int, kernel: int = 3, seed: int = 0) -> OutPort:
    inside = x.type.static_shape[1] // groups
    w = weights(b, groups, channels // groups, inside, kernel, kernel, seed=seed)
    pad = (kernel // 2, kernel // 2)
    return b.GroupConvolution(x, w, strides=(1, 1), pads_begin=pad, pads_end=pad, dilations=(1, 1))


def shuffled(b: Builder, x: OutPort, groups: int) -> OutPort:
    n, c, h, w = x.type.static_shape
    parts = b.Transpose(b.Reshape(x, ints(b, n, groups, c // groups, h, w)), ints(b, 0, 2, 1, 3, 4))
    return b.Reshape(parts, ints(b, n, c, h, w))


def two_groups(b: Builder, x: OutPort) -> OutPort:
    """AlexNet's convolutions."""
    return conv(b, b.Relu(grouped(b, conv(b, x, 16), 2, 32, 5)), 8, seed=1)


def shuffle(b: Builder, x: OutPort) -> OutPort:
    """ShuffleNet's units."""
    y = shuffled(b, b.Relu(grouped(b, conv(b, x, 16), 2, 32, 1)), 2)
    return grouped(b, grouped(b, y, 32, 32, seed=1), 2, 16, 1, seed=2)


def region_norm(b: Builder, x: OutPort) -> OutPort:
    """A norm over channels and a pooling between convolutions, as in early networks."""
    y = b.LRN(b.Relu(conv(b, x, 16)), ints(b, 1), alpha=1e-4, beta=0.75, bias=1.0, size=5)
    y = b.MaxPool(y, strides=(2, 2), pads_begin=(0, 0), pads_end=(0, 0), kernel=(3, 3)).node.out_port(0)
    return conv(b, y, 8, seed=1)


def reflected(b: Builder, x: OutPort) -> OutPort:
    """Padding by reflection, and a norm of each channel, as in style transfer."""
    beside = ints(b, 0, 0, 1, 1)
    y = b.Pad(conv(b, x, 16), beside, beside, b.const(0.0, DType.F32), pad_mode=PadMode.REFLECT)
    return b.MVN(conv(b, y, 16, begin=(0, 0), seed=1), ints(b, 2, 3), eps=1e-5)


def enlarged(b: Builder, x: OutPort) -> OutPort:
    """Nearest neighbours before a convolution, as in feature pyramids."""
    n, c, h, w = (y := b.Relu(conv(b, x, 16))).type.static_shape
    wide = b.Broadcast(b.Reshape(y, ints(b, n, c, h, 1, w, 1)), ints(b, n, c, h, 2, w, 2))
    return conv(b, b.Reshape(wide, ints(b, n, c, 2 * h, 2 * w)), 8, seed=1)


def three_channels(b: Builder, x: OutPort) -> OutPort:
    """A picture at the end of a generator: sums along channels in lanes, since there are three results."""
    return b.Tanh(conv(b, b.Relu(conv(b, x, 32)), 3, 5, begin=(2, 2), seed=1))


@pytest.mark.parametrize("make", [two_groups, shuffle, region_norm, reflected, enlarged, three_channels])
def test_reductions_have_lanes(make: Make) -> None:
    made = compiled(make, (1, 4, 13, 11))
    found = plans(made)
    assert found
    assert all(p.lanes is not None for p in found)


def test_repeated_rows_of_run_time_lengths_are_copied_in_vectors() -> None:
    """Three times a row, and each of two planes twice: no quotient by the length is left."""

    def graph(n: Dim, m: Dim) -> Graph:
        made = Graph("tile")
        b = Builder(made)
        result(made, b.Tile(parameter(made, "x", n, m), ints(b, 2, 3)))
        return made

    made = stages(graph(Var("n", None, 1), Var("m", None, 1)), CompileOptions(level=None))
    assert "// m" not in made.groups
    assert "// n" not in made.groups
    model = in_memory(made.built, threads=1)
    for n, m in ((1, 1), (3, 40), (5, 17)):
        check(model, graph(n, m), [np.random.default_rng(n).normal(size=(n, m)).astype(np.float32)])


def test_pictures_of_any_width_are_made_of_interleaved_channels() -> None:
    """Lanes run through pixels and their three channels, so that what they read is shuffled."""

    def graph(w: Dim) -> Graph:
        made = Graph("tinted")
        b = Builder(made)
        result(made, b.Sin(b.Multiply(parameter(made, "x", 6, w, 1), weights(b, 1, 1, 3))))
        return made

    made = stages(graph(Var("w", None, 1)), CompileOptions(level=None))
    assert "lanes[v:" in made.groups
    model = in_memory(made.built, threads=1)
    for w in (1, 5, 16, 64, 71):
        check(model, graph(w), [np.random.default_rng(w).normal(size=(6, w, 1)).astype(np.float32)])


def test_a_shuffle_of_channels_is_in_memory_where_it_is_read_again_and_again() -> None:
    def once(b: Builder, x: OutPort) -> OutPort:
        return shuffled(b, b.Relu(x), 2)

    def often(b: Builder, x: OutPort) -> OutPort:
        return grouped(b, once(b, x), 32, 32)

    assert calls(compiled(once, (1, 32, 5, 7))) == 1
    assert calls(compiled(often, (1, 32, 5, 7))) == 2


def test_heads_that_are_merged_stay_in_place() -> None:
    """[heads, rows, 8] read as [rows, heads * 8]: one layout makes that even, so nothing is copied."""

    def make(b: Builder, x: OutPort, v: OutPort) -> OutPort:
        merged = b.Reshape(b.Transpose(b.MatMul(x, v), ints(b, 1, 0, 2)), ints(b, 6, 32))
        return b.MatMul(merged, weights(b, 32, 24))

    assert calls(compiled(make, (4, 6, 10), (4, 10, 8))) == 2


def test_pictures_against_each_other() -> None:
    """The places of two pictures as rows and columns of a product; nothing there is a channel."""

    def make(b: Builder, x: OutPort) -> OutPort:
        places = b.Reshape(x, ints(b, 1, 8, 12 * 32), special_zero=False)
        y = b.MatMul(places, b.Relu(places), transpose_a=True, transpose_b=False)
        return b.Reshape(y, ints(b, 12 * 32, 12, 32), special_zero=False)

    made = compiled(make, (1, 8, 12, 32))
    (plan,) = plans(made)
    assert plan.lanes is not None and plan.lanes[0] in ("j", "j32", "p")
    assert "lanes[k:" not in made.groups
