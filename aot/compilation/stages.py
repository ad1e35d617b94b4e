"""The stages of a compilation: functions from one value to the next, which are not changed afterwards.

read       file -> Imported, the graph as it was read                        aot.frontends
optimize   -> Optimized, the canonical graph in operations of the opset      aot.compilation.graph_passes, aot.passes
lower      -> Lowered, works in order over values in memory                  aot.lowering
schedule   -> Scheduled, a program: kernels as loop nests, and their calls   aot.lowering.program, codegen
build      -> Built, machine code, manifest and weights                      codegen.llvm

While a library is built, other processes compile kernels from `schedule` on, and a thread the thread pool from `lower`.

Each value has the versions for certain sizes, too: they pass through the same functions. So do the targets of a library
that has several (`build_levels`), the tries of a search, and the tools; `Compilation` keeps the values of one model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from math import prod
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Kernel
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.program import Program
from aot.codegen.llvm.build import Built, kernels_text
from aot.codegen.llvm.build import build as build_program
from aot.codegen.llvm.levels import Levels, join
from aot.codegen.versions import join_versions
from aot.compilation.about import about
from aot.compilation.graph_passes import run_all, run_front, run_later_extensions
from aot.compilation.implied_precision import ImpliedPrecision, asks_for_bf16
from aot.compilation.limits.budget import file_bytes, run_within
from aot.compilation.limits.garbage import return_free_memory
from aot.compilation.recorded_options import recorded_options
from aot.compilation.search.timing import timed
from aot.compilation.search.tuning import Tuning
from aot.compilation.session import Session
from aot.compilation.specialise import SizesByName, combinations, text_of
from aot.frontends import read_model
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph
from aot.ir.scope import within
from aot.ir.text.printer import print_graph as graph_text
from aot.ir.values.small_weights import rounded_products, weight_bits
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.printer import steps_text
from aot.lowering.ir.steps import Steps
from aot.lowering.pipeline import pipeline as lowering_pipeline
from aot.lowering.program.build_program import ProgramBuilder
from aot.lowering.run import LoweringReport, run_lowering
from aot.passes.run import RunReport
from aot.passes.weights.matrices import SHORT_BITS
from aot.passes.weights.round_weights import rounded_weights
from aot.runtime.errors import AotError
from aot.text.library_texts import ADAPTER, manifest_texts

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Imported:
    """A model as its file has it; `weight_bits`: bits of its small weights, None without any.

    `uses_bf16`: its weights ask for layers in bf16.
    """

    graph: Graph
    weight_bits: int | None
    uses_bf16: bool = False


@dataclass(frozen=True, slots=True)
class Optimized:
    """A canonical graph, and the graphs of its versions by their sizes; `weight_bits`: bits of its small weights.

    `implied`: the types for which its weights ask.
    """

    graph: Graph
    report: RunReport
    weight_bits: int | None
    implied: ImpliedPrecision = ImpliedPrecision()
    versions: tuple[tuple[SizesByName, Optimized], ...] = ()


@dataclass(frozen=True, slots=True)
class Lowered:
    """The steps of a graph, and the steps of its versions by their sizes."""

    steps: Steps
    reports: tuple[LoweringReport, ...]
    versions: tuple[tuple[SizesByName, Lowered], ...] = ()


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A program that holds its versions' programs; `calls`: the general version's as text, and lines between them."""

    program: Program
    calls: tuple[object, ...]
    tuning: Tuning
    versions: tuple[tuple[SizesByName, Scheduled], ...] = ()

    @property
    def text(self) -> str:
        """Return the calls with their works and schedules; calls of versions follow."""
        lines = list(map(str, self.calls))
        for sizes, one in self.versions:
            lines += [f"version {text_of(sizes)}", *map(str, one.calls)]
        return "\n".join(lines) + "\n"


def stage(run: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Session, P], T]:
    """Let a function run within the budget of its library."""

    @wraps(run)
    def guarded(session: Session, /, *values: P.args, **named: P.kwargs) -> T:
        return run_within(session.library.budget, lambda: run(session, *values, **named))

    return guarded


@stage
def read(session: Session, model: str | Path | Graph) -> Imported:
    """Read a model, and set the limits of the budget that its size decides."""
    session.event("read", 0, 1)
    budget, is_graph = session.library.budget, isinstance(model, Graph)
    size = 0 if isinstance(model, Graph) else file_bytes(Path(model))
    budget.allow(size)
    with within(session.library.scope):  # the model may have their operations
        graph = model if isinstance(model, Graph) else read_model(Path(model), signature=session.options.signature)
    if is_graph:
        size = sum(n.constant_data.nbytes for n in graph.nodes.values() if n.constant_data is not None)
    programs = len(session.levels) * session.versions
    budget.allow(size, len(list(graph.all_nodes())) * programs, session.options.tune or 0.0)
    return_free_memory()  # of the tree of a file
    session.event("read", 1, 1)
    return Imported(graph, weight_bits(graph), asks_for_bf16(graph))


@stage
def convert(session: Session, imported: Imported, reshapeable: bool = False) -> Graph:
    """Return a new graph in operations of the opset: the imported one after the front phase.

    `reshapeable`: sizes are computed, and loops stay loops, if that is possible.
    """
    graph = copy_graph(imported.graph)
    with within(session.library.scope):
        run_front(graph, session.options, session.library.extensions, reshapeable)
    return graph


@stage
def extend(session: Session, imported: Imported, reshapeable: bool = False) -> Graph:
    """Return a new graph: the converted one as extensions of the later phases leave it."""
    graph = convert(session, imported, reshapeable)
    with within(session.library.scope):
        run_later_extensions(graph, session.options, session.library.extensions)
    return graph


@stage
def optimize(session: Session, imported: Imported) -> Optimized:
    """Make the canonical graph, and one for each combination of sizes that the model is specialised for."""
    session.save("00-imported.txt", lambda: graph_text(imported.graph))
    session = session.with_types(ImpliedPrecision(uses_bf16=imported.uses_bf16))
    graph, options = copy_graph(imported.graph), session.options
    lowering = [
        p.name for p in lowering_pipeline(session.with_types(ImpliedPrecision(quantizes_activations=True)).context)
    ]
    with within(session.library.scope):
        report = run_all(graph, options, session.library.extensions, lowering, session.event)
    session.save("10-optimized.txt", lambda: graph_text(graph))
    sizes = combinations(graph, options.specialise, options.dims)
    versions = tuple((one, _version(session, imported, one)) for one in sizes)
    rounds = session.computes_in_f32 and rounded_products(graph) > 0
    rows = rounded_weights(graph.rt_info)
    bits = [r.bits for r in rows if r.bits < SHORT_BITS and prod(r.shape) >= COSTS.min_compressed_elements]
    fewest = min([*bits, *(() if imported.weight_bits is None else (imported.weight_bits,))], default=None)
    return Optimized(graph, report, fewest, ImpliedPrecision(rounds, imported.uses_bf16), versions)


def _version(session: Session, imported: Imported, sizes: SizesByName) -> Optimized:
    try:
        return optimize(session.at_sizes(sizes), imported)
    except AotError as error:
        error.add_note(f"in the version for {text_of(sizes)}")
        raise


@stage
def lower(session: Session, optimized: Optimized) -> Lowered:
    """Define the steps of a graph and of its versions, and run the lowering passes on them."""
    session = session.with_types(optimized.implied)
    session.parts()  # the thread pool is compiled meanwhile
    with within(session.library.scope):
        steps = define(optimized.graph, lower_region)
    options, context = session.options, session.context

    def observe(done: LoweringReport, steps: Steps) -> None:
        if options.on_dump is not None and {"all", done.name} & set(options.print_after):
            options.on_dump(done.name, steps_text(steps))

    reports = run_lowering(
        steps,
        lowering_pipeline(context),
        context,
        stop_after=options.stop_after_lowering,
        observe=observe,
        verify=options.verify,
    )
    versions = tuple((sizes, lower(session.at_sizes(sizes), one)) for sizes, one in optimized.versions)
    return Lowered(steps, tuple(reports), versions)


@stage
def schedule(session: Session, optimized: Optimized, lowered: Lowered) -> Scheduled:
    """Choose schedules and make one program of all versions; its weights are added to the library's."""
    return _scheduled(session.with_types(optimized.implied), optimized, lowered, {})


def _scheduled(session: Session, optimized: Optimized, lowered: Lowered, kernels: dict[Kernel, str]) -> Scheduled:
    """Schedule one version. `kernels`: names of the kernels of other versions; this version's are added."""
    graph, steps = optimized.graph, lowered.steps
    tuning = _tuned(session, graph, steps)
    weights = session.library.weights
    parts = session.parts() if session.tuning_share is None else None  # which would disturb the measurements
    builder = ProgramBuilder(
        graph,
        steps,
        session.target,
        tuning.pick,
        weights=weights,
        kernels=kernels,
        on_kernel=None if parts is None else parts.submit,
    )
    program = builder.build(partial(session.event, "lower"))
    session.save("15-steps.txt", lambda: steps_text(steps))
    session.save("20-groups.txt", lambda: "\n".join(map(str, builder.text)) + "\n")
    pairs = zip(optimized.versions, lowered.versions, strict=True)
    versions = tuple(
        (sizes, _scheduled(session.at_sizes(sizes), one, steps, kernels)) for (sizes, one), (_, steps) in pairs
    )
    program = join_versions(program, [(sizes, one.program) for sizes, one in versions])
    return Scheduled(program, tuple(builder.text), tuning, versions)


def _tuned(session: Session, graph: Graph, steps: Steps) -> Tuning:
    """Return the schedules measured in this run or read from the file; empty without either."""
    tuning = Tuning(session.target, session.options.tune_file)
    if (seconds := session.tuning_share) is not None:
        run = partial(timed, graph, steps, session.target, session.options.level, session.library.store)
        tuning.search(seconds, run, progress=partial(session.event, "tune"))
        tuning.save()
    return tuning


@stage
def build(session: Session, optimized: Optimized, scheduled: Scheduled) -> Built:
    """Generate the code of a program; the weights have their size once all programs of the library are scheduled."""
    session = session.with_types(optimized.implied)
    library, rt_info = session.library, optimized.graph.rt_info
    program = replace(scheduled.program, constant_bytes=library.weights.size)
    session.save("30-loops.txt", lambda: loops_text(program))
    session.save("40-code.ll", lambda: kernels_text(scheduled.program, session.target))
    added: dict[str, object] = {**manifest_texts(rt_info)}
    if texts := about(rt_info):
        added["about"] = texts
    if ADAPTER in rt_info:
        added[ADAPTER] = rt_info[ADAPTER]
    if library.key:
        added["key"] = library.key
    if optimized.weight_bits is not None:
        added["weight_bits"] = optimized.weight_bits
    built = build_program(
        program,
        session.target,
        level=session.options.level,
        options=recorded_options(session.recorded, len(scheduled.tuning.used), library.extensions),
        external=session.options.external_weights,
        progress=session.event,
        added=added,
        store=library.store,
        folder=library.folder if len(session.levels) == 1 else None,
        parts=session.parts(),
    )
    return_free_memory()
    return built


@stage
def build_levels(session: Session, optimized: Optimized) -> Levels:
    """Generate the code of several targets: they share the graph and the weights, and nothing in between."""
    session = session.with_types(optimized.implied)
    levels = [session.at_level(name) for name in session.levels]
    scheduled = [schedule(level, optimized, lower(level, optimized)) for level in levels]
    return join(session.levels, [build(level, optimized, one) for level, one in zip(levels, scheduled, strict=True)])


def loops_text(program: Program) -> str:
    """Return the loop nests of a program's kernels."""
    return "\n".join(map(kernel_text, program.kernels))
