"""Extensions: a folder of operations, conversions and passes of the user's takes part in a compilation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from aot.compilation.driver import compile_model, stages
from aot.runtime.errors import UsageError
from tests.extensions.folders import (
    PASS,
    RULES,
    X,
    absolute,
    folder,
    options,
)
from tests.frontends.onnx.models import model, save

LOST = """
class Lose:
    def __call__(self, graph):
        raise KeyError("lost")
"""


def test_rules_and_passes(tmp_path: Path) -> None:
    mine = folder(tmp_path, middle_flip=RULES, back_count=PASS)
    made = stages(absolute(tmp_path), options(mine))
    assert "Negative" in made.text("optimized")
    order = [done.name for done in made.report.passes]
    assert order.index("flip") < order.index("canonicalize") < order.index("decompose") < order.index("Count")


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, "must be a folder with"),
        ({"middle_x": "import absent_module"}, "x.py:1: ModuleNotFoundError: No module named 'absent_module'"),
        ({"middle_x": PASS + "\n    run_before = ('decompose',)\n"}, "cannot be sorted: cycle"),
        ({"middle_x": LOST}, r"extension Lose: KeyError: 'lost' \(.*x.py:\d+\)"),
    ],
)
def test_mistakes_in_extensions_are_usage_errors(tmp_path: Path, files: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        _ = stages(absolute(tmp_path), options(folder(tmp_path, **files))).optimized


CHANGES = """
from aot.opset.elementwise.unary import Abs


class Change:
    {more}

    def find_and_replace_pattern(self, graph):
        {body}
"""
DROP = "for node in graph.results[-1:]: graph.remove(node)"


def two(place: Path) -> Path:
    nodes = [helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    return save(place, model(nodes, {"x": X}, ["y", "z"]))


@pytest.mark.parametrize(
    ("more", "body", "text"),
    [
        ("pass", DROP, r"Change: outputs stay as they are.*got \['y.*'\] for"),
        (
            "changes_interface = True",
            "for node in list(graph.results): graph.remove(node)",
            "must keep one of its outputs",
        ),
    ],
)
def test_inputs_and_outputs_stay(tmp_path: Path, more: str, body: str, text: str) -> None:
    mine = folder(tmp_path, middle_x=CHANGES.format(more=more, body=body))
    with pytest.raises(UsageError, match=text):
        _ = stages(two(tmp_path), options(mine)).optimized


def test_outputs_change_where_the_extension_says_so(tmp_path: Path) -> None:
    mine = folder(tmp_path, middle_x=CHANGES.format(more="changes_interface = True", body=DROP))
    assert len(stages(two(tmp_path), options(mine)).optimized.results) == 1


BASES = """
class Base:
    def find_and_replace_pattern(self, graph):
        raise NotImplementedError


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, value):
        return value * self.factor


class First(Base):
    run_before = ("Second",)

    def find_and_replace_pattern(self, graph):
        Second.enabled = Scale(2)(1) == 0


class Second(Base):
    def find_and_replace_pattern(self, graph):
        raise RuntimeError("it was switched off")
"""


def test_base_classes_do_not_run_and_a_pass_may_switch_off_a_later_one(tmp_path: Path) -> None:
    made = stages(absolute(tmp_path), options(folder(tmp_path, middle_x=BASES)))
    assert made.optimized.results
    names = [done.name for done in made.report.passes]
    assert "First" in names and not {"Base", "Scale", "Second"} & set(names)


BETWEEN = """
from aot.ir.registry import operation


class Between:
    run_before = ("onnx_to_opset",)

    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes("Neg"):
            made = graph.add(operation("Sin")(), node.source(0))
            node.out_port(0).replace_by(made.out_port(0))
            graph.remove(node)
"""


def test_an_operation_of_the_opset_may_stand_between_those_of_the_file(tmp_path: Path) -> None:
    kinds = ("Abs", "Neg", "Exp")
    steps = [helper.make_node(kind, [i], [o]) for kind, i, o in zip(kinds, "xab", "aby", strict=True)]
    path = save(tmp_path, model(steps, {"x": X}, ["y"]))
    mine = folder(tmp_path, front_x=BETWEEN)
    np.testing.assert_allclose(compile_model(path, options(mine))(X)[0], np.exp(np.sin(np.abs(X))), rtol=1e-5)


def test_the_same_inside_of_a_body(tmp_path: Path) -> None:
    """A branch that stays an If at run time."""
    flag = helper.make_tensor_value_info("c", 9, [])
    steps = [helper.make_node(kind, [i], [o]) for kind, i, o in zip(("Abs", "Neg"), "xa", "ab", strict=True)]
    then = helper.make_graph(steps, "then", [], [helper.make_tensor_value_info("b", 1, X.shape)])
    other = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["e"])], "else", [], [helper.make_tensor_value_info("e", 1, X.shape)]
    )
    made = model([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], {"x": X}, ["y"])
    made.graph.input.append(flag)
    run = compile_model(save(tmp_path, made), options(folder(tmp_path, front_x=BETWEEN)))
    for value, expected in ((True, np.sin(np.abs(X))), (False, np.exp(X))):
        np.testing.assert_allclose(run(X, np.array(value))[0], expected, rtol=1e-5)


def test_the_folder_s_own_init_file_runs(tmp_path: Path) -> None:
    mine = folder(tmp_path, middle_x="from .. import FACTOR\n" + CHANGES.format(more="pass", body="assert FACTOR == 3"))
    (mine / "__init__.py").write_text("FACTOR = 3\n")
    assert stages(absolute(tmp_path), options(mine)).optimized.results


def test_an_input_cannot_be_connected_to_an_input(tmp_path: Path) -> None:
    body = "n = graph.get_op_nodes('Abs')[0]; n.in_port(0).connect(n.in_port(0))"
    with pytest.raises(UsageError, match="connect: an input must read an output"):
        _ = stages(two(tmp_path), options(folder(tmp_path, middle_x=CHANGES.format(more="pass", body=body)))).optimized


UNCHANGED = """
class Looks:
    def find_and_replace_pattern(self, graph):
        NAMES.update(node.name for node in graph.nodes.values())

class Renames:
    run_after = ["Looks"]
    def find_and_replace_pattern(self, graph):
        next(node for node in graph.nodes.values() if node.name == "mine").name = "other"

NAMES = set()
"""


def test_passes_find_nodes_by_the_users_names_and_count_if_they_change_something(tmp_path: Path) -> None:
    """After the front phase, the last node that was made of one of the file has its name."""
    nodes = [helper.make_node("Celu", ["x"], ["t"], name="mine"), helper.make_node("Neg", ["t"], ["y"], name="last")]
    made = stages(save(tmp_path, model(nodes, {"x": X}, ["y"])), options(folder(tmp_path, middle_x=UNCHANGED)))
    _ = made.optimized
    counts = {p.name: (p.changed, p.rewrites) for p in made.report.passes if p.name in ("Looks", "Renames")}
    assert counts == {"Looks": (False, 0), "Renames": (True, 1)}


def test_nodes_are_found_by_the_spelling_of_ir_files(tmp_path: Path) -> None:
    steps = [helper.make_node("Relu", ["x"], ["y"])]
    body = "assert len(graph.get_op_nodes('ReLU')) == len(graph.get_op_nodes('Relu')) == 1"
    mine = folder(tmp_path, middle_x=CHANGES.format(more="pass", body=body))
    assert stages(save(tmp_path, model(steps, {"x": X}, ["y"])), options(mine)).optimized.results
