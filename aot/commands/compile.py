"""`aot compile`: a model as a shared library, or as an object to link."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import aot
from aot.commands.line import arguments as arg
from aot.commands.line.declared import echo, option
from aot.commands.output import echo_json
from aot.options import CompileOptions, Stage
from aot.options.declaration import Group
from aot.options.derived import with_exact_data
from aot.precision import F32, is_auto, without_auto
from aot.runtime.arrays.files import read_arrays
from aot.runtime.atomic import replacing
from aot.runtime.describe import certificate_lines, notes, size_text
from aot.runtime.errors import UsageError

if TYPE_CHECKING:
    from aot.commands.line.progress import Watch
    from aot.compilation.compilation import Compilation
    from aot.compilation.search.precision import FoundPrecision

MAX_KERNELS = 8  # kernels that --time-passes names


def compile(
    model: arg.Model,
    output: arg.Output = None,
    *,
    options: CompileOptions,
    time_passes: Annotated[
        bool,
        option(
            "--time-passes",
            "--timings",
            help="Print the time of every stage and pass, and the slowest kernels",
            rich_help_panel=Group.STAGES,
        ),
    ] = False,
    stop_after: Annotated[
        Stage | None, option(help="Print a stage instead of compiling to the end", rich_help_panel=Group.STAGES)
    ] = None,
    emit: Annotated[
        arg.Emit | None,
        option(help="so: shared library; obj: to link; default: by the output", rich_help_panel=Group.OUTPUT),
    ] = None,
    header: Annotated[
        Path | None,
        option(
            metavar="m.h",
            help="Write a C header, too; m.hpp: for C++; m.mjs: the loader of WebAssembly, with its types; "
            "package.json: a package of npm",
            rich_help_panel=Group.OUTPUT,
        ),
    ] = None,
    name: Annotated[
        str | None,
        option(
            help="Name of the model in the header; default: by the output's file name", rich_help_panel=Group.OUTPUT
        ),
    ] = None,
    data: arg.Data = None,
    max_error: arg.MaxError = 1e-2,
    certify: Annotated[
        bool,
        option(
            "--certify",
            help="Compare the code with the reference on edge cases of its inputs",
            rich_help_panel=Group.OUTPUT,
        ),
    ] = False,
    certify_samples: Annotated[
        int | None,
        option(
            min=1,
            max=1000,
            metavar="N",
            help="Samples of noise for --certify; default: 2",
            rich_help_panel=Group.OUTPUT,
        ),
    ] = None,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Compile a model into a shared library, or an object to link."""
    from aot.codegen.platforms import platform_named

    platform = platform_named(options.target)
    out = output if output is not None else _beside(model, ".o" if emit is arg.Emit.OBJ else platform.library)
    from aot.codegen.llvm.callers import caller_files, files_for_callers
    from aot.codegen.llvm.header import checked_name, name_from
    from aot.codegen.llvm.linking.linker import find_linker
    from aot.commands.line.progress import Watch
    from aot.compilation.outputs import check_outputs, library_files

    schedules = options.tune_file or (out.with_suffix(".tune.json") if options.tune else None)
    written = library_files(out, options.external_weights, options.target)
    others = [*(caller_files(header, platform, written) if header else ()), *([schedules] if schedules else ())]
    check_outputs([*written, *others], model, *([data] if data else []))
    called = name_from(out.stem) if name is None else checked_name(name)
    if (data is not None) != is_auto(options.precision):
        rule = "--data is for --precision auto, which needs it"
        raise UsageError(f"compile: {rule}, got --precision {options.precision or F32}")
    with Watch(None if quiet else sys.stderr) as watch:
        options = replace(
            options,
            precision=without_auto(options.precision),
            on_event=watch,
            tune_file=schedules,
            on_dump=lambda name, text: echo(f"# after {name}\n{text}"),
        )
        searched = (
            aot.find_precision(model, read_arrays(data), options, max_error=max_error) if data is not None else None
        )
        compilation = aot.stages(
            model,
            options if searched is None else replace(with_exact_data(options), precision=searched.precision),
        )
        if stop_after is not None:
            echo(compilation.text(stop_after.value))
            return
        as_object = out.suffix == ".o" if emit is None else emit is arg.Emit.OBJ
        target = compilation.session.target
        if target.platform.needs_linker and (not as_object or len(compilation.session.levels) > 1):
            find_linker(target.machine.name, platform=target.platform)
        compilation.session.library.folder = out.parent
        built = compilation.built
        if certify or certify_samples is not None:
            from aot.tools.comparing.certify import SAMPLES, certified

            built = certified(model, compilation.options, built, certify_samples or SAMPLES)
        write = built.write_object if as_object else built.write_shared
        watch("link", 0, 1)
        write(out)
        if header is not None:
            for path, text in files_for_callers(header, built, called, written).items():
                with replacing(path) as new:
                    new.write_text(text, encoding="utf-8")
        watch("link", 1, 1)
    if as_json:
        spent: dict[str, object] = {"seconds": watch.total, "stages": watch.seconds}
        details = {} if searched is None else {"precision": asdict(searched)}
        details |= {"matrices": list(map(asdict, compilation.rounded_weights))} if compilation.rounded_weights else {}
        echo_json({"output": str(out), "bytes": out.stat().st_size, **spent, **details, "manifest": built.manifest})
        return
    if quiet:
        return
    lines = [f"{out}: {size_text(out.stat().st_size)}, compiled in {watch.total:.2f} s"]
    lines += certificate_lines(built.manifest)
    echo("\n  ".join([*lines, *_lines(compilation, model, searched)]))
    if time_passes:
        echo("\n".join(f"  {line}" for line in _times(watch, compilation)))


def _lines(compilation: Compilation, model: Path, precision: FoundPrecision | None) -> Iterator[str]:
    """Yield the lines about a library: notes, errors of rounded weights, faster precisions."""
    from aot.compilation.hints import faster_lines
    from aot.passes.weights.round_weights import summary

    yield from notes(compilation.built.manifest)
    if compilation.rounded_weights:
        yield summary(compilation.rounded_weights, int(str(compilation.built.manifest["weights"])))
    yield from str(precision).splitlines() if precision is not None else faster_lines(compilation, model)


def _beside(model: Path, suffix: str) -> Path:
    """Return the default output for a model, in this folder. A dot in the name of a model's folder begins no suffix."""
    return Path(f"{model.resolve().name}{suffix}" if model.is_dir() else model.with_suffix(suffix).name)


def _times(watch: Watch, compilation: Compilation) -> Iterator[str]:
    """Yield the times of stages, of passes, and of the kernels that took longest: to write LLVM IR, and LLVM's."""
    from aot.codegen.llvm.build import Built

    yield from (f"{name:12} {spent:8.3f} s" for name, spent in watch.seconds.items())
    yield from map(str, (*compilation.report.passes, *compilation.lowering))
    if not compilation.session.levels[1:]:  # of several, each has kernels of its own
        seconds_by_stage = compilation.built.seconds if isinstance(compilation.built, Built) else {}
        slowest = sorted(seconds_by_stage.items(), key=lambda row: -sum(row[1]))[:MAX_KERNELS]
        yield from (f"{n}: written in {t * 1e3:.1f} ms, compiled by LLVM in {c * 1e3:.1f} ms" for n, (t, c) in slowest)
