"""The command line: parse, call, print.

    aot compile model.xml -o model.so      aot run model.so x.npy -o out.npz      aot info model.so
    aot dump model.xml --stage loops       aot bench model.so --per-kernel        aot check model.onnx
    aot convert model.onnx -o model.xml

Exit codes: 0 fine, 1 our bug, 2 usage, 3 unsupported, 4 wrong or corrupt file, 5 wrong machine or ABI, 6 over budget.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

import aot
from aot import arguments as arg
from aot.command import guarded, supervised
from aot.commands.bench import bench
from aot.commands.chat import chat
from aot.commands.compare import compare
from aot.commands.generate import generate
from aot.commands.info import info
from aot.commands.output import echo_json
from aot.commands.quantize import quantize
from aot.commands.report import report
from aot.commands.run import run
from aot.commands.serve import serve
from aot.commands.supply import provenance, sbom, sign, verify
from aot.examples import epilog
from aot.options import Stage
from aot.precision import AUTO, F32
from runtime.arrays.files import check_output, read_arrays
from runtime.describe import certificate_lines, escape_unprintable, notes, size_text
from runtime.errors import UnsupportedError, UsageError
from runtime.version import VERSION

P = ParamSpec("P")

app = typer.Typer(**arg.APPLICATION)


def command(run: Callable[P, None]) -> Callable[P, None]:
    """Register a command."""
    return app.command(epilog=epilog(run.__name__))(guarded(run, typer.Exit))


@command
def compile(
    model: arg.Model,
    output: arg.Output = None,
    target: arg.Target = "native",
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
    save_temps: Annotated[Path | None, typer.Option(help="Directory for the text of every stage")] = None,
    print_after: arg.Passes = None,
    time_passes: Annotated[bool, typer.Option("--time-passes", help="Print the time of every stage and pass")] = False,
    stop_after: Annotated[Stage | None, typer.Option(help="Print a stage instead of compiling to the end")] = None,
    stop_after_rewrite: arg.Rewrites = None,
    stop_after_lowering: arg.Lowerings = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check what each lowering pass leaves")] = False,
    emit: Annotated[
        arg.Emit | None, typer.Option(help="so: shared library; obj: to link; default: by the output")
    ] = None,
    header: Annotated[Path | None, typer.Option(metavar="m.h", help="Write the C header too; m.hpp: for C++")] = None,
    name: Annotated[str | None, typer.Option(help="AOT_NAME in the header; default: by the output's file name")] = None,
    weights: Annotated[
        arg.Weights, typer.Option(help="In the library, or in MODEL.weights beside it")
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
    tune: Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="Time schedules on this machine")] = None,
    tune_file: Annotated[Path | None, typer.Option(help="Keeps what was fastest; default: OUTPUT.tune.json")] = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Compare the code with the reference on edge inputs")
    ] = False,
    certify_samples: Annotated[int | None, typer.Option(min=1, max=1000, help="Samples of noise; default: 2")] = None,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Compile a model into a shared library, or into an object to link."""
    given = locals()
    out = output if output is not None else Path(model.with_suffix(".o" if emit is arg.Emit.OBJ else ".so").name)
    for path in filter(None, (out, header, tune_file)):
        check_output(path, model, model.with_suffix(".bin"))
    from aot.progress import Watch
    from codegen.llvm.header import checked_name, cpp_header_text, header_text, name_from
    from codegen.llvm.object.link import find_linker

    called = name_from(out.stem) if name is None else checked_name(name)
    automatic = precision.split(",")[0].strip() == AUTO
    if (data is not None) != automatic:
        raise UsageError(f"compile: --data is for --precision auto, which needs it, got --precision {precision}")
    given["precision"] = precision.replace(AUTO, F32, 1) if automatic else precision
    with Watch(None if quiet else sys.stderr) as watch:
        options = arg.options_of(
            given,
            on_event=watch,
            external_weights=weights is arg.Weights.EXTERNAL,
            tune_file=tune_file or (out.with_suffix(".tune.json") if tune else None),
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
            from aot.comparing.certify import SAMPLES, certified

            built = certified(model, made.options, built, certify_samples or SAMPLES)
        write = built.write_object if as_object else built.write_shared
        watch("link", 0, 1)
        write(out)
        if header is not None:
            text = (cpp_header_text if header.suffix == ".hpp" else header_text)(built, called)
            header.write_text(text, encoding="utf-8")
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
    lines += str(chosen).splitlines() if chosen is not None else []
    typer.echo("\n  ".join(lines))
    if time_passes:
        typer.echo("\n".join(f"  {name:12} {spent:8.3f} s" for name, spent in watch.seconds.items()))
        typer.echo("\n".join(f"  {line}" for line in (*made.report.passes, *made.lowering)))


@command
def dump(
    model: arg.Model,
    stage: Annotated[Stage, typer.Option(help="Which form of the model")] = Stage.OPTIMIZED,
    kernel: Annotated[str | None, typer.Option(help="Only this kernel, of loops, llvm or asm")] = None,
    after: Annotated[str | None, typer.Option(metavar="PASS", help="Steps after this lowering pass, or define")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Groups with the reasons of schedules")] = False,
    target: arg.Target = "native",
    layout: arg.Layout = None,
    mean: arg.Mean = None,
    scale: arg.Scale = None,
    reverse_channels: arg.Reverse = False,
    reverse_channels_of: arg.ReverseOf = None,
    shape: arg.Shapes = None,
    dim: arg.Dims = None,
    value: arg.Values = None,
    specialise: arg.Specialise = None,
    cut: arg.CutAt = None,
    signature: arg.Signature = None,
    extensions: arg.Extensions = None,
    transformations_config: arg.Config = None,
    enable_transforms: arg.Enable = None,
    disable_transforms: arg.Disable = None,
    small_weights: arg.SmallWeights = False,
    plain_products: arg.PlainProducts = False,
    disable_layout_change: arg.LayoutChange = False,
    max_context: arg.MaxContext = None,
    last_logits: arg.LastLogits = False,
    row_lengths: arg.RowLengths = False,
    precision: arg.Precision = "f32",
    fast_math: arg.FastMath = False,
    activations: arg.Activations = "f32",
    seed: arg.Seed = None,
    stop_after_rewrite: arg.Rewrites = None,
    stop_after_lowering: arg.Lowerings = None,
    debug: arg.Debug = False,
) -> None:
    """Print a model as it is after a stage of the compiler."""
    typer.echo(aot.stages(model, arg.options_of(locals())).text(stage.value, kernel, after, verbose))


@command
def rewrite(
    model: arg.Model,
    explain: Annotated[str, typer.Option("--explain", metavar="RULE", help="A rule, a set of rules, or a class")],
    shape: arg.Shapes = None,
    dim: arg.Dims = None,
    value: arg.Values = None,
    cut: arg.CutAt = None,
    signature: arg.Signature = None,
    extensions: arg.Extensions = None,
    transformations_config: arg.Config = None,
    seed: arg.Seed = None,
    limit: Annotated[int, typer.Option(min=1, help="Print at most so many attempts")] = 20,
    debug: arg.Debug = False,
) -> None:
    """Say where a rule rewrites a model, and where it does not: how far it fits, and what stops it."""
    options = arg.options_of(locals())
    from aot.why_not import attempts

    found = attempts(model, explain, options)
    typer.echo("\n".join(map(str, found[:limit])) or f"{explain}: no operation that it is for")
    if len(found) > limit:
        typer.echo(f"and {len(found) - limit} more (--limit)")


@command
def convert(
    model: arg.Model,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="m.xml; default: MODEL.xml")] = None,
    layout: arg.Layout = None,
    mean: arg.Mean = None,
    scale: arg.Scale = None,
    reverse_channels: arg.Reverse = False,
    reverse_channels_of: arg.ReverseOf = None,
    shape: arg.Shapes = None,
    dim: arg.Dims = None,
    value: arg.Values = None,
    cut: arg.CutAt = None,
    signature: arg.Signature = None,
    extensions: arg.Extensions = None,
    transformations_config: arg.Config = None,
    enable_transforms: arg.Enable = None,
    disable_transforms: arg.Disable = None,
    seed: arg.Seed = None,
    compress_to_f16: Annotated[bool, typer.Option("--compress-to-f16", help="Store f32 constants as f16")] = False,
    ir_version: Annotated[int, typer.Option(metavar="10|11", help="Version of the format")] = 11,
    max_memory: arg.Memory = None,
    max_seconds: arg.Seconds = None,
    debug: arg.Debug = False,
) -> None:
    """Convert a model to OpenVINO IR: an .xml, and its .bin beside it."""
    options = arg.options_of(locals())
    from aot.convert import convert_model

    out = output if output is not None else Path(model.with_suffix(".xml").name)
    convert_model(model, out, options, compress_to_f16=compress_to_f16, ir_version=ir_version)
    sizes = [f"{path}: {size_text(path.stat().st_size)}" for path in (out, out.with_suffix(".bin"))]
    typer.echo("\n".join(sizes))


@command
def cache(
    action: Annotated[
        arg.CacheAction, typer.Argument(help="ls: list; verify: find damaged entries; gc: remove entries")
    ],
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="cache_dir of aot.compile_model")],
    max_bytes: Annotated[int | None, typer.Option(min=0, help="gc: keep at most so many, the last used")] = None,
    max_days: Annotated[float | None, typer.Option(min=0, help="gc: keep what was used since")] = None,
    debug: arg.Debug = False,
) -> None:
    """Look after a folder of compiled models."""
    from aot.compilation import cache as compiled

    if action is arg.CacheAction.LS:
        typer.echo("\n".join(map(compiled.describe, compiled.entries(folder))) or "no entries")
    elif action is arg.CacheAction.GC:
        for entry in compiled.collect(folder, max_bytes, max_days):
            typer.echo(f"removed {entry.key}, {size_text(entry.bytes)}")
    else:
        found = [f"{entry.key}: {reason}" for entry, reason in compiled.damaged(folder)]
        typer.echo("\n".join(found) or f"{len(compiled.entries(folder))} entries are whole")
        if found:
            raise typer.Exit(1)


@command
def config(
    model: arg.Model,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON of transformations")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Default: print it")] = None,
    debug: arg.Debug = False,
) -> None:
    """Add to a configuration file the inputs and outputs that its sub-graphs have in a model."""
    from aot.mo.config.update import updated

    text = updated(model, file)
    if output is None:
        typer.echo(text, nl=False)
    else:
        check_output(output, model, model.with_suffix(".bin"))
        output.write_text(text, "utf-8")


@command
def check(
    model: arg.Model,
    shape: arg.Shapes = None,
    dim: arg.Dims = None,
    value: arg.Values = None,
    cut: arg.CutAt = None,
    signature: arg.Signature = None,
    extensions: arg.Extensions = None,
    transformations_config: arg.Config = None,
    enable_transforms: arg.Enable = None,
    disable_transforms: arg.Disable = None,
    seed: arg.Seed = None,
    max_memory: arg.Memory = None,
    max_seconds: arg.Seconds = None,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Say which layers of a model cannot be compiled, and why; nothing is compiled."""
    given = locals()
    from aot.check import check as check_model
    from aot.progress import Watch

    with Watch(None if quiet else sys.stderr) as watch:
        found = check_model(model, arg.options_of(given, on_event=watch))
    if as_json:
        echo_json({"supported": not found, "unsupported": [asdict(f) for f in found]})
    else:
        typer.echo("\n".join(map(str, found)) or f"{model}: all layers can be compiled")
    if found:
        raise typer.Exit(UnsupportedError.exit_code)


@command
def ops(
    as_json: arg.Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/use/models/ops.md")] = False,
    debug: arg.Debug = False,
) -> None:
    """List the operations that can be compiled: type, operation sets, form, element types, front ends, meaning."""
    from aot import table

    rows = table.operations()
    if as_json:
        echo_json({"operations": [asdict(row) for row in rows]})
    else:
        typer.echo(table.markdown(rows) if markdown else table.text(rows))


command(run)
command(generate)
command(chat)
command(quantize)
command(serve)
command(bench)
command(compare)
command(info)
command(report)
command(sign)
command(verify)
command(sbom)
command(provenance)


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compiles neural networks into self-contained shared libraries."""


def main() -> None:
    """Entry point of the console script."""
    escape_unprintable(sys.stdout, sys.stderr)
    if sys.argv[1:2] in (
        ["compile"],
        ["check"],
        ["convert"],
        ["dump"],
        ["quantize"],
    ):  # the others compile little, or nothing
        raise SystemExit(supervised(app))
    app(prog_name="aot")


if __name__ == "__main__":
    main()
