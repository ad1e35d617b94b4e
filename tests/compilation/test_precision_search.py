"""`--precision auto`: layers whose rounding costs too much stay in f32, as data tell."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import aot
from aot.cli import app
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.search.costly_layers import error_of
from aot.compilation.search.precision import ROUNDED, pattern_of, round_by_flags
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.errors import UsageError
from tests.frontends.onnx import models
from tests.passes.check import graph_of

ROWS, TERMS, COLUMNS = 8, 64, 32
RNG = np.random.default_rng(5)
X = RNG.standard_normal((ROWS, TERMS)).astype(np.float32)
PLAIN = RNG.standard_normal((TERMS, COLUMNS)).astype(np.float32)
SHARP = PLAIN - PLAIN.mean(0)  # sums of columns are 0, so a constant in the data changes nothing
DIGITS = Path("examples/digits/model.xml")


def network(folder: Path) -> Path:
    """y = x PLAIN + (x + 1000) SHARP: the second product loses x in bf16."""
    node = onnx.helper.make_node
    nodes = [
        node("MatMul", ["x", "plain"], ["p"], name="plain,[0]"),
        node("Add", ["x", "far"], ["f"], name="far"),
        node("MatMul", ["f", "sharp"], ["s"], name="sharp"),
        node("Add", ["p", "s"], ["y"], name="sum"),
    ]
    held = {"plain": PLAIN, "sharp": SHARP, "far": np.float32(1000)}
    return models.save(folder, models.model(nodes, {"x": X}, ["y"], held))


def error(path: Path, precision: str, x: Array = X) -> float:
    exact = x.astype(np.float64) @ PLAIN + (x.astype(np.float64) + 1000) @ SHARP.astype(np.float64)
    found = aot.compile_model(path, precision=precision, threads=1)(x)[0]
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def test_the_layer_that_costs_too_much_stays_in_f32(tmp_path: Path) -> None:
    path = network(tmp_path)
    found = aot.find_precision(path, {"x": X}, max_error=0.02)
    assert {x.layer: x.precision for x in found.layers} == {"sharp": "f32", "plain,[0]": "bf16"}
    assert error(path, "bf16") > 0.02 >= error(path, found.precision) > 1e-4
    assert found.errors["y"] == pytest.approx(error(path, found.precision), rel=0.05)
    assert found.layers[0].error == pytest.approx(error(path, "f32,sharp=bf16"), rel=0.2)


@pytest.mark.parametrize(("most", "precision"), [(1.0, "bf16"), (1e-9, "f32")])
def test_limits_that_all_layers_keep_or_none(tmp_path: Path, most: float, precision: str) -> None:
    found = aot.find_precision(network(tmp_path), X, max_error=most)
    assert found.precision == precision
    assert max(found.errors.values()) <= most


def test_patterns_hold_in_any_case(tmp_path: Path) -> None:
    found = aot.find_precision(network(tmp_path), X, max_error=1.0, precision="f32,plain*=f32")
    assert found.precision == "bf16,plain*=f32"


def test_the_error_is_that_of_the_worst_sample(tmp_path: Path) -> None:
    path, several = network(tmp_path), np.stack([X, X[::-1] * 3, X * 0.1])
    found = aot.find_precision(path, {"x": several}, max_error=100.0)
    assert found.errors["y"] == pytest.approx(max(error(path, "bf16", x) for x in several), rel=0.05)


@pytest.mark.parametrize(
    ("data", "most", "rule"),
    [
        ({"z": X}, 0.1, "data must be for the inputs x, got z"),
        ({"x": X, "z": X}, 0.1, "data must be for the inputs x, got x, z"),
        ({"x": X[None][:0]}, 0.1, "equally many along a first dimension"),
        ({"x": X[:, :5]}, 0.1, "x"),
        ({"x": X}, 0.0, "max_error must be more than 0, got 0.0"),
    ],
)
def test_wrong_data(tmp_path: Path, data: dict[str, Array], most: float, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        aot.find_precision(network(tmp_path), data, max_error=most)


def test_a_network_without_products(tmp_path: Path) -> None:
    """Only what lies between kernels rounds: there is no layer to choose."""
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    node = onnx.helper.make_node
    nodes = [node("Softmax", ["x"], ["s"]), node("Softmax", ["s"], ["y"], axis=0)]
    found = aot.find_precision(models.save(tmp_path, models.model(nodes, {"x": x}, ["y"], {})), x, max_error=1e-9)
    assert (found.precision, found.layers) == ("f32", ())


def test_flags_round_the_operands_of_their_layers() -> None:
    def make(b: Builder, x: OutPort, w: OutPort) -> tuple[OutPort, ...]:
        return b.MatMul(x, w), b.MatMul(b.Relu(x), w)

    graph = graph_of(make, (ROWS, TERMS), (TERMS, COLUMNS))
    assert len(round_by_flags(graph)) == 2
    model = in_memory(stages(graph, level=None).built, threads=1)

    def short(x: Array) -> Array:
        return x.astype(ml_dtypes.bfloat16).astype(np.float32)

    positive = np.maximum(X, 0)
    for flags in ([False, True], [True, False]):
        first, second = (short if f else np.copy for f in flags)
        found = model(**{"x0": X, "x1": PLAIN, ROUNDED: np.array(flags)})
        np.testing.assert_allclose(found[0], first(X) @ first(PLAIN), atol=1e-5)
        np.testing.assert_allclose(found[1], second(positive) @ second(PLAIN), atol=1e-5)


@pytest.mark.parametrize(
    ("y", "wanted", "expected"),
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([1.0, np.inf], [2.0, np.inf], 0.5),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([3, 4, 5, 6], [3, 4, 5, 7], 0.25),
        ([0.0], [0.0], 0.0),
        ([1.0, 2.0], [1.0], 1.0),
    ],
)
def test_errors_are_relative_to_the_largest_element(y: list[float], wanted: list[float], expected: float) -> None:
    assert error_of(np.array(y), np.array(wanted)) == expected


def test_a_pattern_matches_its_layer_alone(tmp_path: Path) -> None:
    assert pattern_of("a[1]*,b?") == "a[[]1][*]?b[?]"


def test_command_line(tmp_path: Path) -> None:
    out, data = tmp_path / "m.so", tmp_path / "x.npz"
    np.savez(data, image=np.load("examples/digits/seven.npy"))
    asked = ["compile", str(DIGITS), "-o", str(out), "--precision", "auto", "--data", str(data), "--max-error", "1e-2"]
    found = CliRunner().invoke(app, [*asked, "--json"])
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert said["precision"]["precision"] == "bf16"
    assert said["manifest"]["options"]["precision"] == "bf16"
    assert 0 < said["precision"]["errors"]["probabilities"] <= 1e-2
    found = CliRunner().invoke(app, asked)
    assert "output probabilities: error" in found.output
    wrong = CliRunner().invoke(app, ["compile", str(DIGITS), "-o", str(out), "--precision", "auto"])
    assert (wrong.exit_code, "--data is for --precision auto" in wrong.output) == (2, True)
