"""Kernels take denormal numbers for zero where that changes results by less than 1.2e-38, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.codegen.ir.numbers.denormals import denormals
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.describe import notes
from tests.passes.check import graph_of

TINY = np.float32(1e-40)
RNG = np.random.default_rng(0)
WEIGHTS = np.where(RNG.random((64, 64)) < 0.25, TINY, RNG.standard_normal((64, 64))).astype(np.float32)
X86 = CompileOptions(target="x86-64-v3")
Make = Callable[[Builder, OutPort], OutPort]


def const(b: Builder, value: Any) -> OutPort:
    return b.const(np.asarray(value, np.float32), DType.F32)


def made(make: Make, target: CompileOptions = X86, dtype: DType = DType.F32) -> Compilation:
    return stages(graph_of(make, (8, 64), dtype=dtype), target)


def product(b: Builder, x: OutPort) -> OutPort:
    return b.MatMul(x, const(b, WEIGHTS))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (product, True),
        (lambda b, x: b.Sigmoid(product(b, x)), True),
        (lambda b, x: b.PRelu(product(b, x), const(b, [0.1])), True),
        (lambda b, x: b.Add(x, const(b, 1.0)), True),
        (lambda b, x: b.Softmax(x, axis=1), True),
        (lambda b, x: b.ReduceMean(x, b.const(1, DType.I64)), True),
        (lambda b, x: b.Divide(x, b.Sqrt(b.Add(b.Multiply(x, x), 1e-5))), True),
        (lambda b, x: b.Divide(const(b, 1.0), x), False),
        (lambda b, x: b.Log(b.Add(b.Abs(x), const(b, 1e-45))), False),
        (lambda b, x: b.Add(x, const(b, 1e-45)), False),
        (lambda b, x: b.Sqrt(b.Abs(x)), False),
        (lambda b, x: b.Greater(x, const(b, 0.0)), False),
        (lambda b, x: b.Transpose(x, b.const(np.array([1, 0]), DType.I64)), False),
    ],
)
def test_only_bounded_arithmetic_flushes(make: Make, expected: bool) -> None:
    calls = made(make).program.calls
    assert [c.flushes for c in calls] == [expected] * len(calls)
    assert not any(c.flushes for c in made(make, CompileOptions(target="aarch64")).program.calls)


def test_f16_is_read_without_the_processors_help_where_denormals_count() -> None:
    """The software conversion (no F16C) multiplies denormal f32 numbers, so denormals must not be flushed."""

    def doubled(b: Builder, x: OutPort) -> OutPort:
        return b.Add(x, x)

    assert not any(c.flushes for c in made(doubled, CompileOptions(target="x86-64-v2"), DType.F16).program.calls)
    assert all(c.flushes for c in made(doubled, X86, DType.F16).program.calls)


def test_results_with_denormal_data_and_weights() -> None:
    x = RNG.standard_normal((8, 64)).astype(np.float32)
    x[:, ::3] = TINY
    model = in_memory(made(product, CompileOptions()).built, 1)
    np.testing.assert_allclose(model(x)[0], x.astype(np.float64) @ WEIGHTS, rtol=1e-5, atol=1e-5)
    log = in_memory(made(lambda b, x: b.Log(b.Abs(x)), CompileOptions()).built, 1)
    np.testing.assert_allclose(log(x)[0], np.log(np.abs(x)), rtol=1e-6)


def test_moves_keep_the_bits_of_denormal_numbers() -> None:
    x = np.arange(1, 513, dtype=np.uint32).view(np.float32).reshape(8, 64)
    across = made(lambda b, x: b.Transpose(x, b.const(np.array([1, 0]), DType.I64)), CompileOptions())
    moved = in_memory(across.built, 1)
    np.testing.assert_array_equal(np.asarray(moved(x)[0]).view(np.uint32), x.T.view(np.uint32))


def test_subnormal_f16_are_normal_in_f32() -> None:
    bits = np.arange(1, 513, dtype=np.uint16).reshape(8, 64)
    model = in_memory(made(lambda b, x: b.Add(x, x), CompileOptions(), DType.F16).built, 1)
    np.testing.assert_array_equal(np.asarray(model(bits.view(np.float16))[0]).view(np.uint16), bits * 2)


def test_the_callers_mode_is_back_afterwards() -> None:
    """NumPy's own denormal products are right after an inference, in this thread and with two."""
    for threads in (1, 2):
        in_memory(made(product, CompileOptions()).built, threads)(np.ones((8, 64), np.float32))
        assert (np.full(16, TINY) * np.float32(0.5)).min() > 0


def test_denormal_weights_take_no_time() -> None:
    def seconds(w: np.ndarray[Any, Any]) -> float:
        graph = graph_of(lambda b, x: b.MatMul(x, const(b, w)), (64, 256))
        model = in_memory(stages(graph, CompileOptions()).built, 1)
        x, best = RNG.standard_normal((64, 256)).astype(np.float32), 1.0
        for _ in range(9):
            begin = time.process_time()
            for _ in range(20):
                model(x)
            best = min(best, time.process_time() - begin)
        return best

    w = RNG.standard_normal((256, 256)).astype(np.float32)
    assert seconds(np.where(RNG.random(w.shape) < 0.25, TINY, w)) < 3 * seconds(w)  # it was 190 times


def test_denormal_elements_are_counted() -> None:
    few = np.array([0.0, -0.0, 1e-40, -1e-40, 2.0**-126, np.inf, np.nan, 1.0], np.float32)
    assert denormals(few) == 2
    assert denormals(few.astype(np.float64)) == 0


def test_the_library_says_how_many_weights_count_as_zero() -> None:
    line = f"{denormals(WEIGHTS)} denormal weights, below 1.2e-38, count as zero"
    assert notes(made(product).built.manifest) == [line]
    assert notes(made(lambda b, x: b.Log(b.Add(b.Abs(x), const(b, 1e-45)))).built.manifest) == []
