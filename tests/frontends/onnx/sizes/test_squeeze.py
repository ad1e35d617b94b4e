"""Squeeze without axes over sizes that vary: ranks are those of ONNX Runtime, or an error says what settles them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

import aot
from aot.runtime.errors import UnsupportedError, UsageError
from tests.frontends.onnx.models import Array, i64, model, save
from tests.frontends.onnx.oracle import expected

FLAT = {"flat": i64(-1), "axis": i64(0)}
STATES = {
    "w": np.ones((1, 12, 4), np.float32) / 9,
    "r": np.ones((1, 12, 3), np.float32) / 9,
    "h": np.zeros((1, 1, 3), np.float32),
}
SOFTMAX = [helper.make_node("Softmax", ["s"], ["p"], axis=-1), helper.make_node("Reshape", ["p", "flat"], ["y"])]
LSTM = helper.make_node("LSTM", ["x", "w", "r", "", "", "h", "h"], ["o"], hidden_size=3)


def squeeze(source: str, to: str) -> NodeProto:
    return helper.make_node("Squeeze", [source], [to])


def built(
    folder: Path,
    nodes: list[NodeProto],
    shape: tuple[Any, ...],
    constants: dict[str, Array],
    opset: int = 17,
    rank: int | None = None,
) -> Path:
    """`rank`: of the output, as the file declares it."""
    made = model(nodes, {"x": (np.float32, shape)}, ["y"], constants, opset)
    if rank is not None:
        made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [f"d{k}" for k in range(rank)]))
    return save(folder, made)


def numbers(*shape: int) -> Array:
    return np.sin(np.arange(np.prod(shape))).astype(np.float32).reshape(shape)


def equal(path: Path, *shapes: tuple[int, ...], options: aot.CompileOptions | None = None) -> None:
    made = aot.compile_model(path, options)
    for shape in shapes:
        x = numbers(*shape)
        (want,) = expected(path, x)
        found = np.array(made(x)[0])
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, atol=1e-6)


@pytest.mark.parametrize("opset", [11, 17])
def test_size_decides_the_rank_of_later_layers(tmp_path: Path, opset: int) -> None:
    path = built(tmp_path, [squeeze("x", "s"), *SOFTMAX], ("n", 1, 4), FLAT, opset)
    equal(path, (1, 1, 4), (3, 1, 4))


def test_two_sizes_that_may_be_1(tmp_path: Path) -> None:
    path = built(tmp_path, [squeeze("x", "s"), *SOFTMAX], ("n", "m", 4), FLAT)
    equal(path, (1, 1, 4), (3, 1, 4), (1, 3, 4), (2, 3, 4))


def test_more_sizes_are_refused_with_what_settles_them(tmp_path: Path) -> None:
    path = built(tmp_path, [squeeze("x", "s"), *SOFTMAX], ("n", "m", "k"), FLAT)
    with pytest.raises(UnsupportedError, match=r"in 's': .*--dim k=N --dim m=N --dim n=N, or --shape"):
        aot.compile_model(path)


@pytest.mark.parametrize(("rank", "fits"), [(1, 1), (2, 3)])
def test_the_declared_rank_of_an_output_decides(tmp_path: Path, rank: int, fits: int) -> None:
    path = built(tmp_path, [squeeze("x", "y")], ("n", 1, 4), {}, rank=rank)
    equal(path, (fits, 1, 4))
    with pytest.raises(UsageError, match="'y'"):
        aot.compile_model(path)(numbers(4 - fits, 1, 4))


def test_an_output_of_open_rank_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = built(tmp_path, [squeeze("x", "y")], ("n", 1, 4), {})
    with pytest.raises(UnsupportedError, match=r"Squeeze 'y': .* f32\[4\] where n is 1, else f32\[n,4\].*--dim n=N"):
        aot.compile_model(path)
    equal(path, (1, 1, 4), options=aot.CompileOptions(dims=(("n", 1, 1),)))
    equal(path, (3, 1, 4), options=aot.CompileOptions(dims=(("n", 2, 8),)))


@pytest.mark.parametrize(
    "nodes",
    [
        [LSTM, squeeze("o", "y")],
        [
            squeeze("x", "s"),
            LSTM,
            helper.make_node("ReduceSum", ["o"], ["t"], keepdims=0),
            helper.make_node("Mul", ["s", "t"], ["y"]),
        ],
        [
            squeeze("x", "s"),
            helper.make_node("Squeeze", ["x", "axis"], ["t"]),
            helper.make_node("Add", ["s", "t"], ["y"]),
        ],
    ],
    ids=["state before", "state behind", "another Squeeze"],
)
def test_a_size_that_a_rule_makes_1_is_1(tmp_path: Path, nodes: list[NodeProto]) -> None:
    constants = {"axis": i64(1)} if any("axis" in n.input for n in nodes) else STATES
    path = built(tmp_path, nodes, (4, "n", 4), constants)
    equal(path, (4, 1, 4))
    with pytest.raises(UsageError):
        aot.compile_model(path)(numbers(4, 2, 4))
