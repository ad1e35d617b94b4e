"""Element types as ONNX numbers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import aot
from aot.frontends.onnx.element_types import DTYPES, UNSUPPORTED_TYPES
from aot.frontends.unsupported import UnconvertedError
from aot.ir.types import numpy_dtype
from aot.runtime.abi import DType
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


NUMBERS = np.array([-20, -8.5, -7.5, -1.5, -0.6, -0.5, 0.5, 0.6, 1.5, 2.5, 6.5, 7.5, 15.5, 17, 300, np.nan], np.float32)
SOURCES = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "FLOAT8E5M2")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("to", ["INT4", "UINT4", "INT2", "UINT2"])
@pytest.mark.parametrize("kind", ["Cast", "CastLike"])
def test_floats_become_short_integers_by_rounding_of_which_the_low_bits_stay(
    tmp_path: Path, source: str, to: str, kind: str
) -> None:
    code = getattr(TensorProto, to)
    bits, signed = int(to[-1]), to.startswith("I")
    floats = NUMBERS.astype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, source))).astype(np.float32)
    whole = np.rint(np.nan_to_num(floats)).astype(np.int64)
    low = whole & (2**bits - 1)
    right = np.where(signed & (low >> bits - 1 == 1), low - 2**bits, low).astype(np.float32)
    like = helper.make_tensor("like", code, [1], [1])
    nodes = [helper.make_node("Constant", [], ["like"], value=like)]
    for x, y in (("x", "y"), ("k", "z")):  # at run time, folded
        nodes += [helper.make_node("Cast", [x], [f"{x}0"], to=getattr(TensorProto, source), saturate=0)]
        given: dict[str, Any] = {"to": code} if kind == "Cast" else {}
        nodes += [helper.make_node(kind, [f"{x}0", *(["like"] if kind == "CastLike" else [])], [f"{x}1"], **given)]
        nodes += [helper.make_node("Cast", [f"{x}1"], [y], to=TensorProto.FLOAT)]
    made = model(nodes, {"x": NUMBERS}, ["y", "z"], {"k": NUMBERS}, opset=25)
    found = aot.compile_model(save(tmp_path, made))(NUMBERS)
    np.testing.assert_array_equal(found[0], right)
    np.testing.assert_array_equal(found[1], right)
