"""The help of the command line: short and long, with examples whose options exist; `--quiet`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from aot import cli
from aot.commands.line.help import EXAMPLES
from aot.commands.line.parameters import flags_of
from aot.options.declaration import Group
from aot.options.table import options

COMMANDS = typer.main.get_command(cli.app).commands
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.xml"
FILES = (
    "model.xml model.onnx model.so model.tflite model.pb decoder.xml old.so net.wasm "
    "x.npy x.npz samples.npz ids.npy mask.npy picture.png names.txt speech.wav"
)
LINES = [(name, line.strip()) for name, text in EXAMPLES.items() for line in text.strip().splitlines()]


def test_every_command_has_examples() -> None:
    assert sorted(COMMANDS) == sorted(EXAMPLES)
    for name in COMMANDS:
        shown = CliRunner().invoke(cli.app, [name, "-h"]).output
        assert all(f"  {line}\n" in shown for command, line in LINES if command == name)


def test_the_list_of_commands_has_whole_sentences() -> None:
    shown = CliRunner().invoke(cli.app, ["-h"], env={"COLUMNS": "80"}).output
    assert "..." not in shown.split("Commands:")[1]


def test_every_parameter_says_what_it_is() -> None:
    helps = [(name, p.name, p.help) for name, command in COMMANDS.items() for p in command.params if p.name != "help"]
    assert [(name, parameter) for name, parameter, text in helps if not text or text.startswith("Of ")] == []


def test_many_options_stand_in_groups() -> None:
    shown = CliRunner().invoke(cli.app, ["compile", "-h"]).output
    titles = [line[:-1] for line in shown.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert titles == ["Arguments", *Group]
    parts = re.split(r"(?m)^[A-Z][a-z ]+:$", shown)
    groups = dict(zip(titles, parts[1:], strict=True))
    rows = {name: row for name, row in options().items() if "compile" in row.commands}
    flags = {n: flags_of(n, row)[0].split("/")[0] for n, row in rows.items()}
    assert [n for n, row in rows.items() if not re.search(rf"(?m)^  .*{flags[n]}", groups[row.group])] == []


@pytest.mark.parametrize("words", [["serve", "nothere.so"], ["compile", str(DIGITS), "--shape", "x"], ["info"]])
def test_a_usage_error_names_its_command(words: list[str]) -> None:
    found = CliRunner().invoke(cli.app, words)
    assert found.exit_code == 2 and f"aot {words[0]} --help" in found.stderr


@pytest.mark.parametrize(("name", "line"), LINES)
def test_examples_can_be_parsed(name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (*FILES.split(), "key.pem", "key.pub", "rules.json", "token"):
        (tmp_path / file).touch()
    for folder in ("folder", "models"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    program, command, *arguments = shlex.split(line)
    assert (program, command) == ("aot", name)
    COMMANDS[name].make_context(name, arguments)


def test_the_rule_of_the_example_exists() -> None:
    rule = EXAMPLES["rewrite"].split()[-1]
    assert CliRunner().invoke(cli.app, ["rewrite", str(DIGITS), "--explain", rule]).exit_code == 0
    wrong = CliRunner().invoke(cli.app, ["rewrite", str(DIGITS), "--explain", rule[:-1]])
    assert wrong.exit_code == 2 and f"did you mean {rule}\n" in wrong.stderr


@pytest.mark.parametrize("command", [["compile", "-o", "m.so"], ["check"]])
def test_quiet_commands_print_errors_only(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(cli.app, [*command, str(DIGITS), "--quiet"])
    shown = "" if command[0] == "compile" else f"{DIGITS}: all layers can be compiled\n"
    assert (found.exit_code, found.output) == (0, shown)
    wrong = CliRunner().invoke(cli.app, [*command, str(DIGITS), "--quiet", "--shape", "image=7"])
    assert wrong.exit_code and "error: " in wrong.output


def test_a_value_that_is_none_of_the_texts_is_refused_in_a_sentence() -> None:
    shown = CliRunner().invoke(cli.app, ["quantize", str(DIGITS), "--weights", "5"])
    assert shown.exit_code == 2
    assert "'--weights': '5' is not one of 'int8', 'int4'." in shown.output
