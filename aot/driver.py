"""The pipeline on one screen: file -> graph -> steps -> program -> code; each stage is a value that can be printed.

    imported   the graph as it was read                     aot.frontends
    optimized  canonical opset graph                        aot.passes
    groups     what is computed together, and how           aot.lowering
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

from aot.cache import check_files, load_or_make
from aot.extensions import load_extensions
from aot.frontends import front_passes, read_model
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph
from aot.ir.printer import print_graph as graph_text
from aot.lowering.chain import chain
from aot.lowering.compress import compress
from aot.lowering.define import define
from aot.lowering.dots import use_dots
from aot.lowering.fuse import fuse
from aot.lowering.group import group
from aot.lowering.hoist import hoist
from aot.lowering.in_place import reuse
from aot.lowering.layout import lay_out
from aot.lowering.narrow import narrow
from aot.lowering.program import Pick, ProgramBuilder
from aot.lowering.recurrence import spread
from aot.lowering.regions import lower_region
from aot.lowering.split import split
from aot.lowering.steps import Steps
from aot.lowering.strassen import use_strassen
from aot.lowering.strips import use_strips
from aot.lowering.weights import Weights
from aot.lowering.windows import separate_windows
from aot.lowering.winograd import use_winograd
from aot.options import CompileOptions
from aot.passes.front.input_shapes import InputShapes
from aot.passes.front.input_values import InputValues
from aot.passes.middle.interface_layout import InterfaceLayout
from aot.passes.order import sort_passes
from aot.passes.pipeline import Pass, pipeline
from aot.passes.run import PassReport, RunReport, run_passes
from aot.specialise import SizesByName, combinations, text_of
from aot.tuning import Run, Tuning, form_key
from codegen.define import Definition, Group
from codegen.llvm.build import Built, build, kernels_assembly, kernels_text
from codegen.llvm.jit import load as load_in_memory
from codegen.llvm.levels import Levels, join, names_of
from codegen.loops import Kernel
from codegen.printer import kernel_text
from codegen.program import Program
from codegen.schedule import Schedule
from codegen.target import Target
from codegen.versions import join_versions
from runtime.errors import AotError, PassError, ShapeError, UnsupportedError, UsageError
from runtime.library import Library
from runtime.model import CompiledModel
from runtime.profile import example_inputs


class Compilation:
    """One model on its way; a stage is made when it is asked for, together with those before it."""

    def __init__(
        self, model: str | Path | Graph, options: CompileOptions, *, optimized: Graph | None = None,
        weights: Weights | None = None, kernels: dict[Kernel, str] | None = None,
    ) -> None:  # fmt: skip
        """`optimized`: the graph, if it is made already; `weights`, `kernels`: of what goes into the same library."""
        self.model, self.options = model, options
        self.targets = names_of(options.target)
        if options.external_weights and self.targets[1:]:
            raise UnsupportedError(f"target: external weights are those of one target, got {options.target}")
        several = self.targets != (options.target,) or bool(options.specialise)
        self.weights = weights if weights is not None else Weights(several)
        self.kernels: dict[Kernel, str] = kernels if kernels is not None else {}
        self._ready = optimized
        self.target = Target.parse(self.targets[-1])  # of several, stages show the highest
        self.report = RunReport()

    def _event(self, stage: str, done: int, total: int) -> None:
        if self.options.on_event is not None:
            self.options.on_event(stage, done, total)

    @cached_property
    def imported(self) -> Graph:
        self._event("read", 0, 1)
        _ = self.extensions  # the model may have their operations
        graph = self.model if isinstance(self.model, Graph) else read_model(Path(self.model))
        self._event("read", 1, 1)
        return graph

    @cached_property
    def extensions(self) -> tuple[object, ...]:
        """The user's passes."""
        return load_extensions(self.options.extensions) if self.options.extensions is not None else ()

    @cached_property
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

        try:
            self.report = run_passes(
                graph, passes, self.extensions, stop_after_rewrite=self.options.stop_after_rewrite, observe=observe
            )
        except ShapeError as error:
            if self.options.shapes:
                error.add_note("with the shapes that were given for inputs: the network may be made for others")
            raise
        self._save("10-optimized.txt", lambda: graph_text(graph))
        return graph

    @property
    def _passes(self) -> tuple[Pass | str, ...]:
        given = (InputValues(self.options.values), InputShapes(self.options.shapes, self.options.dims))
        front: tuple[Pass, ...] = (*given, *front_passes(self.options.seed))
        return pipeline((*front, *((InterfaceLayout(self.options.layouts),) if self.options.layouts else ())))

    def _names(self, passes: tuple[Pass | str, ...]) -> list[str]:
        """Of passes and extensions in their order; UsageError for extensions without one, and for `print_after`."""
        try:
            names = [item.name for item in sort_passes(passes, self.extensions) if item.target is not None]
        except PassError as error:
            raise UsageError(f"--extensions: {error}") from error
        if unknown := set(self.options.print_after) - {"all", *names}:
            raise UsageError(f"--print-after: one of {', '.join(names)}, got {min(unknown)}")
        return names

    @cached_property
    def versions(self) -> tuple[tuple[SizesByName, Compilation], ...]:
        """The model for each combination of sizes that it is specialised for."""
        found = combinations(self.optimized, self.options.specialise, self.options.dims)
        return tuple((sizes, self._version(sizes)) for sizes in found)

    def _version(self, sizes: SizesByName) -> Compilation:
        dims = (*self.options.dims, *((name, size, size) for name, size in sizes))
        options = replace(self.options, specialise=(), dims=dims, tune=self._tuning_share, save_temps=None)
        made = Compilation(copy_graph(self._untouched), options, weights=self.weights, kernels=self.kernels)
        try:
            _ = made.optimized
        except AotError as error:
            error.add_note(f"in the version for {text_of(sizes)}")
            raise
        return made

    def _level(self, name: str, kernels: dict[Kernel, str]) -> Compilation:
        """For one of the targets."""
        options = replace(self.options, target=name, save_temps=None)
        made = Compilation(self.model, options, optimized=self.optimized, weights=self.weights, kernels=kernels)
        made.versions = tuple((sizes, one._level(name, kernels)) for sizes, one in self.versions)
        return made

    @property
    def _tuning_share(self) -> float | None:
        """Seconds for one version of all that there are."""
        asked = [len(sizes) for _, sizes in self.options.specialise]
        return None if self.options.tune is None else self.options.tune / (1 + prod(asked) if asked else 1)

    @cached_property
    def steps(self) -> Steps:
        steps = define(self.optimized, lower_region)
        for block in list(steps.blocks()):
            fuse(block)
            use_dots(block, self.target)
            group(block)
            split(block)
            hoist(block)
            use_dots(block, self.target)  # of what was split
            chain(block, self.target)
            fewer = not (self.options.small_weights or self.options.plain_products)
            if fewer:
                use_winograd(block, self.target)
            lay_out(block)
            if fewer:
                use_strassen(block, self.target)
            separate_windows(block)
            use_strips(block, self.target)
            spread(block, self.target)
            reuse(block)
        compress(steps, always=self.options.small_weights)
        narrow(steps, self.target, always=self.options.small_weights)
        return steps

    @cached_property
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
            keys[len(builder.calls)] = form_key(work, constants)
            return pick(work, target, constants)

        builder = ProgramBuilder(self.optimized, self.steps, self.target, noted)
        model = in_memory(build(builder.build(), self.target, level=self.options.level), 1)
        request = model.create_infer_request()
        request.enable_profiling()
        request.infer(example_inputs(model.inputs))

        def run() -> Mapping[str, float]:
            request.infer()
            spent: dict[str, float] = {}
            for call, done in enumerate(request.get_profiling_info()):
                if call in keys:
                    spent[keys[call]] = spent.get(keys[call], 0.0) + done.seconds
            return spent

        return run

    @cached_property
    def _lowered(self) -> ProgramBuilder:
        builder = ProgramBuilder(
            self.optimized, self.steps, self.target, self.tuning.pick, weights=self.weights, kernels=self.kernels
        )
        builder.build(lambda done, total: self._event("lower", done, total))
        self._save("20-groups.txt", lambda: "\n".join(map(str, builder.text)) + "\n")
        return builder

    def text(self, stage: str, kernel: str | None = None) -> str:
        """A stage (`Stage`) as text; `kernel` chooses one from the loops on."""
        if stage in ("imported", "optimized"):
            return graph_text(self.imported if stage == "imported" else self.optimized)
        if stage == "groups":
            return self.groups
        return {"loops": self.loops, "llvm": self.llvm, "asm": self.asm}[stage](kernel)

    @property
    def groups(self) -> str:
        lines = list(map(str, self._lowered.text))
        for sizes, one in self.versions:
            lines += [f"version {text_of(sizes)}", *map(str, one._lowered.text)]
        return "\n".join(lines) + "\n"

    @cached_property
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

    @cached_property
    def built(self) -> Built | Levels:
        """The model's code; several targets share the graph and the weights, and nothing between."""
        if len(self.targets) == 1:
            return self._built
        levels = [self._level(name, {}) for name in self.targets]
        for one in levels:
            _ = one.program  # the weights have their size once all are lowered
        return join(self.targets, [one._built for one in levels])

    @cached_property
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
            program, self.target, level=self.options.level, options=asked, external=external, progress=self._event
        )

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

    def make(path: Path) -> None:
        made.built.write_shared(path)

    return load_or_make(Path(cache_dir), check_files(model), made.options, make, threads)


def _check_type(name: str, value: object, wanted: UnionType) -> None:
    if not isinstance(value, wanted):
        raise UsageError(f"compile: {name} is {wanted}, got {type(value).__name__}")


def in_memory(built: Built | Levels, threads: int | None = None) -> CompiledModel:
    """Load a built model into this process, or its highest level that runs here."""
    one = built.best if isinstance(built, Levels) else built
    loaded = load_in_memory(one)
    library = Library.at(loaded.query, one.manifest, keep=loaded.keep, save=built.write_shared)
    return CompiledModel(library, threads=threads)
