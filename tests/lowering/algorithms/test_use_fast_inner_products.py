"""Products of bytes by half of the multiplications, where i16 are multiplied in pairs: the same bits as plain ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import in_memory, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.check import ints
from tests.lowering.quantized import NATIVE, convolution, data, quantized, weights, whole
from tests.passes.check import Make, graph_of

V3 = Target.parse("x86-64-v3")
runs = pytest.mark.skipif(not set(V3.features) <= set(NATIVE.features), reason="x86-64-v3 does not run here")


def both(make: Make, x: Array) -> tuple[Compilation, Array, Array]:
    """Return how `make` is compiled, its result, and that of plain products."""
    options = CompileOptions(level=None, target="x86-64-v3")
    made = stages(graph_of(make, x.shape), options)
    plain = stages(graph_of(make, x.shape), replace(options, plain_products=True))
    assert "_halves:" not in plain.groups
    found = [np.asarray(in_memory(c.built, threads=1)(x)[0]) for c in (made, plain)]
    return made, found[0], found[1]


def window(channels: int, taps: int, *, stride: int = 1) -> Make:
    def make(b: Builder, x: OutPort) -> OutPort:
        return convolution(b, quantized(b, x), channels, taps, stride=stride)

    return make


def grouped(b: Builder, x: OutPort) -> OutPort:
    w, ones, zeros = b.const(whole(2, 64, 32, 1, 1) * np.float32(0.25), DType.F32), (1, 1), (0, 0)
    y = quantized(b, convolution(b, quantized(b, x), 64, 1))
    y = b.GroupConvolution(y, w, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones)
    return convolution(b, quantized(b, y), 16, 1)


def matrices(b: Builder, x: OutPort) -> OutPort:
    return b.MatMul(quantized(b, x), b.Transpose(weights(b, 72, 148), ints(b, 1, 0)))


def shared(b: Builder, x: OutPort) -> OutPort:
    """Two products of the same data."""
    q = quantized(b, x)
    return b.Concat(convolution(b, q, 48, 1), convolution(b, q, 40, 1, seed=1), axis=1)


CASES: dict[str, tuple[Make, tuple[int, ...], int]] = {
    "1x1": (window(64, 1), (2, 128, 7, 9), 1),
    "1x1 of stride 2": (window(48, 1, stride=2), (1, 64, 9, 8), 1),
    "windows": (window(40, 3), (1, 64, 5, 6), 0),
    "rest of vectors and tiles": (window(37, 1), (1, 36, 5, 5), 1),
    "groups, between products": (grouped, (1, 32, 7, 6), 2),
    "matrices": (matrices, (19, 148), 1),
    "equal data": (shared, (1, 64, 6, 6), 1),
    "an odd number of words": (window(64, 1), (1, 42, 6, 6), 0),
    "few columns": (window(16, 1), (1, 64, 6, 6), 0),
    "panels that do not stay near": (window(32, 1), (1, 4096, 4, 4), 0),
}


@runs
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_plain_products(name: str) -> None:
    make, shape, sums = CASES[name]
    made, found, plain = both(make, data(*shape))
    assert made.groups.count("_halves:") == sums
    np.testing.assert_array_equal(found, plain)
    assert np.ptp(found) > 0


@runs
@pytest.mark.parametrize(
    ("channels", "size", "plan"),
    [
        (512, (7, 7), "order[c p ic]"),  # each panel serves all rows, and the next one is fetched meanwhile
        (256, (28, 28), "blocks[p:56] order[c p ic]"),  # 32 KB of panels leave L1 from one tile of rows to the next
        (64, (28, 28), "order[p c ic]"),
    ],
)
def test_panels_stay_near(channels: int, size: tuple[int, int], plan: str) -> None:
    made, found, plain = both(window(64, 1), data(1, channels, *size))
    assert f" {plan} " in made.groups
    np.testing.assert_array_equal(found, plain)


@runs
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_wrap_where_their_parts_overflow(sign: int) -> None:
    """2048 terms of 255 * 127 fit i32, as do the products of sums only modulo 2^32."""

    def make(b: Builder, x: OutPort) -> OutPort:
        numbers = np.full((32, 2048, 1, 1), sign * 127, np.float32)
        numbers[:, 0] -= sign  # no common divisor
        w, ones, zeros = b.const(numbers * np.float32(0.25), DType.F32), (1, 1), (0, 0)
        return b.Convolution(quantized(b, x, zero=0), w, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones)

    made, found, plain = both(make, np.full((1, 2048, 3, 3), 100.0, np.float32))
    assert made.groups.count("_halves:") == 1
    np.testing.assert_array_equal(found, plain)
    assert (sign * found > 0).all()


def test_machines_with_dots_of_bytes_keep_their_products() -> None:
    options = CompileOptions(level=None, target="x86-64-v4-amx")
    assert "_halves:" not in stages(graph_of(window(64, 1), (1, 128, 7, 9)), options).groups
