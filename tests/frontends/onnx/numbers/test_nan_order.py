"""NaN in selections: larger than every number, ties by index, as in ONNX Runtime."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import aot
from tests.frontends.onnx.models import Array, i64, model, save
from tests.frontends.onnx.oracle import expected

NAN = np.nan
ROWS = [
    [1, NAN, 3, 2, 0, 7, -1, 4, 3, 9, -2, 5],
    [NAN, 1, 3, 2, 0, 3, 3, 8, NAN, 2, 4, NAN],
    [0, 1, 3, 2, 3, 3, 6, 1, 2, -np.inf, np.inf, NAN],
    [NAN] * 12,
    [NAN] * 10 + [np.inf, -np.inf],
    [5, 3, 3, 1, 9, 8, 2, 4, 4, 0, 7, 6],
]


@pytest.mark.parametrize(("dtype", "varying"), [("f4", False), ("f4", True), ("f2", False), ("f8", True)])
def test_topk_orders_nan_behind_all_numbers(tmp_path: Path, dtype: str, varying: bool) -> None:
    """A list of a few, in lanes along axis 0, and a heap of many."""
    x = np.array(ROWS, dtype)
    nodes, inputs = list[onnx.NodeProto](), {"x1": x, "x0": np.ascontiguousarray(x.T)}
    for n, (axis, k) in enumerate(product((1, 0), (1, 3, 11))):
        largest = (n + varying) % 2  # each count along both axes, each with both orders
        name = f"{axis}{largest}{k}"
        nodes.append(
            helper.make_node("TopK", [f"x{axis}", f"k{k}"], [f"v{name}", f"i{name}"], axis=axis, largest=largest)
        )
    given = {n: (a.dtype, (f"{n}n", f"{n}m")) if varying else a for n, a in inputs.items()}
    outputs = [o for node in nodes for o in node.output]
    path = save(tmp_path, model(nodes, given, outputs, {f"k{k}": i64(k) for k in (1, 3, 11)}))
    found = aot.compile_model(path)(list(inputs.values()))
    for name, e in zip(outputs, expected(path, *inputs.values()), strict=True):
        np.testing.assert_array_equal(found[name], e, name)


@pytest.mark.parametrize("sort", [1, 0])
@pytest.mark.parametrize("k", [2, 10])
def test_topk_sorted_or_not_selects_the_same(tmp_path: Path, sort: int, k: int) -> None:
    x = np.array(ROWS, np.float32)
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"], sorted=sort)]
    path = save(tmp_path, model(nodes, {"x": x}, ["v", "i"], {"k": i64(k)}))
    found, ours = expected(path, x)[1], np.asarray(aot.compile_model(path)([x])[1])
    np.testing.assert_array_equal(np.sort(found), np.sort(ours))


def numpy_argmax(x: Array, last: int) -> Array:
    return x.shape[1] - 1 - np.argmax(x[:, ::-1], 1) if last else np.argmax(x, 1)


@pytest.mark.parametrize("last", [0, 1])
def test_argmax_is_the_place_of_nan(tmp_path: Path, last: int) -> None:
    """NumPy is the oracle: ONNX Runtime's answer depends on whether NaN comes first."""
    x = np.array(ROWS, np.float32)
    nodes = [helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)]
    found = aot.compile_model(save(tmp_path, model(nodes, {"x": x}, ["y"])))([x])[0]
    assert found.tolist() == numpy_argmax(x, last).tolist()
