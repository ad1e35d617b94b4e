"""Numbers of elements that lie in memory before and after each dimension of a buffer with a halo."""

from __future__ import annotations

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.index import Affine, bounds, normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Size, Var, as_expr
from aot.runtime.abi import DType

_SIZE = 1009  # stands for every size where strides are ordered: a prime, so that few products are equal


def halos_of(buffer: Buffer, elements: Size) -> list[tuple[int, int]] | None:
    """Return the elements before and after each dimension; None if strides and origin do not come from such halos.

    x[n, h] with strides w + 5, 1 from 2 has 2 elements before its rows of w elements, and 3 after them.
    """
    strides = [normal(as_expr(s, DType.I64), {}) for s in buffer.strides]
    left, around = (normal(as_expr(s, DType.I64), {}) for s in (buffer.origin, elements))
    halos = [(0, 0)] * len(strides)
    order = [k for k, n in enumerate(buffer.shape) if n != 1]
    for k in sorted(order, key=lambda k: -_number(strides[k])):
        stride = strides[k]
        rest = around.plus(normal(as_expr(buffer.shape[k], DType.I64) * stride.expr(), {}), -1)
        room, before = _whole(rest, stride), _whole(left, stride)
        if not 0 <= before <= room or bounds(rest.plus(stride.times(-room)))[0] < 0:
            return None
        left = left.plus(stride.times(-before))
        halos[k], around = (before, room - before), stride
    return halos if left.is_const and left.const == 0 else None


def _number(a: Affine) -> float:
    """Return the value of a sum where every size is `_SIZE`."""
    return bounds(normal(rewrite(a.expr(), _size), {}))[0]


def _size(e: Expr) -> Expr | None:
    return Const(_SIZE) if isinstance(e, Var) else None


def _whole(a: Affine, unit: Affine) -> int:
    """Return the number of times that a unit is in a sum, by one of its terms; -1 for dimensions without a stride."""
    atom = next(iter(unit.terms), None)
    if atom is not None:
        return a.terms.get(atom, 0) // unit.terms[atom]
    return a.const // unit.const if unit.const else -1
