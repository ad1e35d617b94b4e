"""The pages of operations of other formats are made from the tables of conversions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot.cli import app
from aot.frontends.operations import FORMATS, builtins, tflite

MODELS = Path(__file__).parents[2] / "docs" / "use" / "models"


@pytest.mark.parametrize("name", FORMATS)
def test_page_of_operations_is_up_to_date(name: str) -> None:
    """`aot ops --format NAME --markdown > docs/use/models/NAME-ops.md` makes it."""
    found = CliRunner().invoke(app, ["ops", "--format", name, "--markdown"])
    assert found.stdout.rstrip() == (MODELS / f"{name}-ops.md").read_text().rstrip()


def test_operations_of_a_format_are_listed() -> None:
    found = json.loads(CliRunner().invoke(app, ["ops", "--format", "onnx", "--json"]).stdout)
    assert "com.microsoft.BiasGelu" in {kind for kinds in found["operations"].values() for kind in kinds}
    assert "    Det Einsum Gemm MatMul\n" in CliRunner().invoke(app, ["ops", "--format", "onnx"]).stdout


def test_an_unknown_format_is_a_mistake_of_use() -> None:
    assert CliRunner().invoke(app, ["ops", "--format", "mxnet"]).exit_code == 2


def test_most_operations_are_read() -> None:
    assert len(tflite().kinds & builtins()) >= 130
    assert len(FORMATS["pytorch"]().kinds) >= 500
