"""Index arithmetic that varies by lane: as vectors, in 32 bits where the result is the same as in 64.

Sums wrap, so the address in a buffer of fewer than 2^31 elements is right in 32 bits, whatever its terms are.
Operations that do not wrap (quotients, choices) are computed in 32 bits only if their ranges are known to fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import Affine, bounds, exactly, normal
from aot.codegen.ir.loops import Buffer, Expr, Prim, Var
from aot.codegen.llvm.emit.address import Access, Addresses, reads_memory
from aot.codegen.llvm.emit.arithmetic.convert import cast
from aot.codegen.llvm.emit.function_text import Function, Value, constants, integer, is_constant, lanes_of
from aot.runtime.abi import DType

NARROW, WIDE = DType.I32, DType.I64
_LIMIT = 1 << 31


@lru_cache(maxsize=1 << 12)  # unrolled loads differ in terms that are equal in all lanes
def _distances(moving: Expr, lane: Var, width: int) -> tuple[int, ...] | None:
    """Return the distance of each lane from the first one if all are constants."""
    first, distances = normal(moving, {lane: exactly(0)}), [0]
    for i in range(1, width):
        change = normal(moving, {lane: exactly(i)}).plus(first, -1)
        if change.terms:
            return None
        distances.append(change.const)
    return tuple(distances)


class Lanes(ABC):
    """Indices and offsets, a number for each lane."""

    f: Function
    at: Addresses
    memo: dict[tuple[Expr, str], Value]

    @abstractmethod
    def expr(self, expr: Expr) -> Value:
        """Return the value of an expression: a vector if it varies by lane."""

    @abstractmethod
    def apply(self, fn: str, dtype: DType, *args: Value) -> Value:
        """Emit a scalar primitive on operands of type `dtype`."""

    @abstractmethod
    def wide(self, v: Value, lanes: int) -> Value:
        """Copy a scalar to every lane."""

    @property
    def width(self) -> int:
        return width_of(self.at.lane)

    def places(self, a: Affine) -> list[int] | None:
        """Return the distance of each lane from the first one if all are constants."""
        lane = self.at.lane
        assert lane is not None
        if any(reads_memory(atom) and lane in variables(atom) for atom in a.terms):
            return None
        moving = Affine({atom: c for atom, c in a.terms.items() if lane in variables(atom)})
        distances = _distances(moving.expr(), lane, self.width)
        return None if distances is None else list(distances)

    def numbers(self, a: Affine, dtype: DType = WIDE) -> Value:
        """Return a sum with terms that may vary by lane, modulo 2^32 if `dtype` is i32."""
        fixed = [atom for atom in a.terms if not self.moves(atom)]
        rest = Affine({x: c for x, c in a.terms.items() if x in fixed}, a.const)
        total = None if rest.is_const and not rest.const else self._narrowed(self.at.linear(rest), dtype)
        for atom, c in a.terms.items():
            if atom not in fixed:
                term = self._term(atom, dtype)
                if c != 1:
                    term = self.apply("mul", dtype, term, self._narrowed(integer(c), dtype))
                total = term if total is None else self.apply("add", dtype, total, term)
        return self._narrowed(integer(0), dtype) if total is None else total

    def moves(self, atom: Expr) -> bool:
        """True if an atom may vary by lane; an atom that reads memory also does if the guard varies by lane."""
        return self.at.lane in variables(atom) or (self.is_mixed and reads_memory(atom))

    @property
    @abstractmethod
    def is_mixed(self) -> bool:
        """True if memory is read in some lanes only."""

    def _term(self, atom: Expr, dtype: DType) -> Value:
        key = atom, f"{dtype.value} {self.at.guard}"
        if key not in self.memo:
            self.memo[key] = self._computed(atom, dtype)
        return self.memo[key]

    def _computed(self, atom: Expr, dtype: DType) -> Value:
        match atom:
            case Var():
                return constants([str(i) for i in range(self.width)], "i32" if dtype is NARROW else "i64")
            case Prim("cast", (x,)) if x.dtype.is_integer or x.dtype is DType.BOOL:
                return cast(self.f, x.dtype, dtype, self.expr(x))
            case Prim("mul", args, DType.I64):
                return self.apply("mul", dtype, *(self.numbers(normal(x, {}), dtype) for x in args))
            case Prim("floordiv" | "min" | "max" as fn, args, DType.I64):
                parts = [normal(x, {}) for x in args]
                narrow = all(map(fits, parts))
                inner = NARROW if narrow else WIDE
                values = [self.numbers(p, inner) for p in parts]
                unsigned = {NARROW: DType.U32, WIDE: DType.U64}[inner]
                positive = all(bounds(p)[0] >= 0 for p in parts)
                number = self.apply(fn, unsigned if positive and fn == "floordiv" else inner, *values)
                return cast(self.f, inner, dtype, number)
            case _:
                return self._narrowed(self.expr(atom), dtype)

    def _narrowed(self, v: Value, dtype: DType) -> Value:
        if dtype is WIDE:
            return v
        if is_constant(v) and lanes_of(v.type) == 1:
            return integer((int(v.name) + _LIMIT) % (2 * _LIMIT) - _LIMIT, "i32")
        return cast(self.f, WIDE, NARROW, v)

    def base(self, a: Access) -> tuple[Access, Affine]:
        """Split an access into the part that is equal in all lanes and the part that each lane adds."""
        moving = {atom: c for atom, c in a.whole.terms.items() if self.moves(atom)}
        rest = Affine({x: c for x, c in a.whole.terms.items() if x not in moving}, a.whole.const)
        return Access(a.buffer, rest, 0, rest), Affine(moving)

    def offsets(self, a: Access) -> tuple[Value, Value]:
        """Return a pointer, and the offset of each lane from it in elements."""
        common, moving = self.base(a)
        low, high = bounds(common.offset)
        small = _span(a.buffer) < _LIMIT // 2 and low > -_LIMIT // 2 and high < _LIMIT // 2
        numbers = self.numbers(moving, NARROW if small else WIDE)
        return self.at.pointer(common), self.wide(numbers, self.width)


@lru_cache(maxsize=1 << 10)
def lane_of(start: int, lanes: int) -> tuple[Var | None, Affine]:
    """Return the lane variable of a vector that begins at `start`, and the index of its elements, from a cache."""
    lane = Var("lane", lanes) if lanes > 1 else None
    return lane, exactly(start) if lane is None else Affine({lane: 1}, start)


def width_of(lane: Var | None) -> int:
    """Return the number of lanes."""
    if lane is None:
        return 1
    assert isinstance(lane.extent, int)
    return lane.extent


def fits(a: Affine) -> bool:
    """True if every value is a signed number of 32 bits."""
    low, high = bounds(a)
    return low >= -_LIMIT and high < _LIMIT


def _span(buffer: Buffer) -> float:
    """Return the elements from the first to the last lane, and before the first one."""
    parts = (*buffer.shape, *buffer.strides, buffer.origin)
    if not all(isinstance(n, int) for n in parts):
        return float("inf")
    sizes: Sequence[tuple[int, int]] = list(zip(buffer.shape, buffer.strides, strict=True))  # type: ignore[arg-type]
    return sum(n * abs(s) for n, s in sizes)
