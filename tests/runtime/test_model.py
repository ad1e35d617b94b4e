"""Calling a model: how inputs are given, what is refused and in which words, sizes that vary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.reduction.reduction import ReduceSum
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.describe import hint
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Dim

X = np.arange(1000, dtype=np.float32)


@pytest.fixture(scope="module")
def model(chain_so: Path) -> runtime.CompiledModel:
    return runtime.load(chain_so, threads=1)


def test_inputs_in_every_form(model: runtime.CompiledModel) -> None:
    for given in (X, [X], (X,), {"x": X}, {"in": X}, {0: X}, {model.inputs[0]: X}):
        np.testing.assert_array_equal(model(given)[0], X * 32)
    np.testing.assert_array_equal(model(x=X)[0], X * 32)
    np.testing.assert_array_equal(model(list(range(1000)) and [list(range(1000))])[0], X * 32)


def test_inputs_that_must_be_copied(model: runtime.CompiledModel) -> None:
    for shift in range(1, 4):
        space = np.zeros(1000 + shift, np.float32)
        space[shift:] = X
        np.testing.assert_array_equal(model(space[shift:])[0], X * 32)
    np.testing.assert_array_equal(model(np.repeat(X, 2)[::2])[0], X * 32)


def test_outputs_are_found_by_index_name_and_port(model: runtime.CompiledModel) -> None:
    outputs = model(X)
    assert list(outputs) == ["y"]
    assert outputs[0] is outputs["y"] is outputs[model.outputs[0]] is outputs.to_tuple()[0]
    assert "y" in outputs
    assert "x" not in outputs
    assert outputs[-1] is outputs[0] and repr(outputs) == "Outputs(y: f32[1000])"
    for wrong in (1, -2):
        with pytest.raises(UsageError, match="output: the index must be below 1, got"):
            outputs[wrong]
        with pytest.raises(UsageError, match="input: the index must be below 1, got"):
            model.input(wrong)
    again = model(2 * X)
    assert again[0] is not outputs[0]
    np.testing.assert_array_equal(outputs[0], X * 32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X.astype(np.float64), r"input 'x': expected f32\[1000\], got f64\[1000\]"),
        (X[:10], r"input 'x': expected f32\[1000\], got f32\[10\]"),
        (X.reshape(1, 1000), r"input 'x': expected f32\[1000\], got f32\[1,1000\]"),
        (X.astype(">f4"), "of the other byte order"),
        (X.astype(np.int32), r"got i32\[1000\]"),
        ([X, X], "inputs: 1 must be given, got 2"),
        ({"q": X}, "input: must be one of x, got 'q'"),
        ({3: X}, "input: the index must be below 1, got 3"),
        ({}, "input 'x': needs an array, got none"),
        (None, r"input 'x': expected f32\[1000\], got"),
        (["word"], "input 'x': expected f32"),
    ],
)
def test_wrong_inputs_are_refused(chain_so: Path, given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        runtime.load(chain_so, threads=1)(given)


def test_a_wrong_type_comes_with_its_conversion(chain_so: Path) -> None:
    for given, step in ((X.astype(np.float64), "x.astype('float32')"), (X[:10], "aot info MODEL")):
        with pytest.raises(UsageError) as caught:
            runtime.load(chain_so, threads=1)([given])
        assert step in hint(caught.value)


def test_a_request_writes_to_the_array_that_was_set(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    request.set_tensor("x", X)
    space = np.zeros(1016, np.float32)
    start = -space.ctypes.data % 64 // 4
    own = space[start : start + 1000]
    request.set_tensor("y", own)
    assert request.infer()[0] is own
    np.testing.assert_array_equal(own, X * 32)
    np.testing.assert_array_equal(request.get_tensor("y"), X * 32)
    np.testing.assert_array_equal(request.get_tensor("x"), X)


def test_profiling_gives_a_time_for_each_call(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    request.enable_profiling()
    request.infer(X)
    times = request.get_profiling_info()
    assert [t.layers for t in times] == [(f"layer{i}",) for i in range(5)]
    assert all(0 <= t.seconds < 1 for t in times)


def test_a_wrong_property_is_refused(model: runtime.CompiledModel) -> None:
    assert model.get_property("INFERENCE_NUM_THREADS") == 1
    assert model.get_property("MODEL_NAME") == "chain net"
    with pytest.raises(UsageError, match="got MODEL_NAME, which is read-only"):
        model.set_property({"MODEL_NAME": "other"})
    with pytest.raises(UsageError, match="threads: must be from 1 to 512, got 0"):
        model.threads = 0


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_that_vary(varying_so: Path, threads: int) -> None:
    model = runtime.load(varying_so, threads=threads)
    assert model.inputs[0].shape == (Dim("n", 1, 4096),)
    assert model.outputs[0].shape == (Dim("2 * n"),) or model.outputs[0].shape == (Dim("n * 2"),)
    for n in (5, 4096, 1, 100, 100, 33):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(model(x, np.zeros((n, 4), np.float32))[0], np.tile(x * 3, 2))


def test_an_output_of_a_fixed_size_from_inputs_that_vary() -> None:
    graph = Graph("total")
    x = graph.add(Parameter(DType.F32, (Var("n"),)), name="x").out_port(0)
    axes = graph.add(Constant(DType.I64), name="axes", data=np.array([0])).out_port(0)
    graph.add(Result(), graph.add(ReduceSum(), x, axes, name="total").out_port(0))
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    assert [int(model(X[:n])[0]) for n in (5, 1000, 1)] == [10, 499500, 0]


def test_sizes_that_do_not_fit(varying_so: Path) -> None:
    model = runtime.load(varying_so, threads=1)
    with pytest.raises(UsageError, match="input 'x': dimension 0 'n' must be 1 to 4096, got 5000"):
        model(np.zeros(5000, np.float32), np.zeros((5000, 4), np.float32))
    x, z = np.arange(3, dtype=np.float32), np.zeros((3, 4), np.float32)
    for _ in range(2):  # what was refused leaves no trace
        np.testing.assert_array_equal(model(x, z)[0], np.tile(x * 3, 2))
        with pytest.raises(UsageError, match="input 'z' must be 3, as 'n' is in dimension 0 of input 'x', got 4"):
            model(x, np.zeros((4, 4), np.float32))
        with pytest.raises(UsageError, match="input 'z' must be 999, as 'n' is in dimension 0 of input 'x', got 4"):
            model(np.zeros(999, np.float32), np.zeros((4, 4), np.float32))
