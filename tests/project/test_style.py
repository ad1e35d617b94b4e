"""Sentences that a reader must decode: docstrings that begin like an answer; and names that are no nouns, or vague."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import aot
import runtime

ROOT = Path(__file__).parents[2]
FOLDERS = ("aot", "codegen", "runtime")
DOCUMENTED = (*FOLDERS, "tests")
ANSWERS = "Of What Those These With Without As Whether Where Which Who Whose How Does Is Are May Can Has Do".split()
RIDDLES = re.compile(rf"(({'|'.join(ANSWERS)})|Return what) ")
NOUNS = re.compile("(The|A|An|Its|Their|All|Each|Every|Another|One|Both|Names|Values|Elements|Outputs|Inputs|Sizes) ")
NAMED_FOLDERS = (
    "aot/opset",
    "aot/ir",
    "aot/passes",
    "aot/frontends",
    "aot/writers",
    "runtime",
    "codegen/ir",
    "codegen/script",
)
# Names of parameters and locals that do not say what they hold, and how often they may be bound: numbers only fall.
VAGUE = {
    "found": 96,
    "made": 8,
    "place": 76,
    "places": 23,
    "kept": 84,
    "turned": 24,
    "whole": 140,
    "told": 1,
    "said": 1,
    "apart": 10,
    "held": 36,
    "given": 47,
    "wanted": 35,
    "chosen": 23,
    "own": 220,
    "wide": 172,
    "plain": 13,
    "rest": 199,
    "left": 131,
    "alone": 46,
    "behind": 29,
    "beside": 23,
    "again": 13,
}
BARE = re.compile(r"_?(FAR|MANY|FEW|MOST|LEAST|LONGEST|LARGEST|DEEPEST|SMALL|TINY|WIDE|NARROW|CLOSE)")


@dataclass(frozen=True)
class Facts:
    """Names in a file, with the docstrings; functions without decorators are no property, conversion or rule."""

    docstrings: list[tuple[str, str]]
    undecorated: list[tuple[str, str]]
    functions: list[str]
    constants: list[str]
    unused: list[str]  # private functions and classes of the module that nothing in it names
    bound: Counter[str]


@cache
def facts(path: Path) -> Facts:
    """Read a file once for all tests."""
    source = path.read_text()
    tree = ast.parse(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    nodes = [n for n in ast.walk(tree) if isinstance(n, kinds)]
    texts = [(n, getattr(n, "name", path.stem), t) for n in nodes if (t := ast.get_docstring(n)) is not None]
    return Facts(
        [(name, text) for _, name, text in texts],
        [(name, text) for n, name, text in texts if isinstance(n, ast.FunctionDef) and not n.decorator_list],
        [n.name for n in nodes if isinstance(n, ast.FunctionDef)],
        [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)],
        [n.name for n in tree.body if isinstance(n, kinds[:3]) and _is_unused(n, source)],
        Counter(_bound(tree)),
    )


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each parameter, and of each variable where it is assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _is_unused(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, source: str) -> bool:
    is_private = re.match("_[^_]", node.name) is not None and not node.decorator_list
    return is_private and len(re.findall(rf"\b{node.name}\b", source)) == 1


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", DOCUMENTED)
def test_docstrings_are_sentences(folder: str) -> None:
    paths = [*files(folder), *([ROOT / "cli.py"] if folder == "aot" else [])]
    found = [(p.relative_to(ROOT), name, text.split("\n")[0]) for p in paths for name, text in facts(p).docstrings]
    riddles = [f"{p}: {n}: {s}" for p, n, s in found if RIDDLES.match(s) or s.rstrip().endswith("?")]
    assert not riddles, f"{len(riddles)} docstrings:\n" + "\n".join(riddles)


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_are_imperative(folder: str) -> None:
    """Properties and rules may have an equation or a noun."""
    found = [(p.relative_to(ROOT), *f) for p in files(folder) for f in facts(p).undecorated]
    assert [f"{p}: {n}: {s}" for p, n, s in found if NOUNS.match(s)] == []


def test_names_of_tests_have_a_subject() -> None:
    names = [(path.relative_to(ROOT), name) for path in files("tests") for name in facts(path).functions]
    riddles = re.compile(f"test_({'|'.join(ANSWERS[:13])})_", re.IGNORECASE)
    assert [f"{path}: {name}" for path, name in names if riddles.match(name)] == []


@pytest.mark.parametrize("folder", NAMED_FOLDERS)
def test_constants_are_named_by_nouns(folder: str) -> None:
    names = [(path.relative_to(ROOT), name) for path in files(folder) for name in facts(path).constants]
    assert [f"{path}: {name}" for path, name in names if BARE.fullmatch(name)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_private_functions_are_used(folder: str) -> None:
    names = [(path.relative_to(ROOT), name) for path in files(folder) for name in facts(path).unused]
    assert [f"{path}: {name}" for path, name in names if name != "_load_pyfunc"] == []  # MLflow calls it


def test_variables_say_what_they_hold() -> None:
    bound = sum((facts(path).bound for folder in FOLDERS for path in files(folder)), Counter[str]())
    assert {name: bound[name] for name in VAGUE if bound[name] > VAGUE[name]} == {}


def test_public_names_of_the_python_api_have_docstrings() -> None:
    owners = [getattr(package, n) for package in (runtime, aot) for n in package.__all__ if n != "runtime"]
    classes = [one for one in owners if isinstance(one, type)]
    members = [(c, k, v.fget if isinstance(v, property) else v) for c in classes for k, v in vars(c).items()]
    public = [(c, k, v) for c, k, v in members if callable(v) and not k.startswith("_")]
    assert [f"{c.__name__}.{k}" for c, k, v in public if not inspect.getdoc(v)] == []
    assert all(one.__doc__ for one in owners if callable(one))
