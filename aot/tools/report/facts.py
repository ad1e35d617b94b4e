"""Facts about a compiled model that the page shows: from the library, from its model, from inferences here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.printer import kernel_text
from aot.codegen.llvm.peak import roofline_here
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.recompile import options_of
from aot.compilation.search.examples import example_inputs
from aot.lowering.program.build_program import Described
from aot.options import CompileOptions
from aot.runtime.arrays.files import Arrays, is_compiled
from aot.runtime.describe import notes
from aot.runtime.errors import UsageError
from aot.runtime.measuring.profile import CallProfile, at_sizes, measure
from aot.runtime.measuring.roofline import Roofline
from aot.runtime.model import CompiledModel, load
from aot.runtime.version import VERSION
from aot.tools.report.drawing import chain, drawing
from aot.tools.report.memory import lives, weights

Facts = dict[str, Any]
MAX_LOOPS = 200_000  # characters of loop nests in a page; later kernels are left out
RUNS = 3  # inferences that the timeline shows


@dataclass(frozen=True, slots=True)
class Asked:
    """Arguments of a report: see `facts`."""

    model: Path | None = None
    against: Path | None = None
    threads: int | None = None
    seconds: float = 1.0
    inputs: Arrays | None = None


def facts(file: Path, options: CompileOptions, arguments: Asked) -> Facts:
    """Return the facts of a library or a model, as JSON has them. The model is run on inputs, or on noise.

    `arguments.model`: the file from which a library was compiled, for graph, loop nests and memory;
    `arguments.against`: a library to compare with. UsageError for `arguments.model` where `file` is a model, too.
    """
    compilation: Compilation | None = None
    if is_compiled(file):
        model = load(file, arguments.threads)
        if arguments.model is not None:
            compilation = stages(arguments.model, options_of(model.manifest, options))
    elif arguments.model is not None:
        raise UsageError(f"--model: needs a compiled model, got {file}")
    else:
        compilation = stages(file, options)
        model = in_memory(compilation.built, arguments.threads)
    inputs = arguments.inputs or example_inputs(model.inputs, model.manifest.rules)
    roofline = roofline_here(model.threads)
    gathered = _described(model, file) | _measured(model, inputs, arguments.seconds, roofline)
    gathered |= _inside(compilation, model) if compilation is not None else {"graph": chain(gathered["calls"])}
    if arguments.against is not None:
        other = load(arguments.against, arguments.threads)
        gathered["against"] = _described(other, arguments.against) | _measured(
            other, inputs, arguments.seconds, roofline
        )
    return gathered


def _described(model: CompiledModel, file: Path) -> Facts:
    json = cast(Facts, model.manifest.json)
    keys = ("hash", "triple", "features", "weights", "options", "toolchain", "versions", "symbols")
    tensors = {
        "inputs": [f"{i.name}: {i}" for i in model.inputs],
        "outputs": [f"{o.name}: {o}" for o in model.outputs],
    }
    precision = json["options"].get("precision", "f32")
    facts: Facts = {
        "name": model.name,
        "file": file.name,
        "threads": model.threads,
        "precision": precision,
        "aot": VERSION,
    }
    return facts | tensors | {"notes": notes(json)} | {key: json[key] for key in keys if key in json}


def _measured(model: CompiledModel, inputs: Arrays, seconds: float, roofline: Roofline) -> Facts:
    """Return times of calls, of whole inferences and of a few inferences in a row."""
    model_profile = measure(model, inputs, seconds, roofline)
    times = {row.index: row for row in model_profile.calls}
    rows = [_call(index, call.kernel, call.layers, times.get(index)) for index, call in enumerate(model.manifest.calls)]
    return {
        "median": model_profile.median,
        "least": model_profile.least,
        "runs": model_profile.runs,
        "sizes": at_sizes(model_profile.sizes),
        "work": model_profile.work,
        "calls": rows,
        "roofline": asdict(roofline),
        "timeline": _timeline(model, inputs),
    }


def _call(index: int, kernel: str, layers: Sequence[str], row: CallProfile | None) -> Facts:
    call_facts: Facts = {"index": index, "kernel": kernel, "layers": list(layers)}
    return call_facts | (asdict(row) | {"layers": list(layers)} if row is not None else {"median": 0.0, "percent": 0.0})


def _timeline(model: CompiledModel, inputs: Arrays) -> list[Facts]:
    """Return begin and seconds of the calls of a few inferences, since the first of them began."""
    request = model.create_infer_request()
    request.enable_profiling()
    request.infer(dict(inputs))
    spans: list[Facts] = []
    for run in range(RUNS):
        since = time.monotonic()  # calls of branches not taken have older times
        request.infer(dict(inputs))
        for index, call in enumerate(request.get_profiling_info()):
            if call.begin >= since and call.seconds > 0:
                spans.append({"run": run, "call": index, "begin": call.begin, "seconds": call.seconds})
    start = min((span["begin"] for span in spans), default=0.0)
    return [span | {"begin": span["begin"] - start} for span in spans]


def _inside(compilation: Compilation, model: CompiledModel) -> Facts:
    """Return the facts that need the model file: graph, schedules, loop nests, memory, constants."""
    calls = [call.layers for call in model.manifest.calls]
    same = compilation.built.manifest["hash"] == model.manifest.json["hash"]
    versions = compilation.program.versions
    first = versions[-1].end if versions else 0  # calls of the general version come last
    groups = {first + one.number: str(one) for one in compilation.described if isinstance(one, Described)}
    loops, size = dict[str, str](), 0
    for kernel in compilation.program.kernels:
        text = kernel_text(kernel)
        size += len(text)
        if size <= MAX_LOOPS:
            loops[kernel.name] = text
    arena = compilation.program.arena_bytes
    return {
        "same_code": same,
        "graph": drawing(compilation.optimized, calls),
        "groups": groups,
        "loops": loops,
        "arena": arena if isinstance(arena, int) else None,
        "memory": lives(compilation.steps),
        "constants": weights(compilation.optimized),
    }
