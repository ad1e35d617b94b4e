"""Data of products with weights of 8 bits, rounded to 8 bits as they are computed: `--activations int8`.

    add[k](x[i, k] w[k, j])     w: bytes times scales      k = 64 g + e

    s[i, g]    = max[e](|x[i, k]|) / 127
    q[i, g, e] = i8(round(x[i, k] / s[i, g]))      ->      add[g, e](f32(q[i, g, e]) s[i, g] w[k, j])

Numbers of a group share a scale. Rows that no group divides, and those of several axes, have one scale.
`use_integer_dots` makes sums of integers of these products. They are exact, so a row has the same results alone and
among others.
"""

from __future__ import annotations

from dataclasses import replace

from aot.ir.values.deferred import LEAST_ELEMENTS, Deferred
from aot.lowering.ir.steps import Step, Steps, Value
from aot.lowering.storage.compressed import scaled
from aot.lowering.storage.integers import whole_numbers
from codegen.costs import COSTS
from codegen.ir.access import known, varies
from codegen.ir.definition import Definition
from codegen.ir.expressions import rewrite, variables
from codegen.ir.loops import Expr, Load, Prim, Reduce, Var, cast, dense, prim
from codegen.ir.program import Region
from codegen.target import Target
from runtime.abi import DType

GROUPS = (64, 32)  # numbers that share a scale, in the order in which they are tried
LEVELS = 127.0  # steps from 0 to the largest number of a group
SMALLEST = 2.0**-100  # largest number of a group of zeros: its scale has a reciprocal


def quantise_activations(steps: Steps, target: Target) -> None:
    """Round the data of products with weights of 8 bits, where the target sums products of bytes."""
    if target.dots:
        _Rounded(steps, DType.I8 if target.dots == 4 else DType.I16).run()


class _Rounded:
    def __init__(self, steps: Steps, dtype: DType) -> None:
        self.steps, self.dtype = steps, dtype
        self.done: dict[tuple[Load, tuple[Var, ...], tuple[Var, ...]], Expr] = {}  # rounded data of what is read

    def run(self) -> None:
        found: list[Step] = []
        for step in self.steps.steps:
            for b in step.writes():
                self.done = {key: e for key, e in self.done.items() if key[0].buffer.name != b.name}
            factors = self._factors(step.definition)
            if factors is not None and step.definition is not None:
                step.works = (self._changed(step.definition, *factors, step, found),)
            found.append(step)
        self.steps.steps = found

    def _factors(self, d: Definition | None) -> tuple[Load, Load] | None:
        """Return data and weights of a product that may be rounded; None for other definitions."""
        r = d.reduction if d is not None else None
        if d is None or r is None or r.fn != "add" or r.dtype is not DType.F32 or varies(r.axes):
            return None
        if d.where or any(a.low for a in d.axes) or not isinstance(r.body, Prim) or r.body.fn != "mul":
            return None
        one, other = r.body.args
        for x, w in ((one, other), (other, one)):
            if not isinstance(x, Load) or not isinstance(w, Load) or not self._is_small(w, r):
                continue
            lanes = [known(a.extent or 1) for a in d.axes if a in w.index and a not in variables(*x.index)]
            value = self.steps.values.get(x.buffer.name)
            ours = value is not None and value.region is Region.ARENA and x.dtype is DType.F32
            if ours and max(lanes, default=0) >= COSTS.min_dot_outputs and _is_a_row(x, r):
                return x, w
        return None

    def _is_small(self, w: Load, r: Reduce) -> bool:
        """True if weights are numbers of 8 bits with a scale for each output."""
        value = self.steps.values.get(w.buffer.name)
        if value is None or value.data is None or value.arrange is not None or not set(r.axes) <= set(w.index):
            return False
        sums = tuple(k for k, i in enumerate(w.index) if i in r.axes)
        if not isinstance(value.data, Deferred):
            return value.data.size < LEAST_ELEMENTS and whole_numbers(value.data, sums, 255) is not None
        found = scaled(value.data, value.data.shape)
        return found is not None and found.is_shared(sums)

    def _changed(self, d: Definition, x: Load, w: Load, step: Step, before: list[Step]) -> Definition:
        """Return a product of rounded data; the steps that round them are added to those `before`."""
        r = d.reduction
        assert r is not None
        groups, inner, whole = _in_groups(r.axes)
        data = self._rounded(Load(x.buffer, _in_parts(x, whole)), d, (groups, inner), step, before)
        changed = Reduce(r.fn, (*groups, *inner), data * Load(w.buffer, _in_parts(w, whole)), r.init)
        return replace(d, value=rewrite(d.value, {r: changed}))

    def _rounded(
        self, x: Load, d: Definition, parts: tuple[tuple[Var, ...], tuple[Var, ...]], step: Step, before: list[Step]
    ) -> Expr:
        """Return rounded data as numbers. `parts`: the axes of groups, and those of the elements of a group."""
        rows, (groups, inner) = tuple(a for a in d.axes if a in variables(*x.index)), parts
        key = x, rows, inner
        if key not in self.done:
            name, outer = d.out.name, (*rows, *groups)
            largest = prim("max", Reduce("max", inner, prim("abs", x)), SMALLEST)
            scale = self._made(f"{name}.step", outer, largest * (1 / LEVELS), DType.F32, step, before)
            inverse = self._made(f"{name}.inverse", outer, 1.0 / scale, DType.F32, step, before)
            near = prim("min", prim("max", prim("round_even", x * inverse), -LEVELS), LEVELS)
            byte = self._made(f"{name}.rounded", (*outer, *inner), cast(near, self.dtype), self.dtype, step, before)
            self.done[key] = cast(cast(byte, DType.I32), DType.F32) * scale
        return self.done[key]

    def _made(
        self, name: str, axes: tuple[Var, ...], value: Expr, dtype: DType, step: Step, before: list[Step]
    ) -> Load:
        """Add a step that computes a value over `axes`, and return its elements."""
        extents = (a.extent if a.extent is not None else 1 for a in axes)
        made = dense(self.steps.unused(name), *extents, dtype=dtype)
        self.steps.values[made.name] = Value(made, Region.ARENA, holds_bytes=dtype is DType.I16)
        before.append(Step((Definition(made, axes, value, axes),), step.layers, "Quantise"))
        return Load(made, axes)


def _is_a_row(x: Load, r: Reduce) -> bool:
    """True if the sum runs over data that no other sum with other data reads: no windows that overlap."""
    sums = set(r.axes)
    return sums <= variables(*x.index) and not any(variables(i) & sums and variables(i) - sums for i in x.index)


def _in_groups(axes: tuple[Var, ...]) -> tuple[tuple[Var, ...], tuple[Var, ...], dict[Expr, Expr]]:
    """Divide the axis of a sum: return the axis of groups, if there are any, that of elements, and what it becomes."""
    axis = axes[0]
    size = next((n for n in GROUPS if isinstance(axis.extent, int) and axis.extent % n == 0), 0)
    if len(axes) > 1 or not size or not isinstance(axis.extent, int) or axis.extent == size:
        return (), axes, {}
    group, element = Var(f"{axis.name}g", axis.extent // size), Var(f"{axis.name}e", size)
    return (group,), (element,), {axis: group * size + element}


def _in_parts(x: Load, whole: dict[Expr, Expr]) -> tuple[Expr, ...]:
    return tuple(rewrite(i, whole) for i in x.index)
