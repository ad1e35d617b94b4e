"""Windows of bytes with few channels: columns of zeros make their rows blocks of tile registers and change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.llvm.host import parse_target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from tests.codegen.emulated_tiles import runs, tile_registers
from tests.lowering.quantized import CLOSE, data, quantized, weights
from tests.passes.check import Make, graph_of

AMX = "x86-64-v4-amx"
NONE = (0, 0)  # padding before and behind rows and columns


def window(taps: int, pads: tuple[int, int], zero: int, outputs: int = 24) -> Make:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, outputs, x.type.static_shape[1], taps, taps)
        begin, end = ([p, p] for p in pads)
        y = b.Convolution(quantized(b, x, zero), w, strides=[2, 2], pads_begin=begin, pads_end=end, dilations=(1, 1))
        return b.Relu(y)

    return make


def compiled(make: Make, shape: tuple[int, ...], target: str) -> Compilation:
    return stages(graph_of(make, shape), CompileOptions(level=None, target=target, verify=True))


@pytest.mark.skipif(not runs(parse_target(AMX)), reason="this machine has no AVX-512")
@pytest.mark.parametrize(
    ("channels", "taps", "zero", "pads"),
    [(3, 7, 121, NONE), (2, 11, 0, (2, 2)), (4, 5, 121, (2, 0)), (3, 7, 121, (2, 2))],
)
def test_results_are_those_of_narrow_windows(channels: int, taps: int, zero: int, pads: tuple[int, int]) -> None:
    make, shape = window(taps, pads, zero), (1, channels, 15, 31)
    x = data(*shape)
    with tile_registers():
        made = compiled(make, shape, AMX)
        assert made.groups.count("matrix=") == 1
        found = np.asarray(in_memory(made.built, threads=1)(x)[0])
    plain = compiled(make, shape, "x86-64-v4")
    assert "matrix=" not in plain.groups
    np.testing.assert_array_equal(found, np.asarray(in_memory(plain.built, threads=1)(x)[0]))
    expected = interpret(graph_of(make, shape), [x])[0]
    assert np.abs(found - expected).max() <= CLOSE * np.abs(expected).max()


@pytest.mark.parametrize(
    ("channels", "taps", "outputs"),
    [(3, 3, 24), (4, 7, 24), (3, 8, 24), (8, 7, 24), (3, 7, 15)],
    ids=["few terms", "whole words", "a block", "many channels", "few outputs"],
)
def test_other_windows_stay(channels: int, taps: int, outputs: int) -> None:
    made = compiled(window(taps, NONE, 121, outputs), (1, channels, 15, 31), AMX)
    assert not any(name.endswith(".wide") for name in made.steps.values)
