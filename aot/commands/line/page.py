"""The pages docs/use/cli*.md and options.md, made of the signatures of commands and of the table (`aot --markdown`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from inspect import Parameter
from pathlib import Path
from typing import Any, get_args

from aot.commands.line.parameters import EXTRA_FLAG, flags_of, rows_of
from aot.commands.line.plain_words import declaration_of, names_of
from aot.options.declaration import Group, Option
from aot.options.table import options

Command = Callable[..., Any]
COMMON = (  # parameters of many commands, or of both that write texts
    *("threads", "quiet", "as_json", "debug"),
    *("tokenizer", "temperature", "top_k", "top_p", "stop"),
)
VALUES = {Path: "PATH", int: "N", float: "X", str: "TEXT"}
LANGUAGE = ("generate", "chat", "embed", "rerank", "transcribe", "speak")  # commands of language models
HEAD = """# Commands

Made by `aot --markdown cli`. `aot COMMAND --help` says the same, with examples. The
[options of the compiler](options.md) and the [commands of language models](cli-language-models.md) have pages of their
own; here each command names those that it takes. Exit codes: 0 fine, 1 our bug (`compare`, `run --expect`: different),
2 usage, 3 unsupported model, 4 wrong or corrupt file, 5 wrong machine or ABI, 6 over budget.
"""
LANGUAGE_HEAD = """# Commands of language models

Made by `aot --markdown cli-language-models`. [All other commands](cli.md) have a page with the exit codes.
[Language models](models/language-models.md) says what these do.
"""
COMPILER = """# Options of the compiler

Made by `aot --markdown options`. [Each command](cli.md) names those that it takes; `aot compile` takes all that have a
flag. In Python they are keywords of [`compile_model`](deploy/api.md), by the name in the second column; names in
brackets are fields of `CompileOptions` alone. The last column says what a library records of an option, so that its
model can be compiled again: the value, always or if it is set; names and a hash of the contents; or why nothing.

| option | Python | does | recorded |
|--|--|--|--|
"""


class Page(StrEnum):
    """Pages of docs/use that can be printed."""

    COMMANDS, LANGUAGE, OPTIONS = "cli", "cli-language-models", "options"


def markdown(page: Page, commands: Sequence[Command]) -> str:
    """Return a page; `commands`: their functions."""
    if page is Page.OPTIONS:
        order = list(Group)
        rows = sorted(options().items(), key=lambda item: order.index(item[1].group))
        return COMPILER + "".join(f"{_row(name, row)}\n" for name, row in rows)
    shown = [run for run in commands if (run.__name__ in LANGUAGE) is (page is Page.LANGUAGE)]
    by_command = {run.__name__: list(inspect.signature(run, eval_str=True).parameters.values()) for run in shown}
    shared = {p.name: p for parameters in by_command.values() for p in parameters if p.name in COMMON}
    lines = [LANGUAGE_HEAD if page is Page.LANGUAGE else HEAD]
    for run in shown:
        lines += _command(run.__name__, inspect.cleandoc(run.__doc__ or ""), by_command[run.__name__])
    return "\n".join([*lines, "## Options of many commands", "", *map(_line, shared.values())]) + "\n"


def _command(name: str, text: str, parameters: list[Parameter]) -> list[str]:
    rows = rows_of(name)
    own = [p for p in parameters if p.name not in COMMON and p.name.removesuffix(EXTRA_FLAG) not in rows]
    arguments = [_argument(p) for p in own if declaration_of(p).is_argument]
    lines = [f"## aot {name}", f"`{' '.join(['aot', name, *arguments])}` · {' '.join(text.split())}"]
    options = [_line(p) for p in own if not declaration_of(p).is_argument]
    taken = [flags_of(field, row)[0] for field, row in rows.items() if not row.flag_of]
    taken += [names_of(p)[0] for p in parameters if p.name in COMMON]
    shared = ", ".join(f"`{flag}`" for flag in taken)
    return [*lines, "", *options, f"- {shared}", ""] if options else [*lines[:-1], f"{lines[-1]} Takes {shared}.", ""]


def _argument(parameter: Parameter) -> str:
    name = declaration_of(parameter).get("metavar") or parameter.name.upper()
    return name if parameter.default is Parameter.empty or name[0] == "[" else f"[{name}]"


def _line(parameter: Parameter) -> str:
    value, text = _value(parameter), declaration_of(parameter).facts["help"]
    names = ", ".join(f"`{name}{f' {value}' if value else ''}`" for name in names_of(parameter))
    default = getattr(parameter.default, "value", parameter.default)
    if default is Parameter.empty:
        return f"- {names}: {text}; required"
    is_shown = default is not None and not isinstance(default, bool) and "default" not in text
    return f"- {names}: {text}{f'; default: {default}' if is_shown else ''}"


def _value(parameter: Parameter) -> str:
    """Return the word for the value of an option; none for a flag."""
    kind = get_args(parameter.annotation)[0]
    kinds = [one for whole in (get_args(kind) or (kind,)) for one in (get_args(whole) or (whole,))]
    if declaration_of(parameter).get("metavar") or kinds[0] is bool:
        return declaration_of(parameter).get("metavar", "")
    return "|".join(f"{one.value}" for one in kinds[0]) if issubclass(kinds[0], Enum) else VALUES[kinds[0]]


def _with_value(flags: Sequence[str], metavar: str | None) -> list[str]:
    return [f"`{flags[0]}{f' {metavar}' if metavar else ''}`", *(f"`{flag}`" for flag in flags[1:])]


def _row(name: str, row: Option) -> str:
    both = [row, *([row.extra_flag] if row.extra_flag is not None else [])] if row.commands else []
    flags = [flag for one in both for flag in _with_value(flags_of(name, one), one.metavar)]
    keyword = f"`{name}`" if row.keyword else f"(`{name}`)"
    record = row.harmless or row.recorded_as or row.record.value
    cells = (", ".join(flags), keyword, row.help, record)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
