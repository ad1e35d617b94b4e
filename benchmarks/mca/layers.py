"""Layers whose kernels are looked at: products, convolutions and windows in f32, bf16 and int8, weights of 4 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from aot.runtime.abi import DType
from benchmarks.mca.loops import Loop, inner_loops
from tests.lowering.check import conv, weights
from tests.lowering.numbers.test_group_sums import Weights
from tests.lowering.quantized import convolution, quantized
from tests.lowering.quantized import weights as whole_weights
from tests.passes.check import graph_of

MIN_ARITHMETIC = 16  # instructions of a loop that is looked at
IMAGE = (1, 64, 28, 28)


@dataclass(frozen=True, slots=True)
class Layer:
    """A network of one layer, with the options that it is compiled with."""

    make: Callable[[Builder, OutPort], OutPort]
    shape: tuple[int, ...]
    options: CompileOptions = field(default_factory=CompileOptions)
    inside: bool = False  # between two layers that are not looked at: data lie as layers of networks hand them on


def _windows(b: Builder, x: OutPort) -> OutPort:
    w = weights(b, 64, 1, 1, 3, 3)
    return b.GroupConvolution(x, w, strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))


def _grouped(bits: int) -> Callable[[Builder, OutPort], OutPort]:
    return lambda b, x: Weights(DType.U8, bits, 64, 512, "whole", 512).product(b, b.Abs(x))


def _whole(b: Builder, x: OutPort) -> OutPort:
    return b.MatMul(quantized(b, x), whole_weights(b, 512, 512), transpose_b=True)


def _inside(make: Callable[[Builder, OutPort], OutPort], options: CompileOptions | None = None) -> Layer:
    def around(b: Builder, x: OutPort) -> OutPort:
        return _point(b, b.Relu(make(b, _point(b, x, 64))), 64)

    return Layer(around, IMAGE, options or CompileOptions(), inside=True)


def _point(b: Builder, x: OutPort, channels: int) -> OutPort:
    return conv(b, x, channels, 1, begin=(0, 0))


F16 = CompileOptions(precision="f16", fast_math=True)
BF16, ROUNDED = CompileOptions(precision="bf16"), CompileOptions(activations="int8")
LAYERS = {
    "int8 matmul": Layer(_whole, (128, 512)),
    "int8 1x1": Layer(lambda b, x: convolution(b, quantized(b, x), 64, 1), IMAGE),
    "int8 3x3": Layer(lambda b, x: convolution(b, quantized(b, x), 64), IMAGE),
    "u4 weights, 32 tokens": Layer(_grouped(4), (32, 512), ROUNDED),
    "u4 weights, a token": Layer(_grouped(4), (1, 512), ROUNDED),
    "u8 weights, 32 tokens": Layer(_grouped(8), (32, 512), ROUNDED),
    "bf16 matmul": Layer(lambda b, x: b.MatMul(x, weights(b, 512, 512)), (128, 512), BF16),
    "f16 matmul": Layer(lambda b, x: b.MatMul(x, weights(b, 512, 512)), (128, 512), F16),
    "f16 1x1": _inside(lambda b, x: _point(b, x, 64), F16),
    "f16 3x3": _inside(lambda b, x: conv(b, x, 64), F16),
    "f32 matmul": Layer(lambda b, x: b.MatMul(x, weights(b, 192, 256)), (96, 192)),
    "f32 1x1": _inside(lambda b, x: _point(b, x, 64)),
    "f32 3x3": _inside(lambda b, x: conv(b, x, 64)),
    "f32 3x3 by 2": _inside(lambda b, x: conv(b, x, 96, stride=2)),
    "f32 depthwise 3x3": _inside(_windows),
}


def compiled(name: str, target: str) -> Compilation:
    """Return the compilation of a layer for a target."""
    layer = LAYERS[name]
    return stages(graph_of(layer.make, layer.shape), replace(layer.options, target=target))


def loops_of(name: str, target: str) -> list[Loop]:
    """Return the loop with most arithmetic of each kernel of a layer."""
    found: dict[str, Loop] = {}
    for loop in inner_loops(compiled(name, target).asm()):
        count = len(loop.arithmetic)
        if count >= MIN_ARITHMETIC and (loop.function not in found or count > len(found[loop.function].arithmetic)):
            found[loop.function] = loop
    return list(found.values())[LAYERS[name].inside : len(found) - LAYERS[name].inside]
