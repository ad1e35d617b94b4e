"""Facts about the whole tree: operations are complete, files are short, nothing refers to a developer's machine."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from aot.ir.op import FORMS, ComputeOp, DecomposedOp, LoopOp, Op, RegionOp, ViewOp
from aot.ir.registry import all_operations
from aot.tools.table import markdown, operations
from tests.cases import tables

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

OPS = list(all_operations().values())
RUN = [op for op in OPS if op.type not in FORMLESS and not issubclass(op, RegionOp)]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_family_is_imported() -> None:
    families = {path for path in (ROOT / "aot" / "opset").rglob("*.py") if "@op(" in path.read_text()}
    registered = {ROOT / (cls.__module__.replace(".", "/") + ".py") for cls in all_operations().values()}
    assert registered == families


def test_all_definitions_of_a_type_are_in_one_module() -> None:
    """`find` imports the other families only for a type of which it knows no definition."""
    modules = {(op.type.lower(), op.__module__) for op in OPS if op.opset}
    assert [type for type, n in Counter(type for type, _ in modules).items() if n > 1] == []


def test_operations_say_what_they_mean() -> None:
    """The docstring is the formula."""
    texts = {op: op.__dict__.get("__doc__") or "" for op in OPS}
    assert [op for op, text in texts.items() if not text or text.startswith(f"{op.__name__}(")] == []


def test_operations_have_one_form() -> None:
    forms = {op: [form for form in FORMS if issubclass(op, form)] for op in OPS}
    assert [op for op, found in forms.items() if len(found) != (0 if op.type in FORMLESS else 1)] == []
    found = ((op, form) for op in OPS for form in forms[op] if form is not RegionOp)
    assert [op for op, form in found if not hasattr(op, METHODS[form])] == []


def test_operations_have_inference_and_reference() -> None:
    assert [op for op in OPS if op.outputs is Op.outputs and op.type != "Constant" and not hasattr(op, "infer")] == []
    assert [op for op in RUN if op.evaluate is Op.evaluate and not hasattr(op, "reference")] == []


def test_operations_have_cases() -> None:
    assert [op for op in RUN if op.opset and op not in TRIED] == []  # without a set: made by passes alone


def test_cases_have_the_element_types_that_the_table_says() -> None:
    first = [(case, case.operands()[0]) for case in CASES if case.inputs]
    assert [case for case, x in first if x is not None and not case.op.elements.includes(x.dtype)] == []


def test_page_of_operations_is_up_to_date() -> None:
    """`aot ops --markdown > docs/use/models/ops.md` makes it."""
    assert (ROOT / "docs" / "use" / "models" / "ops.md").read_text() == markdown(operations()) + "\n"


def test_definitions_are_registered_once() -> None:
    found = Counter((op.type, op.opset) for op in all_operations().values())
    assert [key for key, count in found.items() if count > 1] == []


def test_modules_are_short() -> None:
    assert [name(path) for path in MODULES if len(path.read_text().splitlines()) > 500] == []


def test_names_of_modules_say_something() -> None:
    assert [name(path) for path in MODULES if path.stem in VAGUE] == []


def test_nothing_refers_to_a_machine() -> None:
    places = "|".join(("work", "farm", "tmp", "root", "home"))
    outside = re.compile(rf"(?<![\w.])/(?:{places})/[\w.]|\.\.{'/'}shared")
    lines = [f"{name(path)}: {line}" for path in TEXTS for line in path.read_text().splitlines()]
    assert [line for line in lines if outside.search(line)] == []
