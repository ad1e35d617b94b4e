"""Discrete Fourier transforms of dynamic length: factorised at run time, with stages as loops.

    n = done * r * m:   out[(b r + k) done + s] = w_n^(k b done) * sum over a of x[(a m + b) done + s] w_r^(a k)

Small factors have their own code, vectorised over columns, s, or b if `done` is small; other primes are plain sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, cast, prim
from aot.codegen.script.script import Scripted, array, lanes, loops, parallel, var
from aot.opset.base.butterflies import levels, transformed
from aot.runtime.abi import DType

FACTORS = (4, 2, 3, 5)  # tried in this order
VECTOR_WIDTH = 8  # vector width in numbers


@loops
def turns(table: Scripted, n: Scripted, circle: float) -> None:
    """Fill a table with exp(i circle k / n)."""
    for k in parallel(n):
        angle = cast(k, DType.F64) * circle / cast(n, DType.F64)
        table[k, 0] = cast(prim("cos", angle), table.dtype)
        table[k, 1] = cast(prim("sin", angle), table.dtype)


@dataclass(frozen=True)
class _Line:
    """Operands of a stage on work [2, rows, 2, n, columns]: half `side`, a row, one column or several adjacent ones."""

    work: Buffer
    table: Buffer
    row: Expr
    column: Expr
    side: Scripted
    done: Scripted
    m: Scripted

    def read(self, part: int, place: Expr, beside: Expr) -> tuple[Scripted, ...]:
        return self.side, self.row, part, place, self.column + beside

    def written(self, part: int, place: Expr, beside: Expr) -> tuple[Scripted, ...]:
        return 1 - self.side, self.row, part, place, self.column + beside


@loops
def stages(out: Scripted, work: Scripted, table: Scripted, inverse: bool) -> None:
    """Transform work[0] [rows, 2, n, columns] along n; work[1] has the same size."""
    rows, _, _, columns = out.shape
    if not isinstance(columns, int) or columns >= VECTOR_WIDTH:
        for row in parallel(rows):
            for block in parallel(columns // VECTOR_WIDTH):
                _transform(out, work, table, (row, block * VECTOR_WIDTH), VECTOR_WIDTH, inverse)
    if not isinstance(columns, int) or columns % VECTOR_WIDTH:
        for row in parallel(rows):
            for k in parallel(columns % VECTOR_WIDTH):
                _transform(out, work, table, (row, columns // VECTOR_WIDTH * VECTOR_WIDTH + k), 1, inverse)


@loops
def _transform(out: Scripted, work: Scripted, table: Scripted, place: Scripted, width: int, inverse: bool) -> None:
    """Transform columns from `place[1]` on of row `place[0]`. Stages alternate between the halves of `work`."""
    n, sign = out.shape[2], 1 if inverse else -1
    side = var(0, DType.I64)
    done = var(1, DType.I64)
    rest = var(n, DType.I64)
    r = var(2, DType.I64)
    m = var(1, DType.I64)
    while rest > 1:
        r = 2
        if rest % 4 == 0:
            r = 4
        while rest % r != 0:
            r += 1
        m = rest // r
        line = _Line(work, table, place[0], place[1], side, done, m)
        for factor in FACTORS:
            if r == factor:
                _stage(line, factor, width, sign)
        if r > FACTORS[-1]:
            _sums(line, r, n, width)
        done = done * r
        rest = m
        side = 1 - side
    scale = 1.0 / cast(n, work.dtype) if inverse else 1.0
    for c in (0, 1):
        if width > 1:
            for t in range(n):
                _copy(out, work, (side, *place), (c, t), (0, 1, width), scale)
        else:
            for t in range(n // VECTOR_WIDTH):
                _copy(out, work, (side, *place), (c, t * VECTOR_WIDTH), (1, 0, VECTOR_WIDTH), scale)
            for t in range(n - n % VECTOR_WIDTH, n):
                _copy(out, work, (side, *place), (c, t), (0, 1, 1), scale)


@loops
def _copy(
    out: Scripted, work: Scripted, place: Scripted, at: Scripted, way: tuple[int, int, int], scale: Scripted
) -> None:
    side, o, e = place
    c, t = at
    for v in lanes(way[2]):
        out[o, c, t + v * way[0], e + v * way[1]] = work[side, o, c, t + v * way[0], e + v * way[1]] * scale


@loops
def _stage(line: Scripted, r: int, width: int, sign: int) -> None:
    if width > 1:
        for b in range(line.m):
            for s in range(line.done):
                _butterflies(line, (r, sign), (b, s), (0, 0, 1, width))
    else:
        first = var(0, DType.I64)
        behind = var(0, DType.I64)
        if line.done < VECTOR_WIDTH:
            first = line.m - line.m % VECTOR_WIDTH
            for s in range(line.done):
                for b in range(line.m // VECTOR_WIDTH):
                    _butterflies(line, (r, sign), (b * VECTOR_WIDTH, s), (1, 0, 0, VECTOR_WIDTH))
        else:
            behind = line.done - line.done % VECTOR_WIDTH
            for b in range(line.m):
                for s in range(line.done // VECTOR_WIDTH):
                    _butterflies(line, (r, sign), (b, s * VECTOR_WIDTH), (0, 1, 0, VECTOR_WIDTH))
        for b in range(first, line.m):
            for s in range(behind, line.done):
                _butterflies(line, (r, sign), (b, s), (0, 0, 0, 1))


@loops
def _butterflies(line: Scripted, kind: tuple[int, int], at: Scripted, way: tuple[int, int, int, int]) -> None:
    """Compute adjacent transforms of r numbers; `way`: increments of b, s and column between them, and their number."""
    r, sign = kind
    along, behind, beside, width = way
    one = array(r, 2, width, dtype=line.work.dtype)
    two = array(r, 2, width, dtype=line.work.dtype)
    for v in lanes(width):
        b = at[0] + v * along
        s = at[1] + v * behind
        e = v * beside
        for a in tuple(range(r)):
            for p in (0, 1):
                one[a, p, v] = line.work[line.read(p, (line.m * a + b) * line.done + s, e)]
        transformed(one, two, v, r, sign)
        read = one if len(levels(r, sign)) % 2 == 0 else two
        for k in tuple(range(r)):
            for p in (0, 1):
                line.work[line.written(p, (b * r + k) * line.done + s, e)] = _rotated(
                    (read[k, 0, v], read[k, 1, v]), line, (k, b), p
                )


def _rotated(z: Sequence[Expr], line: _Line, at: tuple[int, Expr], part: int) -> Expr:
    k, b = at
    turn = b * line.done * k
    return _product(z, (line.table[turn, 0], line.table[turn, 1]), part) if k else z[part]


def _product(x: Sequence[Expr], y: Sequence[Expr], part: int) -> Expr:
    return x[0] * y[1] + x[1] * y[0] if part else x[0] * y[0] - x[1] * y[1]


@loops
def _sums(line: Scripted, r: Scripted, n: Scripted, width: int) -> None:
    """Compute a stage for any other prime."""
    for k in range(r):
        for b in range(line.m):
            for s in range(line.done):
                total = array(2, width, dtype=line.work.dtype)
                for v in lanes(width):
                    total[0, v] = Const(0.0, line.work.dtype)
                    total[1, v] = Const(0.0, line.work.dtype)
                    for a in range(r):
                        t = a * line.m + b
                        turn = k * t * line.done % n
                        for p in (0, 1):
                            parts = [line.work[line.read(c, t * line.done + s, v)] for c in (0, 1)]
                            total[p, v] += _product(parts, (line.table[turn, 0], line.table[turn, 1]), p)
                    for c in (0, 1):
                        line.work[line.written(c, (b * r + k) * line.done + s, v)] = total[c, v]
