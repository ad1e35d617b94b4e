"""Steps -> program: a schedule for each work, a kernel from both, equal kernels once, addresses for all buffers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import buffer_bytes, volume
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Expr, Kernel, Size, Var, dense
from aot.codegen.ir.numbers.denormals import denormals, flushes
from aot.codegen.ir.printer import definition_text, schedule_text
from aot.codegen.ir.program import Address, Bind, Call, DataDependentSize, Let, MemoryRegion, Program, Tensor
from aot.codegen.ir.rename_sizes import renamed
from aot.codegen.ir.schedule import Pack, Schedule
from aot.codegen.ir.traverse import Work, reads, writes
from aot.codegen.nest.cached_kernel import facts_of
from aot.codegen.nest.halo_fill import stores_one_value
from aot.codegen.nest.nest import Apply, apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.ir.graph import Graph, Node
from aot.ir.values.deferred import is_normal, release, value_of
from aot.lowering.ir.steps import BranchControl, LoopControl, Repeat, Step, Steps, Value, sizes_of
from aot.lowering.program.arena import Plan, plan
from aot.lowering.program.constant_places import Constants, Weights
from aot.lowering.program.flow import Flow
from aot.lowering.program.kernel_parameters import (
    all_packs,
    at_origins,
    canonical,
    cost,
    parameters,
    reads_later_part,
    separated,
    with_roles,
)
from aot.lowering.program.shared_tables import gathered_rows, with_tables
from aot.runtime.errors import UsageError

MANY_CALLS = 16  # from which on works that differ in the parts of values that they read share a kernel
Progress = Callable[[int, int], None]
OnKernel = Callable[[Kernel, bool, float], object]
Pick = Callable[[Definition | Group, Target, frozenset[str]], Schedule]


def result_names(result: Node) -> tuple[str, ...]:
    """Return the names of an output of the network."""
    return tuple(dict.fromkeys((*result.out_port(0).names, *result.source(0).names)))


def result_name(result: Node) -> str:
    """Return the first of `result_names`; without any, the node's name."""
    return next(iter(result_names(result)), result.name)


_Key = tuple[tuple[Work, ...], tuple[Schedule, ...], frozenset[str], tuple[Var, ...]]


@dataclass(frozen=True, slots=True)
class _KernelSource:
    """A kernel with its works and schedules.

    `stands_for`: the roles of constants by the parameters that read them; `figures`: units, operations, bytes;
    `flushes`: denormal numbers count as zero.
    """

    works: tuple[Work, ...]
    schedules: tuple[Schedule, ...]
    kernel: Kernel
    packs: dict[str, Pack]
    stands_for: dict[str, str]
    figures: tuple[Size, Size, Size]
    flushes: bool


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
        apply: Apply = apply,
        on_kernel: OnKernel | None = None,
    ) -> None:
        """`weights`: the weights of all programs of a library; `kernels`: names of the kernels of all versions.

        `on_kernel` gets each new kernel, whether its first call flushes denormal numbers, and the share of the steps so
        far.
        """
        steps = replace(steps, sizes=steps.sizes.copy())  # a program names more of them
        self.graph, self.steps, self.target, self.pick = graph, steps, target, pick
        self.constants = Constants(weights if weights is not None else Weights())
        self.kernels = kernels if kernels is not None else {}
        self.apply, self._on_kernel, self._done = apply, on_kernel, 0
        self.flushed: dict[str, int] = {}  # denormal elements of constants that count as zero
        self.names: set[str] = set()
        self._places: dict[Var, int] = {}  # of all sizes, in the order of `known`
        self.calls: list[Call] = []
        self.uses: list[Use] = []
        self.text: list[object] = []  # lines, or objects whose text they are: few compilations are dumped
        self._made: dict[_Key, _KernelSource] = {}
        self._tables: dict[str, Pack] = {}
        self._repeated = frozenset[tuple[Work, ...]]()
        self.flow = Flow(self.calls, self.text, steps.sizes)
        self.program = Program(self.steps.name, (), (), (), (), 0, 0, (), ())
        fixed = (v.buffer for v in steps.values.values() if v.region is MemoryRegion.CONSTANT)
        self.weights_bytes = sum(buffer_bytes(b) for b in fixed)

    def build(self, progress: Progress | None = None) -> Program:
        arena = plan(self.steps)
        self._tables = self._packed_tables()
        self._repeated = self._repeated_works()
        for done, step in enumerate(self.steps.steps, 1):
            self._done = done
            self._step(step, arena)
            if progress is not None:
                progress(done, len(self.steps.steps))
        kernels = tuple(k.named(n) for k, n in self.kernels.items())
        inputs = self._tensors(MemoryRegion.INPUT)  # their defaults are constants, too
        outputs = self._tensors(MemoryRegion.OUTPUT)
        state = self.steps.sizes.most(self.steps.state_bytes)
        late = self._late()
        self.program = Program(
            self.steps.name,
            self.steps.symbols,
            kernels,
            tuple(self.calls),
            self.constants.blocks,
            self.constants.weights.size,
            arena.size,
            inputs,
            outputs,
            computed=self._computed(late),
            rules=tuple(dict.fromkeys(self.steps.rules)),
            state_bytes=state,
            variables=self.steps.variables,
            control=tuple(self.flow.control),
            late=late,
            denormals=sum(self.flushed.values()),
            in_floats=self._in_floats(),
        )
        return self.program

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

    def _bind(self, step: Step, arena: Plan) -> None:
        for symbol, load in step.binds.items():
            b = load.buffer
            at: Size = b.origin
            for i, stride in zip(load.index, b.strides, strict=True):
                at = at + i * stride
            address = self._place(b.name, None, arena)
            offset = self.steps.sizes.of(address.offset + at * b.dtype.stored_bytes)
            self.flow.bind(symbol, replace(address, offset=offset), b.dtype)

    def _step(self, step: Step, arena: Plan) -> None:
        self._bind(step, arena)
        self.flow.check(step.checks)
        match step.control:
            case BranchControl():
                self.flow.choice(step, step.control, lambda block: self._block(block, arena))
            case LoopControl():
                self.flow.cycle(step, step.control, lambda block: self._block(block, arena))
            case None if step.works:
                parts = _kernel_works(step.works)
                calls = [self._call(step, part, arena, step.schedule if part is parts[-1] else None) for part in parts]
                if step.repeat is not None:
                    self._repeat(calls, step.repeat)
            case None:
                pass

    def _block(self, block: Steps, arena: Plan) -> None:
        for step in block.steps:
            self._step(step, arena)

    def _tensors(self, region: MemoryRegion) -> tuple[Tensor, ...]:
        if region is MemoryRegion.INPUT:
            strings = self.graph.strings
            return tuple(
                Tensor(
                    n.name,
                    n.out_port(0).names,
                    n.out_port(0).type.dtype,
                    n.out_port(0).shape,
                    string=strings.get(n.id, ""),
                    default=self._default(n),
                )
                for n in self.graph.parameters
            )
        tensors: list[Tensor] = []
        for node in self.graph.results:
            port = node.source(0)
            sizes = self.steps.sizes
            most = sizes.most(sizes.of(volume(port.shape))) if any(map(sizes.is_late, port.shape)) else None
            string = self.graph.strings.get(node.id, "")
            name, names = result_name(node), result_names(node)
            tensors.append(Tensor(name, names, port.type.dtype, port.shape, most, string))
        return tuple(tensors)

    def _default(self, node: Node) -> int | None:
        """Return the offset in the weights of an optional input's default value."""
        data = self.graph.defaults.get(node.id)
        if data is None:
            return None
        type_ = node.out_port(0).type
        if type_.dims != data.shape:
            shape = list(data.shape)
            raise UsageError(f"feed: {node.name!r} keeps the shape of the constant, {shape}, got {type_}")
        buffer = dense(f"{node.name}.default", *data.shape, dtype=type_.dtype)
        return self.constants.add(Value(buffer, MemoryRegion.CONSTANT, data=data), None)

    def _repeat(self, calls: list[tuple[Call, tuple[str, ...]]], repeat: Repeat) -> None:
        """Repeat the calls on the elements that follow in their buffers."""
        for n in range(1, repeat.count):
            for call, names in calls:
                sizes = (self.steps.values[name].buffer.dtype.stored_bytes for name in names)
                moves = (repeat.shifts.get(name, 0) * n * size for name, size in zip(names, sizes, strict=True))
                args = tuple(replace(a, offset=a.offset + m) for a, m in zip(call.args, moves, strict=True))
                self.calls.append(replace(call, args=args))

    def _call(
        self, step: Step, works: tuple[Work, ...], arena: Plan, schedule: Schedule | None
    ) -> tuple[Call, tuple[str, ...]]:
        """Add a call; returns it with the names of the values it is given."""
        works, roles, constants, back, sizes = self._canonical(works, schedule)
        schedules = self._schedules(works, roles, constants, schedule)
        tables = {role: self._tables[name] for name, role in roles.items() if name in self._tables}
        if tables:
            scheduled = (w for w in works if isinstance(w, Definition | Group))
            schedules = tuple(with_tables(w, s, tables) for w, s in zip(scheduled, schedules, strict=True))
        works, offsets = self._at_origins(works, schedules)
        source = self._kernel(works, tuple(map(self._fetching, schedules)), constants, tuple(back))
        values = {role: name for name, role in roles.items()}
        values |= {fresh: values[role] for fresh, role in source.stands_for.items()}
        known = self.kernels.get(source.kernel)
        name = known or self._name(step, source.kernel)
        addresses = [self._place(values[b.name], source.packs.get(b.name), arena) for b in source.kernel.buffers]
        elements = [offsets.get(b.name, 0) for b in source.kernel.buffers]
        args = tuple(
            replace(address, offset=address.offset + n * b.dtype.stored_bytes) if n else address
            for address, n, b in zip(addresses, elements, source.kernel.buffers, strict=True)
        )
        unit, flops, traffic = (n if isinstance(n, int) else rewrite(n, {**back}) for n in source.figures)
        flush = source.flushes and not self._has_tiny_scalars(source.works, values)
        if flush:
            self._count_denormals(values[b.name] for b in source.kernel.buffers)
        if known is None and self._on_kernel is not None:
            self._on_kernel(source.kernel, flush, self._done / len(self.steps.steps))
        call = Call(name, args, sizes, unit, step.layers, flops, traffic, flush)
        self.calls.append(call)
        passed = tuple(values[b.name] for b in source.kernel.buffers)
        self.uses.append(Use(call, source.kernel, passed, tuple(elements), frozenset(source.packs), back))
        self.text.append(Described(len(self.calls) - 1, name, step.layers, source.works, source.schedules, back))
        return call, passed

    def _canonical(
        self, works: tuple[Work, ...], preset: Schedule | None
    ) -> tuple[tuple[Work, ...], dict[str, str], frozenset[str], dict[Var, Var], tuple[Var, ...]]:
        """Return works in which equal kernels are equal, roles by name, constants, old by new sizes, and sizes."""
        sizes = self._sizes(works)
        names = {s: replace(s, name=f"size{k}") for k, s in enumerate(sizes)}
        back: dict[Var, Var] = {new: old for old, new in names.items()}
        works, roles = canonical(works, self.steps, number_temps=preset is None)
        constants = frozenset(r for n, r in roles.items() if self.steps.values[n].region is MemoryRegion.CONSTANT)
        return renamed(works, names), roles, constants, back, sizes

    def _schedules(
        self, works: tuple[Work, ...], roles: dict[str, str], constants: frozenset[str], given: Schedule | None
    ) -> tuple[Schedule, ...]:
        chosen, several = works if given is None else works[:-1], len(works) > 1
        schedules = tuple(self._schedule(w, constants, several) for w in chosen if isinstance(w, Definition | Group))
        return schedules if given is None else (*schedules, with_roles(given, roles))

    def _at_origins(
        self, works: tuple[Work, ...], schedules: tuple[Schedule, ...]
    ) -> tuple[tuple[Work, ...], dict[str, int]]:
        """Move parts of outputs to the first element; parts of inputs, too, if other works are then equal."""
        if self._repeated:
            moved_works = _inputs_at_origins(works, schedules)
            if moved_works[0] in self._repeated:
                return moved_works
        return at_origins(works)

    def _repeated_works(self) -> frozenset[tuple[Work, ...]]:
        """Return the works that many calls have in common once the parts that they read begin at the first element."""
        reading = [(part, given) for part, given in self._parts() if reads_later_part(part)]
        if len(reading) < MANY_CALLS:
            return frozenset()
        counter = Counter[tuple[Work, ...]]()
        for part, given in reading:
            works, roles, constants, _, _ = self._canonical(part, given)
            schedules = self._schedules(works, roles, constants, given)
            counter[_inputs_at_origins(works, schedules)[0]] += 1
        return frozenset(works for works, calls in counter.items() if calls >= MANY_CALLS)

    def _parts(self) -> list[tuple[tuple[Work, ...], Schedule | None]]:
        """Return the works of each kernel's call, with the schedule that a pass gave them."""
        return [
            (part, step.schedule if part is last else None)
            for block in self.steps.blocks()
            for step in block.steps
            for last, part in ((p[-1], q) for p in [_kernel_works(step.works)] if p for q in p)
        ]

    def _packed_tables(self) -> dict[str, Pack]:
        """Return the packing of constants that are also gathered by rows, so that the library stores them once."""
        parts = self._parts()
        gathered = {name for part, _ in parts for work in part for name in gathered_rows(work)}
        fixed = {n for n in gathered if self.steps.values[n].region is MemoryRegion.CONSTANT}
        packed_tables: dict[str, Pack] = {}
        for part, given in parts:
            shared = fixed & {x.buffer.name for w in part for x in reads(w)} - {
                n for w in part for n in gathered_rows(w)
            }
            if not shared:
                continue
            works, roles, constants, _, _ = self._canonical(part, given)
            packs = {p.operand: p for s in self._schedules(works, roles, constants, given) for p in all_packs(s)}
            packed_tables |= {name: packs[roles[name]] for name in shared if roles[name] in packs}
        return packed_tables

    def _sizes(self, works: tuple[Work, ...]) -> tuple[Var, ...]:
        """Return the symbols that the kernel reads, in the program's order."""
        symbols = [v for v in frozenset[Var]().union(*map(sizes_of, works)) if self.steps.is_known(v)]
        if not all(v in self._places for v in symbols):  # more sizes have been named
            self._places = {v: n for n, v in reversed(list(enumerate(self.steps.known())))}
        return tuple(sorted(symbols, key=lambda v: self._places[v]))

    def _kernel(
        self,
        works: tuple[Work, ...],
        schedules: tuple[Schedule, ...],
        constants: frozenset[str],
        sizes: tuple[Var, ...],
    ) -> _KernelSource:
        """Return the kernel of works with these schedules; repeated layers share one."""
        key = (works, schedules, constants, sizes)
        if key not in self._made:
            stands_for = {name: name for name in constants}
            works, schedules, packs = separated(works, schedules, constants, stands_for)
            params = parameters(works)
            if isinstance(works[0], tuple):
                kernel = Kernel("", sizes, params, works[0])
            else:
                plain = tuple(w for w in works if isinstance(w, Definition | Group))
                kernel = self.apply("", plain, schedules, params, sizes)
            figures = (facts_of(kernel).units, *cost(works))
            flush = flushes(works, self.target)
            self._made[key] = _KernelSource(works, schedules, kernel, packs, stands_for, figures, flush)
        return self._made[key]

    def _has_tiny_scalars(self, works: tuple[Work, ...], names: dict[str, str]) -> bool:
        """True if a constant of one element is denormal: log(x + 1e-45) means it."""
        scalars = {names[x.buffer.name] for w in works for x in reads(w) if x.buffer.name in names}
        values = (self.steps.values[n] for n in scalars if self.steps.values[n].region is MemoryRegion.CONSTANT)
        data = (v.array for v in values if v.data is not None and v.data.size == 1)
        return any(d is not None and denormals(d) for d in data)

    def _count_denormals(self, names: Iterable[str]) -> None:
        for name in names:
            value = self.steps.values[name]
            counted = (
                name in self.flushed or value.region is not MemoryRegion.CONSTANT or not value.buffer.dtype.is_float
            )
            if not counted and value.data is not None:
                self.flushed[name] = 0 if is_normal(value.data) else denormals(value_of(value.data))
                release(value.data)

    def _schedule(self, work: Definition | Group, constants: frozenset[str], together: bool) -> Schedule:
        """Choose a work's schedule.

        A border beside other work is one unit, since more would crowd out those that take time.
        """
        schedule = self.pick(work, self.target, constants)
        return replace(schedule, parallel=None) if together and stores_one_value(work) else schedule

    def _fetching(self, s: Schedule) -> Schedule:
        """Drop streaming prefetches where the weights exceed half of L3: from memory they arrive later with them."""
        if s.prefetch_within is None or self.weights_bytes <= self.target.l3 // 2:
            return s
        return replace(s, prefetch=None, prefetch_within=None)

    def _name(self, step: Step, kernel: Kernel) -> str:
        label = re.sub(r"\W+", "_", step.kind).lower()[:40]
        name = f"k{len(self.kernels)}_{label}"
        self.kernels[kernel] = name
        return name

    def _place(self, name: str, packed: Pack | None, arena: Plan) -> Address:
        value = self.steps.values[name]
        match value.region:
            case MemoryRegion.ARENA | MemoryRegion.SHARED:
                return Address(MemoryRegion.ARENA, 0, arena.offsets[name])
            case MemoryRegion.STATE:
                return Address(MemoryRegion.STATE, 0, self.steps.sizes.of(value.at))
            case MemoryRegion.CONSTANT:
                return Address(MemoryRegion.CONSTANT, 0, self.constants.add(value, packed))
            case _:
                return Address(value.region, value.index)


def _inputs_at_origins(
    works: tuple[Work, ...], schedules: tuple[Schedule, ...]
) -> tuple[tuple[Work, ...], dict[str, int]]:
    """Move parts of outputs, and of inputs that no schedule packs, to the first element."""
    packed = {p.operand for s in schedules for p in all_packs(s)}
    return at_origins(works, frozenset(x.buffer.name for w in works for x in reads(w)) - packed)


def _kernel_works(works: tuple[Work, ...]) -> list[tuple[Work, ...]]:
    """Return the works of each kernel: halo fills run with the definition of their value, statements alone."""
    kernel_works: list[tuple[Work, ...]] = []
    for work in works:
        if (
            kernel_works
            and isinstance(work, Definition | Group)
            and all(isinstance(w, Definition | Group) for w in kernel_works[-1])
        ):
            before = {b.name for w in kernel_works[-1] for b in writes(w)}
            if not before & {x.buffer.name for x in reads(work)}:
                kernel_works[-1] = (*kernel_works[-1], work)
                continue
        kernel_works.append((work,))
    return kernel_works
