"""Products of i16 with half of the multiplications: Winograd's "A new algorithm for inner product" (1968).

    add[k in 2 n](x[i, k] w[k, j])    =    add[k in n]((x[i, k] + w[k + n, j]) (x[i, k + n] + w[k, j])) + s[i] + t[j]

    s[i] = -add[k in n](x[i, k] x[i, k + n])      once for all columns
    t[j] = -add[k in n](w[k, j] w[k + n, j])      at compile time

Additions, which more units compute, take the place of multiplications. The result is exact: sums of two operands fit
i16, and sums of products that overflow i32 do so modulo 2^32.
"""

from __future__ import annotations

from math import prod

import numpy as np

from aot.codegen.ir.access import fixed_extent
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members, rewrite_work
from aot.ir.values.deferred import value_of
from aot.lowering.algorithms.inner_product_form import InnerProductForm, inner_product_form_of, pays
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps, Value
from aot.runtime.abi import DType

LARGEST_WEIGHT = (1 << 15) - 1 - 255  # magnitude to which a byte can be added in i16


def use_fast_inner_products(steps: Steps, context: Context) -> None:
    """Halve the multiplications of products of bytes by constants; values have their strides by now."""
    if context.target.abilities.adds_pairs:
        _FastInnerProducts(steps).run()


class _FastInnerProducts:
    def __init__(self, steps: Steps) -> None:
        self.steps, self.constants = steps, steps.constants()
        self.sums: dict[Expr, Buffer] = {}  # of data: equal ones are computed once

    def run(self) -> None:
        steps: list[Step] = []
        for step in self.steps.steps:
            change: dict[Expr, Expr] = {}
            free = step.schedule is None and step.repeat is None
            for d in (d for work in step.works for d in members(work)) if free else ():
                form = self._form(d, step)
                if form is not None and d.reduction is not None:
                    change[d.reduction] = form.product(self._data_sums(form, step, steps), self._weight_sums(form))
            if change:
                step.works = tuple(rewrite_work(work, change.get) for work in step.works)
            steps.append(step)
        self.steps.steps = steps

    def _form(self, d: Definition, step: Step) -> InnerProductForm | None:
        """Return the form of a product that takes fast inner products."""
        form = inner_product_form_of(d, self.constants)
        if form is None or form.x.buffer in step.writes():
            return None
        x, w = (self.steps.values.get(e.buffer.name) for e in (form.x, form.w))
        if x is None or w is None or not x.holds_bytes or w.data is None or w.arrange is not None:
            return None
        fits = pays(form) and np.abs(value_of(w.data)).max(initial=0) <= LARGEST_WEIGHT
        return form if fits else None

    def _data_sums(self, form: InnerProductForm, step: Step, before: list[Step]) -> Load:
        """Return the sums of data; the step that makes them, if none does yet, is added to `before`."""
        axes = tuple(Var(f"d{n}", a.extent) for n, a in enumerate(form.rows))
        value = rewrite(form.data_sum(), dict(zip(form.rows, axes, strict=True)))
        if value not in self.sums:
            buffer = dense(self.steps.unused(f"{form.x.buffer.name}.halves"), *map(fixed_extent, axes), dtype=DType.I32)
            self.steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA, elements=prod(map(fixed_extent, axes)))
            before.append(Step((Definition(buffer, axes, value, axes),), step.layers, "Halves"))
            self.sums[value] = buffer
        return Load(self.sums[value], form.rows)

    def _weight_sums(self, form: InnerProductForm) -> Load:
        """Return the sums of weights, which are computed when they are written."""
        w = form.w.buffer
        shape = (1 if i == form.k else n for i, n in zip(form.w.index, w.shape, strict=True))
        buffer = dense(f"{w.name}.halves{form.w.index.index(form.k)}", *shape, dtype=DType.I32)
        if buffer.name not in self.steps.values:
            data = self.steps.values[w.name].data
            self.steps.values[buffer.name] = Value(buffer, MemoryRegion.CONSTANT, data=data, arrange=form.weight_sums)
        return Load(buffer, tuple(Const(0) if i == form.k else i for i in form.w.index))
