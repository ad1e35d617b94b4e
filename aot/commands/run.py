"""`aot run`: one inference, its results, and their difference to expected ones."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from aot.commands import loading
from aot.commands.compare import DIFFERENT, differences
from aot.commands.line import arguments as arg
from aot.commands.line.declared import Exit, argument, echo, option
from aot.commands.output import echo_json
from aot.options import CompileOptions
from aot.options.texts import bytes_of
from aot.runtime.arrays.files import Arrays, check_results_path, files_named, is_compiled, write_outputs
from aot.runtime.arrays.strings import joined
from aot.runtime.describe import summary
from aot.runtime.errors import PlatformError, UsageError
from aot.runtime.loading.library import read_manifest
from aot.runtime.loading.manifest import Manifest
from aot.runtime.model import CompiledModel
from aot.tools.running import classes


def run(
    model: arg.Runnable,
    inputs: Annotated[
        list[str] | None,
        argument(
            metavar="[x.npy | NAME=x.npy | all.npz | x.png]...",
            help="Inputs, in order or by name; default, with --shape or --dim: noise",
        ),
    ] = None,
    output: arg.Results = None,
    *,
    options: CompileOptions,
    threads: arg.Threads = None,
    repeat: Annotated[int, option(min=1, metavar="N", help="Run N times and print the times")] = 1,
    top: Annotated[int | None, option(min=1, metavar="N", help="Print the N largest scores of each row")] = None,
    labels: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Text file with a name of a class on each line")
    ] = None,
    expect: Annotated[Path | None, option(exists=True, metavar="out.npz", help="Compare with these results")] = None,
    bound: arg.Bound = None,
    sandbox: Annotated[
        bool, option("--sandbox", help="Run a library you do not trust in a process that can compute and nothing else")
    ] = False,
    max_memory: Annotated[
        str | None, option(metavar="4GB", help="Limit of memory of the sandbox, beside that of the library")
    ] = None,
    max_seconds: Annotated[
        float | None, option(min=0.01, metavar="SECONDS", help="Limit of time of the sandbox; default: 60")
    ] = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Run a model once on arrays from files. Without files, on noise of the sizes that --shape or --dim give.

    All bytes of a library are checked first. With --expect, exit code 1 if a result differs beyond the bound. With
    --sandbox, a library that opens a file or a socket, or starts a program, is ended; times are those of a new process.
    """
    if not sandbox and (max_memory is not None or max_seconds is not None):
        raise UsageError("run: --max-memory and --max-seconds need --sandbox, got none")
    ready = None if sandbox else loading.ready(model, threads, options, strict=True)
    manifest = ready.manifest if ready is not None else _manifest(model)
    outputs = joined(manifest.outputs)
    if output is not None:
        check_results_path(output, len(outputs), model, *files_named(inputs or ()), *([expect] if expect else []))
    feeds = loading.inputs(model, manifest, inputs, options, made_up=bool(options.shapes or options.dims))
    names = classes.labels_of(labels)
    if ready is not None:
        infer = partial(_infer, ready, feeds)
    else:
        if sys.platform != "linux":
            raise PlatformError(f"run: --sandbox needs Linux, got {sys.platform}")
        from aot.tools.running.sandbox import MEMORY, SECONDS, Limits, run_sandboxed

        limits = Limits(bytes_of(max_memory, "--max-memory") or MEMORY, max_seconds or SECONDS)
        infer = partial(run_sandboxed, model, feeds, threads, limits)
    times, arrays = list[float](), Arrays()
    for _ in range(repeat):
        begin = time.perf_counter()
        arrays = infer()
        times.append((time.perf_counter() - begin) * 1e3)
    if output is not None:
        write_outputs(output, arrays)
    wrong = differences(outputs, arrays, expect, bound) if expect is not None else []
    if as_json:
        facts: dict[str, object] = {} if expect is None else {"differences": wrong}
        echo_json({"outputs": {name: summary(a) for name, a in arrays.items()}, "milliseconds": times, **facts})
    else:
        for name, array in arrays.items():
            numbers = summary(array)
            echo(f"{name}: {numbers.pop('type')}  " + "  ".join(f"{k} {v:.6g}" for k, v in numbers.items()))
            if top is not None:
                echo("\n".join(classes.likeliest(array, top, names)))
        spread = f"  (shortest {min(times):.3f}, longest {max(times):.3f}, {repeat} runs)" if repeat > 1 else ""
        echo(f"{float(np.median(times)):.3f} ms{spread}")
    if wrong:
        echo("\n".join(wrong), err=True)
        raise Exit(DIFFERENT)


def _infer(model: CompiledModel, inputs: Arrays) -> Arrays:
    outputs = model(inputs)
    return {t.name: outputs[i] for i, t in enumerate(model.outputs)}


def _manifest(library: Path) -> Manifest:
    """Return the manifest of a library without running it; UsageError for a model that is not compiled."""
    if not is_compiled(library):
        raise UsageError(f"run: --sandbox needs a compiled model, got {library}")
    return read_manifest(library)
