"""Unrolled loops that hold only stores: what their iterations share is found once, and each store adds its offsets.

    unrolled p.t in 14:
      let h = (p.o * 14 + p.t) // 160        h has one form for each p.t
      vector c.t in 32 by 16:
        acc[p.t, c.t] += x[h, ic] * w[c.t]   addresses of `w` differ by a constant: their terms are one object

The LLVM IR is the same as if every iteration were emitted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import itemgetter
from typing import NamedTuple

from aot.codegen.costs import COSTS
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import Affine, exactly, normal
from aot.codegen.ir.loops import Alloc, Buffer, Const, Expr, For, Let, Load, LoopKind, Prim, Space, Stmt, Store, Var
from aot.codegen.llvm.emit.address import Access, Addresses, sizes_of
from aot.codegen.llvm.emit.blocks import vectors
from aot.codegen.llvm.emit.lane_index import lane_of
from aot.codegen.llvm.emit.registers import fits_registers

MAX_LOOPS = 16  # unrolled and vector loops around a store


class Range(NamedTuple):
    """Values of the variable of a loop that is written out. `lanes`: the variable of each vector's lanes, if any."""

    var: Var
    values: tuple[Affine, ...]
    lanes: tuple[Var | None, ...] | None


class Form(NamedTuple):
    """A sum without the terms that add a constant; `stride`: what a lane adds, None if that is no constant."""

    offset: Affine
    stride: int | None
    whole: Affine


class AffineAccess:
    """An access as a function of the values of unrolled variables.

    Those in quotients and the like (`folded`) give the sum a form of its own for each value; others add a constant.
    """

    def __init__(self, buffer: Buffer, affine: Affine, ranges: list[Range]) -> None:
        inner = variables(*(x for x in affine.terms if not isinstance(x, Var)))
        self._buffer, self._ranges = buffer, ranges
        self._folded = [slot for slot, r in enumerate(ranges) if r.var in inner]
        linear = {r.var: slot for slot, r in enumerate(ranges) if r.var in affine.terms and r.var not in inner}
        self._key = _chosen([*self._folded, *linear.values()])
        self._added = [
            (slot, [affine.terms[var] * value.const for value in ranges[slot].values]) for var, slot in linear.items()
        ]
        # the slot of the vector loop if it is linear, and what a lane adds
        self._vector = next(((slot, affine.terms[v]) for v, slot in linear.items() if ranges[slot].lanes), None)
        self._rest = Affine({x: c for x, c in affine.terms.items() if x not in linear}, affine.const)
        self._forms: dict[tuple[int | Var | None, ...], Form] = {}
        shaping = self._folded if self._vector is None else [*self._folded, self._vector[0]]
        self._shape, self._formed = _chosen(shaping), dict[object, Form]()  # forms by numbers of values
        self._known: dict[object, Access] = {}

    def are_near(self, is_target: bool) -> bool:
        """True if all lanes access one element, or elements near each other; for a target, one after the other.

        False for products of a folded variable and a dynamic size, whose terms a walk adds in another order.
        """
        folded = {self._ranges[slot].var for slot in self._folded}
        if any(isinstance(x, Prim) and x.fn == "mul" and variables(x) & folded for x in self._rest.terms):
            return False
        most = 2 if is_target else COSTS.gather_distance
        indices = [0] * len(self._ranges)
        for numbers in product(*(range(len(self._ranges[slot].values)) for slot in self._folded)):
            for slot, i in zip(self._folded, numbers, strict=True):
                indices[slot] = i
            stride = self._form(indices).stride
            if stride is None or abs(stride) >= most or (is_target and stride < 0):
                return False
        return True

    def at(self, indices: list[int]) -> Access:
        """Return the access where each variable has the value with that number."""
        key = self._key(indices)
        access = self._known.get(key)
        if access is None:
            form, const = self._form(indices), 0
            for slot, added in self._added:
                const += added[indices[slot]]
            offset = form.offset.after(const)
            affine = offset if not form.stride else form.whole.after(const)
            access = self._known[key] = Access(self._buffer, offset, form.stride, affine)
        return access

    def _form(self, indices: list[int]) -> Form:
        """Return the form for the values of the folded variables, and the lanes of the vector."""
        shape = self._shape(indices)
        form = self._formed.get(shape)
        if form is None:
            form = self._formed[shape] = self._shared(indices)
        return form

    def _shared(self, indices: list[int]) -> Form:
        key: list[int | Var | None] = [indices[slot] for slot in self._folded]
        if self._vector is not None:
            lanes = self._ranges[self._vector[0]].lanes
            key.append(None if lanes is None else lanes[indices[self._vector[0]]])
        form = self._forms.get(tuple(key))
        if form is None:
            form = self._forms[tuple(key)] = self._new_form(indices)
        return form

    def _new_form(self, indices: list[int]) -> Form:
        values = {self._ranges[s].var: self._ranges[s].values[indices[s]] for s in self._folded}
        offset = normal(self._rest.expr(), values) if values else self._rest
        lanes = [r.lanes[indices[slot]] for slot, r in enumerate(self._ranges) if r.lanes is not None]
        lane = lanes[0] if lanes else None
        if lane is None:
            return Form(offset, 0, offset)
        if any(not isinstance(x, Var) and lane in variables(x) for x in offset.terms):
            return Form(offset, None, offset)
        if self._vector is not None:
            stride = self._vector[1]
            return Form(offset, stride, Affine({**offset.terms, lane: stride}, offset.const))
        stride, rest = offset.terms.get(lane, 0), {x: c for x, c in offset.terms.items() if x != lane}
        return Form(Affine(rest, offset.const) if stride else offset, stride, offset)


def _chosen(slots: list[int]) -> Callable[[list[int]], object]:
    """Return a key function: it selects the elements in `slots`."""
    return itemgetter(*slots) if slots else lambda indices: None


class Leaf(NamedTuple):
    """A store, with its accesses by the identities of buffer and index.

    `added`: accesses of the target and of two floats, where the store adds their product.
    """

    store: Store
    places: dict[tuple[int, int], AffineAccess]
    added: tuple[AffineAccess, AffineAccess, AffineAccess] | None


class Room(NamedTuple):
    """A temporary in registers, and what uses it."""

    buffer: Buffer
    body: tuple[Part, ...]


class Loop(NamedTuple):
    """A loop that is written out. `slot`: the number of such loops around it."""

    slot: int
    range: Range
    body: tuple[Part, ...]


Part = Leaf | Room | Loop


class UnrolledStores:
    """Finds loops of stores, and prepares the accesses of each store."""

    def __init__(self, at: Addresses, packs: bool) -> None:
        """`packs`: bytes side by side are stored together, which is not done here."""
        self._at, self._packs = at, packs
        self._read: dict[int, tuple[For, tuple[Var, ...] | None]] = {}  # by identity of the loop; None: no such loop
        self._made: dict[tuple[int, ...], tuple[Loop | None, list[Affine | None]]] = {}

    def find(self, loop: For) -> Loop | None:
        """Return an unrolled loop with its accesses; None if it must be walked through."""
        if id(loop) not in self._read:
            self._read[id(loop)] = loop, _read_in(loop) if _is_plain(loop, self._packs) else None
        read = self._read[id(loop)][1]
        if read is None:
            return None
        state = [self._at.env.get(v) for v in read]
        key = (id(loop), *map(id, state))
        if key not in self._made:
            saved = self._at.env
            parts = self._prepared((loop,), [])
            self._at.env = saved
            self._made[key] = parts[0] if parts is not None and isinstance(parts[0], Loop) else None, state
        return self._made[key][0]

    def _prepared(self, body: tuple[Stmt, ...], ranges: list[Range]) -> list[Part] | None:
        """Return statements below loops that are written out; None if the lanes of an access are far apart."""
        if len(ranges) > MAX_LOOPS:
            return None
        at, env, parts_of_body = self._at, self._at.env, list[Part]()
        for stmt in body:
            match stmt:
                case Let(var, value, inner):
                    at.env = {**env, var: at.normal(value)}
                    prepared = self._prepared(inner, ranges)
                case For(var, inner):
                    at.env, own = {v: a for v, a in env.items() if v != var}, _range(stmt)
                    parts = self._prepared(inner, [*ranges, own])
                    prepared = None if parts is None else [Loop(len(ranges), own, tuple(parts))]
                case Alloc(buffer, inner):
                    written = frozenset(r.var for r in ranges)
                    parts = self._prepared(inner, ranges) if fits_registers(stmt, env, written) else None
                    prepared = None if parts is None else [Room(buffer, tuple(parts))]
                case Store():
                    prepared = self._leaf(stmt, ranges)
                case _:
                    return None
            if prepared is None:
                return None
            parts_of_body += prepared
            at.env = env
        return parts_of_body

    def _leaf(self, stmt: Store, ranges: list[Range]) -> list[Part] | None:
        target = (stmt.buffer, stmt.index)
        leaves: dict[tuple[int, int], AffineAccess] = {}
        for buffer, index in (target, *((x.buffer, x.index) for x in loads(stmt.value))):
            affine_access = leaves[id(buffer), id(index)] = AffineAccess(
                buffer, self._at.access(buffer, index).offset, ranges
            )
            if not affine_access.are_near((buffer, index) is target):
                return None
        added = None
        match stmt:
            case Store(buffer, _, Prim("mul", (Load() as a, Load() as b), dtype), "add"):
                if dtype.is_float and dtype is buffer.dtype.compute:
                    x, w = (leaves[id(one.buffer), id(one.index)] for one in (a, b))
                    added = leaves[id(buffer), id(stmt.index)], x, w
            case _:
                pass
        return [Leaf(stmt, leaves, added)]


def _range(loop: For) -> Range:
    var = loop.var
    if loop.kind is LoopKind.VECTOR:
        lanes, values = zip(*(lane_of(start, lanes) for start, lanes in vectors(loop)), strict=True)
        return Range(var, values, lanes)
    assert isinstance(var.extent, int)
    return Range(var, tuple(map(exactly, range(var.low, var.extent))), None)


def _is_plain(stmt: Stmt, packs: bool) -> bool:
    """True for loops of static extents that are written out, names of indices, and stores inside, without bytes."""
    match stmt:
        case Store(buffer, index, value):
            return not (packs and buffer.dtype.stored_bytes == 1) and not loads(*index) and _has_plain_indices(value)
        case Let(_, value, body):
            return not loads(value) and all(_is_plain(s, packs) for s in body)
        case Alloc(buffer, body):
            return buffer.space is Space.REGISTERS and all(_is_plain(s, packs) for s in body)
        case For(var, body, LoopKind.UNROLLED | LoopKind.VECTOR):
            return isinstance(var.extent, int) and var.extent > var.low and all(_is_plain(s, packs) for s in body)
        case _:
            return False


def _has_plain_indices(value: Expr) -> bool:
    """True if variables occur in indices of loads alone, these read no memory, and all loads are made."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case Load(_, index):
                if loads(*index):
                    return False
            case Prim(fn, args) if fn != "within":
                waiting += args
            case Const():
                pass
            case _:
                return False
    return True


def _read_in(stmt: Stmt) -> tuple[Var, ...]:
    """Return the variables that a statement reads."""
    match stmt:
        case Store(buffer, index, value):
            sizes = (n for x in (buffer, *(y.buffer for y in loads(value))) for n in sizes_of(x))
            return tuple(variables(*index, value, *sizes))
        case Let(_, value, body):
            return tuple({*variables(value), *(v for s in body for v in _read_in(s))})
        case For(_, body) | Alloc(_, body):
            return tuple({v for s in body for v in _read_in(s)})
        case _:
            return ()
