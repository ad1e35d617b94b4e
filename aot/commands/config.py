"""`aot config`: a configuration of transformations, completed for a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.runtime.atomic import replacing


def config(
    model: arg.Model,
    file: Annotated[Path, argument(exists=True, dir_okay=False, help="Configuration to complete, JSON")],
    output: Annotated[Path | None, option("-o", "--output", help="Default: print it")] = None,
    debug: arg.Debug = False,
) -> None:
    """Complete a configuration of transformations for a model.

    Adds the inputs and outputs that its sub-graphs have in the model.
    """
    from aot.compilation.outputs import check_outputs
    from aot.mo.config.update import updated

    text = updated(model, file)
    if output is None:
        echo(text, nl=False)
    else:
        check_outputs([output], model)
        with replacing(output) as new:
            new.write_text(text, "utf-8")
