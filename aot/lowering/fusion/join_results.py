"""A function of a value that stays in memory is stored where the value is computed, not by a step that reads it again.

y[n, c, h, w] = add[k](..) + x[n, c, h, w]      a residual, which a later sum reads
q[n, c, h, w] = u8(y[n, c, h, w] / s)           and its levels, which the next convolution reads

->  y[n, c, h, w] = add[k](..) + x[n, c, h, w]  and q[n, c, h, w] = u8(point / s)
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import access, buffer_bytes, store, typical, volume
from aot.codegen.ir.definition import Definition, Group, Result
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Const, Expr, Load, Var
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, members, reads, writes
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps, Value


def join_results(steps: Steps, _context: Context) -> None:
    """Move the works of functions of one value to the step that computes it."""
    touching: dict[str, list[int]] = {}
    writing: dict[str, list[int]] = {}
    for at, step in enumerate(steps.steps):
        written = dict.fromkeys(b.name for b in step.writes())
        for name in written:
            writing.setdefault(name, []).append(at)
        for name in written | dict.fromkeys(x.buffer.name for x in step.reads()):
            touching.setdefault(name, []).append(at)
    constants, joined = steps.constants(), set[int]()
    for at, step in enumerate(steps.steps):
        function = _function(step, steps, constants)
        if function is None:
            continue
        source, out = function.load.buffer.name, function.definition.out.name
        writers = writing.get(source, [])
        last = writers[count - 1] if (count := bisect_left(writers, at)) else None
        if last is None or bisect_left(touching[out], last) < bisect_left(touching[out], at):
            continue  # nothing makes the value, or another step touches the function's output in between
        producer = steps.steps[last]
        if not _takes(producer, function, steps):
            continue
        touching[source].remove(at)
        touching[out] = sorted({last, *touching[out]} - {at})
        writing[out] = sorted({last, *writing[out]} - {at})
        _join(producer, step, function)
        if touching[source] == [last]:
            _drop_copy(producer, source, steps)
        joined.add(at)
    if joined:
        steps.steps[:] = [s for n, s in enumerate(steps.steps) if n not in joined]


@dataclass(frozen=True, slots=True)
class _Function:
    """`definition` computes each element of its output from `load` and constants; axes are parts of its index."""

    definition: Definition
    load: Load


def _function(step: Step, steps: Steps, constants: frozenset[str]) -> _Function | None:
    """Return the function that a step computes after any fills of its halo."""
    work = step.works[-1] if step.works else None
    if step.control is not None or step.repeat is not None or step.binds or step.checks or step.schedule is not None:
        return None
    if not isinstance(work, Definition) or work.reduction is not None or work.where or work.results:
        return None
    read = [x for x in reads(work) if x.buffer.name not in constants]
    if len(read) != 1 or not _lies_alone(steps.values[work.out.name]) or any(map(reads, step.works[:-1])):
        return None
    (load,) = read
    axes = [i for i in load.index if i != Const(0)]
    reads_all = all(
        isinstance(i, Var) and not i.low and i.extent == n
        for i, n in zip(load.index, load.buffer.shape, strict=True)
        if n != 1 or i != Const(0)
    )
    once = len(axes) == len({*axes}) and {*axes} == {*work.axes}
    return _Function(work, load) if reads_all and once else None


def _join(producer: Step, step: Step, function: _Function) -> None:
    """Move the works of `step` to `producer`."""
    *fills, _ = step.works
    *before, last = producer.works
    producer.works = (*before, *fills, _with(last, function))
    producer.layers = tuple(dict.fromkeys((*producer.layers, *step.layers)))


def _drop_copy(producer: Step, source: str, steps: Steps) -> None:
    """Store a value that has no consumers left where a result is a copy of it."""
    d = producer.works[-1]
    if not isinstance(d, Definition) or d.overwrites or steps.values[source].region is not MemoryRegion.ARENA:
        return
    copy = next((r for r in d.results if r.value == Load(d.point, (Const(0),)) and r.out.dtype is d.out.dtype), None)
    if copy is not None and all(b.name != source for w in producer.works[:-1] for b in writes(w)):
        others = tuple(r for r in d.results if r is not copy)
        producer.works = (*producer.works[:-1], replace(d, out=copy.out, index=copy.index, results=others))
        del steps.values[source]


def _lies_alone(value: Value) -> bool:
    """True if no other value shares the memory, and nothing outside of the call observes when it is written."""
    return value.region in (MemoryRegion.ARENA, MemoryRegion.OUTPUT) and value.half is None


def _takes(producer: Step, function: _Function, steps: Steps) -> bool:
    """True if the last work of `producer` computes each element of the value once and storing its function pays, too.

    The function reads what is stored, so that the type of the value is one to compute in. It does not pay where a cache
    keeps the value until it is read, or where vectors would be filled less than those of a step of its own.
    """
    if producer.control is not None or producer.repeat is not None or not producer.works:
        return False
    if buffer_bytes(function.load.buffer) < COSTS.min_far_bytes:
        return False
    *before, last = producer.works
    source = function.load.buffer
    definitions = [d for d in members(last) if d.out.name == source.name]
    others = [d for w in before for d in members(w) if d.out.name == source.name and variables(d.value)]
    if len(definitions) != 1 or others or not _lies_alone(steps.values[source.name]):
        return False
    (d,) = definitions
    if d.where or d.out.dtype is not d.value.dtype or not _is_whole(d):
        return False
    beside, own = _result(d, function), store(d)
    other = access(beside.out, beside.index, d.axes)
    along = [a for a in d.axes if own.stride(a) == 1]
    full = all(typical(a.extent or 1) % COSTS.vector_extent == 0 for a in along)
    return full and along == [a for a in d.axes if other.stride(a) == 1]


def _is_whole(d: Definition) -> bool:
    """True if the points of a definition are the elements of its output."""
    used = variables(*d.target)
    if any(a.low or a not in used for a in d.axes):
        return False
    covers_output = all(
        i.extent == n if isinstance(i, Var) else n == 1 for i, n in zip(d.target, d.out.shape, strict=True)
    )
    return covers_output or volume(a.extent or 1 for a in d.axes) == volume(d.out.shape)


def _result(d: Definition, function: _Function) -> Result:
    """Return the function as a result of `d`, over the axes of `d`."""
    axes: dict[Expr, Expr] = {i: at for i, at in zip(function.load.index, d.target, strict=True) if i != Const(0)}
    point = Load(d.point, (Const(0),))

    def change(e: Expr) -> Expr | None:
        return point if e == function.load else axes.get(e)

    f = function.definition
    return Result(f.out, tuple(rewrite(i, change) for i in f.target), rewrite(f.value, change))


def _with(work: Work, function: _Function) -> Work:
    """Return a work with the function as a result of the definition that computes its operand."""
    match work:
        case Group():
            works = tuple(_with(m, function) for m in work.members)
            return replace(work, members=tuple(m for m in works if isinstance(m, Definition | Group)))
        case Definition() if work.out.name == function.load.buffer.name:
            return replace(work, results=(*work.results, _result(work, function)))
        case _:
            return work
