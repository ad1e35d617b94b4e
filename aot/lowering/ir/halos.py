"""Numbers of elements that lie in memory before and behind each dimension of a buffer with a halo."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.ir.affine_facts import before_end
from aot.codegen.ir.index import Affine, exactly, normal
from aot.codegen.ir.loops import Buffer, Size, as_expr
from aot.runtime.abi import DType


def goals_in_halos(buffer: Buffer, places: Sequence[Affine], elements: Size) -> tuple[Affine, ...]:
    """Return sums, none of which is negative where places are in a buffer of so many elements, or in its halo."""
    halos = halos_of(buffer)
    if halos is None:
        return ()
    goals = [before_end(as_expr(buffer.shape[0], DType.I64) * buffer.strides[0] - 1, elements)]
    for place, extent, (before, behind) in zip(places, buffer.shape, halos, strict=True):
        goals += [place.plus(exactly(before)), before_end(place.expr(), extent).plus(exactly(behind))]
    return tuple(goals)


def halos_of(buffer: Buffer) -> list[tuple[int, int]] | None:
    """Return the elements before and behind each dimension; None if strides and origin are not made of constant ones.

    x[n, h] with strides w + 5, 1 from 2 has 2 elements before its rows of w elements, and 3 behind them.
    """
    strides = [normal(as_expr(s, DType.I64), {}) for s in buffer.strides]
    left, found = normal(as_expr(buffer.origin, DType.I64), {}), list[tuple[int, int]]()
    for k, (stride, extent) in enumerate(zip(strides, buffer.shape, strict=True)):
        dense = normal(as_expr(extent, DType.I64) * stride.expr(), {})
        room = _multiple(strides[k - 1].plus(dense, -1), stride) if k else 0
        before = _whole(left, stride)
        if room is None or not 0 <= before <= room:
            return None
        left = left.plus(stride.times(-before))
        found.append((before, room - before))
    return found if left.is_const and left.const == 0 else None


def _whole(a: Affine, unit: Affine) -> int:
    """Return the number of times that a unit is in a sum, by one of its terms."""
    atom = next(iter(unit.terms), None)
    if atom is None:
        return a.const // unit.const if unit.const else 0  # dimensions of strides 0 are one element
    return a.terms.get(atom, 0) // unit.terms[atom]


def _multiple(a: Affine, unit: Affine) -> int | None:
    """Return a // unit if it is a constant without remainder, else None."""
    count = _whole(a, unit)
    return count if a.key == unit.times(count).key else None
