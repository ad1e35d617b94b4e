"""Functions between levels of quantised networks, as SiLU and GELU are: 256 results in a table.

    q = u8(min(max(round_even(x / 0.02) + 129, 0), 255))
    y = u8(min(max(round_even(1 / (exp(-(f32(q) - 129) * 0.02) + 1) / 0.004), 0), 255))     ->  y = lookup(table[0], q)

q is the innermost byte that alone decides the value of y; levels between them become part of the table. All targets
have the same table. Its numbers are those of the formula that it replaces, but for a result in the middle of two
levels, which another rounding of the exponential moves to the next level.
"""

from __future__ import annotations

from hashlib import sha256

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import COST
from aot.codegen.ir.expressions import rewrite, walk
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Space, dense, prim
from aot.codegen.ir.numbers.clamps import clamp_of, may_clamp
from aot.codegen.ir.traverse import Work, expressions, rewrite_work
from aot.ir.types import numpy_dtype
from aot.lowering.context import Context
from aot.lowering.ir.steps import Steps
from aot.lowering.numbers.byte_values import BYTES, is_byte, rule_of, values_of
from aot.runtime.abi import DType

DIGITS = 12  # hexadecimal digits of the hash that names a table: only equal tables have equal names


def tabulate_functions(steps: Steps, _context: Context) -> None:
    """Replace bytes that are functions of one other byte by lookups, where the functions are expensive."""
    functions = _Functions()
    for step in steps.steps:
        step.works = tuple(rewrite_work(w, functions.lookup) if functions.are_in(w) else w for w in step.works)


class _Functions:
    """Finds functions of a byte; what is known of an expression is kept."""

    def __init__(self) -> None:
        self._bytes: dict[Expr, Expr | None] = {}  # None: not a value of one byte
        self._lookups: dict[Expr, Expr | None] = {}

    def are_in(self, work: Work) -> bool:
        """True if a work computes a function that a table may replace."""
        roots = [e for e in expressions(work) if may_clamp(e)]
        return any(self.lookup(e) is not None for e in walk(*roots))

    def lookup(self, e: Expr) -> Expr | None:
        """Return a byte that is a function of another byte as a table lookup."""
        if not _is_level(e):
            return None
        if e not in self._lookups:
            self._lookups[e] = self._lookup(e)
        return self._lookups[e]

    def _lookup(self, e: Expr) -> Expr | None:
        byte = self._byte(e)
        if byte is None or byte == e or isinstance(byte, Const):
            return None
        if _operations(e, byte) < COSTS.min_tabulated_operations:
            return None
        q = rewrite(byte, self.lookup)
        return prim("lookup", _table(e, byte)[0], q if q.dtype is DType.U8 else prim("bits", q, dtype=DType.U8))

    def _byte(self, e: Expr) -> Expr | None:
        """Return the only byte, the innermost one, that `e` depends on; a constant if nothing varies."""
        if e not in self._bytes:
            self._bytes[e] = self._decides(e)
        return self._bytes[e]

    def _decides(self, e: Expr) -> Expr | None:
        match e:
            case Const():
                return e
            case Load(buffer) if is_byte(buffer.dtype) and buffer.space is not Space.TABLE:
                return e
            case Prim(args=args):
                inputs = {self._byte(a) for a in args}
                varying = {b for b in inputs if not isinstance(b, Const)}
                if rule_of(e) is not None and None not in inputs and len(varying) < 2:
                    return next(iter(varying or inputs))
                return e if _is_level(e) else None
            case _:
                return None


def _table(e: Expr, byte: Expr) -> Buffer:
    data = values_of(e, byte).astype(numpy_dtype(e.dtype))
    name = f"bytes_{sha256(data.tobytes()).hexdigest()[:DIGITS]}"
    return dense(name, BYTES, space=Space.TABLE, dtype=e.dtype, values=tuple(data.tolist()))


def _is_level(e: Expr) -> bool:
    """True for a float that is clamped and cast to a byte."""
    return is_byte(e.dtype) and clamp_of(e) is not None


def _operations(e: Expr, byte: Expr) -> int:
    """Sum the weights of the operations on floats between a byte and its function."""
    inside = set(walk(byte))
    between = (p for p in walk(e) if isinstance(p, Prim) and p not in inside)
    return sum(COST.get(p.fn, 1) for p in between if p.dtype.is_float)
