"""Products of f16 that are summed in f16: `--precision f16 --fast-math` where multiply-adds of f16 are there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.schedules.products.product import HALF_TERMS
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.runtime.arrays.tensors import Array
from tests.codegen.llvm.test_cross import one_of, packed, program
from tests.lowering.check import conv
from tests.lowering.quantized import F32
from tests.passes.check import Make, Size, graph_of, values

ROWS, TERMS, COLUMNS = 20, 2 * HALF_TERMS + 22, 40
THREADS = ("1", "2", "5")
CALLS = 3  # for each number of threads


def product(b: Builder, x: OutPort, scale: float = 1.0) -> OutPort:
    return b.MatMul(x, b.const(values((TERMS, COLUMNS))[0] * np.float32(scale), F32))


def compiled(make: Make, shape: Sequence[Size], target: str = "aarch64-v8.2", fast: bool = True) -> Compilation:
    options = CompileOptions(level=None, target=target, precision="f16", fast_math=fast, verify=True)
    return stages(graph_of(make, shape), options)


def run(made: Compilation, folder: Path, inputs: list[Array], cpu: str) -> Array:
    """Return the output of a program under an emulator, equal for each number of threads."""
    (folder / "in").write_bytes(packed(inputs))
    ran = program(made.built, folder)(cpu, "in", "out", *THREADS)
    assert ran.returncode == 0, ran.stderr
    return np.frombuffer(one_of(CALLS * len(THREADS), (folder / "out").read_bytes()), np.float32)


def in_order(x: Array, w: Array) -> Array:
    """Return the product as it is documented: multiply-adds of f16 for HALF_TERMS terms, whose sums are added in f32.

    Products of f16 are exact in f64, and so are their sums with a number of f16 but for ties that no number here has.
    """
    total = np.zeros((x.shape[0], w.shape[1]), np.float32)
    for first in range(0, x.shape[1], HALF_TERMS):
        half = np.zeros(total.shape, np.float16)
        for k in range(first, min(first + HALF_TERMS, x.shape[1])):
            exact = np.outer(x[:, k], w[k]).astype(np.float64) + half
            half = exact.astype(np.float16)
        total += half
    return total


@pytest.mark.slow
def test_sums_have_the_documented_order(tmp_path: Path) -> None:
    made = compiled(product, (ROWS, TERMS))
    x = values((ROWS, TERMS))[0]
    constant = next(v.array for v in made.steps.values.values() if v.array is not None and v.array.ndim == 2)
    short = [np.asarray(a, np.float16).astype(np.float64) for a in (x, constant)]
    found = run(made, tmp_path, [x], "cortex-a76").reshape(ROWS, COLUMNS)
    np.testing.assert_array_equal(found, in_order(*short))
    assert "fmla\tv" in made.asm() and ".h[7]" in made.asm()


def picture(b: Builder, x: OutPort) -> OutPort:
    """Winograd's tiles of four points, and a product of pixels."""
    return conv(b, b.Relu(conv(b, x, 32, 3)), 24, 1, begin=(0, 0))


@pytest.mark.slow
def test_convolutions_are_near_f32(tmp_path: Path) -> None:
    shape = (1, 32, 9, 11)
    made, inputs = compiled(picture, shape), values(shape)
    assert made.groups.count("f16_sums=") == made.groups.count("group input") + 1 == 2
    expected = np.asarray(interpret(graph_of(picture, shape), inputs)[0])
    found = run(made, tmp_path, inputs, "max").reshape(expected.shape)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-4 < error < 1e-2


def test_other_sums_are_those_of_f32() -> None:
    """Sums stay in f32 without the option, without the instruction, and if weights exceed f16."""
    shape = (ROWS, TERMS)
    assert "f16_sums=k" in compiled(product, shape).groups
    others = [compiled(product, shape, target) for target in ("aarch64-v8", "x86-64-v4")]
    others += compiled(product, shape, fast=False), compiled(partial(product, scale=1e6), shape)
    assert all("f16_sums=" not in made.groups for made in others)
