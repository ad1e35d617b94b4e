"""Functions of few digits: where they stand, in which forms, and how near their results are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.opset.elementwise.activation import Approximation, Gelu
from aot.options import CompileOptions
from tests.lowering.check import weights
from tests.lowering.numbers.short_networks import ERROR, run_here, short
from tests.lowering.quantized import quantized
from tests.lowering.quantized import weights as int8
from tests.passes.check import Make, graph_of, values

FUNCTION = re.compile(r"\b(\w+_short|exp_normal|exp|erf|tanh)\(")


def functions(b: Builder, x: OutPort) -> OutPort:
    """A Gelu whose results become bytes, one whose results are stored, and one whose results are an output."""
    y = b.Gelu(b.MatMul(quantized(b, x), int8(b, 64, 64), transpose_b=True))
    y = b.MatMul(quantized(b, y), int8(b, 64, 64, seed=1), transpose_b=True, name="middle")
    return b.Gelu(b.MatMul(b.Gelu(y, name="middle_gelu"), weights(b, 64, 64)))


@pytest.mark.parametrize(
    ("precision", "fast_math", "short", "exact"),
    [("bf16", True, 2, 1), ("bf16", False, 2, 1), ("bf16,middle*=f32", False, 1, 2), ("f16", True, 1, 2)],
)
def test_functions_have_few_digits_where_8_bits_are_left(
    precision: str, fast_math: bool, short: int, exact: int
) -> None:
    options = CompileOptions(level=None, target="x86-64-v4-bf16", precision=precision, fast_math=fast_math)
    groups = stages(graph_of(functions, (32, 64)), options).groups
    assert Counter(FUNCTION.findall(groups)) == Counter({"gelu_short": short, "erf": exact})


@pytest.mark.parametrize(
    ("target", "fast_math", "divides"),
    [("x86-64-v4", False, 0), ("x86-64-v4-amx", True, 0), ("x86-64-v4-bf16", True, 1)],
)
def test_only_fast_math_without_tile_registers_divides(target: str, fast_math: bool, divides: int) -> None:
    """There, multiply-adds of products are what limits."""
    options = CompileOptions(level=None, target=target, precision="bf16", fast_math=fast_math)
    groups = stages(graph_of(between(lambda b, x: b.Swish(x)), (48, 64)), options).groups
    assert (groups.count("/ (exp_short("), groups.count("sigmoid_short(")) == (divides, 1 - divides)


def between(function: Callable[[Builder, OutPort], OutPort]) -> Make:
    """Return a network of a function between two products."""
    return lambda b, x: b.MatMul(function(b, b.MatMul(x, weights(b, 64, 64))), weights(b, 64, 64, seed=1))


FUNCTIONS: dict[str, Callable[[Builder, OutPort], OutPort]] = {
    "gelu_short": lambda b, x: b.Gelu(x),
    "gelu_tanh_short": lambda b, x: b(Gelu(Approximation.TANH), x),
    "erf_short": lambda b, x: b.Erf(x),
    "tanh_short": lambda b, x: b.Tanh(x),
    "sigmoid_short": lambda b, x: b.Sigmoid(x),
    "exp_short": lambda b, x: b.Softmax(x, axis=-1),
    "Swish": lambda b, x: b.Swish(x),
    "Swish with a factor": lambda b, x: b.Multiply(x, b.Sigmoid(b.Multiply(x, 1.702))),
    "Mish": lambda b, x: b.Mish(x),
    "two functions": lambda b, x: b.Multiply(b.Gelu(b.Add(x, 0.5)), b.Sigmoid(b.Negative(x))),
    "Gelu written out": lambda b, x: b.Multiply(b.Multiply(x, 0.5), b.Add(b.Erf(b.Multiply(x, 0.5**0.5)), 1.0)),
}
FORMS = {
    "Swish": "sigmoid_short",
    "Swish with a factor": "sigmoid_short",
    "Mish": "mish_short",
    "two functions": "gelu_short sigmoid_short",
    "Gelu written out": "gelu_short",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_found_and_near_on_all_targets(name: str) -> None:
    make = FUNCTIONS[name]
    x = values((48, 64))[0]
    expected = interpret(graph_of(between(make), x.shape), [x])[0]
    found: set[bytes] = set()
    first, *others = [name for name in run_here() if name != "x86-64-v4-amx"]  # it is emulated in another test
    for target in (first, *others[list(FUNCTIONS).index(name) % max(len(others), 1) :][:1]):
        made = short(between(make), x.shape, target=target)
        assert set(FUNCTION.findall(made.groups)) == set(FORMS.get(name, name).split())
        y = np.asarray(in_memory(made.built, threads=1)(x)[0])
        assert np.abs(y - expected).max() < ERROR["bf16"] * np.abs(expected).max()
        found.add(y.tobytes())
    assert len(found) == 1
