"""Each option is declared once: a library tells it, or it changes none; keywords, pages and the cache follow it."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from onnx import helper
from typer.testing import CliRunner

from aot import cli
from aot.commands.line.help import EXAMPLES
from aot.compilation.cache import key_of
from aot.compilation.driver import stages
from aot.compilation.recompile import options_of, to_give_again
from aot.compilation.recorded_options import CONTENTS, recorded_options
from aot.options import CompileOptions, typed_text
from aot.options.declaration import Record
from aot.runtime.loading.manifest import Manifest
from tests.frontends.onnx.models import model, save
from tests.mo.test_loading import HEAD, REPLACE, X, folder, network
from tests.options.samples import ROWS, sample

ROOT = Path(__file__).parents[2]


def test_each_option_is_read() -> None:
    """A row that nothing reads would be recorded and have no effect."""
    paths = [path for path in (ROOT / "aot").rglob("*.py") if path.parent.name != "options"]
    text = "\n".join(path.read_text() for path in paths)
    unread = [name for name in ROWS if not re.search(rf"\.{name}\b|[\"']{name}[\"']", text)]
    assert not unread


def given(name: str) -> CompileOptions:
    return CompileOptions(**{name: sample(name)})


def manifest_of(told: object) -> Manifest:
    return cast("Manifest", SimpleNamespace(options=json.loads(json.dumps(told)), json={}))


def those(*kinds: Record) -> list[str]:
    return [name for name, row in ROWS.items() if row.record in kinds and not row.harmless]


@pytest.mark.parametrize("name", ROWS)
def test_an_option_is_recorded_or_says_why_it_need_not_be(name: str) -> None:
    row = ROWS[name]
    assert row.record is Record.IF_SET or not row.harmless
    assert (row.record is Record.ELSEWHERE) == bool(row.recorded_as)
    assert set(row.commands) <= set(EXAMPLES)
    assert given(name) != CompileOptions()


@pytest.mark.parametrize("name", those(Record.ALWAYS, Record.IF_SET))
def test_recorded_options_are_read_back(name: str) -> None:
    told = recorded_options(given(name), 0)
    assert options_of(manifest_of(told), CompileOptions()) == given(name)
    assert (name in recorded_options(CompileOptions(), 0)) == (ROWS[name].record is Record.ALWAYS)


@pytest.mark.parametrize(
    "name", [n for n, r in ROWS.items() if r.harmless and n != "hard_limits"]
)  # which this process would keep
def test_an_option_that_is_not_recorded_changes_no_code(name: str, tmp_path: Path) -> None:
    value = tmp_path if isinstance(sample(name), Path) else sample(name)
    plain = stages(network(tmp_path), CompileOptions(level=None)).built.manifest
    assert stages(network(tmp_path), CompileOptions(level=None, **{name: value})).built.manifest == plain
    assert recorded_options(given(name), 0) == recorded_options(CompileOptions(), 0)


@pytest.mark.parametrize("value", [None, 0, 3])
def test_the_level_is_told_by_the_code_generator(value: int | None, tmp_path: Path) -> None:
    told = stages(network(tmp_path), CompileOptions(level=value)).built.manifest["options"]
    assert options_of(manifest_of(told), CompileOptions()).level == value


def test_the_place_of_weights_changes_no_code(tmp_path: Path) -> None:
    hashes = {
        stages(network(tmp_path), CompileOptions(level=None, external_weights=on)).built.manifest["hash"]
        for on in (False, True)
    }
    assert len(hashes) == 1


def test_values_are_told_by_name_and_hash(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "k"], ["y"], name="add")]
    path = save(tmp_path, model(nodes, {"x": X, "k": X}, ["y"]))
    asked = CompileOptions(level=None, values=(("k", ((1.0, 2.0, 3.0),)),))
    manifest = manifest_of(stages(path, asked).built.manifest["options"])
    assert manifest.options["values"] == ["k"]
    again = options_of(manifest, asked)
    assert (again.values, to_give_again(manifest, path, again)) == (asked.values, [])
    for wrong in ((), (("k", ((1.0, 2.0, 4.0),)),)):
        assert to_give_again(manifest, path, replace(again, values=wrong)) == ["values"]


CONFIG = '[{{"id": "X", "match_kind": "general", "custom_attributes": {{"a": {0}}}}}]'
GENERAL = """
class X(FrontReplacementFromConfigFileGeneral):
    replacement_id = "X"
    def transform_graph(self, graph, replacement_descriptions):
        pass
"""


def command(*words: object, code: int = 0, **environment: str) -> str:
    done = CliRunner().invoke(cli.app, [str(word) for word in words], env=environment)
    assert done.exit_code == code, done.output
    return done.output


def test_provenance_repeats_extensions_and_says_what_it_needs_again(tmp_path: Path) -> None:
    mine = folder(tmp_path, front_x=HEAD + REPLACE.format(more="enabled = False") + GENERAL)
    path, library, config = network(tmp_path), tmp_path / "m.so", tmp_path / "c.json"
    config.write_text(CONFIG.format(1))
    own = ["--extensions", mine, "--transformations-config", config]
    switched = {"MO_ENABLED_TRANSFORMS": "to_abs", "MO_DISABLED_TRANSFORMS": "MaxPool"}
    command("compile", path, "-o", library, *own, **switched)
    told = json.loads(command("info", library, "--json"))["options"]
    assert (told["enable_transforms"], told["disable_transforms"]) == (["to_abs"], ["MaxPool"])
    assert (told["transformations_config"], told[CONTENTS].keys()) == (["c.json"], {"extensions"})
    again = ["provenance", library, "--model", path]
    command(*again, *own)  # without the variables of the environment
    command(*again, *own, MO_DISABLED_TRANSFORMS="to_abs")  # with others
    assert "extensions must be those" in command(*again, code=4)
    config.write_text(CONFIG.format(2))
    assert "extensions must be those" in command(*again, *own, code=4)


def test_switches_win_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = folder(tmp_path, front_x=HEAD + REPLACE.format(more="enabled = False"))
    monkeypatch.setenv("MO_ENABLED_TRANSFORMS", "to_abs")
    made = stages(network(tmp_path), CompileOptions(extensions=mine, enable_transforms=("other",)))
    assert made.options.enable_transforms == ("other",)
    assert stages(network(tmp_path)).options.enable_transforms is None  # nothing to switch without extensions


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if not row.by_content])
def test_the_cache_tells_options_apart_that_change_code(name: str, tmp_path: Path) -> None:
    path = network(tmp_path)
    assert (key_of(path, given(name)) == key_of(path, CompileOptions())) == bool(ROWS[name].harmless)


def test_the_cache_tells_the_contents_of_tune_files_apart(tmp_path: Path) -> None:
    path, file = network(tmp_path), tmp_path / "t.json"
    keys: set[str] = set()
    for text in ("1", "2"):
        file.write_text(text)
        keys.add(key_of(path, CompileOptions(tune_file=file)))
    assert len(keys) == 2


def test_keywords_for_type_checkers_are_current() -> None:
    """`scripts/generate` makes the file."""
    assert typed_text.FILE.read_text() == typed_text.text()


@pytest.mark.parametrize("page", ["cli", "cli-language-models", "options"])
def test_page_is_current(page: str) -> None:
    """`scripts/generate` makes the pages."""
    assert (ROOT / "docs" / "use" / f"{page}.md").read_text() == command("--markdown", page)


def test_every_option_of_the_table_has_a_field_and_help() -> None:
    assert list(ROWS) == [f.name for f in fields(CompileOptions)]
    assert [name for name, row in ROWS.items() if not row.help] == []
