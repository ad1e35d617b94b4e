"""`aot ops`: the operations that can be compiled."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.commands.output import echo_json


def ops(
    as_json: arg.Json = False,
    markdown: Annotated[bool, option("--markdown", help="As a page of docs/use/models")] = False,
    format_: Annotated[
        str | None,
        option(
            "--format",
            metavar="FORMAT",
            help="Format whose operations are listed: onnx, tensorflow, tflite, pytorch, caffe or paddle",
        ),
    ] = None,
    debug: arg.Debug = False,
) -> None:
    """List the operations that can be compiled. Type, operation sets, form, element types, front ends, meaning."""
    from aot.tools import table

    if format_ is not None:
        page = table.page_of(format_)
        operations, text = dict(page.rows), page.markdown() if markdown else page.text()
    else:
        rows = table.operations()
        operations, text = [asdict(row) for row in rows], table.markdown(rows) if markdown else table.text(rows)
    if as_json:
        echo_json({"operations": operations})
    else:
        echo(text)
