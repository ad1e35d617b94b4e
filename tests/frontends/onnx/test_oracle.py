"""ONNX models by the references of the opset, against ONNX Runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import aot
from aot.runtime.errors import UsageError
from tests.frontends.onnx.models import Array, Numbers, model, run, save
from tests.frontends.onnx.oracle import expected

pytestmark = pytest.mark.oracle
NUMBERS = Numbers(7)
RNG, f32, u8, i8, i7 = NUMBERS.rng, NUMBERS.f32, NUMBERS.u8, NUMBERS.i8, NUMBERS.i7


def scalar(value: float) -> Array:
    return np.array(value, np.float32)


def same(path: Path, *inputs: Array, exact: bool = False) -> None:
    for found, wanted in zip(run(path, *inputs), expected(path, *inputs), strict=True):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        if exact:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layout", [0, 1])
def test_lstm_with_peepholes_and_lengths(tmp_path: Path, direction: str, layout: int) -> None:
    d = 2 if direction == "bidirectional" else 1
    held = {
        "w": f32(d, 16, 3),
        "r": f32(d, 16, 4),
        "b": f32(d, 32),
        "h": f32(d, 2, 4),
        "c": f32(d, 2, 4),
        "p": f32(d, 12),
    }
    x, lengths = f32(5, 2, 3), np.int32([5, 3])
    names, outputs = ["x", "w", "r", "b", "n", "h", "c", "p"], ["y", "h1", "c1"]
    node = helper.make_node("LSTM", names, outputs, hidden_size=4, direction=direction)
    path = save(tmp_path, model([node], {"x": x, "n": lengths}, outputs, held))
    if not layout:
        same(path, x, lengths)
        return
    wanted = expected(path, x, lengths)  # ONNX Runtime has no batches in front
    turned = held | {n: held[n].swapaxes(0, 1) for n in ("h", "c")}
    node = helper.make_node("LSTM", names, outputs, hidden_size=4, direction=direction, layout=1)
    x = x.swapaxes(0, 1)
    found = run(save(tmp_path, model([node], {"x": x, "n": lengths}, outputs, turned)), x, lengths)
    for got, right, axes in zip(found, wanted, ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2)), strict=True):
        np.testing.assert_allclose(got, right.transpose(axes), rtol=1e-4, atol=1e-5)


def test_products_of_all_integers_of_8_bits_are_exact(tmp_path: Path) -> None:
    a, b = u8(3, 64), i8(64, 5)
    a[0], b[:, 0] = 255, -128
    path = save(tmp_path, model([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"]))
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(run(path, a, b)[0], wanted)
    np.testing.assert_array_equal(aot.compile_model(path, threads=1)([a, b])[0], wanted)


def branch(name: str, *nodes: Any) -> Any:
    out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), name, [], [out])


@pytest.mark.parametrize("condition", [True, False])
def test_if_at_run_time_reads_values_around_it(tmp_path: Path, condition: bool) -> None:
    then = branch("then", helper.make_node("Mul", ["x", "x"], ["t"]))
    other = branch("other", helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Add", ["n", "w"], ["e"]))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    flag, x = np.array(condition), f32(2, 3)
    same(save(tmp_path, model([node], {"c": flag, "x": x}, ["y"], {"w": f32(3)})), flag, x)


def test_a_compiled_network_agrees_with_onnx_runtime(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    x = f32(1, 3, 8, 8)
    path = save(tmp_path, model(nodes, {"x": x}, ["y"], {"w": f32(8, 3, 3, 3)}))
    compiled = aot.compile_model(path, threads=1)
    assert [t.name for t in (*compiled.inputs, *compiled.outputs)] == ["x", "y"]
    np.testing.assert_allclose(np.asarray(compiled([x])[0]), run(path, x)[0], rtol=1e-4, atol=1e-5)


def test_a_branch_that_does_not_fit_the_shapes_must_not_run(tmp_path: Path) -> None:
    then = branch("then", helper.make_node("MatMul", ["x", "w"], ["t"]))
    other = branch("other", helper.make_node("MatMul", ["x", "v"], ["e"]))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    x, held = f32(2, 3), {"w": f32(3, 4), "v": f32(7, 4)}
    path = save(tmp_path, model([node], {"c": np.array(True), "x": x}, ["y"], held))
    np.testing.assert_allclose(run(path, np.array(True), x)[0], x @ held["w"], rtol=1e-5)
    with pytest.raises(UsageError, match="neither what it reads nor what follows fits the branch"):
        aot.compile_model(path)([np.array(False), x])
