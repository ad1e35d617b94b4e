"""`aot check`: what cannot be compiled, found without compiling."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from typer.testing import CliRunner

from aot import cli
from aot.options import CompileOptions
from aot.tools.check import check
from tests.frontends.onnx.models import model, save

X = np.zeros((2, 3), np.float32)


def test_a_supported_model_has_no_findings(tmp_path: Path) -> None:
    path = save(tmp_path, model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"]))
    assert check(path) == ()
    assert CliRunner().invoke(cli.app, ["check", str(path)]).exit_code == 0


def test_unsupported_nodes_are_listed_with_exit_code_3(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["u"], name="a"),
        helper.make_node("Odd", ["x"], ["v"], name="b", domain="me"),
    ]
    path = save(tmp_path, model(nodes, {"x": X}, ["u", "v"], domain="me"))
    assert [(f.layer, f.operation, f.opset) for f in check(path)] == [("a", "ImageDecoder", 17), ("b", "me.Odd", 1)]
    plain = CliRunner().invoke(cli.app, ["check", str(path)])
    assert plain.exit_code == 3
    assert "a: ImageDecoder (opset 17): " in plain.stdout
    found = json.loads(CliRunner().invoke(cli.app, ["check", str(path), "--json"]).stdout)
    assert found["supported"] is False
    assert [f["layer"] for f in found["unsupported"]] == ["a", "b"]
    assert all("docs/develop/add-an-op.md" in f["advice"] for f in found["unsupported"])


def test_unknown_layers_of_ir_are_listed(tmp_path: Path) -> None:
    xml = (Path(__file__).parents[2] / "examples" / "digits" / "model.xml").read_text()
    path = tmp_path / "m.xml"
    path.write_text(xml.replace('type="ReLU"', 'type="Odd"').replace('type="SoftMax" version="opset8"', 'type="Own"'))
    found = check(path)
    assert len(found) > 1 and all(f.layer for f in found)
    assert ("Odd", 1, "there is no such operation in opset1") in [(f.operation, f.opset, f.reason) for f in found]
    assert all("docs/develop/add-an-op.md" in f.advice for f in found)


@pytest.mark.slow
def test_operations_that_options_settle_are_supported(tmp_path: Path) -> None:
    noise = model([helper.make_node("RandomNormalLike", ["x"], ["y"])], {"x": X}, ["y"])
    path = save(tmp_path, noise)
    assert check(path) and not check(path, CompileOptions(seed=1))
    assert CliRunner().invoke(cli.app, ["check", str(path), "--seed", "1"]).exit_code == 0


def test_sizes_that_memory_needs_are_reported(tmp_path: Path) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["u"]), helper.make_node("Relu", ["u"], ["y"])]
    path = save(tmp_path, model(nodes, {"s": np.ones(11, np.int64)}, ["y"]))
    (found,) = check(path)
    assert "some of the sizes must be known at compile time" in found.reason and "--value" in found.advice
