"""Names for sizes computed at run time: kernels read `s0`; only the shape function has its formula, (h + 3) // 4.

f32[n, 32 * ((h + 3) // 4)]   ->   f32[n, 32 * s0]    with s0 = (h + 3) // 4
"""

from __future__ import annotations

from math import inf

import numpy as np

from aot.codegen.ir.access import typical
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var, as_expr, prim
from aot.ir.dims import shortest
from aot.ir.types import Array, Dim, Shape, TensorType, dim_text
from aot.lowering.ir.bounds import Intervals
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

_WIDE = 1 << 31
PLAIN = ("add", "sub", "mul", "neg")
MIN_QUOTIENT_ESTIMATE = 8  # elements: least estimate for a size that is a quotient, as (h + 3) // 4 after a stride of 4
MAX_UNCAPPED_ELEMENTS = 1 << 24  # elements; a larger bound by types, as 2^31 of an i32, gives way to a capacity
MAX_FREE = 10  # capacities that the memory of one tensor may multiply: ten begin with 4 each, and memory grows fast
FEW_FREE, CAPACITY = 5, 64  # so many capacities or fewer begin with 64 elements each: room for 64^5 = 2^30 elements
ELEMENTS_LOG2 = 24  # log2 of the elements of more capacities together: eight begin with 2^(24 / 8) = 8 each
SCARCE_ELEMENTS_LOG2 = 16  # the same where memory that is not written counts, too: four begin with 2^(16 / 4) = 16 each


class Sizes:
    """`meaning[s]` is the value of a named size, over the model's symbols and sizes named before it.

    `late`: symbols that an inference sets, and their capacities where they have one. `taken`: names of the model's
    symbols; torch.export calls them `s0`, as we call sizes.
    """

    def __init__(self) -> None:
        self.meaning: dict[Var, Expr] = {}
        self.late: dict[Var, Var | None] = {}
        self.taken: frozenset[str] = frozenset()
        self.facts: dict[Expr, tuple[Expr, frozenset[Var]]] = {}  # equals of sizes, and the symbols of their rules
        self.degree = 0  # the greatest number of capacities that the memory of one tensor multiplies
        self._alike: dict[Expr, dict[Expr, None]] = {}
        self._names: dict[Expr, Var] = {}
        self._made_of: dict[Var, frozenset[Var]] = {}
        self._written: dict[Expr, Expr] = {}
        self._normal: dict[Expr, Dim] = {}
        self._late_sets: dict[tuple[frozenset[Var], int], frozenset[Var]] = {}
        self._types: dict[TensorType, TensorType] = {}

    def copy(self) -> Sizes:
        """Return the same names; those that are added later are its own."""
        sizes = Sizes()
        sizes.meaning, sizes.late, sizes.facts = dict(self.meaning), dict(self.late), dict(self.facts)
        sizes.taken = self.taken
        sizes._alike = {size: dict(others) for size, others in self._alike.items()}
        sizes._names, sizes._made_of = dict(self._names), dict(self._made_of)
        return sizes

    def of(self, dim: Dim, is_size: bool = False) -> Dim:
        """Return `dim` in normal form: sums of products of symbols and named sizes.

        `is_size`: it is a dimension, hence not negative.
        """
        if isinstance(dim, int):
            return dim
        if is_size and isinstance(dim, Prim) and dim.fn not in PLAIN:
            return self.name(dim, is_size=True)
        result = self._normal.get(dim)
        if result is None:  # a name has its meaning from the first, so a form does not change later
            expr = normal(rewrite(dim, self._named), {}).expr()
            result = self._normal[dim] = int(expr.value) if isinstance(expr, Const) else expr
        return result

    def shape(self, dims: Shape) -> Shape:
        return tuple(self.of(d, is_size=True) for d in dims)

    def type(self, t: TensorType) -> TensorType:
        if t.is_static:
            return t
        if t not in self._types:
            self._types[t] = TensorType(t.dtype, self.shape(t.shape))
        return self._types[t]

    def value(self, value: Array | None) -> Array | None:
        if value is None or value.dtype != object:
            return value
        result = np.empty(value.shape, object)
        for at, d in np.ndenumerate(value):
            result[at] = self.of(d)
        return result

    def name(self, meaning: Expr, is_size: bool = False) -> Var:
        """Return the name of a number; equal numbers have one.

        A part of a size may be negative: (1 - k) // 2 in (1 - k) // 2 + 6.
        """
        if meaning not in self._names:
            low, high = bounds(normal(meaning, {}))
            extent = int(high) + 1 if high < inf else None
            least = int(low) if low > -inf else -(1 << 63)
            # a dimension made of input sizes alone is not negative, whatever its range says: rules check it
            least = max(least, 0) if is_size and not self.is_late(meaning) else least
            usual = max(
                typical(meaning), MIN_QUOTIENT_ESTIMATE if isinstance(meaning, Prim) and meaning.fn == "floordiv" else 1
            )
            axis = Var(self._unused("s"), extent, least, usual)
            self._names[meaning] = axis
            self.meaning[axis] = meaning
        return self._names[meaning]

    def add(self, meaning: Expr, stem: str) -> Var:
        """Name an address in memory. Nothing else is known of it, so that equal layers have equal kernels."""
        axis = Var(self._unused(stem), None, 0)
        self.meaning[axis] = meaning
        return axis

    def _unused(self, stem: str) -> str:
        name = f"{stem}{len(self.meaning)}"
        while name in self.taken:
            name += "_"
        return name

    def is_late(self, size: Size) -> bool:
        """True if a size depends on data that an inference computes."""
        return bool(self.late) and bool(self.late_of(size))

    def late_of(self, *sizes: Size) -> frozenset[Var]:
        """Return the late symbols in sizes."""
        exprs = (s for s in sizes if isinstance(s, Expr))
        read = (v for s in exprs for v in ((s,) if isinstance(s, Var) else variables(s)))
        return frozenset[Var]().union(*map(self._late_in, read))

    def late_in(self, symbols: frozenset[Var]) -> frozenset[Var]:
        """Return the late symbols that symbols and names are made of."""
        key = symbols, len(self.late)
        if key not in self._late_sets:  # equal layers have equal ones
            self._late_sets[key] = self.late_of(*symbols)
        return self._late_sets[key]

    def _late_in(self, symbol: Var) -> frozenset[Var]:
        if symbol in self.late:
            return frozenset((symbol,))
        if symbol not in self.meaning:
            return frozenset()
        if symbol not in self._made_of:
            self._made_of[symbol] = self.late_of(self.meaning[symbol])
        return self._made_of[symbol]

    def most(self, size: Size) -> Size:
        """Return an upper bound of a size in symbols known before an inference; unbounded symbols get capacities."""
        if not self.is_late(size):
            return size
        spelled = self._spelled(size)
        high = self._bound(spelled, self._facts(size))
        if high is None:
            raise UnsupportedError(f"memory for a size that has no bound: {dim_text(spelled)}")
        capacities: dict[Expr, int] = {c: 1 for c in self.late.values() if c is not None}
        if (degree := _degree(high, capacities)) > MAX_FREE:
            grows = f"{MAX_FREE} sizes that only run time knows may be multiplied, got a bound of {degree}"
            raise UnsupportedError(f"some of the sizes must be known at compile time: {grows}")
        self.degree = max(self.degree, degree)
        return self.of(prim("max", high, 0))

    def first_capacity(self, scarce: bool) -> int:
        """Return the first capacity of a symbol without a known end. `scarce`: there are few GB of memory."""
        if scarce:
            return min(CAPACITY, 1 << SCARCE_ELEMENTS_LOG2 // max(1, self.degree))
        return CAPACITY if self.degree <= FEW_FREE else 1 << ELEMENTS_LOG2 // self.degree

    def _bound(self, spelled: Expr, facts: dict[Expr, Expr]) -> Expr | None:
        high = Intervals(self.late.__contains__, _range, facts).of(spelled)[1]
        if high is None or bounds(normal(high, {}))[0] > MAX_UNCAPPED_ELEMENTS:
            high = Intervals(self.late.__contains__, self._bounds, facts).of(spelled)[1]
        return high

    def learn(self, one: Size, other: Size) -> None:
        """Record that two sizes are equal, for bounds.

        A step checks it before any value with their late symbols is computed.
        """
        if not self.is_late(one):
            one, other = other, one
        if self.is_late(one):
            symbols = self.late_of(one, other)
            self.facts[self._spelled(self.of(one))] = self._spelled(self.of(other)), symbols

    def equate(self, one: Size, other: Size) -> None:
        """Record that two sizes are equal, which every inference checks before it begins."""
        a, b = self.written_out(one), self.written_out(other)
        if a != b and variables(a) and variables(b):
            self._alike.setdefault(a, {})[b] = None
            self._alike.setdefault(b, {})[a] = None

    def alike(self, size: Size) -> list[Expr]:
        """Return the size, and the sizes that rules equate it with, over the model's symbols."""
        waiting = [self.written_out(size)]
        unique = dict.fromkeys(waiting)
        for form in waiting:
            new = [other for other in self._alike.get(form, ()) if other not in unique]
            unique |= dict.fromkeys(new)
            waiting += new
        return waiting

    def _facts(self, size: Size) -> dict[Expr, Expr]:
        """Return the facts that are checked before any value of this size is computed."""
        own = self.late_of(size)
        return {e: equal for e, (equal, symbols) in self.facts.items() if symbols <= own}

    def _spelled(self, size: Size) -> Expr:
        """Write a size over symbols and sizes without late symbols."""
        expr = as_expr(size, DType.I64)
        while named := {v: self.meaning[v] for v in variables(expr) if v in self.meaning and self.is_late(v)}:
            expr = rewrite(expr, lambda e: named.get(e) if isinstance(e, Var) else None)
        return normal(expr, {}).expr()

    def _bounds(self, symbol: Var) -> tuple[Expr | None, Expr | None]:
        low, high = _range(symbol)
        if low is not None and high is not None:
            return low, high
        capacity = self.late[symbol]
        if capacity is None:
            capacity = self.late[symbol] = Var(f"{symbol.name}.most", None, 1)
        return (Const(0) - capacity if low is None else low), capacity if high is None else high

    def written_out(self, size: Size) -> Expr:
        """Write a size over the model's symbols alone, in the shortest form."""
        if isinstance(size, int):
            return Const(size)
        if size not in self._written:  # a name has its meaning from the first, so a form does not change later
            written = size
            while any(v in self.meaning for v in variables(written)):
                written = rewrite(written, lambda e: self.meaning.get(e) if isinstance(e, Var) else None)
            self._written[size] = shortest(written)
        return self._written[size]

    def named(self, size: Size) -> Expr:
        """Write a size over names where there are some; no name is made."""
        expression = as_expr(size, DType.I64)
        return normal(rewrite(expression, lambda e: self._names.get(e) if isinstance(e, Prim) else None), {}).expr()

    def _named(self, e: Expr) -> Expr | None:
        return self.name(e) if isinstance(e, Prim) and e.fn not in PLAIN else None


def _range(symbol: Var) -> tuple[Expr | None, Expr | None]:
    """Return the range of a symbol by its type; None for the ends of wide types."""
    low = Const(symbol.low) if symbol.low > -_WIDE else None
    return low, Const(symbol.extent - 1) if isinstance(symbol.extent, int) and symbol.extent < _WIDE else None


def _degree(e: Expr, degrees: dict[Expr, int]) -> int:
    """Return the greatest number of capacities that a bound multiplies.

    `degrees` holds the numbers by expression: 1 for each capacity at first, and those that were computed.
    """
    if e not in degrees:
        degrees[e] = _degree_of(e, [_degree(a, degrees) for a in e.args]) if isinstance(e, Prim) else 0
    return degrees[e]


def _degree_of(e: Prim, parts: list[int]) -> int:
    match e.fn:
        case "mul":
            return sum(parts)
        case "floordiv":
            return parts[0]
        case "min" if all(bounds(normal(a, {}))[0] >= 0 for a in e.args):  # of numbers below 0 it is the larger one
            return min(parts)
        case _:
            return max(parts, default=0)
