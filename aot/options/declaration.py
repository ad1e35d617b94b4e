"""Declarations of options: a row of the table is a field of `CompileOptions` with an `Option` as its metadata.

    verify: bool = option(False, help="Check the steps", commands=COMPILE, harmless="it checks")

keywords (`with_keywords`), parameters of commands, recorded options and the key of the cache are read from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
KEY = "option"  # key of a field's metadata


class Group(StrEnum):
    """Titles under which the help of a command with many options lists them."""

    MODEL, NUMBERS, LANGUAGE = "Model", "Numbers and speed", "Language models"
    EXTENSIONS, OUTPUT, LIMITS, STAGES = "Extensions", "Output", "Limits", "Stages and dumps"
    OTHERS = "Options"


class Record(StrEnum):
    """The part of an option that a library records: its value, always or if it is not the default, or names only.

    NAMES: of values and files, beside a hash of their content; who compiles the model again must give them again.
    ELSEWHERE: in another entry of the manifest than `options`. An option with `harmless` is not recorded.
    """

    ALWAYS, IF_SET, NAMES, ELSEWHERE = "always", "if set", "names", "elsewhere"


class Rule(NamedTuple):
    """A condition of a value, and the words of the error that follow the option's name."""

    holds: Callable[[Any], bool]
    text: str


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword of `compile_model` with values in another form than the field's.

    `type`: for type checkers; `form`: in words, for errors; `read` makes the field's value of one given, or, if
    `by_name`, of a name and its entry in a mapping. TypeError and ValueError for a wrong one.
    """

    type: str
    form: str
    read: Callable[..., Any]
    by_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """All that is known of an option. It is recorded in a library, or `harmless` says why equal code comes without it.

    Command line: `commands` that take it, `flags` (default: `--NAME`), `help`, `metavar`, `group` of the help page,
    `least` of numbers. `read` makes the field's value of a text, or of `several`. `text`: the type on the command line
    if it is not str; `text_default`: its value if the flag is not given. `extra_flag`: another flag of the same field,
    whose values are added. `flag_of`: the field whose flag has this field's value in its text, too.
    `keyword`: False if it is not one of `compile_model`. `environment`: the variable that has names where the value is
    None. `by_content`: files are recorded by their content, not by their paths. `rule`: what values must be.
    `recorded_as`: for `Record.ELSEWHERE`, the entry of the manifest that records it, in words for the page options.md.
    """

    help: str
    group: Group = Group.OTHERS
    commands: Sequence[str] = ()
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    read: Callable[[Any], Any] | None = None
    several: bool = False
    text: Any = None
    text_default: Any = None
    extra_flag: Option | None = None
    flag_of: str = ""
    keyword: Keyword | bool = True
    record: Record = Record.IF_SET
    harmless: str = ""
    recorded_as: str = ""
    by_content: bool = False
    environment: str = ""
    rule: Rule | None = None


class _Declare(Generic[P]):
    def __init__(self, make: Callable[P, Option]) -> None:
        self._make = make

    def __call__(self, default: T, /, *args: P.args, **facts: P.kwargs) -> T:
        """Return the field of an option with its default; `facts`: the fields of `Option`."""
        return field(default=default, metadata={KEY: self._make(*args, **facts)})


option = _Declare(Option)
