"""Small quantised networks, and a check that they are computed with sums of products of small integers."""

from __future__ import annotations

import os
from zlib import crc32

import numpy as np

from aot.codegen.llvm.host import parse_target
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.passes.check import Make, graph_of

F32, U8, I8, I32 = DType.F32, DType.U8, DType.I8, DType.I32
CLOSE = 1e-5  # of the largest number of a result
SCALE = 0.0371
NATIVE = parse_target("native")
HAS = NATIVE.abilities.dots > 0
TARGETS = ["native", *(["x86-64-v3"] if set(Target.parse("x86-64-v3").features) <= set(NATIVE.features) else [])]
IMAGE = (1, 16, 7, 9)


def one_target() -> str:
    """Return one of TARGETS, by the name of the test that runs: cases of a table are spread over them."""
    return TARGETS[crc32(os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0].encode()) % len(TARGETS)]


def check(
    make: Make,
    *shapes: tuple[int, ...],
    dots: int | None,
    inputs: list[Array] | None = None,
    spread: bool = False,
) -> Compilation:
    """Results are those of the references; so many products are sums of integers, of bytes or of i16.

    `spread`: on one target instead of all.
    """
    given = inputs if inputs is not None else [data(*s, seed=n) for n, s in enumerate(shapes)]
    expected = interpret(graph_of(make, *shapes), given)
    for target in [one_target()] if spread else TARGETS:
        made = stages(graph_of(make, *shapes), CompileOptions(level=None, target=target))
        if dots is not None:
            assert made.groups.count("dots=") == (dots if HAS else 0)
        found = in_memory(made.built, threads=1)(*given)
        for n, y in enumerate(expected):
            assert found[n].shape == y.shape
            assert np.abs(found[n] - y).max() <= CLOSE * np.abs(y).max()
    return made


def data(*shape: int, scale: float = SCALE, seed: int = 0) -> Array:
    """No number that lies in the middle between two steps, and some out of the range."""
    r = np.random.default_rng([seed, *shape])
    return ((r.integers(-160, 160, shape) + r.uniform(-0.3, 0.3, shape)) * scale).astype(np.float32)


def bytes_of(b: Builder, x: OutPort, zero: int = 121, dtype: DType = U8, scale: float = SCALE) -> OutPort:
    low, high = (0.0, 255.0) if dtype is U8 else (-128.0, 127.0)
    level = b.Round(b.Divide(x, b.const(scale, F32)))
    level = b.Add(level, float(zero)) if zero else level
    return b.Convert(b.Clamp(level, min=low, max=high), destination_type=dtype)


def numbers_of(b: Builder, q: OutPort, zero: int = 121, scale: float = SCALE) -> OutPort:
    x = b.Convert(q, destination_type=F32)
    return b.Multiply(b.Subtract(x, float(zero)) if zero else x, b.const(scale, F32))


def quantized(b: Builder, x: OutPort, zero: int = 121, dtype: DType = U8) -> OutPort:
    return numbers_of(b, bytes_of(b, x, zero, dtype), zero)


def whole(*shape: int, seed: int = 0) -> Array:
    r = np.random.default_rng([seed, *shape])
    w = r.integers(-127, 128, shape)
    w.reshape(shape[0], -1)[:, 0] = 127  # of each output, the largest
    return w.astype(np.int8)


def weights(b: Builder, *shape: int, seed: int = 0) -> OutPort:
    """int8 times a scale for each output, which is the first dimension."""
    scale = np.random.default_rng(seed).uniform(1e-3, 1e-2, (shape[0], *[1] * (len(shape) - 1)))
    q = b.Convert(b.const(whole(*shape, seed=seed), I8), destination_type=F32)
    return b.Multiply(q, b.const(scale, F32))


def convolution(b: Builder, x: OutPort, channels: int, taps: int = 3, *, stride: int = 1, seed: int = 0) -> OutPort:
    w = weights(b, channels, x.type.static_shape[1], taps, taps, seed=seed)
    pads = [taps // 2] * 2
    return b.Convolution(x, w, strides=[stride] * 2, pads_begin=pads, pads_end=pads, dilations=(1, 1))


def fake(b: Builder, x: OutPort, low: float, high: float, levels: int) -> OutPort:
    return b.FakeQuantize(x, *(b.const(v, F32) for v in (low, high, low, high)), levels=levels)
