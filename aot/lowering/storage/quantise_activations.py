"""Data of products with weights of 8 bits, rounded to 8 bits row by row as they are computed: `--activations int8`.

    add[k](x[i, k] w[k, j])     w: bytes times scales

    s[i]    = max[k](|x[i, k]|) / 127
    q[i, k] = i8(round(x[i, k] / s[i]))      ->      add[k](f32(q[i, k]) s[i] w[k, j])

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

LEVELS = 127.0  # steps from 0 to the largest number of a row
SMALLEST = 2.0**-100  # largest number of a row of zeros: its scale has a reciprocal


def quantise_activations(steps: Steps, target: Target) -> None:
    """Round the data of products with weights of 8 bits, where the target sums products of bytes."""
    if target.dots:
        _Rounded(steps, DType.I8 if target.dots == 4 else DType.I16).run()


class _Rounded:
    def __init__(self, steps: Steps, dtype: DType) -> None:
        self.steps, self.dtype = steps, dtype
        self.done: dict[tuple[Load, tuple[Var, ...], tuple[Var, ...]], Expr] = {}

    def run(self) -> None:
        found: list[Step] = []
        for step in self.steps.steps:
            for b in step.writes():
                self.done = {key: e for key, e in self.done.items() if key[0].buffer.name != b.name}
            factors = self._factors(step.definition)
            if factors is not None and step.definition is not None:
                x, w = factors
                d, r = step.definition, step.definition.reduction
                assert r is not None
                data = self._rounded(x, d, r, step, found)
                changed = Reduce(r.fn, r.axes, data * w, r.init)
                step.works = (replace(d, value=rewrite(d.value, {r: changed})),)
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

    def _rounded(self, x: Load, d: Definition, r: Reduce, step: Step, before: list[Step]) -> Expr:
        """Return the rounded data as numbers; the steps that round them are added to those `before`."""
        rows = tuple(a for a in d.axes if a in variables(*x.index))
        key = x, rows, r.axes
        if key not in self.done:
            name = d.out.name
            largest = prim("max", Reduce("max", r.axes, prim("abs", x)), SMALLEST)
            scale = self._made(f"{name}.step", rows, largest * (1 / LEVELS), DType.F32, step, before)
            inverse = self._made(f"{name}.inverse", rows, 1.0 / scale, DType.F32, step, before)
            near = prim("min", prim("max", prim("round_even", x * inverse), -LEVELS), LEVELS)
            byte = self._made(f"{name}.rounded", (*rows, *r.axes), cast(near, self.dtype), self.dtype, step, before)
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
