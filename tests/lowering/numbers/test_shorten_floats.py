"""`--precision`: what lies in memory as bf16, what stays f32, how near results are, and that all targets agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.host import parse_target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.precision import Precision, precision_of
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from tests.codegen.emulated_tiles import HAS_TILES, tile_registers
from tests.lowering.check import ints, weights
from tests.lowering.numbers.short_networks import CASES, ERROR, NAMES, linear, recurrent, run_here, short, stem, types
from tests.lowering.quantized import data, quantized
from tests.lowering.quantized import weights as int8
from tests.passes.check import Make, graph_of, values


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


PRODUCTS_ALONE = {"attention", "channels", "channels_last", "dynamic", "patches", "tokens"}  # f16 has none of its own
NO_NUMBERS_OF_USUAL_SIZE = {"byte_windows", "tiny", "quotients"}
ON_ALL = {"attention", "channels", "picture", "tiny"}  # products, windows and denormal numbers; others are on two


def chosen(name: str, precision: str) -> list[str]:
    """Return the targets whose bits are compared: others than bf16 have no instructions above the second."""
    if precision == "f16" and name in PRODUCTS_ALONE:
        return run_here()[-1:]
    first, *others = run_here() if precision == "bf16" else run_here()[:2]
    return [first, *(others if name in ON_ALL else others[list(CASES).index(name) % len(others) :][:1])]


@pytest.mark.parametrize("precision", ["bf16", "f16"])
@pytest.mark.parametrize("name", CASES)
def test_all_targets_and_threads_compute_the_same_bits_near_those_of_f32(name: str, precision: str) -> None:
    make, shape = CASES[name]
    inputs = values(shape)
    found: dict[tuple[str, int], Array] = {}
    for target in chosen(name, precision):
        built = short(make, shape, target=target, precision=precision).built
        alone = target == NAMES[-1] and not HAS_TILES  # one thread emulates tile registers
        for threads in (1,) if alone else (1, 2):
            found[target, threads] = np.array(in_memory(built, threads=threads)(*inputs)[0])
    assert len({y.tobytes() for y in found.values()}) == 1, {key: hash(y.tobytes()) for key, y in found.items()}
    if name not in NO_NUMBERS_OF_USUAL_SIZE:
        expected = interpret(graph_of(make, shape), inputs)[0]
        error = np.abs(next(iter(found.values())) - expected).max() / np.abs(expected).max()
        assert 1e-8 < error < ERROR[precision]


def grown(b: Builder, x: OutPort, y: OutPort) -> OutPort:
    """Two products of data and of weights, of 37 terms each."""
    return b.Add(b.MatMul(b.Relu(x), b.Relu(y)), b.MatMul(b.Relu(x), b.Relu(weights(b, 37, 48))))


@pytest.mark.parametrize("name", NAMES)
def test_zeros_behind_a_sum_keep_infinities(name: str) -> None:
    """Rows, columns and both become infinite where NumPy's do, and nothing becomes NaN that is none there."""
    if name not in run_here():
        pytest.skip(f"this machine does not run {name}")
    x, y = values((40, 37), (37, 48))
    x[3, 36], x[5, 0], y[36, 7], y[2, 9] = np.inf, np.inf, np.inf, np.nan
    made = short(grown, x.shape, y.shape, target=name)
    assert types(made)["chains"] == 2
    for _ in range(2):
        found = np.asarray(in_memory(made.built, threads=1)(x, y)[0])
        expected = interpret(graph_of(grown, x.shape, y.shape), [x, y])[0]
        for is_so in (np.isposinf, np.isnan):
            np.testing.assert_array_equal(is_so(found), is_so(expected))


def long(b: Builder, x: OutPort) -> OutPort:
    """Attention over 211 tokens, whose scores lie in a block of rows where L2 has 512 KB."""
    q, k, v = (b.Relu(b.Gather(x, ints(b, n), 0)) for n in range(3))
    return b.MatMul(b.Softmax(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.1), axis=-1), v)


def test_zeros_lie_behind_blocks_of_probabilities() -> None:
    x = values((3, 6, 211, 16))[0]
    expected = interpret(graph_of(long, x.shape), [x])[0]
    found: set[bytes] = set()
    for target in run_here():
        made = short(long, x.shape, target=target)
        assert types(made)["chains"] == 2 and ("group chain" in made.groups) == (target != NAMES[-1])
        y = np.asarray(in_memory(made.built, threads=1)(x)[0])
        assert np.abs(y - expected).max() < ERROR["bf16"] * np.abs(expected).max()
        found.add(y.tobytes())
    assert len(found) == 1


def test_sums_without_blocks_take_tile_registers() -> None:
    for name, count in (("tokens", 6), ("channels", 5), ("channels_last", 1)):
        groups = short(*CASES[name], target="x86-64-v4-amx").groups
        assert groups.count("matrix=") == groups.count("chains[") == count


@pytest.mark.parametrize(("precision", "tiles"), [("bf16", 0), ("f16", 2), ("bf16,Convolution_2=f32", 1)])
def test_winograd_is_for_sums_of_f32_on_all_targets(precision: str, tiles: int) -> None:
    for target in NAMES:
        assert short(*CASES["windows"], target=target, precision=precision).groups.count("group winograd") == tiles


def test_layers_are_chosen_by_patterns() -> None:
    def found(precision: str) -> dict[str, int]:
        return types(short(linear, (32, 64), precision=precision))

    assert found("f32") == {"chains": 0, "f32": 2}
    assert found("bf16") == {"chains": 2, "bf16": 2, "f32": 1}  # a copy of the input, what lies between, the output
    assert found("bf16,sec*=f32") == {"chains": 1, "bf16": 1, "f32": 2}
    assert found("second=bf16") == {"chains": 1, "bf16": 1, "f32": 2}
    assert found("f16") == {"chains": 0, "f32": 2}  # products load each element often
    assert found("bf16,second=f16") == {"chains": 1, "bf16": 1, "f32": 2}


def quantized_attention(b: Builder, x: OutPort) -> OutPort:
    """Projections of bytes, whose results two products of f32 multiply."""
    x = quantized(b, x)
    q, k, v = (b.MatMul(x, int8(b, 64, 64, seed=n), transpose_b=True) for n in range(3))
    p = b.Softmax(b.Multiply(b.MatMul(q, k, transpose_b=True), 1e-3), axis=-1)
    return b.MatMul(quantized(b, b.MatMul(p, v)), int8(b, 64, 64, seed=3), transpose_b=True)


def test_sums_of_bytes_are_stored_in_16_bits() -> None:
    """Products of bytes are neither statistics nor counts, so that their results are as short as those of f32."""
    x = data(32, 64)
    expected = interpret(graph_of(quantized_attention, x.shape), [x])[0]
    found: set[bytes] = set()
    for target in run_here():
        made = short(quantized_attention, x.shape, target=target)
        stored = [b.dtype for s in made.steps.steps for b in s.writes() if not b.dtype.is_float or b.dtype.bits < 32]
        assert stored.count(DType.BF16) == 5  # queries, keys, values, scores and probabilities
        assert stored.count(DType.U8 if parse_target(target).abilities.dots == 4 else DType.I16) == 2
        y = np.asarray(in_memory(made.built, threads=1)(x)[0])
        assert np.abs(y - expected).max() < ERROR["bf16"] * np.abs(expected).max()
        found.add(y.tobytes())
    assert len(found) == 1


def statistics(b: Builder, x: OutPort) -> OutPort:
    mean = b.ReduceMean(x, ints(b, 0), keep_dims=True)
    return b.Add(b.MatMul(x, weights(b, 1024, 1024)), b.Multiply(mean, mean))


def digits(b: Builder, x: OutPort) -> OutPort:
    y = b.Add(b.MatMul(x, weights(b, 64, 64)), 0.5)
    return b.Concat(
        b.Sin(b.MatMul(y, weights(b, 64, 64, seed=1))), b.Floor(b.MatMul(y, weights(b, 64, 64, seed=2))), axis=1
    )


def leap(b: Builder, x: OutPort) -> OutPort:
    y = b.Add(b.MatMul(x, weights(b, 64, 64)), 0.5)
    return b.Add(b.Sin(y), b.Multiply(b.Floor(y), b.ReduceMax(y, ints(b, 1), keep_dims=True)))


@pytest.mark.parametrize(
    ("make", "shape", "short_ones"), [(statistics, (128, 1024), 1), (digits, (32, 64), 4), (leap, (32, 64), 1)]
)
def test_means_and_operands_whose_digits_matter_stay_f32(make: Make, shape: tuple[int, ...], short_ones: int) -> None:
    """A sum over 128 rows and operands of Sin and Floor keep f32; products get short copies; Concat has two parts."""
    assert types(short(make, shape))["bf16"] == short_ones


def test_pictures_of_three_channels_become_pixels_of_four_or_six() -> None:
    made = short(stem, (1, 3, 20, 24))
    shapes = {b.name: b.shape for s in made.steps.steps for b in s.writes() if "pixels" in b.name}
    assert shapes == {"x0.pixels4": (1, 20, 24, 4), "x0.pixels6": (1, 20, 24, 6)}
    assert made.groups.count("select(d1 < 3, x0[0, min(d1, 2), d2, d3], 0)") == 2  # written in one pass, with zeros
    assert types(made)["chains"] >= 3


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("bf17", "one of f32, bf16, f16"),
        ("bf16,stem=f64", "PATTERN=f32|bf16|f16"),
        ("bf16,stem", "PATTERN=f32|bf16|f16"),
        ("", "one of f32, bf16, f16"),
    ],
)
def test_other_precisions_are_refused(text: str, rule: str) -> None:
    with pytest.raises(UsageError, match=f"precision: .*{rule.replace('|', '.')}.* got"):
        CompileOptions(precision=text)


def test_tuning_would_change_the_order_of_sums() -> None:
    with pytest.raises(UsageError, match="tune is for layers in f32, got precision bf16"):
        CompileOptions(precision="bf16", tune=1.0)


def test_weights_of_few_rows_are_rounded_but_for_those_that_bytes_hold() -> None:
    def vector(b: Builder, x: OutPort) -> OutPort:
        first = b.MatMul(x, weights(b, 64, 64))
        levels = np.random.default_rng(0).integers(-127, 128, (64, 64)) * np.float32(0.013)
        return b.MatMul(first, b.const(levels, DType.F32))

    read = {x.buffer.name: x.buffer.dtype for s in short(vector, (1, 64)).steps.steps for x in s.reads()}
    assert read["Constant_1"] in (DType.BF16, DType.F16)  # f16 holds most bf16 numbers
    assert read["Constant_3"] is DType.I8


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_recurrent_weights_lie_in_16_bits(precision: str) -> None:
    """Many steps of time are no rows of a product: none of them shares what another one has read."""
    steps = short(recurrent, (1, 40, 32), precision=precision).steps.steps
    read = {x.buffer.dtype for s in steps for x in s.reads() if x.buffer.shape[-2:] == (512, 128)}
    assert read and read <= {DType.BF16, DType.F16}


def test_data_in_f16_lie_in_16_bits_where_they_are_loaded_once() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(b.MatMul(x, weights(b, 64, 64)))
        return b.Multiply(b.Softmax(y, axis=-1), b.ReduceMax(y, ints(b, 0), keep_dims=True))

    assert types(short(make, (32, 64), precision="f16"))["f16"] == 1


@pytest.mark.parametrize("rows", [1, 32])
@pytest.mark.parametrize("small", [False, True])
def test_weights_in_f16_lie_in_16_bits_where_they_are_loaded_once(rows: int, small: bool) -> None:
    """A product of many rows multiplies f32, unless small weights are asked for; one beyond 65504 keeps them all."""

    def make(b: Builder, x: OutPort) -> OutPort:
        large = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
        large[3, 5] = 65536
        return b.MatMul(b.MatMul(x, weights(b, 64, 64)), b.const(large, DType.F32))

    options = CompileOptions(level=None, target="x86-64-v3", precision="f16", small_weights=small)
    steps = stages(graph_of(make, (rows, 64)), options).steps.steps
    read = {x.buffer.name: x.buffer.dtype for s in steps for x in s.reads()}
    assert (read["Constant_1"], read["Constant_3"]) == (DType.F16 if small or rows == 1 else DType.F32, DType.F32)


def test_a_pattern_matches_a_layer() -> None:
    with pytest.raises(UsageError, match="a pattern matches a layer's name, got 'stem'"):
        _ = short(linear, (32, 64), precision="bf16,stem=f32").steps


def test_precision_reads_patterns_in_order() -> None:
    found = precision_of("bf16,head.*=f32,head.last=bf16")
    assert found == Precision("bf16", (("head.*", "f32"), ("head.last", "bf16")))
    assert [found.of([n]) for n in ("stem", "head.a", "head.last")] == ["bf16", "f32", "bf16"]
    assert found.of(["stem", "head.a"]) == "f32"
    assert precision_of("f32").computes_in_f32 and not found.computes_in_f32


def test_a_library_says_its_precision(tmp_path: Path) -> None:
    short(linear, (32, 64)).built.write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    options: Any = model.get_property("COMPILE_OPTIONS")
    assert (model.get_property("INFERENCE_PRECISION_HINT"), options["precision"]) == ("bf16", "bf16")
    short(linear, (32, 64), precision="f32").built.write_shared(tmp_path / "n.so")
    plain: Any = runtime.load(tmp_path / "n.so").get_property("COMPILE_OPTIONS")
    assert plain["precision"] == "f32"  # it is no default: weights of 16 bits decide
