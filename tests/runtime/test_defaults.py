"""Constants that a user may feed: optional inputs, whose default lies in the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import aot
import runtime
from aot import cli
from aot.options import CompileOptions
from aot.runtime.errors import UsageError

RNG = np.random.default_rng(0)
X, W, B = (RNG.standard_normal(s).astype(np.float32) for s in ((2, 3), (3, 4), (4,)))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x w + b; both constants are listed as inputs, too."""
    sizes = {"x": X.shape, "w": W.shape, "b": B.shape}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(W, "w"), numpy_helper.from_array(B, "b")],
    )
    path = tmp_path_factory.mktemp("defaults") / "m.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(made.SerializeToString())
    return path


@pytest.fixture(scope="module", params=["memory", "library", "external"])
def fed(request: pytest.FixtureRequest, model: Path) -> runtime.CompiledModel:
    if request.param == "memory":
        return aot.compile_model(model, CompileOptions(feeds=("w", "b")))
    library = model.with_suffix(f".{request.param}.so")
    weights = "external" if request.param == "external" else "embedded"
    options = ["--feed", "w", "--feed", "b", "--weights", weights]
    assert CliRunner().invoke(cli.app, ["compile", str(model), "-o", str(library), *options]).exit_code == 0
    return runtime.load(library)


def same(found: object, wanted: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


def test_omitted_inputs_have_their_defaults(fed: runtime.CompiledModel) -> None:
    """Each inference of its own: what was given before is not what a later one reads."""
    assert [(i.name, i.default is not None) for i in fed.inputs] == [("x", False), ("w", True), ("b", True)]
    same(fed({"x": X})[0], X @ W + B)
    same(fed({"x": X, "w": W * 2})[0], X @ (W * 2) + B)
    same(fed({"x": X, "b": B + 1})[0], X @ W + B + 1)
    same(fed(X)[0], X @ W + B)
    same(fed([X, W * 3])[0], X @ (W * 3) + B)


def test_set_tensors_stay_until_inputs_are_given(fed: runtime.CompiledModel) -> None:
    request = fed.create_infer_request()
    request.set_tensor("x", X)
    same(request.infer()[0], X @ W + B)
    request.set_tensor("w", W * 2)
    same(request.infer()[0], X @ (W * 2) + B)


def test_required_inputs_are_named(fed: runtime.CompiledModel, model: Path) -> None:
    with pytest.raises(UsageError, match="input 'x': needs an array"):
        fed.create_infer_request().infer({"w": W})
    with pytest.raises(UsageError, match="inputs: 1 to 3 must be given, got 0"):
        fed.create_infer_request().infer([])
    with pytest.raises(UsageError, match="--feed: must be a constant of the model, such as b, w, got 'v'"):
        aot.compile_model(model, CompileOptions(feeds=("v",)))


def test_inputs_are_constants_without_the_option(model: Path) -> None:
    found = aot.compile_model(model)
    assert [i.name for i in found.inputs] == ["x"]
    same(found(X)[0], X @ W + B)


def test_commands_list_and_use_defaults(model: Path, tmp_path: Path) -> None:
    library = tmp_path / "m.so"
    assert CliRunner().invoke(cli.app, ["compile", str(model), "-o", str(library), "--feed", "w"]).exit_code == 0
    assert "w: f32[3,4], optional" in CliRunner().invoke(cli.app, ["info", str(library)]).output
    np.save(tmp_path / "x.npy", X)
    ran = CliRunner().invoke(cli.app, ["run", str(library), str(tmp_path / "x.npy")])
    assert ran.exit_code == 0 and "float32[2, 4]" in ran.output and f"max {(X @ W + B).max():.4g}"[:8] in ran.output
    timed = CliRunner().invoke(cli.app, ["bench", str(library), "--seconds", "0.01"])
    assert timed.exit_code == 0 and "median" in timed.output
