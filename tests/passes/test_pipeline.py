"""The pipeline as a whole: meaning stays, nothing is left to decompose, the same result every time."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.op import DecomposedOp
from aot.ir.text.printer import print_graph
from aot.passes.pipeline import pipeline
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from tests.cases import Tolerance
from tests.passes.check import after, graph_of, operations, values, weights

SHAPE = (2, 3, 8, 8)
WHOLE_NETWORK = Tolerance("whole network", 1e-4, 1e-4)


def network(b: Builder, x: OutPort) -> OutPort:
    """Convolution, batch normalisation, activation, attention, layer norm, classifier."""
    w = b.Convert(b.const(weights(8, 3, 3, 3), DType.F16), destination_type=DType.F32)
    y = b.Convolution(x, w, strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))
    gamma, beta, mean, spread = (b.const(weights(8) + 1.5, DType.F32) for _ in range(4))
    y = b.BatchNormInference(y, gamma, beta, mean, spread)
    y = b.Multiply(y, b.Sigmoid(y))
    tokens = b.Transpose(b.Reshape(y, b.const([0, 0, -1], DType.I64), special_zero=True), b.const([0, 2, 1], DType.I64))
    scores = b.Softmax(b.Multiply(b.MatMul(tokens, tokens, transpose_b=True), 0.1), axis=-1)
    tokens = b.Add(b.MatMul(scores, tokens), tokens)
    tokens = b.Add(b.Multiply(b.MVN(tokens, b.const([-1], DType.I64), eps=1e-5), b.const(weights(8), DType.F32)), 0.25)
    return b.Add(b.MatMul(tokens, b.const(weights(8, 5), DType.F32)), b.const(weights(5), DType.F32))


def test_meaning_stays() -> None:
    graph = graph_of(network, SHAPE)
    inputs = values(SHAPE)
    expected = interpret(graph, inputs)[0]
    run_passes(graph, pipeline())
    found = interpret(graph, inputs)[0]
    np.testing.assert_allclose(found, expected, rtol=WHOLE_NETWORK.relative, atol=WHOLE_NETWORK.absolute)
    assert not any(isinstance(n.op, DecomposedOp) for n in graph.nodes.values())
    types = [n.type for n in graph.order()]
    assert types[types.index("Convolution") :][:3] == ["Convolution", "Constant", "Add"]
    assert "Convert" not in types


def test_run_time_batch() -> None:
    assert "Convolution" in after(pipeline(), network, ("batch=2", 3, 8, 8), tolerance=WHOLE_NETWORK)


def test_passes_give_the_same_graph_twice() -> None:
    texts = []
    for _ in range(2):
        graph = graph_of(network, SHAPE)
        run_passes(graph, pipeline())
        texts.append(print_graph(graph))
    assert texts[0] == texts[1]


def test_a_second_run_finds_the_same_graph() -> None:
    graph = graph_of(network, SHAPE)
    run_passes(graph, pipeline())
    once = operations(graph)
    run_passes(graph, pipeline())
    assert operations(graph) == once


@pytest.mark.parametrize("limit", range(0, 40, 3))
def test_every_prefix_of_the_rewrites_keeps_the_meaning(limit: int) -> None:
    graph = graph_of(network, SHAPE)
    inputs = values(SHAPE)
    expected = interpret(graph, inputs)[0]
    run_passes(graph, pipeline(), stop_after_rewrite=limit)
    found = interpret(graph, inputs)[0]
    np.testing.assert_allclose(found, expected, rtol=WHOLE_NETWORK.relative, atol=WHOLE_NETWORK.absolute)
