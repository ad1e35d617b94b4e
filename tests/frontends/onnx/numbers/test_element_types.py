"""Element types as ONNX numbers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot.frontends.onnx.element_types import DTYPES, UNSUPPORTED_TYPES
from aot.frontends.unsupported import UnconvertedError
from aot.ir.types import numpy_dtype
from runtime.abi import DType
from tests.frontends.onnx.models import Array, converted, i64, model, save

X = np.ones((1, 2, 3, 4), np.float32)
U8 = np.zeros((3, 4), np.uint8)


def test_the_table_is_that_of_the_package() -> None:
    names = {code: TensorProto.DataType.Name(code) for code in TensorProto.DataType.values()}
    assert DTYPES.keys() | UNSUPPORTED_TYPES.keys() >= names.keys()
    assert {c: n for c, n in names.items() if c in UNSUPPORTED_TYPES} == UNSUPPORTED_TYPES
    for code, dtype in DTYPES.items():
        if dtype is not DType.STRING and dtype.bits >= 8:
            assert numpy_dtype(dtype).itemsize == helper.tensor_dtype_to_np_dtype(code).itemsize
        assert dtype.value[0] == names[code].lower()[0].replace("d", "f")


BROKEN: list[tuple[str, list[Array], dict[str, Any], str]] = [
    ("Cast", [X], {"to": TensorProto.COMPLEX64}, "Cast: to: element type COMPLEX64 is not supported"),
    ("Cast", [X], {"to": 99}, "Cast: to: element type 99 is not supported"),
    ("EyeLike", [U8], {"dtype": 99}, "EyeLike: dtype: element type 99 is not supported"),
    ("HannWindow", [i64(4)[0]], {"output_datatype": 99}, "output_datatype: element type 99 is not supported"),
    ("DequantizeLinear", [U8, np.float32(1)], {"output_dtype": TensorProto.INT64}, "a type of floats, got i64"),
    ("QuantizeLinear", [X, np.float32(1)], {"precision": TensorProto.INT32}, "a type of floats, got i32"),
    ("QuantizeLinear", [X, np.float32(1)], {"output_dtype": 99}, "output_dtype: element type 99 is not supported"),
    ("Attention", [X, X, X], {"softmax_precision": TensorProto.STRING}, "a type of floats, got string"),
]


@pytest.mark.parametrize(("kind", "inputs", "attrs", "text"), BROKEN, ids=[f"{c[0]}-{c[3]}" for c in BROKEN])
def test_what_is_no_type_is_an_error_that_names_the_node(
    tmp_path: Path, kind: str, inputs: list[Array], attrs: dict[str, Any], text: str
) -> None:
    given = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs)}
    node = helper.make_node(kind, list(given), ["y"], name="here", **attrs)
    with pytest.raises(UnconvertedError, match=rf"{kind} \(opset 24\) in 'here': {kind}: .*{text.split(': ', 1)[-1]}"):
        converted(save(tmp_path, model([node], given, ["y"], opset=24)))
