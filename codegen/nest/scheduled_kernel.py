"""Kernels that are known by their works and schedules: their loops are made when they are first read.

Programs are made, and kernels are compared, without loops. The process that writes a kernel's text makes them, and if
the code is kept, none does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.digest import digest
from aot.codegen.ir.loops import Buffer, Kernel, Prefetch, Size, Stmt, Var
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import has_prefetch, uses_tiles
from aot.codegen.nest.nest import Works, apply, kernel_buffers, units


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts about a kernel's loops that its calls need.

    `units`: iterations of all parallel loops together, over the kernel's sizes. `tiles`: loops use tile registers.
    `one_way`: loops prefetch the next panel, so that they may not run backwards. `counting`: they prefetch in calls of
    some number of units or more.
    """

    units: Size
    tiles: bool
    one_way: bool
    counting: bool


@dataclass(frozen=True, slots=True)
class ScheduledWorks:
    """Works, a schedule for each, and the parameters and sizes of their kernel: what `apply` makes loops of."""

    works: Works
    schedules: tuple[Schedule, ...]
    parameters: tuple[Buffer, ...]
    sizes: tuple[Var, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The kernel's buffers: packed parameters have the shape of their panels."""
        return kernel_buffers(self.works, self.schedules, self.parameters)


class _Loops:
    """Loops and facts of a kernel, once they are known."""

    __slots__ = ("body", "facts")

    def __init__(self) -> None:
        self.body: tuple[Stmt, ...] | None = None
        self.facts: KernelFacts | None = None


class ScheduledKernel(Kernel):
    """A kernel known by its works and schedules. Kernels that differ in names alone share their loops."""

    __slots__ = ("_loops", "scheduled")

    def __init__(self, name: str, scheduled: ScheduledWorks) -> None:
        self._set(name, scheduled, scheduled.buffers, _Loops())

    def _set(self, name: str, scheduled: ScheduledWorks, buffers: tuple[Buffer, ...], loops: _Loops) -> None:
        for field, value in (("name", name), ("sizes", scheduled.sizes), ("buffers", buffers)):
            object.__setattr__(self, field, value)
        self.scheduled, self._loops = scheduled, loops

    def __getattr__(self, field: str) -> tuple[Stmt, ...]:
        """Return the loops, the only field that is not set."""
        if field != "body":
            raise AttributeError(field)
        if self._loops.body is None:
            s = self.scheduled
            self._loops.body = apply("", s.works, s.schedules, s.parameters, s.sizes).body
        return self._loops.body

    @property
    def facts(self) -> KernelFacts:
        """Return the facts about the loops."""
        if self._loops.facts is None:
            self._loops.facts = _facts(self.body, units(self))
        return self._loops.facts

    def set_facts(self, facts: KernelFacts) -> None:
        """Set the facts, which another process has found or a store has kept."""
        self._loops.facts = facts

    def named(self, name: str) -> ScheduledKernel:
        """Return the kernel with another name."""
        kernel = ScheduledKernel.__new__(ScheduledKernel)
        kernel._set(name, self.scheduled, self.buffers, self._loops)
        return kernel

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and its arguments for `pickle`: another process makes the loops."""
        return ScheduledKernel, (self.name, self.scheduled)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScheduledKernel) and (self.name, self.scheduled) == (other.name, other.scheduled)

    def __hash__(self) -> int:
        return hash((self.name, self.scheduled))


def facts_of(kernel: Kernel) -> KernelFacts:
    """Return the facts about a kernel's loops."""
    return kernel.facts if isinstance(kernel, ScheduledKernel) else _facts_of(kernel)


@lru_cache(maxsize=1 << 8)
def _facts_of(kernel: Kernel) -> KernelFacts:
    return _facts(kernel.body, units(kernel))


def _facts(body: tuple[Stmt, ...], unit_count: Size) -> KernelFacts:
    def is_one_way(p: Prefetch) -> bool:
        return not p.ahead

    def is_counting(p: Prefetch) -> bool:
        return p.least > 0

    one_way, counting = has_prefetch(body, is_one_way), has_prefetch(body, is_counting)
    return KernelFacts(unit_count, uses_tiles(body), one_way, counting)


def kernel_digest(kernel: Kernel) -> str:
    """Return the SHA-256 of a kernel but its name: of its works and schedules, or of its loops."""
    return digest(kernel.scheduled if isinstance(kernel, ScheduledKernel) else kernel.named(""))
