"""Groups: definitions that share rows are computed row by row, so that values between them stay in the cache.

    top[r] = max[j](x[r, j])     e[r, j] = exp(x[r, j] - top[r])     s[r] = add[j](e[r, j])     y[r, j] = e[r, j] / s[r]

This finds softmax and the norms, however the model spells them: a reduction without reuse starts a cluster, and each
definition that reads the cluster at its own row index joins it. Several row axes are flattened into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import coefficient, element_offset, offset, points, typical, unravel, volume
from aot.codegen.ir.by_identity import kept
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import Affine, bounds, normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Size, Space, Var, as_expr, dense
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.context import Context
from aot.lowering.fusion.split_quotient_axes import divided
from aot.lowering.fusion.substitute import simplified
from aot.lowering.fusion.tails import without_tails
from aot.lowering.ir.components import Components
from aot.lowering.ir.dependencies import Producers, sort
from aot.lowering.ir.lane_axes import dim_of, lane_axes
from aot.lowering.ir.steps import Step, Steps
from aot.runtime.abi import DType

# Most members of a group: each temporary nests statements by one level, and Python's stack has 1 000 frames.
MEMBERS = 128


@dataclass(slots=True)
class _Cluster:
    """Steps that share rows. `rows[id(step)]`: the row axes of a step; `dims[name]`: their dimensions in a value."""

    extents: tuple[Size, ...]
    steps: list[Step] = field(default_factory=list[Step])
    rows: dict[int, tuple[Var, ...]] = field(default_factory=dict[int, tuple[Var, ...]])
    dims: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


def group_rows(steps: Steps, _context: Context) -> None:
    """Replace clusters of at least two definitions by groups."""
    clusters = _Clusters(steps)
    for step in list(steps.steps):
        clusters.consider(step)
    several = [cluster for cluster in clusters.all if len(cluster.steps) > 1]
    if several:
        _form(steps, several)
    sort(steps)  # merged steps, too, come after the checks of the sizes that they have taken in


def _form(steps: Steps, clusters: list[_Cluster]) -> None:
    """Replace clusters by groups, but those whose members are faster side by side."""
    innermost, former = _innermost_dimensions(steps), None
    for cluster in clusters:
        if not _are_side_by_side(steps, cluster, innermost):
            former = former or _Former(steps)
            former.form(cluster)
    if former is not None:
        steps.steps = [s for s in former.slots if s is not None]


class _Clusters:
    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.constants = steps.constants()
        self.all: list[_Cluster] = []
        self.of: dict[int, _Cluster] = {}  # id of a step -> its cluster
        self.order = Producers(steps)
        self.producers = {name: writers[-1] for name, writers in self.order.of.items()}
        self.parts = _counts(steps)

    @cached_property
    def components(self) -> Components:
        """Return the order of steps and clusters: few networks have clusters of several steps."""
        return Components(self.steps.steps, self.order)

    def consider(self, step: Step) -> None:
        d = step.definition
        if d is None or d.where or self.parts.get(d.out.name) != 1:
            return
        for name in dict.fromkeys(x.buffer.name for x in loads(d.value, *d.index)):
            cluster = self.of.get(id(self.producers.get(name)))
            if cluster is not None and (self._joins(cluster, step, d) or self._joins_divided(cluster, step, d)):
                return
        if d.reduction is not None and is_streaming(d, self.constants):
            self._start(step, d)

    def _start(self, step: Step, d: Definition) -> None:
        cluster = _Cluster(tuple(a.extent for a in d.axes if a.extent is not None))
        self._add(cluster, step, d, d.axes)
        self.all.append(cluster)
        self._absorb(cluster, d)

    def _add(self, cluster: _Cluster, step: Step, d: Definition, rows: tuple[Var, ...]) -> None:
        if cluster.steps:
            self.components.merge(cluster.steps[0], step)
        cluster.steps.append(step)
        cluster.rows[id(step)] = rows
        self.of[id(step)] = cluster
        if all(r in d.target for r in rows):
            cluster.dims[d.out.name] = tuple(d.target.index(r) for r in rows)

    def _joins_divided(self, cluster: _Cluster, step: Step, d: Definition) -> bool:
        """Match as `_joins` after dividing an axis, such as channels in groups: rows are one part of it."""
        definition = divided(d, loads(d.value)) if d.reduction is None else None
        if definition is None or not self._joins(cluster, step, definition):
            return False
        step.works = (definition,)
        self.components.renew(step)
        return True

    def _joins(self, cluster: _Cluster, step: Step, d: Definition) -> bool:
        """Add `step` if it reads the cluster only at its own rows and through no other step; return True if added."""
        if len(cluster.steps) >= MEMBERS or (d.reduction is not None and not is_streaming(d, self.constants)):
            return False
        if not cluster.extents and typical(points(d)) > COSTS.single_row_points:
            return False
        rows: tuple[Var, ...] | None = None
        for x in loads(d.value, *d.index):
            if x.buffer.name in cluster.dims:
                here = tuple(x.index[k] for k in cluster.dims[x.buffer.name])
                if not all(isinstance(i, Var) and i in d.axes for i in here) or (rows is not None and here != rows):
                    return False
                rows = tuple(i for i in here if isinstance(i, Var))
            elif self.of.get(id(self.producers.get(x.buffer.name))) is cluster:
                return False
        if rows is None or len(set(rows)) != len(rows) or self._has_detour(cluster, step):
            return False
        if tuple(r.extent for r in rows) != cluster.extents or not variables(*d.target) >= set(rows):
            return False
        self._add(cluster, step, d, rows)
        return True

    def _absorb(self, cluster: _Cluster, d: Definition) -> None:
        """Add elementwise producers of the first reduction's operands: fusion leaves those that are read repeatedly."""
        rows = cluster.rows[id(cluster.steps[0])]
        for x in loads(d.value):
            producer = self.producers.get(x.buffer.name)
            definition = producer.definition if producer is not None else None
            if (
                producer is None
                or definition is None
                or definition.reduction is not None
                or definition.where
                or id(producer) in self.of
            ):
                continue
            has_plain_indices = all(isinstance(i, Var | Const) for i in (*x.index, *definition.target))
            if self.parts.get(definition.out.name) != 1 or not has_plain_indices:
                continue
            dims = [x.index.index(r) if r in x.index else -1 for r in rows]
            producer_axes = tuple(definition.target[k] for k in dims if k >= 0)
            if -1 in dims or not all(isinstance(i, Var) for i in producer_axes) or self._has_detour(cluster, producer):
                continue
            self.components.merge(cluster.steps[0], producer)
            cluster.steps.insert(0, producer)
            cluster.rows[id(producer)] = tuple(i for i in producer_axes if isinstance(i, Var))
            cluster.dims[definition.out.name] = tuple(dims)
            self.of[id(producer)] = cluster

    def _has_detour(self, cluster: _Cluster, step: Step) -> bool:
        """True if the cluster with `step` would depend on itself through other steps."""
        return self.components.between(cluster.steps[0], step) is None


def is_streaming(d: Definition, constants: frozenset[str] = frozenset()) -> bool:
    """True for a reduction that reads each element once: sums, maxima; not products of matrices, not windows.

    Loads of non-constants must move with every output axis, and one of them with all axes.
    """
    reduction = d.reduction
    if reduction is None:
        return False
    sites, known = loads(reduction.body), kept(d, "known_streaming")
    fixed = tuple([x.buffer.name in constants for x in sites])
    if fixed not in known:
        accesses = tuple((x.buffer.strides, x.index, one) for x, one in zip(sites, fixed, strict=True))
        known[fixed] = _is_streaming(d.axes, (*d.axes, *reduction.axes), accesses)
    return known[fixed]


@lru_cache(maxsize=1 << 12)  # passes ask several times, and equal layers read other buffers in the same way
def _is_streaming(
    axes: tuple[Var, ...], all_: tuple[Var, ...], accesses: tuple[tuple[tuple[Size, ...], tuple[Expr, ...], bool], ...]
) -> bool:
    if not all(_reads_once(strides, index, all_) for strides, index, _ in accesses):
        return False
    moving = [variables(*index) for _, index, fixed in accesses if not fixed]
    return all(v >= set(axes) for v in moving) and any(v >= set(all_) for v in moving)


def reads_once(x: Load, axes: Iterable[Var]) -> bool:
    """True if no element is read at two points: with plain indices, or where a dense buffer is read reshaped."""
    return _reads_once(x.buffer.strides, x.index, tuple(axes))


def _reads_once(strides: tuple[Size, ...], index: tuple[Expr, ...], axes: tuple[Var, ...]) -> bool:
    return all(isinstance(i, Var | Const) for i in index) or _reads_each_once(strides, index, axes)


@lru_cache(maxsize=1 << 12)
def _reads_each_once(strides: tuple[Size, ...], index: tuple[Expr, ...], axes: tuple[Var, ...]) -> bool:
    at = element_offset(strides, index)
    terms = at.terms
    if not all(isinstance(i, Var) and isinstance(i.extent, int) and i.low == 0 for i in terms):
        return _runs_through(at, axes)
    reach = 0
    for axis, stride in sorted(terms.items(), key=lambda item: item[1]):
        assert isinstance(axis, Var) and isinstance(axis.extent, int)
        if stride <= reach:
            return False
        reach += stride * (axis.extent - 1)
    return True


def _runs_through(at: Affine, axes: Iterable[Var]) -> bool:
    """True if these axes run through memory element by element, with dynamic strides."""
    steps = {a: coefficient(at, a) for a in axes if a in variables(*at.terms)}
    reach = Affine({}, 1)
    while steps:
        axis = next((a for a, step in steps.items() if step is not None and step.key == reach.key), None)
        if axis is None or axis.low:
            return False
        reach = normal(reach.expr() * as_expr(axis.extent or 1, DType.I64), {})
        del steps[axis]
    return True


def _are_side_by_side(steps: Steps, cluster: _Cluster, innermost: dict[str, int]) -> bool:
    """True if elements at equal positions of neighbouring rows are adjacent, in a layout that is already decided.

    Then lanes run over rows, which needs no group. Decided are the layouts of inputs, of values read reshaped, of
    products, whose lane axis is innermost, and of values computed from these element by element; any other value gets
    the layout that suits a group.
    """
    for step in cluster.steps:
        d, rows = step.definition, cluster.rows[id(step)]
        assert d is not None
        for x in loads(d.value) if d.reduction is not None and rows else ():
            if x.buffer.name in innermost and x.index[innermost[x.buffer.name]] in rows:
                return True
            value = steps.values.get(x.buffer.name)
            reshaped = not all(isinstance(i, Var | Const) for i in x.index)
            if value is None or not (reshaped or value.region is MemoryRegion.INPUT):
                continue
            if offset(x.buffer, x.index).terms.get(rows[-1]) == 1:
                return not isinstance(rows[-1].extent, int) or rows[-1].extent >= COSTS.vector_extent
    return False


def _innermost_dimensions(steps: Steps) -> dict[str, int]:
    """Return the innermost dimensions of products, and of values computed from them element by element."""
    constants = steps.constants()
    innermost_dimensions: dict[str, int] = {}
    for d in (step.definition for step in steps.steps):
        k: int | None = None
        if d is None or (d.reduction is not None and is_streaming(d, constants)):
            continue
        if d.reduction is not None:
            k = _lanes_lie(d, constants)
        elif (x := next((x for x in loads(d.value) if x.buffer.name in innermost_dimensions), None)) is not None:
            terms = normal(x.index[innermost_dimensions[x.buffer.name]], {}).terms
            k = next((dim_of(d.target, a, d.axes) for a in d.axes if terms.get(a) == 1), None)
        if k is not None:
            innermost_dimensions[d.out.name] = k
    return innermost_dimensions


def _lanes_lie(d: Definition, constants: frozenset[str]) -> int | None:
    """Return the dimension along which the lanes of a product run; None if it cannot be known yet.

    If neither factor is constant either axis would do, and after a reshape none is known: then it is the last one,
    if that can be.
    """
    lane_dims = lane_axes(d, constants)
    lanes = [(packed, a) for packed, count, _, a in lane_dims if count >= COSTS.vector_extent]
    dims = [dim_of(d.target, a, d.axes) for _, a in lanes]
    if lanes and lanes[0][0]:
        return dims[0]
    last = len(d.target) - 1
    return last if last in dims or (not lane_dims and d.target and isinstance(d.target[-1], Var)) else None


def _counts(steps: Steps) -> dict[str, int]:
    counts: dict[str, int] = {}
    for step in steps.steps:
        for b in step.writes():
            counts[b.name] = counts.get(b.name, 0) + 1
    return counts


class _Former:
    """Replacement of clusters by groups. `slots`: the steps in order; None for one that has become part of a group."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.slots: list[Step | None] = list(steps.steps)
        self.places = {id(s): n for n, s in enumerate(steps.steps)}
        self.consumers: dict[str, set[int]] = {}
        for step in steps.steps:
            self._read(step)

    def _read(self, step: Step) -> None:
        for x in step.reads():
            self.consumers.setdefault(x.buffer.name, set()).add(id(step))

    def form(self, cluster: _Cluster) -> None:
        """Replace the cluster's steps by one step with a group, unless its rows take too much memory."""
        inside = {id(s) for s in cluster.steps}
        r = (Var("r", volume(cluster.extents)),) if cluster.extents else ()
        temps: dict[str, Buffer] = {}
        own: set[str] = set()
        for step in cluster.steps:
            d = step.definition
            assert d is not None
            name = d.out.name
            arena = self.steps.values[name].region is MemoryRegion.ARENA
            if arena and name in cluster.dims and self.consumers.get(name, set()) <= inside:
                own.add(name)
                temp = _temp(d.out, cluster.dims[name], r)
                if not any(map(self.steps.sizes.is_late, temp.shape[len(r) :])):
                    temps[name] = temp
        if _row_bytes((t for t in temps.values() if t.space is not Space.ARENA), len(r)) > COSTS.row_temporary_bytes:
            return
        definitions = without_tails(tuple(_on_row(s, cluster, r, temps) for s in cluster.steps), r, frozenset(own))
        step = Step((Group("rows", r, tuple(temps.values()), definitions),), _layers(cluster), _kinds(cluster))
        self._replace(cluster, step)
        for name in temps:
            del self.steps.values[name]

    def _replace(self, cluster: _Cluster, step: Step) -> None:
        """Put `step` in the place of the cluster's last step."""
        for s in cluster.steps:
            for x in s.reads():
                self.consumers[x.buffer.name].discard(id(s))
        positions = [self.places.pop(id(s)) for s in cluster.steps]
        for n in positions:
            self.slots[n] = None
        self.slots[max(positions)] = step
        self.places[id(step)] = max(positions)
        self._read(step)


def _layers(cluster: _Cluster) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for s in cluster.steps for n in s.layers))


def _kinds(cluster: _Cluster) -> str:
    return "+".join(dict.fromkeys(s.kind for s in cluster.steps))


def _temp(b: Buffer, dims: tuple[int, ...], r: tuple[Var, ...]) -> Buffer:
    """Make the temporary for a row: a register for one element, the stack for a static or bounded size, else arena."""
    inner = [n for k, n in enumerate(b.shape) if k not in dims and n != 1]
    temp = dense(b.name, *r, *inner, space=Space.STACK if inner else Space.REGISTERS, dtype=b.dtype)
    short = all(isinstance(n, int) for n in inner) or _row_bytes([temp], len(r)) <= COSTS.row_temporary_bytes // 4
    return temp if short else replace(temp, space=Space.ARENA)


def _row_bytes(temps: Iterable[Buffer], rows: int) -> float:
    """Return the most bytes that the temporaries take for a point of the first `rows` axes."""
    return sum(prod(map(_upper_bound, b.shape[rows:])) * b.dtype.stored_bytes for b in temps)


def _upper_bound(n: Size) -> float:
    return n if isinstance(n, int) else bounds(normal(n, {}))[1]


def _on_row(step: Step, cluster: _Cluster, r: tuple[Var, ...], temps: dict[str, Buffer]) -> Definition:
    """Rewrite the definition of `step` with its row axes computed from `r`."""
    d = step.definition
    assert d is not None
    rows = cluster.rows[id(step)]
    change = unravel(rows, *r) if r else {}
    value = simplified(_to_temps(d.value, change, cluster, r, temps))
    axes = (*r, *(a for a in d.axes if a not in rows))
    if d.out.name in temps:
        inner = tuple(i for k, i in enumerate(d.target) if k not in cluster.dims[d.out.name] and d.out.shape[k] != 1)
        return Definition(temps[d.out.name], axes, value, (*r, *inner))
    return Definition(d.out, axes, value, tuple(normal(rewrite(i, change), {}).expr() for i in d.target))


def _to_temps(
    value: Expr, axes: Mapping[Expr, Expr], cluster: _Cluster, r: tuple[Var, ...], temps: dict[str, Buffer]
) -> Expr:
    def change(e: Expr) -> Expr | None:
        if isinstance(e, Var):
            return axes.get(e)
        if isinstance(e, Load) and e.buffer.name in temps:
            dims = cluster.dims[e.buffer.name]
            inner = (i for k, i in enumerate(e.index) if k not in dims and e.buffer.shape[k] != 1)
            return Load(temps[e.buffer.name], (*r, *(rewrite(i, change) for i in inner)))
        return None

    return rewrite(value, change)
