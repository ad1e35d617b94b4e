"""Extensions: a folder of operations, conversions and passes of the user's takes part in a compilation."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from typer.testing import CliRunner

import cli
from aot.compilation.cache import key_of
from aot.compilation.driver import compile_model, stages
from aot.extensions.folder import load_extensions
from aot.frontends.onnx.registry import CONVERSIONS, load_conversions
from aot.ir import registry
from aot.ir.scope import within
from aot.options import CompileOptions
from runtime.errors import UnsupportedError, UsageError
from tests.frontends.onnx.models import model, save
from tests.frontends.openvino.test_reader import layer, network, parameter

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)

OPERATION = '''
"""The square of what is above zero."""

from aot.ir.registry import op
from aot.opset.elementwise.unary import Real
from codegen.ir.loops import Expr, prim


@op("extension")
class {name}(Real):
    """max(x, 0)^2"""

    def scalar(self, x: Expr) -> Expr:
        above = prim("max", x, 0.0)
        return above * above

    def reference(self, x):
        return np.square(np.maximum(x, 0))
'''

CONVERSION = """
from aot.frontends.onnx.registry import onnx


@onnx("{name}", domain="me")
def square(node, x):
    return node.build.{name}(x)
"""

RULES = '''
from aot.opset.elementwise.unary import Abs, Negative
from aot.passes.rewrite import rule


@rule(Abs)
def flip(node, op, build):
    """|x| -> -x"""
    return build.Negative(node.source(0))
'''

PASS = """
SEEN = []


class Count:
    run_after = ("decompose",)
    graph_condition = [lambda graph: graph.name != "absent"]

    def find_and_replace_pattern(self, graph):
        SEEN.append(len(graph.nodes))
"""


LOST = """
class Lose:
    def __call__(self, graph):
        raise KeyError("lost")
"""


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """The built-in tables are what they were, whatever a test has loaded."""
    load_conversions()  # they fill their table when it is asked for
    found: list[dict[Any, Any]] = [registry.REGISTRY, registry._BY_TYPE, CONVERSIONS]
    before = [dict(table) for table in found]
    yield
    assert found == before


def folder(place: Path, **files: str) -> Path:
    """`middle_x="…"` becomes middle/x.py."""
    for name, text in files.items():
        path = place / "mine" / f"{name.replace('_', '/', 1)}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place / "mine"


def options(extensions: Path) -> CompileOptions:
    return CompileOptions(extensions=extensions, level=None)


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


def absolute(place: Path) -> Path:
    return save(place, model([helper.make_node("Abs", ["x"], ["y"])], {"x": X}, ["y"]))


def test_rules_and_passes(tmp_path: Path) -> None:
    mine = folder(tmp_path, middle_flip=RULES, back_count=PASS)
    made = stages(absolute(tmp_path), options(mine))
    assert "Negative" in made.text("optimized")
    order = [done.name for done in made.report.passes]
    assert order.index("flip") < order.index("canonicalize") < order.index("decompose") < order.index("Count")


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, "a folder that holds"),
        ({"middle_x": "import absent_module"}, "x.py:1: ModuleNotFoundError: No module named 'absent_module'"),
        ({"middle_x": PASS + "\n    run_before = ('decompose',)\n"}, "cannot be sorted: cycle"),
        ({"middle_x": LOST}, r"extension Lose: KeyError: 'lost' \(.*x.py:\d+\)"),
    ],
)
def test_what_is_wrong_is_the_users(tmp_path: Path, files: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        _ = stages(absolute(tmp_path), options(folder(tmp_path, **files))).optimized


def test_the_cache_sees_what_extensions_say(tmp_path: Path) -> None:
    path = absolute(tmp_path)
    before = key_of(path, options(folder(tmp_path, middle_flip=RULES)))
    elsewhere = folder(tmp_path / "copy", middle_flip=RULES)
    assert key_of(path, options(elsewhere)) == before != key_of(path, CompileOptions(level=None))
    folder(tmp_path, middle_flip=RULES + "\n# changed")
    assert key_of(path, options(tmp_path / "mine")) != before


SCALED = """
from aot.ir.registry import op
from aot.opset.elementwise.unary import Real
{imports}


@op("extension")
class Scaled(Real):
    '''x * FACTOR'''

    def scalar(self, x):
        return x * FACTOR

    def reference(self, x):
        return x * x.dtype.type(FACTOR)
"""


def scaled(place: Path, factor: float, imports: str = "") -> Path:
    return folder(place, ops_scaled=SCALED.format(imports=imports or f"FACTOR = {factor}"))


def scaled_model(place: Path) -> Path:
    layers = [parameter(), layer(1, "s", "Scaled", "extension", inputs=(0,), outputs=(1,))]
    path = place / "scaled.xml"
    path.write_text(network([*layers, layer(2, "y", "Result", inputs=(0,))], "0.0->1.0 1.1->2.0"))
    return path


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
    ("imports", "file"),
    [
        ("from ..shared import FACTOR", "mine/shared.py"),
        ("from ..deep.er import FACTOR", "mine/deep/er.py"),
        ("from .other import FACTOR", "mine/ops/other.py"),
        ("from shared_beside import FACTOR", "shared_beside.py"),
        ("import shared_package.part\nFACTOR = shared_package.part.FACTOR", "shared_package/part.py"),
        ("from through import FACTOR", "shared_behind.py"),
    ],
)
def test_the_cache_sees_modules_that_extensions_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str, file: str
) -> None:
    """A changed module is loaded anew, in this process too, also if its size and time are as before."""
    monkeypatch.syspath_prepend(tmp_path)
    path, mine = scaled_model(tmp_path), scaled(tmp_path, 0, imports)
    (tmp_path / "through.py").write_text("import shared_behind\nFACTOR = shared_behind.FACTOR\n")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    for factor in (2, 3, 2):
        (tmp_path / file).write_text(f"FACTOR = {factor}\n")
        os.utime(tmp_path / file, (1e9, 1e9))
        made = compile_model(path, options(mine), cache_dir=tmp_path / "cache")
        assert made(X)[0][0, 0] == factor
    assert len(list((tmp_path / "cache").glob("*.so"))) == 2
    assert not {"shared_beside", "shared_package", "through"} & set(sys.modules)


def test_a_model_is_not_kept_under_a_key_that_its_files_outlived(tmp_path: Path) -> None:
    late = "FACTOR = 1\n\ndef late():\n    from ..late import VALUE\n    return VALUE\n"
    text = SCALED.format(imports=late).replace("return x * FACTOR", "return x * late()")
    path, mine = scaled_model(tmp_path), folder(tmp_path, ops_scaled=text)
    (mine / "late.py").write_text("VALUE = 7\n")
    for factor in (7, 8):
        (mine / "late.py").write_text(f"VALUE = {factor}\n")
        made = compile_model(path, options(mine), cache_dir=tmp_path / "cache")
        assert made(X)[0][0, 0] == factor


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
        ("changes_interface = True", "for node in list(graph.results): graph.remove(node)", "keeps one of its outputs"),
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


def test_an_input_cannot_be_connected_to_an_input(tmp_path: Path) -> None:
    body = "n = graph.get_op_nodes('Abs')[0]; n.in_port(0).connect(n.in_port(0))"
    with pytest.raises(UsageError, match="connect: an input reads an output"):
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
