"""JSON of requests is what `json` reads, with arrays for numbers of tensors, and of answers what `json` reads back."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

from aot.runtime.abi import DType
from aot.runtime.loading.manifest import TensorInfo
from aot.serve.datatypes import to_json
from aot.serve.json_texts import fragment, json_tree, request_tree, written
from tests.fuzz.bodies import bodies

NAMES = {"language": "talk", "infer": "softmax", "input": "x", "shape": [1, 4], "data": [1, 2, 3, 4], "output": "y"}
DATA = "[] [1,2.5] [-0] [1,2e400] [1,true] [1,[2,3],[]] [[1,2],[3]] [[]] [18446744073709551615]"
TEXTS = (
    *(
        b"",
        b"{",
        b"3",
        b'"a"',
        b"[1]x",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"\xff": 1}',
        b'{"a": "\\ud83d"}',
    ),
    *(
        b'{"inputs": 3}',
        b'{"inputs": [3, {"data": [1]}]}',
        b'{"inputs": {"data": [1]}}',
        b'{"inputs": [], "inputs": [{}]}',
    ),
    b'{"inputs": [{"datatype": "FP32", "data": [1], "data": [2, 3]}]}',
    b'{"inputs": [{"datatype": "INT64", "data": [9007199254740993, 1.0]}]}',
    b'{"inputs": [{"datatype": "FP32"}, {"datatype": "FP32", "data": [[1]]}]}',
    *(
        b'{"inputs": [{"datatype": "%s", "shape": [%d], "data": %s}], "outputs": [{"name": "["}]}'
        % (kind, 2, data.encode())
        for kind in (b"FP32", b"BF16", b"INT64", b"UINT64", b"BYTES", b"x")
        for data in DATA.split()
    ),
)


def outcome(read: Any, text: bytes) -> Any:
    try:
        return read(text)
    except (ValueError, RecursionError) as error:
        return type(error).__name__, str(error)


def plain(value: Any) -> Any:
    """The value with lists for arrays, integers for whole floats, and texts for others, NaN and the negative zero."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | np.ndarray):
        return [plain(inner) for inner in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() and str(value) != "-0.0" else str(value)


@pytest.mark.parametrize("read", [request_tree, json_tree])
@pytest.mark.parametrize("text", [b"[" * 50_000, b'{"a":' * 101 + b"1" + b"}" * 101, b'"]]]", ' + b"[" * 101])
def test_deep_lists_are_refused_before_they_are_read(read: Any, text: bytes) -> None:
    with pytest.raises(ValueError, match="at most 100 deep in each other, got "):
        read(text)


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, '{"a": "' + "[{" * 101 + '\\"["}', "[" + "[1]," * 200 + "1]"])
def test_levels_are_counted_outside_of_strings(text: str) -> None:
    assert json_tree(text) == request_tree(text.encode()) == json.loads(text)


@pytest.mark.parametrize("seed", [None, 0, pytest.param(1, marks=pytest.mark.slow)])
def test_requests_are_what_json_reads(seed: int | None) -> None:
    texts = TEXTS if seed is None else (body for _, body in islice(bodies(seed, NAMES), 2000 if seed else 200))
    for text in (one for one in texts if not one.startswith(b"[[[")):  # one of these is too deep
        assert plain(outcome(request_tree, text)) == plain(outcome(json.loads, text)), text[:500]


@pytest.mark.parametrize(
    ("datatype", "data", "wanted"),
    [("FP32", "[1, 2.5]", "float64"), ("FP16", "[3]", "float64"), ("INT8", "[1]", "int64")],
)
def test_flat_numbers_become_an_array(datatype: str, data: str, wanted: str) -> None:
    text = f'{{"id": "a", "inputs": [{{"name": "x", "shape": [2], "datatype": "{datatype}", "data": {data}}}]}}'
    tree: Any = request_tree(text.encode())
    assert tree["inputs"][0]["data"].dtype == wanted


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        (DType.F32, np.float32([[0.1, -0.0], [1e-45, 3.4e38]])),
        (DType.F32, np.float32([[0.1, np.nan], [np.inf, 1]])),
        (DType.F32, np.float32([[1, 2, 3], [4, 5, 6]])[:, ::2]),
        (DType.F16, np.float16([[0.1, 65504]])),
        (DType.F64, np.array([[0.1, 5e-324]])),
        (DType.BF16, np.uint16([[0x3F81, 0x7F80]])),
        (DType.U64, np.uint64([[2**64 - 1]])),
        (DType.STRING, np.array([["a", "\ud83d"]], object)),
    ],
)
def test_answers_are_what_json_reads_back(dtype: DType, array: Any) -> None:
    info = TensorInfo("y", ("y",), dtype, array.shape, 64)
    found = json.loads(written({"data": to_json(info, array), "id": fragment("\ud83d")}))
    if dtype is DType.BF16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(np.array(found["data"], array.dtype), array.reshape(-1))
    assert found["id"] == "\ud83d"
