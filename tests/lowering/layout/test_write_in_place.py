"""Results on top of what they are made from, where it is read for the last time."""

from __future__ import annotations

import numpy as np
import pytest

import aot.lowering.layout.write_in_place as write_in_place
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.program import Address, MemoryRegion
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from tests.codegen.emulated_tiles import runs, tile_registers
from tests.lowering.check import compiled, ints, weights
from tests.lowering.quantized import convolution, data, quantized
from tests.passes.check import graph_of


def places(made: Compilation) -> list[tuple[Address, ...]]:
    """Return the addresses of each call's arguments, without its weights."""
    return [tuple(p for p in c.args if p.region is not MemoryRegion.CONSTANT) for c in made.program.calls]


def test_last_reader_writes_over_its_input() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Tanh(b.Exp(x))
        z = b.MatMul(y, weights(b, 8, 8))
        return b.MatMul(b.Subtract(z, b.Sqrt(b.Exp(y))), weights(b, 8, 8, seed=1))

    made = compiled(make, (4, 8))
    assert len({p for args in places(made) for p in args if p.region is MemoryRegion.ARENA}) <= 2


def test_a_value_that_is_read_again_is_not_written_over() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.MatMul(x, weights(b, 8, 8))
        z = b.Exp(y)
        return b.Add(b.MatMul(z, weights(b, 8, 8, seed=1)), b.MatMul(b.Sin(z), y, transpose_b=False))

    compiled(make, (8, 8))


def test_a_transposed_reader_does_not_write_over_its_input() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Exp(b.Sin(x))
        turned = b.Exp(b.Add(y, b.Transpose(y, ints(b, 1, 0))))
        return b.MatMul(turned, weights(b, 8, 8))

    compiled(make, (8, 8))


@pytest.mark.parametrize("again", [False, True])
def test_rows_of_a_group(again: bool) -> None:
    """Exponentials that others read, too, lie where their data lay, unless those are read again."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        scores = b.Multiply(b.MatMul(x, x, transpose_b=True), 0.125)
        shares = b.Exp(b.Subtract(scores, b.ReduceMax(scores, ints(b, 1), keep_dims=True)))
        sums = b.ReduceSum(shares, ints(b, 1), keep_dims=True)
        found = b.MatMul(shares, x), b.Divide(b.MatMul(shares, x, transpose_a=True), sums)
        return (*found, b.MatMul(b.Sin(scores), x)) if again else found

    made = compiled(make, (40, 16))
    calls = zip(made.program.calls, places(made), strict=True)
    rows = next(args for c, args in calls if any("ReduceMax" in n for n in c.layers))
    assert len({*rows}) == (3 if again else 2)


def test_inputs_and_weights_stay_as_they_are() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 8, 8)
        return b.MatMul(b.Exp(b.Add(x, w)), b.Exp(b.Multiply(x, w)))

    made = compiled(make, (8, 8))
    for call in made.program.calls:
        assert (
            call.args[-1].region not in (MemoryRegion.INPUT, MemoryRegion.CONSTANT)
            or call.args[0].region is not MemoryRegion.INPUT
        )


FAR = (1, 64, 47, 47)  # 566 kB of f32: more than half of L2
EVEN = (1, 64, 48, 48)


def added(b: Builder, x: OutPort) -> OutPort:
    """A sum that is added to its operand, which nothing reads later."""
    y = b.Relu(convolution(b, quantized(b, x), 64, 1))
    z = b.Relu(b.Add(convolution(b, quantized(b, y), 64, 1, seed=1), y))
    return b.ReduceMax(z, ints(b, 2, 3))


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        (shape, name)
        for shape, name in ((EVEN, "x86-64-v3"), (FAR, "x86-64-v4"), (FAR, "x86-64-v4-amx"), (EVEN, "x86-64-v4-amx"))
        if runs(Target.parse(name))
    ],
)
def test_a_sum_is_written_over_its_operand(
    shape: tuple[int, ...], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles of rows never overlap there, so that each element is read once; the bits are those of two places.

    2209 rows divide into no tiles of tile registers but of single rows.
    """
    with tile_registers():
        found = [stages(graph_of(added, shape), CompileOptions(level=None, target=target)) for _ in range(2)]
        with monkeypatch.context() as without:
            without.setattr(write_in_place.COSTS, "min_far_bytes", 1 << 40)
            assert overwriting(found[1]) == 0
        assert overwriting(found[0]) == (shape == EVEN or target != "x86-64-v4-amx")
        one, other = (in_memory(m.built, threads=1)(data(*shape))[0] for m in found)
    np.testing.assert_array_equal(one, other)


def overwriting(made: Compilation) -> int:
    """Return how many sums overwrite an operand."""
    works = [w for s in made.steps.steps for w in s.works if isinstance(w, Definition)]
    return sum(w.overwrites for w in works if w.reduction is not None)


def test_sums_that_stay_in_a_cache() -> None:
    assert overwriting(stages(graph_of(added, (1, 64, 24, 24)), CompileOptions(level=None, target="native"))) == 0
