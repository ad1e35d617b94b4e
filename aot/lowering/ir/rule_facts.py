"""Affine facts that rules on sizes give."""

from __future__ import annotations

from functools import lru_cache, reduce
from math import isqrt

from aot.codegen.ir.index import Affine, exactly, factors, normal
from aot.codegen.ir.loops import Const, Expr, Prim, as_expr, prim
from aot.codegen.ir.program import SizeConstraint
from aot.codegen.ir.proof.known_facts import Either
from aot.runtime.abi import DType

_MAX_SHIFT = 8  # largest number added to a size in a rule of broadcasting that is searched for


def facts_of(rule: SizeConstraint) -> list[Affine]:
    """Return affine facts that follow from a rule."""
    one, other = (as_expr(s, DType.I64) for s in (rule.one, rule.other))
    facts = [normal(one - other, {}), normal(other - one, {})]
    if either_of(rule):
        return []  # of a product, which is no linear fact
    for a, b in ((one, other), (other, one)):
        match a:
            case Prim("max", (x, y), DType.I64):
                facts += [normal(b - x, {}), normal(b - y, {})]
            case Prim("min", (x, y), DType.I64):
                facts += [normal(x - b, {}), normal(y - b, {})]
            case _:
                pass
    return facts


def either_of(rule: SizeConstraint) -> list[Either]:
    """Return n = m or n = 1 for the rule (n - m) * (n - 1) = 0, where n is a size times a number, plus a number."""
    return _either_of(as_expr(rule.one, DType.I64) - rule.other)


@lru_cache(maxsize=1 << 10)
def _either_of(zero: Expr) -> list[Either]:
    product = normal(zero, {})
    for atom, c in product.terms.items():
        parts = factors(atom)
        if len(parts) == 2 and parts[0] == parts[1] and isqrt(abs(c)) ** 2 == abs(c):
            sizes = _stretched(product if c > 0 else product.times(-1), atom, parts[0], isqrt(abs(c)))
            if sizes is not None:
                n, m = sizes
                return [(_equal(n, m), _equal(n, exactly(1)))]
    return []


def _stretched(product: Affine, square: Expr, size: Expr, scale: int) -> tuple[Affine, Affine] | None:
    """Return n = scale * size + shift and m if (n - m) * (n - 1) is the product for some shift.

    The product is square * scale^2 + linear * scale * size + rest. From that follows m = 2 shift - 1 - linear, and with
    gap = 1 - shift: rest = -gap * (gap + linear).
    """
    linear, rest = exactly(0), exactly(product.const)
    for atom, c in product.terms.items():
        parts = list(factors(atom))
        count = parts.count(size)
        if count == 0:
            rest = rest.plus(Affine({atom: c}))
        elif count == 1 and c % scale == 0:
            parts.remove(size)
            linear = linear.plus(normal(reduce(lambda p, q: prim("mul", p, q), parts, Const(1)), {}), c // scale)
        elif atom != square:
            return None
    for shift in sorted(range(-_MAX_SHIFT, _MAX_SHIFT + 1), key=abs):
        gap = 1 - shift
        if linear.times(-gap).after(-gap * gap).key == rest.key:
            return normal(size * scale + shift, {}), exactly(2 * shift - 1).plus(linear, -1)
    return None


def _equal(a: Affine, b: Affine) -> tuple[Affine, Affine]:
    return a.plus(b, -1), b.plus(a, -1)
