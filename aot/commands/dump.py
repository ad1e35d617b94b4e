"""`aot dump`: a model after a stage of the compiler, as text."""

from __future__ import annotations

from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.options import CompileOptions, Stage


def dump(
    model: arg.Model,
    stage: Annotated[Stage, option(help="Stage whose result is printed")] = Stage.OPTIMIZED,
    kernel: Annotated[str | None, option(help="Print this kernel only; for loops, llvm and asm")] = None,
    after: Annotated[
        str | None, option(metavar="PASS", help="Print the steps after this lowering pass, or after define")
    ] = None,
    verbose: Annotated[bool, option("--verbose", "-v", help="Print why each schedule was chosen; for groups")] = False,
    proof: Annotated[
        bool, option("--proof", help="Print why each load and store is inside of memory; for steps and loops")
    ] = False,
    *,
    options: CompileOptions,
    debug: arg.Debug = False,
) -> None:
    """Print a model as it is after a stage of the compiler."""
    from aot.compilation.driver import stages

    echo(stages(model, options).text(stage.value, kernel, after, verbose, proof))
