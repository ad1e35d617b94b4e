"""Calls of equal layers share a thunk, and rows of the plan; each reads and writes its own memory."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.llvm.driver.plan import plan_function
from aot.codegen.llvm.driver.thunks import thunks
from aot.compilation.driver import compile_model, stages
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from tests.lowering.check import ints, weights
from tests.passes.check import graph_of

LAYERS = 5


def layers() -> Graph:
    """Equal layers with weights of their own: a product, a softmax, a residual."""

    def make(b: Builder, x: OutPort) -> OutPort:
        for n in range(LAYERS):
            y = b.MatMul(b.Relu(x), weights(b, 24, 24, seed=n))
            x = b.Add(b.Softmax(b.Add(y, b.ReduceMax(y, ints(b, 0), keep_dims=True)), axis=1), x)
        return x

    return graph_of(make, (6, 24))


@pytest.mark.parametrize("shape", [None, ("n", 24)], ids=["static", "dynamic"])
def test_equal_layers_share_thunks_and_compute_as_before(shape: tuple[str, int] | None) -> None:
    options = {} if shape is None else {"shapes": {"x0": shape}}
    program = stages(layers(), **options).program
    texts = thunks(program, {k.name: f"f{n}" for n, k in enumerate(program.kernels)}, "tag")
    made = sum("define internal void @call_" in text for text in texts)
    assert made <= len(program.calls) - 2 * (LAYERS - 2)
    x = np.random.default_rng(0).integers(-3, 4, (6, 24)).astype(np.float32)
    found = compile_model(layers(), threads=1, **options)(x)[0]
    assert np.allclose(found, interpret(layers(), [x])[0], atol=1e-5)


def test_kernels_whose_arguments_lie_in_equal_kinds_of_memory_share_a_thunk() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        for n, size in enumerate((24, 32, 40, 48, 56)):
            x = b.Relu(b.MatMul(x, weights(b, x.type.shape[1], size, seed=n)))
        return x

    program = stages(graph_of(make, (6, 24))).program
    texts = thunks(program, {k.name: f"f{n}" for n, k in enumerate(program.kernels)}, "tag")
    made = sum("define internal void @call_" in text for text in texts)
    assert made < len(program.kernels)
    (table,) = (text for text in texts if "@kernels_" in text and " = internal constant" in text)
    assert table.count("ptr @f") == len(program.calls) - made + 1


def test_a_plan_computes_each_row_once() -> None:
    program = stages(layers(), shapes={"x0": ("n", 24)}).program
    text = plan_function(program)
    assert text.count("store i64") < 2 * len(program.calls)
    assert f"@plan.rows = internal constant [{len(program.calls)} x i32]" in text
