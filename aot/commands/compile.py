"""`aot compile`: a model as a shared library, or as an object to link."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

import aot
from aot.commands.line import arguments as arg
from aot.commands.output import echo_json
from aot.options import Stage
from aot.precision import AUTO, F32
from aot.runtime.arrays.files import read_arrays
from aot.runtime.atomic import replacing
from aot.runtime.describe import certificate_lines, notes, size_text
from aot.runtime.errors import UsageError


def compile(
    model: arg.Model,
    output: arg.Output = None,
    target: arg.Target = "native",
    cores: arg.Cores = None,
    layout: arg.Layout = None,
    mean: arg.Mean = None,
    scale: arg.Scale = None,
    reverse_channels: arg.Reverse = False,
    reverse_channels_of: arg.ReverseOf = None,
    shape: arg.Shapes = None,
    dim: arg.Dims = None,
    value: arg.Values = None,
    feed: arg.Feeds = None,
    specialise: arg.Specialise = None,
    cut: arg.CutAt = None,
    signature: arg.Signature = None,
    extensions: arg.Extensions = None,
    transformations_config: arg.Config = None,
    enable_transforms: arg.Enable = None,
    disable_transforms: arg.Disable = None,
    save_temps: Annotated[Path | None, typer.Option(help="Folder for the text of every stage")] = None,
    print_after: arg.Passes = None,
    time_passes: Annotated[bool, typer.Option("--time-passes", help="Print the time of every stage and pass")] = False,
    stop_after: Annotated[Stage | None, typer.Option(help="Print a stage instead of compiling to the end")] = None,
    stop_after_rewrite: arg.Rewrites = None,
    stop_after_lowering: arg.Lowerings = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check the steps after each lowering pass")] = False,
    emit: Annotated[
        arg.Emit | None, typer.Option(help="so: shared library; obj: to link; default: by the output")
    ] = None,
    header: Annotated[Path | None, typer.Option(metavar="m.h", help="Write a C header, too; m.hpp: for C++")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the model in the header; default: by the output's file name")
    ] = None,
    weights: Annotated[
        arg.Weights, typer.Option(help="Where weights are: in the library, or in MODEL.weights beside it")
    ] = arg.Weights.EMBEDDED,
    small_weights: arg.SmallWeights = False,
    plain_products: arg.PlainProducts = False,
    disable_layout_change: arg.LayoutChange = False,
    max_context: arg.MaxContext = None,
    last_logits: arg.LastLogits = False,
    row_lengths: arg.RowLengths = False,
    precision: arg.Precision = "f32",
    fast_math: arg.FastMath = False,
    activations: arg.Activations = "f32",
    data: arg.Data = None,
    max_error: arg.MaxError = 1e-2,
    seed: arg.Seed = None,
    max_memory: arg.Memory = None,
    max_seconds: arg.Seconds = None,
    tune: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Time schedules on this machine for so long, and take the fastest"),
    ] = None,
    tune_file: Annotated[
        Path | None, typer.Option(help="File of the fastest schedules; default: OUTPUT.tune.json")
    ] = None,
    kernel_cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER|off", help="Where object code is kept; default: the user's cache")
    ] = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Compare the code with the reference on edge cases of its inputs")
    ] = False,
    certify_samples: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="Samples of noise for --certify; default: 2")
    ] = None,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Compile a model into a shared library, or an object to link."""
    given = locals()
    out = output if output is not None else Path(model.with_suffix(".o" if emit is arg.Emit.OBJ else ".so").name)
    from aot.codegen.llvm.header import checked_name, cpp_header_text, header_text, name_from
    from aot.codegen.llvm.object.link import find_linker
    from aot.commands.line.progress import Watch
    from aot.compilation.hints import faster_lines
    from aot.compilation.outputs import check_outputs, library_files

    external = weights is arg.Weights.EXTERNAL
    schedules = tune_file or (out.with_suffix(".tune.json") if tune else None)
    others = [path for path in (header, schedules) if path is not None]
    check_outputs([*library_files(out, external), *others], model, *([data] if data else []))
    called = name_from(out.stem) if name is None else checked_name(name)
    automatic = precision.split(",")[0].strip() == AUTO
    if (data is not None) != automatic:
        raise UsageError(f"compile: --data is for --precision auto, which needs it, got --precision {precision}")
    given["precision"] = precision.replace(AUTO, F32, 1) if automatic else precision
    with Watch(None if quiet else sys.stderr) as watch:
        options = arg.options_of(
            given,
            on_event=watch,
            external_weights=external,
            tune_file=schedules,
            on_dump=lambda name, text: typer.echo(f"# after {name}\n{text}"),
        )
        chosen = (
            aot.find_precision(model, read_arrays(data), options, max_error=max_error) if data is not None else None
        )
        made = aot.stages(model, options if chosen is None else replace(options, precision=chosen.precision))
        if stop_after is not None:
            typer.echo(made.text(stop_after.value))
            return
        as_object = out.suffix == ".o" if emit is None else emit is arg.Emit.OBJ
        if not as_object or len(made.targets) > 1:
            find_linker(made.target.machine)
        built = made.built
        if certify or certify_samples is not None:
            from aot.tools.comparing.certify import SAMPLES, certified

            built = certified(model, made.options, built, certify_samples or SAMPLES)
        write = built.write_object if as_object else built.write_shared
        watch("link", 0, 1)
        write(out)
        if header is not None:
            text = (cpp_header_text if header.suffix == ".hpp" else header_text)(built, called)
            with replacing(header) as new:
                new.write_text(text, encoding="utf-8")
        watch("link", 1, 1)
    if as_json:
        spent: dict[str, object] = {"seconds": watch.total, "stages": watch.seconds}
        found = {} if chosen is None else {"precision": asdict(chosen)}
        echo_json({"output": str(out), "bytes": out.stat().st_size, **spent, **found, "manifest": built.manifest})
        return
    if quiet:
        return
    lines = [f"{out}: {size_text(out.stat().st_size)}, compiled in {watch.total:.2f} s", *notes(built.manifest)]
    lines += certificate_lines(built.manifest)
    lines += str(chosen).splitlines() if chosen is not None else faster_lines(made, model)
    typer.echo("\n  ".join(lines))
    if time_passes:
        typer.echo("\n".join(f"  {name:12} {spent:8.3f} s" for name, spent in watch.seconds.items()))
        typer.echo("\n".join(f"  {line}" for line in (*made.report.passes, *made.lowering)))
