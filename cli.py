"""The command line: parse, call, print.

    aot compile model.xml -o model.so      aot run model.so x.npy -o out.npz      aot info model.so
    aot dump model.xml --stage loops       aot bench model.so --per-kernel        aot check model.onnx
    aot convert model.onnx -o model.xml

Exit codes: 0 fine, 1 our bug, 2 usage, 3 unsupported, 4 wrong or corrupt file, 5 wrong machine or ABI, 6 over budget.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import aot
from aot.commands.line import arguments as arg
from aot.commands.line.command import guarded, supervised
from aot.commands.line.declared import Exit, argument, echo, option
from aot.commands.line.parameters import with_options
from aot.commands.line.plain_words import arguments_of
from aot.commands.output import echo_json
from aot.compilation.limits.garbage import FEWER_COLLECTIONS
from aot.options import CompileOptions, Stage
from aot.runtime.atomic import replacing
from aot.runtime.describe import escape_unprintable, size_text
from aot.runtime.errors import UnsupportedError

if TYPE_CHECKING:
    import typer

    app: typer.Typer

COMPLETES = "_AOT_COMPLETE"  # the variable by which a shell asks typer for completions
INTERRUPTED = 130  # exit code
COMMANDS = {  # in the order of the help, with the modules of their functions
    **{name: f"aot.commands.{name}" for name in ("compile", "run", "generate", "chat", "embed", "rerank")},
    **dict.fromkeys(("transcribe", "speak"), "aot.commands.speech"),
    **{name: f"aot.commands.{name}" for name in ("quantize", "serve")},
    **{name: f"aot.commands.{name}" for name in ("bench", "compare", "info", "report", "demo")},
    **dict.fromkeys(("dump", "rewrite", "convert", "cache", "config", "check", "ops"), "aot.cli"),
    **dict.fromkeys(("sign", "verify", "sbom", "provenance"), "aot.commands.supply"),
}
COMPILING = ("compile", "check", "convert", "dump", "quantize")  # the others compile little, or nothing


def command(name: str) -> Callable[..., None]:
    """Return a command with the options of the table in place of its parameter `options`."""
    return guarded(with_options(getattr(import_module(COMMANDS[name]), name)), Exit)


def dump(
    model: arg.Model,
    stage: Annotated[Stage, option(help="Stage whose result is printed")] = Stage.OPTIMIZED,
    kernel: Annotated[str | None, option(help="Print this kernel only; for loops, llvm and asm")] = None,
    after: Annotated[
        str | None, option(metavar="PASS", help="Print the steps after this lowering pass, or after define")
    ] = None,
    verbose: Annotated[bool, option("--verbose", "-v", help="Print why each schedule was chosen; for groups")] = False,
    proof: Annotated[
        bool, option("--proof", help="Print why each load and store is inside of memory; for steps and loops")
    ] = False,
    *,
    options: CompileOptions,
    debug: arg.Debug = False,
) -> None:
    """Print a model as it is after a stage of the compiler."""
    echo(aot.stages(model, options).text(stage.value, kernel, after, verbose, proof))


def rewrite(
    model: arg.Model,
    explain: Annotated[
        str, option("--explain", metavar="RULE", help="Name of a rule, of a set of rules, or of a class")
    ],
    options: CompileOptions,
    limit: Annotated[int, option(min=1, metavar="N", help="Print at most N attempts")] = 20,
    debug: arg.Debug = False,
) -> None:
    """Show the nodes that a rule rewrites; for others, how far the pattern matched and why it stopped."""
    from aot.tools.why_not import attempts

    tried = attempts(model, explain, options)
    echo("\n".join(map(str, tried[:limit])) or f"{explain}: no operation that it is for")
    if len(tried) > limit:
        echo(f"and {len(tried) - limit} more (--limit)")


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


def cache(
    action: Annotated[
        arg.CacheAction, argument(help="ls: list; verify: find damaged entries; gc: remove entries")
    ] = arg.CacheAction.LS,
    folder: Annotated[
        Path | None,
        argument(
            exists=True,
            file_okay=False,
            help="The cache_dir given to aot.compile_model; default: the store of kernels",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None, option(min=0, metavar="N", help="gc: keep at most N bytes, the entries used last")
    ] = None,
    max_days: Annotated[
        float | None, option(min=0, metavar="N", help="gc: remove entries that were not used for N days")
    ] = None,
    debug: arg.Debug = False,
) -> None:
    """List, check or shrink a cache of compiled models or kernels."""
    from aot.compilation import cache as compiled
    from aot.compilation import kernel_cache

    if folder is None:
        echo(kernel_cache.looked_after(action.value, max_bytes, max_days))
    elif action is arg.CacheAction.LS:
        echo("\n".join(map(compiled.describe, compiled.entries(folder))) or "no entries")
    elif action is arg.CacheAction.GC:
        for entry in compiled.collect(folder, max_bytes, max_days):
            echo(f"removed {entry.key}, {size_text(entry.bytes)}")
    else:
        damages = [f"{entry.key}: {reason}" for entry, reason in compiled.damaged(folder)]
        echo("\n".join(damages) or f"{len(compiled.entries(folder))} entries are whole")
        if damages:
            raise Exit(1)


def config(
    model: arg.Model,
    file: Annotated[Path, argument(exists=True, dir_okay=False, help="Configuration to complete, JSON")],
    output: Annotated[Path | None, option("-o", "--output", help="Default: print it")] = None,
    debug: arg.Debug = False,
) -> None:
    """Complete a configuration of transformations for a model.

    Adds the inputs and outputs that its sub-graphs have in the model.
    """
    from aot.compilation.outputs import check_outputs
    from aot.mo.config.update import updated

    text = updated(model, file)
    if output is None:
        echo(text, nl=False)
    else:
        check_outputs([output], model)
        with replacing(output) as new:
            new.write_text(text, "utf-8")


def check(
    model: arg.Model,
    options: CompileOptions,
    quiet: arg.Quiet = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Say which layers of a model cannot be compiled, and why. Nothing is compiled."""
    from aot.commands.line.progress import Watch
    from aot.tools.check import check as check_model

    with Watch(None if quiet else sys.stderr) as watch:
        findings = check_model(model, replace(options, on_event=watch))
    if as_json:
        echo_json({"supported": not findings, "unsupported": [asdict(f) for f in findings]})
    else:
        echo("\n".join(map(str, findings)) or f"{model}: all layers can be compiled")
    if findings:
        raise Exit(UnsupportedError.exit_code)


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


@lru_cache(maxsize=1)
def application() -> typer.Typer:
    """Return all commands for typer, which reads and words what is not plain."""
    from aot.commands.line.application import typer_application

    return typer_application([command(name) for name in COMMANDS])


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return application()


def main() -> None:
    """Entry point of the console script."""
    escape_unprintable(sys.stdout, sys.stderr)
    work = partial(_main, sys.argv[1:])
    if sys.argv[1:2] and sys.argv[1] in COMPILING:
        with FEWER_COLLECTIONS:  # importing the compiler, too, makes objects that stay
            raise SystemExit(supervised(work))
    work()


def _main(words: Sequence[str]) -> None:
    run = command(words[0]) if words and words[0] in COMMANDS and COMPLETES not in os.environ else None
    arguments = None if run is None else arguments_of(run, words[1:])
    if run is None or arguments is None:
        application()(prog_name="aot")
        return
    try:
        run(**arguments)
    except Exit as end:
        raise SystemExit(end.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
