"""Discrete Fourier transforms along one axis: mixed radix, or chirps where a prime factor is large.

    n = r * m:   X[k1 + r * k2] = sum over b of w_m^(b k2) * ( w_n^(b k1) * sum over a of x[a * m + b] * w_r^(a k1) )

A stage computes the inner part for all k1 and b, with the rotation, and leaves transforms of length m along b; digits
that are done are kept behind: [n, done] -> [m, r * done], so that from the second stage on neighbours are vectors.
Dynamic lengths: `aot.opset.signal.varying_fourier`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Expr, Space, Stmt, Var, dense, prim, select
from aot.codegen.script.script import Scripted, array, lanes, loops, parallel
from aot.ir.types import Array, Dim, Shape
from aot.opset.base.butterflies import levels, transformed
from aot.opset.base.row_major import ravel, volume
from aot.opset.signal.varying_fourier import stages, turns
from aot.runtime.abi import DType

RADICES = (8, 4, 2, 3, 5, 7, 11, 13)  # tried in this order
VECTOR_WIDTH = 8  # numbers side by side: those of a stage with their sums stay in registers of 32 bytes
MIN_VECTOR_WIDTH = 4  # least number of neighbours that fill vectors
Index = tuple[Expr, ...]


def indices(shape: Shape, name: str = "d") -> tuple[tuple[Var, ...], Index]:
    """Return axes for all dimensions of more than one point, and the index of a point."""
    index = tuple(Const(0) if n == 1 else Var(f"{name}{k}", n) for k, n in enumerate(shape))
    return tuple(i for i in index if isinstance(i, Var)), index


def radices(n: int) -> tuple[int, ...]:
    """Return the small factors of n, or none if it has a large prime factor."""
    factors: list[int] = []
    for r in RADICES:
        while n and n % r == 0:
            factors.append(r)
            n //= r
    return tuple(factors) if n == 1 else ()


@dataclass(frozen=True)
class Signal:
    """Complex numbers in a shape that ends with 2; the last index of `at` selects the real or the imaginary part."""

    shape: Shape
    at: Callable[[Index], Expr]


@dataclass
class Transforms:
    """Builder of works that run in sequence; buffers between them are temporaries. `dtype`: f32 or f64.

    A transform reads and writes planes [rows, 2, n, columns]: all dimensions before the axis are merged into rows, all
    after it into columns.
    """

    dtype: DType
    works: list[Definition | tuple[Stmt, ...]] = field(default_factory=list[Definition | tuple[Stmt, ...]])

    @staticmethod
    def of(dtype: DType) -> Transforms:
        """Return transforms in f64 for f64, in f32 for all other types."""
        return Transforms(DType.F64 if dtype is DType.F64 else DType.F32)

    def buffer(self, *shape: Dim) -> Buffer:
        return dense(f"f{len(self.works)}", *shape, space=Space.ARENA, dtype=self.dtype)

    def _table(self, name: str, values: Array, *shape: int) -> Buffer:
        rounded = values.astype(np.float64 if self.dtype is DType.F64 else np.float32)
        return dense(name, *shape, space=Space.TABLE, dtype=self.dtype, values=tuple(rounded.ravel().tolist()))

    def _rotations(self, name: str, turns: Array, scale: float = 1.0) -> Buffer:
        """Return the table [2, ..] of scale * exp(2 pi i turns)."""
        angles = 2 * np.pi * turns
        return self._table(name, np.stack([np.cos(angles), np.sin(angles)]) * scale, 2, *turns.shape)

    def define(self, out: Buffer, value: Expr, axes: tuple[Var, ...], index: Index) -> Buffer:
        self.works.append(Definition(out, axes, value, index))
        return out

    def transform(self, x: Signal, axis: int, inverse: bool) -> Signal:
        """Transform along `axis`, unscaled forwards, scaled by 1 / n backwards."""
        n = x.shape[axis]
        if isinstance(n, int) and n <= 1:  # the transform of at most one number is that number
            return x
        before, after = x.shape[:axis], x.shape[axis + 1 : -1]
        shape = (volume(before), 2, n, volume(after))
        if not isinstance(n, int):
            work = self._planes(x, axis, self.buffer(2, *shape), (Const(0),))
            result = self._factorised(work, shape, n, inverse)
        elif factors := radices(n):
            planes = self._planes(x, axis, self.buffer(*shape))
            result = self._mixed(planes, factors, inverse, 1 / n if inverse else 1.0)
        else:
            result = self._chirped(self._planes(x, axis, self.buffer(*shape)), n, inverse)
        return Signal(
            x.shape, lambda i: result[ravel(i[:axis], before), i[-1], i[axis], ravel(i[axis + 1 : -1], after)]
        )

    def _planes(self, x: Signal, axis: int, out: Buffer, which: Index = ()) -> Buffer:
        before, after = x.shape[:axis], x.shape[axis + 1 : -1]
        axes, index = indices(x.shape)
        at = (*which, ravel(index[:axis], before), index[-1], index[axis], ravel(index[axis + 1 : -1], after))
        return self.define(out, x.at(index), axes, at)

    def _factorised(self, work: Buffer, shape: Shape, n: Expr, inverse: bool) -> Buffer:
        table = dense(f"turns{len(self.works)}", n, 2, space=Space.ARENA, dtype=self.dtype)
        self.works.append(turns(table, n, 2 * np.pi * (1 if inverse else -1)))
        out = self.buffer(*shape)
        self.works.append(stages(out, work, table, inverse))
        return out

    def _mixed(self, x: Buffer, factors: tuple[int, ...], inverse: bool, scale: float) -> Buffer:
        done, rest, sign = 1, int(np.prod(factors)), 1 if inverse else -1
        for r in factors:
            m = rest // r
            turns = sign * np.outer(np.arange(r), np.arange(m)) / rest
            table = self._rotations(f"w{rest}_{r}_{int(inverse)}", turns) if m > 1 else None
            out = self.buffer(*x.shape)
            self.works.append(_stage(out, x, table, (r, m, done), sign, scale if m == 1 else 1.0))
            x, done, rest = out, done * r, m
        return x

    def _chirped(self, x: Buffer, n: int, inverse: bool) -> Buffer:
        """Transform by Bluestein: with k t = (k^2 + t^2 - (k - t)^2) / 2 it is a convolution, by longer transforms."""
        size = 1 << (2 * n - 2).bit_length()
        sign = 1 if inverse else -1
        square = np.arange(n, dtype=np.int64) ** 2 % (2 * n) / (2 * n)
        kernel = np.zeros(size, np.complex128)
        kernel[:n] = np.exp(-2j * np.pi * sign * square)
        kernel[size - n + 1 :] = kernel[1:n][::-1]
        product = np.fft.fft(kernel)
        name = f"{n}_{int(inverse)}"
        chirp = self._rotations(f"c{name}", sign * np.pad(square, (0, size - n)))
        last = self._rotations(f"l{name}", sign * square, 1 / n if inverse else 1.0)
        spectrum = self._table(f"s{name}", np.stack([product.real, product.imag]), 2, size)
        long = self._times(x, chirp, n, size)
        factors = radices(size)
        turned = self._times(self._mixed(long, factors, False, 1.0), spectrum, size, size)
        back = self._mixed(turned, factors, True, 1 / size)
        return self._times(back, last, n, n)

    def _times(self, x: Buffer, table: Buffer, nonzero_count: int, size: int) -> Buffer:
        """Return x * table for the first `known` numbers, then zeros up to `size`."""
        out = self.buffer(x.shape[0], 2, size, x.shape[3])
        axes, (o, c, t, e) = indices(out.shape)
        real = x[o, 0, t, e] * table[0, t] - x[o, 1, t, e] * table[1, t]
        value = select(prim("eq", c, 0), real, x[o, 0, t, e] * table[1, t] + x[o, 1, t, e] * table[0, t])
        if nonzero_count < size:
            value = prim("within", t, nonzero_count, value, 0.0)
        return self.define(out, value, axes, (o, c, t, e))


@loops
def _stage(out: Scripted, x: Scripted, table: Scripted, sizes: tuple[int, int, int], sign: int, scale: float) -> None:
    """out[(b r + k) done + s] = rotation(k b) * sum over a of x[(a m + b) done + s] exp(sign 2 pi i a k / r)"""
    _, m, done = sizes
    rows, _, _, columns = x.shape
    run = done * columns
    if not isinstance(run, int) or run >= MIN_VECTOR_WIDTH:
        width = min(run, VECTOR_WIDTH) if isinstance(run, int) else VECTOR_WIDTH
        for item in parallel(rows * m):
            o = item // m
            b = item % m
            for part in range(run // width):
                _butterflies(out, x, table, (o, b, part * width), (0, 1, width), (sizes, sign, scale))
            if isinstance(run, int):
                if run % width:
                    rest = (0, 1, run % width)
                    _butterflies(out, x, table, (o, b, run - run % width), rest, (sizes, sign, scale))
            else:
                for q in range(run - run % width, run):
                    _butterflies(out, x, table, (o, b, q), (0, 1, 1), (sizes, sign, scale))
    else:
        width = min(m, VECTOR_WIDTH)
        for item in parallel(rows * (m // width)):
            o = item // (m // width)
            b = item % (m // width) * width
            for q in range(run):
                _butterflies(out, x, table, (o, b, q), (1, 0, width), (sizes, sign, scale))
        if m % width:
            for o in parallel(rows):
                for q in range(run):
                    _butterflies(out, x, table, (o, m - m % width, q), (1, 0, m % width), (sizes, sign, scale))


@loops
def _butterflies(
    out: Scripted, x: Scripted, table: Scripted, place: Scripted, way: tuple[int, int, int], stage: Scripted
) -> None:
    """Compute transforms of r numbers each, side by side.

    `place`: row, b and neighbour of the first transform. `way`: steps of b and of the neighbour to the next one, and
    the number of transforms.
    """
    o, first, neighbour = place
    along, beside, width = way
    (r, m, done), sign, scale = stage
    columns = x.shape[3]
    one = array(r, 2, width, dtype=x.dtype)
    two = array(r, 2, width, dtype=x.dtype)
    for v in lanes(width):
        b = first + v * along
        q = neighbour + v * beside
        for a in tuple(range(r)):
            for p in (0, 1):
                one[a, p, v] = x[o, p, (m * a + b) * done + q // columns, q % columns]
        transformed(one, two, v, r, sign)
        read = one if len(levels(r, sign)) % 2 == 0 else two
        for k in tuple(range(r)):
            for p in (0, 1):
                out[o, p, (b * r + k) * done + q // columns, q % columns] = _rotated(
                    (read[k, 0, v], read[k, 1, v]), table, (k, b), p, scale
                )


def _rotated(z: tuple[Expr, Expr], table: Buffer | None, at: tuple[int, Expr], part: int, scale: float) -> Expr:
    """Return a part of z * rotation[at] * scale; there is no rotation without a table, or if it is 1."""
    k, b = at
    if table is None or not k:
        return z[part] if scale == 1.0 else z[part] * scale
    cosine, sine = table[0, k, b], table[1, k, b]
    return z[0] * cosine - z[1] * sine if part == 0 else z[0] * sine + z[1] * cosine
