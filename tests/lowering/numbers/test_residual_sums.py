"""The residual stream of transformers in bf16: sums of branches that norms read stay f32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import tile_registers
from tests.lowering.check import conv, ints, weights
from tests.lowering.numbers.short_networks import run_here, short
from tests.passes.check import graph_of, values

Block = Callable[[Builder, OutPort, int], OutPort]
SHAPE = (1, 24, 96)


def branch(b: Builder, x: OutPort, n: int) -> OutPort:
    """Two products, whose result is small beside `x`."""
    y = b.Relu(b.MatMul(x, weights(b, 96, 128, seed=2 * n)))
    return b.Multiply(b.MatMul(y, weights(b, 128, 96, seed=2 * n + 1)), 0.02)


def norm(b: Builder, x: OutPort) -> OutPort:
    return b.MVN(x, ints(b, 2), eps=1e-5)


def behind(b: Builder, x: OutPort, n: int) -> OutPort:
    """A norm behind each sum, as in BERT: products and the next sum read its result."""
    return norm(b, b.Add(branch(b, x, n), x))


def before(b: Builder, x: OutPort, n: int) -> OutPort:
    """A norm before each branch, as in GPT-2 and ViT."""
    return b.Add(x, branch(b, norm(b, x), n))


def stack(block: Block, count: int = 8) -> Callable[[Builder, OutPort], OutPort]:
    def make(b: Builder, x: OutPort) -> OutPort:
        x = b.Tanh(x)
        for n in range(count):
            x = block(b, x, n)
        return norm(b, x)

    return make


@pytest.mark.parametrize("block", [behind, before])
def test_errors_do_not_grow_with_the_layers(block: Block) -> None:
    """A branch is rounded at 8 bits; so are norms of which only products read a copy."""
    x = values(SHAPE)[0]
    expected = interpret(graph_of(stack(block), SHAPE), [x])[0]
    found: set[bytes] = set()
    with tile_registers():
        for target in run_here():
            y = np.asarray(in_memory(short(stack(block), SHAPE, target=target).built, threads=1)(x)[0])
            assert np.abs(y - expected).max() < 1e-3 * np.abs(expected).max()
            found.add(y.tobytes())
    assert len(found) == 1


def residual(b: Builder, x: OutPort) -> OutPort:
    """A sum of a picture and a convolution of it, which no norm reads."""
    y = b.Relu(conv(b, x, 32, 3))
    return b.Sigmoid(conv(b, b.Add(conv(b, y, 32, 3), y), 32, 1, begin=(0, 0)))


@pytest.mark.parametrize(("make", "shape", "kept"), [(stack(before, 2), SHAPE, 3), (residual, (1, 16, 12, 12), 0)])
def test_only_sums_that_norms_read_stay_f32(make: Callable[..., OutPort], shape: tuple[int, ...], kept: int) -> None:
    made = short(make, shape)
    long = [b.name for s in made.steps.steps for b in s.writes() if b.dtype is DType.F32 and "output" not in b.name]
    assert len(long) == kept, long
