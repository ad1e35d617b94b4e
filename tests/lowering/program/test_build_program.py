"""Programs: equal kernels and equal constants once, places, sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from aot.codegen.ir.program import MemoryRegion
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.lowering.program.kernel_sources import MANY_CALLS
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.check import calls, compiled, conv, ints, weights
from tests.passes.check import graph_of, values


def layers(count: int, same: bool) -> object:
    def make(b: Builder, x: OutPort) -> OutPort:
        for n in range(count):
            x = b.Tanh(b.MatMul(x, weights(b, 16, 16, seed=0 if same else n)))
        return x

    return make


def test_equal_kernels_are_made_once() -> None:
    made = compiled(layers(5, same=False), (4, 16))  # type: ignore[arg-type]
    assert calls(made) == 5
    assert len(made.program.kernels) == 3  # callers' tensors are less aligned: the first and the last differ
    assert len(made.program.constants) == 5


def test_equal_constants_are_stored_once() -> None:
    made = compiled(layers(5, same=True), (4, 16))  # type: ignore[arg-type]
    assert len(made.program.constants) == 1
    assert made.program.constant_bytes == made.program.constants[0].nbytes


def test_convolutions_with_a_residual_share_a_kernel() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        for n in range(3):
            x = b.Relu(b.Add(conv(b, x, 8, seed=n), b.MatMul(x, weights(b, 5, 5))))
        return x

    made = compiled(make, (1, 8, 5, 5))
    assert len(made.program.kernels) < calls(made)


def test_constants_lie_apart_and_aligned() -> None:
    made = compiled(lambda b, x: b.Add(b.MatMul(x, weights(b, 7, 9)), weights(b, 9)), (4, 7))
    ends = 0
    for block in sorted(made.program.constants, key=lambda c: c.offset):
        assert block.offset % 64 == 0 and block.offset >= ends
        ends = block.offset + block.nbytes
    assert ends <= made.program.constant_bytes


def test_calls_name_their_layers_and_work() -> None:
    made = compiled(lambda b, x: b.Relu(b.MatMul(x, weights(b, 8, 16), name="fc"), name="act"), (4, 8))
    (call,) = made.program.calls
    assert {"fc", "act"} <= set(call.layers)
    assert 2 * 4 * 8 * 16 <= int(call.work) <= 2 * 4 * 8 * 16 + 2 * 4 * 16  # type: ignore[arg-type]
    assert call.args[0].region in (MemoryRegion.INPUT, MemoryRegion.CONSTANT, MemoryRegion.OUTPUT)


def test_names_of_interface() -> None:
    made = compiled(lambda b, x: b.Relu(x), (2, 3))
    assert [t.name for t in made.program.inputs] == ["x0"]
    assert made.program.inputs[0].shape == made.program.outputs[0].shape == (2, 3)


def test_lowering_is_deterministic() -> None:
    def text() -> str:
        return stages(graph_of(layers(3, same=False), (4, 16)), CompileOptions()).groups  # type: ignore[arg-type]

    assert text() == text()
    assert np.all([text() == text() for _ in range(3)])


def operations(size: int, step: int = 1, pictures: int = 1) -> int:
    """Operations of a convolution whose taps lie `step` apart, without the copy of its input."""
    around = {"pads_begin": (step, step), "pads_end": (step, step), "dilations": (step, step)}
    graph = graph_of(
        lambda b, x: b.Convolution(x, weights(b, 64, 64, 3, 3), strides=(1, 1), **around), (pictures, 64, size, size)
    )
    program = stages(graph, CompileOptions(level=None, target="x86-64-v3")).program
    return sum(c.work for c in program.calls if isinstance(c.work, int) and "convolution" in c.kernel)


def test_operations_of_all_pictures_and_phases_are_counted() -> None:
    """A convolution by Winograd runs its products for each picture, and for each phase of taps that lie apart."""
    one = operations(28)
    assert operations(28, pictures=4) == operations(56, step=2) == 4 * one > 4 * 28 * 28 * 64 * 64


def test_equal_layers_that_write_parts_of_one_value_share_a_kernel() -> None:
    """Products of rows that fill cache lines are joined: each writes where the Concat has its rows."""

    def make(b: Builder, x: OutPort) -> OutPort:
        parts = [b.Softmax(b.MatMul(x, weights(b, 16, 16, seed=n)), axis=1) for n in range(3)]
        return b.Tanh(b.MatMul(b.Concat(*parts, axis=0), weights(b, 16, 16, seed=3)))

    made = compiled(make, (4, 16))
    assert calls(made) == 10
    assert len(made.program.kernels) == 4  # products, rows, quotients that are joined, and the last product


@pytest.mark.parametrize(("parts", "kernels"), [(MANY_CALLS, 4), (MANY_CALLS - 1, MANY_CALLS + 2)])
def test_equal_layers_that_read_parts_of_one_value_share_a_kernel(parts: int, kernels: int) -> None:
    """A recurrent network that its exporter unrolled: each of a few parts keeps a kernel of its own."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Tanh(b.MatMul(x, weights(b, 16, 16, seed=1)))
        for n in range(1, parts + 1):
            begin, end, step, axis = (ints(b, k) for k in (n, n + 1, 1, 0))
            product = b.MatMul(b.Slice(x, begin, end, step, axis), weights(b, 16, 16))
            y = b.Tanh(b.Add(product, b.MatMul(y, weights(b, 16, 16, seed=1))))
        return y

    assert len(compiled(make, (MANY_CALLS + 1, 16)).program.kernels) == kernels


def test_winograd_convolutions_that_write_parts_of_one_value_share_a_kernel() -> None:
    """Tiles reach over the rows of the picture, as 14 in tiles of 3: their part is known along the channels alone."""

    def make(b: Builder, x: OutPort) -> OutPort:
        parts = [conv(b, x, 32, seed=n) for n in range(3)]
        return b.Tanh(b.Concat(*parts, axis=1))

    made = compiled(make, (1, 32, 14, 14))
    assert any(".winograd" in name for name in made.steps.values)
    assert calls(made) == 11
    assert len(made.program.kernels) == 5  # input, three of a convolution, result


@pytest.mark.parametrize(("exponentials", "sums"), [("x0", "total"), ("y0", "x0"), ("t1", "t0"), ("e", "y0")])
def test_layers_may_have_the_names_of_parameters_of_kernels(exponentials: str, sums: str) -> None:
    """Temporaries of a group have the names of their layers."""
    graph = Graph()
    b = Builder(graph)
    data = b(Parameter(DType.F32, (4, 40)), name="data")
    e = b.Exp(data, name=exponentials)
    share = b.Divide(e, b.ReduceSum(e, ints(b, 1), keep_dims=True, name=sums))
    b(Result(), b.Multiply(share, data), name="result")
    made = stages(graph, CompileOptions(level=None))
    assert {exponentials, sums} <= set(re.findall(r"(\w+): f32\[r", made.text("steps")))
    (x,) = values((4, 40))
    np.testing.assert_allclose(in_memory(made.built)(x)[0], np.exp(x) / np.exp(x).sum(1, keepdims=True) * x, rtol=1e-5)
