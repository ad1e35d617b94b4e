"""Declarations of the arguments and options of commands. typer gets them where it reads a line (`for_typer`).

output: Annotated[Path | None, option("-o", "--output", help="m.so")] = None
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_args

from aot.codegen.dataclass import dataclass

PIPE_CLOSED = 141  # exit code, of a command that a shell ends by SIGPIPE


class Exit(Exception):  # noqa: N818
    """The end of a command, with its exit code."""

    def __init__(self, exit_code: int = 0) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Declaration:
    """Declaration of a parameter: an argument, or an option with the `names` of its flags.

    `facts`: keywords of `typer.Argument` or `typer.Option`, as help, metavar, min and max.
    """

    is_argument: bool
    names: tuple[str, ...]
    facts: dict[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """Return one of the facts."""
        return self.facts.get(name, default)


def option(*names: str, **facts: Any) -> Declaration:
    """Declare an option; without names, its flag is made of the parameter's name."""
    return Declaration(False, names, facts)


def argument(**facts: Any) -> Declaration:
    """Declare an argument."""
    return Declaration(True, (), facts)


def echo(text: object = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text at once. The command ends without a word if its reader, as `head`, has read enough."""
    stream = sys.stderr if err else sys.stdout
    try:
        print(text, end="\n" if nl else "", file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left in the buffer goes nowhere
        raise Exit(PIPE_CLOSED) from None


def for_typer(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer takes it."""
    import typer

    @wraps(run)
    def command(**given: Any) -> None:
        try:
            run(**given)
        except Exit as end:
            raise typer.Exit(end.exit_code) from None

    def as_typer(parameter: inspect.Parameter) -> inspect.Parameter:
        kind, declared = get_args(parameter.annotation)
        make = typer.Argument if declared.is_argument else typer.Option
        typer_parameter = make(*declared.names, **declared.facts)
        return parameter.replace(annotation=Annotated[kind, typer_parameter])

    own = inspect.signature(run, eval_str=True)
    vars(command)["__signature__"] = own.replace(parameters=[as_typer(p) for p in own.parameters.values()])
    return command
