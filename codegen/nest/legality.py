"""Rules that the schedule of a definition or group must keep; ScheduleError names the work and the field at fault."""

from __future__ import annotations

from aot.codegen.ir.access import access, all_axes, fills, varies, volume
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables, walk
from aot.codegen.ir.loops import Buffer, Reduce, Var
from aot.codegen.ir.numbers.bf16_chains import block_tile, chain_axis, chain_factors, is_chain_sum
from aot.codegen.ir.numbers.dot_forms import (
    BLOCK_COLUMNS,
    DOT_LANES,
    dot_factors,
    elements_per_dot,
    has_k_paired_weights,
    has_k_words,
    packed_field,
    packs_lanes,
    scaled_sum,
    takes_blocks,
    takes_columns,
    takes_rows,
)
from aot.codegen.ir.schedule import Pack, Schedule, ScheduleError, Tail, Tile, segments
from aot.codegen.nest.sums.scaled_steps import has_equal_steps
from aot.runtime.abi import DType


def check(work: Definition | Group, schedule: Schedule, inside: bool = False) -> None:
    """Raise ScheduleError when `schedule` does not fit. `inside`: the work is a member of a group."""
    name = work.name if isinstance(work, Group) else work.out.name
    outputs = _fused(name, work.axes, schedule, work)
    if inside and schedule.parallel is not None:
        where = f"{schedule.parallel!r} in a member of a group"
        raise ScheduleError(f"{name}: parallel is for the outermost loops, got {where}")
    if isinstance(work, Group):
        _names(name, schedule, outputs, outputs)
        _group(work, schedule)
    else:
        reductions = [e for e in walk(work.value) if isinstance(e, Reduce)]
        if len(reductions) > 1:
            raise ScheduleError(f"{name}: at most one reduction, got {len(reductions)}")
        inner = _fused(name, reductions[0].axes, schedule, work) if reductions else ()
        _names(name, schedule, outputs, (*outputs, *inner))
        _definition(work, schedule, (*outputs, *inner))


def _fused(name: str, axes: tuple[Var, ...], schedule: Schedule, work: Definition | Group) -> tuple[str, ...]:
    """Return the names of the axes after `fuse`."""
    names = [a.name for a in axes]
    for new, parts in schedule.fuse:
        known = _all_axes(work)
        wrong = [p for p in parts if p not in known]
        if wrong or not parts:
            missing = wrong[0] if wrong else new
            raise ScheduleError(f"{name}: fuse names no axis: {missing!r} (axes: {', '.join(sorted(known))})")
        output_parts = [p for p in parts if p in names]
        if output_parts and len(output_parts) != len(set(parts)):
            raise ScheduleError(f"{name}: fuse mixes output and reduction axes, got {', '.join(parts)}")
        if output_parts:
            names[names.index(parts[0])] = new
            names = [n for n in names if n == new or n not in parts]
    return tuple(names)


def _all_axes(work: Definition | Group) -> set[str]:
    reduction = work.reduction if isinstance(work, Definition) else None
    return {a.name for a in work.axes} | ({a.name for a in reduction.axes} if reduction else set())


def _names(name: str, s: Schedule, outputs: tuple[str, ...], known: tuple[str, ...]) -> None:
    fields = {
        "blocks": tuple(n for n, _ in s.blocks),
        "order": s.order,
        "tile": tuple(t.axis for t in s.tile),
        "unroll": s.unroll,
        "lanes": (s.lanes[0],) if s.lanes else (),
        "row_vectors": (s.row_vectors,) if s.row_vectors else (),
        "f16_sums": (s.f16_sums,) if s.f16_sums else (),
        "parallel": (s.parallel,) if s.parallel else (),
    }
    for field, names in fields.items():
        allowed = outputs if field == "parallel" else known
        for n in names:
            if n not in allowed:
                raise ScheduleError(f"{name}: {field} names no axis: {n!r} (axes: {', '.join(allowed)})")
        if len(set(names)) != len(names):
            raise ScheduleError(f"{name}: {field} names an axis twice, got {', '.join(names)}")
    if any(size < 1 for _, size in s.blocks):
        raise ScheduleError(f"{name}: block sizes are positive, got {min(size for _, size in s.blocks)}")
    if any(t.size < 1 for t in s.tile):
        raise ScheduleError(f"{name}: tile sizes are positive, got {next(t for t in s.tile if t.size < 1)}")
    if s.lanes and (s.lanes[1] < 1 or s.lanes[1] & (s.lanes[1] - 1)):
        raise ScheduleError(f"{name}: lanes are a power of two, got {s.lanes[1]}")
    if s.partials < 1:
        raise ScheduleError(f"{name}: partials are positive, got {s.partials}")


def _group(group: Group, s: Schedule) -> None:
    if len(s.members) != len(group.members):
        raise ScheduleError(f"{group.name}: members: {len(group.members)} definitions, {len(s.members)} schedules")
    if s.lanes:
        raise ScheduleError(f"{group.name}: lanes belong to a member, got {s.lanes[0]!r} of the group")
    if s.blocks:
        raise ScheduleError(f"{group.name}: blocks belong to a definition, got {s.blocks[0][0]!r} of the group")
    if s.pack:
        raise ScheduleError(f"{group.name}: pack belongs to a member, got {s.pack[0].operand!r} of the group")
    temps = {t.name for t in group.temps}
    for n, _ in s.pitch:
        if n not in temps:
            raise ScheduleError(f"{group.name}: pitch names no temp: {n!r} (temps: {', '.join(sorted(temps))})")
    for member, schedule in zip(group.members, s.members, strict=True):
        check(member, schedule, inside=True)


def _pack(name: str, p: Pack, operands: dict[str, Buffer]) -> None:
    if p.operand not in operands:
        raise ScheduleError(f"{name}: pack names no operand: {p.operand!r} (operands: {', '.join(operands)})")
    rank = len(operands[p.operand].shape)
    if sorted(p.order) != [k for k in range(rank) if k != p.fused] or p.axis not in p.order:
        raise ScheduleError(f"{name}: pack of {p.operand!r} orders {rank} dimensions with {p.axis}, got {p.order}")
    inside = len(p.order) - p.place - 1
    if not 0 <= p.words <= inside:
        raise ScheduleError(f"{name}: pack of {p.operand!r} has {inside} dimensions in its blocks, got {p.words}")


def _definition(definition: Definition, s: Schedule, names: tuple[str, ...]) -> None:
    name = definition.out.name
    if s.members or s.pitch:
        field = "members" if s.members else "pitch"
        raise ScheduleError(f"{name}: {field} belong to a group, got {len(s.members or s.pitch)}")
    _tails(definition, s)
    operands = {x.buffer.name: x.buffer for x in loads(definition.value)}
    for p in s.pack:
        _pack(name, p, operands)
    if (
        s.prefetch is not None
        and not any(p.operand == s.prefetch for p in s.pack)
        and not _lies_in_lanes(definition, s)
    ):
        raise ScheduleError(f"{name}: prefetch names an operand that is packed or lies in lanes, got {s.prefetch!r}")
    if s.prefetch_within is not None and (s.prefetch is None or s.prefetch_within < 0):
        raise ScheduleError(f"{name}: prefetch_within counts units, and prefetch names what, got {s.prefetch_within}")
    reduction = definition.reduction
    sums = [a.name for a in reduction.axes] if reduction is not None else []
    for n in s.skip_padding:
        if n not in sums or s.size(n).size != 1:
            raise ScheduleError(f"{name}: skip_padding names reduction axes without a tile, got {n!r}")
    if s.scaled_steps is not None and not _has_scaled_steps(reduction, s):
        rule = "scaled_steps names an axis of a sum of floats, without tile and blocks"
        raise ScheduleError(f"{name}: {rule}, got {s.scaled_steps!r}")
    _f16_sums(name, reduction, s)
    if s.dots is not None and not _fits_dots(definition, s):
        rule = "dots are sums of u8 that lie side by side and i8 packed in words, or of i16, or of bf16"
        raise ScheduleError(f"{name}: {rule}, got {s.dots!r}")
    if reduction is not None:
        _sums_in_blocks(definition, reduction, s)
        _chains(name, reduction, s)
    extents = {a.name: a.extent for a in (*definition.axes, *(reduction.axes if reduction else ()))}
    for n in s.unroll:
        if not isinstance(extents.get(n, 0), int) and s.size(n).size == 1:
            raise ScheduleError(f"{name}: unroll needs a static extent, got {n!r}")


def _tails(d: Definition, s: Schedule) -> None:
    r, name = d.reduction, d.out.name
    blocks = chain_axis(r).name if r is not None and is_chain_sum(r) else None
    of_groups = (Tail.SHORT, Tail.REST)
    if (short := next((t for t in s.tile if t.tail in of_groups and t.axis != blocks), None)) is not None:
        raise ScheduleError(f"{name}: tiles with a short one belong to a group, got {short.axis!r}")
    if (lap := next((t for t in s.tile if t.tail is Tail.LAP and not _may_overlap(d, t, s)), None)) is not None:
        rule = "tiles that overlap are those of tile registers, or of enough rows, each of which is summed at once"
        raise ScheduleError(f"{name}: {rule}, got {lap.axis!r}")
    if d.overwrites and (lap := next((t for t in s.tile if _overlaps(d, s, t)), None)) is not None:
        raise ScheduleError(f"{name}: tiles that overwrite an operand have no points in common, got {lap.axis!r}")


def _overlaps(d: Definition, s: Schedule, t: Tile) -> bool:
    """True if two tiles of an axis may have points in common."""
    parts = dict(s.fuse).get(t.axis, (t.axis,))
    extent = volume(a.extent or 1 for a in d.axes if a.name in parts)
    cut = dict(s.blocks).get(t.axis, t.size) % t.size
    return t.tail is Tail.LAP and (cut > 0 or any(x.latest is not None for x in segments(extent, t)))


def _may_overlap(d: Definition, tile: Tile, s: Schedule) -> bool:
    """True if a tile may compute points of the one before it again, and an axis of dynamic size fills a tile."""
    parts = dict(s.fuse).get(tile.axis, (tile.axis,))
    axes = [a for a in d.axes if a.name in parts]
    if varies(axes):
        return not s.blocks and fills(axes, tile.size)
    sums = {a.name for a in d.reduction.axes} if d.reduction is not None else set[str]()
    blocked = {a for name, _ in s.blocks for a in dict(s.fuse).get(name, (name,))}
    in_rows = bool(axes) and (s.lanes is None or s.lanes[0] != tile.axis)
    return s.matrix is not None or (in_rows and sums.isdisjoint(blocked))


def _fits_dots(d: Definition, s: Schedule) -> bool:
    """True if operands are packed in words, no word or panel is cut, and no vector is longer than the instruction's."""
    assert s.dots is not None
    names = dict(s.fuse).get(s.dots, (s.dots,))
    parts = tuple(a for n in names for a in all_axes(d) if a.name == n)
    packing = next((p for p in s.pack if p.words == len(parts)), None)
    factors = dot_factors(d.reduction, s.lane) if d.reduction is not None and s.lanes is not None else None
    if s.lanes is None or s.lanes[1] > DOT_LANES or factors is None or not parts:
        return False
    if d.reduction is not None and scaled_sum(d.reduction) is not None:
        steps = next((a for a in d.reduction.axes if a.name == s.scaled_steps), None)
        if steps is None or not has_equal_steps(d.reduction, steps):
            return False
    if not _has_fixed_fields(d, parts, s):
        return False
    size = elements_per_dot(factors[1].buffer.dtype) if packing is None else packing.elements(factors[1].buffer.dtype)
    if packing is not None and s.in_blocks and not (takes_blocks(d, packing, s.lane) and s.lanes[1] == BLOCK_COLUMNS):
        return False
    terms, columns = s.size(s.dots), s.size(s.lanes[0])
    fills_words = terms.size % size == 0 and dict(s.blocks).get(s.dots, 0) % size == 0
    if Tail.BALANCE in (terms.tail, columns.tail) or not fills_words:
        return False
    if packing is None:
        either = takes_rows, has_k_paired_weights
        return len(parts) == 1 and any(f(d, parts[0], s.lanes[0]) for f in either)
    panels = not (packing.width % s.lanes[1] or (packing.width % columns.size and columns.size % packing.width))
    in_rows = len(parts) == 1 and takes_columns(d, parts[0], packing, s.lanes[0])
    lanes = dict(s.fuse).get(s.lanes[0], (s.lanes[0],))
    return panels and (in_rows or has_k_words(d, parts, packing, s.lane)) and packs_lanes(d, packing, lanes)


def _has_fixed_fields(d: Definition, parts: tuple[Var, ...], s: Schedule) -> bool:
    """True if a field's shift is constant wherever it is read: its axes are written out."""
    few = packed_field(d.reduction)
    moving = frozenset[Var]() if few is None else variables(few.shift)
    return all(a not in parts and s.size(a.name).size == a.extent for a in moving)


def _has_scaled_steps(r: Reduce | None, s: Schedule) -> bool:
    if r is None or r.fn != "add" or not r.dtype.is_float or (s.matrix is not None and s.dots is None):
        return False
    if s.dots is not None and scaled_sum(r) is None:
        return False
    sums = {a.name for a in r.axes}
    along = s.lanes is not None and s.lanes[0] in sums
    free = s.scaled_steps in sums and s.size(s.scaled_steps).size == 1 and s.scaled_steps not in s.unroll
    return free and not along and sums.isdisjoint(dict(s.blocks))


def _f16_sums(name: str, r: Reduce | None, s: Schedule) -> None:
    """Check that products of f16 are summed along an axis of known size, and that vectors run along an output."""
    if s.f16_sums is None:
        return
    axes = {a.name: a.extent for a in r.axes} if r is not None and r.fn == "add" else {}
    factors = chain_factors(r) if r is not None and axes else None
    short = factors is not None and all(x.buffer.dtype is DType.F16 for x in factors)
    known = all(isinstance(axes.get(n), int) for n in dict(s.fuse).get(s.f16_sums, (s.f16_sums,)))
    along = s.lanes is not None and s.lanes[0] in axes
    if not (short and known) or along or (s.dots, s.matrix, s.scaled_steps) != (None, None, None):
        raise ScheduleError(f"{name}: f16_sums are static axes of sums of products of f16, got {s.f16_sums!r}")


def _chains(name: str, r: Reduce, s: Schedule) -> None:
    """Check that the sum keeps its order: its axes as they stand, whole blocks of the last one, lanes elsewhere."""
    if not is_chain_sum(r):
        return
    axes = [a.name for a in r.axes]
    changed = [n for n in s.order if n in axes]
    if changed and changed != axes:
        raise ScheduleError(f"{name}: chains run over {', '.join(axes)} in this order, got {', '.join(changed)}")
    last = r.axes[-1]
    block = block_tile(last)
    if not block.size or s.size(last.name) != block:
        raise ScheduleError(f"{name}: chains of {last.name!r} have blocks of {block.size}, got {s.size(last.name)}")
    wrong = [n for n in axes[:-1] if s.size(n).size != 1]
    wrong += [n for n in axes if (s.lanes is not None and s.lanes[0] == n) or n in dict(s.blocks) or n in s.unroll]
    wrong += [n for n, parts in s.fuse if not set(parts).isdisjoint(axes)]
    panels = s.prefetch is not None and s.matrix is None and any(p.operand == s.prefetch for p in s.pack)
    if wrong or s.dots is not None or panels:
        rule = "chains are neither cut, fused, spread nor prefetched panel by panel"
        raise ScheduleError(f"{name}: {rule}, got {(*wrong, s.dots, s.prefetch)[0]!r}")


def _lies_in_lanes(d: Definition, s: Schedule) -> bool:
    """True if neighbours along the vector axis are neighbours in the memory of the prefetched operand."""
    lane = next((a for a in d.axes if s.lanes is not None and a.name == s.lanes[0]), None)
    read = (access(x.buffer, x.index, d.axes) for x in loads(d.value) if x.buffer.name == s.prefetch)
    return lane is not None and any(x.stride(lane) == 1 for x in read)


def _sums_in_blocks(d: Definition, reduction: Reduce, s: Schedule) -> None:
    """Check blocks of reduction axes: from one block to the next, the output holds the partial sums."""
    name, axes = d.out.name, {a.name for a in reduction.axes}
    if all(axes.isdisjoint(dict(s.fuse).get(n, (n,))) for n, _ in s.blocks):
        return
    if s.lanes and not axes.isdisjoint(dict(s.fuse).get(s.lanes[0], (s.lanes[0],))):
        raise ScheduleError(f"{name}: blocks of a sum need lanes along the output, got {s.lanes[0]!r}")
    if d.out.dtype is not reduction.dtype:
        raise ScheduleError(f"{name}: blocks of a sum are kept as {reduction.dtype}, got an output of {d.out.dtype}")
    if d.where or any(x.buffer == d.out for x in loads(d.value)):
        raise ScheduleError(f"{name}: blocks of a sum need an output of their own, got bounds or a value that reads it")
