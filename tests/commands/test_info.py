"""`aot info`: costs, licence and precision of libraries and models, and the machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from typer.testing import CliRunner

from aot import cli
from aot.compilation.about import about
from aot.runtime.loading.library import read_manifest


def aot(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two products of [n, 8], licensed."""
    path = tmp_path_factory.mktemp("info") / "m.onnx"
    weights = [numpy_helper.from_array(np.ones((8, 8), np.float32), name) for name in ("v", "w")]
    nodes = [helper.make_node("MatMul", ["x", "v"], ["y"]), helper.make_node("MatMul", ["y", "w"], ["z"])]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 8]) for name in ("x", "z")]
    made = helper.make_model(helper.make_graph(nodes, "net", ends[:1], ends[1:], weights), ir_version=9)
    helper.set_model_props(made, {"license": "MIT", "author": "A\nB", "secret": "x", "description": "d" * 1000})
    onnx.save(made, path)
    return path


def test_costs_are_told_where_sizes_are_fixed(model: Path, tmp_path: Path) -> None:
    aot("compile", model, "-o", tmp_path / "m.so", "--shape", "x=16,8")
    costs = json.loads(aot("info", tmp_path / "m.so", "--json"))["costs"]
    products = 2 * 16 * 8 * 8 * 2
    assert products <= costs["work"] <= 1.1 * products
    assert costs["traffic"] >= 4 * (3 * 16 * 8 + 2 * 8 * 8)
    facts = json.loads(aot("info", tmp_path / "m.so", "--json"))
    assert costs["peak"] == facts["arena"] + facts["weights"] and facts["arena"] >= 16 * 8 * 4
    text = aot("info", tmp_path / "m.so")
    assert f"work     {costs['work'] / 1e6:.3f} MFLOP" in text and "computes f32" in text
    aot("compile", model, "-o", tmp_path / "n.so")
    varying = json.loads(aot("info", tmp_path / "n.so", "--json"))["costs"]
    assert varying == {"work": None, "traffic": None, "peak": None}
    assert "MFLOP" not in aot("info", tmp_path / "n.so")


def test_licence_and_author_stay_with_the_library(model: Path, tmp_path: Path) -> None:
    aot("compile", model, "-o", tmp_path / "m.so")
    text = aot("info", tmp_path / "m.so")
    assert "about    license: MIT" in text and "about    author: A B" in text and "secret" not in text
    assert "license: MIT" in aot("info", model) and "weights f32 512 B" in aot("info", model).replace("0.5 kB", "512 B")
    assert json.loads(aot("info", model, "--json"))["weights"] == {"f32": 512}


def test_about_changes_no_code(model: Path, tmp_path: Path) -> None:
    other = onnx.load(model)
    del other.metadata_props[:]
    onnx.save(other, tmp_path / "bare.onnx")
    for name, file in (("a", model), ("b", tmp_path / "bare.onnx")):
        aot("compile", file, "-o", tmp_path / f"{name}.so")
    a, b = read_manifest(tmp_path / "a.so"), read_manifest(tmp_path / "b.so")
    assert a.json["hash"] == b.json["hash"] and "about" in a.json and "about" not in b.json


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"License": "MIT", "x": "y"}, {"License": "MIT"}),
        (
            {"model_info": {"license": "MIT", "n": {"author": "me"}}},
            {"model_info.license": "MIT", "model_info.n.author": "me"},
        ),
        ({"license": "", "author": 3, "url": {"a": "b"}}, {}),
        ({"description": "d" * 1000}, {"description": "d" * 500}),
    ],
)
def test_texts_are_known_by_their_names(given: dict[str, Any], found: dict[str, str]) -> None:
    assert about(given) == found


def test_the_machine_is_told_alone_and_with_a_file(model: Path) -> None:
    assert aot("info", "--machine").startswith("machine    ")
    facts = json.loads(aot("info", model, "--machine", "--json"))
    assert facts["machine_here"]["threads"] >= 1 and facts["inputs"]
    assert "--machine" in aot("info", code=2)
