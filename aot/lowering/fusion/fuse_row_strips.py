"""Windows over channels with the producer of their input and the consumer of their result, a strip of rows at a time.

    a[h, w, c] = add[k](x[h, w, k] * e[k, c])                           MobileNet's expansion,
    b[h, w, c] = add[i, j](a[h + i - 1, w + j - 1, c] * d[i, j, c])     depthwise windows,
    y[h, w, o] = add[c](b[h, w, c] * p[c, o])                           and projection

become one group over h. Its temporaries a and b hold as many rows as fit into the core's cache; all of a would have to
come back from a slow L3. Both strips compute the rows of a that two strips read, so that neither waits for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import buffer_bytes, varies
from aot.codegen.ir.definition import LOCAL, Definition, Group, RowRange
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import Affine, bounds, normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Space, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.schedules.row_strips import rows_of
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps


def fuse_row_strips(steps: Steps, context: Context) -> None:
    """Fuse expansion, windows and projection into one step each. Strides are final, and halos are there."""
    if context.target.near_l3:
        return
    strips = _Strips(steps, context.target)
    for step in list(steps.steps):
        strips.consider(step)


class _Strips:
    def __init__(self, steps: Steps, target: Target) -> None:
        self.steps, self.target = steps, target
        self.producers: dict[str, list[Step]] = {}
        self.consumers: dict[str, list[Step]] = {}
        self.pairs = {v.half.pair for v in steps.values.values() if v.half is not None}
        self.joined: set[int] = set()  # ids of steps
        for step in steps.steps:
            for name in {b.name for b in step.writes()}:
                self.producers.setdefault(name, []).append(step)
            for name in {x.buffer.name for x in step.reads()}:
                self.consumers.setdefault(name, []).append(step)

    def consider(self, step: Step) -> None:
        """Fuse a step of windows with the producer of its input, and with its consumer, where that pays."""
        b = _main(step) if id(step) not in self.joined else None
        if b is None or b.reduction is None:
            return
        for x in loads(b.reduction.body):
            producer, consumer = self._only(self.producers, x.buffer), self._only(self.consumers, b.out)
            if producer is None or buffer_bytes(x.buffer) <= self.target.l2 // 2:
                continue
            group = _group(_main(producer), b, x, _main(consumer) if consumer is not None else None)
            if group is not None and self._pays(group):
                self._join(
                    [producer, step, *([consumer] if consumer is not None and len(group.temps) > 1 else [])], group
                )
                return

    def _only(self, touching: dict[str, list[Step]], b: Buffer) -> Step | None:
        """Return the only one of these steps that touches the value, which has one producer and one consumer."""
        value = self.steps.values.get(b.name)
        if value is None or value.region is not MemoryRegion.ARENA or value.half is not None or b.name in self.pairs:
            return None
        if len(self.producers.get(b.name, ())) != 1 or len(self.consumers.get(b.name, ())) != 1:
            return None
        step = touching[b.name][0]
        return step if id(step) not in self.joined else None

    def _pays(self, g: Group) -> bool:
        window, rows = g.row_ranges[0], rows_of(g, self.target)
        return window.size - window.scale <= COSTS.max_strip_recompute * rows * window.scale

    def _join(self, steps: list[Step], group: Group) -> None:
        *before, last = steps
        layers = tuple(dict.fromkeys(n for s in steps for n in s.layers))
        joined = Step((*last.works[:-1], group), layers, "+".join(dict.fromkeys(s.kind for s in steps)))
        gone = {id(s) for s in before}
        self.steps.steps = [joined if s is last else s for s in self.steps.steps if id(s) not in gone]
        self.joined |= {id(s) for s in steps}
        for b in (b for s in before for b in s.writes()):
            del self.steps.values[b.name]


def _main(step: Step) -> Definition | None:
    """Return the step's only reduction, with static sizes, after any halo fills."""
    if not step.works or step.schedule is not None or step.repeat is not None or step.control is not None:
        return None
    *borders, d = step.works
    if step.binds or step.checks or not all(isinstance(w, Definition) and isinstance(w.value, Const) for w in borders):
        return None
    if not isinstance(d, Definition) or d.reduction is None or d.where or varies((*d.axes, *d.reduction.axes)):
        return None
    return d


@dataclass(frozen=True, slots=True)
class _Temporary:
    """A temporary for a value: which of its dimensions it has, and what is added to each index, for it begins at 0."""

    temp: Buffer
    dims: tuple[int, ...]
    before: tuple[int, ...]

    def at(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(index[k] + n for k, n in zip(self.dims, self.before, strict=True))


Temporaries = dict[str, _Temporary]


def _group(a: Definition | None, b: Definition, x: Load, c: Definition | None) -> Group | None:
    """Group `a`, `b` that reads its result `x`, and `c` if it reads the rows of `b`; None if `a` makes no rows."""
    dims = _by_stride(x.buffer)
    n = next((n for n, k in enumerate(dims) if not isinstance(x.index[k], Var)), len(dims))
    outer, inner = dims[: n + 1], dims[n + 1 :]
    each = all(not variables(x.index[k]).isdisjoint(b.axes) for k in dims)
    narrow = len(inner) < 2 or _size(x.buffer, inner[0]) < COSTS.min_strip_columns
    if a is None or narrow or _load(b, x.buffer) != x or not each:
        return None
    makes, around, down = _axes(a, a.target, outer), _axes(b, x.index, dims[:n]), _down(b, x, dims[n])
    sides = tuple(_sides(x, k) for k in dims)
    if makes is None or around is None or down is None or (x.buffer.halo is None and any(map(any, sides))):
        return None
    walks: tuple[Var, ...] = (*around, down.of)
    shared = tuple(replace(v, name=f"{v.name}.strip{LOCAL}") for v in walks)
    down, rows = replace(down, of=shared[-1]), _size(x.buffer, dims[n])
    inside = replace(down, axis=Var(f"row{LOCAL}", rows), within=(0, rows))
    beyond = tuple(replace(down, axis=v, within=(v.low, end)) for v, end in _beyond(rows, *sides[n]))
    read = _temporary("read", x.buffer, (*shared[:-1], down.axis), dims, sides)
    temporaries = {x.buffer.name: read}
    tail: list[tuple[Definition, tuple[Var, ...]]] = [(b, walks)]
    if c is not None and (between := _between(b, walks, shared, c)) is not None:
        temporaries[b.out.name], axes = between
        tail.append((c, axes))
    edges = (*_columns(read, n + 1, x.buffer), *(_row(read.temp, n, w.axis, x.buffer) for w in beyond))
    head = Group("rows", (inside.axis,), (), (_over_shared_axes(a, makes, (*shared[:-1], inside.axis), temporaries),))
    members = (*edges, head, *(_over_shared_axes(d, axes, shared, temporaries) for d, axes in tail))
    return Group("strips", shared, tuple(p.temp for p in temporaries.values()), members, (down, inside, *beyond))


def _between(
    b: Definition, walks: tuple[Var, ...], shared: tuple[Var, ...], c: Definition
) -> tuple[_Temporary, tuple[Var, ...]] | None:
    """Return the temporary for the result of `b` until `c` has read it, and the axes of `c` that index it."""
    lead = tuple(b.target.index(v) for v in walks if v in b.target)
    y = _load(c, b.out)
    axes = _axes(c, y.index, lead) if y is not None and len(lead) == len(walks) else None
    dims = (*lead, *(k for k in _by_stride(b.out) if k not in lead))
    return None if axes is None else (_temporary("between", b.out, shared, dims, [(0, 0)] * len(dims)), axes)


def _by_stride(b: Buffer) -> tuple[int, ...]:
    """Return the dimensions of more than one element, by falling stride."""
    steps = {k: s for k, (n, s) in enumerate(zip(b.shape, b.strides, strict=True)) if n != 1 and isinstance(s, int)}
    return tuple(sorted(steps, key=lambda k: -steps[k]))


def _size(b: Buffer, k: int) -> int:
    n = b.shape[k]
    assert isinstance(n, int)
    return n


def _load(d: Definition, b: Buffer) -> Load | None:
    """Return the only load of the value; None if there are several."""
    accesses = [x for x in loads(d.value, *d.target) if x.buffer.name == b.name]
    return accesses[0] if len(accesses) == 1 else None


def _axes(d: Definition, index: tuple[Expr, ...], dims: Sequence[int]) -> tuple[Var, ...] | None:
    """Return the axes that index these dimensions alone, one axis for each dimension; None if there are others."""
    axes = tuple(i for k in dims if isinstance(i := index[k], Var) and i in d.axes)
    others = variables(*(i for k, i in enumerate(index) if k not in dims))
    return axes if len({*axes}) == len(dims) and others.isdisjoint(axes) else None


def _down(d: Definition, x: Load, k: int) -> RowRange | None:
    """Return the window along dimension `k` of the input: an axis with its stride, and axes of the reduction."""
    assert d.reduction is not None
    index = normal(x.index[k], {})
    own = [v for v in index.terms if isinstance(v, Var) and v in d.axes]
    taps = Affine({v: c for v, c in index.terms.items() if v not in own}, index.const)
    if len(own) != 1 or min(index.terms.values()) < 1 or not set(taps.terms) <= set(d.reduction.axes):
        return None
    if own[0] in variables(*(i for m, i in enumerate(x.index) if m != k)):
        return None
    low, high = map(int, bounds(taps))
    return RowRange(Var(f"read{LOCAL}", _size(x.buffer, k)), own[0], index.terms[own[0]], -low, high - low + 1)


def _sides(x: Load, k: int) -> tuple[int, int]:
    """Return how far reads reach before the start and past the end of dimension `k`."""
    low, high = map(int, bounds(normal(x.index[k], {})))
    return max(0, -low), max(0, high + 1 - _size(x.buffer, k))


def _temporary(
    name: str, b: Buffer, lead: tuple[Var, ...], dims: tuple[int, ...], sides: Sequence[tuple[int, int]]
) -> _Temporary:
    """Return a temporary over the `lead` axes and all inner dimensions, with their halo."""
    n = len(lead)
    sizes = (_size(b, k) + sum(s) for k, s in zip(dims[n:], sides[n:], strict=True))
    temp = dense(f"{name}{LOCAL}", *lead, *sizes, space=Space.ARENA, dtype=b.dtype)
    return _Temporary(temp, dims, (*(0 for _ in lead), *(low for low, _ in sides[n:])))


def _beyond(rows: int, before: int, after: int) -> Iterator[tuple[Var, int]]:
    """Yield the axes of the rows above and below the image, each with its end."""
    if before:
        yield Var(f"above{LOCAL}", 0, low=-before), 0
    if after:
        yield Var(f"below{LOCAL}", rows + after, low=rows), rows + after


def _row(temp: Buffer, n: int, row: Var, of: Buffer) -> Group:
    """Fill a row outside of the image; `n` is its dimension."""
    axes = (*_leading(temp, n), row, *(Var(f"d{k}{LOCAL}", size) for k, size in enumerate(temp.shape[n + 1 :], n + 1)))
    return Group("rows", (row,), (), (Definition(temp, axes, _fill(of), axes),))


def _columns(temporary: _Temporary, n: int, of: Buffer) -> Iterator[Definition]:
    """Fill the columns beside the image, in the rows that windows read; `n` dimensions come before its columns."""
    temp = temporary.temp
    for k in range(n, len(temp.shape)):
        extent, before, size = temp.shape[k], temporary.before[k], _size(of, temporary.dims[k])
        assert isinstance(extent, int)
        for start, count in ((0, before), (before + size, extent - before - size)):
            if count:
                sizes = (*temp.shape[n:k], count, *temp.shape[k + 1 :])
                axes = (*_leading(temp, n), *(Var(f"d{m}{LOCAL}", size) for m, size in enumerate(sizes, n)))
                index = tuple(a + start if m == k else a for m, a in enumerate(axes))
                yield Definition(temp, axes, _fill(of), index)


def _leading(temp: Buffer, n: int) -> tuple[Var, ...]:
    return tuple(v for v in temp.shape[:n] if isinstance(v, Var))


def _fill(b: Buffer) -> Const:
    """Return the value that the halo holds."""
    return Const(b.halo or 0.0 if b.dtype.is_float else int(b.halo or 0), b.dtype.compute)


def _over_shared_axes(
    d: Definition, old: tuple[Var, ...], new: tuple[Var, ...], temporaries: Temporaries
) -> Definition:
    """Rewrite the definition to the shared axes, with intermediate values in the temporaries."""
    axes: dict[Expr, Expr] = dict(zip(old, new, strict=True))

    def move(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer.name in temporaries:
            temporary = temporaries[e.buffer.name]
            return Load(temporary.temp, temporary.at(tuple(rewrite(i, axes) for i in e.index)))
        return axes.get(e)

    temporary = temporaries.get(d.out.name)
    target = tuple(rewrite(i, axes) for i in d.target)
    walked = tuple(new[old.index(a)] if a in old else a for a in d.axes)
    out, index = (temporary.temp, temporary.at(target)) if temporary is not None else (d.out, target)
    return Definition(out, walked, rewrite(d.value, move), index)
