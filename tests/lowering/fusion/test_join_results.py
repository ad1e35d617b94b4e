"""Functions of a value that stays in memory: stored by the kernel that computes the value, with the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import aot.lowering.fusion.join_results as join_results
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs, tile_registers
from tests.lowering.check import ints
from tests.lowering.quantized import CLOSE, bytes_of, convolution, data, numbers_of, quantized, weights
from tests.passes.check import Make, graph_of

IMAGE = (1, 64, 46, 46)  # 542 kB of f32
TARGETS = [t for t in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx") if runs(Target.parse(t))]


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


def made_for(make: Make, *shapes: tuple[int, ...], target: str = "native") -> Compilation:
    return stages(graph_of(make, *shapes), CompileOptions(level=None, target=target))


def results(made: Compilation) -> list[int]:
    """Return how many results each call stores beside its value, of those that store some."""
    return [line.count("    and ") for line in made.groups.split("\ncall ") if "    and " in line]


def check(make: Make, target: str, monkeypatch: pytest.MonkeyPatch) -> Compilation:
    """Results have the bits that separate steps give; those are tested against references elsewhere."""
    made, apart = (made_for(make, IMAGE, target=target) for _ in range(2))
    with monkeypatch.context() as without:
        without.setattr(join_results.COSTS, "min_far_bytes", 1 << 40)
        assert results(apart) == []  # a compilation runs as far as it is asked for
    x = data(*IMAGE)
    found, expected = (in_memory(m.built, threads=1)(x) for m in (made, apart))
    for n in range(len(expected)):
        np.testing.assert_array_equal(found[n], expected[n])
    assert len(apart.program.calls) >= len(made.program.calls) + sum(results(made))
    return made


def residual(b: Builder, x: OutPort, taps: int = 1, channels: int = 64) -> tuple[OutPort, ...]:
    """A sum that is added to later, and whose levels a convolution multiplies."""
    y = b.Relu(b.Add(convolution(b, quantized(b, b.Multiply(x, 0.5)), channels, 1), x))
    return (b.Relu(b.Add(convolution(b, quantized(b, y), channels, taps, seed=1), y)),)


@pytest.mark.parametrize("target", ["native", *TARGETS[:1]])
def test_levels_of_a_residual(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels with a halo: its fills run with the sum."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        return residual(b, x, 3)

    made = check(make, target, monkeypatch)
    assert results(made) == [1]
    x = data(*IMAGE)
    (expected,) = interpret(graph_of(make, IMAGE), [x])
    assert np.abs(in_memory(made.built, threads=1)(x)[0] - expected).max() <= CLOSE * np.abs(expected).max()


def test_several_functions_of_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels with two steps, one of them with a halo."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Add(convolution(b, quantized(b, x), 64, 1), 0.25)
        coarse = numbers_of(b, bytes_of(b, y, 100, scale=0.1), 100, scale=0.1)
        return convolution(b, quantized(b, y), 8, 1, seed=1), convolution(b, coarse, 8, 3, seed=2), greatest(b, y)

    assert results(check(make, "native", monkeypatch)) == [2]


def test_a_copy_takes_the_place_of_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.MatMul(b.Reshape(x, ints(b, 2116, 64), special_zero=False), weights(b, 64, 64))
        return y, bytes_of(b, y)

    made = check(make, "native", monkeypatch)
    assert results(made) == [1]
    assert [p.region for p in made.program.calls[-1].args[-2:]] == [MemoryRegion.OUTPUT] * 2


def greatest(b: Builder, y: OutPort) -> OutPort:
    return b.ReduceMax(y, ints(b, 1))


def twice(b: Builder, y: OutPort) -> OutPort:
    return b.Add(b.Sin(y), y)


def repeated(b: Builder, y: OutPort) -> OutPort:
    return b.Sin(b.Concat(y, y, axis=1))


def channels(b: Builder, y: OutPort) -> OutPort:
    return b.Multiply(b.Sin(y), b.const(np.arange(64, dtype=np.float32).reshape(64, 1, 1), DType.F32))


@pytest.mark.parametrize(
    ("again", "count"),
    [(twice, [1]), (channels, [1]), (repeated, [])],
    ids=["read twice", "of each channel", "repeated"],
)
def test_functions_of_an_element(
    again: Callable[[Builder, OutPort], OutPort], count: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Relu(convolution(b, quantized(b, x), 64, 1))
        return convolution(b, quantized(b, again(b, y)), 8, 1, seed=1), greatest(b, y)

    assert results(check(make, "native", monkeypatch)) == count


def test_results_that_lie_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels are neighbours in the value, pixels in the output."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = convolution(b, quantized(b, x), 64, 1)
        return bytes_of(b, y), greatest(b, y)

    assert results(check(make, "native", monkeypatch)) == []


def test_a_value_that_lies_where_its_operand_lay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is of the second value of a place in memory."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        (y,) = residual(b, x)
        z = b.Relu(b.Add(convolution(b, quantized(b, b.Sin(y)), 64, 1, seed=2), y))
        return (b.Add(convolution(b, quantized(b, z), 64, 1, seed=3), z),)

    assert results(check(make, "native", monkeypatch)) == [1, 1, 1]


@pytest.mark.parametrize("shape", [(1, 64, 24, 24), (1, 28, 80, 80)], ids=["in a cache", "vectors half empty"])
def test_unprofitable_joins_are_left(shape: tuple[int, ...]) -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        return residual(b, x, channels=shape[1])

    assert results(made_for(make, shape)) == []
