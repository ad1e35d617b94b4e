"""Extension folders with classes for Model Optimizer: names, what is refused, switches, cache key, order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.compilation.cache import key_of
from aot.compilation.driver import stages
from aot.extensions.folder import load_extensions
from aot.extensions.modules import Modules
from aot.ir.interpret import interpret
from aot.mo import names
from aot.mo.front.tf.attributes import collect_tf_attrs, tf_dtype_extractor, tf_tensor_content, tf_tensor_shape
from aot.mo.ops.library import library_class
from aot.mo.ordering import sort_transforms, split
from aot.mo.transforms import placeholder, placeholders
from aot.options import CompileOptions
from aot.runtime.errors import AotError, BudgetError, CorruptError, UsageError
from tests.frontends.onnx.models import model, save

X = np.array([[1, -2, 3]], np.float32)
HEAD = """
from openvino.tools.mo.front.common.replacement import *
from openvino.tools.mo.front.tf.replacement import *
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern
from openvino.tools.mo.back.replacement import BackReplacementPattern
from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.graph.graph import Node
from openvino.tools.mo.ops.op import Op
from openvino.tools.mo.ops.activation_ops import Abs, Sin
"""
REPLACE = """
class ToAbs(FrontReplacementOp):
    op = "Tanh"
    id = "to_abs"
    {more}
    def replace_op(self, graph, node):
        made = Abs(graph, {{"name": "made"}}).create_node()
        node.in_port(0).get_source().connect(made.in_port(0))
        return [made.id]
"""


def folder(place: Path, **files: str) -> Path:
    """Files of an extension folder: `front_onnx_x` is DIR/front/onnx/x.py."""
    for name, text in files.items():
        path = place / "mine" / f"{name.replace('_', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place / "mine"


def network(place: Path) -> Path:
    nodes = [helper.make_node("Tanh", ["x"], ["t"], name="t"), helper.make_node("Neg", ["t"], ["y"], name="n")]
    return save(place, model(nodes, {"x": X}, ["y"]))


def computed(place: Path, mine: Path, **more: Any) -> Any:
    graph = stages(network(place), CompileOptions(level=None, extensions=mine, **more)).optimized
    return interpret(graph, [X])[0]


NAMES = [
    "from openvino.tools.mo.ops.activation_ops import Sigmoid as found",
    "from mo.ops.activation_ops import Sigmoid as found",
    "from extensions.ops.activation_ops import Sigmoid as found",
    "import openvino.tools.mo.ops.activation_ops\nfound = openvino.tools.mo.ops.activation_ops.Sigmoid",
    "import openvino.tools.mo.ops.activation_ops as a\nfound = a.Sigmoid",
    "from openvino.tools.mo.ops import activation_ops\nfound = activation_ops.Sigmoid",
    "from openvino.tools import mo\nfound = mo.ops.activation_ops.Sigmoid",
]


@pytest.mark.parametrize("text", NAMES)
def test_import_names_lead_to_one_class(tmp_path: Path, text: str) -> None:
    modules = Modules(folder(tmp_path, front_x=text))
    assert modules.load("front.x").found is library_class("activation_ops", "Sigmoid")
    modules.forget()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "from openvino.tools.mo.ops.activation_op import Sigmoid",
            "did you mean openvino.tools.mo.ops.activation_ops",
        ),
        ("from openvino.tools.mo.ops.activation_ops import Sigmoids", "did you mean Sigmoid"),
        ("from openvino.tools.mo.graph.graph import Connection", "it is in openvino.tools.mo.graph.connection"),
        ("from mo.graph.graf import Graph", "did you mean mo.graph.graph"),
    ],
)
def test_a_name_that_is_absent_is_an_import_error_with_the_nearest_one(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        load_extensions(folder(tmp_path, front_x=text))


def test_an_operation_whose_inputs_an_extension_cuts_off_is_named(tmp_path: Path) -> None:
    text = """
class Cuts(FrontReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        graph.get_op_nodes(name="t")[0].in_port(0).disconnect()
"""
    with pytest.raises(AotError, match=r"t \(Tanh\): an extension has cut off its inputs"):
        computed(tmp_path, folder(tmp_path, front_cuts=HEAD + text))


CUT = (
    HEAD
    + """
class Cuts(FrontReplacementPattern):
    enabled = True
    def find_and_replace_pattern(self, graph):
        graph.get_op_nodes(name="n")[0].in_port({port}).disconnect()
"""
)


@pytest.mark.parametrize(
    ("kind", "port", "rule"), [("Conv", 1, "missing a required argument"), ("Where", 0, "must be")]
)
def test_an_operation_without_an_input_that_it_needs_is_named(tmp_path: Path, kind: str, port: int, rule: str) -> None:
    x = np.ones((1, 1, 3, 3), np.float32)
    names = ["x", "x"] if kind == "Conv" else ["c", "x", "x"]
    nodes = [helper.make_node("Cast", ["x"], ["c"], to=9), helper.make_node(kind, names, ["y"], name="n")]
    path = save(tmp_path, model(nodes, {"x": x}, ["y"]))
    with pytest.raises(UsageError, match=rf"n \({kind}\): an extension has cut off an input that it needs.*{rule}"):
        _ = stages(path, CompileOptions(extensions=folder(tmp_path, front_x=CUT.format(port=port)))).optimized


def test_an_input_that_an_operation_may_lack_can_be_cut_off(tmp_path: Path) -> None:
    x = np.array([[1.0, 5.0, 9.0]], np.float32)
    nodes = [helper.make_node("ReduceMax", ["x"], ["m"]), helper.make_node("Clip", ["x", "low", "m"], ["y"], name="n")]
    path = save(tmp_path, model(nodes, {"x": x}, ["y"], {"low": np.array(4, np.float32)}))
    options = CompileOptions(extensions=folder(tmp_path, front_x=CUT.format(port=1)))
    np.testing.assert_array_equal(interpret(stages(path, options).optimized, [x])[0], x)


def test_the_installed_openvino_stays_what_it_is(tmp_path: Path) -> None:
    text = "import openvino\nimport openvino.tools.mo.ops.op\nfound = openvino.__name__"
    modules = Modules(folder(tmp_path, front_x=text))
    assert modules.load("front.x").found == "openvino"
    assert not any(name.startswith("openvino.tools.mo") for name in list(sys.modules))  # threads import, too
    modules.forget()


def test_nothing_of_it_is_imported_without_extensions_of_this_kind(tmp_path: Path) -> None:
    own = "class Plain:\n    def find_and_replace_pattern(self, graph):\n        return False\n"
    mine, path = folder(tmp_path, middle_x=own), network(tmp_path)
    code = (
        "import sys; from aot.compilation.driver import stages; from aot.options import CompileOptions;"
        "from pathlib import Path;"
        f"stages({str(path)!r}, CompileOptions(extensions=Path({str(mine)!r}))).optimized;"
        "print([m for m in sys.modules if (m + '.').startswith(('aot.mo.', 'networkx.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("framework", ["onnx", "tf"])
def test_the_order_is_that_of_model_optimizer(framework: str) -> None:
    order = [cls.__name__ for cls in sort_transforms(placeholders(framework))]
    known = [
        "LoadFinish",
        "FrontStart",
        "Pack",
        "FrontFinish",
        "CreateTensorNodes",
        "PartialInfer",
        "PreMiddleStart",
        "MiddleStart",
        "MiddleFinish",
        "PostMiddleStart",
        "ApplyPermutation",
        "BackStart",
        "BackFinish",
    ]
    assert [name for name in order if name in known] == known
    assert len(order) == {"onnx": 287, "tf": 345}[framework]


def test_transformations_stand_where_they_say(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
from openvino.tools.mo.front.Pack import Pack
from openvino.tools.mo.middle.pass_separator import PostMiddleStart
class Late(FrontReplacementPattern):
    def run_after(self): return [Pack]
    def find_and_replace_pattern(self, graph): pass
class Early(FrontReplacementPattern):
    def run_before(self): return [Late]
    def run_after(self): return []
    def find_and_replace_pattern(self, graph): pass
class Last(MiddleReplacementPattern):
    def run_after(self): return [PostMiddleStart]
    def run_before(self): return []
    def find_and_replace_pattern(self, graph): pass
"""
    )
    modules = Modules(folder(tmp_path, front_x=text))
    found = modules.load("front.x")
    order = sort_transforms([*placeholders("onnx"), found.Late, found.Early, found.Last])
    place = order.index
    assert place(found.Early) < place(found.Late)
    assert place(placeholder("Pack")) < place(found.Late) < place(placeholder("FrontFinish"))
    front, later = split(order)
    assert front[-2:] == [found.Early, found.Late] and placeholder("Pack") in front
    assert later[-1] is found.Last and placeholder("CheckForCycle") in later
    modules.forget()


def test_kinds_of_files_and_folders(tmp_path: Path) -> None:
    """Two folders between a comma; the later one's class stands for the earlier one's of the same op."""
    first = folder(tmp_path / "a", front_x=HEAD + REPLACE.format(more="enabled = True"))
    second = folder(tmp_path / "b", front_onnx_y=HEAD + REPLACE.format(more="enabled = True").replace("Abs", "Sin"))
    np.testing.assert_allclose(computed(tmp_path, first), -np.abs(X))
    np.testing.assert_allclose(computed(tmp_path, Path(f"{first},{second}")), -np.sin(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "environment", "runs"),
    [
        ({}, {}, True),
        ({}, {"MO_DISABLED_TRANSFORMS": "extensions.back.MaxPool.MaxPool,to_abs"}, False),
        ({}, {"MO_DISABLED_TRANSFORMS": "front.x.ToAbs"}, False),
        ({}, {"MO_DISABLED_TRANSFORMS": "mine.front.x.ToAbs"}, False),
        ({}, {"MO_DISABLED_TRANSFORMS": "mine.front.tf.y.OfTensorFlow"}, True),
        ({"disable_transforms": ("to_abs",)}, {}, False),
        ({"enable_transforms": ("to_abs",)}, {"MO_DISABLED_TRANSFORMS": "to_abs"}, False),
    ],
)
def test_transformations_are_switched_by_options_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, environment: dict[str, str], runs: bool
) -> None:
    other = HEAD + "class OfTensorFlow(FrontReplacementOp):\n    op = 'A'\n"
    mine, path = folder(tmp_path, front_x=HEAD + REPLACE.format(more=""), front_tf_y=other), network(tmp_path)
    plain = key_of(path, CompileOptions(level=None, extensions=mine))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    np.testing.assert_allclose(computed(tmp_path, mine, **options), -np.abs(X) if runs else -np.tanh(X), rtol=1e-6)
    assert (key_of(path, CompileOptions(level=None, extensions=mine, **options)) == plain) == (
        not environment and not options
    )


@pytest.mark.parametrize("name", ["to_ab", "mine.front.x.Absent", "theirs.front.x.ToAbs", "mine.front.x.MaxPool"])
def test_an_unknown_name_of_a_transformation_is_an_error(tmp_path: Path, name: str) -> None:
    mine = folder(tmp_path, front_x=HEAD + REPLACE.format(more=""))
    with pytest.raises(UsageError, match=f"got {name}"):
        computed(tmp_path, mine, disable_transforms=(name,))


@pytest.mark.parametrize("name", ["to_abs", "mine.front.x.ToAbs"])
def test_names_are_unknown_without_extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = network(tmp_path)
    monkeypatch.setenv("MO_DISABLED_TRANSFORMS", f"extensions.back.MaxPool.MaxPool,{name}")
    with pytest.raises(UsageError, match=f"of --extensions, got {name}"):
        _ = stages(path, CompileOptions(level=None)).optimized
    assert stages(path, CompileOptions(level=None, disable_transforms=("MaxPool",))).optimized.results


OWN = [
    "from mine.ops.numbers import Number as found",
    "import mine.ops.numbers\nfound = mine.ops.numbers.Number",
    "from mine.ops import numbers\nfound = numbers.Number",
    "from mine import ops\nfrom mine.ops.numbers import Number as found\nfrom .. import ops as o\nassert ops is o",
]


@pytest.mark.parametrize("text", OWN)
def test_a_folder_imports_its_modules_by_its_own_name(tmp_path: Path, text: str) -> None:
    numbers = "class Number:\n    pass\n"
    modules = Modules(folder(tmp_path, ops_numbers=numbers, front_x=text + "\nfrom ..ops.numbers import Number\n"))
    module = modules.load("front.x")
    assert module.found is module.Number, "relative imports lead to the same module"
    modules.forget()


def test_a_class_that_is_switched_off_can_be_switched_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = folder(tmp_path, front_x=HEAD + REPLACE.format(more="enabled = False"))
    np.testing.assert_allclose(computed(tmp_path, mine), -np.tanh(X), rtol=1e-6)
    monkeypatch.setitem(os.environ, "MO_ENABLED_TRANSFORMS", "to_abs")
    np.testing.assert_allclose(computed(tmp_path, mine), -np.abs(X))


def test_a_class_runs_if_all_its_conditions_hold(tmp_path: Path) -> None:
    for number, found in ((3, -np.tanh(X)), (4, -np.abs(X))):
        conditions = f"graph_condition = [lambda graph: True, lambda graph: len(graph.get_op_nodes()) == {number}]"
        mine = folder(tmp_path / str(number), front_x=HEAD + REPLACE.format(more=conditions))
        np.testing.assert_allclose(computed(tmp_path, mine), found, rtol=1e-6)


RAISES = "class Bad(FrontReplacementPattern):\n    def find_and_replace_pattern(self, graph):\n        {body}\n"
BAD: list[tuple[dict[str, str], type[AotError], str]] = [
    (
        {"front_x": HEAD + RAISES.format(body="graph.absent()")},
        UsageError,
        r"extension Bad: AttributeError: .*\(.*x\.py:12\)",
    ),
    (
        {"front_x": HEAD + RAISES.format(body="graph.remove_nodes_from(list(graph.nodes()))")},
        UsageError,
        "extension Bad: a network keeps one of its outputs at least, got y removed",
    ),
    (
        {"front_x": HEAD + RAISES.format(body="pass") + "    def run_before(self): return [Bad]\n"},
        UsageError,
        "they form a cycle: Bad -> Bad",
    ),
    (
        {"front_x": HEAD + RAISES.format(body="pass") + "    def run_before(self): return ['Pack']\n"},
        UsageError,
        "run_before names classes, got 'Pack'",
    ),
    ({"front_x": HEAD + "class Bad(FrontReplacementOp):\n    pass\n"}, UsageError, "op names the operation"),
    ({"front_x": HEAD + "class Bad(FrontReplacementOp):\n    op = 'Tanh'\n"}, UsageError, "replace_op says"),
    ({"front_x": HEAD + "class Bad(FrontReplacementPattern):\n    pass\n"}, UsageError, "pattern or find_and_replace"),
    (
        {"front_x": "class Bad:\n    op = 'Tanh'\n    def replace_op(self, graph, node): pass\n"},
        UsageError,
        "x.py: class Bad: a class with replace_op runs if it derives from a base class",
    ),
    (
        {"front_x": "def tidy(graph):\n    return False\n"},
        UsageError,
        "x.py: a file must declare what runs: .*; got tidy",
    ),
    ({"front_x": HEAD + "def broken(:\n"}, UsageError, r"x\.py:10: SyntaxError"),
    (
        {
            "front_onnx_x": HEAD + "class Bad(FrontExtractorOp):\n    op = 'Tanh'\n    @classmethod\n"
            "    def extract(cls, node):\n        return node.absent\n"
        },
        UsageError,
        r"Bad: node t \(Tanh\): .*x\.py:14",
    ),
    (
        {
            "front_x": HEAD + "class Pack(FrontReplacementOp):\n    op = 'A'\n",
            "front_y": HEAD + "class Pack(FrontReplacementOp):\n    op = 'B'\n",
        },
        UsageError,
        r"names of transformations are unique, got \S+mine/front/x.py and \S+mine/front/y.py",
    ),
]


@pytest.mark.parametrize(("files", "kind", "text"), BAD, ids=[text[:40] for _, _, text in BAD])
def test_broken_extensions_are_errors_that_name_the_file(
    tmp_path: Path, files: dict[str, str], kind: type[AotError], text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        computed(tmp_path, folder(tmp_path, **files))
    assert caught.value.exit_code != 1


def test_a_transformation_that_never_ends_meets_the_time_budget(tmp_path: Path) -> None:
    mine = folder(tmp_path, front_x=HEAD + RAISES.format(body="\n        while True: pass"))
    with pytest.raises(BudgetError):
        computed(tmp_path, mine, max_seconds=0.5)


POINTS = '{"start_points": %s, "end_points": %s}'
CONFIGS = [
    ("{", CorruptError, "is JSON, got"),
    ("{}", CorruptError, "a list of entries"),
    ("[1]", CorruptError, "entry 1: an entry"),
    ('[{"match_kind": "general"}]', CorruptError, "entry 1: id must be given"),
    ('[{"id": "X", "match_kind": "shape"}]', CorruptError, r"c\.json: X: match_kind: one of scope, points, general"),
    ('[{"id": "X", "match_kind": "scope"}]', CorruptError, "X: instances must be given for scope"),
    ('[{"id": "X", "match_kind": "scope", "instances": ["*"]}]', CorruptError, "X: instances: a list of regular expr"),
    ('[{"id": "X", "match_kind": "points", "instances": {}}]', CorruptError, "X: instances: {.start_points"),
    ('[{"id": "X", "match_kind": "general", "inputs": [[{"node": "a"}]]}]', CorruptError, "X: inputs: a list of lists"),
    ('[{"id": "Y", "match_kind": "general"}]', UsageError, "one of X, got Y"),
    (
        '[{"id": "X", "match_kind": "scope", "instances": ["q"], "inputs": [], "outputs": []}]',
        UsageError,
        r"replacement X: a scope fits nodes of the network by their names, got \['q'\]",
    ),
    (
        '[{"id": "X", "match_kind": "points", "instances": {"start_points": ["q"], "end_points": ["r"]}}]',
        UsageError,
        "replacement X: points fit nodes of the network by their names, got",
    ),
    ('[{"id": "X", "match_kind": "scope", "instances": ["q"]}]', UsageError, r"by their names, got \['q'\]"),
    ('[{"id": "X", "match_kind": "scope", "instances": ["t"]}]', UsageError, "replaced if its inputs are known"),
    (
        f'[{{"id": "X", "match_kind": "points", "instances": {POINTS % (["n"], ["t"])}}}]'.replace("'", '"'),
        UsageError,
        "start node",
    ),
    (
        f'[{{"id": "X", "match_kind": "points", "instances": {POINTS % (["n"], ["n"])}}}]'.replace("'", '"'),
        UsageError,
        "generate_sub_graph",
    ),
]


@pytest.mark.parametrize(("text", "kind", "message"), CONFIGS, ids=[m[:30] for _, _, m in CONFIGS])
def test_errors_of_configuration_files(tmp_path: Path, text: str, kind: type[AotError], message: str) -> None:
    own = "class X(FrontReplacementFromConfigFileSubGraph):\n    replacement_id = 'X'\n"
    mine = folder(tmp_path, front_x=HEAD + own)
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(kind, match=message):
        computed(tmp_path, mine, transformations_config=(tmp_path / "c.json",))


def test_the_cache_key_holds_configuration_files(tmp_path: Path) -> None:
    text = HEAD + "class X(FrontReplacementFromConfigFileGeneral):\n    replacement_id = 'X'\n"
    mine, path, file = folder(tmp_path, front_x=text), network(tmp_path), tmp_path / "c.json"
    keys: set[str] = set()
    for value in (1, 2):
        file.write_text(f'[{{"id": "X", "match_kind": "general", "custom_attributes": {{"a": {value}}}}}]')
        keys.add(key_of(path, CompileOptions(extensions=mine, transformations_config=(file,))))
    assert len(keys) == 2


def test_attributes_of_tensorflow() -> None:
    dims = SimpleNamespace(dim=[SimpleNamespace(size=n) for n in (2, -1)])
    assert tf_tensor_shape(dims).tolist() == [2, None]
    assert tf_dtype_extractor(1) is np.float32 and tf_dtype_extractor(99, int) is int
    held = SimpleNamespace(tensor_content=b"", float_val=[1.0, 2.0], int_val=[7], string_val=[b"a"], half_val=[15360])
    assert tf_tensor_content(1, np.array([2, 2]), held).tolist() == [[1, 2], [2, 2]]
    assert tf_tensor_content(3, np.array([], int), held) == 7
    assert tf_tensor_content(19, np.array([1]), held).tolist() == [1.0]
    raw = SimpleNamespace(tensor_content=np.arange(4, dtype=np.int64).tobytes())
    assert tf_tensor_content(9, np.array([2, 2]), raw).tolist() == [[0, 1], [2, 3]]
    bytes_only = SimpleNamespace(tensor_content=b"", string_val=[b"\xff\xd8", b"a"])
    assert tf_tensor_content(7, np.array([2]), bytes_only).tolist() == [b"\xff\xd8", b"a"]
    unset = {"s": b"", "i": 0, "f": 0.0, "b": False, "type": 0, "shape": SimpleNamespace(dim=[]), "list": None}
    kinds = {"i": 7, "type": 1, "shape": dims, "list": SimpleNamespace(type=[3, 1])}
    found = collect_tf_attrs({key: SimpleNamespace(**{**unset, key: value}) for key, value in kinds.items()})
    assert [found["i"], found["type"], found["list"]] == [7, np.float32, [np.int32, np.float32]]
    assert found["shape"].tolist() == [2, None] and collect_tf_attrs({"b": SimpleNamespace(**unset)}) == {"b": None}


def test_every_name_of_the_table_can_be_imported() -> None:
    for path in names.names():
        wanted = sorted(names.contents(path))
        assert not wanted or names.imported(f"openvino.tools.mo.{path}", wanted).__name__.endswith(path)
