"""Fused attention: two products with a group of rows between them, computed for a block of rows at a time.

    s[b, i, j] = add[k](q[b, i, k] * k[b, j, k])     p = rows of s     y[b, i, d] = add[j](p[b, i, j] * v[b, j, d])

become one group over b and i, whose temporaries s and p hold a block of rows that stays in the cache; p overwrites s
where it can. If all of s fits into the cache anyway, they stay separate steps. The scale of each row, which
`defer_division` leaves, is a temporary, too.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from math import prod

from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables, walk
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Size, Space, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.fusion.group_rows import is_streaming
from aot.lowering.fusion.substitute import simplified
from aot.lowering.ir.dependencies import sort
from aot.lowering.ir.steps import Step, Steps
from aot.opset.base.row_major import ravel

ASSUMED_EXTENT = 1024  # greatest extent that is assumed for an axis of dynamic size, to estimate bytes

Temporaries = dict[str, tuple[Buffer, tuple[int, ...]]]  # by value: its temporary, and its dimensions after the rows


def fuse_attention(steps: Steps, context: Context) -> None:
    """Fuse two products and the group of rows between them into one step, wherever it pays."""
    links, replacements = _Links(steps), dict[int, Step | None]()
    constants = steps.constants()
    for step in steps.steps:
        neighbours = _neighbours(step, steps, links, context.target)
        group = _joined(*neighbours, constants) if neighbours is not None else None
        if neighbours is None or group is None:
            continue
        first, _, last = neighbours
        layers = tuple(dict.fromkeys(n for s in neighbours for n in s.layers))
        fused = Step((group,), layers, "+".join(dict.fromkeys(s.kind for s in neighbours)))
        replacements |= {id(first): None, id(step): None, id(last): fused}
        for s in neighbours:
            links.remove(s)
        links.add(fused)
        for b in (*first.writes(), *step.writes()):
            del steps.values[b.name]
    if not replacements:
        return
    now = (replacements.get(id(s), s) for s in steps.steps)
    steps.steps = [s for s in now if s is not None]
    sort(steps)


class _Links:
    """Producers and consumers of each value."""

    def __init__(self, steps: Steps) -> None:
        self.producers: dict[str, list[Step]] = {}
        self.consumers: dict[str, list[Step]] = {}
        for step in steps.steps:
            self.add(step)

    def add(self, step: Step) -> None:
        for name in {b.name for b in step.writes()}:
            self.producers.setdefault(name, []).append(step)
        for name in {x.buffer.name for x in step.reads()}:
            self.consumers.setdefault(name, []).append(step)

    def remove(self, step: Step) -> None:
        for name in {b.name for b in step.writes()}:
            self.producers[name].remove(step)
        for name in {x.buffer.name for x in step.reads()}:
            self.consumers[name].remove(step)


def _neighbours(step: Step, steps: Steps, links: _Links, target: Target) -> tuple[Step, Step, Step] | None:
    """Return the only producer of the large value that a group of rows reads, the group, and the only consumer."""
    rows = step.works[0] if len(step.works) == 1 else None
    if not isinstance(rows, Group) or len(rows.axes) != 1:
        return None
    outputs = step.writes()
    consumers_by_output = [[s for s in links.consumers.get(b.name, []) if s is not step] for b in outputs]
    consumers = consumers_by_output[0]
    if any(others != consumers for others in consumers_by_output):
        return None
    for scores in {x.buffer.name: x.buffer for x in step.reads() if x.buffer not in outputs}.values():
        producers = links.producers.get(scores.name, [])
        alone = len(producers) == len(consumers) == 1 and links.consumers[scores.name] == [step]
        arena = all(steps.values[b.name].region is MemoryRegion.ARENA for b in (scores, *outputs))
        late = any(map(steps.sizes.is_late, scores.shape))
        if alone and arena and not late and _bytes(scores) > max(target.l2, _around(producers[0], consumers[0])):
            return producers[0], step, consumers[0]
    return None


def _around(first: Step, last: Step) -> int:
    """Return the bytes of the largest value that the two products read or write around the scores between them.

    Those are the factors of the first product and the results of the last one.
    """
    reduction = first.definition.reduction if first.definition is not None else None
    factors = loads(reduction.body) if reduction is not None else first.reads()
    return max(map(_bytes, (*(x.buffer for x in factors), *last.writes())))


def _bytes(b: Buffer) -> int:
    """Return the bytes of a value with a typical batch and the greatest extents of other sizes."""
    batch, *others = b.shape or (1,)
    return typical(batch) * prod(map(_long, others)) * b.dtype.stored_bytes


def _long(n: Size) -> int:
    return n if isinstance(n, int) else int(min(bounds(normal(n, {}))[1], ASSUMED_EXTENT))


def _joined(first: Step, step: Step, last: Step, constants: frozenset[str]) -> Group | None:
    """Join both products and the group of rows over the rows' axes; None if their accesses do not allow it."""
    head, rows, tail = first.definition, step.works[0], last.definition
    if head is None or tail is None or not isinstance(rows, Group):
        return None
    if any(d.where or d.reduction is None or is_streaming(d, constants) for d in (head, tail)):
        return None
    scores, outputs = head.out, step.writes()
    row_dims = {b.name: _rows_of(b, rows) for b in (scores, *outputs)}
    reads = {b.name: [x for x in loads(tail.value, *tail.index) if x.buffer.name == b.name] for b in outputs}
    if any(len(accesses) != 1 for accesses in reads.values()):
        return None
    axes = _variables(head.target, row_dims[scores.name], head)
    tail_axes, *different = {_variables(x.index, row_dims[name], tail) for name, (x,) in reads.items()}
    if different or axes is None or tail_axes is None or [a.extent for a in axes] != [a.extent for a in tail_axes]:
        return None
    flat = ravel(axes, [a.extent or 1 for a in axes])
    temporaries = _row_temporaries((scores, *outputs), rows, row_dims, flat, axes)
    if temporaries is None:
        return None
    zeros: tuple[Definition, ...] = ()
    for name, (x,) in reads.items():
        if (filled := _filled(tail, x, *temporaries[name])) is not None:
            longer, zero, tail = filled
            temporaries[name], zeros = (longer, temporaries[name][1]), (zero,)
    inner = _unflattened(rows, flat, axes, temporaries)
    old, new = (temporaries[b.name][0] for b in (scores, outputs[0]))
    if _follows(inner, old, new):
        temporaries = {name: (old if b == new else b, columns) for name, (b, columns) in temporaries.items()}
        inner = _unflattened(rows, flat, axes, temporaries)
    temps = tuple(dict.fromkeys(b for b, _ in temporaries.values()))
    begin = _moved(head, {}, axes, temporaries)
    end = _moved(_with_unique_axes(tail, tail_axes, axes), dict(zip(tail_axes, axes, strict=True)), axes, temporaries)
    return Group("chain", axes, temps, (begin, inner, *zeros, end))


def _row_temporaries(
    buffers: tuple[Buffer, ...],
    rows: Group,
    row_dims: dict[str, tuple[int, ...] | None],
    flat: Expr,
    axes: tuple[Var, ...],
) -> Temporaries | None:
    """Return a temporary over the shared axes for each buffer; None if the group reads one at other rows."""
    temporaries: Temporaries = {}
    for b in buffers:
        dims = row_dims[b.name] or ()
        if not _walks(rows, b, dims, flat, axes):
            return None
        columns = tuple(k for k, n in enumerate(b.shape) if k not in dims and n != 1)
        temporaries[b.name] = _temporary(b, axes, columns, Space.ARENA), columns
    return temporaries


def _follows(rows: Group, old: Buffer, new: Buffer) -> bool:
    """True if the group may write `new` over `old`: element by element, and no later member reads `old`."""
    definitions = list(members(rows))
    at = next(n for n, d in enumerate(definitions) if d.out == new)
    if replace(old, name=new.name) != new or any(
        x.buffer == old for d in definitions[at + 1 :] for x in loads(d.value)
    ):
        return False
    return all(x.index == definitions[at].target for x in loads(definitions[at].value) if x.buffer == old)


def _filled(
    d: Definition, x: Load, temp: Buffer, columns: tuple[int, ...]
) -> tuple[Buffer, Definition, Definition] | None:
    """Return the temporary padded with columns of zeros, the definition that writes these, and `d` without checks.

    None unless `d` sums over more columns than `x` has: `within(k, 197, x[i, k], 0)`.
    """
    for e in walk(d.value):
        match e:
            case Prim("within", (Var(extent=int(n)) as k, Const(int(have)), inside, Const(0.0))) if inside == x:
                break
            case _:
                pass
    else:
        return None
    if len(columns) != 1 or x.index[columns[0]] != k or x.buffer.shape[columns[0]] != have:
        return None
    *rows, _ = temp.shape
    buffer = dense(temp.name, *rows, n, space=temp.space, dtype=temp.dtype)
    axes, padding = [a for a in rows if isinstance(a, Var)], Var("z", n - have)
    zeros = Definition(buffer, (*axes, padding), Const(0.0, temp.dtype.compute), (*axes, padding + have))
    return buffer, zeros, replace(d, value=rewrite(d.value, {e: x}))


def _temporary(b: Buffer, axes: tuple[Var, ...], columns: tuple[int, ...], space: Space) -> Buffer:
    return dense(b.name, *axes, *(b.shape[k] for k in columns), space=space, dtype=b.dtype)


def _rows_of(b: Buffer, rows: Group) -> tuple[int, ...] | None:
    """Return the dimensions of `b` that the group's row axis indexes; None unless they are the same at every access."""
    dimensions = {tuple(k for k, i in enumerate(index) if rows.axes[0] in variables(i)) for index in _sites(b, rows)}
    return dimensions.pop() if len(dimensions) == 1 else None


def _sites(b: Buffer, rows: Group) -> list[tuple[Expr, ...]]:
    values = [d.target for d in members(rows) if d.out.name == b.name]
    return values + [x.index for d in members(rows) for x in loads(d.value, *d.index) if x.buffer.name == b.name]


def _variables(index: tuple[Expr, ...], dims: tuple[int, ...] | None, d: Definition) -> tuple[Var, ...] | None:
    """Return the axes that index these dimensions.

    None unless each dimension is indexed by one axis of the definition.
    """
    if dims is None:
        return None
    axes = tuple(i for k in dims if isinstance(i := index[k], Var) and i in d.axes)
    return axes if len({*axes}) == len(dims) else None


def _walks(rows: Group, b: Buffer, dims: tuple[int, ...], flat: Expr, axes: tuple[Var, ...]) -> bool:
    """True if every access of the group to `b` indexes `dims` by `axes` once `flat` replaces the row axis."""
    change: dict[Expr, Expr] = {rows.axes[0]: flat}
    return all(
        normal(rewrite(index[k], change), {}).key == normal(a, {}).key
        for index in _sites(b, rows)
        for k, a in zip(dims, axes, strict=True)
    )


def _unflattened(rows: Group, flat: Expr, axes: tuple[Var, ...], temporaries: Temporaries) -> Group:
    """Rewrite the group of rows over the shared axes instead of its single row axis."""
    own: Temporaries = {}
    for t in rows.temps:
        inner = tuple(range(1, len(t.shape)))
        own[t.name] = _temporary(t, axes, inner, t.space), inner
    change: dict[Expr, Expr] = {rows.axes[0]: flat}
    definitions = tuple(_moved(d, change, axes, temporaries | own) for d in members(rows))
    return Group(rows.name, axes, tuple(b for b, _ in own.values()), definitions)


def _with_unique_axes(d: Definition, walked: tuple[Var, ...], shared: tuple[Var, ...]) -> Definition:
    """Rename the axes of `d` that are no shared axes but have the name of one."""
    reduction = d.reduction
    own = [a for a in (*d.axes, *(reduction.axes if reduction else ())) if a not in walked]
    taken = {a.name for a in (*own, *walked, *shared)}
    change: dict[Expr, Expr] = {}
    for a in own:
        if a.name in {s.name for s in shared}:
            name = next(n for k in count(2) if (n := f"{a.name}{k}") not in taken)
            taken.add(name)
            change[a] = replace(a, name=name)

    def renamed(axes: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(b if isinstance(b := change.get(a, a), Var) else a for a in axes)

    value = d.value
    if reduction is not None:
        renamed_sum = replace(reduction, axes=renamed(reduction.axes), body=rewrite(reduction.body, change))
        value = rewrite(value, {reduction: renamed_sum})
    target = tuple(rewrite(i, change) for i in d.target)
    return replace(d, axes=renamed(d.axes), value=rewrite(value, change), index=target)


def _moved(d: Definition, change: dict[Expr, Expr], axes: tuple[Var, ...], temporaries: Temporaries) -> Definition:
    """Rewrite a definition over the shared axes, with temporaries for the values in `temporaries`."""

    def local(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer.name not in temporaries:
            return None
        temp, inner = temporaries[e.buffer.name]
        return Load(temp, (*axes, *(rewrite(e.index[k], local) for k in inner)))

    own = tuple(a for a in d.axes if a not in axes and a not in change)
    value = simplified(rewrite(rewrite(d.value, change), local))
    if d.out.name in temporaries:
        temp, inner = temporaries[d.out.name]
        return Definition(temp, (*axes, *own), value, (*axes, *(rewrite(d.target[k], change) for k in inner)))
    return Definition(d.out, (*axes, *own), value, tuple(normal(rewrite(i, change), {}).expr() for i in d.target))
