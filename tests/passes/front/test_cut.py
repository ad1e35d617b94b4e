"""`--cut` leaves what lies between the tensors that are named, and asks nothing of the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from typer.testing import CliRunner

from aot import cli
from aot.compilation.driver import compile_model
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.options.texts import cut_of
from aot.runtime.errors import UsageError
from aot.tools.convert import convert_model
from tests.frontends.onnx.models import model, save

X = np.float32([[1, -2, 3], [-4, 5, -6]])
Cuts = tuple[tuple[str, ...], tuple[str, ...]]


def network(place: Path, first: str = "Abs", last: str = "Neg") -> Path:
    """y = last(relu(first(x) + w)), z = sum of the rows of relu."""
    nodes = [
        helper.make_node(first, ["x"], ["a"], name="first"),
        helper.make_node("Add", ["a", "w"], ["s"], name="sum"),
        helper.make_node("Relu", ["s"], ["r"], name="relu"),
        helper.make_node(last, ["r"], ["y"], name="last"),
        helper.make_node("ReduceSum", ["r", "one"], ["z"], name="rows"),
    ]
    held = {"w": np.float32([1, 2, 3]), "one": np.int64([1])}
    return save(place, model(nodes, {"x": (np.float32, ("n", 3))}, ["y", "z"], held))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


W = np.float32([1, 2, 3])
CASES: list[tuple[Cuts, list[str], list[str], list[Array]]] = [
    ((("a",), ("r",)), ["a"], ["r"], [relu(X + W)]),
    ((("first",), ("relu",)), ["first"], ["relu"], [relu(X + W)]),
    (((), ("s",)), ["x"], ["s"], [np.abs(X) + W]),
    ((("r",), ()), ["r"], ["y", "z"], [-X, X.sum(1, keepdims=True)]),
    ((("s",), ("z", "r")), ["s"], ["z", "r"], [relu(X).sum(1, keepdims=True), relu(X)]),
    ((("x",), ("y",)), ["x"], ["y"], [-relu(np.abs(X) + W)]),
]


@pytest.mark.parametrize("through_ir", [False, True])
@pytest.mark.parametrize(("cut", "inputs", "outputs", "expected"), CASES, ids=lambda v: str(v)[:30])
def test_nodes_between_the_cuts_stay(
    cut: Cuts, inputs: list[str], outputs: list[str], expected: list[Array], through_ir: bool, tmp_path: Path
) -> None:
    path = network(tmp_path)
    if through_ir:
        convert_model(path, tmp_path / "ir.xml")
        path = tmp_path / "ir.xml"
    made = compile_model(path, CompileOptions(cut=cut, level=None), threads=1)
    assert ([t.name for t in made.inputs], [t.name for t in made.outputs]) == (inputs, outputs)
    found = made(X)
    for i, wanted in enumerate(expected):
        np.testing.assert_allclose(found[i], wanted, rtol=1e-6)


def test_nodes_outside_of_the_cuts_need_not_be_supported(tmp_path: Path) -> None:
    path = network(tmp_path, last="NoSuchThing")
    made = compile_model(path, CompileOptions(cut=((), ("z",)), level=None))
    np.testing.assert_allclose(made(X)[0], relu(np.abs(X) + W).sum(1, keepdims=True))


@pytest.mark.parametrize(
    ("cut", "part"),
    [
        ((("relo",), ("z",)), "for example relu, got 'relo'"),
        (((), ("nowhere",)), "none is called so, or nearly so, got 'nowhere'"),
        ((("y",), ("r",)), "inputs must lead to outputs, got 'y'"),
    ],
)
def test_names_that_are_not_there_are_the_users_mistake(cut: Cuts, part: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=part):
        compile_model(network(tmp_path), CompileOptions(cut=cut))


@pytest.mark.parametrize(
    ("text", "wanted"), [("a,b:c", (("a", "b"), ("c",))), (":c", ((), ("c",))), ("a: ", (("a",), ())), (None, None)]
)
def test_the_text_of_a_cut(text: str | None, wanted: Cuts | None) -> None:
    assert cut_of(text) == wanted


@pytest.mark.parametrize("text", ["a", ":", "a:b:c", ""])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cut: INPUT"):
        cut_of(text)


@pytest.mark.parametrize("command", [["check"], ["dump"], ["convert", "-o", "{}/o.xml"], ["compile", "-o", "{}/o.so"]])
def test_commands_take_it(command: list[str], tmp_path: Path) -> None:
    texts = [c.format(tmp_path) for c in command]
    arguments = [texts[0], str(network(tmp_path, last="NoSuchThing")), *texts[1:], "--cut", "a:z", "--shape", "a=2x3"]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
