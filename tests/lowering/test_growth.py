"""Work of lowering grows with the number of steps, counted in calls instead of seconds."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import measure
from aot.codegen.ir.loops import Var, as_expr
from aot.compilation.driver import stages
from aot.ir.graph import Graph
from aot.lowering.fusion import fuse_steps
from aot.lowering.program.arena import LiveRange, place
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.elementwise.binary import Add
from aot.opset.elementwise.unary import Tanh
from aot.opset.image.grid import GridSample, Outside
from aot.opset.movement.movement import Concat
from aot.opset.products.matmul import MatMul
from aot.opset.reduction.softmax import Softmax
from aot.options import CompileOptions
from aot.runtime.abi import DType


def layers(count: int) -> Graph:
    """Softmax of a product and a sum, one after another, over a size that varies."""
    graph = Graph("layers")
    y = graph.add(Parameter(element_type=DType.F32, shape=(Var("n", 65), 8)), name="x").out_port(0)
    for _ in range(count):
        w = graph.add(Constant(element_type=DType.F32), data=np.eye(8, dtype=np.float32)).out_port(0)
        product = graph.add(MatMul(), y, w).out_port(0)
        y = graph.add(Add(), graph.add(Softmax(axis=1), product).out_port(0), y).out_port(0)
    graph.add(Result(), y)
    return graph


def parts(count: int) -> Graph:
    """A Concat of many parts, each of which is made in place, with numbers of this graph alone: none is known."""
    graph = Graph("parts")
    x = graph.add(Parameter(element_type=DType.F32, shape=(1, 8)), name="x").out_port(0)
    made = []
    for n in range(count):
        c = graph.add(Constant(element_type=DType.F32), data=np.full((1, 1), 1000 * count + n, np.float32)).out_port(0)
        made.append(graph.add(Add(), x, c).out_port(0))
    graph.add(Result(), graph.add(Concat(axis=0), *made).out_port(0))
    return graph


def kept(count: int) -> Graph:
    """Sums over a size that varies, all of which are alive until the last one is made."""
    graph = Graph("kept")
    y = graph.add(Parameter(element_type=DType.F32, shape=(Var("n", 65), 8)), name="x").out_port(0)
    made = []
    for n in range(count):
        w = graph.add(Constant(element_type=DType.F32), data=np.eye(8, dtype=np.float32) * n).out_port(0)
        y = graph.add(MatMul(), y, w).out_port(0)
        made.append(y)
    for product in reversed(made):
        y = graph.add(MatMul(transpose_b=True), y, product).out_port(0)
        y = graph.add(MatMul(), y, product).out_port(0)
    graph.add(Result(), y)
    return graph


def calls_of(run: Callable[[], object]) -> int:
    """Calls of functions and methods of the compiler."""
    profile = cProfile.Profile(builtins=False)
    profile.runcall(run)
    return sum(e.callcount for e in profile.getstats() if "/aot/" in getattr(e.code, "co_filename", ""))


@pytest.mark.slow
@pytest.mark.parametrize("network", [layers, parts, kept])
def test_twice_the_layers_take_at_most_twice_the_calls(network: Callable[[int], Graph]) -> None:
    first, few, many = (stages(network(n), CompileOptions(target="x86-64-v3")) for n in (20, 40, 80))
    _ = first.program  # choices for a layer are kept, for both
    for made in (few, many):
        _ = made.optimized
    assert calls_of(lambda: many.program) <= 2.2 * calls_of(lambda: few.program)


def test_refused_producers_of_a_long_chain_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    count, tried = 250, 0  # the merged expression is at its limit twice
    original = fuse_steps.merged_definition

    def counted(*args: Any) -> Definition:
        nonlocal tried
        tried += 1
        return original(*args)

    graph = Graph("chain")
    y = graph.add(Parameter(element_type=DType.F32, shape=(8,)), name="x").out_port(0)
    for _ in range(count):
        y = graph.add(Tanh(), y).out_port(0)
    graph.add(Result(), y)
    monkeypatch.setattr(fuse_steps, "merged_definition", counted)
    _ = stages(graph, CompileOptions(target="x86-64-v3")).steps
    assert tried <= 1.1 * count


@pytest.mark.slow
def test_equal_layers_of_varying_sizes_share_kernels() -> None:
    few, many = (stages(layers(n), CompileOptions(target="x86-64-v3")).program for n in (4, 12))
    assert len(many.kernels) == len(few.kernels) < len(few.calls)


def test_values_that_live_together_lie_apart() -> None:
    noise = np.random.default_rng(0)
    spans = enumerate(noise.integers(0, 30, (80, 2)))
    lives = [LiveRange(str(n), int(noise.integers(1, 50)), int(a), int(a + b)) for n, (a, b) in spans]
    offsets = place(lives)
    for a in lives:
        for b in lives:
            if a is not b and a.first <= b.last and b.first <= a.last:
                apart = offsets[a.name] + a.size <= offsets[b.name] or offsets[b.name] + b.size <= offsets[a.name]
                assert apart, (a, b)


def test_a_large_expression_over_dynamic_sizes_is_not_repeated_for_each_rest_of_a_tile() -> None:
    graph = Graph("grid")
    n, c, h, w, m, i, j = (Var(name, None) for name in "nchwmij")
    x = graph.add(Parameter(element_type=DType.F32, shape=(n, c, h, w)), name="x").out_port(0)
    places = graph.add(Parameter(element_type=DType.F32, shape=(m, 1, i, j)), name="g").out_port(0)
    sample = GridSample(padding_mode=Outside.REFLECTION)
    graph.add(Result(), graph.add(sample, x, places).out_port(0))
    loops = stages(graph, CompileOptions(target="x86-64-v4")).text("loops")
    assert 0 < loops.count("vector ") < 20


def test_room_for_many_values_is_no_deep_expression() -> None:
    """Expressions are walked by recursion: as deep as the network, they would end compilation at 1 000 layers."""
    shallow, deep = (measure(as_expr(stages(kept(n)).program.arena_bytes, DType.I64))[0] for n in (20, 80))
    assert deep <= shallow + 2
