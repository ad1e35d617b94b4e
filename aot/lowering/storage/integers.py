"""Weights that are integer multiples of a factor, as quantisation leaves them, recognised by their values.

w[k, j] = n[k, j] t[j]     f32, rounded a few times     ->     n: whole numbers, t: f32
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import DTypeLike, NDArray

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Prim, Var
from aot.ir.types import Array
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.storage.compressed import GREATEST, Scaled, first_rows, scaled

MAX_ROUNDING_ERROR = 2.0**-20  # greatest relative error of a number that counts as rounding
SMALLEST = np.finfo(np.float32).tiny  # least factor that f32 holds with full precision
SAMPLE = 32  # rows that are tried first
STARTS = (0, 1, 2, 4, 8, 16, 32)  # bounds of the numbers of a row that are tried first, one stretch after another
PAIRS = 1 << 18  # rows times counts that are tried together
HEAD = 256  # numbers of a row among which a 1 is looked for first
PIECE = 1 << 16  # numbers compared together: they stay in the cache

Factors = NDArray[np.float64]


Whole = tuple[NDArray[np.int16], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Reduced:
    """The numbers of a file less their zero points, divided by the common divisor of all that share a factor.

    `divisors`, `low` and `high` (the least and the greatest quotient) have the dimensions of `parts.numbers`, but 1
    where a factor is shared, as `factors` have.
    """

    parts: Scaled
    divisors: NDArray[np.int16]
    low: NDArray[np.int16]
    high: NDArray[np.int16]
    factors: NDArray[np.float32]

    @property
    def is_plain(self) -> bool:
        """True if nothing is divided."""
        return bool((self.divisors == 1).all())

    def plus(self, offsets: NDArray[np.int16] | NDArray[np.float32], dtype: DTypeLike) -> Array:
        """Return the quotients plus offsets, which repeat as zero points do, as integers of `dtype`."""
        numbers, points = self.parts.numbers, value_of(self.parts.zeros)
        result, plain, has_offsets = np.empty(numbers.shape, dtype), self.is_plain, bool(offsets.any())
        each = max(PIECE // max(prod(numbers.shape[1:]), 1), 1)
        for piece in (slice(n, n + each) for n in range(0, len(numbers), each)):
            zeros, divisors, more = (a if len(a) == 1 else a[piece] for a in (points, self.divisors, offsets))
            some = np.subtract(numbers[piece], zeros, dtype=np.int16, casting="unsafe")
            some = some if plain else some // divisors
            result[piece] = some + more.astype(np.int16) if has_offsets else some
        return result


def whole_numbers(
    constant: Array | Deferred,
    sums: tuple[int, ...],
    max_magnitude: int,
    shape: tuple[int, ...] | None = None,
    first_magnitude: int = 0,
) -> Whole | None:
    """Split a constant into integers of at most `max_magnitude` and factors shared along `sums`; None without any.

    `first_magnitude`: a bound that is tried first, since values alone may be multiples of several factors. `shape`: the
    shape in which its elements are seen, by default its own. Factors have that shape, but 1 along `sums`.
    """
    shape = constant.shape if shape is None else shape
    parts = shared(constant, sums, shape)
    if parts is not None:
        result = reduced(parts, sums, max_magnitude)
        return None if result is None else (result.plus(np.zeros_like(result.low), np.int16), result.factors)
    sample = first_rows(constant, shape, SAMPLE) if isinstance(constant, Deferred) and 0 not in sums else None
    for bound in (first_magnitude, max_magnitude) if first_magnitude else (max_magnitude,):
        if sample is None or _recognised(sample, sums, bound) is not None:
            result = _recognised(value_of(constant).reshape(shape), sums, bound)
            if result is not None:
                return result
    return None


def shared(constant: Array | Deferred, sums: tuple[int, ...], shape: tuple[int, ...]) -> Scaled | None:
    """Return the numbers of a file that a constant is made of, if they share zero points and scales along `sums`."""
    parts = scaled(constant, shape) if isinstance(constant, Deferred) else None
    return parts if parts is not None and parts.is_shared(sums) else None


def reduced(parts: Scaled, sums: tuple[int, ...], max_magnitude: int) -> Reduced | None:
    """Take common divisors out of numbers along `sums`; None if a quotient is larger than `max_magnitude`.

    They are read in pieces: no copy in wider integers is made of all of them.
    """
    shape = parts.numbers.shape
    others = [k for k in range(len(shape)) if k not in sums]
    reduced_shape = [1 if k in sums else n for k, n in enumerate(shape)]
    rows = parts.numbers.transpose(*others, *sums).reshape(prod(reduced_shape), -1)
    zeros = np.broadcast_to(value_of(parts.zeros), reduced_shape).reshape(-1, 1)
    low, high, divisors = (np.zeros(len(rows), np.int16) for _ in range(3))
    each = max(PIECE // max(rows.shape[1], 1), 1)
    for piece in (slice(n, n + each) for n in range(0, len(rows), each)):
        some = np.subtract(rows[piece], zeros[piece], dtype=np.int16)
        divisors[piece] = _divisors(some)
        low[piece], high[piece] = some.min(1, initial=GREATEST), some.max(1, initial=-GREATEST)
    if not rows.shape[1]:
        low[:] = high[:] = 0
    low, high = low // divisors, high // divisors
    counts = np.maximum(np.maximum(high, -low), 0)
    if (counts > max_magnitude).any():
        return None
    largest = counts.astype(np.float64) * divisors
    tops = largest.astype(np.float32) * np.broadcast_to(value_of(parts.scales), reduced_shape).reshape(-1)
    factors = np.where(counts == 0, 1, tops.astype(np.float64) / np.maximum(counts, 1)).astype(np.float32)
    divisors, low, high = (a.reshape(reduced_shape) for a in (divisors, low, high))
    return Reduced(parts, divisors, low, high, factors.reshape(reduced_shape))


def _divisors(rows: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return the greatest common divisor of each row, 1 for rows of zeros."""
    divisors = np.ones(len(rows), np.int16)
    left = np.arange(len(rows))
    for begin, end in ((0, HEAD), (HEAD, rows.shape[1])):  # nearly all rows have a 1 among their first numbers
        left = left[~(np.abs(rows[left, begin:end]) == 1).any(1)]
    divisors[left] = np.maximum(np.gcd.reduce(rows[left], axis=1, initial=0), 1)
    return divisors


def _recognised(w: Array, sums: tuple[int, ...], max_magnitude: int) -> Whole | None:
    """Return integers and factors by the values alone."""
    others = [k for k in range(w.ndim) if k not in sums]
    outer_first = w.transpose(*others, *sums)
    count = prod(w.shape[k] for k in others)
    if w.dtype == np.int32:
        within = w.min(initial=0) >= -max_magnitude and w.max(initial=0) <= max_magnitude
        factors = np.ones(count, np.float32) if within else None
    else:
        factors = _shared(outer_first, len(others), count, max_magnitude)
    if factors is None:
        return None
    scale = factors.reshape([1 if k in sums else n for k, n in enumerate(w.shape)])
    ratio = w / scale
    return np.rint(ratio, out=ratio).astype(np.int16), scale


def _shared(outer_first: NDArray[np.float32], outer: int, count: int, max_magnitude: int) -> NDArray[np.float32] | None:
    """Return the factor of each of the `count` rows that the first `outer` dimensions have; None if a row has none.

    A sample is tried first: ordinary f32 weights fail there, before their rows are copied into one another.
    """
    if outer and count > SAMPLE:
        each = max(count // outer_first.shape[0], 1)
        some = outer_first[: -(-SAMPLE // each)]
        if _factors(some.reshape(each * len(some), -1)[:SAMPLE], max_magnitude) is None:
            return None
    return _factors(outer_first.reshape(count, -1), max_magnitude)


def _factors(rows: NDArray[np.float32], max_magnitude: int) -> NDArray[np.float32] | None:
    """Return the largest factor of each row with quotients of at most `max_magnitude`; None if a row has none.

    It is the largest number divided by the least count for which all numbers of the row are integers.
    """
    step = max(PAIRS // max_magnitude, 1)
    begins = [0, *range(1, len(rows), step)]  # the first row of other weights has no factor: it is tried alone
    candidates: list[Factors] = []
    for begin, end in pairwise([*begins, len(rows)] if len(rows) else begins[:0]):
        some = rows[begin:end]
        with np.errstate(invalid="ignore"):  # signalling NaNs of damaged weights
            largest = np.abs(some).max(1, initial=0).astype(np.float64)
        if not np.isfinite(largest).all():
            return None
        factors = _largest_factors(some, largest, max_magnitude)
        if not (factors >= SMALLEST).all():
            return None
        candidates.append(factors)
    return np.concatenate(candidates).astype(np.float32) if candidates else np.empty(0, np.float32)


def _largest_factors(rows: NDArray[np.float32], largest: Factors, max_magnitude: int) -> Factors:
    """Return the largest factor of each row, 1 for rows of zeros and 0 where there is none."""
    factors = np.where(largest == 0, 1.0, 0.0)
    row, count = (
        np.flatnonzero(largest).repeat(max_magnitude),
        np.tile(np.arange(1, max_magnitude + 1), np.count_nonzero(largest)),
    )
    for begin, end in pairwise(STARTS):  # few pairs of a row and a count are left after the first stretches
        are_whole = _are_whole(rows[row, begin:end], largest[row] / count)
        row, count = row[are_whole], count[are_whole]
    while len(row):
        first = np.flatnonzero(np.diff(row, prepend=-1))  # the least count of each row
        steps = largest[row[first]] / count[first]
        are_factors = _are_whole_rows(rows, row[first], steps)
        factors[row[first[are_factors]]] = steps[are_factors]
        left = factors[row] == 0
        left[first] = False
        row, count = row[left], count[left]
    return factors


def _are_whole_rows(rows: NDArray[np.float32], indices: NDArray[np.intp], steps: Factors) -> NDArray[np.bool_]:
    """Return, for each chosen row, True if all of its numbers are multiples of its step."""
    each = max(PIECE // max(rows.shape[1], 1), 1)
    pieces = (slice(n, n + each) for n in range(0, len(indices), each))
    return np.concatenate([_are_whole(rows[indices[p]], steps[p]) for p in pieces])


def _are_whole(rows: NDArray[np.float32], steps: Factors) -> NDArray[np.bool_]:
    ratio = rows / steps[:, None]
    nearest = np.rint(ratio)
    ratio -= nearest
    np.abs(ratio, out=ratio)
    np.abs(nearest, out=nearest)
    nearest *= MAX_ROUNDING_ERROR
    return np.all(ratio <= nearest, axis=1)


def sums_over(
    numbers: Array, index: tuple[Expr, ...], outer: tuple[Var, ...], summed: tuple[Var, ...]
) -> NDArray[np.int32] | None:
    """Return the sums of `numbers[index]` over the axes `summed`, for all points of `outer`.

    None if the points of all axes are not as many as numbers, or an index lies outside.
    """
    axes = (*outer, *summed)
    extents = [a.extent for a in axes if isinstance(a.extent, int) and not a.low]
    if len(extents) < len(axes) or prod(extents) != numbers.size:
        return None
    grid = dict(zip(axes, np.indices(extents, sparse=True), strict=True))
    positions = [_evaluated(normal(i, {}).expr(), grid) for i in index]
    for position, n in zip(positions, numbers.shape, strict=True):
        if position is None or np.min(position) < 0 or np.max(position) >= n:
            return None
    spread = np.broadcast_to(numbers[tuple(p for p in positions if p is not None)], extents)
    return spread.sum(tuple(range(len(outer), len(axes))), np.int32)


def _evaluated(e: Expr, values: Mapping[Var, NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Evaluate an index for all values of its variables; None unless it is made of sums, products and quotients."""
    match e:
        case Var() if e in values:
            return values[e]
        case Const(value):
            return np.asarray(int(value))
        case Prim("add" | "sub" | "mul" | "floordiv" as fn, (a, b)):
            one, other = _evaluated(a, values), _evaluated(b, values)
            return None if one is None or other is None else _OPERATIONS[fn](one, other)
        case _:
            return None


_OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide}
