"""Parameters of a kernel: buffers by their roles, and a constant once for each of its packings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import all_axes, traffic, volume
from aot.codegen.ir.access import work as operations
from aot.codegen.ir.definition import Definition, Group, RowRange
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.index import bounds, exactly, normal
from aot.codegen.ir.loops import Buffer, Expr, Kernel, Load, Size, Space, Var
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.schedule import Pack, Schedule
from aot.codegen.ir.traverse import Work, members, move_loads, reads, rewrite_work, writes
from aot.codegen.nest.nest import apply
from aot.lowering.ir.steps import Steps


def all_packs(s: Schedule) -> tuple[Pack, ...]:
    """Return the packings of a schedule and of its members."""
    return (*s.pack, *(p for m in s.members for p in all_packs(m)))


def separated(
    works: tuple[Work, ...], schedules: tuple[Schedule, ...], constants: frozenset[str], names: dict[str, str]
) -> tuple[tuple[Work, ...], tuple[Schedule, ...], dict[str, Pack]]:
    """Give a constant one parameter for each packing that definitions read it in.

    Returns three things: the works, their schedules, and the packing of each packed parameter. `names`, the constants
    by parameter, is changed: each new parameter is added with its constant.
    """
    taken: dict[tuple[str, Pack | None], str] = {}

    def parameter(role: str, packing: Pack | None) -> str:
        if (role, packing) not in taken:
            first = all(known != role for known, _ in taken)
            fresh = role if first else f"w{sum(n[0] == 'w' for n in names)}"
            taken[role, packing] = fresh
            names[fresh] = names[role]
        return taken[role, packing]

    def split(work: Work, schedule: Schedule) -> tuple[Work, Schedule]:
        if isinstance(work, Group):
            pairs = [split(m, s) for m, s in zip(work.members, schedule.members, strict=True)]
            inner = tuple(m for m, _ in pairs if isinstance(m, Definition | Group))
            return replace(work, members=inner), replace(schedule, members=tuple(s for _, s in pairs))
        packings = {p.operand: p for p in schedule.pack}
        read = {x.buffer for x in reads(work) if x.buffer.name in constants}
        ordered = sorted(read, key=lambda b: b.name)
        renamed = {b.name: replace(b, name=parameter(b.name, packings.get(b.name))) for b in ordered}
        parameter_names = {name: b.name for name, b in renamed.items()}
        if all(name == b.name for name, b in renamed.items()):
            return work, schedule
        return rewrite_work(work, move_loads(renamed)), with_roles(schedule, parameter_names)

    scheduled = [w for w in works if isinstance(w, Definition | Group)]
    pairs = [split(w, s) for w, s in zip(scheduled, schedules, strict=True)]
    statements = tuple(w for w in works if isinstance(w, tuple))
    packings = {fresh: replace(packing, operand=fresh) for (_, packing), fresh in taken.items() if packing is not None}
    return (*(w for w, _ in pairs), *statements), tuple(s for _, s in pairs), packings


def standalone_kernel(work: Definition, schedule: Schedule, constants: frozenset[str]) -> Kernel:
    """Return the kernel of one work; its buffers have the names of their roles."""
    works, schedules, _ = separated((work,), (schedule,), constants, {name: name for name in constants})
    return apply("alone", tuple(w for w in works if isinstance(w, Definition | Group)), schedules, parameters(works))


def with_roles(s: Schedule, roles: dict[str, str]) -> Schedule:
    """Return a schedule with the roles of buffers in place of their names."""
    if not (s.pack or s.members) and s.prefetch is None:
        return s
    packs = tuple(replace(p, operand=roles.get(p.operand, p.operand)) for p in s.pack)
    ahead = roles.get(s.prefetch, s.prefetch) if s.prefetch is not None else None
    return replace(s, pack=packs, prefetch=ahead, members=tuple(with_roles(m, roles) for m in s.members))


def canonical(works: tuple[Work, ...], steps: Steps, *, number_temps: bool) -> tuple[tuple[Work, ...], dict[str, str]]:
    """Rename buffers by their roles, y0.. written, x0.. read, w0.. constants, so that equal kernels compare equal.

    `number_temps`: temporaries of groups, too. Returns the works, and the role of each buffer by its name.
    """
    roles: dict[str, str] = {}
    renamed: dict[str, Buffer] = {}
    outs = [b for w in works for b in writes(w)]
    ins = [x.buffer for w in works for x in reads(w)]
    counts = {"y": 0, "x": 0, "w": 0}
    for b in dict.fromkeys([*outs, *ins]):
        if b.name in roles:
            continue
        letter = "y" if b in outs else "w" if steps.values[b.name].region is MemoryRegion.CONSTANT else "x"
        roles[b.name] = f"{letter}{counts[letter]}"
        counts[letter] += 1
        renamed[b.name] = replace(b, name=roles[b.name])
    return tuple(_with_names(w, renamed, number_temps) for w in works), roles


def at_origins(
    works: tuple[Work, ...], inputs: frozenset[str] = frozenset()
) -> tuple[tuple[Work, ...], dict[str, int]]:
    """Make a part of an output that works write, as of a Concat, a buffer that begins at its first element.

    Works that differ only in the part that they write are then equal. `inputs`: buffers that are changed in the same
    way, if only a part of them is read. Returns the works, and the number of elements before each part.
    """
    parts = _parts(works, inputs)
    if not parts:
        return works, {}

    def moved(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer in parts:
            return Load(parts[e.buffer].buffer, parts[e.buffer].index(tuple(rewrite(i, moved) for i in e.index)))
        return None

    moved_works = tuple(_moved(w, parts) for w in works)
    if not inputs.isdisjoint(b.name for b in parts):
        moved_works = tuple(rewrite_work(w, moved) for w in moved_works)
    return moved_works, {b.name: part.elements for b, part in parts.items()}


def reads_later_part(works: tuple[Work, ...]) -> bool:
    """True if the works read only a part of some buffer, which does not begin at the first element."""
    parts = _parts(works, frozenset(x.buffer.name for w in works for x in reads(w)))
    written = {b for w in works for b in writes(w)}
    return any(part.elements for b, part in parts.items() if b not in written)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a buffer, as a buffer of its own. `begins`: its first indices; `elements`: how many precede it."""

    buffer: Buffer
    begins: tuple[int, ...]
    elements: int

    def index(self, buffer_index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return the index in the part of the element at `buffer_index`."""
        return tuple(normal(i, {}).plus(exactly(-n)).expr() for i, n in zip(buffer_index, self.begins, strict=True))


def _parts(works: tuple[Work, ...], inputs: frozenset[str]) -> dict[Buffer, _Part]:
    """Return the parts of outputs and `inputs` that the works access, of buffers that they do not access as a whole."""
    if any(isinstance(w, tuple) for w in works):
        return {}
    written: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for d in (d for w in works for d in members(w)):
        for buffer, index in ((d.out, d.target), *((r.out, r.index) for r in d.results)):
            written.setdefault(buffer, []).append(index)
    loaded: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for x in (x for w in works for x in reads(w)):
        loaded.setdefault(x.buffer, []).append(x.index)
    indices_by_buffer = written | {b: indices for b, indices in loaded.items() if b.name in inputs}
    found = ((b, _part(b, indices)) for b, indices in indices_by_buffer.items() if b.space is Space.ARG)
    parts = {b: part for b, part in found if part is not None}
    names = Counter(b.name for b in (*written, *loaded)) if parts else Counter[str]()
    return {b: part for b, part in parts.items() if names[b.name] == 1}


def _part(b: Buffer, indices: list[tuple[Expr, ...]]) -> _Part | None:
    """Return the part that is accessed at `indices`; None if that is all.

    A dimension stays whole where the part is not known, or where bounds of the definition keep accesses inside of it.
    """
    elements, begins, shape = 0, list[int](), list[Size]()
    for n, stride, dim_indices in zip(b.shape, b.strides, zip(*indices, strict=True), strict=True):
        low, size = 0, n
        covered = n == 1 or any(isinstance(i, Var) and i.extent == n and not i.low for i in dim_indices)
        if isinstance(n, int) and isinstance(stride, int) and not covered:
            ends = [bounds(normal(i, {})) for i in dim_indices]
            first, last = min(least for least, _ in ends), max(most for _, most in ends)
            if 0 <= first <= last < n:
                low, size = first, int(last - first) + 1
        begins.append(int(low))
        shape.append(size)
        elements += int(low) * (stride if isinstance(stride, int) else 0)
    if tuple(shape) == b.shape or b.dtype.bits < 8:
        return None
    part = replace(b, shape=tuple(shape), align=gcd(b.align, elements * b.dtype.stored_bytes))
    return _Part(part, tuple(begins), elements)


def _moved(work: Work, parts: dict[Buffer, _Part]) -> Work:
    """Return a work that writes parts in place of the buffers that hold them."""
    match work:
        case Group():
            works = tuple(_moved(m, parts) for m in work.members)
            return replace(work, members=tuple(m for m in works if isinstance(m, Definition | Group)))
        case Definition():
            results = tuple(
                replace(r, out=parts[r.out].buffer, index=parts[r.out].index(r.index)) if r.out in parts else r
                for r in work.results
            )
            part = parts.get(work.out)
            if part is None:
                return replace(work, results=results)
            return replace(work, out=part.buffer, index=part.index(work.target), results=results)
        case _:
            return work


def _with_names(work: Work, args: dict[str, Buffer], number_temps: bool) -> Work:
    """Return a work with these parameters; `number_temps`: its temporaries are called by their numbers, too."""
    temps = _temps(work) if number_temps and isinstance(work, Group) else []
    renamed = args | {t.name: replace(t, name=f"t{n}") for n, t in enumerate(temps)}
    return rewrite_work(work, move_loads(renamed), lambda b: renamed.get(b.name, b))


def _temps(g: Group) -> list[Buffer]:
    own = [t for t in g.temps if t.space is not Space.TABLE]
    return own + [t for m in g.members if isinstance(m, Group) for t in _temps(m)]


def parameters(works: tuple[Work, ...]) -> tuple[Buffer, ...]:
    """Return the buffers that a kernel of these works gets: inputs, constants, outputs."""
    buffers = dict.fromkeys(b for w in works for b in (*writes(w), *(x.buffer for x in reads(w))))
    args = (b for b in buffers if b.space is Space.ARG)
    return tuple(sorted(args, key=lambda b: ("xwy".index(b.name[0]), int(b.name[1:]))))


def cost(works: tuple[Work, ...]) -> tuple[Size, Size]:
    """Return the number of operations, and of bytes moved."""
    flops: Size = 0
    bytes_moved: Size = 0
    for work in works:
        for count in _operations(work):
            flops = flops + count
        for d in members(work):
            bytes_moved = bytes_moved + traffic(d)
    return flops, bytes_moved


def _operations(work: Work, around: tuple[Var, ...] = (), ranges: tuple[RowRange, ...] = ()) -> Iterator[Size]:
    """Yield the operations of each definition. A member of a group runs anew in each iteration of the axes around it.

    Axes along which it computes other elements count once: its own, and those that choose its rows (`ranges`).
    """
    match work:
        case Definition():
            own = {*all_axes(work)}
            own |= {r.of for r in ranges if r.axis in own}
            yield volume([operations(work), *(a.extent or 1 for a in around if a not in own)])
        case Group():
            for member in work.members:
                yield from _operations(member, (*around, *work.axes), (*ranges, *work.row_ranges))
        case _:
            return
