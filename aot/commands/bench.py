"""`aot bench`: times of a model, of its kernels, of several requests at once, and of several models in turns."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from aot.commands import loading
from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.commands.output import echo_json
from aot.options import CompileOptions
from aot.runtime.arrays.files import files_named, is_compiled
from aot.runtime.atomic import replacing
from aot.runtime.errors import UsageError
from aot.runtime.measuring import load, profile


def bench(
    model: arg.Runnable,
    inputs: Annotated[
        list[str] | None,
        argument(metavar="[x.npy | NAME=x.npy | all.npz]...", help="Inputs, in order or by name; default: noise"),
    ] = None,
    *,
    options: CompileOptions,
    threads: arg.Threads = None,
    per_kernel: Annotated[
        bool,
        option(
            "--per-kernel", help="Print the time of every kernel call, and how near it is to the limits of this machine"
        ),
    ] = False,
    top: Annotated[int | None, option(min=1, metavar="N", help="Print only the N slowest kernels")] = None,
    seconds: Annotated[float, option(min=0, metavar="SECONDS", help="Measure for so many seconds")] = 2.0,
    requests: Annotated[
        int, option("--requests", "-nireq", min=1, max=512, metavar="N", help="Run N requests at once, for throughput")
    ] = 1,
    against: Annotated[
        list[Path] | None, option(exists=True, metavar="other.so", help="Time these libraries, too, in turns")
    ] = None,
    trace: Annotated[
        Path | None, option(metavar="t.json", help="Write a trace of all inferences and calls, for ui.perfetto.dev")
    ] = None,
    precisions: Annotated[
        bool, option("--precisions", help="Compile MODEL in each precision: time, size and error on the inputs")
    ] = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Time a model, or each of its kernels. Without inputs, on noise."""
    if trace is not None:
        from aot.compilation.outputs import check_outputs

        check_outputs([trace], model, *(against or ()), *files_named(inputs or ()))
    if precisions:
        _precisions(model, inputs, options, threads, seconds, as_json)
        return
    files = [model, *(against or ())]
    loaded = [loading.ready(one, threads, options) for one in files]
    first = loaded[0]
    roofline = None
    if per_kernel:
        from aot.codegen.llvm.peak import roofline_here

        roofline = roofline_here(first.threads)
    feeds = [loading.inputs(file, one.manifest, inputs, options) for file, one in zip(files, loaded, strict=True)]
    measurement = profile.measure(first, feeds[0], seconds, roofline)
    pairs = list(zip(loaded, feeds, strict=True))
    measured = load.loads(pairs, seconds, requests, trace is not None) if requests > 1 or against or trace else []
    if trace is not None:
        text = json.dumps(load.trace(list(zip(map(str, files), loaded, measured, strict=True))))
        with replacing(trace) as new:
            new.write_text(text, encoding="utf-8")
    if as_json:
        facts = profile.as_json(measurement)
        if measured:
            facts["loads"] = [{"file": str(f)} | m.as_json() for f, m in zip(files, measured, strict=True)]
        echo_json({"threads": first.threads, "roofline": roofline and asdict(roofline), **facts})
        return
    echo(f"{first.name}, {first.threads} threads: {profile.summary(measurement)}")
    if roofline is not None:
        echo(f"{roofline}\n{profile.table(measurement, top)}")
    for file, one in zip(files, measured, strict=bool(measured)):
        ratio = f", {one.throughput / measured[0].throughput:.3f} of the first's rate" if file is not files[0] else ""
        echo(f"{file}: {one}{ratio}")


def _precisions(
    model: Path, inputs: list[str] | None, options: CompileOptions, threads: int | None, seconds: float, as_json: bool
) -> None:
    """Print a table of the precisions of a model."""
    from aot.commands.precisions import measured, table

    if is_compiled(model):
        raise UsageError(f"bench: --precisions needs a model to compile, got the library {model}")
    rows = measured(
        model, options, threads, seconds, lambda precision: loading.inputs(model, precision, inputs, options)
    )
    if as_json:
        echo_json({"precisions": [asdict(row) for row in rows]})
        return
    echo(table(rows))
