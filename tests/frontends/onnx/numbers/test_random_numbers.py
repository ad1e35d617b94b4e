"""Random numbers: their shapes, types, ranges and distributions; equal seeds draw equal numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import aot
import runtime
from aot import cli
from aot.frontends.unsupported import UnconvertedError
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError
from tests.frontends.onnx.models import Array, converted, model, run, save

SEED = 7
MANY = np.zeros((40, 500), np.float32)


def drawn(folder: Path, kind: str, x: Array | None, **attrs: Any) -> Array:
    """By the references of the opset; the compiled library draws the same."""
    given = {} if x is None else {"x": x}
    path = save(folder, model([helper.make_node(kind, list(given), ["y"], **attrs)], given, ["y"]))
    found = run(path, *given.values(), seed=SEED)[0]
    compiled = aot.compile_model(path, CompileOptions(seed=SEED), threads=1)
    for _ in range(2):
        again = np.asarray(compiled(given)[0]).astype(np.float64)
        np.testing.assert_allclose(again, found.astype(np.float64), rtol=1e-3, atol=1e-4)
    return found


@pytest.mark.parametrize(
    ("kind", "x", "attrs", "dtype"),
    [
        ("RandomUniform", None, {"shape": [40, 500]}, np.float32),
        ("RandomUniform", None, {"shape": [40, 500], "dtype": TensorProto.DOUBLE, "seed": 3.5}, np.float64),
        ("RandomUniformLike", MANY, {}, np.float32),
        ("RandomUniformLike", MANY, {"dtype": TensorProto.FLOAT16}, np.float16),
    ],
)
def test_uniform_numbers_are_spread_evenly(
    tmp_path: Path, kind: str, x: Array | None, attrs: dict[str, Any], dtype: type
) -> None:
    y = drawn(tmp_path, kind, x, low=-2.0, high=6.0, **attrs)
    assert (y.dtype, y.shape) == (dtype, (40, 500))
    assert y.min() >= -2
    assert y.max() <= 6
    shares = np.histogram(y, 8, (-2, 6))[0] / y.size
    np.testing.assert_allclose(shares, 1 / 8, atol=0.01)


@pytest.mark.parametrize(
    ("kind", "x", "attrs", "dtype"),
    [
        ("RandomNormal", None, {"shape": [40, 500]}, np.float32),
        ("RandomNormalLike", MANY, {"dtype": TensorProto.DOUBLE}, np.float64),
        ("RandomNormalLike", MANY, {"seed": 2.0}, np.float32),
    ],
)
def test_normal_numbers_have_the_moments_of_the_distribution(
    tmp_path: Path, kind: str, x: Array | None, attrs: dict[str, Any], dtype: type
) -> None:
    y = drawn(tmp_path, kind, x, mean=3.0, scale=2.0, **attrs)
    assert (y.dtype, y.shape) == (dtype, (40, 500))
    z = (y.astype(np.float64) - 3) / 2
    moments = np.array([np.mean(z**k) for k in range(1, 5)])
    errors = np.sqrt(np.array([1, 2, 15, 96]) / z.size)  # of their estimates
    assert (np.abs(moments - [0, 1, 0, 3]) < 4 * errors).all()
    np.testing.assert_allclose(np.mean(np.abs(z) < 1), 0.6827, atol=0.01)
    assert abs(np.corrcoef(z.reshape(-1)[:-1], z.reshape(-1)[1:])[0, 1]) < 0.03


def test_bernoulli_draws_ones_by_their_probability(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 20000, dtype=np.float32)
    y = drawn(tmp_path, "Bernoulli", x, dtype=TensorProto.INT32)
    assert y.dtype == np.int32
    assert set(np.unique(y)) == {0, 1}
    np.testing.assert_allclose(y.reshape(10, -1).mean(1), x.reshape(10, -1).mean(1), atol=0.04)


def test_multinomial_draws_classes_by_their_shares(tmp_path: Path) -> None:
    shares = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        x = (np.log(shares) + 200).astype(np.float32)  # need not be normalised
    y = drawn(tmp_path, "Multinomial", x, sample_size=4000, dtype=TensorProto.INT64)
    assert (y.dtype, y.shape) == (np.int64, (2, 4000))
    found = np.stack([np.bincount(r, minlength=3) for r in y]) / 4000
    np.testing.assert_allclose(found, shares, atol=0.03)


def test_equal_seeds_draw_equal_numbers(tmp_path: Path) -> None:
    """Nodes without a seed draw other numbers than their neighbours; those with equal seeds the same."""
    names = {"a": {}, "b": {}, "c": {"seed": 1.0}, "d": {"seed": 1.0}, "e": {"seed": 2.0}}
    nodes = [helper.make_node("RandomNormalLike", ["x"], [n], **attrs) for n, attrs in names.items()]
    path = save(tmp_path, model(nodes, {"x": MANY}, list(names)))
    found = dict(zip(names, run(path, MANY, seed=SEED), strict=True))
    np.testing.assert_array_equal(found["c"], found["d"])
    different = [found[n].reshape(-1) for n in "abce"]
    different += [x.reshape(-1) for x in run(path, MANY, seed=SEED + 1)[:3]]
    assert np.abs(np.corrcoef(different) - np.eye(7)).max() < 0.03


def test_the_shape_may_be_known_at_run_time_only(tmp_path: Path) -> None:
    made = model([helper.make_node("RandomNormalLike", ["x"], ["y"])], {"x": (np.float32, ("n", 3))}, ["y"])
    compiled = aot.compile_model(save(tmp_path, made), CompileOptions(seed=SEED), threads=1)
    few, more = (np.asarray(compiled(np.zeros((n, 3), np.float32))[0]) for n in (4, 9))
    assert more.shape == (9, 3)
    np.testing.assert_array_equal(few, more[:4])


def test_only_floats_are_drawn(tmp_path: Path) -> None:
    x = np.zeros(3, np.int64)
    path = save(tmp_path, model([helper.make_node("RandomNormalLike", ["x"], ["y"], name="noise")], {"x": x}, ["y"]))
    with pytest.raises(UnconvertedError, match=r"'noise': RandomNormalLike: numbers of floating point .* got i64"):
        converted(path, seed=SEED)


def test_random_numbers_need_a_seed(tmp_path: Path) -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], name="noise")
    path = save(tmp_path, model([node], {"x": MANY}, ["y"]))
    with pytest.raises(UnconvertedError, match=r"'noise': RandomNormalLike: .* or have them drawn: --seed 1"):
        converted(path)


def test_the_command_line_takes_a_seed(tmp_path: Path) -> None:
    node = helper.make_node("RandomUniformLike", ["x"], ["y"], name="noise")
    path, library = save(tmp_path, model([node], {"x": MANY}, ["y"])), tmp_path / "m.so"
    refused = CliRunner().invoke(cli.app, ["compile", str(path), "-o", str(library)])
    assert refused.exit_code == UnsupportedError.exit_code
    done = CliRunner().invoke(cli.app, ["compile", str(path), "-o", str(library), "--seed", str(SEED)])
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(runtime.load(library, threads=1)(MANY)[0], run(path, MANY, seed=SEED)[0])
