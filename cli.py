"""The command line: parse, call, print.

    aot compile model.xml -o model.so      aot run model.so x.npy -o out.npz      aot info model.so
    aot dump model.xml --stage loops       aot bench model.so --per-kernel        aot check model.onnx
    aot convert model.onnx -o model.xml

Exit codes: 0 fine, 1 our bug, 2 usage, 3 unsupported, 4 wrong or corrupt file, 5 wrong machine or ABI, 6 over budget.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

from aot.commands.line.command import guarded, supervised
from aot.commands.line.declared import Exit
from aot.commands.line.parameters import with_options
from aot.commands.line.plain_words import arguments_of
from aot.compilation.limits.garbage import FEWER_COLLECTIONS
from aot.runtime.describe import escape_unprintable

if TYPE_CHECKING:
    import typer

    app: typer.Typer

COMPLETES = "_AOT_COMPLETE"  # the variable by which a shell asks typer for completions
INTERRUPTED = 130  # exit code
COMMANDS = {  # in the order of the help, with the modules of their functions
    **{name: f"aot.commands.{name}" for name in ("compile", "run", "generate", "chat", "embed", "rerank")},
    **dict.fromkeys(("transcribe", "speak"), "aot.commands.speech"),
    **{name: f"aot.commands.{name}" for name in ("quantize", "serve", "bench", "compare", "info", "report", "demo")},
    **{name: f"aot.commands.{name}" for name in ("dump", "rewrite", "convert", "cache", "config", "check", "ops")},
    **dict.fromkeys(("sign", "verify", "sbom", "provenance"), "aot.commands.supply"),
}
COMPILING = ("compile", "check", "convert", "dump", "quantize")  # the others compile little, or nothing


def command(name: str) -> Callable[..., None]:
    """Return a command with the options of the table in place of its parameter `options`."""
    return guarded(with_options(getattr(import_module(COMMANDS[name]), name)), Exit)


@lru_cache(maxsize=1)
def application() -> typer.Typer:
    """Return all commands for typer, which reads and words what is not plain."""
    from aot.commands.line.application import typer_application

    return typer_application([command(name) for name in COMMANDS])


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return application()


def main() -> None:
    """Entry point of the console script."""
    escape_unprintable(sys.stdout, sys.stderr)
    work = partial(_main, sys.argv[1:])
    if sys.argv[1:2] and sys.argv[1] in COMPILING:
        with FEWER_COLLECTIONS:  # importing the compiler, too, makes objects that stay
            raise SystemExit(supervised(work))
    work()


def _main(words: Sequence[str]) -> None:
    run = command(words[0]) if words and words[0] in COMMANDS and COMPLETES not in os.environ else None
    arguments = None if run is None else arguments_of(run, words[1:])
    if run is None or arguments is None:
        application()(prog_name="aot")
        return
    try:
        run(**arguments)
    except Exit as end:
        raise SystemExit(end.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
