"""Timed runs of a model with given schedules, for the measured search (`aot.compilation.search.tuning`)."""

from __future__ import annotations

from collections.abc import Mapping

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.build import build
from aot.codegen.llvm.object.store import Store
from aot.codegen.target import Target
from aot.compilation.jit import in_memory
from aot.compilation.search.examples import example_inputs
from aot.compilation.search.tuning import Run, kernel_key
from aot.ir.graph import Graph
from aot.lowering.ir.steps import Steps
from aot.lowering.program.build_program import ProgramBuilder
from aot.lowering.program.kernel_sources import Pick


def timed(graph: Graph, steps: Steps, target: Target, level: int | None, store: Store | None, pick: Pick) -> Run:
    """Build the model with the schedules of `pick`; each call of the result is an inference of noise by one thread."""
    keys: dict[int, str] = {}

    def noted(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
        keys[len(builder.calls)] = kernel_key(work, constants)
        return pick(work, target, constants)

    builder = ProgramBuilder(graph, steps, target, noted)
    model = in_memory(build(builder.build(), target, level=level, store=store), 1)
    request = model.create_infer_request()
    request.enable_profiling()
    request.infer(example_inputs(model.inputs, model.manifest.rules))

    def run() -> Mapping[str, float]:
        request.infer()
        spent: dict[str, float] = {}
        for call, done in enumerate(request.get_profiling_info()):
            if call in keys:
                spent[keys[call]] = spent.get(keys[call], 0.0) + done.seconds
        return spent

    return run
