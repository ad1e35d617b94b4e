"""Rounds the data of products with weights of at most 8 bits to 8 bits where they are computed: `--activations int8`.

    add[k](x[i, k] w[k, j])     w: bytes times scales      k = 64 g + e

    s[i, g]    = max[e](|x[i, k]|) / 127
    q[i, g, e] = i8(round(x[i, k] / s[i, g]))      ->      add[g, e](f32(q[i, g, e]) s[i, g] w[k, j])

Numbers of a group share a scale. Rows that no group divides, and rows of several axes, have one scale.
`use_integer_dots` makes sums of integers of these products, if weights have a scale for each output; for weights in
groups `group_sums` makes them. They are exact, so a row has the same results alone and among others.

The state of a recurrence is rounded in each of its steps, with one scale for each sequence:

    gates[b, g] = add[k](h[t, b, k] n[g, k] t[g])     q[b, k] = u8(round(h[t, b, k] / s[b]) + 128)

    gates[b, g] = (add[k](q[b, k] n[g, k]) - 128 add[k](n[g, k])) s[b] t[g]

Weights n + c[g] that fit no i8 add c[g] times the sum of the rounded state.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import typical, varies, volume
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Size, Var, cast, dense, prim
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, rewrite_work
from aot.ir.values.deferred import LEAST_ELEMENTS, Deferred, release
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps, Value
from aot.lowering.numbers.group_sums import LENGTHS, Data, GroupWeights, group_length
from aot.lowering.numbers.use_integer_dots import middle_of
from aot.lowering.storage.compressed import scaled
from aot.lowering.storage.integers import whole_numbers
from aot.lowering.storage.scale_groups import NIBBLE, in_parts
from aot.opset.base.row_major import ravel
from aot.runtime.abi import DType

GROUPS = (64, 32)  # numbers that share a scale, in the order in which they are tried
MIDDLE = 128  # added to rounded states so that they are unsigned bytes
LEVELS = 127.0  # steps from 0 to the largest number of a group
SMALLEST = 2.0**-100  # largest number of a group of zeros: its scale has a reciprocal

# reasons why a product stays in f32
NO_SMALL_WEIGHTS = "weights are no integers of 8 bits or less, or have groups that 16 does not divide"
WINDOWS = "windows of data overlap or are padded"
GIVEN = "data are a state of the model, or no f32"
FEW_OUTPUTS = f"there are fewer than {COSTS.min_dot_outputs} outputs"
NO_DOTS = "the target sums no products of bytes or i16"


def quantize_activations(steps: Steps, context: Context) -> None:
    """Round the data of products with weights of 8 bits, where the target sums products of bytes."""
    target = context.target
    if target.abilities.dots:
        _Rounded(steps, DType.I8 if target.abilities.dots == 4 else DType.I16, target.abilities.signs_dots).run()
    else:
        steps.in_floats.setdefault(NO_DOTS, [])


class _Rounded:
    def __init__(self, steps: Steps, dtype: DType, signs: bool) -> None:
        """`signs`: instructions multiply signed bytes only."""
        self.steps, self.dtype, self.signs = steps, dtype, signs
        # rounded data, by the value that they are of, then by what is read of it
        self.done: dict[str, dict[tuple[Load, tuple[Var, ...], tuple[Var, ...]], Data]] = {}
        self.totals: dict[Load, Load] = {}  # of rounded data
        self.groups: dict[str, GroupWeights] = {}  # by the constant that they were made of

    def run(self) -> None:
        steps: list[Step] = []
        for step in self.steps.steps:
            for b in step.writes():
                self.done.pop(b.name, None)
            if len(step.works) == 1:
                step.works = (self._changed(step.works[0], step, steps),)
            else:
                step.works = tuple(self._recurrence(w, step) if isinstance(w, Group) else w for w in step.works)
            steps.append(step)
        self.steps.steps = steps
        for step in steps if self.groups else ():
            if any(x.buffer.name in self.groups and loads(*x.index) for x in step.reads()):
                step.works = tuple(rewrite_work(w, self._gathered) for w in step.works)

    def _gathered(self, e: Expr) -> Expr | None:
        """Return an element of a gathered row as the product reads it: the library then has the constant once."""
        if not isinstance(e, Load) or e.buffer.name not in self.groups or not loads(*e.index):
            return None
        return self.groups[e.buffer.name].element_at(tuple(rewrite(i, self._gathered) for i in e.index))

    def _recurrence(self, g: Group, step: Step) -> Group:
        """Return a recurrence with products that read rounded states."""
        members: list[Definition | Group] = []
        for d in g.members:
            r = d.reduction if isinstance(d, Definition) else None
            factors = None if r is None else self._factors(r)
            if factors is not None and r is not None and isinstance(d, Definition):
                x, w = factors
                why = self._obstacle(x, w, d, r)
                definitions = self._of_state(x, w, d, r, g) if not why and isinstance(x, Load) else None
                if definitions is not None:
                    members += definitions
                    continue
                self.steps.in_floats.setdefault(why or NO_SMALL_WEIGHTS, []).extend(step.layers[:1])
            members.append(d)
        return replace(g, members=tuple(members))

    def _of_state(self, x: Load, w: Load, d: Definition, r: Reduce, g: Group) -> tuple[Definition, ...] | None:
        """Return the definitions that round a state, then its product; None if weights do not fit bytes."""
        sums = tuple(k for k, i in enumerate(w.index) if i in r.axes)
        value = self.steps.values[w.buffer.name].data
        numbers = whole_numbers(value, sums, 255) if value is not None and self._is_small(w, r) else None
        shift = None if numbers is None else middle_of(numbers[0], sums, DType.I8)
        if numbers is None or shift is None:
            return None
        integers, factors = numbers[0] - shift, numbers[1]
        name, constant = d.out.name, self.steps.constant
        weights = constant(f"{w.buffer.name}.whole", integers.astype(np.int8))
        total = constant(f"{w.buffer.name}.sums", integers.sum(sums, np.int32, keepdims=True))
        factor = constant(f"{w.buffer.name}.scale", factors)
        shared = tuple(Const(0) if i in r.axes else i for i in w.index)

        rows = (*g.axes, *(a for a in d.axes if a in variables(*x.index) and a not in g.axes))
        dimensions = [(i, n) for i, n in zip(x.index, x.buffer.shape, strict=True) if i not in g.axes]
        largest = prim("max", Reduce("max", r.axes, prim("abs", x)), SMALLEST)
        own = [(i, n) for i, n in dimensions if i not in r.axes]
        scale, scaling = self._of_step(f"{name}.step", rows, largest * (1 / LEVELS), DType.F32, own)
        levels = prim("min", prim("max", prim("round_even", x / scale), -LEVELS), LEVELS)
        unsigned = cast(levels + MIDDLE, DType.U8)
        byte, rounding = self._of_step(f"{name}.rounded", (*rows, *r.axes), unsigned, DType.U8, dimensions)
        product = Reduce("add", r.axes, cast(byte, DType.I32) * cast(Load(weights, w.index), DType.I32))
        exact, before = product - Load(total, shared) * MIDDLE, (scaling, rounding)
        if shift.any():
            count = integers.size // factors.size
            states = Reduce("add", r.axes, cast(byte, DType.I32)) - count * MIDDLE
            summed, summing = self._of_step(f"{name}.total", rows, states, DType.I32, own)
            exact = exact + summed * Load(constant(f"{w.buffer.name}.shift", shift), shared)
            before += (summing,)
        rescaled = cast(exact, DType.F32) * (scale * Load(factor, shared))
        return *before, replace(d, value=rewrite(d.value, {r: rescaled if r.init is None else rescaled + r.init}))

    def _of_step(
        self, name: str, axes: tuple[Var, ...], value: Expr, dtype: DType, indexed: list[tuple[Expr, Size]]
    ) -> tuple[Load, Definition]:
        """Return the memory of a value that each step of a recurrence computes anew, and its definition."""
        buffer = dense(self.steps.unused(name), *(n for _, n in indexed), dtype=dtype)
        self.steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA)
        index = tuple(i for i, _ in indexed)
        return Load(buffer, index), Definition(buffer, axes, value, index)

    def _changed(self, d: Work, step: Step, before: list[Step]) -> Work:
        """Return a product of rounded data; the steps that round them are added to those `before`."""
        r = d.reduction if isinstance(d, Definition) else None
        factors = None if r is None else self._factors(r)
        if r is None or factors is None or not isinstance(d, Definition):
            return d
        x, w = factors
        why = self._obstacle(x, w, d, r)
        if not why and isinstance(x, Load):
            if self._is_small(w, r):
                return _with_sum(d, r, self._in_steps(x, w, d, r, step, before))
            if (weights := self._in_groups(w, r)) is not None:
                return _with_sum(d, r, self._of_groups(x, weights, d, r, step, before))
        self.steps.in_floats.setdefault(why or NO_SMALL_WEIGHTS, []).extend(step.layers[:1])
        return d

    def _factors(self, r: Reduce) -> tuple[Expr, Load] | None:
        """Return data and weights of a product with a constant."""
        if r.fn != "add" or r.dtype is not DType.F32 or not isinstance(r.body, Prim) or r.body.fn != "mul":
            return None
        one, other = r.body.args
        for x, w in ((one, other), (other, one)):
            value = self.steps.values.get(w.buffer.name) if isinstance(w, Load) else None
            if isinstance(w, Load) and value is not None and value.data is not None and value.arrange is None:
                reads_all_terms = set(r.axes) <= set(w.index)
                large = value.data.size >= COSTS.min_compressed_elements
                return (x, w) if reads_all_terms and (large or self._is_small(w, r)) else None
        return None

    def _obstacle(self, x: Expr, w: Load, d: Definition, r: Reduce) -> str:
        """Return why the data of a product cannot be rounded; "" if they can."""
        if varies(r.axes) or d.where or any(a.low for a in d.axes) or not isinstance(x, Load) or not _is_a_row(x, r):
            return WINDOWS
        value = self.steps.values.get(x.buffer.name)
        if value is None or value.region not in (MemoryRegion.ARENA, MemoryRegion.INPUT) or x.dtype is not DType.F32:
            return GIVEN
        lanes = [typical(a.extent or 1) for a in d.axes if a in w.index and a not in variables(*x.index)]
        return "" if max(lanes, default=0) >= COSTS.min_dot_outputs else FEW_OUTPUTS

    def _is_small(self, w: Load, r: Reduce) -> bool:
        """True if weights are numbers of 8 bits with a scale for each output; of 4, if no groups divide the sum."""
        data = self.steps.values[w.buffer.name].data
        sums = tuple(k for k, i in enumerate(w.index) if i in r.axes)
        if not isinstance(data, Deferred):
            return data is not None and data.size < LEAST_ELEMENTS and whole_numbers(data, sums, 255) is not None
        weights = scaled(data, data.shape)
        if weights is None or not weights.is_shared(sums):
            return False
        pairs = len(sums) == 1 and data.shape[sums[0]] % LENGTHS[-1] == 0
        if not pairs:
            return True
        return weights.seen.dtype is not DType.U4 and int(weights.numbers.max()) - int(weights.numbers.min()) > NIBBLE

    def _in_steps(self, x: Load, w: Load, d: Definition, r: Reduce, step: Step, before: list[Step]) -> Reduce:
        """Return the product of rounded data and weights that have a scale for each output."""
        groups, inner, index_by_axis = _in_groups(r.axes)
        data = self._rounded(Load(x.buffer, _in_parts(x, index_by_axis)), d, (groups, inner), step, before)
        numbers = cast(cast(data.numbers, DType.I32), DType.F32) * data.scale
        return Reduce(r.fn, (*groups, *inner), numbers * Load(w.buffer, _in_parts(w, index_by_axis)), r.init)

    def _in_groups(self, w: Load, r: Reduce) -> GroupWeights | None:
        """Return weights with a scale for each group of inputs, as unsigned numbers."""
        data = self.steps.values[w.buffer.name].data
        if len(r.axes) != 1 or data is None or data.size < COSTS.min_compressed_elements:
            return None
        if not isinstance(data, Deferred) and (data.size >= LEAST_ELEMENTS or data.dtype != np.float32):
            return None
        (axis,) = r.axes
        parts = in_parts(data, (w.index.index(axis),))
        release(data)
        length = 0 if parts is None else group_length(parts, typical(axis.extent or 1))
        if parts is None or not length or parts.codes is not None:
            return None
        return GroupWeights(self.steps, w, axis, parts, length, 4 if self.dtype is DType.I8 else 2, self.signs)

    def _of_groups(
        self, x: Load, weights: GroupWeights, d: Definition, r: Reduce, step: Step, before: list[Step]
    ) -> Reduce:
        """Return the product of rounded data and weights in groups."""
        axis, group = r.axes[0], weights.group
        self.groups[weights.w.buffer.name] = weights
        element = Var(f"{axis.name}e", weights.length)
        read = Load(x.buffer, _in_parts(x, {axis: group * weights.length + element}))
        data = self._rounded(read, d, ((group,), (element,)), step, before)
        total = None if weights.zero == 0 else self._total(data, element, step, before)
        return replace(weights.sum(data, total), init=r.init)

    def _rounded(
        self, x: Load, d: Definition, parts: tuple[tuple[Var, ...], tuple[Var, ...]], step: Step, before: list[Step]
    ) -> Data:
        """Return rounded data. `parts`: the axes of groups, and the axes of the elements of a group."""
        rows, (groups, inner) = tuple(a for a in d.axes if a in variables(*x.index)), parts
        key, done = (x, rows, inner), self.done.setdefault(x.buffer.name, {})
        if key not in done:
            name, outer = d.out.name, (*rows, *groups)
            largest = prim("max", Reduce("max", inner, prim("abs", x)), SMALLEST)
            scale = self._add_step(f"{name}.step", outer, largest * (1 / LEVELS), DType.F32, step, before)
            inverse = self._add_step(f"{name}.inverse", outer, 1.0 / scale, DType.F32, step, before)
            levels = prim("min", prim("max", prim("round_even", x * inverse), -LEVELS), LEVELS)
            joined = len(groups) + len(inner)
            byte = self._add_step(
                f"{name}.rounded", (*outer, *inner), cast(levels, self.dtype), self.dtype, step, before, joined
            )
            done[key] = Data(byte, scale, levels)
        return done[key]

    def _total(self, data: Data, element: Var, step: Step, before: list[Step]) -> Load:
        """Return minus the sum of the rounded data of each group."""
        if data.numbers not in self.totals:
            axes = tuple(i for i in data.scale.index if isinstance(i, Var))
            summed = Reduce("add", (element,), data.near) * -1.0
            name = f"{data.numbers.buffer.name}.total"
            self.totals[data.numbers] = self._add_step(name, axes, summed, DType.F32, step, before)
        return self.totals[data.numbers]

    def _add_step(
        self,
        name: str,
        axes: tuple[Var, ...],
        value: Expr,
        dtype: DType,
        step: Step,
        before: list[Step],
        joined: int = 0,
    ) -> Load:
        """Add a step that computes a value over `axes`; the last `joined` of them form one dimension."""
        cut = len(axes) - joined
        sizes = [a.extent if a.extent is not None else 1 for a in axes]
        index = (*axes[:cut], ravel(axes[cut:], sizes[cut:])) if joined else axes
        buffer = dense(self.steps.unused(name), *sizes[:cut], *([volume(sizes[cut:])] if joined else []), dtype=dtype)
        self.steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA, holds_bytes=dtype is DType.I16)
        before.append(Step((Definition(buffer, axes, value, index),), step.layers, "Quantise"))
        return Load(buffer, index)


def _with_sum(d: Definition, r: Reduce, changed: Reduce) -> Definition:
    return replace(d, value=rewrite(d.value, {r: changed}))


def _is_a_row(x: Load, r: Reduce) -> bool:
    """True if the sum runs over data that no other sum with other data reads: no windows that overlap."""
    sums = set(r.axes)
    return sums <= variables(*x.index) and not any(variables(i) & sums and variables(i) - sums for i in x.index)


def _in_groups(axes: tuple[Var, ...]) -> tuple[tuple[Var, ...], tuple[Var, ...], dict[Expr, Expr]]:
    """Divide the axis of a sum: return the axes of groups and of elements, and the new index."""
    axis = axes[0]
    size = next((n for n in GROUPS if isinstance(axis.extent, int) and axis.extent % n == 0), 0)
    if len(axes) > 1 or not size or not isinstance(axis.extent, int) or axis.extent == size:
        return (), axes, {}
    group, element = Var(f"{axis.name}g", axis.extent // size), Var(f"{axis.name}e", size)
    return (group,), (element,), {axis: group * size + element}


def _in_parts(x: Load, index_by_axis: dict[Expr, Expr]) -> tuple[Expr, ...]:
    return tuple(rewrite(i, index_by_axis) for i in x.index)
