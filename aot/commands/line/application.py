"""The command line as typer has it: help, completion, and the words for lines with a fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from aot.commands.line import page
from aot.commands.line.declared import for_typer
from aot.commands.line.help import GroupedCommand, epilog
from aot.runtime.version import VERSION


def typer_application(commands: Sequence[Callable[..., None]]) -> typer.Typer:
    """Return an application of typer with these commands."""
    application = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )

    def print_version(asked: bool) -> None:
        if asked:
            typer.echo(VERSION)
            raise typer.Exit

    def print_page(name: page.Page | None) -> None:
        if name is not None:
            typer.echo(page.markdown(name, commands), nl=False)
            raise typer.Exit

    def options(
        version: bool = typer.Option(
            False, "--version", callback=print_version, is_eager=True, help="Print the version."
        ),
        as_page: page.Page | None = typer.Option(
            None, "--markdown", callback=print_page, is_eager=True, hidden=True, help="Print a page of docs/use."
        ),
    ) -> None:
        """Compiles neural networks into self-contained shared libraries."""

    application.callback()(options)
    for run in commands:
        application.command(cls=GroupedCommand, epilog=epilog(run.__name__))(for_typer(run))
    return application
