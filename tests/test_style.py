"""Sentences that a reader must decode: docstrings that begin like an answer without its question."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("aot", "codegen", "runtime")
ANSWERS = "Of What Those These With Without As Whether Where Which Who Whose How Does Is Are May Can Has Do".split()
RIDDLES = re.compile(rf"({'|'.join(ANSWERS)}) ")


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
