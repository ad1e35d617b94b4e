"""`aot convert`: a model as OpenVINO IR."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.options import CompileOptions
from aot.runtime.describe import size_text


def convert(
    model: arg.Model,
    output: Annotated[Path | None, option("-o", "--output", help="m.xml; default: MODEL.xml")] = None,
    *,
    options: CompileOptions,
    compress_to_f16: Annotated[bool, option("--compress-to-f16", help="Store f32 constants as f16")] = False,
    ir_version: Annotated[int, option(metavar="10|11", help="Version of the format")] = 11,
    static_shape: Annotated[
        bool, option("--static-shape", "--static_shape", help="Fold sizes and loops that are fixed")
    ] = False,
    debug: arg.Debug = False,
) -> None:
    """Convert a model to OpenVINO IR: an .xml, and its .bin."""
    from aot.tools.convert import convert_model

    out = output if output is not None else Path(model.with_suffix(".xml").name)
    half, version = compress_to_f16, ir_version
    convert_model(model, out, options, compress_to_f16=half, ir_version=version, static_shape=static_shape)
    sizes = [f"{path}: {size_text(path.stat().st_size)}" for path in (out, out.with_suffix(".bin"))]
    echo("\n".join(sizes))
