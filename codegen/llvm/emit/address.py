"""Addresses and index arithmetic.

An index is a sum of terms (`aot.codegen.ir.index`). A term is computed in the head of the loop of its deepest variable,
once: hoisting by construction, so that the emitted code is good before any LLVM pass has run. A term that reads memory
is computed where it is used. An address to which an innermost loop adds a multiple of its counter is carried along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from math import gcd
from operator import itemgetter
from typing import NamedTuple, Protocol

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import coefficient
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import Affine, bounds, depends_on, exactly, normal, product, weighted
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Size, Space, Var
from aot.codegen.llvm.emit.arithmetic.convert import MEMORY
from aot.codegen.llvm.emit.function_text import Block, Function, Value, integer
from aot.codegen.llvm.emit.memo import Memo
from aot.runtime.errors import InternalError

HOISTED = frozenset({"mul", "floordiv", "min", "max", "select", "eq", "add"})


MAX_CARRIED = 8  # pointers that a loop carries: half of the general registers of x86-64


class Carried(NamedTuple):
    """A pointer that a loop moves on: number of its phi, the phi, the type of its elements, and how many it moves."""

    phi: int
    value: Value
    element: str
    step: int


@dataclass(slots=True)
class Scope:
    """Scope of a loop: its head block takes the code that depends on no deeper variable.

    `counter`: the variable of an innermost loop that counts from 0, and the block before it.
    """

    head: Block
    values: dict[object, Value] = field(default_factory=dict[object, Value])
    counter: tuple[Var, Block] | None = None
    carried: list[Carried] = field(default_factory=list[Carried])


class Access(NamedTuple):
    """An access, in elements: `offset` without lane, `stride` per lane (None: not linear), `whole` with the lane."""

    buffer: Buffer
    offset: Affine
    stride: int | None
    whole: Affine


class Places(Protocol):
    """An access as a function of the values of unrolled variables (`aot.codegen.llvm.emit.unrolled_stores`)."""

    def at(self, indices: list[int]) -> Access: ...


class Addresses:
    """Facts about variables at this point of the code: `env` for constants and lets, `scopes` for loops."""

    def __init__(
        self, function: Function, sizes: dict[Var, Value], pointers: dict[str, Value], evaluate: Callable[[Expr], Value]
    ) -> None:
        """`evaluate` emits a term that reads memory, at the current place of the function."""
        self.f = function
        self.env: dict[Var, Affine] = {}
        self.lane: Var | None = None
        self.depth: dict[Var, int] = dict.fromkeys(sizes, 0)
        self.scopes = [Scope(function.block, {**sizes})]
        self.pointers = pointers
        # Terms that read memory, in the current straight-line code, by guard: they depend on the enclosing `within`.
        self.here: dict[str, dict[object, Value]] = {}
        self.guard = ""
        self.carries_pointers = True  # see `Target`
        self.indexing: set[str] = set()  # buffers that some address depends on
        # memo tables by identity: of expressions; of buffers and indices
        self._sums: dict[int, Memo[Affine]] = {}
        self._accesses: dict[tuple[int, int], tuple[Buffer, tuple[Expr, ...], Memo[Access]]] = {}
        self._read: dict[Expr, tuple[Var, ...] | None] = {}  # variables of atoms; None: computed where they are used
        self._evaluate = evaluate
        # of the store that is emitted, if its accesses are functions of unrolled variables: these, and their values
        self.places: Mapping[tuple[int, int], Places] | None = None
        self.indices: list[int] = []

    def end(self) -> None:
        """Let go of the emitter of values, which refers to this: only the garbage collector would free the two."""
        del self._evaluate

    def forget(self) -> None:
        """Forget terms that read memory: it may have changed, or another block begins."""
        self.here = {}

    def enter(
        self, var: Var, value: Value, head: Block, before: Block | None = None
    ) -> tuple[int | None, Affine | None]:
        """Open the scope of a loop; pass the result to `leave`. `before`: the block before an innermost loop from 0."""
        saved = self.depth.get(var), self.env.pop(var, None)
        self.depth[var] = len(self.scopes)
        self.scopes.append(Scope(head, {var: value}, None if before is None else (var, before)))
        return saved

    def carried(self, pointer: Value, element: str, terms: list[tuple[Expr, int]], level: int) -> Value | None:
        """Return `pointer` plus a multiple of an innermost loop's counter, carried along; None for other terms."""
        scope = self.scopes[level] if self.carries_pointers and level < len(self.scopes) else None
        (atom, step), *others = terms
        if scope is None or scope.counter is None or others or step < 2 or len(scope.carried) == MAX_CARRIED:
            return None
        var, before = scope.counter
        if atom != var:
            return None
        value, phi = self.f.phi(scope.head, "ptr", pointer, before)
        scope.carried.append(Carried(phi, value, element, step))
        return value

    def advance(self) -> None:
        """Move the pointers that the innermost loop carries, at the end of an iteration."""
        scope, latch = self.scopes[-1], self.f.block
        for phi, value, element, step in scope.carried:
            self.f.close(scope.head, phi, self.f.gep(element, value, integer(step)), latch)

    def leave(self, var: Var, saved: tuple[int | None, Affine | None]) -> None:
        self.scopes.pop()
        depth, known = saved
        if depth is None:
            del self.depth[var]
        else:
            self.depth[var] = depth
        if known is not None:
            self.env[var] = known

    def access(self, buffer: Buffer, index: tuple[Expr, ...]) -> Access:
        """Return the access to an element at this point of the code."""
        key = id(buffer), id(index)
        if self.places is not None and (steps := self.places.get(key)) is not None:
            return steps.at(self.indices)
        if key not in self._accesses:
            self._accesses[key] = buffer, index, Memo(*index, *sizes_of(buffer))
        return self._accesses[key][2].of(self.env, self.lane, lambda: self.new_access(buffer, index))

    def new_access(self, buffer: Buffer, index: tuple[Expr, ...]) -> Access:
        """Return the access at this point of the code, which is not remembered."""
        origin = buffer.origin
        parts = [self.scaled(i, stride) for i, stride in zip(index, buffer.strides, strict=True)]
        for i, stride in zip(buffer.start, buffer.strides, strict=False):
            if not (isinstance(i, Const) and i.value == 0):
                part, weight = self.scaled(i, stride)
                parts.append((part, -weight))
        if not isinstance(origin, int):
            parts.append((self.normal(origin), 1))
        offset = weighted(parts, origin if isinstance(origin, int) else 0)
        self.indexing.update(x.buffer.name for x in loads(*offset.terms))
        if self.lane is None or not offset.terms:
            return Access(buffer, offset, 0, offset)
        if depends_on(offset, self.lane):
            return Access(buffer, offset, None, offset)
        per_lane = offset.terms.get(self.lane, 0)
        if not per_lane:
            return Access(buffer, offset, 0, offset)
        rest = {a: c for a, c in offset.terms.items() if a != self.lane}
        return Access(buffer, Affine(rest, offset.const), per_lane, offset)

    def is_strided(self, a: Access) -> bool:
        """True if the step per lane is a dynamic size."""
        assert self.lane is not None
        return a.stride is None and coefficient(a.whole, self.lane) is not None

    def optional_step(self, a: Access) -> Affine | None:
        """Return the step per lane if it is a dynamic size of 0 or 1."""
        stride = coefficient(a.whole, self.lane) if self.lane is not None else None
        return stride if stride is not None and bounds(stride) == (0, 1) else None

    def in_lane(self, a: Access, lane: int) -> Access:
        """Return the same access for one lane."""
        assert self.lane is not None
        step = a.whole.terms.get(self.lane, 0)
        if all(x == self.lane or self.lane not in variables(x) for x in a.whole.terms):
            terms = {x: c for x, c in a.whole.terms.items() if x != self.lane}
            offset = Affine(terms, a.whole.const + lane * step)
        else:
            offset = normal(a.whole.expr(), {self.lane: Affine({}, lane)})
        return Access(a.buffer, offset, 0, offset)

    def scaled(self, index: Expr, stride: Size) -> tuple[Affine, int]:
        """Return a part of an address and its factor."""
        step = self.normal(index)
        return (step, stride) if isinstance(stride, int) else (product(step, self.normal(stride)), 1)

    def align(self, a: Access) -> int:
        dtype = a.buffer.dtype
        size = dtype.stored_bytes
        known = gcd(a.offset.const, *a.offset.terms.values()) * size
        best = gcd(known, max(a.buffer.align, size))
        return best & -best

    def pointer(self, a: Access) -> Value:
        """Return the address of the first lane."""
        element, offset = MEMORY[a.buffer.dtype], a.offset
        pointer = self.pointers[a.buffer.name]
        if offset.terms:
            known = self.scopes[-1].values
            key = (pointer.name, element, offset.key[0], "whole")
            start = known.get(key)
            if start is None:
                start, level = self._start(pointer, element, offset.terms)
                if level < len(self.scopes):
                    known[key] = start
            pointer = start
        return self.f.gep(element, pointer, integer(offset.const)) if offset.const else pointer

    def _start(self, pointer: Value, element: str, of: dict[Expr, int]) -> tuple[Value, int]:
        """Add the terms of each loop level to a pointer, outermost first, each as far out as it is known.

        Return the result, and the deepest level.
        """
        levels: dict[int, list[tuple[Expr, int]]] = {}
        for atom, c in of.items():
            levels.setdefault(self.level(atom), []).append((atom, c))
        for level, terms in sorted(levels.items(), key=itemgetter(0)):
            values, head = self.scope(level)
            key = (pointer.name, element, frozenset(terms))
            if key not in values:
                values[key] = self.carried(pointer, element, terms, level) or self.f.gep(
                    element, pointer, self.sum(terms, level), head
                )
            pointer = values[key]
        return pointer, max(levels)

    def scope(self, level: int) -> tuple[dict[object, Value], Block]:
        """Return the values known at a level and the block for new ones; the level after the last is `here`."""
        if level == len(self.scopes):
            return self.here.setdefault(self.guard, {}), self.f.block
        return self.scopes[level].values, self.scopes[level].head

    def normal(self, expr: Expr) -> Affine:
        """Return the normal form of `expr` at this point of the code."""
        return self.normal_in(expr, self.env)

    def normal_in(self, expr: Expr, env: Mapping[Var, Affine]) -> Affine:
        """Return the normal form of `expr` over the variables that `env` does not define."""
        if isinstance(expr, Const):
            return exactly(int(expr.value))
        if isinstance(expr, Var):
            known = env.get(expr)
            return normal(expr, {}) if known is None else known
        memo = self._sums.get(id(expr))
        if memo is None:
            memo = self._sums[id(expr)] = Memo(expr)
        return memo.of(env, None, lambda: normal(expr, env))

    def level(self, atom: Expr) -> int:
        """Return the number of loops around the code that computes an atom: that of its deepest variable."""
        if atom not in self._read:
            self._read[atom] = tuple(variables(atom)) if _is_hoisted(atom) else None
        read = self._read[atom]
        if read is None:
            return len(self.scopes)
        try:
            return max([self.depth[v] for v in read], default=0)
        except KeyError as unbound:
            raise InternalError(f"index: {unbound.args[0].name} is not bound by a loop or let") from unbound

    def sum(self, terms: list[tuple[Expr, int]], level: int) -> Value:
        total: Value | None = None
        for atom, c in terms:
            term = self.term(atom, c, level)
            total = self.f.binary("add", total, term, self.scope(level)[1]) if total else term
        return total or integer(0)

    def term(self, atom: Expr, c: int, level: int) -> Value:
        value = self.atom(atom)
        if c == 1:
            return value
        values, head = self.scope(level)
        if (atom, c) not in values:
            values[atom, c] = self.f.binary("mul", value, integer(c), head)
        return values[atom, c]

    def atom(self, atom: Expr) -> Value:
        level = self.level(atom)
        values, head = self.scope(level)
        if atom not in values:
            match atom:
                case Const(value):
                    return integer(int(value))
                case Prim(fn, args) if level < len(self.scopes) and fn != "eq":
                    values[atom] = self.hoisted(fn, args, level, head)
                case _:
                    values[atom] = self._evaluate(atom)
        return values[atom]

    def hoisted(self, fn: str, args: tuple[Expr, ...], level: int, head: Block) -> Value:
        f = self.f
        if fn == "select":
            match args[0]:
                case Prim("eq", (a, b)):
                    same = f.compare("icmp eq", *(self.linear(normal(x, {}), level) for x in (a, b)), at=head)
                case other:
                    raise InternalError(f"index: a choice by equality, got {other}")
            return f.select(same, *(self.linear(normal(x, {}), level) for x in args[1:]), at=head)
        parts = [normal(x, {}) for x in args]
        a, b = (self.linear(p, level) for p in parts)
        match fn:
            case "mul" | "add":
                return f.binary(fn, a, b, head)
            case "floordiv":
                return self.quotient(a, b, parts, head)
            case _:
                order = "slt" if fn == "min" else "sgt"
                return f.select(f.compare(f"icmp {order}", a, b, head), a, b, head)

    def quotient(self, a: Value, b: Value, parts: list[Affine], at: Block) -> Value:
        """Divide, rounded towards minus infinity. It may run before the test that guards it, so no divisor may trap."""
        f = self.f
        low = bounds(parts[0])[0]
        if bounds(parts[1])[0] < 0:
            negative, low = f.compare("icmp slt", b, integer(0), at), -1
            a, b = (f.select(negative, f.binary("sub", integer(0), x, at), x, at) for x in (a, b))
        if not parts[1].is_const:
            b = f.select(f.compare("icmp sgt", b, integer(0), at), b, integer(1), at)
        if low >= 0:
            return f.binary("udiv", a, b, at)
        sign = f.binary("ashr", a, integer(63), at)
        # For a < 0: ~(~a / b), and ~a is not negative.
        positive = f.binary("xor", a, sign, at)
        return f.binary("xor", f.binary("udiv", positive, b, at), sign, at)

    def linear(self, a: Affine, level: int | None = None) -> Value:
        """Return the value of a sum, computed as far out as its terms allow."""
        if a.is_const:
            return integer(a.const)
        level = max(map(self.level, a.terms)) if level is None else level
        values, head = self.scope(level)
        key = ("linear", *a.key)
        if key not in values:
            total = self.sum(list(a.terms.items()), level)
            values[key] = self.f.binary("add", total, integer(a.const), head) if a.const else total
        return values[key]

    def size(self, size: Size) -> Value:
        return integer(size) if isinstance(size, int) else self.linear(self.normal(size))


def sizes_of(buffer: Buffer) -> tuple[Expr, ...]:
    """Return the expressions that addresses of a buffer depend on, besides indices."""
    return *buffer.start, *(n for n in (*buffer.strides, buffer.origin) if not isinstance(n, int))


def moved(a: Access, elements: int) -> Access:
    """Return the access `n` elements after `a`, for all lanes."""
    offset = a.offset.plus(Affine({}, elements))
    return Access(a.buffer, offset, 0, offset)


def reads_memory(expr: Expr) -> bool:
    """True if an index reads memory."""
    if not loads(expr):
        return False
    match expr:
        case Load(buffer):
            return buffer.space is not Space.TABLE
        case Prim(_, args):
            return any(map(reads_memory, args))
        case _:
            return False


def fixed(env: dict[Var, Affine], lane: Var, i: int) -> dict[Var, Affine]:
    """Return `env` for lane number `i`."""
    known = {lane: Affine({}, i)}
    return {v: normal(a.expr(), known) if lane in a.terms or depends_on(a, lane) else a for v, a in env.items()} | known


@lru_cache(maxsize=1 << 14)
def _is_hoisted(atom: Expr) -> bool:
    """True if an atom is computed in the head of the loop of its deepest variable."""
    if isinstance(atom, Prim):
        return atom.fn in HOISTED and all(map(_is_hoisted, atom.args))
    return isinstance(atom, Var | Const)
