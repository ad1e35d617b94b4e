"""The pipeline on one screen: file -> graph -> steps -> program -> code; each stage is a value that can be printed.

    imported   the graph as it was read                     aot.frontends
    optimized  canonical opset graph                        aot.passes
    steps      what runs, over values in memory             aot.lowering
    groups     what is computed together, and how           aot.lowering.program.build_program
    loops      loop nests                                   codegen
    llvm, asm  LLVM IR and machine code                     codegen.llvm
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path
from types import UnionType

from aot.budget import Budget, budgeted, file_bytes, nodes_of
from aot.cache import check_files, key_of, load_or_make
from aot.extensions import Extensions, load_extensions
from aot.frontends import front_passes, read_model
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph
from aot.ir.printer import print_graph as graph_text
from aot.ir.scope import Scope, within
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.printer import steps_text
from aot.lowering.ir.steps import Steps
from aot.lowering.pipeline import Lowering
from aot.lowering.pipeline import pipeline as lowering_pipeline
from aot.lowering.program.build_program import Described, Pick, ProgramBuilder
from aot.lowering.program.constant_places import Weights
from aot.lowering.run import LoweringReport, run_lowering
from aot.options import CompileOptions, Stage
from aot.passes.front.input_feeds import InputFeeds
from aot.passes.front.input_shapes import InputShapes
from aot.passes.front.input_values import InputValues
from aot.passes.middle.interface_layout import InterfaceLayout
from aot.passes.pass_order import sort_passes
from aot.passes.pipeline import Pass, pipeline
from aot.passes.run import PassReport, RunReport, run_passes
from aot.specialise import SizesByName, combinations, text_of
from aot.tuning import Run, Tuning, kernel_key
from codegen.ir.definition import Definition, Group
from codegen.ir.loops import Const, Kernel
from codegen.ir.printer import kernel_text
from codegen.ir.program import Program
from codegen.ir.schedule import Schedule
from codegen.llvm.build import Built, build, kernels_assembly, kernels_text
from codegen.llvm.host import parse_target
from codegen.llvm.jit import load as load_in_memory
from codegen.llvm.levels import Levels, join, names_of
from codegen.schedules.choose import choose, explain
from codegen.target import Target
from codegen.versions import join_versions
from runtime.errors import AotError, PassError, ShapeError, UnsupportedError, UsageError
from runtime.examples import example_inputs
from runtime.library import Library
from runtime.model import CompiledModel

DEFINE = "define"  # what `steps_after` calls the steps before the first lowering pass


class Compilation:
    """One model on its way; a stage is made when it is asked for, together with those before it."""

    def __init__(
        self, model: str | Path | Graph, options: CompileOptions, *, optimized: Graph | None = None,
        weights: Weights | None = None, kernels: dict[Kernel, str] | None = None, budget: Budget | None = None,
    ) -> None:  # fmt: skip
        """`optimized`: the graph, if it is made already; `weights`, `kernels`, `budget`: of the whole library."""
        self.model, self.options = model, options
        limits = options.max_memory, options.max_seconds
        self.budget = budget if budget is not None else Budget(*limits, hard=options.hard_limits)
        self.targets = names_of(options.target)
        if options.external_weights and self.targets[1:]:
            raise UnsupportedError(f"target: external weights are those of one target, got {options.target}")
        several = self.targets != (options.target,) or bool(options.specialise)
        self.weights = weights if weights is not None else Weights(several)
        self.kernels: dict[Kernel, str] = kernels if kernels is not None else {}
        self._ready = optimized
        self.target = parse_target(self.targets[-1])  # of several, stages show the highest
        self.report = RunReport()
        self.lowering: list[LoweringReport] = []
        self.key = ""  # of the cache's entry that it makes, if any

    def _event(self, stage: str, done: int, total: int) -> None:
        if self.options.on_event is not None:
            self.options.on_event(stage, done, total)

    @budgeted
    def imported(self) -> Graph:
        self._event("read", 0, 1)
        size = 0 if isinstance(self.model, Graph) else file_bytes(Path(self.model))
        self.budget.allow(size)
        with within(self._scope):  # the model may have their operations
            graph = self.model if isinstance(self.model, Graph) else read_model(Path(self.model))
        if isinstance(self.model, Graph):
            size = sum(n.data.nbytes for n in graph.nodes.values() if n.data is not None)
        self.budget.allow(size, nodes_of(graph) * len(self.targets) * self._copies, self.options.tune or 0.0)
        self._event("read", 1, 1)
        return graph

    @cached_property
    def extensions(self) -> Extensions | None:
        """The user's operations, conversions and passes."""
        return load_extensions(self.options.extensions) if self.options.extensions is not None else None

    @property
    def _scope(self) -> Scope | None:
        return None if self.extensions is None else self.extensions.scope

    @budgeted
    def optimized(self) -> Graph:
        """The canonical graph; the imported one is changed in place."""
        if self._ready is not None:
            return self._ready
        graph = self.imported
        self._untouched = copy_graph(graph) if self.options.specialise else graph
        self._save("00-imported.txt", lambda: graph_text(graph))
        passes = self._passes
        names = self._names(passes)
        wanted = self.options.print_after

        def observe(done: PassReport, graph: Graph) -> None:
            self._event("optimize", names.index(done.name) + 1, len(names))
            if self.options.on_dump is not None and ("all" in wanted or done.name in wanted):
                self.options.on_dump(done.name, graph_text(graph))

        extra = self.extensions.passes if self.extensions is not None else ()
        try:
            with within(self._scope):
                self.report = run_passes(
                    graph, passes, extra, stop_after_rewrite=self.options.stop_after_rewrite, observe=observe
                )
        except ShapeError as error:
            if self.options.shapes:
                error.add_note("with the shapes that were given for inputs: the network may be made for others")
            raise
        self._save("10-optimized.txt", lambda: graph_text(graph))
        return graph

    @property
    def _passes(self) -> tuple[Pass | str, ...]:
        shapes = InputShapes(self.options.shapes, self.options.dims)
        given = (InputFeeds(self.options.feeds), InputValues(self.options.values), shapes)
        front: tuple[Pass, ...] = (*given, *front_passes(self.options.seed))
        return pipeline((*front, *((InterfaceLayout(self.options.layouts),) if self.options.layouts else ())))

    def _names(self, passes: tuple[Pass | str, ...]) -> list[str]:
        """Names of passes and extensions in run order; UsageError for extensions without one, and for `print_after`."""
        try:
            extra = self.extensions.passes if self.extensions is not None else ()
            names = [item.name for item in sort_passes(passes, extra) if item.target is not None]
        except PassError as error:
            raise UsageError(f"--extensions: {error}") from error
        lowering = [p.name for p in self._lowering_passes]
        if unknown := set(self.options.print_after) - {"all", *names, *lowering}:
            raise UsageError(f"--print-after: one of {', '.join([*names, *lowering])}, got {min(unknown)}")
        return names

    @budgeted
    def versions(self) -> tuple[tuple[SizesByName, Compilation], ...]:
        """The model for each combination of sizes that it is specialised for."""
        found = combinations(self.optimized, self.options.specialise, self.options.dims)
        return tuple((sizes, self._version(sizes)) for sizes in found)

    def _version(self, sizes: SizesByName) -> Compilation:
        dims = (*self.options.dims, *((name, size, size) for name, size in sizes))
        options = replace(self.options, specialise=(), dims=dims, tune=self._tuning_share, save_temps=None)
        made = Compilation(
            copy_graph(self._untouched), options, weights=self.weights, kernels=self.kernels, budget=self.budget
        )
        made.extensions = self.extensions  # their classes are those of the graph
        try:
            _ = made.optimized
        except AotError as error:
            error.add_note(f"in the version for {text_of(sizes)}")
            raise
        return made

    def _level(self, name: str, kernels: dict[Kernel, str]) -> Compilation:
        """For one of the targets."""
        options = replace(self.options, target=name, save_temps=None)
        made = Compilation(
            self.model, options, optimized=self.optimized, weights=self.weights, kernels=kernels, budget=self.budget
        )
        made.extensions, made.key = self.extensions, self.key
        made.versions = tuple((sizes, one._level(name, kernels)) for sizes, one in self.versions)
        return made

    @property
    def _tuning_share(self) -> float | None:
        """Seconds for one version of all that there are."""
        return None if self.options.tune is None else self.options.tune / self._copies

    @property
    def _copies(self) -> int:
        """The general version and those for certain sizes."""
        asked = [len(sizes) for _, sizes in self.options.specialise]
        return 1 + prod(asked) if asked else 1

    @budgeted
    def steps(self) -> Steps:
        with within(self._scope):
            steps = define(self.optimized, lower_region)
        stop, verify = self.options.stop_after_lowering, self.options.verify
        self.lowering = run_lowering(
            steps, self._lowering_passes, stop_after=stop, observe=self._show_steps, verify=verify
        )
        return steps

    @property
    def _lowering_passes(self) -> tuple[Lowering, ...]:
        return lowering_pipeline(self.options, self.target)

    def _show_steps(self, done: LoweringReport, steps: Steps) -> None:
        wanted = self.options.print_after
        if self.options.on_dump is not None and ("all" in wanted or done.name in wanted):
            self.options.on_dump(done.name, steps_text(steps))

    def steps_after(self, name: str | None) -> str:
        """The steps as text after a lowering pass; `define`: before the first one; None: after the last one."""
        if name is None:
            return steps_text(self.steps)
        passes = self._lowering_passes
        known = [DEFINE, *(p.name for p in passes)]
        if name not in known:
            raise UsageError(f"--after: one of {', '.join(known)}, got {name}")
        with within(self._scope):
            steps = define(self.optimized, lower_region)
        run_lowering(steps, passes[: known.index(name)])
        return steps_text(steps)

    @budgeted
    def tuning(self) -> Tuning:
        """Schedules that were measured, now or for the file; without either, there are none."""
        made = Tuning(self.target, self.options.tune_file)
        if (seconds := self._tuning_share) is not None:
            made.search(seconds, self._timed, progress=lambda done, total: self._event("tune", done, total))
            made.save()
        return made

    def _timed(self, pick: Pick) -> Run:
        """The model with schedules of `pick`: each run is an inference of noise by one thread."""
        keys: dict[int, str] = {}

        def noted(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
            keys[len(builder.calls)] = kernel_key(work, constants)
            return pick(work, target, constants)

        builder = ProgramBuilder(self.optimized, self.steps, self.target, noted)
        model = in_memory(build(builder.build(), self.target, level=self.options.level), 1)
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

    @budgeted
    def _lowered(self) -> ProgramBuilder:
        builder = ProgramBuilder(
            self.optimized, self.steps, self.target, self.tuning.pick, weights=self.weights, kernels=self.kernels
        )
        builder.build(lambda done, total: self._event("lower", done, total))
        self._save("15-steps.txt", lambda: steps_text(self.steps))
        self._save("20-groups.txt", lambda: "\n".join(map(str, builder.text)) + "\n")
        return builder

    def text(self, stage: str, kernel: str | None = None, after: str | None = None, verbose: bool = False) -> str:
        """A stage (`Stage`) as text. `kernel` picks one of loops, llvm and asm; `after`: steps after a lowering pass.

        `verbose`: groups with the reasons of their schedules.

        Raises UsageError for a stage, a kernel or a pass that does not exist, and for options of other stages.
        """
        by_kernel = {Stage.LOOPS: self.loops, Stage.LLVM: self.llvm, Stage.ASM: self.asm}
        if stage not in set(Stage):
            raise UsageError(f"dump: a stage is one of {', '.join(Stage)}, got {stage}")
        if kernel is not None and stage not in by_kernel:
            raise UsageError(f"dump: --kernel goes with --stage {', '.join(by_kernel)}, got {stage}")
        if after is not None and stage != Stage.STEPS:
            raise UsageError(f"dump: --after goes with --stage {Stage.STEPS}, got {stage}")
        if verbose and stage != Stage.GROUPS:
            raise UsageError(f"dump: --verbose goes with --stage {Stage.GROUPS}, got {stage}")
        match Stage(stage):
            case Stage.IMPORTED:
                return graph_text(self.imported)
            case Stage.OPTIMIZED:
                return graph_text(self.optimized)
            case Stage.STEPS:
                return self.steps_after(after)
            case Stage.GROUPS:
                return self._explained_groups() if verbose else self.groups
            case one:
                return by_kernel[one](kernel)

    @property
    def groups(self) -> str:
        lines = list(map(str, self._lowered.text))
        for sizes, one in self.versions:
            lines += [f"version {text_of(sizes)}", *map(str, one._lowered.text)]
        return "\n".join(lines) + "\n"

    def _explained_groups(self) -> str:
        """The groups of the general version, each call followed by the reasons of its schedules."""
        reasons: dict[int, list[str]] = {}

        def noted(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
            found, first = self.tuning.pick(work, target, constants), choose(work, target, constants)
            lines = reasons.setdefault(len(builder.calls), [])
            if not (isinstance(work, Definition) and isinstance(work.value, Const)):  # a halo fill has no choice
                lines += explain(work, target, constants)
            lines += ["tuning: a schedule that measured faster replaces the cost model's"] if found != first else []
            return found

        builder = ProgramBuilder(self.optimized, self.steps, self.target, noted)
        builder.build()
        lines: list[str] = []
        for one in builder.text:
            lines.append(str(one))
            if isinstance(one, Described):
                lines += [f"    why: {reason}" for reason in reasons.get(one.number, ["the pass that made it chose"])]
        return "\n".join(lines) + "\n"

    @budgeted
    def program(self) -> Program:
        """All versions in one."""
        general = self._lowered.program
        return join_versions(general, [(sizes, one.program) for sizes, one in self.versions])

    def loops(self, kernel: str | None = None) -> str:
        """Loop nests, of one kernel or of all."""
        return "\n".join(kernel_text(k) for k in self._chosen(kernel).kernels)

    def llvm(self, kernel: str | None = None) -> str:
        return kernels_text(self._chosen(kernel), self.target)

    def asm(self, kernel: str | None = None) -> str:
        return kernels_assembly(self._chosen(kernel), self.target, self.options.level)

    def _chosen(self, kernel: str | None) -> Program:
        if kernel is None:
            return self.program
        chosen = tuple(k for k in self.program.kernels if k.name == kernel)
        if not chosen:
            names = ", ".join(k.name for k in self.program.kernels)
            raise UsageError(f"dump: the model's kernels are {names}, got {kernel}")
        return replace(self.program, kernels=chosen, calls=tuple(c for c in self.program.calls if c.kernel == kernel))

    @budgeted
    def built(self) -> Built | Levels:
        """The model's code; several targets share the graph and the weights, and nothing between."""
        if len(self.targets) == 1:
            return self._built
        levels = [self._level(name, {}) for name in self.targets]
        for one in levels:
            _ = one.program  # the weights have their size once all are lowered
        return join(self.targets, [one._built for one in levels])

    @budgeted
    def _built(self) -> Built:
        program = replace(self.program, constant_bytes=self.weights.size)
        self._save("30-loops.txt", self.loops)
        self._save("40-code.ll", self.llvm)
        asked: dict[str, object] = {
            "target": self.options.target, "layouts": [list(pair) for pair in self.options.layouts],
            "small_weights": self.options.small_weights, "plain_products": self.options.plain_products,
            "tuned": len(self.tuning.used),
        }
        external = self.options.external_weights
        return build(
            program, self.target, level=self.options.level, options=asked, external=external, progress=self._event,
            key=self.key,
        )  # fmt: skip

    def _save(self, name: str, text: Callable[[], str]) -> None:
        if self.options.save_temps is not None:
            self.options.save_temps.mkdir(parents=True, exist_ok=True)
            (self.options.save_temps / name).write_text(text())


def stages(model: str | Path | Graph, options: CompileOptions | None = None) -> Compilation:
    """All stages of one compilation, made as they are asked for; UsageError for arguments of other types."""
    _check_type("model", model, str | Path | Graph)
    _check_type("options", options, CompileOptions | None)
    return Compilation(model, options or CompileOptions())


def compile_model(
    model: str | Path | Graph, options: CompileOptions | None = None, *, threads: int | None = None,
    cache_dir: str | Path | None = None,
) -> CompiledModel:  # fmt: skip
    """Compile in memory. `model`: a file (.xml, .onnx) or a graph; `threads`: as for `runtime.load`.

    With `cache_dir` the code is kept there, and taken from there if files, options and compiler are the same.
    Raises ModelError, UnsupportedError or another AotError that says what is wrong and in which layer.
    """
    made = stages(model, options)
    if cache_dir is None:
        return in_memory(made.built, threads)

    file = check_files(model)

    def make(path: Path, key: str) -> None:
        made.key = key
        made.built.write_shared(path)

    return load_or_make(Path(cache_dir), lambda: key_of(file, made.options, made.extensions), make, threads)


def _check_type(name: str, value: object, wanted: UnionType) -> None:
    if not isinstance(value, wanted):
        raise UsageError(f"compile: {name} is {wanted}, got {type(value).__name__}")


def in_memory(built: Built | Levels, threads: int | None = None) -> CompiledModel:
    """Load a built model into this process, or its highest level that runs here."""
    one = built.best if isinstance(built, Levels) else built
    loaded = load_in_memory(one)
    library = Library.at(loaded.query, one.manifest, keep=loaded.keep, save=built.write_shared)
    return CompiledModel(library, threads=threads)
