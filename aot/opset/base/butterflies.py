"""Transforms of a few complex numbers, as short sums: each level maps r numbers to r numbers.

    r = p q, p prime:   p-point transforms of every q-th number, rotations by k j / r, q-point transforms of the rest

A number is a pair of expressions (real, imaginary); `sign` is that of the exponent, -1 forwards.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi, sin, sqrt

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr
from aot.codegen.script.script import Scripted, loops

Pair = tuple[Expr, Expr]
Apply = Callable[[list[Pair]], list[Pair]]


@dataclass(frozen=True)
class Level:
    """One step of a transform; its results are stored before the next level reads them."""

    apply: Apply


def levels(r: int, sign: int) -> list[Level]:
    """Return levels that in sequence give X[k] = sum over a of x[a] exp(sign 2 pi i a k / r), k = 0..r - 1."""
    p = next(d for d in range(2, r + 1) if r % d == 0)
    if p == r:
        return [Level(_both)] if r == 2 else [Level(_folded), Level(lambda z: _unfolded(z, sign))]
    q = r // p
    outer, inner = levels(p, sign), levels(q, sign)
    return [
        *(Level(_columns(level.apply, p, q, sign if level is outer[-1] else 0)) for level in outer),
        *(Level(_rows(level.apply, p, q, level is inner[-1])) for level in inner),
    ]


@loops
def transformed(one: Scripted, two: Scripted, v: Expr, r: int, sign: int) -> None:
    """Transform column `v` of `one` [r, 2, columns]; it is the result after an even number of levels, else `two`."""
    read, write = one, two
    for level in levels(r, sign):
        for k, pair in enumerate(level.apply([(read[a, 0, v], read[a, 1, v]) for a in tuple(range(r))])):
            write[k, 0, v] = pair[0]
            write[k, 1, v] = pair[1]
        read, write = write, read


def _columns(apply: Apply, p: int, q: int, sign: int) -> Apply:
    """Return `apply` on numbers j, j + q, ...; with a sign, result k is rotated by k j / (p q) turns."""

    def columns(z: list[Pair]) -> list[Pair]:
        transforms = [apply(z[j::q]) for j in range(q)]
        return [_rotated(transforms[j][k], sign * j * k, p * q) for k in range(p) for j in range(q)]

    return columns


def _rows(apply: Apply, p: int, q: int, last: bool) -> Apply:
    """Return `apply` on each q consecutive numbers; the last level puts all results in order."""

    def rows(z: list[Pair]) -> list[Pair]:
        transforms = [apply(z[k * q : k * q + q]) for k in range(p)]
        return (
            [transforms[k][j] for j in range(q) for k in range(p)] if last else [v for row in transforms for v in row]
        )

    return rows


def _rotated(z: Pair, part: int, whole: int) -> Pair:
    """Return z * exp(2 pi i part / whole)."""
    a, b = z
    eighth = 8 * (part % whole)
    if eighth % whole:
        angle = 2 * pi * part / whole
        return a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle)
    half = sqrt(0.5)
    match eighth // whole:
        case 0:
            return a, b
        case 1:
            return (a - b) * half, (a + b) * half
        case 2:
            return -b, a
        case 3:
            return (a + b) * -half, (a - b) * half
        case 4:
            return -a, -b
        case 5:
            return (b - a) * half, (a + b) * -half
        case 6:
            return b, -a
        case _:
            return (a + b) * half, (b - a) * half


def _both(z: list[Pair]) -> list[Pair]:
    (a, b), (c, d) = z
    return [(a + c, b + d), (a - c, b - d)]


def _folded(z: list[Pair]) -> list[Pair]:
    """Return the first number, then sums, then differences of the pairs with opposite exponents."""
    ends = list(zip(z[1:], reversed(z[1:]), strict=True))[: len(z) // 2]
    sums = [(a[0] + b[0], a[1] + b[1]) for a, b in ends]
    return [z[0], *sums, *((a[0] - b[0], a[1] - b[1]) for a, b in ends)]


def _unfolded(z: list[Pair], sign: int) -> list[Pair]:
    """Finish a transform of odd prime length: even and odd part of each X[k], then their sums and differences."""
    n = len(z)
    half = n // 2
    results: list[Pair | None] = [None] * n
    results[0] = (_sum(z[0][0], *(s[0] for s in z[1 : half + 1])), _sum(z[0][1], *(s[1] for s in z[1 : half + 1])))
    for k in range(1, half + 1):
        angles = [2 * pi * j * k / n for j in range(1, half + 1)]
        pairs = list(zip(z[1 : half + 1], z[half + 1 :], angles, strict=True))
        even = [_sum(z[0][c], *(s[c] * cos(t) for s, _, t in pairs)) for c in (0, 1)]
        odd = [_sum(*(d[c] * (sign * sin(t)) for _, d, t in pairs)) for c in (0, 1)]
        results[k] = (even[0] - odd[1], even[1] + odd[0])
        results[n - k] = (even[0] + odd[1], even[1] - odd[0])
    return [v for v in results if v is not None]


def _sum(*terms: Expr) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
