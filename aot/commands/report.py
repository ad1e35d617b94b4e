"""`aot report`: a page about a compiled model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.commands.samples import samples
from aot.options import CompileOptions
from aot.runtime.arrays.files import files_named
from aot.runtime.atomic import replacing
from aot.runtime.describe import size_text


def report(
    file: arg.Runnable,
    output: Annotated[Path | None, option("-o", "--output", help="Default: FILE.html")] = None,
    model: Annotated[
        Path | None, option(exists=True, help="Model file that m.so was made of, for its graph, loops and memory")
    ] = None,
    against: Annotated[Path | None, option(exists=True, help="Another m.so to compare with")] = None,
    data: arg.Samples = None,
    seconds: Annotated[float, option(min=0, metavar="SECONDS", help="Measure for so many seconds")] = 1.0,
    threads: arg.Threads = None,
    *,
    options: CompileOptions,
    debug: arg.Debug = False,
) -> None:
    """Write a web page about a model. Graph, times, memory, weights, loop nests; it loads nothing from elsewhere."""
    out = output if output is not None else Path(file.with_suffix(".html").name)
    from aot.compilation.outputs import check_outputs

    check_outputs([out], file, *filter(None, (model, against)), *files_named(data or ()))
    from aot.tools.report.facts import Asked, facts
    from aot.tools.report.page import page

    arguments = Asked(model, against, threads, seconds, samples(data, file, options.signature))
    text = page(facts(file, options, arguments))
    with replacing(out) as new:
        new.write_text(text, encoding="utf-8")
    echo(f"{out}: {size_text(out.stat().st_size)}")
