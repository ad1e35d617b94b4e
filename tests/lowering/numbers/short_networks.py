"""Small networks of the usual kinds, which `--precision` compiles, and the targets of this machine."""

from __future__ import annotations

import numpy as np

from aot.codegen.ir.numbers.bf16_chains import is_chain_sum
from aot.codegen.ir.traverse import members
from aot.codegen.llvm.host import parse_target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.lowering.check import conv, ints, weights
from tests.lowering.quantized import quantized
from tests.lowering.quantized import weights as int8
from tests.passes.check import Make, Size, graph_of

NAMES = ("x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-amx")
ERROR = {"bf16": 0.03, "f16": 0.03 / 8}  # of the largest result: 8 bits and 11, and networks of a few layers


def run_here() -> list[str]:
    return [name for name in NAMES if runs(parse_target(name))]


def picture(b: Builder, x: OutPort) -> OutPort:
    """Padding, strides, a depthwise window, a residual, a pool and a product of few rows."""
    y = b.Relu(conv(b, x, 32, 3, stride=2))
    z = b.Relu(conv(b, y, 48, 3))
    w = weights(b, 48, 1, 1, 3, 3)
    z = b.GroupConvolution(z, w, strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))
    y = b.Add(b.Sigmoid(conv(b, z, 32, 1, begin=(0, 0))), y)
    y = b.ReduceMean(conv(b, y, 40, 3), ints(b, 2, 3), keep_dims=False)
    return b.MatMul(y, weights(b, 40, 64))


def attention(b: Builder, x: OutPort) -> OutPort:
    """Projections, two products of data, a softmax and a norm."""
    q, k, v = (b.MatMul(x, weights(b, 64, 64, seed=n)) for n in range(3))
    p = b.Softmax(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.125), axis=-1)
    y = b.Add(b.MatMul(b.MatMul(p, v), weights(b, 64, 64, seed=4)), x)
    return b.Gelu(b.MatMul(b.MVN(y, ints(b, 2), eps=1e-5), weights(b, 64, 96, seed=5)))


def stem(b: Builder, x: OutPort) -> OutPort:
    """Convolutions of three channels: windows of 7 and 3 columns, and patches of 4."""
    y = conv(b, x, 32, 7, stride=2, begin=(3, 3), end=(2, 2))
    z = conv(b, x, 32, 3, stride=2, begin=(0, 0), end=(1, 1))
    p = b.Reshape(conv(b, x, 32, 4, stride=4, begin=(0, 0)), ints(b, 1, 32, -1))
    y = b.Reshape(b.Add(b.Relu(y), z), ints(b, 1, 32, -1))
    return b.MatMul(b.Transpose(y, ints(b, 0, 2, 1)), b.Sigmoid(p))


def channels_last(b: Builder, x: OutPort) -> OutPort:
    """A convolution of a picture whose channels lie innermost."""
    return b.Relu(conv(b, b.Transpose(x, ints(b, 0, 3, 1, 2)), 32, 3, stride=2, begin=(0, 0), end=(1, 1)))


def patches(b: Builder, x: OutPort) -> OutPort:
    """Patches of 16x16 pixels, and attention whose queries, keys and values are parts of one product."""
    y = b.Reshape(conv(b, x, 48, 16, stride=16, begin=(0, 0), end=(0, 0)), ints(b, 1, 48, -1))
    y = b.Transpose(y, ints(b, 0, 2, 1))
    y = b.Reshape(b.MatMul(y, weights(b, 48, 144)), ints(b, 1, 24, 3, 3, 16))
    parts = b.Transpose(y, ints(b, 2, 0, 3, 1, 4))
    q, k, v = (b.Gather(parts, ints(b, n), 0) for n in range(3))
    q, k, v = (b.Reshape(part, ints(b, 3, 24, 16)) for part in (q, k, v))
    return b.MatMul(b.Softmax(b.MatMul(q, k, transpose_b=True), axis=-1), v)


def tokens(b: Builder, x: OutPort) -> OutPort:
    """Attention over 37 tokens of two heads of 17, whose products sum over 34, 17 and 37 terms."""
    q, k, v = (b.Reshape(b.MatMul(x, weights(b, 34, 34, seed=n)), ints(b, 37, 2, 17)) for n in range(3))
    q, k, v = (b.Transpose(part, ints(b, 1, 0, 2)) for part in (q, k, v))
    y = b.MatMul(b.Softmax(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.1), axis=-1), v)
    return b.MatMul(b.Reshape(b.Transpose(y, ints(b, 1, 0, 2)), ints(b, 37, 34)), weights(b, 34, 19, seed=3))


def channels(b: Builder, x: OutPort) -> OutPort:
    """Windows over 37 channels and 1x1 over 17, a residual of 37, and a product with the transposed weights."""
    y = b.Relu(conv(b, x, 37, 3, begin=(0, 0), end=(0, 0)))
    z = b.Add(b.Relu(conv(b, conv(b, y, 17, 3), 37, 1, begin=(0, 0))), y)
    w = weights(b, 37, 37)
    flat = b.MatMul(b.Transpose(b.Reshape(z, ints(b, 37, -1)), ints(b, 1, 0)), w)
    return b.MatMul(flat, w, transpose_b=True)


def byte_windows(b: Builder, x: OutPort) -> OutPort:
    """Depthwise windows over quantised data, whose sums no level rounds afterwards."""
    ones = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    return b.GroupConvolution(quantized(b, x), b.Reshape(int8(b, 32, 9), ints(b, 32, 1, 1, 3, 3)), **ones)


def tiny(b: Builder, x: OutPort) -> OutPort:
    """Products and sums below and around the least normal number."""
    y = b.MatMul(b.Multiply(x, 1e-20), b.Multiply(weights(b, 64, 64), 3e-20))
    return b.Multiply(b.MatMul(y, weights(b, 64, 32, seed=1)), 1e30)


def quotients(b: Builder, x: OutPort) -> OutPort:
    """Denormal quotients, which their kernel keeps, and copies of them, with arithmetic and without."""
    y = b.Divide(x, b.Multiply(b.Exp(x), 1e37))
    z = b.Concat(b.Relu(y), b.Add(y, y), axis=0)
    return b.Divide(z, b.Multiply(b.Exp(b.Multiply(z, 1e37)), 1e-30))


def windows(b: Builder, x: OutPort) -> OutPort:
    """Convolutions that f32 makes Winograd's, one of them ragged, before an elementwise layer of a value of its own."""
    y = b.Relu(conv(b, x, 32, 3))
    return b.Add(b.Sigmoid(conv(b, y, 32, 3, begin=(0, 0), end=(0, 0))), 1.0)


def recurrent(b: Builder, x: OutPort) -> OutPort:
    """An LSTM: each step of time reads its recurrent weights, 512 x 128, anew."""
    state, ends = b.const(np.zeros((1, 1, 128), np.float32), DType.F32), b.const(np.array([40]), DType.I32)
    w, r = (weights(b, 1, 512, n, seed=n) for n in (32, 128))
    return b.LSTMSequence(x, state, state, ends, w, r, weights(b, 1, 512), hidden_size=128, outputs=3)


CASES: dict[str, tuple[Make, tuple[Size, ...]]] = {
    "picture": (picture, (1, 32, 17, 19)),
    "attention": (attention, (2, 48, 64)),
    "stem": (stem, (1, 3, 20, 24)),
    "channels_last": (channels_last, (1, 20, 24, 3)),
    "patches": (patches, (1, 3, 64, 96)),
    "tokens": (tokens, (37, 34)),
    "channels": (channels, (1, 32, 9, 11)),
    "byte_windows": (byte_windows, (1, 32, 9, 11)),
    "tiny": (tiny, (20, 64)),
    "quotients": (quotients, (40, 40)),
    "recurrent": (recurrent, (1, 40, 32)),
    "windows": (windows, (1, 32, 29, 23)),
    "dynamic": (attention, (1, "n=37", 64)),
}


def short(make: Make, *shapes: tuple[Size, ...], precision: str = "bf16", target: str = "x86-64-v3") -> Compilation:
    return stages(graph_of(make, *shapes), CompileOptions(level=None, target=target, precision=precision, verify=True))


def linear(b: Builder, x: OutPort) -> OutPort:
    y = b.Relu(b.MatMul(x, weights(b, 64, 64), name="first"))
    return b.MatMul(y, weights(b, 64, 64, seed=1), name="second")


def types(made: Compilation) -> dict[str, int]:
    """Values of the arena by type, and sums by chains."""
    found = {"chains": 0}
    for step in made.steps.steps:
        found["chains"] += sum(is_chain_sum(d.reduction) for w in step.works for d in members(w))
        for b in step.writes():
            found[b.dtype.value] = found.get(b.dtype.value, 0) + 1
    return found
