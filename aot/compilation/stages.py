"""The stages of a compilation: file -> graph -> steps -> program -> code; each is a value that can be printed.

imported   the graph as it was read                     aot.frontends
optimized  canonical opset graph                        aot.compilation.graph_passes, aot.passes
steps      works in order, over values in memory        aot.lowering
groups     definitions that run together, schedules     aot.lowering.program.build_program
loops      loop nests                                   codegen
llvm, asm  LLVM IR and machine code                     codegen.llvm
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from pathlib import Path

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Const, Kernel
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.program import Program
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.build import Built, build, kernels_assembly, kernels_text
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.levels import Levels, join, names_of
from aot.codegen.schedules.choose import choose, explain
from aot.codegen.target import Target
from aot.codegen.versions import join_versions
from aot.compilation.about import about
from aot.compilation.graph_passes import optimize, run_front, run_later_extensions
from aot.compilation.library_state import LibraryState
from aot.compilation.limits.budget import budgeted, file_bytes, nodes_of
from aot.compilation.recorded_options import recorded_options
from aot.compilation.search.timing import timed
from aot.compilation.search.tuning import Tuning
from aot.compilation.specialise import SizesByName, combinations, text_of
from aot.frontends import framework_of, read_model
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph
from aot.ir.scope import within
from aot.ir.text.printer import print_graph as graph_text
from aot.ir.values.small_weights import weight_bits
from aot.lowering.context import Context
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.printer import steps_text
from aot.lowering.ir.proof import proof_text
from aot.lowering.ir.steps import Steps
from aot.lowering.pipeline import Lowering
from aot.lowering.pipeline import pipeline as lowering_pipeline
from aot.lowering.program.build_program import Described, ProgramBuilder
from aot.lowering.run import LoweringReport, run_lowering
from aot.options import CompileOptions, Stage
from aot.options.derived import with_environment
from aot.passes.run import RunReport
from aot.precision import precision_of
from aot.runtime.atomic import naming
from aot.runtime.errors import AotError, UnsupportedError, UsageError
from aot.runtime.machine import refused_tiles
from aot.text.library_texts import kept

DEFINE = "define"  # the name, in `steps_after`, of the steps before the first lowering pass


class Compilation:
    """The compilation of one model; a stage is computed when it is first read, after those before it.

    A library has one for each combination of sizes that it is specialised for (`versions`), and all of these once more
    for each of its targets (`built`).
    """

    def __init__(
        self,
        model: str | Path | Graph,
        options: CompileOptions,
        shared: LibraryState | None = None,
        *,
        optimized: Graph | None = None,
        versions: tuple[tuple[SizesByName, Compilation], ...] | None = None,
        kernels: dict[Kernel, str] | None = None,
    ) -> None:
        """`shared`: state of the library, if this is a part of one; `optimized`, `versions`: stages computed before.

        `kernels`: the names of kernels that other versions for the same target have made.
        """
        self.model, self.options = model, with_environment(options)
        options = self.options
        self.shared = shared if shared is not None else LibraryState(options, framework_of(model))
        self.budget = self.shared.budget
        self.targets = names_of(options.target)
        if options.external_weights and self.targets[1:]:
            raise UnsupportedError(f"target: external weights are those of one target, got {options.target}")
        self.kernels: dict[Kernel, str] = kernels if kernels is not None else {}
        target = parse_target(self.targets[-1], self.options.cores)  # of several, stages show the highest
        self.target = target if self.computes_in_f32 else self._sixteen_bit_target(target)
        self.report = RunReport()
        self.lowering: list[LoweringReport] = []
        self._optimized, self._versions = optimized, versions

    @property
    def computes_in_f32(self) -> bool:
        """True if all layers compute in f32."""
        return precision_of(self.options.precision).computes_in_f32

    def _sixteen_bit_target(self, target: Target) -> Target:
        """Return the target for layers of 16 bits; this machine has tile registers if the system gives them."""
        fast = self.options.fast_math
        made = replace(target, same_sums=not fast, tiles=True, fast_math=fast)
        native = self.targets == ("native",)
        return made.without_tiles() if native and made.abilities.tiles and refused_tiles() else made

    def _event(self, stage: str, done: int, total: int) -> None:
        if self.options.on_event is not None:
            self.options.on_event(stage, done, total)

    @budgeted
    def imported(self) -> Graph:
        self._event("read", 0, 1)
        size = 0 if isinstance(self.model, Graph) else file_bytes(Path(self.model))
        self.budget.allow(size)
        with within(self.shared.scope):  # the model may have their operations
            graph = (
                self.model
                if isinstance(self.model, Graph)
                else read_model(Path(self.model), signature=self.options.signature)
            )
        if isinstance(self.model, Graph):
            size = sum(n.held.nbytes for n in graph.nodes.values() if n.held is not None)
        self.shared.weight_bits = weight_bits(graph)
        self.budget.allow(size, nodes_of(graph) * len(self.targets) * self._copies, self.options.tune or 0.0)
        self._event("read", 1, 1)
        return graph

    @budgeted
    def optimized(self) -> Graph:
        """Return the canonical graph; the imported one is changed in place."""
        if self._optimized is not None:
            return self._optimized
        graph = self.imported
        self._save("00-imported.txt", lambda: graph_text(graph))
        _ = self._untouched  # before passes change the graph
        lowering = [p.name for p in self._lowering_passes]
        with within(self.shared.scope):
            self.report = optimize(graph, self.options, self.shared.extensions, lowering, self._event)
        self._save("10-optimized.txt", lambda: graph_text(graph))
        return graph

    @budgeted
    def converted(self) -> Graph:
        """Return the graph in operations of the opset, after the front phase; the imported one is changed in place."""
        graph = self.imported
        with within(self.shared.scope):
            run_front(graph, self.options, self.shared.extensions)
        return graph

    @budgeted
    def extended(self) -> Graph:
        """Return the converted graph as extensions of the later phases leave it; it is changed in place."""
        graph = self.converted
        with within(self.shared.scope):
            run_later_extensions(graph, self.options, self.shared.extensions)
        return graph

    @cached_property
    def _untouched(self) -> Graph:
        """Return the imported graph; a copy if versions are made from it."""
        return copy_graph(self.imported) if self.options.specialise else self.imported

    @budgeted
    def versions(self) -> tuple[tuple[SizesByName, Compilation], ...]:
        """Return the model for each combination of sizes that it is specialised for."""
        if self._versions is not None:
            return self._versions
        found = combinations(self.optimized, self.options.specialise, self.options.dims)
        return tuple((sizes, self._version(sizes)) for sizes in found)

    def _version(self, sizes: SizesByName) -> Compilation:
        dims = (*self.options.dims, *((name, size, size) for name, size in sizes))
        options = replace(self.options, specialise=(), dims=dims, tune=self._tuning_share, save_temps=None)
        made = Compilation(copy_graph(self._untouched), options, self.shared, kernels=self.kernels)
        try:
            _ = made.optimized
        except AotError as error:
            error.add_note(f"in the version for {text_of(sizes)}")
            raise
        return made

    def _level(self, name: str, kernels: dict[Kernel, str]) -> Compilation:
        """Return the model for one of the targets."""
        options = replace(self.options, target=name, save_temps=None)
        versions = tuple((sizes, one._level(name, kernels)) for sizes, one in self.versions)
        return Compilation(
            self.model, options, self.shared, optimized=self.optimized, versions=versions, kernels=kernels
        )

    @property
    def _tuning_share(self) -> float | None:
        """Return the seconds of tuning for each version; None without tuning."""
        return None if self.options.tune is None else self.options.tune / self._copies

    @property
    def _copies(self) -> int:
        """Return the number of versions: the general one and those for certain sizes."""
        asked = [len(sizes) for _, sizes in self.options.specialise]
        return 1 + prod(asked) if asked else 1

    @budgeted
    def steps(self) -> Steps:
        with within(self.shared.scope):
            steps = define(self.optimized, lower_region)
        stop, verify = self.options.stop_after_lowering, self.options.verify
        self.lowering = run_lowering(
            steps, self._lowering_passes, self._context, stop_after=stop, observe=self._show_steps, verify=verify
        )
        return steps

    @property
    def _context(self) -> Context:
        return Context.of(self.options, self.target)

    @property
    def _lowering_passes(self) -> tuple[Lowering, ...]:
        return lowering_pipeline(self._context)

    def _show_steps(self, done: LoweringReport, steps: Steps) -> None:
        wanted = self.options.print_after
        if self.options.on_dump is not None and ("all" in wanted or done.name in wanted):
            self.options.on_dump(done.name, steps_text(steps))

    def steps_after(self, name: str | None, text: Callable[[Steps], str] = steps_text) -> str:
        """Return the steps as text after a lowering pass; `define`: before the first one; None: after the last one."""
        if name is None:
            return text(self.steps)
        passes = self._lowering_passes
        known = [DEFINE, *(p.name for p in passes)]
        if name not in known:
            raise UsageError(f"--after: one of {', '.join(known)}, got {name}")
        with within(self.shared.scope):
            steps = define(self.optimized, lower_region)
        run_lowering(steps, passes[: known.index(name)], self._context)
        return text(steps)

    @budgeted
    def tuning(self) -> Tuning:
        """Return the schedules measured in this run or read from the file; empty without either."""
        made = Tuning(self.target, self.options.tune_file)
        if (seconds := self._tuning_share) is not None:
            run = partial(timed, self.optimized, self.steps, self.target, self.options.level, self.shared.store)
            made.search(seconds, run, progress=lambda done, total: self._event("tune", done, total))
            made.save()
        return made

    @budgeted
    def _lowered(self) -> ProgramBuilder:
        builder = ProgramBuilder(
            self.optimized, self.steps, self.target, self.tuning.pick, weights=self.shared.weights, kernels=self.kernels
        )
        builder.build(lambda done, total: self._event("lower", done, total))
        self._save("15-steps.txt", lambda: steps_text(self.steps))
        self._save("20-groups.txt", lambda: "\n".join(map(str, builder.text)) + "\n")
        return builder

    def text(
        self,
        stage: str,
        kernel: str | None = None,
        after: str | None = None,
        verbose: bool = False,
        proof: bool = False,
    ) -> str:
        """Return a stage (`Stage`) as text. `kernel`: one of loops, llvm and asm; `after`: steps after a lowering pass.

        `verbose`: groups with the reasons of their schedules; `proof`: in place of steps, what is known of each access.

        Raises UsageError for a stage, a kernel or a pass that does not exist, and for options of other stages.
        """
        by_kernel = {Stage.LOOPS: self.loops, Stage.LLVM: self.llvm, Stage.ASM: self.asm}
        if stage not in set(Stage):
            raise UsageError(f"dump: a stage is one of {', '.join(Stage)}, got {stage}")
        if kernel is not None and stage not in by_kernel:
            raise UsageError(f"dump: --kernel goes with --stage {', '.join(by_kernel)}, got {stage}")
        if after is not None and stage != Stage.STEPS:
            raise UsageError(f"dump: --after goes with --stage {Stage.STEPS}, got {stage}")
        if proof and stage != Stage.STEPS:
            raise UsageError(f"dump: --proof goes with --stage {Stage.STEPS}, got {stage}")
        if verbose and stage != Stage.GROUPS:
            raise UsageError(f"dump: --verbose goes with --stage {Stage.GROUPS}, got {stage}")
        match Stage(stage):
            case Stage.IMPORTED:
                return graph_text(self.imported)
            case Stage.OPTIMIZED:
                return graph_text(self.optimized)
            case Stage.STEPS:
                return self.steps_after(after, proof_text if proof else steps_text)
            case Stage.GROUPS:
                return self._explained_groups() if verbose else self.groups
            case one:
                return by_kernel[one](kernel)

    @property
    def described(self) -> tuple[object, ...]:
        """Calls of the general version as text, `Described`, and lines between them."""
        return tuple(self._lowered.text)

    @property
    def groups(self) -> str:
        """Return the calls with their works and schedules as text; those of versions follow."""
        lines = list(map(str, self._lowered.text))
        for sizes, one in self.versions:
            lines += [f"version {text_of(sizes)}", *map(str, one._lowered.text)]
        return "\n".join(lines) + "\n"

    def _explained_groups(self) -> str:
        """Return the groups of the general version, each call followed by the reasons of its schedules."""
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
        """Return one program of all versions."""
        general = self._lowered.program
        return join_versions(general, [(sizes, one.program) for sizes, one in self.versions])

    def loops(self, kernel: str | None = None) -> str:
        """Return the loop nests of one kernel or of all."""
        return "\n".join(kernel_text(k) for k in self._chosen(kernel).kernels)

    def llvm(self, kernel: str | None = None) -> str:
        """Return the LLVM IR of one kernel or of all."""
        return kernels_text(self._chosen(kernel), self.target)

    def asm(self, kernel: str | None = None) -> str:
        """Return the target's assembly of one kernel or of all."""
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
        """Return the model's code; several targets share the graph and the weights, and nothing in between."""
        if len(self.targets) == 1:
            return self._built
        levels = [self._level(name, {}) for name in self.targets]
        for one in levels:
            _ = one.program  # the weights have their size once all are lowered
        return join(self.targets, [one._built for one in levels])

    @budgeted
    def _built(self) -> Built:
        program = replace(self.program, constant_bytes=self.shared.weights.size)
        self._save("30-loops.txt", self.loops)
        self._save("40-code.ll", self.llvm)
        external = self.options.external_weights
        rt_info = self.optimized.rt_info
        texts = about(rt_info)
        return build(
            program,
            self.target,
            level=self.options.level,
            options=recorded_options(self._told, len(self.tuning.used), self.shared.extensions),
            external=external,
            progress=self._event,
            added={
                **kept(rt_info),
                **({"about": texts} if texts else {}),
                **({"key": self.shared.key} if self.shared.key else {}),
                **({"weight_bits": self.shared.weight_bits} if self.shared.weight_bits is not None else {}),
            },
            store=self.shared.store,
        )

    @property
    def _told(self) -> CompileOptions:
        """Return the options that give this code elsewhere: with the cores of this machine, if it is for them."""
        return replace(self.options, cores=self.target.cores) if self.target.is_own else self.options

    def _save(self, name: str, text: Callable[[], str]) -> None:
        if self.options.save_temps is not None:
            self.options.save_temps.mkdir(parents=True, exist_ok=True)
            path = self.options.save_temps / name
            with naming(path):
                path.write_text(text())
