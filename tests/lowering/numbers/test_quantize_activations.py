"""Data of products with weights of 8 bits are rounded to 8 bits in groups; other products stay what they were."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from aot.compilation.compilation import Compilation
from aot.compilation.driver import in_memory, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.ir.values.small_weights import rounded_products
from aot.opset.recurrent.recurrent import Direction
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.describe import notes
from aot.runtime.errors import UsageError
from tests.lowering.check import ints
from tests.lowering.quantized import CLOSE, HAS, TARGETS
from tests.passes.check import Make, graph_of

IN, OUT = 96, 200
LENGTHS = {96: 32, 128: 64, 200: 200}  # of a row: numbers that share a scale
ROUNDED = CompileOptions(level=None, activations="int8")


def numbers(dtype: DType, seed: int = 0, length: int = IN) -> NDArray[np.int8] | NDArray[np.uint8]:
    r, shape = np.random.default_rng(seed), (OUT, length)
    return r.integers(0, 256, shape, np.uint8) if dtype is DType.U8 else r.integers(-128, 128, shape, np.int8)


def scales(seed: int = 0) -> Array:
    return np.float32(1e-3) + np.random.default_rng([seed, 1]).random((OUT, 1), np.float32) * np.float32(1e-3)


def zeros(dtype: DType) -> Array:
    return np.random.default_rng(2).integers(0, 256, (OUT, 1)).astype(np.float32) * (dtype is DType.U8)


def weights(b: Builder, dtype: DType, seed: int = 0, length: int = IN) -> OutPort:
    """Numbers of 8 bits less a zero point, times a scale, of each output: as a file compresses them."""
    w = b.Convert(b.const(numbers(dtype, seed, length), dtype), destination_type=DType.F32)
    if dtype is DType.U8:
        w = b.Subtract(w, b.const(zeros(dtype), DType.F32))
    return b.Multiply(w, b.const(scales(seed), DType.F32))


def product(dtype: DType) -> Make:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, dtype, length=x.type.static_shape[-1] if x.type.is_static else IN)
        y = b.MatMul(b.Abs(x), w, transpose_a=False, transpose_b=True)
        return b.Add(y, b.const(np.ones(OUT, np.float32), DType.F32))

    return make


def rounded(x: Array) -> Array:
    """Return data rounded by groups to 127 steps from 0 to the group's largest magnitude."""
    groups = x.reshape(-1, LENGTHS[x.shape[-1]])
    step = np.maximum(np.abs(groups).max(-1, keepdims=True), np.float32(2.0**-100)) * np.float32(1 / 127)
    return (np.rint(groups * (1 / step), dtype=np.float32) * np.float64(1) * step).reshape(x.shape)


def expected(x: Array, dtype: DType) -> Array:
    w = (numbers(dtype, length=x.shape[-1]).astype(np.float64) - zeros(dtype)) * scales()
    return rounded(np.abs(x)) @ w.T + 1


def data(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def made_of(make: Make, *shape: int | str, options: CompileOptions = ROUNDED) -> Compilation:
    return stages(graph_of(make, shape), options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [DType.U8, DType.I8])
def test_groups_have_steps_of_their_own(dtype: DType, target: str) -> None:
    made = stages(graph_of(product(dtype), ("n=7", IN)), CompileOptions(target, level=None, activations="int8"))
    assert made.groups.count("dots=") == HAS
    model = in_memory(made.built, threads=1)
    for x in (data(1, IN), data(33, IN) * np.geomspace(1e-3, 1e3, 33, dtype=np.float32)[:, None]):
        y, wanted = model(x)[0], expected(x, dtype)
        assert (np.abs(y - wanted).max(1) <= CLOSE * np.abs(wanted).max(1)).all()


@pytest.mark.parametrize("rows", [1, "n=7"])
def test_data_may_be_an_input(rows: int | str) -> None:
    """Two products read it."""

    def make(b: Builder, x: OutPort) -> OutPort:
        one, other = (b.MatMul(x, weights(b, DType.I8, n), transpose_a=False, transpose_b=True) for n in (0, 1))
        return b.Maximum(one, other)

    made = made_of(make, rows, IN)
    assert made.groups.count("dots=") == 2 * HAS and not made.built.manifest.get("in_floats")
    x = data(rows if isinstance(rows, int) else 7, IN)
    wanted = np.maximum(*(rounded(x) @ (numbers(DType.I8, n).astype(np.float64) * scales(n)).T for n in (0, 1)))
    assert np.abs(in_memory(made.built)(x)[0] - wanted).max() <= CLOSE * np.abs(wanted).max()


@pytest.mark.parametrize(("length", "rows"), [(96, 1), (96, 128), (128, 5), (200, 1), (200, 128)])
def test_rows_of_any_length(length: int, rows: int) -> None:
    made, x = made_of(product(DType.U8), rows, length), data(rows, length)
    assert made.groups.count("dots=") == HAS
    assert made.groups.count("scaled_steps=") == (HAS and LENGTHS[length] < length)
    wanted = expected(x, DType.U8)
    assert np.abs(in_memory(made.built)(x)[0] - wanted).max() <= CLOSE * np.abs(wanted).max()


def test_a_row_has_the_same_bits_alone_and_among_others() -> None:
    model, x = in_memory(made_of(product(DType.U8), "n=7", IN).built, threads=2), data(40, IN)
    together = model(x)[0]
    assert all(np.array_equal(model(x[i : i + n])[0], together[i : i + n]) for i, n in ((0, 1), (7, 5), (12, 28)))


def test_rows_of_zeros_and_of_numbers_that_are_none() -> None:
    x = np.zeros((3, IN), np.float32)
    x[1, 4], x[2, 5] = np.inf, np.nan
    y = in_memory(made_of(product(DType.U8), 3, IN).built, threads=1)(x)[0]
    assert np.array_equal(y[0], np.ones(OUT))
    assert not np.isfinite(y[1:]).any()


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
def test_products_that_share_data_round_them_once() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Abs(x)
        return tuple(b.MatMul(y, weights(b, DType.U8, n), transpose_a=False, transpose_b=True) for n in (3, 4))

    made = stages(graph_of(make, (5, IN)), ROUNDED)
    assert made.groups.count("dots=") == 2
    assert made.groups.count("round_even") == 1


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
def test_heads_side_by_side_are_one_row() -> None:
    """Results of attention lie in heads; a row of the product behind it runs over all of them."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Reshape(b.Transpose(b.Abs(x), ints(b, 0, 2, 1, 3)), ints(b, 1, 5, IN))
        return b.MatMul(y, weights(b, DType.I8), transpose_a=False, transpose_b=True)

    made, x = made_of(make, 1, 4, 5, IN // 4), data(1, 4, 5, IN // 4)
    assert made.groups.count("dots=") == 1
    wanted = expected(x.transpose(0, 2, 1, 3).reshape(1, 5, IN), DType.I8) - 1
    assert np.abs(in_memory(made.built)(x)[0] - wanted).max() <= CLOSE * np.abs(wanted).max()


def layer(b: Builder, x: OutPort, kind: str, size: int = 160) -> tuple[OutPort, ...]:
    """A recurrent layer in both directions, whose weights are numbers of 8 bits with a scale for each gate."""
    gates, batch = {"LSTM": 4, "GRU": 3, "GRU of reset states": 3, "RNN": 1}[kind], 3

    def small(columns: int, seed: int) -> OutPort:
        r, rows = np.random.default_rng(seed), gates * size
        w = b.Convert(b.const(r.integers(-128, 128, (2, rows, columns), np.int8), DType.I8), destination_type=DType.F32)
        return b.Multiply(w, b.const(r.uniform(4e-4, 9e-4, (2, rows, 1)).astype(np.float32), DType.F32))

    state = b.const(np.random.default_rng(3).normal(size=(batch, 2, size)).astype(np.float32), DType.F32)
    states = (state, state) if kind == "LSTM" else (state,)
    ends = b.const(np.array([5, 2, 4]), DType.I32)
    bias = b.const(np.full((2, (gates + (kind == "GRU")) * size), 0.1, np.float32), DType.F32)
    after = partial(b.GRUSequence, linear_before_reset=True)
    build = {"LSTM": b.LSTMSequence, "RNN": b.RNNSequence, "GRU": after}.get(kind, b.GRUSequence)
    given = (x, *states, ends, small(32, 1), small(size, 2), bias)
    made = build(*given, hidden_size=size, direction=Direction.BIDIRECTIONAL, outputs=len(states) + 1)
    return tuple(made.node.out_ports().values())


@pytest.mark.parametrize(
    ("kind", "target"),
    [(kind, TARGETS[n % len(TARGETS)]) for n, kind in enumerate(("LSTM", "GRU", "GRU of reset states", "RNN"))],
)
def test_states_of_recurrences_are_rounded(kind: str, target: str) -> None:
    graph, x = graph_of(lambda b, x: layer(b, x, kind), (3, 5, 32)), data(3, 5, 32)
    assert rounded_products(graph) == (kind != "RNN")  # whose weights are few
    made = stages(graph, CompileOptions(target, level=None, activations="int8"))
    assert made.groups.count("u8(") >= 2 * HAS and not made.built.manifest.get("in_floats")
    for found, wanted in zip(in_memory(made.built, threads=1)(x).values(), interpret(graph, [x]), strict=True):
        assert 1e-5 < np.abs(found - wanted).max() < 0.02 * np.abs(wanted).max()


def test_other_products_stay_in_floats() -> None:
    def floats(b: Builder, x: OutPort) -> OutPort:
        w = np.random.default_rng(0).normal(size=(IN, OUT)).astype(np.float32)
        return b.MatMul(b.Abs(x), b.const(w, DType.F32))

    def windows(b: Builder, x: OutPort) -> OutPort:
        w = b.Convert(b.const(numbers(DType.I8).reshape(OUT, IN // 3, 3, 1), DType.I8), destination_type=DType.F32)
        w = b.Multiply(w, b.const(scales().reshape(OUT, 1, 1, 1), DType.F32))
        return b.Convolution(b.Abs(x), w, strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1))

    for make, shape in ((floats, (5, IN)), (windows, (1, IN // 3, 9, 9))):
        assert "round_even" not in made_of(make, *shape).groups
    assert "round_even" not in made_of(product(DType.U8), 5, IN, options=CompileOptions(level=None)).groups


def test_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match="activations must be auto, f32 or int8, got 'int4'"):
        CompileOptions(activations="int4")


def test_the_library_tells_it(tmp_path: Path) -> None:
    options = in_memory(made_of(product(DType.U8), 2, IN).built, threads=1).get_property("COMPILE_OPTIONS")
    assert isinstance(options, dict)
    assert options["activations"] == "int8"


def test_the_library_tells_what_stays_in_floats_and_why() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w, y = np.random.default_rng(0).normal(size=(IN, OUT)).astype(np.float32), b.Abs(x)
        z = b.MatMul(y, weights(b, DType.I8), transpose_a=False, transpose_b=True)
        return b.Add(z, b.MatMul(y, b.const(w, DType.F32), name="other"))

    def noted(options: CompileOptions = ROUNDED, of: Make = make) -> list[str]:
        return notes(made_of(of, 5, IN, options=options).built.manifest)

    begin = "computed in f32, not in int8, since "
    pairs = CompileOptions("x86-64-v3", level=None, activations="int8")
    assert noted(pairs) == [
        f"{begin}weights are no integers of 8 bits or less, or have groups that 16 does not divide: other"
    ]
    none = CompileOptions("aarch64", level=None, activations="int8")
    assert noted(none) == [f"{begin}the target sums no products of bytes or i16"]
    assert not noted(pairs, product(DType.I8))
    assert not noted(CompileOptions(level=None))
    assert notes({"in_floats": {"of it": ["n" * 70]}}) == [f"{begin}of it: {'n' * 60}…"]
