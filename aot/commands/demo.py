"""`aot demo`: a page on which somebody tries a classifier of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.runtime.describe import size_text
from aot.tools.running.classes import labels_of


def demo(
    module: Annotated[Path, argument(exists=True, dir_okay=False, help="m.wasm")],
    output: Annotated[Path, option("-o", "--output", metavar="FOLDER", file_okay=False, help="Folder of the page")],
    labels: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Text file with a name of a class on each line")
    ] = None,
    top: Annotated[int, option(min=1, metavar="N", help="Show the N largest scores")] = 5,
    debug: arg.Debug = False,
) -> None:
    """Write a web page that tries a classifier. Drop a picture, see classes and time; any static server serves it."""
    from aot.compilation.outputs import check_outputs
    from aot.tools.demo.site import Site

    site = Site(module, output, labels_of(labels), top)
    output.mkdir(parents=True, exist_ok=True)
    check_outputs(site.outputs, *([labels] if labels else []))
    echo("\n".join(f"{path}: {size_text(path.stat().st_size)}" for path in site.write()))
