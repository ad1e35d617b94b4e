"""Winograd convolutions of bytes, by products of pairs of i16: the same bits as sums of plain products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.lowering.algorithms.winograd_matrices import Kind, growth, into, weight_matrix, whole_factor
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.algorithms.test_winograd import points_of, same
from tests.lowering.quantized import CLOSE, NATIVE, bytes_of, data, numbers_of, whole
from tests.passes.check import Make, graph_of

TARGETS = [t for t in ("x86-64-v3", "x86-64-v4") if set(Target.parse(t).features) <= set(NATIVE.features)]
DOTS = Target.parse("x86-64-v4-bf16")
ZERO = 121


def convolution(
    window: tuple[int, ...],
    stride: int,
    channels: tuple[int, int],
    *,
    zero: int = ZERO,
    levels: Sequence[int] = range(-127, 128),
) -> Make:
    """Return a convolution of bytes with about as much padding before as after; weights are some of `levels`."""
    inputs, outputs = channels

    def make(b: Builder, x: OutPort) -> OutPort:
        kernel = np.random.default_rng([*window, *channels]).choice(levels, (outputs, inputs, *window))
        w = b.const((kernel * np.float32(0.0125)).astype(np.float32), DType.F32)
        pads = tuple(k // 2 for k in window)
        y = numbers_of(b, bytes_of(b, x, zero), zero)
        return b.Convolution(y, w, strides=[stride] * 2, dilations=(1, 1), pads_begin=pads, pads_end=pads)

    return make


def both(make: Make, target: str, *inputs: Array) -> tuple[Compilation, *tuple[tuple[Array, Array], ...]]:
    """Return how `make` is compiled, and for each input its result and that of plain products."""
    shape = inputs[0].shape
    made = stages(graph_of(make, shape), CompileOptions(level=None, target=target))
    plain = stages(graph_of(make, shape), CompileOptions(level=None, target=target, plain_products=True))
    assert points_of(plain) == 0
    first, second = (in_memory(c.built, threads=1) for c in (made, plain))
    return made, *((np.array(first(x)[0]), np.array(second(x)[0])) for x in inputs)


@pytest.mark.parametrize(
    ("window", "stride", "size", "channels", "points"),
    [
        ((3, 3), 1, (8, 8), (64, 32), 16),
        ((3, 3), 1, (14, 14), (32, 32), 25),
        ((3, 3), 1, (16, 19), (32, 24), 36),
        ((4, 4), 1, (15, 17), (32, 32), 36),
        ((1, 3), 1, (9, 28), (32, 32), 6),
        ((3, 3), 2, (28, 28), (128, 128), 25),
        ((3, 3), 2, (29, 53), (256, 256), 49),
    ],
)
def test_results_are_those_of_plain_products(
    window: tuple[int, ...], stride: int, size: tuple[int, int], channels: tuple[int, int], points: int
) -> None:
    """Each on one of the targets: how tiles are made does not depend on these."""
    make, x = convolution(window, stride, channels), data(1 if stride > 1 else 2, channels[0], *size)
    made, (found, plain) = both(make, TARGETS[points % len(TARGETS)], x)
    assert points_of(made) == points
    np.testing.assert_array_equal(found, plain)
    (expected,) = interpret(graph_of(make, x.shape), [x])
    assert np.abs(found - expected).max() <= CLOSE * np.abs(expected).max()


@pytest.mark.parametrize("target", TARGETS[:1])
@pytest.mark.parametrize(
    ("channels", "levels", "points"),
    [
        (112, (126, 127), 36),  # 64 times a sum is less than 2^31: 2^31 / (64 * 9 * 255 * 127) is 115 channels
        (112, (-127, -126), 36),
        (112, (-127, -126, 126, 127), 36),
        (120, (-127, -126, 126, 127), 25),  # 4 times a sum: 1841 channels
        (1824, (-127, -126), 25),
    ],
)
def test_largest_bytes_times_largest_weights_do_not_overflow(
    channels: int, levels: tuple[int, ...], points: int, target: str
) -> None:
    make = convolution((3, 3), 1, (channels, 16), zero=0, levels=levels)
    whole = np.full((1, channels, 12, 12), 100.0, np.float32)
    drawn = np.random.default_rng(0).choice((0, 100), whole.shape).astype(np.float32)
    made, *found = both(make, target, whole, drawn)
    assert points_of(made) == points
    for y, plain in found:
        np.testing.assert_array_equal(y, plain)
        assert np.abs(y).max() > 0


@pytest.mark.parametrize("target", TARGETS[:1])
def test_dynamic_sizes(target: str) -> None:
    make, shape = convolution((3, 3), 1, (32, 32)), ("n=2", 32, "h=15", "w=22")
    x = data(2, 32, 15, 22)
    found: list[Array] = []
    for plain in (False, True):
        made = stages(graph_of(make, shape), CompileOptions(level=None, target=target, plain_products=plain))
        assert points_of(made) == (0 if plain else 36)
        found.append(np.asarray(in_memory(made.built, threads=2)(x)[0]))
    np.testing.assert_array_equal(found[0], found[1])


def test_sums_that_could_overflow_are_plain() -> None:
    make = convolution((3, 3), 1, (1856, 16), levels=(126, 127))
    made = stages(graph_of(make, (1, 1856, 12, 12)), CompileOptions(target="x86-64-v3"))
    assert points_of(made) == 0
    assert "dots=" in made.groups


@pytest.mark.skipif(not set(DOTS.features) <= set(NATIVE.features), reason="x86-64-v4-bf16 does not run here")
@pytest.mark.parametrize(
    ("window", "size", "channels", "points"),
    [((3, 3), (28, 28), (64, 48), 36), ((1, 3), (9, 28), (64, 64), 0)],
)
def test_i16_products_need_fewer_points_beside_dot_instructions(
    window: tuple[int, ...], size: tuple[int, int], channels: tuple[int, int], points: int
) -> None:
    """Dots of i16 sum half as many products as those of bytes."""
    make, x = convolution(window, 1, channels), data(2, channels[0], *size)
    made, (found, plain) = both(make, "x86-64-v4-bf16", x)
    assert points_of(made) == points
    np.testing.assert_array_equal(found, plain)


def test_bytes_in_tile_registers_are_plain() -> None:
    made = stages(graph_of(convolution((3, 3), 1, (32, 32)), (1, 32, 28, 28)), CompileOptions(target="x86-64-v4-amx"))
    assert points_of(made) == 0


@pytest.mark.parametrize(
    ("points", "taps", "stride", "factor"),
    [(4, 3, 1, 2), (5, 3, 1, 6), (6, 3, 1, 24), (6, 4, 1, 24), (5, 3, 2, 1), (7, 3, 2, 2), (9, 3, 2, 6), (6, 4, 2, 1)],
)
def test_whole_transforms(points: int, taps: int, stride: int, factor: int) -> None:
    assert whole_factor(Kind(points, taps, stride, whole=True)) == factor


@pytest.mark.parametrize("points", [5, 6])
def test_points_of_floats_are_no_whole_numbers(points: int) -> None:
    assert whole_factor(Kind(points, 3)) == 0


@pytest.mark.parametrize(("points", "data", "weights"), [(4, 2, 3), (5, 6, 9), (6, 10, 7)])
def test_growth_is_reached(points: int, data: int, weights: int) -> None:
    kind = Kind(points, 3, whole=True)
    transform = into(kind)
    signs = np.sign(np.array(transform.combine) @ np.array(transform.split))
    reached = [np.max(np.array(transform.combine) @ (np.array(transform.split) @ x)) for x in signs]
    g = np.rint(whole_factor(kind) * weight_matrix(kind))
    assert (max(reached), np.abs(g).sum(axis=1).max()) == growth(kind) == (data, weights)


@pytest.mark.parametrize("target", TARGETS[-1:])
def test_groups_of_channels_are_exact(target: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        kernel = np.random.default_rng(0).integers(-127, 128, (2, 32, 32, 3, 3))
        w = b.const((kernel * np.float32(0.0125)).astype(np.float32), DType.F32)
        ones = (1, 1)
        y = numbers_of(b, bytes_of(b, x, ZERO), ZERO)
        return b.GroupConvolution(y, w, strides=ones, dilations=ones, pads_begin=ones, pads_end=ones)

    made, (found, plain) = both(make, target, data(1, 64, 14, 14))
    assert any(v.buffer.shape == (2, 25, 32, 32) for name, v in made.steps.values.items() if ".winograd" in name)
    np.testing.assert_array_equal(found, plain)


@pytest.mark.skipif("x86-64-v3" not in TARGETS, reason="this machine lacks AVX2")
def test_levels_of_sums_of_floats_are_stored_as_bytes() -> None:
    """The epilogue of the transform back rounds to levels, which the next layer reads."""

    def make(b: Builder, x: OutPort) -> OutPort:
        levels = numbers_of(b, bytes_of(b, same(b, x, (3, 3)), ZERO), ZERO)
        w = b.Multiply(b.Convert(b.const(whole(16, 64, 1, 1), DType.I8), destination_type=DType.F32), 0.01)
        return b.Convolution(levels, w, strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))

    made, (found, plain) = both(make, "x86-64-v3", data(1, 64, 28, 28))
    assert points_of(made) == 36
    assert any(v.holds_bytes for v in made.steps.values.values())
    assert np.mean(found != plain) < 0.01  # sums that lie between two levels
