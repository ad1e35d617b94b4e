"""Files, folders and modules that docstrings, comments and pages name exist: a rename takes its mentions along."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("aot", "benchmarks", "codegen", "docs", "examples", "runtime", "scripts", "tests")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [ROOT / "cli.py", *(p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py")))]
FILES = [p.relative_to(ROOT) for folder in FOLDERS for p in (ROOT / folder).rglob("*.*")] + [Path("cli.py")]
ENDINGS = {"/".join(file.parts[i:]) for file in FILES for i in range(len(file.parts))}
FILE = re.compile(r"(?<![\w./<>*{}…-])[\w/-]*\w\.(?:py|pyi|md|ll)\b(?![\w/(…])")
FOLDER = re.compile(rf"`((?:{'|'.join(FOLDERS)})(?:/[\w-]+)+)/?`")
DOTTED = re.compile(rf"(?m)(?:`|^\.\. auto\w+:: )((?:{'|'.join(FOLDERS)})(?:\.\w+)+)(?:`|$)")


def sentences(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a module that names anything."""
    text = path.read_text()
    if not any(names.search(text) for names in (FILE, FOLDER, DOTTED)):
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (n for n in ast.walk(ast.parse(text)) if isinstance(n, kinds))
    yield from filter(None, map(ast.get_docstring, nodes))
    yield from re.findall(r"(?m)(?:^|  ) *#( .*)$", text)


def is_there(dotted: str) -> bool:
    """True if a module has the name, or the module that holds it mentions what follows."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:count])
        file = next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)
        if file is not None:
            return all(re.search(rf"\b{name}\b", file.read_text()) for name in parts[count:])
    return ROOT.joinpath(*parts).is_dir()


def missing(text: str, *, is_page: bool) -> Iterator[str]:
    """Yield what a text names and does not exist; a user's files have capitals or, in pages, no folder."""
    for name in FILE.findall(text):
        if name not in ENDINGS and not re.search(r"(^|/)[A-Z]{2}", name) and ("/" in name or not is_page):
            yield name
    for name in FOLDER.findall(text):
        if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists():
            yield name
    yield from (name for name in DOTTED.findall(text) if not is_there(name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see codegen/costs.py, DIR/ops/mine.py and `aot.codegen.costs.Costs`", []),
        ("see carriers.py", ["carriers.py"]),
        ("`aot/gone`, `aot/passes` and `aot.passes.gone.name`", ["aot/gone", "aot.passes.gone.name"]),
    ],
)
def test_missing_names_are_found(text: str, expected: list[str]) -> None:
    assert list(missing(text, is_page=False)) == expected


@pytest.mark.parametrize("folder", ["aot", "codegen", "runtime", "tests", "benchmarks"])
def test_modules_name_what_exists(folder: str) -> None:
    paths = [p for p in MODULES if p.relative_to(ROOT).parts[0] == folder and p != Path(__file__)]
    texts = [(p.relative_to(ROOT), text) for p in paths for text in sentences(p)]
    assert [f"{path}: {name}" for path, text in texts for name in missing(text, is_page=False)] == []


def test_pages_name_what_exists() -> None:
    texts = [(p.relative_to(ROOT), p.read_text()) for p in PAGES]
    assert [f"{path}: {name}" for path, text in texts for name in missing(text, is_page=True)] == []
