"""Steps -> program: a schedule for each work, a kernel from both, equal kernels once, addresses for all buffers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Expr, Kernel, Size, Var
from aot.codegen.ir.printer import definition_text, schedule_text
from aot.codegen.ir.program import Bind, Call, DataDependentSize, Let, Program
from aot.codegen.ir.rename_sizes import renamed
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import Work
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.ir.graph import Graph
from aot.lowering.ir.steps import BranchControl, LoopControl, Repeat, Step, Steps
from aot.lowering.program.addresses import Addresses
from aot.lowering.program.arena import plan
from aot.lowering.program.constant_places import Constants, Weights
from aot.lowering.program.denormal_counts import DenormalCounts
from aot.lowering.program.flow import Flow
from aot.lowering.program.interface_tensors import input_tensors, output_tensors
from aot.lowering.program.kernel_sources import KernelSources, Pick, kernel_works

Progress = Callable[[int, int], None]
OnKernel = Callable[[Kernel, bool, float], object]


@dataclass(frozen=True, slots=True)
class Described:
    """A call as text: its definitions and schedules, with the model's names of sizes."""

    number: int
    kernel: str
    layers: tuple[str, ...]
    works: tuple[Work, ...]
    schedules: tuple[Schedule, ...]
    names: dict[Var, Var]

    def __str__(self) -> str:
        lines = [f"call {self.number} {self.kernel}: {' + '.join(self.layers)}"]
        for n, w in enumerate(renamed(self.works, self.names)):
            if isinstance(w, Definition | Group):
                lines += [definition_text(w, 1), schedule_text(self.schedules[n], 2)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Use:
    """A call and its kernel. `values`: names of the values that are the kernel's parameters, in order.

    `offsets`: elements of each value before the part that is the parameter; `packed`: parameters whose values are
    packed; `sizes`: the program's names of the kernel's sizes.
    """

    call: Call
    kernel: Kernel
    values: tuple[str, ...]
    offsets: tuple[int, ...]
    packed: frozenset[str]
    sizes: dict[Var, Var]


class ProgramBuilder:
    """Builds the program step by step; `text` collects the choices, for dumps."""

    def __init__(
        self,
        graph: Graph,
        steps: Steps,
        target: Target,
        pick: Pick = choose,
        *,
        weights: Weights | None = None,
        kernels: dict[Kernel, str] | None = None,
        on_kernel: OnKernel | None = None,
    ) -> None:
        """`weights`: the weights of all programs of a library; `kernels`: names of the kernels of all versions.

        `on_kernel` gets each new kernel, whether its first call flushes denormal numbers, and the share of the steps so
        far.
        """
        steps = replace(steps, sizes=steps.sizes.copy())  # a program names more of them
        self.graph, self.steps, self.target = graph, steps, target
        self.constants = Constants(weights if weights is not None else Weights())
        self.kernels = kernels if kernels is not None else {}
        self.calls: list[Call] = []
        self.uses: list[Use] = []
        self.text: list[object] = []  # lines, or objects whose text they are: few compilations are dumped
        self.flow = Flow(self.calls, self.text, steps.sizes)
        self._sources = KernelSources(steps, target, pick)
        self._addresses = Addresses(steps, plan(steps), self.constants)
        self._denormals = DenormalCounts(steps.values)
        self._on_kernel, self._done = on_kernel, 0
        self._figures: dict[tuple[Expr, frozenset[tuple[Var, Var]]], Expr] = {}

    def build(self, progress: Progress | None = None) -> Program:
        self._sources.find_shared()
        for done, step in enumerate(self.steps.steps, 1):
            self._done = done
            self._step(step)
            if progress is not None:
                progress(done, len(self.steps.steps))
        kernels = tuple(k.named(n) for k, n in self.kernels.items())
        inputs = input_tensors(self.graph, self.constants)
        outputs = output_tensors(self.graph, self.steps.sizes)
        state = self.steps.sizes.most(self.steps.state_bytes)
        late = self._late()
        return Program(
            self.steps.name,
            self.steps.symbols,
            kernels,
            tuple(self.calls),
            self.constants.blocks,
            self.constants.weights.size,
            self._addresses.arena.size,
            inputs,
            outputs,
            computed=self._computed(late),
            rules=tuple(dict.fromkeys(self.steps.rules)),
            state_bytes=state,
            variables=self.steps.variables,
            control=tuple(self.flow.control),
            late=late,
            denormals=self._denormals.total,
            in_floats=self._in_floats(),
        )

    def _in_floats(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the layers of all blocks that keep products in f32, by the reason."""
        buffers: dict[str, dict[str, None]] = {}
        for block in self.steps.blocks():
            for why, layers in block.in_floats.items():
                buffers.setdefault(why, {}).update(dict.fromkeys(layers))
        return tuple((why, tuple(layers)) for why, layers in buffers.items())

    def _late(self) -> tuple[DataDependentSize, ...]:
        """Return the symbols that the program sets, with the capacities that memory is laid out for."""
        used = {c.symbol for c in self.flow.control if isinstance(c, Bind | Let)}
        late = {s: c for s, c in self.steps.sizes.late.items() if s in used}
        first = self.steps.sizes.first_capacity(scarce=self.target.platform.scarce_memory)
        return tuple(DataDependentSize(s, c, 0 if c is None else first) for s, c in late.items())

    def _computed(self, late: tuple[DataDependentSize, ...]) -> tuple[tuple[Var, Expr], ...]:
        """Return the named sizes, with their expressions, if `late` has all their late symbols."""
        sizes, symbols = self.steps.sizes, {x.symbol for x in late}
        return tuple((s, m) for s, m in sizes.meaning.items() if sizes.late_of(m) <= symbols)

    def _bind(self, step: Step) -> None:
        for symbol, load in step.binds.items():
            b = load.buffer
            at: Size = b.origin
            for i, stride in zip(load.index, b.strides, strict=True):
                at = at + i * stride
            address = self._addresses.of(b.name)
            offset = self.steps.sizes.of(address.offset + at * b.dtype.stored_bytes)
            self.flow.bind(symbol, replace(address, offset=offset), b.dtype)

    def _step(self, step: Step) -> None:
        self._bind(step)
        self.flow.check(step.checks)
        match step.control:
            case BranchControl():
                self.flow.choice(step, step.control, self._block)
            case LoopControl():
                self.flow.cycle(step, step.control, self._block)
            case None if step.works:
                parts = kernel_works(step.works)
                uses = [self._call(step, part, step.schedule if part is parts[-1] else None) for part in parts]
                if step.repeat is not None:
                    self._repeat(uses, step.repeat)
            case None:
                pass

    def _block(self, block: Steps) -> None:
        for step in block.steps:
            self._step(step)

    def _repeat(self, uses: list[Use], repeat: Repeat) -> None:
        """Repeat the calls on the elements that follow in their buffers."""
        for n in range(1, repeat.count):
            for use in uses:
                sizes = (self.steps.values[name].buffer.dtype.stored_bytes for name in use.values)
                moves = (repeat.shifts.get(name, 0) * n * size for name, size in zip(use.values, sizes, strict=True))
                args = tuple(replace(a, offset=a.offset + m) for a, m in zip(use.call.args, moves, strict=True))
                self.calls.append(replace(use.call, args=args))

    def _call(self, step: Step, works: tuple[Work, ...], preset: Schedule | None) -> Use:
        """Add a call."""
        bound = self._sources.bind(works, preset)
        source, kernel = bound.source, bound.source.kernel
        values = tuple(bound.values[b.name] for b in kernel.buffers)
        offsets = tuple(bound.offsets.get(b.name, 0) for b in kernel.buffers)
        args = tuple(
            self._addresses.of(value, source.packs.get(b.name), offset * b.dtype.stored_bytes)
            for b, value, offset in zip(kernel.buffers, values, offsets, strict=True)
        )
        flush = source.flushes and not self._denormals.has_tiny_scalars(source.works, bound.values)
        if flush:
            self._denormals.count(values)
        name = self._name(step, kernel, flush)
        flops, traffic = (n if isinstance(n, int) else self._written(n, bound.sizes) for n in source.figures)
        call = Call(name, args, tuple(bound.sizes.values()), step.layers, flops, traffic, flush)
        self.calls.append(call)
        use = Use(call, kernel, values, offsets, frozenset(source.packs), bound.sizes)
        self.uses.append(use)
        self.text.append(Described(len(self.calls) - 1, name, step.layers, source.works, source.schedules, bound.sizes))
        return use

    def _written(self, figure: Expr, sizes: Mapping[Var, Var]) -> Expr:
        """Write a figure of a kernel over the program's sizes; equal layers have one of these."""
        key = figure, frozenset((v, sizes[v]) for v in variables(figure) if v in sizes)
        if key not in self._figures:
            self._figures[key] = rewrite(figure, {**sizes})
        return self._figures[key]

    def _name(self, step: Step, kernel: Kernel, flush: bool) -> str:
        """Return the name of a kernel; a new one is named after the first step that calls it."""
        name = self.kernels.get(kernel)
        if name is None:
            label = re.sub(r"\W+", "_", step.kind).lower()[:40]
            name = f"k{len(self.kernels)}_{label}"
            self.kernels[kernel] = name
            if self._on_kernel is not None:
                self._on_kernel(kernel, flush, self._done / len(self.steps.steps))
        return name
