"""`aot quantize`: a network in 8 bits by sample data, or the weights of a language model in 8 or 4 bits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.commands.output import echo_json
from aot.options import CompileOptions
from aot.runtime.arrays.files import read_arrays
from aot.runtime.describe import size_text
from aot.runtime.errors import UsageError
from aot.tools.quantizing.choices import Ranges, Weights


def quantize(
    model: arg.Model,
    data: Annotated[
        list[Path] | None,
        option(exists=True, dir_okay=False, metavar="x.npz", help="Sample inputs: x.npz or x.npy; may be repeated"),
    ] = None,
    output: Annotated[Path | None, option("-o", "--output", help="m.xml; default: MODEL_int8.xml")] = None,
    ranges: Annotated[
        Ranges, option(help="Range of an activation: of all its values, of most of them, or by entropy")
    ] = Ranges.MINMAX,
    percentile: Annotated[float, option(help="Percentage of values inside the range, for --ranges percentile")] = 99.99,
    max_error: Annotated[
        float | None,
        option(min=0, help="Largest error of results: the layers that cost most stay in f32 until it holds"),
    ] = None,
    weights: Annotated[
        Weights | None, option(help="Quantise the weights alone, without samples, for language models")
    ] = None,
    group: Annotated[
        int, option(min=0, metavar="N", help="Number of weights that share a scale; 0: all of a row")
    ] = 64,
    *,
    options: CompileOptions,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Quantise a network by sample data. Writes OpenVINO IR with 8 bits; --weights: with weights of 8 or 4 bits."""
    from dataclasses import asdict, replace

    from aot.commands.line.progress import Watch
    from aot.tools.quantizing.quantize import quantize_model
    from aot.tools.quantizing.weights import quantize_weights

    if weights is None and not data:
        raise UsageError("quantize: needs samples (--data x.npz), or --weights int8 for weights alone, got neither")
    kind = "int8" if weights is None else weights.value
    out = output if output is not None else Path(f"{model.stem}_{kind}.xml")
    samples = [read_arrays(path) for path in data or ()]
    with Watch(None if quiet else sys.stderr) as watch:
        options = replace(options, on_event=watch)
        if weights is None:
            report = quantize_model(
                model, samples, out, options, ranges=ranges.value, percentile=percentile, max_error=max_error
            )
            text, facts = str(report), asdict(report)
        else:
            rows = quantize_weights(model, out, options, bits=weights.bits, group=group, data=samples)
            text, facts = "\n".join(map(str, rows)), {"matrices": [asdict(row) for row in rows]}
    if as_json:
        echo_json({"output": str(out), **facts})
        return
    sizes = ", ".join(f"{path}: {size_text(path.stat().st_size)}" for path in (out, out.with_suffix(".bin")))
    echo(sizes if quiet else f"{sizes}\n{text}")
