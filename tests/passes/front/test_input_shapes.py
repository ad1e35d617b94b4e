"""Names and ranges of dimensions that a user gives, against those of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import aot
from aot.codegen.ir.loops import Expr, Var
from aot.ir.graph import Graph
from aot.ir.types import dim_text
from aot.opset.control.infrastructure import Parameter
from aot.passes.front.input_shapes import InputShapes
from aot.runtime.abi import DType
from aot.runtime.describe import notes
from aot.runtime.errors import UsageError

BATCH, SEQ = Var("batch", None, 0), Var("seq", 65, 2)  # seq: 2 to 64


def graph(*shapes: tuple[int | Expr, ...]) -> Graph:
    """Return a graph with an input of each shape, called x, y, ..."""
    made = Graph()
    for name, shape in zip("xyz", shapes, strict=False):
        made.add(Parameter(DType.F32, shape), name=name)
    return made


def shapes(made: Graph) -> list[str]:
    return [",".join(map(dim_text, node.op.shape or ())) for node in made.parameters if isinstance(node.op, Parameter)]


@pytest.mark.parametrize(
    "dims", [(("seq", 1, 200), ("sed", 1, 4)), (("sed", 1, 4),), (("x.d1", 1, 200), ("x.d0", 1, 64)), (("x.d2", 1, 8),)]
)
def test_a_name_that_the_model_lacks_is_an_error_with_those_it_has(dims: tuple[tuple[str, int, int], ...]) -> None:
    made = graph((BATCH, SEQ, 4))
    wrong = next(name for name, *_ in dims if name != "seq")
    with pytest.raises(UsageError, match=f"no dimension is called '{wrong}', there are batch, seq") as caught:
        InputShapes((), dims)(made)
    assert caught.value.advice == f"--shape gives new names to dimensions, for example --shape x={wrong},?,?"


def test_a_model_of_fixed_sizes_has_no_names() -> None:
    with pytest.raises(UsageError, match="no dimension is called 'n', there are none") as caught:
        InputShapes((), (("n", 1, 8),))(graph((3, 4)))
    assert "--shape x=n,?" in caught.value.advice


def test_new_names_come_from_shapes() -> None:
    made = graph((BATCH, SEQ), (BATCH,))
    InputShapes((("x", ("b", "?")),), (("b", 1, 8), ("seq", 1, 16), ("batch", 3, 3)))(made)
    assert shapes(made) == ["b,seq", "3"]
    x, seq = (node.op.shape for node in made.parameters if isinstance(node.op, Parameter))
    assert x is not None and isinstance(x[1], Var) and (x[1].low, str(x[1].extent)) == (2, "17") and seq == (3,)


def test_a_range_holds_in_expressions_of_the_name_too() -> None:
    made = graph((SEQ,), (SEQ * 2 + 1,))
    InputShapes((), (("seq", 8, 8),))(made)
    assert shapes(made) == ["8", "17"]


def test_a_range_beyond_the_files_is_an_error_that_has_both() -> None:
    with pytest.raises(UsageError, match=r"--dim seq: the file allows 2 to 64, got 100 to 200"):
        InputShapes((), (("seq", 100, 200),))(graph((BATCH, SEQ)))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((1, 512), ["s is 2 to 64, as the model's file has it, not 1 to 512"]),
        ((1, None), ["s is 2 to 64, as the model's file has it, not 1 or more"]),
        ((2, 64), []),
        ((4, 8), []),
    ],
)
def test_a_range_that_the_file_narrows_is_said(asked: tuple[int, int | None], said: list[str]) -> None:
    symbols = [{"name": "s", "min": max(2, asked[0]), "max": min(64, asked[1] or 64)}]
    assert notes({"symbols": symbols, "options": {"dims": [["s", *asked]]}}) == said


def test_names_of_an_onnx_file_keep_their_places(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[batch,seq] x) => (float[batch,seq] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    model = aot.compile_model(tmp_path / "m.onnx", dims={"seq": (1, 200), "batch": (1, 4)}, target="x86-64-v2")
    assert str(model.inputs[0]) == "f32[batch,seq]"
    assert model(np.ones((4, 200), np.float32))[0].shape == (4, 200)
    with pytest.raises(UsageError, match="batch"):
        model(np.ones((5, 200), np.float32))
