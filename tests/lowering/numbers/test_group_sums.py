"""Products of rounded data and weights in groups are sums of integers: which ones, what they compute, equal bits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from aot.compilation.compilation import Compilation
from aot.compilation.driver import in_memory, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.quantized import CLOSE, HAS, NATIVE, TARGETS, one_target
from tests.passes.check import graph_of

OUT = 200


@dataclass(frozen=True, slots=True)
class Weights:
    """Random numbers of `dtype` in groups of `group` inputs, less zero points, times scales."""

    dtype: DType
    bits: int
    group: int
    length: int
    zeros: str = "none"  # or "whole" or "any"
    outputs: int = OUT
    inputs_first: bool = False  # in the file

    @property
    def numbers(self) -> Array:
        low = -(1 << self.bits - 1) if self.dtype is DType.I8 else 0
        shape = (self.outputs, self.length // self.group, self.group)
        return (
            np.random.default_rng(0)
            .integers(low, low + (1 << self.bits), shape)
            .astype(np.int8 if self.dtype is DType.I8 else np.uint8)
        )

    @property
    def zero(self) -> Array:
        r, shape = np.random.default_rng(1), (self.outputs, self.length // self.group, 1)
        most = (1 << self.bits) - 1
        found = r.uniform(0, most, shape) if self.zeros == "any" else r.integers(0, most + 1, shape)
        return (found * (self.zeros != "none")).astype(np.float32)

    @property
    def scale(self) -> Array:
        shape = (self.outputs, self.length // self.group, 1)
        return np.random.default_rng(2).uniform(1e-3, 2e-3, shape).astype(np.float32)

    @property
    def values(self) -> Array:
        """The weights [output, input]."""
        return ((self.numbers - self.zero.astype(np.float64)) * self.scale).reshape(self.outputs, -1)

    def node(self, b: Builder) -> OutPort:
        w = b.Convert(b.const(self.numbers, self.dtype), destination_type=DType.F32)
        if self.zeros != "none":
            w = b.Subtract(w, b.const(self.zero, DType.F32))
        w = b.Multiply(w, b.const(self.scale, DType.F32))
        return b.Reshape(w, b.const(np.array([self.outputs, self.length]), DType.I64))

    def product(self, b: Builder, x: OutPort) -> OutPort:
        if not self.inputs_first:
            return b.MatMul(x, self.node(b), transpose_a=False, transpose_b=True)
        numbers, zero, scale = (
            np.ascontiguousarray(np.moveaxis(a, 0, -1)) for a in (self.numbers, self.zero, self.scale)
        )
        w = b.Convert(b.const(numbers, self.dtype), destination_type=DType.F32)
        w = b.Multiply(b.Subtract(w, b.const(zero, DType.F32)), b.const(scale, DType.F32))
        return b.MatMul(x, b.Reshape(w, b.const(np.array([self.length, self.outputs]), DType.I64)))


KINDS = {
    "u4 in 64": Weights(DType.U8, 4, 64, 192, "whole"),
    "u4 in 128": Weights(DType.U8, 4, 128, 256, "whole"),
    "i4 in 32": Weights(DType.I8, 4, 32, 96),
    "Q4_1": Weights(DType.U8, 4, 32, 352, "any"),
    "u8 in 32": Weights(DType.U8, 8, 32, 96, "whole"),
    "Q8_0": Weights(DType.I8, 8, 32, 96),
    "Q6_K": Weights(DType.I8, 6, 16, 80),
    "Q5_1": Weights(DType.U8, 5, 32, 352, "any"),
    "u4 in 64, inputs first": Weights(DType.U8, 4, 64, 384, "whole", inputs_first=True),
    "4 bits with a scale for each output": Weights(DType.I8, 4, 384, 384),
}


ROUNDED = CompileOptions(level=None, activations="int8")


def made_of(*weights: Weights, options: CompileOptions = ROUNDED) -> Compilation:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Abs(x)
        return tuple(w.product(b, y) for w in weights)

    return stages(graph_of(make, ("n=7", weights[0].length)), options)


def data(rows: int, length: int) -> Array:
    x = np.random.default_rng(rows).normal(size=(rows, length)).astype(np.float32)
    return x * np.geomspace(1e-2, 1e2, rows, dtype=np.float32)[:, None]


def expected(x: Array, w: Weights) -> Array:
    """Return the product of weights and data whose groups have 127 steps from 0 to their largest number."""
    groups = np.abs(x).reshape(len(x), -1, min(w.group, 64))
    step = np.maximum(groups.max(-1, keepdims=True), np.float32(2.0**-100)) * np.float32(1 / 127)
    rounded = np.rint(groups * (1 / step), dtype=np.float32) * np.float64(1) * step
    return rounded.reshape(x.shape) @ w.values.T


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_all_kinds(kind: str) -> None:
    w = KINDS[kind]
    made = made_of(w, options=replace(ROUNDED, target=one_target()))
    assert made.groups.count("dots=") == HAS
    assert made.groups.count("scaled_steps=") == HAS
    model = in_memory(made.built, threads=1)
    for rows in (1, 29):
        y, wanted = model(data(rows, w.length))[0], expected(data(rows, w.length), w)
        assert (np.abs(y - wanted).max(1) <= CLOSE * np.abs(wanted).max(1)).all()


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
@pytest.mark.parametrize("target", TARGETS)
def test_numbers_take_their_bits(target: str) -> None:
    for kind, each in (("u4 in 64", 2), ("Q8_0", 1), ("4 bits with a scale for each output", 2)):
        w = KINDS[kind]
        weights = w.length * w.outputs // each
        assert weights < made_of(w, options=replace(ROUNDED, target=target)).program.constant_bytes < 1.6 * weights


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["u4 in 64", "Q4_1"])
def test_a_row_has_the_same_bits_alone_and_among_others(kind: str, target: str) -> None:
    w = KINDS[kind]
    model, x = in_memory(made_of(w, options=replace(ROUNDED, target=target)).built, threads=2), data(40, w.length)
    together = model(x)[0]
    assert all(np.array_equal(model(x[i : i + n])[0], together[i : i + n]) for i, n in ((0, 1), (7, 5), (12, 28)))


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
@pytest.mark.parametrize(
    "outputs", [Weights(DType.U8, 4, 64, 6400, "whole", 16), Weights(DType.I8, 8, 6400, 6400, "none", 16)]
)
def test_rows_of_more_groups_than_a_group_has_elements(outputs: Weights) -> None:
    made = made_of(outputs)
    assert made.groups.count("dots=") == 1
    x = data(3, outputs.length)
    terms = np.abs(x) @ np.abs(outputs.values.T)  # of both signs: their sum rounds in proportion to their sizes
    assert (np.abs(in_memory(made.built)(x)[0] - expected(x, outputs)) <= CLOSE * terms).all()


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
def test_products_that_share_data_round_them_once() -> None:
    made = made_of(KINDS["i4 in 32"], KINDS["u8 in 32"])
    assert made.groups.count("dots=") == 2
    assert made.groups.count("i8(" if NATIVE.abilities.dots == 4 else "i16(") == 1


def test_infinite_data_give_no_number_and_zeros_give_zeros() -> None:
    w = KINDS["u4 in 64"]
    x = np.zeros((3, w.length), np.float32)
    x[1, 4], x[2, 70] = np.inf, np.nan
    y = in_memory(made_of(w).built, threads=1)(x)[0]
    assert not y[0].any()
    assert not np.isfinite(y[1:]).any()


@pytest.mark.parametrize(
    "w",
    [
        Weights(DType.I8, 4, 12, 96),  # no group of 16 or more
        Weights(DType.I8, 8, 32, 96, outputs=3),  # too few outputs for vectors
    ],
)
def test_others_compute_in_floats(w: Weights) -> None:
    made = made_of(w)
    assert "round_even" not in made.groups
    assert np.allclose(in_memory(made.built)(data(5, w.length))[0], np.abs(data(5, w.length)) @ w.values.T, rtol=1e-5)


def test_data_stay_floats_without_the_option() -> None:
    assert "round_even" not in made_of(KINDS["u4 in 64"], options=CompileOptions(level=None)).groups


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
def test_scales_of_groups_keep_their_digits_in_bf16() -> None:
    w = KINDS["u4 in 64"]
    made = made_of(w, options=replace(ROUNDED, precision="bf16"))
    y, wanted = in_memory(made.built, threads=1)(data(29, w.length))[0], expected(data(29, w.length), w)
    assert (np.abs(y - wanted).max(1) <= CLOSE * np.abs(wanted).max(1)).all()
