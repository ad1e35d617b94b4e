"""Functions between levels become tables: every level has the number that NumPy gives, on all targets."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array, dtype_of
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.lowering.check import conv
from tests.lowering.quantized import I8, SCALE, U8, bytes_of, data, numbers_of
from tests.passes.check import Make, graph_of

TARGETS = [t for t in ("x86-64-v2", "x86-64-v3", "native") if t == "native" or runs(Target.parse(t))]
EVERY = np.arange(256, dtype=np.uint8)
ZEROS = {U8: (0, 121), I8: (0, 7, -9)}
NEAR = 1e-4  # of a level: results so near to the middle of two may have either
FEW = 0.01  # share of results that lie between two levels, which convolutions round to either
RESULT = 0.0213  # scale of the results


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu_of_levels(b: Builder, x: OutPort) -> OutPort:
    """Compute SiLU as ONNX Runtime quantises it: the sigmoid has levels of its own."""
    return b.Multiply(x, numbers_of(b, bytes_of(b, b.Sigmoid(x), 0, U8, 1 / 255), 0, 1 / 255))


def gelu_of_parts(b: Builder, x: OutPort) -> OutPort:
    return b.Multiply(b.Multiply(x, b.Add(b.Erf(b.Divide(x, math.sqrt(2.0))), 1.0)), 0.5)


FUNCTIONS: dict[str, tuple[Callable[[Builder, OutPort], OutPort], Callable[[Array], Array]]] = {
    "sigmoid": (lambda b, x: b.Sigmoid(x), sigmoid),
    "tanh": (lambda b, x: b.Tanh(x), np.tanh),
    "silu of levels": (silu_of_levels, lambda x: x * np.rint(sigmoid(x) * 255) / 255),
    "hard swish": (lambda b, x: b.HSwish(x), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "gelu": (gelu_of_parts, lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2.0))) / 2),
    "elu": (lambda b, x: b.Elu(x, alpha=1.0), lambda x: np.where(x < 0, np.exp(x) - 1, x)),
    "quotient": (lambda b, x: b.Divide(b.Sqrt(b.Abs(x)), b.Abs(x)), lambda x: np.sqrt(np.abs(x)) / np.abs(x)),
}


def results(make: Make, given: list[Array], target: str) -> list[Array]:
    """The results of a network with functions of bytes, none of which it computes."""
    graph = graph_of(make, *(x.shape for x in given), dtype=dtype_of(given[0]))
    made = stages(graph, CompileOptions(level=None, target=target))
    assert "lookup(" in made.groups
    assert not any(f"{fn}(" in made.groups for fn in ("exp_normal", "exp", "erf", "tanh", "sqrt"))
    found = in_memory(made.built, threads=1)(*given)
    return [np.array(found[n]) for n in range(len(graph.results))]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("t", [U8, I8])
def test_every_level(t: DType, name: str) -> None:
    layer, formula = FUNCTIONS[name]
    q = EVERY.view(np.uint8 if t is U8 else np.int8)

    def layers(b: Builder, q: OutPort) -> tuple[OutPort, ...]:
        return tuple(bytes_of(b, layer(b, numbers_of(b, q, zero)), zero, t, RESULT) for zero in ZEROS[t])

    others = [target for target in TARGETS if target != "native"]
    pair = ("native", *others[list(FUNCTIONS).index(name) % max(len(others), 1) :][:1])
    found = {target: results(layers, [q], target) for target in pair}
    for n, zero in enumerate(ZEROS[t]):
        with np.errstate(all="ignore"):
            exact = np.asarray(formula((q.astype(np.float64) - zero) * np.float32(SCALE))) / np.float32(RESULT)
        limits = np.iinfo(q.dtype)
        low, high = (np.clip(np.rint(exact + d) + zero, limits.min, limits.max) for d in (-NEAR, NEAR))
        y = found["native"][n].astype(np.float64)
        wrong = ~((low <= y) & (y <= high)) & ~np.isnan(exact)
        assert not wrong.any(), f"levels {q[wrong]}: {y[wrong]} instead of {exact[wrong] + zero}"
        assert all(np.array_equal(found["native"][n], other[n]) for other in found.values())


def test_the_levels_of_a_convolution_and_numbers_added_to_them() -> None:
    channels = 24

    def make(b: Builder, x: OutPort, other: OutPort) -> tuple[OutPort, OutPort]:
        q = numbers_of(b, bytes_of(b, conv(b, x, channels, 1, begin=(0, 0))))
        y = numbers_of(b, bytes_of(b, silu_of_levels(b, q), 9), 9)
        return b.Add(y, other), bytes_of(b, y, 0, I8)

    shapes = (1, 8, 5, 7), (1, channels, 5, 7)
    given = [data(*s, seed=n) for n, s in enumerate(shapes)]
    expected = interpret(graph_of(make, *shapes), given)
    for target in TARGETS:
        for y, level, size in zip(results(make, given, target), expected, (SCALE, 1), strict=True):
            off = np.abs(y.astype(np.float64) - level)
            assert off.max() <= 1.01 * size
            assert (off > 1e-5).mean() < FEW


def kept(b: Builder, x: OutPort, y: OutPort) -> tuple[OutPort, ...]:
    """No functions of one byte, no bytes, and one that costs less than a table."""
    p, q = (numbers_of(b, bytes_of(b, port)) for port in (x, y))
    return bytes_of(b, b.Sigmoid(b.Multiply(p, q))), b.Sigmoid(p), bytes_of(b, b.Relu(p), 0), bytes_of(b, b.Sigmoid(x))


def test_others_stay() -> None:
    made = stages(graph_of(kept, (4, 32), (4, 32)), CompileOptions(level=None, target="x86-64-v3"))
    assert "lookup(" not in made.groups
