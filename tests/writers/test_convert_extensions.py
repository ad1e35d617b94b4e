"""Operations, conversions and passes of a user's take part in a conversion to IR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from onnx import helper

from aot.compilation.driver import compile_model
from aot.runtime.errors import UnsupportedError, UsageError
from aot.tools.convert import convert_model
from tests.extensions.folders import CONVERSION, OPERATION, X, folder, options
from tests.frontends.onnx.models import model, save

CYCLE = """
class {name}:
    run_after = ("{other}",)

    def __call__(self, graph):
        return False
"""
FLIP = """
from aot.opset.elementwise.unary import Negative


class Flip:
    run_after = ("onnx_to_opset",)

    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes("Abs"):
            node.op = Negative()
"""


def types(path: Path) -> list[tuple[str | None, str | None]]:
    return [(e.get("type"), e.get("version")) for e in etree.parse(path).iter("layer")]


def absolute(place: Path) -> Path:
    return save(place, model([helper.make_node("Abs", ["x"], ["y"])], {"x": X}, ["y"]))


def test_an_operation_of_ones_own_is_written_in_the_set_extension(tmp_path: Path) -> None:
    text = "import numpy as np\n" + OPERATION.format(name="SquareW")
    mine = options(folder(tmp_path, ops_square=text, front_square=CONVERSION.format(name="SquareW")))
    path = save(tmp_path, model([helper.make_node("SquareW", ["x"], ["y"], domain="me")], {"x": X}, ["y"], domain="me"))
    out = tmp_path / "ir.xml"
    convert_model(path, out, mine)
    assert ("SquareW", "extension") in types(out)
    np.testing.assert_array_equal(compile_model(out, mine)(X)[0], np.square(np.maximum(X, 0)))
    with pytest.raises(UnsupportedError, match=r"SquareW \(extension\)"):
        compile_model(out)


def test_passes_of_the_front_phase_run(tmp_path: Path) -> None:
    convert_model(absolute(tmp_path), tmp_path / "ir.xml", options(folder(tmp_path, front_flip=FLIP)))
    assert types(tmp_path / "ir.xml")[1] == ("Negative", "opset1")


def test_passes_that_cannot_be_ordered_are_the_users_mistake(tmp_path: Path) -> None:
    texts = {f"front_{a}": CYCLE.format(name=a.title(), other=b.title()) for a, b in (("one", "two"), ("two", "one"))}
    with pytest.raises(UsageError, match="--extensions"):
        convert_model(absolute(tmp_path), tmp_path / "ir.xml", options(folder(tmp_path, **texts)))


@pytest.mark.parametrize("phase", ["middle", "back"])
def test_passes_of_later_phases_run(tmp_path: Path, phase: str) -> None:
    text = FLIP.replace('run_after = ("onnx_to_opset",)', "enabled = True")
    convert_model(absolute(tmp_path), tmp_path / "ir.xml", options(folder(tmp_path, **{f"{phase}_flip": text})))
    assert types(tmp_path / "ir.xml")[1] == ("Negative", "opset1")
