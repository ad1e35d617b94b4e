"""Fusion by the form of definitions: views and producers merge into consumers, epilogues into reductions.

views          v[i, j] = x[j, i]                         into every consumer: indices compose
epilogues      y[p, q] = relu(s[p, q] + b[q])            into s, if s is a reduction without other consumers
producers      e[i] = exp(x[i])                          into its only consumer, or into all if it is cheap
places         c[i, 8 + j] = s[i, j]                     s is written in place, and consumers read it there
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

from aot.codegen.costs import COSTS
from aot.codegen.ir.by_identity import by_identity
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, measure, rewrite, walk
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Var
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, move_loads, rewrite_work
from aot.lowering.context import Context
from aot.lowering.fusion.kept_views import divides_axis, gathers, gathers_rows, reuses, steps_unevenly
from aot.lowering.fusion.substitute import memory_loads, merged_definition, simplified, substitution
from aot.lowering.ir.dependencies import PartIndex, disjoint_test, overlaps
from aot.lowering.ir.steps import Step, Steps

HEAVY = {"exp", "exp_normal", "log", "tanh", "erf", "pow", "sin", "cos", "sqrt", "div"}
DEEPEST, LARGEST = 100, 1 << 12  # limits of merged expressions: depth, and parts, with shared ones counted each time


def fuse_steps(steps: Steps, _context: Context) -> None:
    """Merge steps; results stay equal up to rounding."""
    fuser = _Fuser(steps)
    for change in (fuser.views, fuser.merge, fuser.places, fuser.merge, fuser.results):
        change()
        fuser.sweep()


class _Fuser:
    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.producers: dict[str, dict[int, Step]] = {}  # by name, then by id of the step: many may read one value
        self.consumers: dict[str, dict[int, Step]] = {}
        self.parts: dict[str, PartIndex] = {}
        self.are_disjoint = disjoint_test(steps.is_known)
        self.dropped: dict[int, Step] = {}
        self.cheap: dict[int, tuple[Definition, bool]] = {}  # by id of the definition, which is kept alive
        self.shared = set[str]()  # values whose producers only a single consumer would compute itself
        self.refused: dict[Definition, dict[str, Definition]] = {}  # producers that would make a definition unwieldy
        for step in steps.steps:
            self._link(step)

    def _link(self, step: Step) -> None:
        for b in step.writes():
            self.producers.setdefault(b.name, {})[id(step)] = step
        for name in {x.buffer.name for x in step.reads()}:
            self.consumers.setdefault(name, {})[id(step)] = step

    def _unlink(self, step: Step) -> None:
        for b in step.writes():
            del self.producers[b.name][id(step)]
            self.shared.discard(b.name)
        for name in {x.buffer.name for x in step.reads()}:
            del self.consumers[name][id(step)]

    def _drop(self, step: Step) -> None:
        """Take a step away; `sweep` removes it from the list."""
        self._unlink(step)
        self.dropped[id(step)] = step
        for b in step.writes():
            if not self.producers.get(b.name) and not self.consumers.get(b.name):
                self.steps.values.pop(b.name, None)

    def sweep(self) -> None:
        """Remove the dropped steps, all at once: removing each would search the list from its start."""
        self.steps.steps = [s for s in self.steps.steps if id(s) not in self.dropped]
        self.dropped.clear()

    def _only_producer(self, name: str) -> Step | None:
        """Return the only producer of an intermediate value, if it is one definition that writes every element.

        Else None.
        """
        value = self.steps.values.get(name)
        producers = self.producers.get(name, {})
        if value is None or value.region is not MemoryRegion.ARENA or len(producers) != 1:
            return None
        only = next(iter(producers.values()))
        d = only.definition
        return only if d is not None and not d.where and _covers(d) else None

    def _producers_of(self, name: str) -> list[Step]:
        return list(self.producers.get(name, {}).values())

    def _consumers_of(self, name: str) -> list[Step]:
        return list(self.consumers.get(name, {}).values())

    # ---- views

    def views(self) -> None:
        """Inline views, which copy a part or a permutation: consumers read the source."""
        for step in list(self.steps.steps):
            d = step.definition
            if d is None or not isinstance(d.value, Load) or self._only_producer(d.out.name) is not step:
                continue
            if gathers(d.value.index) or self._is_shuffled(d) or self._is_gathered(d):
                continue
            self._inline_everywhere(step, d)

    def _is_shuffled(self, d: Definition) -> bool:
        """True if a reduction that reads elements repeatedly would step through them unevenly in every layout.

        Or if it is a product of data, one of whose axes the view divides: as rows or columns it would be two axes.
        """
        consumers = [r for s in self._consumers_of(d.out.name) if (r := s.definition) is not None]
        again = [r for r in consumers if r.reduction is not None and reuses(r, d.out.name)]
        products = (r for r in again if self._multiplies_data(r))
        return any(steps_unevenly(r, d) for r in again) or any(divides_axis(r, d) for r in products)

    def _multiplies_data(self, d: Definition) -> bool:
        assert d.reduction is not None
        values = {x.buffer.name for x in memory_loads(d.reduction.body)}
        return len(values) > 1 and all(self.steps.values[n].region is not MemoryRegion.CONSTANT for n in values)

    def _is_gathered(self, d: Definition) -> bool:
        """True if a consumer gathers most rows of this transpose, which would be strided without the copy."""
        if not isinstance(d.value, Load) or not d.target or not d.value.index or d.target[-1] == d.value.index[-1]:
            return False
        consumers = [r for s in self._consumers_of(d.out.name) if (r := s.definition) is not None]
        return any(gathers_rows(r, d.out) for r in consumers)

    def _inline_everywhere(self, step: Step, d: Definition) -> None:
        for consumer in self._consumers_of(d.out.name):
            self._replace(consumer, tuple(rewrite_work(w, substitution(d)) for w in consumer.works), step.layers)
        self._drop(step)

    def _replace(self, step: Step, works: tuple[Work, ...], layers: tuple[str, ...]) -> None:
        self._unlink(step)
        step.works = works
        step.layers = tuple(dict.fromkeys((*layers, *step.layers)))
        self._link(step)

    # ---- epilogues and producers

    def merge(self) -> None:
        settled = set[str]()
        for step in list(self.steps.steps):
            if step.definition is None:
                continue
            while self._inline_producer(step, settled):
                pass
            while self._append_epilogue(step):
                pass

    def _inline_producer(self, step: Step, settled: set[str]) -> bool:
        """Inline one producer without a reduction into `step`; True if there was one.

        `settled`: names of values whose producers cannot be inlined, whatever else is.
        """
        d = step.definition
        assert d is not None
        refused = self.refused.get(d, {}) if self.refused else {}
        for name, sites in Counter(x.buffer.name for x in loads(d.value, *d.index)).items():
            if name in settled or (name in self.shared and len(self.consumers[name]) > 1):
                continue
            producer = self._only_producer(name)
            produced = producer.definition if producer is not None else None
            if producer is None or produced is None or produced.reduction is not None:
                settled.add(name)
                continue
            if refused.get(name) is produced:
                continue
            alone = len(self.consumers[name]) == 1
            if not alone and not self._is_cheap(produced):
                self.shared.add(name)
                continue
            if not self._pays(produced, d, sites):
                continue
            merged = merged_definition(d, produced)
            if _is_unwieldy(merged):
                self.refused.setdefault(d, {})[name] = produced
                continue
            if (
                self.refused and produced in self.refused and _holds_whole(d, produced)
            ):  # an unwieldy part makes the whole unwieldy
                self.refused.setdefault(merged, {}).update(self.refused[produced])
            self._replace(step, (merged,), producer.layers)
            if alone:
                self._drop(producer)
            return True
        return False

    def _pays(self, produced: Definition, d: Definition, sites: int) -> bool:
        """True if `produced` is cheap or its elements are read about once; a reduction that rereads them needs memory.

        `sites`: places at which `d` reads it.
        """
        if self._is_gathered(produced):
            return False
        if d.reduction is None and self._is_cheap(produced):
            return True
        return sites == 1 and not reuses(d, produced.out.name)

    def _is_cheap(self, produced: Definition) -> bool:
        entry = self.cheap.get(id(produced))
        if entry is None or entry[0] is not produced:
            entry = self.cheap[id(produced)] = produced, is_cheap(produced, self.steps)
        return entry[1]

    def _append_epilogue(self, step: Step) -> bool:
        """Append `step` to a reduction that it reads whole, as the only consumer; True if there was one."""
        d = step.definition
        if d is None or d.reduction is not None:
            return False
        for name in reversed(list(dict.fromkeys(x.buffer.name for x in loads(d.value)))):
            if len(self.consumers.get(name, ())) != 1:
                continue
            producer = self._only_producer(name)
            produced = producer.definition if producer is not None else None
            if producer is None or produced is None or produced.reduction is None:
                continue
            merged = _append(produced, d)
            if merged is None or _is_unwieldy(merged):
                continue
            self._replace(step, (merged,), producer.layers)
            step.kind = producer.kind
            self._drop(producer)
            return True
        return False

    # ---- places

    def places(self) -> None:
        """Write a value that is copied whole into a part of another one directly to that part."""
        self.parts.clear()
        for step in list(self.steps.steps):
            d = step.definition
            if d is None or not isinstance(d.value, Load) or d.where:
                continue
            source = d.value.buffer
            value = self.steps.values[source.name]
            index = _inverse(d, d.value)
            if index is None or value.region is not MemoryRegion.ARENA or not self._movable(source, d.out):
                continue
            if not all(self._late(step) <= self._late(producer) for producer in self._producers_of(source.name)):
                continue  # its place is not yet known when it is computed
            self._move(step, source, d, index)

    def results(self) -> None:
        """Let loops and copies write directly to a result that only copies their output."""
        for step in list(self.steps.steps):
            d = step.definition
            if d is None or step.kind != "Result" or not isinstance(d.value, Load) or d.value.index != d.target:
                continue
            source, producers = d.value.buffer, self._producers_of(d.value.buffer.name)
            alike = source.shape == d.out.shape and source.dtype is d.out.dtype and _covers(d)
            if not alike or self.steps.values[source.name].region is not MemoryRegion.ARENA:
                continue
            if self.steps.values[d.out.name].half is not None and len(self.consumers[source.name]) > 1:
                continue  # the loop that carries it overwrites it, and others may read it after the loop
            known = all(self._late(step) <= self._late(producer) for producer in producers)
            by_loops = all(s.works and s.definition is None for s in producers)
            if producers and (by_loops or (known and self._is_copied(source.name))):
                for producer in producers:
                    self._replace(producer, tuple(_renamed(w, source, d.out) for w in producer.works), ())
                self._drop(step)
                for consumer in self._consumers_of(source.name):
                    self._replace(consumer, tuple(_renamed(w, source, d.out) for w in consumer.works), ())
                self.steps.values.pop(source.name, None)

    def _is_copied(self, name: str) -> bool:
        """True if only copies produce the value and no consumer rereads it, which would choose a layout of its own."""
        written = [s.definition for s in self._producers_of(name)]
        read = [s.definition for s in self._consumers_of(name)]
        copied = all(d is not None and isinstance(d.value, Load) for d in written)
        return copied and all(d is not None and (d.reduction is None or not reuses(d, name)) for d in read)

    def _late(self, step: Step) -> frozenset[Var]:
        return self.steps.sizes.late_of(*step.sizes()) if self.steps.sizes.late else frozenset()

    def _movable(self, source: Buffer, target: Buffer) -> bool:
        if source.name == target.name or source.dtype is not target.dtype:
            return False
        if self.steps.values[target.name].region is not MemoryRegion.ARENA:
            return False
        producers = self._producers_of(source.name)
        return bool(producers) and all(s.definition is not None for s in producers)

    def _touches_others(self, load: Load, step: Step) -> bool:
        """True if `load` reads parts of its buffer that steps other than `step` write."""
        name = load.buffer.name
        if name not in self.parts:
            self.parts[name] = PartIndex(name, self._producers_of(name))
        return any(s is not step and overlaps(load, s, self.are_disjoint) for s in self.parts[name].near(load))

    def _move(self, step: Step, source: Buffer, d: Definition, back: dict[Var, int]) -> None:
        def at(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
            change: dict[Expr, Expr] = {axis: index[k] for axis, k in back.items()}
            return tuple(normal(rewrite(i, change), {}).expr() for i in d.target)

        def change(e: Expr) -> Expr | None:
            if isinstance(e, Load) and e.buffer.name == source.name:
                return Load(d.out, at(tuple(rewrite(i, change) for i in e.index)))
            return None

        reads = (x for s in self._consumers_of(source.name) if s is not step for x in s.reads())
        new_loads = (Load(d.out, at(x.index)) for x in reads if x.buffer.name == source.name)
        if self.producers[d.out.name].keys() - {id(step)} and any(self._touches_others(x, step) for x in new_loads):
            return  # a false dependency: consumers of this part would seem to need others, perhaps in a cycle
        self._drop(step)
        producers = self._producers_of(source.name)
        for producer in producers:
            definition = producer.definition
            assert definition is not None
            self._replace(producer, (replace(definition, out=d.out, index=at(definition.target)),), step.layers)
        if d.out.name in self.parts and not self.parts[d.out.name].replace(step, producers):
            del self.parts[d.out.name]
        for consumer in self._consumers_of(source.name):
            self._replace(consumer, tuple(rewrite_work(w, change) for w in consumer.works), ())
        self.steps.values.pop(source.name, None)


def _renamed(work: Work, old: Buffer, new: Buffer) -> Work:
    return rewrite_work(work, move_loads({old.name: new}), lambda b: new if b.name == old.name else b)


@by_identity(0, "is_whole")
def _covers(d: Definition) -> bool:
    """True if the definition writes every element of its output, one axis for each dimension."""
    for i, n in zip(d.target, d.out.shape, strict=True):
        if not ((isinstance(i, Var) and i.extent == n) or (i == Const(0) and n == 1)):
            return False
    return len({i for i in d.target if isinstance(i, Var)}) == sum(isinstance(i, Var) for i in d.target)


def _inverse(d: Definition, load: Load) -> dict[Var, int] | None:
    """Return the dimension of the loaded value for each axis of `d`.

    None unless the load reads all of it in some order.
    """
    inverse: dict[Var, int] = {}
    for k, (i, n) in enumerate(zip(load.index, load.buffer.shape, strict=True)):
        if i == Const(0) and n == 1:
            continue
        if not isinstance(i, Var) or i in inverse or i not in d.axes or i.extent != n:
            return None
        inverse[i] = k
    return inverse if set(inverse) == set(d.axes) else None


def _append(produced: Definition, d: Definition) -> Definition | None:
    """Append `d` to `produced`; None unless it reads all of it at one place, in some order, and not as an index."""
    sites = [x for x in loads(d.value) if x.buffer.name == produced.out.name]
    back = _inverse(d, sites[0]) if len(sites) == 1 else None
    if back is None or any(sites[0] in walk(*x.index) for x in loads(d.value)):
        return None
    change: dict[Expr, Expr] = {axis: produced.target[k] for axis, k in back.items()}
    change[sites[0]] = produced.value
    value = simplified(rewrite(d.value, change))
    return Definition(d.out, produced.axes, value, tuple(rewrite(i, change) for i in d.target))


def _holds_whole(d: Definition, produced: Definition) -> bool:
    """True if merging `produced` into `d` keeps its value unchanged."""
    sites = (x for x in loads(d.value, *d.index) if x.buffer.name == produced.out.name)
    return all(x.index == produced.target for x in sites) and simplified(produced.value) is produced.value


def _is_unwieldy(work: Work) -> bool:
    """True if an expression is too deep or too large to be walked part by part."""
    depth, size = measure(work.value) if isinstance(work, Definition) else (0, 0)
    return depth > DEEPEST or size > LARGEST


def is_cheap(d: Definition, steps: Steps) -> bool:
    """True if an expression costs no more than a load: at most one load of data and a few simple operations."""
    inner = [x for x in memory_loads(d.value) if steps.values[x.buffer.name].region is not MemoryRegion.CONSTANT]
    if len(inner) > 1:
        return False
    indices = {e for x in loads(d.value) for e in walk(*x.index)}
    prims = (e for e in walk(d.value) if isinstance(e, Prim) and e not in indices)
    first = list(
        islice(prims, COSTS.max_recomputed_operations + 1)
    )  # no more are looked at: merged expressions are large
    return len(first) <= COSTS.max_recomputed_operations and not any(p.fn in HEAVY for p in first)
