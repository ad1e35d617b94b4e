"""Recurrences over a time that run time tells: a loop whose body is kernels, with large weights all threads share."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.codegen.llvm.driver.control import control_functions
from aot.codegen.llvm.driver.plan import traversals
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.opset.recurrent.recurrent import Direction, GRUSequence, LSTMSequence, RNNSequence
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.dynamic.networks import check, parameter, result, weights

INPUTS, HIDDEN = 6, 192
LAYERS = {"rnn": (RNNSequence, 1, 1), "gru": (GRUSequence, 3, 1), "lstm": (LSTMSequence, 4, 2)}


def recurrent(kind: str, direction: str, *, lengths: bool, hidden: int = HIDDEN) -> Graph:
    """x[n, t, 6] through one layer; without `lengths` each sequence is as long as the tensor."""
    layer, gates, states = LAYERS[kind]
    count = 2 if direction == "bidirectional" else 1
    graph = Graph(kind)
    build = Builder(graph)
    x = parameter(graph, "x", Var("n", None, 1), Var("t", None, 1), INPUTS)
    size = build.ShapeOf(x)
    batch, time = (build.Gather(size, build.const([k], DType.I64), build.const(0, DType.I64)) for k in (0, 1))
    each = parameter(graph, "lengths", Var("n", None, 1), dtype=DType.I64) if lengths else build.Broadcast(time, batch)
    shape = build.Concat(batch, build.const([count, hidden], DType.I64), axis=0)
    first = [build.Broadcast(build.const(0.25 * k, DType.F32), shape) for k in range(states)]
    rows = gates * hidden
    sides = [weights(build, count, rows, n, seed=n) for n in (INPUTS, hidden)]
    op = layer(hidden_size=hidden, direction=Direction(direction))
    found = build.node(op, x, *first, each, *sides, weights(build, count, rows), outputs=1 + states)
    for port in found.out_ports().values():
        result(graph, port)
    return graph


@pytest.mark.parametrize(
    ("kind", "direction", "lengths"),
    [("lstm", "bidirectional", True), ("gru", "reverse", True), ("rnn", "forward", False), ("gru", "forward", False)],
)
def test_a_loop_over_time_calls_kernels(kind: str, direction: str, lengths: bool) -> None:
    make = partial(recurrent, kind, direction, lengths=lengths)
    asked = stages(make(), CompileOptions(level=None))
    assert f"{kind}recurrence" in asked.groups
    assert ".t in t" in asked.groups
    one, two, oracle = in_memory(asked.built, 1), in_memory(asked.built, 2), make()
    for n, t in ((1, 5), (2, 1), (3, 9), (9, 4)):
        arrays = [np.random.default_rng(n).standard_normal((n, t, INPUTS)).astype(np.float32)]
        arrays += [np.arange(n, dtype=np.int64) % t + 1] if lengths else []
        check(one, oracle, arrays)
        alone, shared = one(arrays), two(arrays)
        assert all(np.array_equal(alone[i], shared[i]) for i in range(len(one.outputs)))


def test_threads_take_blocks_of_sequences() -> None:
    make = partial(recurrent, "gru", "forward", lengths=True, hidden=16)
    asked = stages(make(), CompileOptions(level=None))
    assert "tile[b:4/short] parallel=b" in asked.groups
    for n, t in ((1, 3), (9, 4)):
        arrays = [np.random.default_rng(n).standard_normal((n, t, INPUTS)).astype(np.float32)]
        check(in_memory(asked.built, 2), make(), [*arrays, np.arange(n, dtype=np.int64) % t + 1])


def test_few_rows_have_kernels_of_their_own_over_the_same_weights() -> None:
    asked = stages(recurrent("lstm", "forward", lengths=False), CompileOptions(level=None, target="x86-64-v3"))
    assert "if select(n<=2,1,0)" in asked.groups
    assert asked.program.constant_bytes < 1.1 * 4 * HIDDEN * HIDDEN * 4


def test_rows_that_are_loaded_as_vectors_compile() -> None:
    asked = stages(
        recurrent("lstm", "forward", lengths=False, hidden=96), CompileOptions(level=None, target="aarch64-v8.2")
    )
    assert "tile[b:1 g:32/cut k:4/cut] lanes[g:4] pack[w0.0:16(0,1)] row_vectors=k" in asked.groups
    assert asked.built


def test_each_iteration_goes_the_other_way_through_large_weights() -> None:
    program = stages(recurrent("lstm", "forward", lengths=False), CompileOptions(level=None)).program
    assert 2 in traversals(program)
    turns = re.findall(r"store i64 %turned\d+, ptr %turn.at", "\n".join(control_functions(program, "lstm")))
    assert len(turns) == 1, "where the loop jumps back"


def test_lengths_that_are_the_time_cost_nothing() -> None:
    asked = stages(recurrent("lstm", "forward", lengths=False), CompileOptions(level=None))
    assert "min(" not in asked.groups
