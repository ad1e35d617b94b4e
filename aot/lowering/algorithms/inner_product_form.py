"""Products of i16 that can be summed with half of the multiplications, and their sums of weights."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import access, all_axes, fixed_extent, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Const, Expr, Load, Reduce, Var, cast
from aot.codegen.ir.numbers.dot_forms import small_factors
from aot.ir.types import Array
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class InnerProductForm:
    """The sum add[k](i32(x) * i32(w)) + `init` of i16, at each point of `rows` and of the columns of `w`."""

    x: Load
    w: Load
    rows: tuple[Var, ...]
    k: Var
    init: Expr | None = None

    @property
    def half(self) -> int:
        return fixed_extent(self.k) // 2

    @property
    def axis(self) -> Var:
        """Return the axis of half of the sum."""
        return replace(self.k, extent=self.half)

    @property
    def columns(self) -> int:
        """Return the number of columns."""
        return prod(fixed_extent(a) for a in variables(*self.w.index) - {self.k, *self.rows})

    def halves(self, e: Load) -> tuple[Load, Load]:
        """Return the loads of the first and of the second half of the sum."""
        first, second = (tuple(rewrite(i, {self.k: self.axis + n}) for i in e.index) for n in (0, self.half))
        return Load(e.buffer, first), Load(e.buffer, second)

    def data_sum(self) -> Expr:
        """Return -add(x x'), at each row."""
        one, other = self.halves(self.x)
        return Const(0, DType.I32) - Reduce("add", (self.axis,), cast(one, DType.I32) * cast(other, DType.I32))

    def product(self, data: Expr, weights: Expr) -> Reduce:
        """Return the sum by half of the products, from the sums of data and of weights."""
        (x, y), (w, v) = self.halves(self.x), self.halves(self.w)
        begin = data + weights if self.init is None else data + weights + self.init
        return Reduce("add", (self.axis,), cast(x + v, DType.I32) * cast(y + w, DType.I32), begin)

    def weight_sums(self, weights: Array) -> Array:
        """Return -add(w w') for all columns, modulo 2^32."""
        at = self.w.index.index(self.k)
        one, other = np.split(weights.astype(np.int32), 2, axis=at)
        return -np.asarray(np.sum(one * other, axis=at, keepdims=True, dtype=np.int32))


def inner_product_form_of(d: Definition, constants: frozenset[str]) -> InnerProductForm | None:
    """Return the form, if `d` is a product of i16 by constants with known sizes, summed along one axis.

    Windows gain nothing: their sums run through short loops.
    """
    r = d.reduction
    factors = small_factors(r) if r is not None else None
    if r is None or factors is None or varies(all_axes(d)) or any(a.low for a in all_axes(d)):
        return None
    x, w = factors if factors[1].buffer.name in constants else factors[::-1]
    is_matrix = all(isinstance(i, Var | Const) for i in w.index) and set(r.axes) <= set(w.index)
    if not is_matrix or len(r.axes) != 1 or x.buffer.dtype is not DType.I16 or w.buffer.dtype is not DType.I16:
        return None
    if w.buffer.name not in constants or x.buffer.name in constants:
        return None
    rows, (k,) = tuple(a for a in d.axes if a in variables(*x.index)), r.axes
    return InnerProductForm(x, w, rows, k, r.init) if access(x.buffer, x.index, all_axes(d)).strides[k] == 1 else None


def pays(form: InnerProductForm) -> bool:
    """True if there are columns enough to pay for the sums of data, and a panel of the weights stays near the core."""
    rows, terms = prod(map(fixed_extent, form.rows)), fixed_extent(form.k)
    small = form.columns >= COSTS.min_halved_columns and rows >= COSTS.min_halved_rows
    return small and terms % 4 == 0 and COSTS.min_halved_terms <= terms <= COSTS.max_halved_terms
