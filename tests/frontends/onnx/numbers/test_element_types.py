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
def test_invalid_types_are_errors_that_name_the_node(
    tmp_path: Path, kind: str, inputs: list[Array], attrs: dict[str, Any], text: str
) -> None:
    given = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs)}
    node = helper.make_node(kind, list(given), ["y"], name="here", **attrs)
    with pytest.raises(UnconvertedError, match=rf"{kind} \(opset 24\) in 'here': {kind}: .*{text.split(': ', 1)[-1]}"):
        converted(save(tmp_path, model([node], given, ["y"], opset=24)))


NUMBERS = np.array([-20, -8.5, -7.5, -1.5, -0.6, -0.5, 0.5, 0.6, 1.5, 2.5, 6.5, 7.5, 15.5, 17, 300, np.nan], np.float32)
SOURCES = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "FLOAT8E5M2")


def low_bits(source: str, to: str) -> Array:
    """Return the numbers as a type holds them, rounded to integers, of which these bits stay."""
    bits = int(to[-1])
    floats = NUMBERS.astype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, source))).astype(np.float32)
    low = np.rint(np.nan_to_num(floats)).astype(np.int64) & (2**bits - 1)
    return np.where(to.startswith("I") & (low >> bits - 1 == 1), low - 2**bits, low).astype(np.float32)


@pytest.mark.parametrize("to", ["INT4", "UINT4", "INT2", "UINT2"])
def test_floats_become_short_integers_by_rounding_of_which_the_low_bits_stay(tmp_path: Path, to: str) -> None:
    """At run time, and folded; each case has an input of its own, so that none is another one's."""
    code = getattr(TensorProto, to)
    nodes = [helper.make_node("Constant", [], ["like"], value=helper.make_tensor("like", code, [1], [1]))]
    cases = [(source, kind, where) for source in SOURCES for kind in ("Cast", "CastLike") for where in "xk"]
    for n, (source, kind, where) in enumerate(cases):
        like, given = (["like"], {}) if kind == "CastLike" else ([], {"to": code})
        nodes += [
            helper.make_node("Cast", [f"{where}{n}"], [f"a{n}"], to=getattr(TensorProto, source), saturate=0),
            helper.make_node(kind, [f"a{n}", *like], [f"b{n}"], **given),
            helper.make_node("Cast", [f"b{n}"], [f"y{n}"], to=TensorProto.FLOAT),
        ]
    fed = {f"x{n}": NUMBERS for n, case in enumerate(cases) if case[-1] == "x"}
    held = {f"k{n}": NUMBERS for n, case in enumerate(cases) if case[-1] == "k"}
    made = model(nodes, fed, [f"y{n}" for n in range(len(cases))], held, opset=25)
    found = aot.compile_model(save(tmp_path, made))(fed)
    for n, case in enumerate(cases):
        np.testing.assert_array_equal(found[n], low_bits(case[0], to), str(case))
