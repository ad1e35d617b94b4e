"""What holds for the whole tree: operations are complete, files are short, nothing refers to a developer's machine."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from aot.ir.op import FORMS, ComputeOp, DecomposedOp, LoopOp, Op, RegionOp, ViewOp
from aot.ir.registry import REGISTRY
from aot.tools.table import markdown, operations
from tests.cases import Case, tables

ROOT = Path(__file__).parents[2]
FOLDERS = ("aot", "benchmarks", "codegen", "docs", "examples", "runtime", "scripts", "tests", "typings")
TEXTS = sorted(
    path
    for path in [*ROOT.glob("*.*"), *(p for folder in FOLDERS for p in (ROOT / folder).rglob("*"))]
    if path.is_file() and path.suffix in {"", ".c", ".h", ".ll", ".md", ".py", ".pyi", ".toml", ".txt", ".xml"}
)
MODULES = [path for path in TEXTS if path.suffix == ".py"]
KEPT = {"ReadValue", "Assign", "IsSet", "KeptSizes", "KeptValue", "CacheSizes", "CacheRoom", "Append"}
STRINGS = {"StringTensorPack", "StringTensorUnpack"}  # numbers stand for them in all that runs
FORMLESS = {"Parameter", "Constant", "Result"} | KEPT | STRINGS  # the edges of a graph and its state
METHODS = {ComputeOp: "compute", ViewOp: "pieces", DecomposedOp: "decompose", LoopOp: "nest"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}

CASES = [case for table in tables().values() for case in table]
TRIED = {type(case.op) for case in CASES}

each_op = pytest.mark.parametrize("op", REGISTRY.values(), ids=REGISTRY)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_family_is_imported() -> None:
    families = {path for path in (ROOT / "aot" / "opset").rglob("*.py") if "@op(" in path.read_text()}
    registered = {ROOT / (cls.__module__.replace(".", "/") + ".py") for cls in REGISTRY.values()}
    assert registered == families


@each_op
def test_op_says_what_it_means(op: type[Op]) -> None:
    text = op.__dict__.get("__doc__") or ""
    assert text and not text.startswith(f"{op.__name__}("), "the docstring is the formula"


@each_op
def test_op_has_one_form(op: type[Op]) -> None:
    forms = [form for form in FORMS if issubclass(op, form)]
    assert len(forms) == (0 if op.type in FORMLESS else 1)
    for form in forms:
        assert form is RegionOp or hasattr(op, METHODS[form])


@each_op
def test_op_has_inference_and_reference(op: type[Op]) -> None:
    assert hasattr(op, "infer") or op.outputs is not Op.outputs or op.type == "Constant"
    if op.type not in FORMLESS and not issubclass(op, RegionOp):
        assert hasattr(op, "reference") or op.evaluate is not Op.evaluate


@each_op
def test_op_has_cases(op: type[Op]) -> None:
    if op.opset and op.type not in FORMLESS and not issubclass(op, RegionOp):  # without a set: made by passes alone
        assert op in TRIED


@pytest.mark.parametrize("case", CASES)
def test_cases_have_the_element_types_that_the_table_says(case: Case) -> None:
    first = case.operands()[0] if case.inputs else None
    assert first is None or case.op.elements.include(first.dtype)


def test_page_of_operations_is_up_to_date() -> None:
    """`aot ops --markdown > docs/use/models/ops.md` makes it."""
    assert (ROOT / "docs" / "use" / "models" / "ops.md").read_text() == markdown(operations()) + "\n"


def test_definitions_are_registered_once() -> None:
    found = Counter((op.type, op.opset) for op in REGISTRY.values())
    assert [key for key, count in found.items() if count > 1] == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500
    assert path.stem not in VAGUE


def test_nothing_refers_to_a_machine() -> None:
    places = "|".join(("work", "farm", "tmp", "root", "home"))
    outside = re.compile(rf"(?<![\w.])/(?:{places})/[\w.]|\.\.{'/'}shared")
    lines = [f"{name(path)}: {line}" for path in TEXTS for line in path.read_text().splitlines()]
    assert [line for line in lines if outside.search(line)] == []
