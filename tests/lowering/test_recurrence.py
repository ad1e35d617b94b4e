"""Recurrences with large weights: those that read the number of a step stay loops, others become calls."""

from __future__ import annotations

import numpy as np
import pytest

from aot.driver import compile_model
from aot.ir.graph import Graph
from aot.ir.types import dtype_of
from aot.opset.infrastructure import Constant, Parameter, Result
from aot.opset.recurrent import LSTMSequence
from aot.options import CompileOptions
from runtime.abi import DType
from tests.cases import LOOSE

SIZE, BATCH, STEPS = 192, 2, 4


@pytest.mark.parametrize("lengths", [[4, 4], [2, 3]])
def test_lstm_with_large_weights(lengths: list[int]) -> None:
    rng = np.random.default_rng(1)
    gates, state = 4 * SIZE, (BATCH, 1, SIZE)
    shapes = [(BATCH, STEPS, 8), state, state, (1, gates, 8), (1, gates, SIZE), (1, gates)]
    x, h, c, *weights = (rng.uniform(-0.1, 0.1, shape).astype(np.float32) for shape in shapes)
    ends, graph = np.array(lengths, np.int32), Graph("lstm")
    given = enumerate((x, h, c, ends))
    inputs = [graph.add(Parameter(element_type=dtype_of(a), shape=a.shape), name=f"x{k}") for k, a in given]
    inputs += [graph.add(Constant(element_type=DType.F32), name=f"w{k}", data=w) for k, w in enumerate(weights)]
    op = LSTMSequence(SIZE)
    made = graph.add(op, *(node.out_port(0) for node in inputs), name="lstm", outputs=3)
    for port in made.out_ports().values():
        graph.add(Result(), port)
    found = compile_model(graph, CompileOptions(level=None), threads=2)(x, h, c, ends)
    for y, expected in zip(found.to_tuple(), op.evaluate(x, h, c, ends, *weights), strict=True):
        assert LOOSE.allows(np.asarray(y), expected)
