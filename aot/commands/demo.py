"""`aot demo`: a page for trying a network in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.runtime.describe import size_text
from aot.runtime.errors import UsageError
from aot.tools.demo.options import Kind, Options
from aot.tools.running.classes import labels_of


def demo(
    module: Annotated[Path, argument(exists=True, dir_okay=False, help="m.wasm")],
    output: Annotated[Path, option("-o", "--output", metavar="FOLDER", help="Folder of the page, or one file: m.html")],
    kind: Annotated[Kind | None, option(help="Kind of page; default: by inputs and outputs of the model")] = None,
    labels: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Text file with a name of a class on each line")
    ] = None,
    top: Annotated[
        int | None, option(min=1, metavar="N", help="Show the N largest scores; default: 5, and 100 boxes")
    ] = None,
    tokens: Annotated[int, option(min=1, metavar="N", help="Answer with at most N tokens")] = 256,
    debug: arg.Debug = False,
) -> None:
    """Write a page that tries a network: pictures, chat or search.

    Any static server serves the folder; a page in one file is opened as it is.
    """
    from aot.compilation.outputs import check_outputs
    from aot.tools.demo.site import Site

    if output.is_file() and output.suffix != ".html":
        raise UsageError(f"output: must be a folder, or one file m.html, got another file: {output}")
    site = Site(module, output, Options(labels_of(labels), top, tokens), kind)
    (output.parent if output.suffix == ".html" else output).mkdir(parents=True, exist_ok=True)
    check_outputs(site.outputs, *([labels] if labels else []))
    echo("\n".join(f"{path}: {size_text(path.stat().st_size)}" for path in site.write()))
