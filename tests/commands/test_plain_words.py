"""Command lines that are read without typer give the arguments that typer gives; it reads all others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from aot import cli
from aot.commands.line.declared import for_typer
from aot.commands.line.plain_words import arguments_of, declaration_of, names_of

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "model.xml"


def by_typer(run: Callable[..., None], words: list[str]) -> dict[str, Any]:
    """Return the arguments that typer gives a command."""
    seen: list[dict[str, Any]] = []

    @wraps(run)
    def capture(**given: Any) -> None:
        seen.append(given)

    app = typer.Typer()
    app.command()(for_typer(capture))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return seen[0]


def parameters_of(name: str) -> list[Parameter]:
    return list(inspect.signature(cli.command(name), eval_str=True).parameters.values())


def text_for(parameter: Parameter) -> str | None:
    """Return a text that is fit for a parameter; None for a flag."""
    kind, facts = get_args(parameter.annotation)
    inner = next(one for whole in (get_args(kind) or (kind,)) for one in (get_args(whole) or (whole,)))
    if inner is bool:
        return None
    if issubclass(inner, Enum):
        return str(list(inner)[-1].value)
    least = max(1, facts.get("min", 0))
    folder = inner is Path and not facts.get("file_okay", True)
    return str({str: "a=b", Path: MODEL.parent if folder else MODEL, int: int(least), float: least + 0.5}[inner])


def needed(parameters: list[Parameter]) -> list[str]:
    required = [p for p in parameters if p.default is Parameter.empty]
    return [
        w for p in required for w in ([] if declaration_of(p).is_argument else [names_of(p)[0]]) + [text_for(p) or ""]
    ]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_words_mean_what_typer_reads(name: str) -> None:
    run, parameters = cli.command(name), parameters_of(name)
    every = [text_for(p) or "" for p in parameters if declaration_of(p).is_argument]
    joined, apart = list(every), list(every)
    for p in parameters:
        if not declaration_of(p).is_argument:
            text, names = text_for(p), [flag for name in names_of(p) for flag in name.split("/")]
            value = [] if text is None else [text]
            long = value and names[0].startswith("--")  # `-k=x`, of an option that has no long name, is typer's to read
            joined += [f"{names[0]}={text}"] if long else [names[0], *value]
            apart += [names[-1], *value]
    for words in (needed(parameters), joined, apart, apart + joined[len(every) :]):
        found = arguments_of(run, words)
        assert found is not None and found == by_typer(run, words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["absent.xml"],
        [str(MODEL), "extra"],
        [str(MODEL), "-h"],
        [str(MODEL), "--unknown"],
        [str(MODEL), "-o"],
        [str(MODEL), "-o=m.so"],
        [str(MODEL), "--quiet=1"],
        [str(MODEL), "--cores", "0"],
        [str(MODEL), "--cores", "-1"],
        [str(MODEL), "--cores", "many"],
        [str(MODEL), "--stop-after", "nothing"],
        [str(MODEL), "--data", str(MODEL.parent)],
    ],
)
def test_faults_are_left_to_typer(words: list[str]) -> None:
    assert arguments_of(cli.command("compile"), words) is None
