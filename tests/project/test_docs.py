"""The pages of README and docs: their snippets run, what they print is what the page shows, and no page is long.

```sh, ```python             run, in the order of the page, in one folder that holds `examples` and one namespace
```text after one of these   its lines follow one another in the output; a line `…` stands for any number of lines
<!-- not run: REASON -->     before a block that no test can run
<!-- excerpt: FILE -->       before a block whose lines follow one another in FILE, but for `…`
<!-- golden: PASS -->        before some lines of a golden of `tests/lowering`, in its order; a line may be cut by ` …`
<!-- file: PATH -->          before a block that is a file of the page's folder
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot import cli
from aot.codegen.costs import COSTS
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.schedule import Tail

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(p.relative_to(ROOT)) for p in PAGES]
RUN = ("sh", "python")
LONGEST = 250
LIMITS = {"README.md": 110, "docs/develop/architecture.md": 150}
NOT_RUN = 30  # blocks that no test runs: installation, minutes of work, packages and networks that are not part of it
BLOCK = re.compile(r"(?ms)(?:^<!-- (?P<mark>[a-z ]+): (?P<say>[^\n]*?) -->\n)?^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$")


@dataclass(frozen=True)
class Block:
    """A fenced block: `mark` and `say` are of the comment before it, `gap` is the text since the block before."""

    info: str
    text: str
    line: int
    mark: str
    say: str
    gap: str


def blocks(page: Path) -> Iterator[Block]:
    text, end = page.read_text(), 0
    for m in BLOCK.finditer(text):
        line = text.count("\n", 0, m.start("text"))
        yield Block(m["info"], m["text"], line, m["mark"] or "", m["say"] or "", text[end : m.start()])
        end = m.end()


def missing(shown: str, output: str) -> str | None:
    """The first lines of `shown`, up to a line `…`, that do not follow one another in `output`, behind those before."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    for part in re.split(r"(?m)^ *…$", shown):
        wanted = [line.rstrip() for line in part.splitlines() if line.strip()]
        starts = range(len(lines) - len(wanted) + 1)
        start = next((n for n in starts if all(map(_shows, wanted, lines[n:]))), None)
        if start is None:
            return part
        lines = lines[start + len(wanted) :]
    return None


def _shows(wanted: str, line: str) -> bool:
    """True if a line of a page is one of an output; ` …` at its end stands for the rest."""
    return line.startswith(wanted.removesuffix(" …")) if wanted.endswith(" …") else line == wanted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples and the commands `aot` and `python`. Schedules are those of a machine of two cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(2)))
    monkeypatch.setattr("aot.runtime.systems.linux.processor.processors", lambda: 2)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "bin").mkdir()
    for name, code in {"aot": '-m aot "$@"', "python": '"$@"'}.items():
        script = tmp_path / "bin" / name
        script.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {code}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def help_of(module: str) -> str:
    """Return the output of `python -m MODULE -h`, run in this process."""
    with redirect_stdout(io.StringIO()) as output, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module, "-h"])
        for name in (module, f"{module}.__main__"):  # runpy warns of a module that another test has imported
            patch.delitem(sys.modules, name, raising=False)
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert not ended.value.code
    return output.getvalue()


def run_shell(text: str) -> str:
    """The output of a block of commands. Those of `aot` run in this process, which spares the time of importing."""
    output = ""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["aot"] and not {"&&", "|", ">", ";"} & set(words):
            words += ["--seconds", "0.05"] if words[1:2] == ["report"] else []  # readers measure for a second
            done = CliRunner().invoke(cli.app, words[1:])
            assert done.exit_code == 0, f"{line}\n{done.output}"
            output += done.stdout
        elif words[:2] == ["python", "-m"] and words[3:] == ["-h"]:
            output += help_of(words[2])
        elif words:
            shell = subprocess.run(["sh", "-ec", line], capture_output=True, text=True, timeout=600, check=False)
            assert shell.returncode == 0, f"{line}\n{shell.stdout}{shell.stderr}"
            output += shell.stdout
    return output


def run_python(text: str, names: dict[str, object], where: str) -> str:
    with redirect_stdout(io.StringIO()) as output:
        exec(compile(text, where, "exec"), names)
    return output.getvalue()


def has_snippets(page: Path) -> bool:
    return any(b.info in RUN for b in blocks(page))


@pytest.mark.parametrize("name", [n for n, p in zip(NAMES, PAGES, strict=True) if has_snippets(p)])
@pytest.mark.filterwarnings("default")
def test_snippets_run(name: str, folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    output = None
    for block in blocks(ROOT / name):
        where = f"{name}:{block.line}"
        if block.mark == "file":
            (folder / block.say).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.say).write_text(block.text)
            output = None
        elif block.info in RUN and not block.mark:
            output = run_shell(block.text) if block.info == "sh" else run_python(block.text, names, where)
        elif block.info == "text" and output is not None and not block.gap.strip():
            assert missing(block.text, output) is None, f"{where} shows a line that is not in\n{output}"
        else:
            output = None


@pytest.mark.parametrize("name", NAMES)
def test_excerpts_are_up_to_date(name: str) -> None:
    for block in blocks(ROOT / name):
        if block.mark == "excerpt":
            assert missing(block.text, (ROOT / block.say).read_text()) is None, f"{name}:{block.line}"
        elif block.mark == "golden":
            golden = (ROOT / f"tests/lowering/goldens/{block.say}.txt").read_text()
            assert missing("…\n".join(block.text.splitlines(keepends=True)), golden) is None, f"{name}:{block.line}"


@pytest.mark.parametrize("name", NAMES)
def test_page_is_short(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= LIMITS.get(name, LONGEST)


@pytest.mark.parametrize("name", NAMES)
def test_commands_are_marked_as_such(name: str) -> None:
    """A block without a language, or one that is indented, holds no command: it would not run here."""
    text = re.sub(r"(?ms)^```.*?^```$", "", (ROOT / name).read_text())
    assert not re.search(r"(?m)^    (\$ |aot |python |pip |sh |pytest )", text), name
    for block in blocks(ROOT / name):
        assert block.mark in ("", "not run", "excerpt", "golden", "file"), f"{name}:{block.line}: {block.mark}"
        commands = re.search(r"(?m)^(\$ |aot |python |pip |sh |pytest )", block.text)
        assert block.info or not commands, f"{name}:{block.line}"


def test_few_snippets_are_not_run() -> None:
    skipped = [(n, b) for n, p in zip(NAMES, PAGES, strict=True) for b in blocks(p) if b.mark == "not run"]
    assert all(len(b.say) > 5 for _, b in skipped)
    assert len(skipped) <= NOT_RUN, [f"{n}:{b.line}" for n, b in skipped]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """Files of links exist, and so do the headings behind `#`."""
    page = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```$", "", page.read_text())):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{name}: {target}"
        if anchor and other.suffix == ".md":
            heads = re.findall(r"(?m)^#+ (.*)$", other.read_text())
            assert anchor in {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in heads}, target


def test_costs_in_pages_are_fields() -> None:
    texts = {page: page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    names = {(page.name, name) for page, text in texts.items() for name in re.findall(r"`COSTS\.(\w+)`", text)}
    assert sorted(n for n in names if not hasattr(COSTS, n[1])) == []


@pytest.mark.parametrize(("word", "values"), [("tail", Tail), ("memory region", MemoryRegion)])
def test_glossary_has_all_values(word: str, values: type[StrEnum]) -> None:
    (row,) = re.findall(rf"(?m)^\| {word} \((.*?)\)", (ROOT / "docs" / "develop" / "glossary.md").read_text())
    assert set(re.findall(r"`(\w+)`", row)) == {v.value for v in values}


def test_each_statement_has_a_test() -> None:
    rows = re.findall(r"(?m)^\| (?!the manual)(?!--).*$", (ROOT / "docs" / "use" / "migrate" / "manual.md").read_text())
    named = [re.search(r"\| `([\w/]+\.py)::(test_\w+)` \|$", row) for row in rows]
    assert len(rows) > 100 and [row for row, name in zip(rows, named, strict=True) if name is None] == []
    found = {m.groups() for m in named if m is not None}
    assert [n for n in sorted(found) if f"def {n[1]}(" not in (ROOT / "tests" / n[0]).read_text()] == []
