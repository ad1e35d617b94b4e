"""Works -> kernels: schedules are chosen, and works that are equal but for names share a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import buffer_bytes
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Kernel, Size, Var
from aot.codegen.ir.numbers.denormals import flushes
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.rename_sizes import renamed
from aot.codegen.ir.schedule import Pack, Schedule
from aot.codegen.ir.traverse import Work, reads, writes
from aot.codegen.nest.halo_fill import stores_one_value
from aot.codegen.nest.scheduled_kernel import ScheduledKernel, ScheduledWorks
from aot.codegen.target import Target
from aot.lowering.ir.steps import Steps, sizes_of
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

MANY_CALLS = 16  # from which on works that differ in the parts of values that they read share a kernel
Pick = Callable[[Definition | Group, Target, frozenset[str]], Schedule]
_Key = tuple[tuple[Work, ...], tuple[Schedule, ...], frozenset[str], tuple[Var, ...]]
_FormKey = tuple[tuple[Work, ...], Schedule | None, frozenset[str], tuple[Var, ...]]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel with its works and schedules.

    `stands_for`: the roles of constants by the parameters that read them; `figures`: operations, bytes;
    `flushes`: denormal numbers count as zero.
    """

    works: tuple[Work, ...]
    schedules: tuple[Schedule, ...]
    kernel: Kernel
    packs: dict[str, Pack]
    stands_for: dict[str, str]
    figures: tuple[Size, Size]
    flushes: bool


@dataclass(slots=True, eq=False)
class KernelForm:
    """The works of a kernel, in a form in which equal kernels are equal: what is found out of it serves all of them.

    `preset`: the schedule that a pass gave the last work; `constants`: parameters that are constants; `sizes`: the
    kernel's; `gathered`: parameters that a work reads by rows alone. `schedules`, and `kernel`, the kernel with the
    elements before the part of each parameter, are found when they are first asked for.
    """

    works: tuple[Work, ...]
    preset: Schedule | None
    constants: frozenset[str]
    sizes: tuple[Var, ...]
    gathered: frozenset[str]
    schedules: tuple[Schedule, ...] | None = None
    kernel: tuple[KernelSource, dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class CanonicalWorks:
    """A call: its form, the parameters by the names of values, and the program's sizes by those of the form."""

    form: KernelForm
    roles: dict[str, str]
    sizes: dict[Var, Var]


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel and the values that it runs on. `values`: their names by the kernel's parameters.

    `offsets`: elements of a value before the part that is the parameter; `sizes`: the program's sizes by those of the
    kernel.
    """

    source: KernelSource
    values: dict[str, str]
    offsets: dict[str, int]
    sizes: dict[Var, Var]


class KernelSources:
    """The kernels of a program, each made once."""

    def __init__(self, steps: Steps, target: Target, pick: Pick) -> None:
        self.steps, self.target, self.pick = steps, target, pick
        self._places: dict[Var, int] = {}  # of all sizes, in the order of `known`
        self._sources: dict[_Key, KernelSource] = {}
        self._renamed: dict[tuple[tuple[Work, ...], tuple[Var, ...]], tuple[Work, ...]] = {}
        fixed = (v.buffer for v in steps.values.values() if v.region is MemoryRegion.CONSTANT)
        self._weights_bytes = sum(buffer_bytes(b) for b in fixed)
        self._tables: dict[str, Pack] = {}
        self._repeated = frozenset[tuple[Work, ...]]()
        self._forms: dict[_FormKey, KernelForm] = {}
        self._canonical_works: dict[tuple[object, ...], CanonicalWorks] = {}

    def find_shared(self) -> None:
        """Find the tables that products and gathers share, and the kernels that many calls can share."""
        calls = [self._canonical(part, preset) for part, preset in self._parts()]
        self._tables = self._packed_tables(calls)
        self._repeated = self._repeated_works(calls)

    def bind(self, works: tuple[Work, ...], preset: Schedule | None) -> BoundKernel:
        """Return the kernel of works. `preset`: the schedule that a pass gave the last one."""
        call = self._canonical(works, preset)
        tables = {role: self._tables[name] for name, role in call.roles.items() if name in self._tables}
        if tables:
            source, offsets = self._made(call.form, tables)
        else:
            source, offsets = call.form.kernel = call.form.kernel or self._made(call.form, {})
        values = {role: name for name, role in call.roles.items()}
        values |= {fresh: values[role] for fresh, role in source.stands_for.items()}
        return BoundKernel(source, values, offsets, call.sizes)

    def _made(self, form: KernelForm, tables: dict[str, Pack]) -> tuple[KernelSource, dict[str, int]]:
        """Return the kernel of a form, which gathers rows of `tables`, and the elements before parts of parameters."""
        schedules = self._schedules(form)
        if tables:
            scheduled = (w for w in form.works if isinstance(w, Definition | Group))
            schedules = tuple(with_tables(w, s, tables) for w, s in zip(scheduled, schedules, strict=True))
        works, offsets = self._at_origins(form.works, schedules)
        return self._source(works, tuple(map(self._fetching, schedules)), form.constants, form.sizes), offsets

    def _canonical(self, works: tuple[Work, ...], preset: Schedule | None) -> CanonicalWorks:
        """Return works in canonical form; equal works share it."""
        read = self._sizes(works)  # more may be known than when the call was last seen
        key = (*map(id, works), id(preset), read)  # of works and schedules that the steps hold
        known = self._canonical_works.get(key)
        if known is None:
            names = {s: replace(s, name=f"size{k}") for k, s in enumerate(read)}
            named, roles = canonical(works, self.steps, number_temps=preset is None)
            if (named, tuple(names)) not in self._renamed:
                self._renamed[named, tuple(names)] = renamed(named, names)
            named, sizes = self._renamed[named, tuple(names)], {new: old for old, new in names.items()}
            constants = frozenset(r for n, r in roles.items() if self.steps.is_constant(n))
            form = self._form(named, None if preset is None else with_roles(preset, roles), constants, tuple(sizes))
            known = self._canonical_works[key] = CanonicalWorks(form, roles, sizes)
        return known

    def _form(
        self, works: tuple[Work, ...], preset: Schedule | None, constants: frozenset[str], sizes: tuple[Var, ...]
    ) -> KernelForm:
        key = (works, preset, constants, sizes)
        form = self._forms.get(key)
        if form is None:
            gathered = frozenset(role for w in works for role in gathered_rows(w))
            form = self._forms[key] = KernelForm(works, preset, constants, sizes, gathered)
        return form

    def _schedules(self, form: KernelForm) -> tuple[Schedule, ...]:
        """Return the schedules of a form's works."""
        if form.schedules is None:
            works, several = form.works if form.preset is None else form.works[:-1], len(form.works) > 1
            scheduled = (w for w in works if isinstance(w, Definition | Group))
            schedules = tuple(self._schedule(w, form.constants, several) for w in scheduled)
            form.schedules = schedules if form.preset is None else (*schedules, form.preset)
        return form.schedules

    def _at_origins(
        self, works: tuple[Work, ...], schedules: tuple[Schedule, ...]
    ) -> tuple[tuple[Work, ...], dict[str, int]]:
        """Move parts of outputs to the first element; parts of inputs, too, if other works are then equal."""
        if self._repeated:
            moved_works = _inputs_at_origins(works, schedules)
            if moved_works[0] in self._repeated:
                return moved_works
        return at_origins(works)

    def _repeated_works(self, calls: list[CanonicalWorks]) -> frozenset[tuple[Work, ...]]:
        """Return the works that many calls have in common once the parts that they read begin at the first element."""
        reading = [form for form in self._forms.values() if reads_later_part(form.works)]
        times = Counter(id(call.form) for call in calls)
        if sum(times[id(form)] for form in reading) < MANY_CALLS:
            return frozenset()
        counter = Counter[tuple[Work, ...]]()
        for form in reading:
            counter[_inputs_at_origins(form.works, self._schedules(form))[0]] += times[id(form)]
        return frozenset(works for works, calls in counter.items() if calls >= MANY_CALLS)

    def _parts(self) -> list[tuple[tuple[Work, ...], Schedule | None]]:
        """Return the works of each kernel's call, with the schedule that a pass gave them."""
        return [
            (part, step.schedule if part is last else None)
            for block in self.steps.blocks()
            for step in block.steps
            for last, part in ((p[-1], q) for p in [kernel_works(step.works)] if p for q in p)
        ]

    def _packed_tables(self, calls: list[CanonicalWorks]) -> dict[str, Pack]:
        """Return the packing of constants that are also gathered by rows, so that the library stores them once."""
        gathering = [call for call in calls if call.form.gathered & call.form.constants]
        fixed = {
            n for call in gathering for n, r in call.roles.items() if r in call.form.gathered & call.form.constants
        }
        packed_tables: dict[str, Pack] = {}
        for call in calls if fixed else ():
            shared = [role for name, role in call.roles.items() if name in fixed and role not in call.form.gathered]
            if not shared:
                continue
            packs = {p.operand: p for s in self._schedules(call.form) for p in all_packs(s)}
            packed_tables |= {n: packs[r] for n, r in call.roles.items() if r in shared and r in packs}
        return packed_tables

    def _sizes(self, works: tuple[Work, ...]) -> tuple[Var, ...]:
        """Return the symbols that the kernel reads, in the program's order."""
        if not self.steps.has_symbols:
            return ()
        symbols = [v for v in frozenset[Var]().union(*map(sizes_of, works)) if self.steps.is_known(v)]
        if not all(v in self._places for v in symbols):  # more sizes have been named
            self._places = {v: n for n, v in reversed(list(enumerate(self.steps.known())))}
        return tuple(sorted(symbols, key=lambda v: self._places[v]))

    def _source(
        self,
        works: tuple[Work, ...],
        schedules: tuple[Schedule, ...],
        constants: frozenset[str],
        sizes: tuple[Var, ...],
    ) -> KernelSource:
        """Return the kernel of works with these schedules; repeated layers share one."""
        key = (works, schedules, constants, sizes)
        if key not in self._sources:
            stands_for = {name: name for name in constants}
            works, schedules, packs = separated(works, schedules, constants, stands_for)
            params = parameters(works)
            if isinstance(works[0], tuple):
                kernel = Kernel("", sizes, params, works[0])
            else:
                definitions = tuple(w for w in works if isinstance(w, Definition | Group))
                kernel = ScheduledKernel("", ScheduledWorks(definitions, schedules, params, sizes))
            flush = flushes(works, self.target)
            self._sources[key] = KernelSource(works, schedules, kernel, packs, stands_for, cost(works), flush)
        return self._sources[key]

    def _schedule(self, work: Definition | Group, constants: frozenset[str], together: bool) -> Schedule:
        """Choose a work's schedule.

        A border beside other work is one unit, since more would crowd out those that take time.
        """
        schedule = self.pick(work, self.target, constants)
        return replace(schedule, parallel=None) if together and stores_one_value(work) else schedule

    def _fetching(self, s: Schedule) -> Schedule:
        """Drop streaming prefetches where the weights exceed half of L3: from memory they arrive later with them."""
        if s.prefetch_within is None or self._weights_bytes <= self.target.l3 // 2:
            return s
        return replace(s, prefetch=None, prefetch_within=None)


def _inputs_at_origins(
    works: tuple[Work, ...], schedules: tuple[Schedule, ...]
) -> tuple[tuple[Work, ...], dict[str, int]]:
    """Move parts of outputs, and of inputs that no schedule packs, to the first element."""
    packed = {p.operand for s in schedules for p in all_packs(s)}
    return at_origins(works, frozenset(x.buffer.name for w in works for x in reads(w)) - packed)


def kernel_works(works: tuple[Work, ...]) -> list[tuple[Work, ...]]:
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
