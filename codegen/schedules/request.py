"""The input and the result of schedule selection: a definition with its context; a schedule with reasons.

Makers are functions `Request -> ScheduleChoice`. Reasons are functions whose texts are made when `explain` reads them.
"""

from __future__ import annotations

from collections.abc import Callable

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import reads
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Var
from aot.codegen.ir.schedule import Schedule
from aot.codegen.target import Target
from aot.runtime.abi import DType

Reasons = tuple[Callable[[], str], ...]
ScheduleChoice = tuple[Schedule, Reasons]
Fused = tuple[tuple[str, tuple[str, ...]], ...]  # as in `Schedule.fuse`: a name, and the axes that it stands for


@dataclass(frozen=True, slots=True)
class Request:
    """A definition to schedule, for a target; buffers named in `constants` may be packed at compile time.

    `points`: axes of the groups around the definition, each a single point in it.
    """

    work: Definition
    target: Target
    constants: frozenset[str]
    points: frozenset[Var] = frozenset()

    @property
    def lanes(self) -> int:
        """Lanes of a vector of the widest type that the definition reads or writes."""
        return self.target.lanes(widest(self.work))


def widest(d: Definition) -> DType:
    """Return the widest compute type that a definition reads or writes."""
    return max((d.out.dtype.compute, *(x.buffer.dtype.compute for x in reads(d))), key=lambda t: t.bits)


def texts(reasons: Reasons) -> tuple[str, ...]:
    """Return the texts of reasons; one that repeats the last one is left out."""
    lines: list[str] = []
    for reason in reasons:
        if (text := reason()) not in lines[-1:]:
            lines.append(text)
    return tuple(lines)
