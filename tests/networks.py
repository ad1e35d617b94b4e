"""Small networks of the usual kinds, for tests of the whole compiler."""

from __future__ import annotations

from collections.abc import Callable

from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.runtime.abi import DType
from tests.lowering.check import conv, ints, weights
from tests.passes.check import graph_of


def picture() -> Graph:
    """Convolutions (plain, Winograd, depthwise, strided), residual, concat, pools, a classifier: f32[1,3,18,17]."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(b.Add(conv(b, x, 16), weights(b, 1, 16, 1, 1)))
        y = b.Add(b.Relu(conv(b, y, 16, seed=1)), y)
        sizes = {"strides": (2, 2), "kernel": (3, 3), "pads_begin": (1, 1), "pads_end": (1, 1)}
        y = b.Concat(b.MaxPool(y, **sizes), conv(b, y, 8, stride=2, seed=2), axis=1)
        pads = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
        y = b.Swish(b.GroupConvolution(y, weights(b, 24, 1, 1, 3, 3), **pads))
        y = b.Reshape(b.ReduceMean(y, ints(b, 2, 3), keep_dims=True), ints(b, 1, -1))
        return b.Softmax(b.MatMul(y, weights(b, 24, 10)), axis=1)

    return graph_of(make, (1, 3, 18, 17))


def text() -> Graph:
    """A transformer block with two heads, and its first token alone: f32[1,7,32]."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        def norm(y: OutPort, seed: int) -> OutPort:
            return b.Multiply(b.MVN(y, ints(b, 2), eps=1e-5), weights(b, 32, seed=seed))

        def heads(y: OutPort, seed: int) -> OutPort:
            y = b.MatMul(y, weights(b, 32, 32, seed=seed))
            return b.Transpose(b.Reshape(y, ints(b, 1, 7, 2, 16)), ints(b, 0, 2, 1, 3))

        y = norm(x, 1)
        scores = b.Multiply(b.MatMul(heads(y, 2), heads(y, 3), transpose_b=True), 0.25)
        mixed = b.Transpose(b.MatMul(b.Softmax(scores, axis=-1), heads(y, 4)), ints(b, 0, 2, 1, 3))
        x = b.Add(b.MatMul(b.Reshape(mixed, ints(b, 1, 7, 32)), weights(b, 32, 32, seed=5)), x)
        wide = b.Gelu(b.MatMul(norm(x, 6), weights(b, 32, 64, seed=7)))
        x = b.Add(b.MatMul(wide, weights(b, 64, 32, seed=8)), x)
        return x, b.Gather(x, b.const(0, DType.I64), b.const(1, DType.I64))

    return graph_of(make, (1, 7, 32))


def mixed_types() -> Graph:
    """Integers, booleans and half precision around f32: f32[2,5,6]."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        best = b.TopK(x, b.const(2, DType.I64), axis=2, outputs=2).node
        whole = b.Convert(b.Multiply(x, 10.0), destination_type=DType.I32)
        chosen = b.Select(b.Greater(whole, b.const(3, DType.I32)), x, b.Negative(x))
        half = b.Convert(b.Exp(chosen), destination_type=DType.F16)
        below = b.Less(x, b.ReduceMax(x, ints(b, 0)))
        return best.out_port(0), best.out_port(1), b.ReduceSum(whole, ints(b, 1)), half, below

    return graph_of(make, (2, 5, 6))


def functions() -> Graph:
    """So many functions in one kernel that it calls them: f32[5,19]."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = x
        for k in range(9):
            y = b.Add(b.Add(y, b.Tanh(b.Multiply(x, k / 4))), b.Erf(b.Subtract(x, k / 4)))
        return y

    return graph_of(make, (5, 19))


NETWORKS: dict[str, Callable[[], Graph]] = {"picture": picture, "text": text, "mixed_types": mixed_types}
