"""The arena: values that are alive together do not overlap, and room is shared otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.lowering.program.arena import ALIGN, LiveRange, live_ranges, place, plan
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.products.convolution import Convolution
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.check import compiled, weights

life = st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 6))


@given(st.lists(life, max_size=24))
def test_values_alive_together_lie_apart(found: list[tuple[int, int, int]]) -> None:
    lives = [LiveRange(f"v{n}", size * ALIGN, first, first + more) for n, (size, first, more) in enumerate(found)]
    offsets = place(lives)
    assert set(offsets) == {x.name for x in lives}
    for n, a in enumerate(lives):
        assert offsets[a.name] >= 0 and offsets[a.name] % ALIGN == 0
        for b in lives[:n]:
            together = a.first <= b.last and b.first <= a.last
            apart = offsets[a.name] + a.size <= offsets[b.name] or offsets[b.name] + b.size <= offsets[a.name]
            assert apart or not together


@given(st.lists(life, max_size=24))
def test_placing_is_not_worse_than_no_sharing(found: list[tuple[int, int, int]]) -> None:
    lives = [LiveRange(f"v{n}", size * ALIGN, first, first + more) for n, (size, first, more) in enumerate(found)]
    offsets = place(lives)
    end = max((offsets[x.name] + x.size for x in lives), default=0)
    alive = [sum(x.size for x in lives if x.first <= t <= x.last) for t in range(20)]
    assert max(alive) <= end <= sum(x.size for x in lives)


def test_placing_does_not_depend_on_the_order_of_equal_values() -> None:
    lives = [LiveRange(name, 64, 0, 3) for name in "abc"]
    assert place(lives) == place(lives[::-1])


def test_a_chain_needs_room_for_two_values() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        for seed in range(6):
            x = b.Tanh(b.MatMul(x, weights(b, 64, 64, seed=seed)))
        return x

    made = compiled(make, (8, 64))
    lives, room = live_ranges(made.steps), plan(made.steps)
    assert len(lives) == 5
    assert room.size == made.program.arena_bytes <= 2 * (8 * 64 * 4 + 2 * ALIGN)


def test_a_value_that_is_read_late_is_kept() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        first = y = b.MatMul(x, weights(b, 16, 16))
        for seed in range(1, 5):
            y = b.Tanh(b.MatMul(y, weights(b, 16, 16, seed=seed)))
        return b.Subtract(b.MatMul(y, y, transpose_b=True), b.MatMul(first, first, transpose_b=True))

    compiled(make, (8, 16))


@pytest.mark.slow
def test_values_whose_size_is_estimated_as_negative_lie_apart() -> None:
    """h - 2 (k - 1), where nothing is known of both, is taken for less than nothing."""
    graph, rng = Graph("dilated"), np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 9, 9), (2, 2, 3, 3), (2, 2, 2, 2))]
    shapes = [(*x.shape[:2], Var(f"h{k}"), Var(f"w{k}")) for k, x in enumerate(arrays)]
    x, *kernels = (graph.add(Parameter(DType.F32, s), name=f"x{k}").out_port(0) for k, s in enumerate(shapes))
    for w in kernels:
        x = graph.add(Convolution((1, 1), (0, 0), (0, 0), (2, 2)), x, w).out_port(0)
    graph.add(Result(), x)
    expected = interpret(copy_graph(graph), arrays)[0]
    found = compile_model(graph, CompileOptions(level=None), threads=1)(*arrays)
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
