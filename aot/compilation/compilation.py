"""One compilation. Its stages are computed on first use, and kept; each can be printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Const
from aot.codegen.ir.program import Program
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.build import Built, kernels_assembly, kernels_text
from aot.codegen.llvm.levels import Levels
from aot.codegen.schedules.choose import choose, explain
from aot.codegen.target import Target
from aot.compilation import stages
from aot.compilation.outputs import check_outputs, library_files
from aot.compilation.search.tuning import Tuning
from aot.compilation.session import Session
from aot.ir.graph import Graph
from aot.ir.scope import within
from aot.ir.text.printer import print_graph as graph_text
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.printer import steps_text
from aot.lowering.ir.proof import proof_text, prove
from aot.lowering.ir.steps import Steps
from aot.lowering.pipeline import pipeline as lowering_pipeline
from aot.lowering.program.build_program import Described, ProgramBuilder
from aot.lowering.program.kernel_proofs import prove_calls
from aot.lowering.run import LoweringReport, run_lowering
from aot.options import CompileOptions, Stage
from aot.passes.run import RunReport
from aot.passes.weights.matrices import SmallWeights
from aot.passes.weights.round_weights import rounded_weights
from aot.runtime.errors import UsageError

DEFINE = "define"  # the name, in `steps_after`, of the steps before the first lowering pass


class Compilation:
    """Keeps the values of the stages of one model (`aot.compilation.stages`)."""

    def __init__(self, model: str | Path | Graph, options: CompileOptions) -> None:
        self.model = model
        self.session = Session.of(model, options)

    @property
    def options(self) -> CompileOptions:
        """Return the options, with those that the environment sets."""
        return self.session.options

    @property
    def decided(self) -> CompileOptions:
        """Return the options with the types that weights decide, where they were left to them."""
        return self._decided.options

    @property
    def target(self) -> Target:
        """Return the target, of several the highest; it may depend on the types that weights decide."""
        return self._decided.target

    @property
    def _decided(self) -> Session:
        return self.session.with_types(self._optimized.implied)

    # ---- the values of the stages

    @cached_property
    def _imported(self) -> stages.Imported:
        return stages.read(self.session, self.model)

    @cached_property
    def _optimized(self) -> stages.Optimized:
        return stages.optimize(self.session, self._imported)

    @cached_property
    def _lowered(self) -> stages.Lowered:
        return stages.lower(self.session, self._optimized)

    @cached_property
    def _scheduled(self) -> stages.Scheduled:
        return stages.schedule(self.session, self._optimized, self._lowered)

    @cached_property
    def built(self) -> Built | Levels:
        """Return the model's code, for one target or for several."""
        optimized = self._optimized
        with self.session.library.compiling():
            if self.session.levels[1:]:
                return stages.build_levels(self.session, optimized)
            return stages.build(self.session, optimized, self._scheduled)

    # ---- parts of the values, of the general version

    @property
    def imported(self) -> Graph:
        """Return the graph as its file has it."""
        return self._imported.graph

    @property
    def weight_bits(self) -> int | None:
        """Return the bits of the model's small weights; None without any."""
        return self._optimized.weight_bits

    @property
    def rounded_weights(self) -> tuple[SmallWeights, ...]:
        """Return the matrices that the option `weights` has rounded, with their errors."""
        return rounded_weights(self.optimized.rt_info)

    @property
    def optimized(self) -> Graph:
        """Return the canonical graph."""
        return self._optimized.graph

    @property
    def report(self) -> RunReport:
        """Return the report of the graph passes: their rewrites and times."""
        return self._optimized.report

    @property
    def steps(self) -> Steps:
        """Return the steps after all lowering passes."""
        return self._lowered.steps

    @property
    def lowering(self) -> tuple[LoweringReport, ...]:
        """Return the reports of the lowering passes, one each."""
        return self._lowered.reports

    @property
    def tuning(self) -> Tuning:
        """Return the schedules that were measured in this run or read from a file."""
        return self._scheduled.tuning

    @property
    def described(self) -> tuple[object, ...]:
        """Return the calls as text, `Described`, and lines between them."""
        return self._scheduled.calls

    @property
    def groups(self) -> str:
        """Return the calls of all versions, with their works and schedules, as text."""
        return self._scheduled.text

    @property
    def program(self) -> Program:
        """Return one program of all versions."""
        return self._scheduled.program

    def write_library(self, output: str | Path) -> None:
        """Compile, and write the shared library `output`, for any system and machine; external weights lie beside it.

        Raises UsageError, before anything is compiled, for the name of a file for another system than the target's, and
        for a file that the model is read from; MissingError without a linker if the system's libraries need one.
        """
        path = Path(output)
        check_outputs(library_files(path, self.options.external_weights, self.options.target), self.model)
        self.session.library.folder = path.parent
        self.built.write_shared(path)

    # ---- graphs on the way to other files

    @property
    def converted(self) -> Graph:
        """Return a new graph in operations of the opset, as the front phase leaves it."""
        return stages.convert(self.session, self._imported)

    @property
    def extended(self) -> Graph:
        """Return a new graph: the converted one as extensions of the later phases leave it."""
        return stages.extend(self.session, self._imported)

    # ---- texts

    def text(
        self,
        stage: str,
        kernel: str | None = None,
        after: str | None = None,
        verbose: bool = False,
        proof: bool = False,
    ) -> str:
        """Return a stage (`Stage`) as text. `kernel`: one of loops, llvm and asm; `after`: steps after a lowering pass.

        `verbose`: groups with the reasons of their schedules; `proof`: why accesses of steps or loops are in memory.

        Raises UsageError for a stage, a kernel or a pass that does not exist, and for options of other stages.
        """
        by_kernel = {Stage.LOOPS: self.loops, Stage.LLVM: self.llvm, Stage.ASM: self.asm}
        if stage not in set(Stage):
            raise UsageError(f"dump: --stage must be one of {', '.join(Stage)}, got {stage}")
        if kernel is not None and stage not in by_kernel:
            raise UsageError(f"dump: --kernel needs --stage {', '.join(by_kernel)}, got {stage}")
        if after is not None and stage != Stage.STEPS:
            raise UsageError(f"dump: --after needs --stage {Stage.STEPS}, got {stage}")
        if proof and stage not in (Stage.STEPS, Stage.LOOPS):
            raise UsageError(f"dump: --proof needs --stage {Stage.STEPS}, {Stage.LOOPS}, got {stage}")
        if verbose and stage != Stage.GROUPS:
            raise UsageError(f"dump: --verbose needs --stage {Stage.GROUPS}, got {stage}")
        match Stage(stage):
            case Stage.IMPORTED:
                return graph_text(self.imported)
            case Stage.OPTIMIZED:
                return graph_text(self.optimized)
            case Stage.STEPS:
                return self.steps_after(after, (lambda steps: proof_text(prove(steps))) if proof else steps_text)
            case Stage.LOOPS if proof:
                self._chosen(kernel)  # is there one?
                builder = ProgramBuilder(self.optimized, self.steps, self.target, self.tuning.pick)
                builder.build()
                return proof_text([*prove_calls(builder, kernel)])
            case Stage.GROUPS:
                return self._explained_groups() if verbose else self.groups
            case one:
                return by_kernel[one](kernel)

    def steps_after(self, name: str | None, text: Callable[[Steps], str] = steps_text) -> str:
        """Return the steps as text after a lowering pass; `define`: before the first one; None: after the last one."""
        if name is None:
            return text(self.steps)
        context = self._decided.context
        passes = lowering_pipeline(context)
        known = [DEFINE, *(p.name for p in passes)]
        if name not in known:
            raise UsageError(f"--after: must be one of {', '.join(known)}, got {name}")
        with within(self.session.library.scope):
            steps = define(self.optimized, lower_region)
        run_lowering(steps, passes[: known.index(name)], context)
        return text(steps)

    def _explained_groups(self) -> str:
        """Return the groups of the general version, each call followed by the reasons of its schedules."""
        reasons: dict[int, list[str]] = {}

        def noted(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
            schedule, first = self.tuning.pick(work, target, constants), choose(work, target, constants)
            lines = reasons.setdefault(len(builder.calls), [])
            if not (isinstance(work, Definition) and isinstance(work.value, Const)):  # a halo fill has no choice
                lines += explain(work, target, constants)
            lines += ["tuning: a schedule that measured faster replaces the cost model's"] if schedule != first else []
            return schedule

        builder = ProgramBuilder(self.optimized, self.steps, self.target, noted)
        builder.build()
        lines: list[str] = []
        for one in builder.text:
            lines.append(str(one))
            if isinstance(one, Described):
                lines += [f"    why: {reason}" for reason in reasons.get(one.number, ["the pass that made it chose"])]
        return "\n".join(lines) + "\n"

    def loops(self, kernel: str | None = None) -> str:
        """Return the loop nests of one kernel or of all."""
        return stages.loops_text(self._chosen(kernel))

    def llvm(self, kernel: str | None = None) -> str:
        """Return the LLVM IR of one kernel or of all."""
        return kernels_text(self._chosen(kernel), self.target)

    def asm(self, kernel: str | None = None) -> str:
        """Return the target's assembly of one kernel or of all."""
        return kernels_assembly(self._chosen(kernel), self.target, self.options.level)

    def _chosen(self, kernel: str | None) -> Program:
        if kernel is None:
            return self.program
        kernels = tuple(k for k in self.program.kernels if k.name == kernel)
        if not kernels:
            names = ", ".join(k.name for k in self.program.kernels)
            raise UsageError(f"dump: --kernel must be one of {names}, got {kernel}")
        return replace(self.program, kernels=kernels, calls=tuple(c for c in self.program.calls if c.kernel == kernel))
