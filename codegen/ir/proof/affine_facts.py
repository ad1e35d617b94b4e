"""Parts of affine expressions, and affine facts that conditions and loops give: what proofs are made of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce

from aot.codegen.ir.expressions import Look, rewrite, variables
from aot.codegen.ir.index import Affine, bounds, exactly, factors, normal, weighted
from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var, as_expr, prim
from aot.runtime.abi import DType

NOTHING = exactly(0)


def iterates(axis: Var) -> list[Affine]:
    """Return the facts that a loop has an iteration, and that no factor of its extent is 0."""
    extent = normal(as_expr(1 if axis.extent is None else axis.extent, DType.I64), {})
    indices = [extent.plus(exactly(-1 - axis.low))]
    match axis.extent:
        case Prim("select", (condition, _, Const(n))) if n <= axis.low:
            indices += conditions(condition, True)
        case _:
            pass
    if axis.low == 0 and len(extent.terms) == 1 and extent.const == 0:
        parts = factors(next(iter(extent.terms)))
        if all(bounds(Affine({p: 1}))[0] >= 0 for p in parts):
            indices += [normal(p, {}).plus(exactly(-1)) for p in parts]
    return indices


def occurs(v: Var, a: Affine) -> bool:
    return any(v is atom or v in variables(atom) for atom in a.terms)


def plain(a: Affine) -> list[Var]:
    """Return the variables that are factors of terms."""
    return list(dict.fromkeys(f for atom in a.terms for f in factors(atom) if isinstance(f, Var)))


def coefficient(a: Affine, v: Var) -> tuple[Affine | None, dict[Expr, int]]:
    """Return the factor of `v` in a sum, and the terms that have `v` inside of other functions; None for a power."""
    total, nested = NOTHING, dict[Expr, int]()
    for atom, c in a.terms.items():
        factor, is_nested = _factor(atom, v)
        if factor is None:
            return None, nested
        if is_nested:
            nested[atom] = c
        elif factor is not NOTHING:
            total = total.plus(factor, c)
    return total, nested


@lru_cache(maxsize=1 << 14)
def _factor(atom: Expr, v: Var) -> tuple[Affine | None, bool]:
    """Return the factor of `v` in a term, None for a power, and True if `v` is inside of another function."""
    if v not in variables(atom):
        return NOTHING, False
    parts = factors(atom)
    others = [p for p in parts if p != v]
    if len(others) == len(parts):
        return NOTHING, True
    if len(others) < len(parts) - 1 or any(v in variables(p) for p in others):
        return None, False
    return normal(reduce(lambda p, q: prim("mul", p, q), others, Const(1)), {}), False


def replaced(a: Affine, v: Var, end: Expr) -> Affine:
    """Return a sum with another expression for `v`."""
    return weighted([(_with_end(atom, v, end), c) for atom, c in a.terms.items()], a.const)


@lru_cache(maxsize=1 << 14)
def _with_end(atom: Expr, v: Var, end: Expr) -> Affine:
    """Return a term with another expression for `v`: the goals of a search have the same terms."""
    return normal(rewrite(atom, {v: end}), {})


def rewritten(a: Affine, change: Look) -> Affine:
    """Return a sum with sub-expressions of its terms replaced."""
    return weighted([(normal(rewrite(atom, change), {}), c) for atom, c in a.terms.items()], a.const)


def plus_product(part: Expr, others: Iterable[Expr], c: int, rest: Affine) -> Affine:
    """Return rest + c * part * others."""
    return rest.plus(normal(reduce(lambda p, q: prim("mul", p, q), others, part), {}), c)


def conditions(e: Expr, holds: bool) -> list[Affine]:
    """Return the affine facts that follow from a condition on integers, or from its contrary."""
    match e:
        case Prim("and", (a, b)) if holds:
            return [*conditions(a, True), *conditions(b, True)]
        case Prim("or", (a, b)) if not holds:
            return [*conditions(a, False), *conditions(b, False)]
        case Prim("not", (a,)):
            return conditions(a, not holds)
        case Prim("lt", (Prim("cast", (a,), DType.U64), Prim("cast", (b,), DType.U64))) if holds:
            is_size = b.dtype is DType.I64 and bounds(normal(b, {}))[0] >= 0  # else a large one, without a sign
            return [normal(a, {}), before_end(a, b)] if a.dtype is DType.I64 and is_size else []
        case Prim("lt" | "ge" as fn, (a, b)) if a.dtype is DType.I64:
            gap = normal(a - b, {})
            return [gap.times(-1).plus(exactly(-1)) if (fn == "lt") == holds else gap]
        case Prim("le" | "gt" as fn, (a, b)) if a.dtype is DType.I64:
            gap = normal(b - a, {})
            return [gap if (fn == "le") == holds else gap.times(-1).plus(exactly(-1))]
        case Prim("eq" | "ne" as fn, (a, b)) if a.dtype is DType.I64 and (fn == "eq") == holds:
            gap = normal(a - b, {})
            return [gap, gap.times(-1)]
        case Prim("eq" | "ne", (a, b)) if a.dtype is DType.I64:
            gap = normal(a - b, {})  # not 0: decided where it cannot be of one of the signs
            low, high = bounds(gap)
            return [gap.plus(exactly(-1))] if low >= 0 else [gap.times(-1).plus(exactly(-1))] if high <= 0 else []
        case _:
            return []


def before_end(index: Expr, extent: Size) -> Affine:
    """Return extent - 1 - index, which is not negative where an index is before the end."""
    return normal(as_expr(extent, DType.I64) - 1, {}).plus(normal(index, {}), -1)


def is_greatest(atom: Expr, c: int) -> bool:
    """True if a term, c * atom, is the greatest of some expressions: each bounds it, and the others are lost."""
    return any(isinstance(p, Prim) and p.fn == ("max" if c > 0 else "min") for p in factors(atom))


def direction(e: Expr, v: Var) -> int:
    """Return 1 if `e` never falls as `v` grows, -1 if it never rises, and 0 otherwise."""
    match e:
        case Var():
            return int(e == v)
        case Prim("floordiv", (x, Const(n))) if n > 0:
            return _of_sum(normal(x, {}), v)
        case Prim("min" | "max", (a, b)):
            ways = {_of_sum(normal(p, {}), v) for p in (a, b) if v in variables(p)}
            return ways.pop() if len(ways) == 1 else 0
        case Prim("mul"):
            parts = factors(e)
            moving = [p for p in parts if v in variables(p)]
            still = all(bounds(normal(p, {}))[0] >= 0 for p in parts if p not in moving)
            return direction(moving[0], v) if len(moving) == 1 and still else 0
        case _:
            return 0


def _of_sum(a: Affine, v: Var) -> int:
    ways = {direction(t, v) * (1 if c > 0 else -1) for t, c in a.terms.items() if v in variables(t)}
    return ways.pop() if len(ways) == 1 else 0
