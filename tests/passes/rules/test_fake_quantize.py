"""FakeQuantize moves to its data's source only where all consumers want these levels, and nothing is computed twice."""

from __future__ import annotations

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.passes.middle.merge_equal_nodes import merge_equal_nodes
from aot.passes.pipeline import canonicalize
from aot.runtime.abi import DType
from tests.lowering.quantized import convolution, data
from tests.lowering.quantized import fake as in_range
from tests.passes.check import Make, after, graph_of
from tests.rules.entries.quantization import fake, windows

PASSES = [canonicalize, merge_equal_nodes]
PICTURE = (1, 2, 5, 6)


def pooled(b: Builder, x: OutPort, times: int = 3) -> OutPort:
    """Return a tensor and its maxima over wider and wider windows, joined."""
    parts = [x]
    for _ in range(times):
        parts.append(b.MaxPool(parts[-1], kernel=(3, 3), strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1)))
    return b.Concat(*parts, axis=1)


def test_maxima_of_maxima_are_quantized_once() -> None:
    assert after(PASSES, lambda b, x: fake(b, pooled(b, b.Relu(x))), PICTURE) == [
        "Relu",
        "FakeQuantize",
        *["MaxPool"] * 3,
        "Concat",
    ]


def test_a_long_chain_of_maxima_grows_by_nothing() -> None:
    assert after(PASSES, lambda b, x: fake(b, pooled(b, x, 12)), PICTURE).count("MaxPool") == 12


@pytest.mark.parametrize("alike", [True, False])
def test_other_consumers_of_the_whole(alike: bool) -> None:
    def make(b: Builder, x: OutPort, y: OutPort) -> tuple[OutPort, ...]:
        whole = b.Concat(b.Relu(x), b.Negative(y), axis=0)
        return b.Abs(fake(b, whole)), fake(b, whole) if alike else b.Abs(whole)

    found = after(PASSES, make, (2, 3), (1, 3))
    assert found.count("FakeQuantize") == (2 if alike else 1)
    assert (found.index("Concat") > found.index("FakeQuantize")) == alike


def per_channel(b: Builder, x: OutPort) -> OutPort:
    high = b.const([[1.0], [2.0], [3.0]], DType.F32)
    return b.FakeQuantize(x, b.const(0, DType.F32), high, b.const(0, DType.F32), high, levels=7)


STAY: dict[str, tuple[Make, tuple[int, ...]]] = {
    "a part": (lambda b, x: fake(b, b.Gather(x, b.const(0, DType.I64), b.const(0, DType.I64))), (2, 3)),
    "a slice": (lambda b, x: fake(b, b.Slice(x, *(b.const([n], DType.I64) for n in (0, 2, 1, 1)))), (2, 3)),
    "padding by a number": (
        lambda b, x: fake(b, b.Pad(x, b.const([0, 1], DType.I64), b.const([0, 1], DType.I64), b.const(0.3, DType.F32))),
        (2, 3),
    ),
    "limits of channels": (lambda b, x: per_channel(b, b.Transpose(x, b.const([1, 0], DType.I64))), (2, 3)),
    "windows in the padding": (
        lambda b, x: fake(b, b.MaxPool(x, kernel=(1, 2), strides=(1, 1), pads_begin=(1, 1), pads_end=(0, 0))),
        PICTURE,
    ),
    "a falling range": (lambda b, x: fake(b, windows(b, x), 1.0, -2.0), PICTURE),
}


@pytest.mark.parametrize("name", STAY)
def test_quantisation_that_cannot_move_stays(name: str) -> None:
    make, shape = STAY[name]
    assert after(PASSES, lambda b, x: make(b, b.Relu(x)), shape)[-1] == "FakeQuantize"


def test_other_levels_of_levels_are_computed() -> None:
    found = after(PASSES, lambda b, x: fake(b, fake(b, x), -1.0, 3.0), (2, 3))
    assert found == ["FakeQuantize", "FakeQuantize"]


def test_tensors_between_layers_are_bytes() -> None:
    """Parts, maxima and enlarged pictures of levels, between convolutions."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = convolution(b, in_range(b, x, -4.0, 4.0 / 128 * 127, 256), 32)
        whole = in_range(b, pooled(b, b.Relu(y)), 0.0, 6.0, 256)
        return convolution(b, whole, 24, 1, seed=1)

    x = data(1, 16, 7, 9)
    (expected,) = interpret(graph_of(make, x.shape), [x])
    for target in ("native", "x86-64-v2"):
        made = stages(graph_of(make, x.shape), CompileOptions(level=None, target=target))
        found = np.asarray(in_memory(made.built, threads=1)(x)[0])
        assert np.abs(found - expected).max() <= 1e-2 * np.abs(expected).max()  # a sum in the middle of two levels
    made = stages(graph_of(make, x.shape), CompileOptions(level=None, target="x86-64-v4"))
    arena = {n: v.buffer.dtype for n, v in made.steps.values.items() if v.region.value == "arena"}
    assert DType.F32 not in arena.values(), arena
