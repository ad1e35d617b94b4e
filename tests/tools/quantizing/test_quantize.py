"""`aot quantize`: networks in 8 bits by sample data, against f32 and OpenVINO."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from onnx import helper
from typer.testing import CliRunner

import aot
from aot.cli import app
from aot.ir.types import Array
from aot.runtime.describe import hint
from aot.runtime.errors import UsageError
from aot.tools.quantizing.report import Quantized
from tests.frontends.onnx import models

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "model.xml"
RNG = np.random.default_rng(3)
EVERY = {"x": RNG.standard_normal((4, 1, 8, 12, 12)).astype(np.float32)}


def every_product(folder: Path) -> Path:
    """All kinds of products one after another, with ReLU, biases, a shared source and a transposed matrix."""
    n = models.Numbers(7)
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "full", "full_bias"], ["a"], name="full", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "deep"], ["c"], name="deep", kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=16),
        node("Conv", ["b", "one"], ["d"], name="one", kernel_shape=[1, 1]),
        node("Add", ["c", "d"], ["e"]),
        node("ConvTranspose", ["e", "up"], ["f"], name="up", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", ["f", "groups"], ["g"], name="groups", kernel_shape=[2, 2], strides=[2, 2], group=4),
        node("GlobalAveragePool", ["g"], ["h"]),
        node("Flatten", ["h"], ["i"]),
        node("MatMul", ["i", "straight"], ["j"], name="straight"),
        node("Gemm", ["j", "turned", "gemm_bias"], ["y"], name="turned", transB=1),
    ]
    held = {
        "full": n.f32(16, 8, 3, 3),
        "full_bias": n.f32(16),
        "deep": n.f32(16, 1, 3, 3),
        "one": n.f32(16, 16, 1, 1),
        "up": n.f32(16, 16, 2, 2),
        "groups": n.f32(16, 4, 2, 2),
        "straight": n.f32(16, 32),
        "turned": n.f32(10, 32),
        "gemm_bias": n.f32(10),
    }
    return models.save(folder, models.model(nodes, {"x": EVERY["x"][0]}, ["y"], held))


def in_f32(path: Path, x: Array) -> Array:
    return np.array(aot.compile_model(path, threads=1)(x)[0])


def by_openvino(path: Path, x: Array) -> Array:
    hints = {"INFERENCE_PRECISION_HINT": "f32"}
    return np.array(ov.Core().compile_model(path, "CPU", hints)([x])[0])


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Quantized]:
    """The network of every product, the file in 8 bits that is made of it, and what is told of that."""
    folder = tmp_path_factory.mktemp("quantized")
    path, out = every_product(folder), folder / "q.xml"
    return path, out, aot.quantize_model(path, EVERY, out)


def test_every_kind_of_product(quantized: tuple[Path, Path, Quantized]) -> None:
    path, out, found = quantized
    assert [x.precision for x in found.layers] == ["int8"] * 7
    assert all(x.decibels > 25 for x in found.layers)
    assert found.outputs[0].error < 0.1 and found.outputs[0].same == 1.0
    xml = out.read_text()
    assert xml.count('type="FakeQuantize"') == 6  # two products share their data
    assert xml.count('element_type="i8"') == 7
    x = EVERY["x"][0]
    wanted = in_f32(path, x)
    bound = 0.1 * np.abs(wanted).max()
    assert np.abs(in_f32(out, x) - wanted).max() < bound
    np.testing.assert_allclose(in_f32(out, x), by_openvino(out, x), atol=bound / 5)  # a step where values are between


def test_products_run_on_integers(quantized: tuple[Path, Path, Quantized]) -> None:
    text = aot.stages(quantized[1], target="x86-64-v4").text("steps")
    assert text.count(".whole[") >= 4


def test_means_of_layers_stay(tmp_path: Path) -> None:
    """Weights that all round down move a result; its mean over the samples is corrected."""
    weights = np.full((256, 8), 0.5, np.float32) + np.float32(0.0019)
    weights[0] = 1.0  # one step is 1 / 127
    x = (RNG.random((64, 1, 256)) + 1).astype(np.float32)
    path = models.save(
        tmp_path,
        models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x[0]}, ["y"], {"w": weights}),
    )
    found = aot.quantize_model(path, {"x": x}, tmp_path / "q.xml")
    exact = np.concatenate([s @ weights for s in x])
    got = np.concatenate([in_f32(tmp_path / "q.xml", s) for s in x])
    moved = np.abs((np.rint(weights * 127) / 127 - weights).sum(0)).max() * 1.5
    assert abs(np.mean(got - exact)) < 0.02 * moved
    assert found.outputs[0].error < moved / exact.max()


def test_the_layer_that_costs_too_much_stays_in_f32(tmp_path: Path) -> None:
    """One value of 1000 in the data leaves no levels for the others."""
    node = helper.make_node
    n = models.Numbers(1)
    x = n.f32(8, 4, 64)
    nodes = [
        node("MatMul", ["x", "plain"], ["p"], name="plain"),
        node("Concat", ["x", "far"], ["f"], axis=1),
        node("MatMul", ["f", "sharp"], ["s"], name="sharp"),
        node("Add", ["p", "s"], ["y"]),
    ]
    sharp = n.f32(65, 32)
    sharp[64] = 0
    held = {"plain": n.f32(64, 32), "sharp": sharp, "far": np.full((4, 1), 1000, np.float32)}
    path = models.save(tmp_path, models.model(nodes, {"x": x[0]}, ["y"], held))
    all_in_bytes = aot.quantize_model(path, {"x": x}, tmp_path / "all.xml")
    found = aot.quantize_model(path, {"x": x}, tmp_path / "q.xml", max_error=0.05)
    assert {r.layer: r.precision for r in found.layers} == {"plain": "int8", "sharp": "f32"}
    errors = {r.layer: r.error for r in found.layers}
    assert all_in_bytes.outputs[0].error > 0.05 >= found.outputs[0].error
    assert errors["sharp"] == pytest.approx(all_in_bytes.outputs[0].error, rel=0.3)


def test_recurrent_layers_are_named_that_stay_in_f32(tmp_path: Path) -> None:
    n, node = models.Numbers(7), helper.make_node
    nodes = [
        node("LSTM", ["x", "w", "r"], ["", "h"], name="memory", hidden_size=8),
        node("Squeeze", ["h"], ["s"]),
        node("MatMul", ["s", "v"], ["y"], name="head"),
    ]
    x = RNG.standard_normal((5, 2, 4)).astype(np.float32)
    held = {"w": n.f32(1, 32, 4), "r": n.f32(1, 32, 8), "v": n.f32(8, 3)}
    made = aot.quantize_model(models.save(tmp_path, models.model(nodes, {"x": x}, ["y"], held)), x, tmp_path / "q.xml")
    assert made.left_out == ("memory",)
    lines = str(made).splitlines()
    assert lines[0].startswith("1 of 1 products in 8 bits") and "  memory: recurrent layers, loops and" in lines[2]
    alone = models.save(tmp_path, models.model(nodes[:2], {"x": x}, ["s"], held))
    with pytest.raises(UsageError) as caught:
        aot.quantize_model(alone, x, tmp_path / "q.xml")
    assert "--weights int8" in hint(caught.value)


def test_a_limit_that_no_layer_keeps(tmp_path: Path) -> None:
    found = aot.quantize_model(every_product(tmp_path), EVERY, tmp_path / "q.xml", max_error=1e-9)
    assert {x.precision for x in found.layers} == {"f32"}
    assert found.outputs[0].error <= 1e-9


def test_quantised_networks_are_not_quantised_again(quantized: tuple[Path, Path, Quantized], tmp_path: Path) -> None:
    """A network that was quantised before has no products left to quantise."""
    first = quantized[1]
    with pytest.raises(UsageError, match=r"a network with products of constant weights in f32, .*, got none"):
        aot.quantize_model(first, EVERY, tmp_path / "again.xml")


@pytest.mark.slow
@pytest.mark.parametrize("ranges", ["minmax", "entropy"])
def test_sizes_that_vary(ranges: str, tmp_path: Path) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "q.xml"
    weights = models.Numbers(5).f32(16, 3, 3, 3)
    conv = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    onnx.save(models.model([conv], {"x": (np.float32, (1, 3, "h", "w"))}, ["y"], {"w": weights}), path)
    samples = [RNG.standard_normal((1, 3, h, 9)).astype(np.float32) for h in (8, 24)]
    found = aot.quantize_model(path, [{"x": x} for x in samples], out, ranges=ranges)
    assert found.outputs[0].mean < 0.02
    for x in samples:
        assert np.abs(in_f32(out, x) - in_f32(path, x)).mean() < 0.1


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"max_error": 0.0}, "max_error must be more than 0, got 0.0"),
        ({"percentile": 20.0}, "percentile must be above 50"),
        ({"ranges": "most"}, "ranges must be one of minmax, percentile, entropy, got most"),
        ({"data": {"z": EVERY["x"]}}, "data must be for the inputs x, got z"),
        ({"data": []}, "one sample or more, got none"),
        ({"data": {"x": EVERY["x"] * np.nan}}, "values must be finite"),
        ({"output": "q.onnx"}, "the output must be an .xml file"),
    ],
)
def test_wrong_arguments(more: dict[str, object], rule: str, tmp_path: Path) -> None:
    given = {"data": EVERY, "output": tmp_path / "q.xml", **more}
    with pytest.raises(UsageError, match=rule):
        aot.quantize_model(every_product(tmp_path), **given)
    assert not (tmp_path / "q.xml").exists()


def test_command_line(tmp_path: Path) -> None:
    out = tmp_path / "q.xml"
    seven = "examples/digits/seven.npy"
    asked = ["quantize", str(DIGITS), "--data", seven, "--data", seven, "-o", str(out), "--max-error", "0.1"]
    found = CliRunner().invoke(app, [*asked, "--json", "-q"])
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert [x["precision"] for x in said["layers"]] == ["int8"] * 4
    assert said["outputs"][0]["error"] <= 0.1 and said["outputs"][0]["same"] == 1.0
    assert said["bytes"] < DIGITS.with_suffix(".bin").stat().st_size / 3
    found = CliRunner().invoke(app, asked)
    assert "4 of 4 products in 8 bits" in found.output
    wrong = CliRunner().invoke(app, ["quantize", str(DIGITS), "-o", str(out)])
    assert (wrong.exit_code, "needs samples" in wrong.output) == (2, True)
