"""Reading of command lines without a fault: most lines are, and typer takes longer to start than most commands to run.

    model.xml -o model.so --quiet   ->   {"model": Path(…), "output": Path(…), "quiet": True, …}

Everything else is typer's: help, and lines with a fault, which it words.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from enum import Enum
from inspect import Parameter
from pathlib import Path
from typing import Any, get_args, get_origin

from aot.commands.line.declared import Declaration

NUMBERS = {int: re.compile(r"\d{1,18}"), float: re.compile(r"\d{1,18}(\.\d{1,18})?")}
YES, NO = "yes", "no"  # texts of a flag without a value: `--name`, or the second one of `--name/--other`


class _NotPlainError(Exception):
    """The words have a form that is not read here, or a fault."""


def arguments_of(run: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of a command; None if the words are for typer to read."""
    parameters = list(inspect.signature(run, eval_str=True).parameters.values())
    try:
        texts = _texts(parameters, words)
        return {p.name: _value(p, texts[p.name]) if p.name in texts else _default(p) for p in parameters}
    except (_NotPlainError, ValueError):
        return None


def declaration_of(parameter: Parameter) -> Declaration:
    """Return the declaration of a parameter."""
    return get_args(parameter.annotation)[1]


def names_of(parameter: Parameter) -> list[str]:
    """Return the flags of an option, the long ones first."""
    names = declaration_of(parameter).names or (f"--{parameter.name.replace('_', '-')}",)
    return sorted(names, key=lambda name: not name.startswith("--"))


def _texts(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts of all parameters that are given, by name."""
    flags = {
        flag: (p, text)
        for p in parameters
        if not declaration_of(p).is_argument
        for name in names_of(p)
        for flag, text in zip(name.split("/"), (YES, NO), strict=False)
    }
    texts_of: dict[str, list[str]] = {}
    free: list[str] = []
    words_left = iter(words)
    for word in words_left:
        if not word.startswith("-"):
            free.append(word)
            continue
        flag, equals, text = word.partition("=")
        if flag not in flags or (equals and not flag.startswith("--")):
            raise _NotPlainError
        parameter, answer = flags[flag]
        texts = texts_of.setdefault(parameter.name, [])
        if _kind(parameter) is not bool:
            texts.append(text if equals else next(words_left, "-"))
        elif equals:
            raise _NotPlainError
        else:
            texts.append(answer)
    for p in (p for p in parameters if declaration_of(p).is_argument):
        count = len(free) if _is_list(p) else 1
        if free:
            texts_of[p.name], free = free[:count], free[count:]
    if free or any(text.startswith("-") for texts in texts_of.values() for text in texts):
        raise _NotPlainError
    return texts_of


def _kind(parameter: Parameter) -> Any:
    """Return the type of a value, for `X | None` X."""
    kind = get_args(parameter.annotation)[0]
    return get_args(kind)[0] if type(None) in get_args(kind) else kind


def _is_list(parameter: Parameter) -> bool:
    return get_origin(_kind(parameter)) is list


def _default(parameter: Parameter) -> Any:
    if parameter.default is Parameter.empty:
        raise _NotPlainError
    return parameter.default


def _value(parameter: Parameter, texts: list[str]) -> Any:
    """Return the value of what is given for a parameter."""
    declared, kind = declaration_of(parameter), _kind(parameter)
    if kind is bool:
        return texts[-1] == YES
    if _is_list(parameter):
        return [_one(get_args(kind)[0], declared, text) for text in texts]
    return _one(kind, declared, texts[-1])


def _one(kind: Any, declared: Declaration, text: str) -> Any:
    if kind is str:
        return text
    if kind is Path:
        return _path(Path(text), declared)
    if kind in NUMBERS and NUMBERS[kind].fullmatch(text):
        number = kind(text)
        if declared.get("min", number) <= number <= declared.get("max", number):
            return number
    elif isinstance(kind, type) and issubclass(kind, Enum):
        return kind(text)
    raise _NotPlainError


def _path(path: Path, declared: Declaration) -> Path:
    there = path.exists()
    wrong_kind = path.is_dir() and not declared.get("dir_okay", True)
    wrong_kind = wrong_kind or (path.is_file() and not declared.get("file_okay", True))
    if (declared.get("exists") and not there) or wrong_kind or (there and not os.access(path, os.R_OK)):
        raise _NotPlainError
    return path
