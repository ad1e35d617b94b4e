"""Operations of extensions: of IR and ONNX, in versions of operation sets, and one type in two folders."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from typer.testing import CliRunner

from aot import cli
from aot.compilation.driver import compile_model
from aot.extensions.folder import load_extensions
from aot.ir import registry
from aot.ir.scope import within
from aot.runtime.errors import UnsupportedError, UsageError
from tests.extensions.folders import (
    CONVERSION,
    OPERATION,
    SCALED,
    X,
    absolute,
    folder,
    options,
    scaled,
    scaled_model,
)
from tests.frontends.onnx.models import model, save
from tests.frontends.openvino.test_reader import layer, network, parameter


def test_an_operation_of_ir(tmp_path: Path) -> None:
    layers = [parameter(), layer(1, "s", "SquareA", "extension", inputs=(0,), outputs=(1,))]
    path = tmp_path / "m.xml"
    path.write_text(network([*layers, layer(2, "y", "Result", inputs=(0,))], "0.0->1.0 1.1->2.0"))
    with pytest.raises(UnsupportedError, match=r"SquareA \(extension\) in s"):
        compile_model(path)
    text = "import numpy as np\n" + OPERATION.format(name="SquareA")
    made = compile_model(path, options(folder(tmp_path, ops_square=text)))
    np.testing.assert_array_equal(made(X)[0], np.square(np.maximum(X, 0)))


def test_an_operation_of_onnx(tmp_path: Path) -> None:
    path = save(tmp_path, model([helper.make_node("SquareB", ["x"], ["y"], domain="me")], {"x": X}, ["y"], domain="me"))
    with pytest.raises(UnsupportedError, match=r"me\.SquareB"):
        compile_model(path)
    text = "import numpy as np\n" + OPERATION.format(name="SquareB")
    mine = folder(tmp_path, ops_square=text, front_square=CONVERSION.format(name="SquareB"))
    np.testing.assert_array_equal(compile_model(path, options(mine))(X)[0], np.square(np.maximum(X, 0)))
    for command in ("check", "info"):
        assert CliRunner().invoke(cli.app, [command, str(path), "--extensions", str(mine)]).exit_code == 0


def test_two_folders_with_one_operation(tmp_path: Path) -> None:
    """Also while other threads compile, and after a folder whose file raises."""
    path = scaled_model(tmp_path)
    folders = [scaled(tmp_path / str(k), k) for k in range(2, 6)]
    broken = folder(tmp_path, ops_scaled=SCALED.format(imports="FACTOR = 1"), ops_worse="raise KeyError('worse')")

    def factor(mine: Path) -> float:
        return compile_model(path, options(mine))(X)[0][0, 0]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(factor, folders * 2)) == [2, 3, 4, 5] * 2
    with pytest.raises(UsageError, match="worse"):
        factor(broken)
    with pytest.raises(UnsupportedError, match="Scaled"):
        compile_model(path)
    assert [factor(mine) for mine in folders] == [2, 3, 4, 5]


def test_a_conversion_of_a_builtin_operation_stays_in_its_compilation(tmp_path: Path) -> None:
    path = absolute(tmp_path)
    text = CONVERSION.replace('"{name}", domain="me"', '"Abs"').replace("{name}", "Negative")
    for _ in range(2):
        np.testing.assert_array_equal(compile_model(path, options(folder(tmp_path, front_neg=text)))(X)[0], -X)
        np.testing.assert_array_equal(compile_model(path)(X)[0], np.abs(X))


@pytest.mark.parametrize(
    ("declared", "asked", "found"),
    [
        ("extension", "extension", True),
        ("extension", "", False),
        ("extension", "experimental", False),
        ("extension", "opset8", False),
        ("mine1", "mine1", True),
        ("mine1", "MINE1", True),
        ("mine1", "mine2", False),
    ],
)
def test_an_operation_belongs_to_the_sets_that_it_names(tmp_path: Path, declared: str, asked: str, found: bool) -> None:
    mine = folder(tmp_path, ops_square=OPERATION.format(name="SquareS").replace("extension", declared))
    scope = load_extensions(mine).scope
    with within(scope):
        assert (registry.find("SquareS", int(asked[5:]) if asked.startswith("opset") else asked) is not None) == found


def test_two_sets_have_two_meanings_of_one_type(tmp_path: Path) -> None:
    text = OPERATION.format(name="One").replace('@op("extension")', '@op("mine1", type="Square")')
    other = text.replace("class One", "class Two").replace("mine1", "mine2")
    with within(load_extensions(folder(tmp_path, ops_one=text, ops_two=other)).scope):
        assert [registry.find("Square", name).__name__ for name in ("mine1", "mine2")] == ["One", "Two"]
