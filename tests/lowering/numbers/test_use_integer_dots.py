"""Quantised products become sums of integers where the results are equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.lowering.numbers import use_integer_dots
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.check import conv, ints
from tests.lowering.quantized import (
    CLOSE,
    F32,
    HAS,
    I8,
    I32,
    IMAGE,
    NATIVE,
    TARGETS,
    U8,
    bytes_of,
    check,
    convolution,
    data,
    fake,
    numbers_of,
    quantized,
    weights,
    whole,
)
from tests.passes.check import Make, graph_of

# ---- products that are sums of integers


ZEROS = [(dtype, zero) for dtype in (U8, I8) for zero in (0, 1, 121, 255)]
WINDOWS = [(1, 1), (3, 2), (1, 2), (5, 1)]  # taps, stride


@pytest.mark.parametrize(
    ("taps", "stride", "dtype", "zero"),
    [*((3, 1, *z) for z in ZEROS), *((*WINDOWS[n], *z) for n, z in enumerate(ZEROS[::2]))],
)
def test_convolutions_of_bytes_use_dots(taps: int, stride: int, dtype: DType, zero: int) -> None:
    """The padding of an image is zero, whatever byte represents it."""
    at = zero if dtype is U8 else zero - 128
    check(lambda b, x: convolution(b, quantized(b, x, at, dtype), 24, taps, stride=stride), IMAGE, dots=1, spread=True)


@pytest.mark.parametrize("zero", [0, 77])
def test_convolutions_in_groups_use_dots(zero: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        scale = np.linspace(1e-3, 1e-2, 2 * 24).reshape(2, 24, 1, 1, 1)
        w = b.Convert(b.const(whole(48, 16, 3, 3).reshape(2, 24, 16, 3, 3), I8), destination_type=F32)
        w, ones = b.Multiply(w, b.const(scale, F32)), (1, 1)
        y = quantized(b, b.Transpose(x, ints(b, 0, 3, 1, 2)), zero)
        y = b.GroupConvolution(y, w, strides=ones, pads_begin=ones, pads_end=ones, dilations=ones)
        return b.Transpose(y, ints(b, 0, 2, 3, 1))

    check(make, (1, 6, 5, 32), dots=1)


@pytest.mark.parametrize(("taps", "zero"), [(2, 77), (3, 0), (4, 0), (4, 77), (6, 77)])
def test_transposed_convolutions_sum_integers(zero: int, taps: int) -> None:
    """Each output reads every other tap in each direction: a zero point is times the sum of these.

    Three taps are two for some outputs and one for others, and stay in f32.
    """

    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.Convert(b.const(np.swapaxes(whole(24, 16, taps, taps), 0, 1), I8), destination_type=F32)
        w = b.Multiply(w, b.const(np.linspace(1e-3, 1e-2, 24).reshape(1, 24, 1, 1), F32))
        pads = [(taps - 2) // 2] * 2
        return b.ConvolutionBackpropData(
            quantized(b, x, zero), w, strides=(2, 2), pads_begin=pads, pads_end=pads, dilations=(1, 1)
        )

    made = check(make, IMAGE, dots=1 if taps == 4 else None, spread=True)
    assert ("i32(x0[" in made.groups) == (HAS and taps != 3)


@pytest.mark.parametrize(
    ("taps", "stride", "channels", "dtype", "zero"),
    [(3, 1, 16, U8, 0), (3, 2, 24, U8, 77), (5, 1, 21, I8, -128), (5, 2, 64, U8, 255), (7, 1, 16, I8, 5)],
)
def test_windows_over_channels(taps: int, stride: int, channels: int, dtype: DType, zero: int) -> None:
    """Bytes of rows become words where an instruction makes them; elsewhere windows stay in f32."""

    def make(b: Builder, x: OutPort) -> OutPort:
        scale = np.linspace(1e-3, 1e-2, channels).reshape(-1, 1, 1, 1, 1)
        w = b.Convert(
            b.const(whole(channels, taps, taps).reshape(channels, 1, 1, taps, taps), I8), destination_type=F32
        )
        pads = [taps // 2] * 2
        y = quantized(b, x, zero, dtype)
        y = b.GroupConvolution(
            y,
            b.Multiply(w, b.const(scale, F32)),
            strides=[stride] * 2,
            pads_begin=pads,
            pads_end=pads,
            dilations=(1, 1),
        )
        return b.Relu(y)

    shape = (1, channels, 7, 9)
    check(make, shape, dots=None, spread=True)
    made = stages(graph_of(make, shape), CompileOptions(level=None, target="native"))
    assert made.groups.count("dots=") == NATIVE.abilities.joins_bytes


@pytest.mark.parametrize(("rows", "transpose"), [(1, True), (5, False), (33, True)])
def test_products_of_matrices_use_dots(rows: int, transpose: bool) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 40, 50)
        w = w if transpose else b.Transpose(w, ints(b, 1, 0))
        return b.MatMul(quantized(b, x), w, transpose_b=transpose)

    check(make, (rows, 50), dots=1, spread=True)


@pytest.mark.parametrize("columns", [4, 5, 6, 15, 17, 33])
def test_any_number_of_outputs(columns: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(quantized(b, x), weights(b, columns, 64), transpose_b=True)

    check(make, (6, 64), dots=1, spread=True)


@pytest.mark.parametrize("channels", [3, 5])
@pytest.mark.parametrize("apart", [1, 2])
def test_few_channels(channels: int, apart: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w, pads = weights(b, 24, channels, 3, 3), [apart] * 2
        return b.Convolution(quantized(b, x), w, strides=(1, 1), pads_begin=pads, pads_end=pads, dilations=pads)

    check(make, (2, channels, 9, 8), dots=1, spread=True)


def check_all(make: Make, made: Compilation, shapes: list[tuple[int, ...]]) -> None:
    """One library gives the results of the references for all sizes."""
    model = in_memory(made.built)
    for shape in shapes:
        x = data(*shape)
        expected = interpret(graph_of(make, shape), [x])[0]
        assert np.abs(model(x)[0] - expected).max() <= CLOSE * np.abs(expected).max()


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_run_time_tells(target: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(quantized(b, x), weights(b, 40, 64), transpose_b=True)

    made = stages(graph_of(make, ("n=7", 64)), CompileOptions(level=None, target=target))
    assert made.groups.count("dots=") == HAS
    check_all(make, made, [(rows, 64) for rows in (1, 3, 50)])


@pytest.mark.parametrize("target", TARGETS)
def test_pictures_whose_sizes_run_time_tells(target: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w, ones = weights(b, 24, 16, 3, 3), (1, 1)
        return b.Convolution(quantized(b, x), w, strides=ones, pads_begin=ones, pads_end=ones, dilations=ones)

    made = stages(graph_of(make, (1, 16, "h=7", "w=9")), CompileOptions(level=None, target=target))
    assert made.groups.count("dots=") == HAS
    check_all(make, made, [(1, 16, *side) for side in ((7, 9), (1, 1), (20, 3))])


def test_windows_over_pictures_whose_sizes_run_time_tells() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w, ones = b.Convert(b.const(whole(24, 3, 3).reshape(24, 1, 1, 3, 3), I8), destination_type=F32), (1, 1)
        y = quantized(b, x, 77)
        return b.Relu(b.GroupConvolution(y, w, strides=ones, pads_begin=ones, pads_end=ones, dilations=ones))

    made = stages(graph_of(make, ("n=1", 24, "h=7", "w=9")), CompileOptions(level=None, target="native"))
    assert made.groups.count("dots=kh") == NATIVE.abilities.joins_bytes
    check_all(make, made, [(2, 24, *side) for side in ((7, 9), (3, 1), (20, 13))])


def test_weights_of_products_of_floats_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splitting the weights of a language model whose data are f32 would take seconds and hundreds of MB in vain."""
    looked = list[int]()
    original = use_integer_dots.whole_numbers
    monkeypatch.setattr(use_integer_dots, "whole_numbers", lambda *a, **k: (looked.append(1), original(*a, **k))[1])
    whole = np.random.default_rng(0).integers(-100, 100, (64, 64)).astype(np.float32)

    def product(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, b.const(whole, F32))

    for make, looks in ((lambda b, x: b.Relu(x), False), (quantized, True)):
        graph = graph_of(lambda b, x, make=make: product(b, make(b, x)), (16, 64))
        _ = stages(graph, CompileOptions(target="x86-64-v4", small_weights=True)).steps
        assert bool(looked) is looks


@pytest.mark.parametrize("target", TARGETS)
def test_neighbouring_layers_merge_with_dots(target: str) -> None:
    """A bias, an activation, bytes again, and the next convolution."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = convolution(b, quantized(b, x), 24)
        y = b.Relu(b.Add(y, b.const(np.linspace(-1, 1, 24).reshape(1, 24, 1, 1), F32)))
        q = b.Convert(b.Clamp(b.Round(b.Divide(y, b.const(0.53, F32))), min=0.0, max=255.0), destination_type=U8)
        return convolution(b, numbers_of(b, q, 0, 0.53), 16, 1, seed=1)

    graph = graph_of(make, IMAGE)
    expected = interpret(graph, [data(*IMAGE)])[0]
    made = stages(graph, CompileOptions(level=None, target=target))
    assert made.groups.count("dots=") == (2 if HAS else 0)
    found = in_memory(made.built)(data(*IMAGE))[0]
    far = np.abs(found - expected) > CLOSE * np.abs(expected).max()
    assert far.mean() < 0.01, "a number between two steps may come out as either"


def test_two_readers_of_one_tensor() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = quantized(b, x)
        return b.Add(b.Relu(convolution(b, y, 16)), y)

    check(make, IMAGE, dots=1)


def test_readers_with_other_weights_and_without() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = quantized(b, x)
        return convolution(b, y, 16), conv(b, y, 8), b.ReduceSum(y, ints(b, 2, 3)), convolution(b, y, 8, 1, seed=1)

    check(make, IMAGE, dots=2)


@pytest.mark.parametrize("as_they_are", [True, False])
def test_bytes_that_the_network_gives_too(as_they_are: bool) -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        q = bytes_of(b, x)
        return convolution(b, numbers_of(b, q), 16), q if as_they_are else b.Convert(q, destination_type=F32)

    check(make, IMAGE, dots=None)


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [(0.0, 6.0, 256), (-5.3, 5.3 / 128 * 127, 256), (-4.0, 4.0, 255), (-2.0, 6.0, 17), (0.0, 5.0, 2)],
)
def test_fake_quantize(low: float, high: float, levels: int) -> None:
    step = (high - low) / (levels - 1)
    x = data(*IMAGE, scale=step) + np.float32(low)
    check(lambda b, x: convolution(b, fake(b, x, low, high, levels), 24), IMAGE, dots=1, inputs=[x], spread=True)


@pytest.mark.parametrize(("levels", "low"), [(255, -1.0), (256, -128 / 127), (255, 0.0), (16, -8 / 7)])
@pytest.mark.parametrize("whole", [False, True])
def test_weights_that_the_network_quantizes(levels: int, low: float, whole: bool) -> None:
    """FakeQuantize of weights in f32, with limits for each output or for all of them."""
    w = np.random.default_rng(levels).normal(size=(24, 16, 3, 3)).astype(np.float32)
    top = np.abs(w).max(None if whole else (1, 2, 3), keepdims=True)

    def make(b: Builder, x: OutPort) -> OutPort:
        ends = [b.const(a.astype(np.float32), F32) for a in (low * top, top)]
        made = b.FakeQuantize(b.const(w, F32), *ends, *ends, levels=levels)
        pads = (1, 1)
        return b.Convolution(quantized(b, x), made, strides=pads, pads_begin=pads, pads_end=pads, dilations=pads)

    check(make, IMAGE, dots=1, spread=True)


def test_outputs_whose_weights_are_zero() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = whole(24, 16, 3, 3)
        w[::5] = 0
        scaled = b.Multiply(b.Convert(b.const(w, I8), destination_type=F32), b.const(0.003, F32))
        return b.Convolution(quantized(b, x), scaled, strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1))

    check(make, IMAGE, dots=1)


@pytest.mark.parametrize("zero", [0, 9])
def test_integers_of_32_bits(zero: int) -> None:
    """MatMulInteger is exact."""

    def make(b: Builder, x: OutPort) -> OutPort:
        q = b.Convert(bytes_of(b, x), destination_type=I32)
        q = b.Subtract(q, zero) if zero else q
        return b.MatMul(q, b.Convert(b.const(whole(64, 40), I8), destination_type=I32))

    made = check(make, (6, 64), dots=1)
    x = data(6, 64)
    np.testing.assert_array_equal(in_memory(made.built)(x)[0], interpret(graph_of(make, (6, 64)), [x])[0])


# ---- the same bits


@pytest.mark.skipif(not HAS, reason="this machine has no instruction for products of small integers")
@pytest.mark.parametrize("target", TARGETS)
def test_threads_and_libraries_give_the_same_bits(tmp_path: Path, target: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = quantized(b, x)
        return b.Add(b.Relu(convolution(b, y, 32)), convolution(b, y, 32, 1, seed=1))

    shape = (1, 32, 28, 28)
    made, x = stages(graph_of(make, shape), CompileOptions(level=None, target=target)), data(*shape)
    assert "dots=" in made.groups
    made.built.write_shared(tmp_path / "m.so")
    one = in_memory(made.built, threads=1)(x)[0]
    for model in (in_memory(made.built, threads=2), *(runtime.load(tmp_path / "m.so", threads=n) for n in (1, 2))):
        assert model(x)[0].tobytes() == one.tobytes()
