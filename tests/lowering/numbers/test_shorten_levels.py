"""Functions of sums in f32 whose results are levels: few digits, no division, and hardly a result on another level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.opset.elementwise.activation import Approximation
from aot.options import CompileOptions
from tests.codegen.emulated_tiles import runs
from tests.lowering.check import conv
from tests.lowering.quantized import F32, I8, bytes_of, data
from tests.passes.check import Make, graph_of

TARGETS = [t for t in ("x86-64-v3", "x86-64-v4") if runs(Target.parse(t))]
FEW = {"sigmoid_level": 0.002, "gelu_tanh_short": 0.02}  # share of results so near to the middle of two levels
SHAPES = (1, 8, 9, 7), (1, 24, 9, 7)
WIDE, NARROW = 0.02, 0.001  # scales: 256 levels of them are 5.1, and 0.26


def gelu(b: Builder, x: OutPort) -> OutPort:
    return b.Gelu(x, approximation_mode=Approximation.TANH)


Layers = Callable[[Builder, OutPort, OutPort], OutPort]
FUNCTIONS: dict[str, Layers] = {
    "SiLU": lambda b, y, r: bytes_of(b, b.Swish(y), 14, scale=WIDE),
    "SiLU with a factor": lambda b, y, r: bytes_of(b, b.Swish(y, b.const(1.7, F32)), 14, scale=WIDE),
    "signed": lambda b, y, r: bytes_of(b, b.Swish(y), 0, I8, WIDE),
    "narrow": lambda b, y, r: bytes_of(b, b.Swish(y), 255, scale=NARROW),
    "sigmoid": lambda b, y, r: bytes_of(b, b.Sigmoid(y), 0, scale=1 / 255),
    "residual": lambda b, y, r: bytes_of(b, b.Add(r, b.Swish(y)), 99, scale=WIDE),
    "offset": lambda b, y, r: bytes_of(b, b.Add(b.Swish(y), 0.28), 0, scale=WIDE),
    "gelu": lambda b, y, r: bytes_of(b, gelu(b, y), 9, scale=WIDE),
}
KEPT: dict[str, Layers] = {
    "gelu with narrow levels": lambda b, y, r: bytes_of(b, gelu(b, y), 9, scale=NARROW),
    "floats": lambda b, y, r: b.Swish(y),
    "16 bits": lambda b, y, r: b.Clamp(b.Round(b.Divide(b.Swish(y), 1e-4)), min=0.0, max=65535.0),
    "a product": lambda b, y, r: bytes_of(b, b.Multiply(r, b.Swish(y)), 14, scale=WIDE),
}


def network(layers: Layers) -> Make:
    return lambda b, x, r: layers(b, conv(b, x, 24), r)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_levels_of_functions_of_sums(name: str) -> None:
    layers, function = FUNCTIONS[name], "gelu_tanh_short" if name == "gelu" else "sigmoid_level"
    given = [data(*s, seed=n) for n, s in enumerate(SHAPES)]
    (expected,) = interpret(graph_of(network(layers), *SHAPES), given)
    assert len(np.unique(expected)) > 20
    target = TARGETS[list(FUNCTIONS).index(name) % len(TARGETS)]
    made = stages(graph_of(network(layers), *SHAPES), CompileOptions(level=None, target=target))
    assert f"{function}(" in made.groups
    assert "exp_normal" not in made.groups and "tanh(" not in made.groups
    found = np.array(in_memory(made.built, threads=1)(*given)[0])
    off = np.abs(found.astype(int) - expected)
    assert off.max() <= 1
    assert off.mean() < FEW[function]


@pytest.mark.parametrize("name", KEPT)
def test_functions_whose_digits_count(name: str) -> None:
    made = stages(graph_of(network(KEPT[name]), *SHAPES), CompileOptions(level=None, target="x86-64-v3"))
    assert "sigmoid_level" not in made.groups and "_short" not in made.groups
