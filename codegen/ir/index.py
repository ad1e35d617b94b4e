"""Index arithmetic in normal form: sum of coefficient * atom + constant.

Atoms are loop variables, quotients that do not simplify, and all other expressions (loads, casts, choices). `e % c` is
`e - c * (e // c)`, so packing, flattening and their inverses cancel by addition alone:

    (p // 56) * 56 + p % 56  ->  p            (oc.o * 16 + oc.t) // 16  ->  oc.o       where 0 <= oc.t < 16
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache, reduce
from math import gcd, inf

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Var, as_expr, prim
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

_MAX_SERIAL_TERMS = 16  # terms that are added left to right at most; longer sums are split in halves
_MAX_EXPANDED_TERMS = 64  # terms that a product of two sums may have; a larger one stays a product
Key = tuple[frozenset[tuple[Expr, int]], int]


@dataclass(slots=True)
class Affine:
    """A sum of coefficient * atom + `const`. Never mutated: sums share `terms`, and equal sums may be one object."""

    terms: dict[Expr, int]
    const: int = 0
    _key: Key = field(init=False, repr=False, compare=False)
    _expr: Expr = field(init=False, repr=False, compare=False)

    @property
    def is_const(self) -> bool:
        return not self.terms

    @property
    def key(self) -> Key:
        """Key for dicts and comparisons: equal for equal sums."""
        try:
            return self._key
        except AttributeError:
            self._key = frozenset(self.terms.items()), self.const
            return self._key

    def plus(self, other: Affine, scale: int = 1) -> Affine:
        const = self.const + scale * other.const
        if not other.terms:
            return Affine(self.terms, const)
        if not self.terms:
            return Affine(other.times(scale).terms, const)
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            total = terms.get(atom, 0) + scale * c
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Affine(terms, const)

    def after(self, distance: int) -> Affine:
        """Return the sum plus a constant; it shares terms and their hash."""
        index = Affine(self.terms, self.const + distance)
        index._key = self.key[0], index.const
        return index

    def times(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if not factor or not self.terms:
            return Affine({}, self.const * factor)
        return Affine({a: c * factor for a, c in self.terms.items()}, self.const * factor)

    def expr(self) -> Expr:
        """Return the sum as one expression, the same at each call: equal ones are compared fast then."""
        try:
            return self._expr
        except AttributeError:
            self._expr = self._spelled()
            return self._expr

    def _spelled(self) -> Expr:
        if not self.terms:
            return Const(self.const)
        terms = [a if c == 1 else Prim("mul", (a, Const(c)), DType.I64) for a, c in self.terms.items()]
        total = _added(terms)
        return Prim("add", (total, Const(self.const)), DType.I64) if self.const else total


def _added(terms: list[Expr]) -> Expr:
    """Add terms left to right, long sums in halves, so that the expression is not as deep as the sum is long."""
    if len(terms) > _MAX_SERIAL_TERMS:
        half = len(terms) // 2
        return Prim("add", (_added(terms[:half]), _added(terms[half:])), DType.I64)
    return reduce(lambda total, term: Prim("add", (total, term), DType.I64), terms)


Env = Mapping[Var, Affine]


@lru_cache(maxsize=1 << 10)
def exactly(value: int) -> Affine:
    """Return a constant, from a cache."""
    return Affine({}, value)


def weighted(parts: Iterable[tuple[Affine, int]], const: int = 0) -> Affine:
    """Return `const` + the sum of part * weight, in one pass: most sums here are addresses of this form."""
    terms: dict[Expr, int] = {}
    for part, weight in parts:
        const += weight * part.const
        for atom, c in part.terms.items():
            total = terms.get(atom, 0) + weight * c
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
    return Affine(terms, const)


def normal(expr: Expr, env: Env) -> Affine:
    """Return the normal form of `expr`, of type i64, over the variables that `env` does not define."""
    if not env or (isinstance(expr, Prim) and env.keys().isdisjoint(variables(expr))):
        return _plain(expr)
    return _sum(expr, env)


@lru_cache(maxsize=1 << 16)
def _plain(expr: Expr) -> Affine:
    return _sum(expr, {})


def _sum(expr: Expr, env: Env) -> Affine:
    if isinstance(expr, Var):
        known = env.get(expr)
        return known if known is not None else Affine({expr: 1})
    if isinstance(expr, Const):
        return Affine({}, int(expr.value))
    if isinstance(expr, Prim) and expr.dtype is DType.I64 and expr.fn in ARITHMETIC:
        first, *rest = [normal(a, env) for a in expr.args]
        return _BINARY[expr.fn](first, *rest) if rest else first.times(-1)
    if isinstance(expr, Reduce):
        raise InternalError(f"index: a reduction is not arithmetic, got {expr}")
    return Affine({_closed(expr, env): 1})


def _closed(expr: Expr, env: Env) -> Expr:
    """Replace variables that `env` defines in the arguments of a primitive or the indices of a load."""
    match expr:
        case Prim(fn, args, dtype):
            return Prim(fn, tuple(closed(a, env) for a in args), dtype)
        case Load(buffer, index):
            return Load(buffer, tuple(closed(i, env) for i in index))
        case _:
            return expr


def closed(expr: Expr, env: Env) -> Expr:
    """Return `expr`, of any type, over the variables that `env` does not define."""
    if expr.dtype is DType.I64 and not isinstance(expr, Reduce | Const):
        return normal(expr, env).expr()
    return _closed(expr, env)


def _extreme(fn: str, a: Affine, b: Affine) -> Affine:
    """Return the min or max of `a` and `b`: one of the two if the ranges decide."""
    low, high = bounds(a.plus(b, -1))
    if low >= 0:
        return a if fn == "max" else b
    if high <= 0:
        return b if fn == "max" else a
    return Affine({Prim(fn, (a.expr(), b.expr()), DType.I64): 1})


def product(a: Affine, b: Affine) -> Affine:
    """Return a * b, expanded unless that has too many terms."""
    if a.is_const:
        return b.times(a.const)
    if b.is_const:
        return a.times(b.const)
    if len(a.terms) * len(b.terms) > _MAX_EXPANDED_TERMS or _holds_sums(a) or _holds_sums(b):
        return Affine({_times(a.expr(), b.expr()): 1})
    left, right = [*a.terms.items(), (Const(1), a.const)], [*b.terms.items(), (Const(1), b.const)]
    total = Affine({})
    for x, c in left:
        for y, d in right:
            if c and d:
                both = _times(x, y)
                total = total.plus(Affine({}, c * d) if isinstance(both, Const) else Affine({both: c * d}))
    return total


def _holds_sums(a: Affine) -> bool:
    """True if some factor is a sum: the product was too large to expand, and stays so in any order of factors."""
    return any(isinstance(f, Prim) and f.fn == "add" for x in a.terms for f in factors(x))


def factors(e: Expr) -> tuple[Expr, ...]:
    """Return the factors of an atom."""
    if isinstance(e, Prim):  # no match: proofs ask for the factors of each term of each goal
        return (*factors(e.args[0]), *factors(e.args[1])) if e.fn == "mul" and e.dtype is DType.I64 else (e,)
    return () if isinstance(e, Const) and e.value == 1 else (e,)


@lru_cache(maxsize=1 << 15)
def _times(x: Expr, y: Expr) -> Expr:
    """Return the product with its factors sorted, so that it is the same for all orders."""
    total: Expr = Const(1)
    for f in sorted((*factors(x), *factors(y)), key=_rank):
        total = prim("mul", total, f)
    return total


def product_of(e: Expr) -> Expr:
    """Return a product with its factors sorted, as `_times` does."""
    return _times(e, Const(1))


def _rank(e: Expr) -> tuple[int, str, str]:
    """Return a sort key that is equal for equal factors; an axis and a size may have the same name."""
    return (0, e.name, type(e.extent).__name__) if isinstance(e, Var) else (1, repr(e), "")


def _quotient(a: Affine, b: Affine) -> Affine:
    if not b.is_const:
        return _symbolic_quotient(a, b)
    n = b.const
    if n <= 0:  # x // 0 = 0, as for sizes
        return _quotient(a.times(-1), Affine({}, -n)) if n else Affine({})
    affine = Affine({x: c // n for x, c in a.terms.items() if c % n == 0}, a.const // n)
    rest = Affine({x: c for x, c in a.terms.items() if c % n}, a.const % n)
    low, high = bounds(rest)
    if low >= 0 and high < n:
        return affine
    coarse, step = _coarse(rest, n)
    if step == n:
        return affine.plus(coarse)
    return affine.plus(Affine({Prim("floordiv", (coarse.expr(), Const(n // step)), DType.I64): 1}))


def _symbolic_quotient(a: Affine, b: Affine) -> Affine:
    """Simplify (8 n i + n j + k) // 8 n to i + j // 8 where 0 <= k < n."""
    ((size, scale),) = b.terms.items() if len(b.terms) == 1 else ((Const(0), 0),)
    if scale <= 0 or b.const:
        return Affine({Prim("floordiv", (a.expr(), b.expr()), DType.I64): 1})
    divisors = factors(size)
    affine, coarse, fine = Affine({}), Affine({}), Affine({}, a.const)
    for x, c in a.terms.items():
        factors_of_term = list(factors(x))
        if not all(factors_of_term.count(f) >= divisors.count(f) for f in divisors):
            fine = fine.plus(Affine({x: c}))
            continue
        for f in divisors:
            factors_of_term.remove(f)
        left = Affine({reduce(_times, factors_of_term): 1}) if factors_of_term else Affine({}, 1)
        if c % scale:
            coarse = coarse.plus(left, c)
        else:
            affine = affine.plus(left, c // scale)
    if _is_below(fine, size):
        return affine.plus(_quotient(coarse, Affine({}, scale)))
    rest = product(coarse, Affine({size: 1})).plus(fine)
    return affine.plus(Affine({Prim("floordiv", (rest.expr(), b.expr()), DType.I64): 1}))


def _is_below(a: Affine, size: Expr) -> bool:
    """True if 0 <= a < size for all values of the variables that are no factors of `size`."""
    if not a.terms:
        return a.const == 0
    fixed = set(factors(size))
    most = Affine({}, a.const)
    for x, c in a.terms.items():
        term = Affine({}, c)
        for f in factors(x):
            if not isinstance(f, Var) or f.low < 0 or c < 0 or (f not in fixed and f.extent is None):
                return False
            if f in fixed:
                term = product(term, Affine({f: 1}))
            else:
                assert f.extent is not None
                term = product(term, normal(as_expr(f.extent, DType.I64), {}).plus(Affine({}, -1)))
        most = most.plus(term)
    return a.const >= 0 and bounds(Affine({size: 1}, -1).plus(most, -1))[0] >= 0


_BINARY: dict[str, Callable[[Affine, Affine], Affine]] = {
    "add": lambda a, b: a.plus(b),
    "sub": lambda a, b: a.plus(b, -1),
    "mul": product,
    "floordiv": _quotient,
    "mod": lambda a, b: a.plus(product(_quotient(a, b), b), -1),
    "min": lambda a, b: _extreme("min", a, b),
    "max": lambda a, b: _extreme("max", a, b),
}
ARITHMETIC = frozenset((*_BINARY, "neg"))


def _coarse(a: Affine, n: int) -> tuple[Affine, int]:
    """Simplify (8 i + lane) // 16 to i // 2 if lane < 8: drop terms that cannot change it, divide by a common step."""
    for step in sorted({gcd(n, c) for c in a.terms.values()} - {1}):
        fine = Affine({x: c for x, c in a.terms.items() if c % step}, a.const % step)
        low, high = bounds(fine)
        if low >= 0 and high < step:
            return Affine({x: c // step for x, c in a.terms.items() if c % step == 0}, a.const // step), step
    return a, 1


def bounds(a: Affine) -> tuple[float, float]:
    """Return the least and the greatest value of `a`."""
    low: float = a.const
    high: float = a.const
    for atom, c in a.terms.items():
        least, most = atom_bounds(atom)
        low += c * (least if c > 0 else most)
        high += c * (most if c > 0 else least)
    return low, high


def atom_bounds(atom: Expr) -> tuple[float, float]:
    """Return the least and the greatest value of one atom."""
    if not isinstance(atom, Var):
        return _compound_bounds(atom)
    extent = atom.extent
    if extent is None:
        return atom.low, inf
    return atom.low, (extent if isinstance(extent, int) else bounds(normal(extent, {}))[1]) - 1


@lru_cache(maxsize=8192)
def _compound_bounds(atom: Expr) -> tuple[float, float]:
    match atom:
        case Prim("floordiv", (a, b)):
            (least, most), (low, high) = bounds(normal(a, {})), bounds(normal(b, {}))
            if low == high and low > 0:
                return least // low if least > -inf else least, most // low if most < inf else most
            return (0, most) if least >= 0 and low >= 0 else (-inf, inf)
        case Prim("min" | "max" as fn, (a, b)):
            (p, q), (r, s) = bounds(normal(a, {})), bounds(normal(b, {}))
            return (min(p, r), min(q, s)) if fn == "min" else (max(p, r), max(q, s))
        case Prim("select", (_, a, b), DType.I64):
            (p, q), (r, s) = bounds(normal(a, {})), bounds(normal(b, {}))
            return min(p, r), max(q, s)
        case Prim("mul", (a, b)):
            (p, q), (r, s) = bounds(normal(a, {})), bounds(normal(b, {}))
            return (p * r, q * s if q and s else 0) if p >= 0 and r >= 0 else (-inf, inf)
        case Prim("and", (_, Const(n)), DType.I64) if n >= 0:
            return 0, int(n)
        case Prim("cast", (a,)) if a.dtype is DType.BOOL:
            return 0, 1
        case Prim("cast", (a,)) if a.dtype.is_integer and not a.dtype.is_signed and a.dtype.bits < 64:
            return 0, (1 << a.dtype.bits) - 1
        case _:
            return -inf, inf


def depends_on(a: Affine, var: Var) -> bool:
    """True if `var` occurs inside of an atom (a quotient, a load), not only as a plain term."""
    return any(not isinstance(atom, Var) and var in variables(atom) for atom in a.terms)


def is_index(expr: Expr) -> bool:
    """True if `expr` is arithmetic on variables and i64 constants alone."""
    match expr:
        case Var():
            return True
        case Const():
            return expr.dtype is DType.I64
        case Prim(fn, args, DType.I64) if fn in ARITHMETIC:
            return all(map(is_index, args))
        case _:
            return False


def decide(condition: Expr, env: Env) -> bool | None:
    """Evaluate a condition by the ranges of its variables; None if these do not decide it."""
    match condition:
        case Const(value):
            return bool(value)
        case Prim("and", (a, b), DType.BOOL):
            p, q = decide(a, env), decide(b, env)
            return False if False in (p, q) else True if p and q else None
        case Prim("lt" | "le" | "gt" | "ge" | "eq" | "ne" as fn, (a, b)) if is_index(a) and is_index(b):
            return _compare(fn, *bounds(normal(a, env).plus(normal(b, env), -1)))
        case _:
            return None


def _compare(fn: str, low: float, high: float) -> bool | None:
    match fn:
        case "lt":
            return True if high < 0 else False if low >= 0 else None
        case "le":
            return True if high <= 0 else False if low > 0 else None
        case "gt":
            return True if low > 0 else False if high <= 0 else None
        case "ge":
            return True if low >= 0 else False if high < 0 else None
        case _:
            same = True if low == high == 0 else False if low > 0 or high < 0 else None
            return same if fn == "eq" or same is None else not same
