"""Compressed weights in f16: computed in f32 before they are folded, and nothing else is."""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Constant
from aot.passes.middle.decompress_weights import decompress_weights
from aot.passes.middle.fold_constants import fold_constants
from aot.runtime.abi import DType
from tests.passes.check import graph_of

N = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10
ZERO = np.array([[100], [120], [3], [0]], np.uint8)
SCALE = np.array([[0.0123], [0.7], [3.3], [1e-4]], np.float16)


def number(b: Builder, data: Array, dtype: DType) -> OutPort:
    return b.Convert(b.const(data, dtype), destination_type=DType.F16)


def folded(graph: Graph) -> list[Array]:
    """Constants of f32 in the graph, once decompressed and folded."""
    decompress_weights(graph)
    fold_constants(graph)
    return [n.data for n in graph.order() if isinstance(n.op, Constant) and n.data is not None and n.data.dtype == "f4"]


def test_no_factor_is_rounded_to_f16() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        moved = b.Subtract(number(b, N, DType.U8), number(b, ZERO, DType.U8))
        scaled = b.Multiply(moved, b.const(SCALE, DType.F16))
        whole = b.Reshape(scaled, b.const(np.array([6, 4]), DType.I64))
        return b.MatMul(x, b.Convert(whole, destination_type=DType.F32), transpose_a=False, transpose_b=False)

    expected = (N.astype(np.float32) - ZERO) * SCALE.astype(np.float32)
    (found,) = folded(graph_of(make, (2, 6)))
    assert np.array_equal(found, expected.reshape(6, 4))


def test_arithmetic_of_f16_weights_is_that_of_f16() -> None:
    half = np.linspace(0.1, 3, 24).astype(np.float16).reshape(6, 4)

    def make(b: Builder, x: OutPort) -> OutPort:
        scaled = b.Multiply(b.const(half, DType.F16), b.const(np.array(1.7), DType.F16))
        return b.MatMul(x, b.Convert(scaled, destination_type=DType.F32), transpose_a=False, transpose_b=False)

    (found,) = folded(graph_of(make, (2, 6)))
    assert np.array_equal(found, (half * np.float16(1.7)).astype(np.float32))


def test_data_of_run_time_are_not_decompressed() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        small = b.Convert(b.Convert(x, destination_type=DType.U8), destination_type=DType.F16)
        return b.Convert(b.Multiply(small, b.const(np.array(0.3), DType.F16)), destination_type=DType.F32)

    graph = graph_of(make, (2, 6))
    before = [n.type for n in graph.order()]
    assert not decompress_weights(graph)
    assert [n.type for n in graph.order()] == before
