"""Discrete Fourier transforms along one axis: mixed radix, or chirps where a prime factor is large.

    n = r * m:   X[k1 + r * k2] = sum over b of w_m^(b k2) * ( w_n^(b k1) * sum over a of x[a * m + b] * w_r^(a k1) )

A stage makes the inner part for all k1 and b, and leaves transforms of length m along b; digits that are done are kept
in front: [.., done, n, .., 2] -> [.., done * r, m, .., 2]. Complex numbers are the innermost axis: real, imaginary.
A length that only run time knows is factorised there: the same stages as loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from aot.ir.types import Array, Dim, Shape
from aot.opset.bucketing import unravel, volume
from codegen.define import Definition
from codegen.loops import Buffer, Const, Expr, Reduce, Space, Stmt, Var, cast, dense, prim
from codegen.script import Scripted, loops, parallel, unrolled, var
from runtime.abi import DType

RADICES = (8, 4, 2, 3, 5, 7, 11, 13)  # tried in this order
Index = tuple[Expr, ...]


def indices(shape: Shape, name: str = "d") -> tuple[tuple[Var, ...], Index]:
    """Axes for all dimensions but those of one point, and the index of a point."""
    index = tuple(Const(0) if n == 1 else Var(f"{name}{k}", n) for k, n in enumerate(shape))
    return tuple(i for i in index if isinstance(i, Var)), index


def radices(n: int) -> tuple[int, ...]:
    """Small factors of n, or none if it has a large prime factor."""
    found: list[int] = []
    for r in RADICES:
        while n % r == 0:
            found.append(r)
            n //= r
    return tuple(found) if n == 1 else ()


@dataclass
class Transforms:
    """Makes definitions, one after another; buffers between them are temporaries. `dtype`: f32 or f64."""

    dtype: DType
    works: list[Definition | tuple[Stmt, ...]] = field(default_factory=list[Definition | tuple[Stmt, ...]])

    @staticmethod
    def of(dtype: DType) -> Transforms:
        """In f64 for f64, in f32 for all others."""
        return Transforms(DType.F64 if dtype is DType.F64 else DType.F32)

    def buffer(self, *shape: Dim) -> Buffer:
        return dense(f"f{len(self.works)}", *shape, space=Space.ARENA, dtype=self.dtype)

    def _table(self, name: str, values: Array, *shape: int) -> Buffer:
        rounded = values.astype(np.float64 if self.dtype is DType.F64 else np.float32)
        return dense(name, *shape, space=Space.TABLE, dtype=self.dtype, values=tuple(rounded.ravel().tolist()))

    def _rotations(self, name: str, turns: Array, scale: float = 1.0) -> Buffer:
        """Table [out, in, q]: multiplies a complex number by scale * exp(2 pi i turns[q])."""
        c, s = np.cos(2 * np.pi * turns) * scale, np.sin(2 * np.pi * turns) * scale
        return self._table(name, np.array([[c, -s], [s, c]]), 2, 2, len(turns))

    def define(self, out: Buffer, value: Expr, axes: tuple[Var, ...], index: Index) -> Buffer:
        self.works.append(Definition(out, axes, value, index))
        return out

    def transform(self, x: Buffer, axis: int, inverse: bool) -> Buffer:
        """The transform of x[.., n, .., 2] along `axis`, unscaled forwards, with 1 / n backwards."""
        n = x.shape[axis]
        if not isinstance(n, int):
            return self._factorised(x, axis, n, inverse)
        if n == 1:
            return x
        if factors := radices(n):
            return self._mixed(x, axis, factors, inverse, 1 / n if inverse else 1.0)
        return self._chirped(x, axis, n, inverse)

    def _factorised(self, x: Buffer, axis: int, n: Expr, inverse: bool) -> Buffer:
        turns, work = dense("turns", n, 2, space=Space.ARENA, dtype=self.dtype), self.buffer(2, *x.shape)
        self.works.append(_turns(turns, n, 2 * np.pi * (1 if inverse else -1)))
        out = self.buffer(*x.shape)
        self.works.append(_stages(out, x, work, turns, axis, inverse))
        return out

    def _mixed(self, x: Buffer, axis: int, factors: tuple[int, ...], inverse: bool, scale: float) -> Buffer:
        done, rest = 1, int(np.prod(factors))
        for r in factors:
            x = self._stage(x, axis, r, (done, rest), inverse, scale if r == rest else 1.0)
            done, rest = done * r, rest // r
        return x

    def _stage(self, x: Buffer, axis: int, r: int, sizes: tuple[int, int], inverse: bool, scale: float) -> Buffer:
        """The first stage has no digits that are done, the last one leaves none to do."""
        done, n = sizes
        m = n // r
        before, after = x.shape[:axis], x.shape[axis + (1 if done == 1 else 2) : -1]
        out = self.buffer(*before, done * r, *((m,) if m > 1 else ()), *after, 2)
        turn = np.arange(n) / n * (1 if inverse else -1)
        table = self._rotations(f"w{n}_{int(inverse)}{'' if scale == 1.0 else 's'}", turn, scale)
        outer, first = indices(before)
        inner, last = indices(after, "e")
        k1, s, b, c = Var("k", r), Var("s", done), Var("b", m), Var("c", 2)
        a, part = Var("a", r), Var("p", 2)
        t = a * m + b if m > 1 else a
        body = x[(*first, *((s,) if done > 1 else ()), t, *last, part)] * table[c, part, k1 * t % n]
        axes = (*outer, k1, *((s,) if done > 1 else ()), *((b,) if m > 1 else ()), *inner, c)
        target = (*first, k1 * done + s if done > 1 else k1, *((b,) if m > 1 else ()), *last, c)
        return self.define(out, Reduce("add", (a, part), body), axes, target)

    def _chirped(self, x: Buffer, axis: int, n: int, inverse: bool) -> Buffer:
        """Bluestein: with k t = (k^2 + t^2 - (k - t)^2) / 2 the sum is a convolution, made by longer transforms."""
        size = 1 << (2 * n - 2).bit_length()
        sign = 1 if inverse else -1
        square = np.arange(n, dtype=np.int64) ** 2 % (2 * n) / (2 * n)
        kernel = np.zeros(size, np.complex128)
        kernel[:n] = np.exp(-2j * np.pi * sign * square)
        kernel[size - n + 1 :] = kernel[1:n][::-1]
        product = np.fft.fft(kernel)
        name = f"{n}_{int(inverse)}"
        chirp = self._rotations(f"c{name}", sign * square)
        last = self._rotations(f"l{name}", sign * square, 1 / n if inverse else 1.0)
        weights = np.array([[product.real, -product.imag], [product.imag, product.real]])
        spectrum = self._table(f"s{name}", weights, 2, 2, size)
        long = self._times(x, axis, chirp, n, size)
        factors = radices(size)
        turned = self._times(self._mixed(long, axis, factors, False, 1.0), axis, spectrum, size, size)
        back = self._mixed(turned, axis, factors, True, 1 / size)
        return self._times(back, axis, last, n, n)

    def _times(self, x: Buffer, axis: int, table: Buffer, known: int, size: int) -> Buffer:
        """x * table along `axis`: the first `known` elements, then zeros up to `size`."""
        out = self.buffer(*x.shape[:axis], size, *x.shape[axis + 1 :])
        outer, first = indices(x.shape[:axis])
        inner, last = indices(x.shape[axis + 1 : -1], "e")
        t, c = Var("t", size), Var("c", 2)
        parts = [x[(*first, t, *last, p)] * table[c, p, t] for p in (0, 1)]
        value = parts[0] + parts[1]
        if known < size:
            value = prim("within", t, known, value, 0.0)
        return self.define(out, value, (*outer, t, *inner, c), (*first, t, *last, c))


@loops
def _turns(table: Scripted, n: Scripted, circle: float) -> None:
    """exp(i circle k / n)"""
    for k in parallel(n):
        angle = cast(k, DType.F64) * circle / cast(n, DType.F64)
        table[k, 0] = cast(prim("cos", angle), table.dtype)
        table[k, 1] = cast(prim("sin", angle), table.dtype)


@loops
def _stages(out: Scripted, x: Scripted, work: Scripted, turns: Scripted, axis: int, inverse: bool) -> None:
    """work[side] holds [done, rest] along the axis; a stage turns it into [done * r, rest / r] on the other side."""
    n = x.shape[axis]
    others = (*x.shape[:axis], *x.shape[axis + 1 : -1])
    for o in parallel(volume(others)):
        at = unravel(o, others)
        before, after = at[:axis], at[axis:]
        for t in range(n):
            for c in unrolled(2):
                work[(0, *before, t, *after, c)] = x[(*before, t, *after, c)]
        side = var(0, DType.I64)
        done = var(1, DType.I64)
        rest = var(n, DType.I64)
        r = var(2, DType.I64)
        while rest > 1:
            while rest % r != 0:
                r += 1
            m = rest // r
            for k in range(r):
                for s in range(done):
                    for b in range(m):
                        real = var(0.0, x.dtype)
                        imaginary = var(0.0, x.dtype)
                        for a in range(r):
                            t = a * m + b
                            turn = k * t * done % n
                            u = work[(side, *before, s * rest + t, *after, 0)]
                            v = work[(side, *before, s * rest + t, *after, 1)]
                            real += u * turns[turn, 0] - v * turns[turn, 1]
                            imaginary += u * turns[turn, 1] + v * turns[turn, 0]
                        place = (k * done + s) * m + b
                        work[(1 - side, *before, place, *after, 0)] = real
                        work[(1 - side, *before, place, *after, 1)] = imaginary
            done = done * r
            rest = m
            side = 1 - side
        scale = 1.0 / cast(n, x.dtype) if inverse else 1.0
        for t in range(n):
            for c in unrolled(2):
                out[(*before, t, *after, c)] = work[(side, *before, t, *after, c)] * scale
