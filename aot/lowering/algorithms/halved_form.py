"""Products of i16 that can be summed by half of the multiplications, and their sums of weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from aot.ir.types import Array
from codegen.costs import COSTS
from codegen.ir.access import access, all_axes, varies
from codegen.ir.definition import Definition
from codegen.ir.dot_widths import small_factors
from codegen.ir.expressions import rewrite, variables
from codegen.ir.loops import Const, Expr, Load, Reduce, Var, cast, dense
from runtime.abi import DType


@dataclass(frozen=True, slots=True)
class HalvedForm:
    """The sum add[sums](i32(x) * i32(w)) + `init` of i16, at each point of `rows` and of the columns of `w`.

    `k`: the axis of the sum that is cut in two. `dims`: the two dimensions of the plain weights that are one in `w`.
    """

    x: Load
    w: Load
    rows: tuple[Var, ...]
    sums: tuple[Var, ...]
    k: Var
    init: Expr | None = None
    dims: tuple[int, ...] = ()

    @property
    def half(self) -> int:
        return extent(self.k) // 2

    @property
    def half_sums(self) -> tuple[Var, ...]:
        return tuple(replace(a, extent=self.half) if a == self.k else a for a in self.sums)

    @property
    def columns(self) -> int:
        """Return the number of columns."""
        axes = variables(*self.w.index) - {*self.sums}
        return prod(extent(a) for a in axes if a not in self.rows)

    def halves(self, e: Load) -> tuple[Load, Load]:
        """Return the load in the first half of the sum, and that of the second half."""
        k = replace(self.k, extent=self.half)
        first, second = (tuple(rewrite(i, {self.k: k + n}) for i in e.index) for n in (0, self.half))
        return Load(e.buffer, first), Load(e.buffer, second)

    def data_sum(self) -> Expr:
        """Return -add(x x'), at each row."""
        one, other = self.halves(self.x)
        return Const(0, DType.I32) - Reduce("add", self.half_sums, cast(one, DType.I32) * cast(other, DType.I32))

    def product(self, data: Expr, weights: Expr) -> Reduce:
        """Return the sum by half of the products, from the sums of data and of weights."""
        (x, y), (w, v) = self.halves(self.x), self.halves(self.w)
        begin = data + weights if self.init is None else data + weights + self.init
        return Reduce("add", self.half_sums, cast(x + v, DType.I32) * cast(y + w, DType.I32), begin)

    @property
    def summed(self) -> tuple[int, ...]:
        """Return the dimensions of the weights that are summed."""
        return tuple(k for k, i in enumerate(self.w.index) if i in self.sums)

    def weight_sums(self, data: Array, arrange: Callable[[Array], Array] | None) -> Array:
        """Return -add(w w') for all columns, modulo 2^32. The weights are `arrange(data)`, by default `data`."""
        weights = (data if arrange is None else arrange(data)).astype(np.int32)
        one, other = np.split(weights, 2, axis=self.w.index.index(self.k))
        return -np.asarray(np.sum(one * other, axis=self.summed, keepdims=True, dtype=np.int32))


def extent(a: Var) -> int:
    assert isinstance(a.extent, int)
    return a.extent


def form_of(d: Definition, constants: frozenset[str]) -> HalvedForm | None:
    """Return the form, if `d` is a product of i16 by constants with known sizes."""
    r = d.reduction
    factors = small_factors(r) if r is not None else None
    if r is None or factors is None or varies(all_axes(d)) or any(a.low for a in all_axes(d)):
        return None
    x, w = factors if factors[1].buffer.name in constants else factors[::-1]
    plain = all(isinstance(i, Var | Const) for i in w.index) and set(r.axes) <= set(w.index)
    if not plain or x.buffer.dtype is not DType.I16 or w.buffer.dtype is not DType.I16:
        return None
    if w.buffer.name not in constants or x.buffer.name in constants:
        return None
    rows = tuple(a for a in d.axes if a in variables(*x.index))
    k = next((a for a, step in access(x.buffer, x.index, all_axes(d)).steps.items() if step == 1 and a in r.axes), None)
    return None if k is None else HalvedForm(x, w, rows, r.axes, k, r.init)


def outer_axis(form: HalvedForm) -> Var | None:
    """Return the axis of the sum that continues where `k` ends, as columns of a window do with channels."""
    steps = access(form.x.buffer, form.x.index, form.sums).steps
    return next((a for a in form.sums if a != form.k and steps[a] == extent(form.k)), None)


def joined(form: HalvedForm, outer: Var) -> HalvedForm:
    """Return the form with one axis for `outer` and `k`, of weights in which it is the last dimension."""
    n = extent(form.k)
    t = Var(f"{outer.name}.{form.k.name}", extent(outer) * n)
    x = rewrite(form.x, {outer: t // n, form.k: t % n})
    assert isinstance(x, Load)
    dims = tuple(form.w.index.index(a) for a in (outer, form.k))
    at = tuple(i for k, i in enumerate(form.w.index) if k not in dims)
    shape = (n for k, n in enumerate(form.w.buffer.shape) if k not in dims)
    w = dense(f"{form.w.buffer.name}.joined{dims[0]}x{dims[1]}", *shape, extent(t), dtype=DType.I16)
    others = tuple(a for a in form.sums if a not in (outer, form.k))
    return replace(form, x=x, w=Load(w, (*at, t)), sums=(*others, t), k=t, dims=dims)


def side_by_side(weights: Array, dims: tuple[int, ...]) -> Array:
    """Return the weights of `joined`."""
    moved = np.moveaxis(weights, dims, (-2, -1))
    return np.ascontiguousarray(moved).reshape(*moved.shape[:-2], -1)


def pays(form: HalvedForm) -> bool:
    """True if columns outnumber what the sums of data take, and a panel of half of the weights stays near the core."""
    rows, terms = prod(map(extent, form.rows)), prod(map(extent, form.sums))
    small = form.columns >= COSTS.min_halved_columns and rows >= COSTS.min_halved_rows
    return small and extent(form.k) % 4 == 0 and COSTS.min_halved_terms <= terms <= COSTS.max_halved_terms
