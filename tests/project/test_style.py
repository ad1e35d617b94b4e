"""Sentences that a reader must decode: docstrings that begin like an answer; and constants named by no noun."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import aot
import runtime

ROOT = Path(__file__).parents[2]
FOLDERS = ("aot", "codegen", "runtime")
ANSWERS = "Of What Those These With Without As Whether Where Which Who Whose How Does Is Are May Can Has Do".split()
RIDDLES = re.compile(rf"({'|'.join(ANSWERS)}) ")
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
BARE = re.compile(r"_?(FAR|MANY|FEW|MOST|LEAST|LONGEST|LARGEST|DEEPEST|SMALL|TINY|WIDE|NARROW|CLOSE)")


def docstrings(path: Path) -> list[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    nodes = [n for n in ast.walk(tree) if isinstance(n, kinds)]
    return [(getattr(n, "name", path.stem), text) for n in nodes if (text := ast.get_docstring(n)) is not None]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_are_sentences(folder: str) -> None:
    files = [*sorted((ROOT / folder).rglob("*.py")), *([ROOT / "cli.py"] if folder == "aot" else [])]
    found = [(path.relative_to(ROOT), name, text.split("\n")[0]) for path in files for name, text in docstrings(path)]
    riddles = [f"{p}: {n}: {s}" for p, n, s in found if RIDDLES.match(s) or s.rstrip().endswith("?")]
    assert not riddles, f"{len(riddles)} docstrings:\n" + "\n".join(riddles)


def undecorated(path: Path) -> list[tuple[str, str]]:
    """Functions that are no property, conversion or rule, whose docstrings may be an equation or a noun."""
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    plain = [n for n in functions if not n.decorator_list]
    return [(n.name, text.split("\n")[0]) for n in plain if (text := ast.get_docstring(n)) is not None]


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_are_imperative(folder: str) -> None:
    found = [(p.relative_to(ROOT), *f) for p in sorted((ROOT / folder).rglob("*.py")) for f in undecorated(p)]
    assert [f"{p}: {n}: {s}" for p, n, s in found if NOUNS.match(s)] == []


@pytest.mark.parametrize("folder", NAMED_FOLDERS)
def test_constants_are_named_by_nouns(folder: str) -> None:
    trees = [(path, ast.parse(path.read_text())) for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [
        (path, t.id)
        for path, tree in trees
        for n in tree.body
        if isinstance(n, ast.Assign)
        for t in n.targets
        if isinstance(t, ast.Name)
    ]
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in names if BARE.fullmatch(name)] == []


def test_public_names_of_the_python_api_have_docstrings() -> None:
    owners = [getattr(package, n) for package in (runtime, aot) for n in package.__all__ if n != "runtime"]
    classes = [one for one in owners if isinstance(one, type)]
    members = [(c, k, v.fget if isinstance(v, property) else v) for c in classes for k, v in vars(c).items()]
    public = [(c, k, v) for c, k, v in members if callable(v) and not k.startswith("_")]
    assert [f"{c.__name__}.{k}" for c, k, v in public if not inspect.getdoc(v)] == []
    assert all(one.__doc__ for one in owners if callable(one))
