"""Contents of ONNX files beside operations: small types, functions, fixed values, old opsets."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import aot
from aot.options import CompileOptions
from aot.options.texts import values_of
from aot.runtime.errors import UsageError
from tests.frontends.onnx.models import model, run, save

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
        (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn),
        (TensorProto.INT4, ml_dtypes.int4),
        (TensorProto.UINT2, ml_dtypes.uint2),
    ],
)
def test_small_types_at_the_interface(tmp_path: Path, code: int, dtype: type) -> None:
    kinds = (TensorProto.FLOAT, code)
    nodes = [helper.make_node("Cast", [a], [b], to=k) for a, b, k in zip("xw", "wy", kinds, strict=True)]
    x = np.array([0, 1, 2, 3, -1, -2], np.float32).astype(dtype)
    compiled = aot.compile_model(save(tmp_path, model(nodes, {"x": x}, ["w", "y"], opset=25)), threads=1)
    outputs = compiled([x])
    np.testing.assert_array_equal(outputs[0], x.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(outputs[1]).view(dtype), x)


def test_a_function_stands_for_what_has_no_conversion(tmp_path: Path) -> None:
    made = model([helper.make_node("SwiGLU", ["x", "x"], ["y"], alpha=2.0)], {"x": X}, ["y"], opset=28)
    np.testing.assert_allclose(run(save(tmp_path, made), X)[0], X * X / (1 + np.exp(-2 * X)), rtol=1e-6)


def test_a_fixed_value_is_no_input(tmp_path: Path) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"])
    path = save(tmp_path, model([node], {"x": X, "k": np.array([2])}, ["v"]))
    compiled = aot.compile_model(path, CompileOptions(values=values_of(["k=[2]"])), threads=1)
    assert [t.name for t in compiled.inputs] == ["x"]
    np.testing.assert_array_equal(compiled([X])[0], X[:, :0:-1])


@pytest.mark.parametrize("text", ["k=2.5", "k=[1,2]", "n=2", "k=many", "k"])
def test_values_must_fit_the_model(tmp_path: Path, text: str) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"])
    path = save(tmp_path, model([node], {"x": X, "k": np.array([2])}, ["v"]))
    with pytest.raises(UsageError, match="value"):
        aot.compile_model(path, CompileOptions(values=values_of([text])))


def test_an_old_opset_is_converted(tmp_path: Path) -> None:
    made = model([helper.make_node("Not", ["x"], ["y"])], {"x": X > 2}, ["y"], opset=1)
    np.testing.assert_array_equal(run(save(tmp_path, made), X > 2)[0], X <= 2)
