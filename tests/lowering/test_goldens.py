"""Each lowering pass on a small network: what it does to the steps, as a difference of texts in `goldens/PASS.txt`.

A pass that stops firing, or that makes something else, turns a golden red; `pytest --update-goldens` writes it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import ndiff
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.llvm.host import parse_target
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.lowering.context import Context
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.printer import steps_text
from aot.lowering.pipeline import pipeline
from aot.lowering.run import run_lowering
from aot.opset.products.pooling import MaxPool
from aot.opset.recurrent.recurrent import LSTMSequence
from aot.options import CompileOptions
from aot.options.rules import EXACT, ROUNDED
from aot.runtime.abi import DType
from tests.lowering.check import conv, ints, weights
from tests.passes.check import Make, Size, graph_of

GOLDENS = Path(__file__).with_name("goldens")
LONGEST = 40  # lines of a golden: nobody reads more


@dataclass(frozen=True)
class Case:
    """A network on which the pass fires, and what it is compiled for."""

    make: Make
    shapes: tuple[Sequence[Size], ...]
    features: tuple[str, ...] = ()  # besides those of x86-64-v3
    cpu: str = "x86-64"
    dtype: DType = DType.F32
    precision: str = "f32"
    fast_math: bool = False
    activations: str = EXACT


def linear(b: Builder, x: OutPort) -> OutPort:
    y = b.MatMul(x, b.Transpose(weights(b, 48, 32), ints(b, 1, 0)))
    return b.Relu(b.Add(y, weights(b, 48)))


def whole(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-127, 127, shape, endpoint=True)


def quantized(b: Builder, x: OutPort) -> OutPort:
    """Bytes times a factor, multiplied by whole numbers times another one."""
    data = b.Multiply(b.Subtract(b.Convert(x, destination_type=DType.F32), 3.0), 0.02)
    return b.MatMul(data, b.const(whole(64, 16) * np.float32(0.5), DType.F32))


def bytes_of_weights(b: Builder, x: OutPort) -> OutPort:
    """Data in f32, and weights in 8 bits with a scale for each column."""
    w = b.Convert(b.const(whole(64, 16), DType.I8), destination_type=DType.F32)
    return b.MatMul(x, b.Multiply(w, weights(b, 16)))


def quantized_rows(b: Builder, x: OutPort) -> OutPort:
    level = b.Clamp(b.Round(b.Divide(x, 0.02)), min=0.0, max=255.0)
    data = b.Multiply(b.Convert(b.Convert(level, destination_type=DType.U8), destination_type=DType.F32), 0.02)
    return b.MatMul(data, b.const(whole(64, 32) * np.float32(0.5), DType.F32))


def levels_of_sigmoid(b: Builder, x: OutPort) -> OutPort:
    level = b.Round(b.Divide(b.Sigmoid(x), 0.004))
    return b.Convert(b.Clamp(level, min=0.0, max=255.0), destination_type=DType.U8)


def sigmoid_of_levels(b: Builder, x: OutPort) -> OutPort:
    y = b.Sigmoid(b.Multiply(b.Subtract(b.Convert(x, destination_type=DType.F32), 121.0), 0.02))
    level = b.Clamp(b.Round(b.Divide(y, 0.004)), min=0.0, max=255.0)
    return b.Convert(level, destination_type=DType.U8)


def quantized_groups(b: Builder, x: OutPort) -> OutPort:
    data = b.Multiply(b.Convert(x, destination_type=DType.F32), 0.02)
    w, ones, zeros = b.const(whole(2, 8, 16, 1, 1) * np.float32(0.5), DType.F32), (1, 1), (0, 0)
    return b.GroupConvolution(data, w, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones)


def grouped(b: Builder, x: OutPort) -> OutPort:
    ones, zeros = (1, 1), (0, 0)
    w = weights(b, 2, 8, 16, 1, 1)
    return b.GroupConvolution(x, w, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones)


def attention(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    return b.MatMul(b.Softmax(b.MatMul(q, k, transpose_b=True), axis=-1), v)


def inverted(b: Builder, x: OutPort) -> OutPort:
    """Expansion, depthwise windows, projection."""
    wide = b.Relu(conv(b, x, 32, 1, begin=(0, 0)))
    ones = (1, 1)
    deep = b.GroupConvolution(
        wide, weights(b, 32, 1, 1, 3, 3), strides=ones, pads_begin=ones, pads_end=ones, dilations=ones
    )
    return conv(b, deep, 6, 1, begin=(0, 0), seed=1)


def recurrent(b: Builder, x: OutPort, h: OutPort, c: OutPort) -> OutPort:
    size = h.type.static_shape[-1]
    lengths = b.const(np.array([4], np.int32), DType.I32)
    parts = weights(b, 1, 4 * size, 8), weights(b, 1, 4 * size, size, seed=1), weights(b, 1, 4 * size, seed=2)
    return b.node(LSTMSequence(size), x, h, c, lengths, *parts, outputs=3).out_port(1)


def halves(b: Builder, x: OutPort) -> OutPort:
    data = np.random.default_rng(0).normal(size=(64, 48)).astype(np.float16)
    return b.MatMul(x, b.const(data.astype(np.float32), DType.F32))


def in_place(b: Builder, x: OutPort) -> OutPort:
    """The sine reads a product for the last time, and two products read the sine."""
    y = b.Sin(b.MatMul(x, weights(b, 8, 8)))
    z = b.Add(y, b.ReduceSum(y, ints(b, 0), keep_dims=True))
    return b.MatMul(z, weights(b, 8, 8, seed=1))


def two_results(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
    """A product, which is an output, and its levels, which are another one."""
    y = b.MatMul(x, weights(b, 16, 2048))
    level = b.Clamp(b.Round(b.Divide(y, b.const(0.03, DType.F32))), min=0.0, max=255.0)
    return y, b.Convert(level, destination_type=DType.U8)


CASES = {
    "fuse_steps": Case(linear, ((4, 32),)),
    "quantize_activations": Case(bytes_of_weights, ((4, 64),), ("avxvnni",), activations=ROUNDED),
    "use_integer_dots": Case(quantized, ((4, 64),), ("avxvnni",), dtype=DType.U8),
    "group_rows": Case(lambda b, x: b.Softmax(x, axis=-1), ((4, 32),)),
    "split_quotient_axes": Case(grouped, ((1, 32, 6, 5),)),
    "hoist_invariants": Case(lambda b, x, grid: b.GridSample(x, grid), ((1, 5, 6, 7), (1, 3, 11, 2))),
    "use_integer_dots_again": Case(quantized_groups, ((1, 32, 6, 5),), ("avxvnni",), dtype=DType.U8),
    "tabulate_functions": Case(sigmoid_of_levels, ((4, 64),), dtype=DType.U8),
    "shorten_levels": Case(levels_of_sigmoid, ((4, 64),)),
    "shorten_floats": Case(linear, ((4, 32),), precision="bf16"),
    "defer_division": Case(attention, ((2, 5, 8), (2, 40, 8), (2, 40, 16))),
    "fuse_attention": Case(attention, ((4, 200, 16),) * 3),
    "use_winograd": Case(lambda b, x: conv(b, x, 64), ((1, 64, 28, 28),)),
    "assign_layouts": Case(lambda b, x: conv(b, b.Relu(x), 24), ((1, 8, 6, 5),)),
    "use_strassen": Case(lambda b, x: b.MatMul(x, weights(b, 512, 512)), ((128, 512),), cpu="znver4"),
    "separate_pooling": Case(
        lambda b, x: b(MaxPool((1, 1), (2, 2), (2, 2), (5, 5)), conv(b, x, 32, 1, begin=(0, 0))), ((1, 3, 12, 12),)
    ),
    "fuse_row_strips": Case(inverted, ((1, 6, 100, 26),)),
    "use_fast_inner_products": Case(quantized_rows, ((8, 64),)),
    "separate_functions": Case(lambda b, x: b.Sigmoid(b.ReduceSum(x, ints(b, -1), keep_dims=False)), ((8, 20, 16),)),
    "unroll_recurrence": Case(recurrent, ((1, 4, 8), (1, 1, 192), (1, 1, 192))),
    "write_in_place": Case(in_place, ((8, 8),)),
    "pack_k_pairs": Case(
        attention, ((2, 65, 64),) * 3, ("avx512f", "avx512vl", "avx512bf16"), precision="bf16", fast_math=True
    ),
    "compress_constants": Case(
        lambda b, x: b.MatMul(x, b.const(whole(256, 48) * np.float32(0.037), DType.F32)), ((2, 256),)
    ),
    "narrow_constants": Case(halves, ((2, 64),)),
    "join_results": Case(two_results, ((64, 16),)),
}


def around(name: str, case: Case) -> tuple[str, str]:
    """Return the steps before and after the pass."""
    options = CompileOptions(
        target="x86-64-v3", precision=case.precision, fast_math=case.fast_math, activations=case.activations
    )
    parsed = parse_target(options.target)
    target = replace(
        parsed, features=(*parsed.features, *case.features), cpu=case.cpu, cores=1, fast_math=case.fast_math
    )
    steps = define(stages(graph_of(case.make, *case.shapes, dtype=case.dtype), options).optimized, lower_region)
    context = Context.of(options, target)
    passes = pipeline(context)
    at = [p.name for p in passes].index(name)
    run_lowering(steps, passes[:at], context, verify=True)
    before = steps_text(steps)
    run_lowering(steps, passes[at : at + 1], context, verify=True)
    return before, steps_text(steps)


def test_every_pass_has_a_golden() -> None:
    all_names: set[str] = set()
    for options in (CompileOptions(), CompileOptions(precision="bf16"), CompileOptions(activations=ROUNDED)):
        names = [p.name for p in pipeline(Context.of(options, Target.parse("x86-64-v3")))]
        assert [name for name in CASES if name in names] == names
        all_names |= {*names}
    assert {path.stem for path in GOLDENS.glob("*.txt")} == {*CASES} == all_names


@pytest.mark.parametrize("name", CASES)
def test_the_pass_does_what_its_golden_shows(name: str, request: pytest.FixtureRequest) -> None:
    before, after = around(name, CASES[name])
    assert before != after, f"{name} does not fire"
    lines = ndiff(before.splitlines(), after.splitlines())
    text = "".join(f"{line.rstrip()}\n" for line in lines if not line.startswith("?"))
    path = GOLDENS / f"{name}.txt"
    known = path.read_text() if path.exists() else ""
    if request.config.getoption("--update-goldens") and known != text:
        GOLDENS.mkdir(exist_ok=True)
        path.write_text(text)
    assert text.count("\n") <= LONGEST
    assert text == known
