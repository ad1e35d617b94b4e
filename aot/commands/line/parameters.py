"""Parameters of commands for options of the compiler: made of the table, under the commands that each row names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache, wraps
from inspect import Parameter
from typing import Annotated, Any, get_type_hints

from aot.commands.line import declared
from aot.commands.line.command import is_supervised
from aot.options import CompileOptions
from aot.options.declaration import Option
from aot.options.table import options

OPTIONS = "options"  # the parameter of a command's function that gets them
EXTRA_FLAG = "_also"  # suffix of a field's name for the parameter of its extra flag


def with_options(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the table's options for it in place of its parameter `options`.

    The command itself is called with `CompileOptions`. UsageError for a text that cannot be read.
    """
    own = inspect.signature(run, eval_str=True)
    if OPTIONS not in own.parameters:
        return run
    rows = rows_of(run.__name__)
    added = [parameter for name, row in rows.items() if not row.flag_of for parameter in _parameters(name, row)]

    @wraps(run)
    def command(**given: Any) -> None:
        texts = {parameter.name: given.pop(parameter.name) for parameter in added}
        run(**given, options=_read(rows, texts))

    parameters = [p for one in own.parameters.values() for p in (added if one.name == OPTIONS else [one])]
    by_name = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters]
    vars(command)["__signature__"] = own.replace(parameters=by_name)
    return command


def rows_of(command: str) -> dict[str, Option]:
    """Return the rows of the options that a command takes, by the names of their fields."""
    return {name: row for name, row in options().items() if command in row.commands}


def flags_of(name: str, row: Option) -> tuple[str, ...]:
    """Return the spellings of an option on the command line."""
    return row.flags or (f"--{name.replace('_', '-')}",)


def _parameters(name: str, row: Option) -> list[Parameter]:
    """Return the parameter of an option, and the parameter of its extra flag."""
    kind = _kind(name, row)
    limits = {"metavar": row.metavar, "min": row.least}
    facts = declared.option(
        *flags_of(name, row),
        help=row.help,
        rich_help_panel=row.group,
        **{key: value for key, value in limits.items() if value is not None},
    )
    own = Parameter(name, Parameter.KEYWORD_ONLY, default=_text_default(name, row), annotation=Annotated[kind, facts])
    return [own, *(_parameters(name + EXTRA_FLAG, row.extra_flag) if row.extra_flag is not None else ())]


def _kind(name: str, row: Option) -> Any:
    """Return the type that an option has on the command line."""
    if row.text is not None:
        return row.text
    if row.read is not None:
        return list[str] | None if row.several else str | None
    return _types()[name]


@lru_cache(maxsize=1)
def _types() -> dict[str, Any]:
    return get_type_hints(CompileOptions)


def _text_default(name: str, row: Option) -> Any:
    return row.text_default if row.read is not None else _defaults()[name]


@lru_cache(maxsize=1)
def _defaults() -> dict[str, Any]:
    return {field.name: field.default for field in fields(CompileOptions)}


def _read(rows: dict[str, Option], texts: dict[str, Any]) -> CompileOptions:
    text_of = {name: texts[row.flag_of or name] for name, row in rows.items()}
    values = {name: _value(row, text_of[name]) for name, row in rows.items() if text_of[name] is not None}
    for name, row in rows.items():
        if row.extra_flag is not None and (more := texts[name + EXTRA_FLAG]) is not None:
            values[name] = (*values.get(name, ()), *_value(row.extra_flag, more))
    if "max_memory" in rows:
        values["hard_limits"] = is_supervised()
    return CompileOptions(**values)


def _value(row: Option, text: Any) -> Any:
    return text if row.read is None else row.read(text)
