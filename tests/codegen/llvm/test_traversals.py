"""Calls that traverse their weights in alternating order, which changes no result."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.printer import kernel_text
from aot.codegen.llvm.driver.plan import traversals
from aot.codegen.target import Target
from aot.compilation.driver import compile_model, stages
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.options import CompileOptions
from tests.lowering.check import weights
from tests.passes.check import graph_of


def dense_layers(rows: int) -> Graph:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 512, 160)  # 320 KB
        return b.MatMul(b.MatMul(b.MatMul(x, w), weights(b, 160, 64)), weights(b, 64, 512))

    return graph_of(make, (rows, 512))


def same_weights() -> Graph:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 512, 512)
        return b.MatMul(b.MatMul(b.MatMul(x, w), w), w)

    return graph_of(make, (1, 512))


def test_large_weights_that_are_read_once_swing() -> None:
    assert traversals(stages(dense_layers(1)).program) == [2, 0, 0], "the others are small"
    assert traversals(stages(dense_layers(64)).program) == [0, 0, 0], "panels that are fetched ahead know one way"


def test_weights_whose_units_are_counted_swing_only_if_they_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """480 KB: nearly what the nearest cache of this target keeps."""
    monkeypatch.setattr(Target, "fetches_from_l3", True)
    target = CompileOptions(target="x86-64-v3")

    def once(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, weights(b, 512, 240))

    def twice(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 512, 240)
        return b.Concat(b.MatMul(x, w), b.MatMul(b.Relu(x), w), axis=0)

    assert traversals(stages(graph_of(once, (1, 512)), target).program) == [0]
    assert {2, 3} <= set(traversals(stages(graph_of(twice, (1, 512)), target).program))


def test_next_layers_are_prefetched_only_if_l3_keeps_all_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MB of it: one layer of 480 KB alone, or with another one of 8 MB."""
    monkeypatch.setattr(Target, "fetches_from_l3", True)
    target = CompileOptions(target="x86-64-v3")

    def more(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.MatMul(x, weights(b, 512, 240)), weights(b, 240, 9000))

    def less(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.MatMul(x, weights(b, 512, 240)), weights(b, 240, 9))

    few, many = (kernel_text(stages(graph_of(make, (1, 512)), target).program.kernels[0]) for make in (less, more))
    assert ("prefetch" in few, "prefetch" in many) == (True, False)


def test_each_call_over_the_same_weights_goes_the_other_way() -> None:
    assert traversals(stages(same_weights()).program) == [2, 3, 2]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_turns_change_no_result(threads: int) -> None:
    model = compile_model(same_weights(), threads=threads)
    request = model.create_infer_request()
    x = np.random.default_rng(0).standard_normal((1, 512), np.float32)
    first = compile_model(same_weights(), threads=1)(x)[0]
    for _ in range(40):
        np.testing.assert_array_equal(request.infer([x])[0], first)
