"""Recurrences: many sequences are shared by threads; of few, with large weights, each step becomes calls.

Those that read the number of a step stay loops.
"""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Group
from aot.codegen.ir.program import MemoryRegion
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.graph import Graph
from aot.ir.types import dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.recurrent.recurrent import LSTMSequence
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.cases import LOOSE

STEPS = 4


@pytest.mark.parametrize(
    ("size", "lengths", "shared"),
    [(192, [4, 4], ["t"]), (192, [2, 3], ["t"]), (16, [4] * 9, ["b"]), (16, [1, 2, 3, 4] * 4, ["b"])],
)
def test_lstm(size: int, lengths: list[int], shared: list[str]) -> None:
    rng, batch = np.random.default_rng(1), len(lengths)
    gates, state = 4 * size, (batch, 1, size)
    shapes = [(batch, STEPS, 8), state, state, (1, gates, 8), (1, gates, size), (1, gates)]
    x, h, c, *weights = (rng.uniform(-0.1, 0.1, shape).astype(np.float32) for shape in shapes)
    ends, graph = np.array(lengths, np.int32), Graph("lstm")
    given = enumerate((x, h, c, ends))
    inputs = [graph.add(Parameter(element_type=dtype_of(a), shape=a.shape), name=f"x{k}") for k, a in given]
    inputs += [graph.add(Constant(element_type=DType.F32), name=f"w{k}", data=w) for k, w in enumerate(weights)]
    op = LSTMSequence(size)
    made = graph.add(op, *(node.out_port(0) for node in inputs), name="lstm", outputs=3)
    for port in made.out_ports().values():
        graph.add(Result(), port)
    stage = stages(graph, CompileOptions(level=None))
    assert [w.axes[0].name for s in stage.steps.steps for w in s.works if isinstance(w, Group)] == shared
    found = in_memory(stage.built, threads=2)(x, h, c, ends)
    for y, expected in zip(found.to_tuple(), op.evaluate(x, h, c, ends, *weights), strict=True):
        assert LOOSE.allows(np.asarray(y), expected)


def test_constants_that_move_with_time_stay_as_they_are() -> None:
    """Gates of a constant input, all of which f16 holds: 772 in a step, which in f16 would be worse aligned."""
    size, rng = 193, np.random.default_rng(2)
    x = np.eye(STEPS, 8, dtype=np.float32)[None]
    wide, deep = (rng.uniform(-0.1, 0.1, (1, 4 * size, n)).astype(np.float16) for n in (8, size))
    h = rng.uniform(-0.1, 0.1, (1, 1, size)).astype(np.float32)
    fixed = (x, h, np.zeros_like(h), np.array([STEPS], np.int32), wide, deep, np.zeros((1, 4 * size), np.float32))
    data = [a.astype(np.float32) if a.dtype == np.float16 else a for a in fixed]
    graph = Graph("lstm")
    given = graph.add(Parameter(element_type=DType.F32, shape=h.shape), name="h")
    inputs = [graph.add(Constant(element_type=dtype_of(a)), name=f"c{k}", data=a) for k, a in enumerate(data)]
    inputs[1] = given
    op = LSTMSequence(size)
    made = graph.add(op, *(node.out_port(0) for node in inputs), name="lstm", outputs=3)
    graph.add(Result(), made.out_port(0))
    stage = stages(graph, CompileOptions(level=None, small_weights=True))
    moving = {name for s in stage.steps.steps if s.repeat for name, by in s.repeat.shifts.items() if by}
    constant = [v for name, v in stage.steps.values.items() if v.region is MemoryRegion.CONSTANT and name in moving]
    assert [v.buffer.dtype for v in constant] == [DType.F32]
    assert LOOSE.allows(np.asarray(in_memory(stage.built, threads=2)(h)[0]), op.evaluate(*data)[0])
