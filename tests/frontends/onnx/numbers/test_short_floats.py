"""Softmax and attention of f16 and bf16: each step of ONNX's definition is rounded to the type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

import aot
from tests.frontends.onnx.models import model, run, save

Array = NDArray[Any]
TYPES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def rounded(x: Array, dtype: np.dtype[Any]) -> Array:
    return x.astype(dtype).astype(np.float32)


def softmax(x: Array, few: int = 16) -> Array:
    """Rounded after each operation; a few numbers of bf16 are added one by one."""
    dtype, wide = x.dtype, x.astype(np.float32)
    powers = rounded(np.exp(rounded(wide - wide.max(-1, keepdims=True), dtype)), dtype)
    total = np.zeros((*x.shape[:-1], 1), np.float32)
    if x.shape[-1] <= few and dtype == TYPES[1]:
        for i in range(x.shape[-1]):
            total = rounded(total + powers[..., i : i + 1], dtype)
    else:
        total = rounded(powers.sum(-1, keepdims=True), dtype)
    return (powers / total).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("size", [6, 40])
def test_softmax_rounds_each_step(tmp_path: Path, dtype: np.dtype[Any], size: int) -> None:
    x = np.random.default_rng(0).normal(size=(5, size)).astype(dtype)
    path = save(tmp_path, model([helper.make_node("Softmax", ["x"], ["y"])], {"x": x}, ["y"]))
    expected = softmax(x)
    np.testing.assert_array_equal(run(path, x)[0].astype(np.float32), expected.astype(np.float32))
    compiled = np.asarray(aot.compile_model(path)(x)[0]).view(dtype)
    np.testing.assert_array_equal(compiled.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_cast_to_the_own_type_rounds(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    x = np.random.default_rng(0).normal(size=(4, 33)).astype(dtype)
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=helper.np_dtype_to_tensor_dtype(dtype)),
        helper.make_node("Mul", ["b", "x"], ["y"]),
    ]
    path = save(tmp_path, model(nodes, {"x": x}, ["y"]))
    wide = x.astype(np.float32)
    expected = (rounded(np.exp(wide), dtype) * wide).astype(dtype)
    found = np.asarray(aot.compile_model(path)(x)[0]).view(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_rounding_at_the_edges_of_a_type(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    """Scaling by 1/2 and 2 shows a first rounding that the second one would hide."""
    whole = np.array([1.0], dtype)
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=helper.np_dtype_to_tensor_dtype(dtype)),
        helper.make_node("Cast", ["a"], ["b"], to=helper.np_dtype_to_tensor_dtype(dtype)),
        helper.make_node("Mul", ["b", "one"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=1),
    ]
    values = np.float32([65519, 65520, 6.1e-5, 5.9e-8, 3.1e-8, 1e-8, -2049.5, np.inf, np.nan])
    x = np.concatenate([values, -values, values / 3])
    path = save(tmp_path, model(nodes, {"x": x}, ["y"], {"one": whole}))
    with np.errstate(over="ignore"):
        expected = rounded(x, dtype)
    np.testing.assert_array_equal(aot.compile_model(path)(x)[0], expected)


@pytest.mark.parametrize("precision", [None, 1])
def test_attention_rounds_scores_and_takes_softmax_in_the_precision_asked_for(
    tmp_path: Path, precision: int | None
) -> None:
    dtype = np.dtype(np.float16)
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(1, 2, n, 8)).astype(dtype) for n in (4, 6, 6))
    asked = {} if precision is None else {"softmax_precision": precision}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], **asked)
    path = save(tmp_path, model([node], {"q": q, "k": k, "v": v}, ["y"], opset=23))
    scale = np.sqrt(1 / np.sqrt(8)).astype(dtype).astype(np.float32)
    scaled_q, scaled_k = (rounded(p.astype(np.float32) * scale, dtype) for p in (q, k))
    scores = (scaled_q @ scaled_k.swapaxes(-1, -2)).astype(dtype)
    if precision is None:
        weights = softmax(scores).astype(np.float32)
    else:
        wide = scores.astype(np.float32)
        powers = np.exp(wide - wide.max(-1, keepdims=True))
        weights = rounded(powers / powers.sum(-1, keepdims=True), dtype)
    expected = weights @ v.astype(np.float32)
    found = np.asarray(aot.compile_model(path)(q, k, v)[0]).view(dtype).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
