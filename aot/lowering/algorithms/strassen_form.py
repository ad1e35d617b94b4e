"""Products of matrices that suit Strassen's algorithm, and their weights in its basis."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import fixed_extent, unravel
from aot.codegen.ir.definition import Definition, unused_axis
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Load, Prim, Reduce, Var
from aot.codegen.target import Target
from aot.lowering.algorithms.strassen_matrices import BASIS
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class StrassenForm:
    """`d`: y[rows, column] = end(add[sum](x * w)). `row` is the one of the rows' axes that is cut in two."""

    d: Definition
    x: Load
    w: Load
    rows: tuple[Var, ...]
    row: Var
    column: Var
    sum: Var

    @property
    def count(self) -> int:
        """Return the number of all rows."""
        return prod(map(fixed_extent, self.rows))

    @property
    def shift(self) -> int:
        """Return the distance from a row of the upper half to its counterpart in the lower half.

        Halves of an odd number share a row.
        """
        return fixed_extent(self.row) // 2


def strassen_form_of(d: Definition, constants: frozenset[str]) -> StrassenForm | None:
    """Return the form if `d` is a product of f32 matrices with known sizes, and the second one is constant."""
    r = d.reduction
    if r is None or r.fn != "add" or r.init is not None or len(r.axes) != 1 or d.where or d.out.dtype is not DType.F32:
        return None
    if not (isinstance(r.body, Prim) and r.body.fn == "mul"):
        return None
    for x, w in (r.body.args, r.body.args[::-1]):
        if (
            isinstance(x, Load)
            and isinstance(w, Load)
            and w.buffer.name in constants
            and x.buffer.name not in constants
        ):
            return _matched(d, r, x, w)
    return None


def _matched(d: Definition, r: Reduce, x: Load, w: Load) -> StrassenForm | None:
    (k,) = r.axes
    columns = [a for a in d.axes if a in w.index]
    rows = tuple(a for a in d.axes if a not in w.index)
    is_matrix = all(isinstance(i, Var | Const) for i in w.index) and k in w.index and len(columns) == 1
    if not is_matrix or x.buffer.dtype is not DType.F32 or w.buffer.dtype is not DType.F32:
        return None
    if not all(isinstance(a.extent, int) for a in (*d.axes, k)):
        return None
    if not rows or fixed_extent(columns[0]) % 2 or fixed_extent(k) % 2:
        return None
    even = [a for a in rows if fixed_extent(a) % 2 == 0]
    if even or len(rows) == 1:
        row = (even or rows)[-1]  # rather within an image than between two
        return StrassenForm(d, x, w, rows, row, columns[0], k)
    flat = Var(unused_axis("p", d), prod(map(fixed_extent, rows)))
    change = unravel(rows, flat)
    index = tuple(rewrite(i, change) for i in d.target)
    d = Definition(d.out, (flat, columns[0]), rewrite(d.value, change), index)
    return StrassenForm(d, Load(x.buffer, tuple(rewrite(i, change) for i in x.index)), w, (flat,), flat, columns[0], k)


def pays(form: StrassenForm, target: Target) -> bool:
    """True if Strassen's products are faster: measured where an L3 is near; with a far L3 they are slower."""
    if not target.near_l3 or form.count < COSTS.min_strassen_rows:
        return False
    halves = form.count * fixed_extent(form.sum) * 7  # bytes: 7 of a quarter each
    if halves > target.l3 // 3:
        return False
    row = COSTS.strassen_near_row if halves <= target.l2 else COSTS.strassen_far_row
    time = COSTS.strassen_products + row / fixed_extent(form.column) + COSTS.strassen_result / fixed_extent(form.sum)
    return time <= COSTS.max_strassen_time


def in_basis(weights: NDArray[np.generic], sum_at: int, column_at: int) -> NDArray[np.float32]:
    """Transform weights to sums of quarters [4, sum / 2, column / 2], rounded once.

    `sum_at`, `column_at`: dimensions of the weights.
    """
    flat = np.moveaxis(weights, (sum_at, column_at), (0, 1)).reshape(weights.shape[sum_at], weights.shape[column_at])
    w = flat.astype(np.float32, copy=False)
    quarters = [part for half in np.split(w, 2) for part in np.split(half, 2, axis=1)]
    result = np.empty((len(BASIS), *quarters[0].shape), np.float32)
    for j, row in enumerate(BASIS):
        (_, first), *others = sorted(((c, q) for c, q in zip(row, quarters, strict=True) if c), key=lambda p: -p[0])
        result[j] = first
        for c, q in others:  # one at most
            result[j] += q if c > 0 else -q
    return result
