"""Dynamic dimensions in their shortest form, so that equal dimensions are equal expressions.

((h + 1) // 2 + 1) // 2  ->  (h + 3) // 4          max(n, max(min(n, 9), n))  ->  n
"""

from __future__ import annotations

from functools import lru_cache

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import Affine, bounds, normal
from aot.codegen.ir.loops import Const, Expr, Prim, prim
from aot.runtime.abi import DType


def can_be_negative(dim: int | Expr) -> bool:
    """True if the range of a dimension, or of a number computed from dimensions, holds a number below 0."""
    return dim < 0 if isinstance(dim, int) else bounds(normal(dim, {}))[0] < 0


def is_data(dim: int | Expr) -> bool:
    """True if a dimension can be negative and is made of data-dependent numbers of unknown sign."""
    return not isinstance(dim, int) and any(v.low < 0 for v in variables(dim)) and can_be_negative(dim)


@lru_cache(maxsize=1 << 14)
def shortest(dim: Expr) -> Expr:
    """Return the normal form, with nested quotients merged and redundant operands of min and max removed."""
    return _shortest(dim, {})


def _shortest(e: Expr, memo: dict[Expr, Expr]) -> Expr:
    if e not in memo:
        memo[e] = _once(e, memo)
    return memo[e]


def _once(e: Expr, memo: dict[Expr, Expr]) -> Expr:
    if not isinstance(e, Prim) or e.dtype is not DType.I64:
        return e
    args = tuple(_shortest(a, memo) for a in e.args)
    match e.fn, args:
        case "floordiv", (a, Const(n)) if n > 0:
            return _quotient(normal(a, {}), int(n))
        case "mod", (a, Const(n)) if n > 0:
            return normal(a - _quotient(normal(a, {}), int(n)) * int(n), {}).expr()
        case (("min" | "max"), _):
            return _extreme(e.fn, args)
        case _:
            return normal(prim(e.fn, *args, dtype=e.dtype), {}).expr()


def _quotient(a: Affine, n: int) -> Expr:
    """Return (x // m + c) // n as (x + c * m) // (m * n), for integers c."""
    while True:
        quotients = (t for t, c in a.terms.items() if c == 1 and isinstance(t, Prim) and t.fn == "floordiv")
        inner = [t for t in quotients if _number(t.args[1]) > 0]
        if not inner:
            quotient = normal(a.expr() // n, {}).expr()
            if not isinstance(quotient, Prim) or quotient.fn != "floordiv" or not 0 < _number(quotient.args[1]) < n:
                return quotient
            a, n = (
                normal(quotient.args[0], {}),
                _number(quotient.args[1]),
            )  # the normal form has divided out common factors
            continue
        x, m = inner[0].args[0], _number(inner[0].args[1])
        rest = a.plus(Affine({inner[0]: 1}), -1)
        a, n = normal(x, {}).plus(rest.times(m)), n * m


def _number(e: Expr) -> int:
    return int(e.value) if isinstance(e, Const) else 0


def _extreme(fn: str, args: tuple[Expr, ...]) -> Expr:
    """Keep each operand of a min or max once; max(a, min(a, b)) = a."""
    other = "min" if fn == "max" else "max"
    parts = dict.fromkeys(p for a in args for p in _flat(fn, a))
    nested = {p for p in parts if isinstance(p, Prim) and p.fn == other}
    operands = [p for p in parts if p not in nested or not any(q in parts for q in _flat(other, p))]
    total = operands[0]
    for p in sorted(operands[1:], key=repr):
        total = normal(prim(fn, total, p), {}).expr()
    return total


def _flat(fn: str, e: Expr) -> tuple[Expr, ...]:
    return tuple(p for a in e.args for p in _flat(fn, a)) if isinstance(e, Prim) and e.fn == fn else (e,)
