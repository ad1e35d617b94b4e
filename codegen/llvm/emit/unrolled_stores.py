"""Unrolled loops that hold only stores: what their iterations share is found once, and each store adds its offsets.

    unrolled p.t in 14:
      let h = (p.o * 14 + p.t) // 160        h has one form for each p.t
      vector c.t in 32 by 16:
        acc[p.t, c.t] += x[h, ic] * w[c.t]   addresses of `w` differ by a constant: their terms are one object

The LLVM IR is the same as if every iteration were emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import product
from math import copysign
from operator import itemgetter
from typing import NamedTuple

from aot.codegen.costs import COSTS
from aot.codegen.ir.expressions import NONE, loads, variables, walk
from aot.codegen.ir.index import Affine, exactly, normal
from aot.codegen.ir.loops import Alloc, Buffer, Const, Expr, For, Let, Load, LoopKind, Prim, Space, Stmt, Store, Var
from aot.codegen.ir.traverse import statements
from aot.codegen.llvm.emit.address import Access, Addresses, sizes_of
from aot.codegen.llvm.emit.blocks import vectors
from aot.codegen.llvm.emit.function_text import Value
from aot.codegen.llvm.emit.lane_index import lane_of, width_of
from aot.codegen.llvm.emit.registers import fits_registers

MAX_LOOPS = 16  # unrolled and vector loops around a store


class Range(NamedTuple):
    """Values of the variable of a loop that is written out, and the numbers in them without lanes.

    `lanes`: the variable of each vector's lanes, if any.
    """

    var: Var
    values: tuple[Affine, ...]
    numbers: tuple[int, ...]
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
        compound = [x for x in affine.terms if not isinstance(x, Var)]
        inner = variables(*compound) if compound else NONE
        self.buffer, self._ranges = buffer, ranges
        self._folded: list[int] = []
        self._added: list[tuple[int, list[int]]] = []
        self._vector: tuple[int, int] | None = None  # the slot of the vector loop if it is linear, what a lane adds
        rest = dict(affine.terms)
        for slot, (var, _, numbers, lanes) in enumerate(ranges):
            if var in inner:
                self._folded.append(slot)
            elif (c := rest.pop(var, None)) is not None:
                self._added.append((slot, [c * n for n in numbers]))
                if lanes is not None:
                    self._vector = slot, c
        self._key = _chosen([*self._folded, *[slot for slot, _ in self._added]])
        self._rest = Affine(rest, affine.const)
        shaping = self._folded if self._vector is None else [*self._folded, self._vector[0]]
        self._shape, self._forms = _chosen(shaping), dict[object, Form]()  # forms by numbers of values
        self._known: dict[object, Access] = {}
        self.numbers: dict[tuple[int, int], Value] = {}  # constants of a table that were read, by place and lanes
        self.stride: int | None = 0  # what a lane adds, where there are lanes; None if that varies

    def are_near(self, is_target: bool) -> bool:
        """True if all lanes access one element, or elements near each other; for a target, one after the other.

        False for products of a folded variable and a dynamic size, whose terms a walk adds in another order.
        """
        folded = {self._ranges[slot].var for slot in self._folded}
        if folded and any(isinstance(x, Prim) and x.fn == "mul" and variables(x) & folded for x in self._rest.terms):
            return False
        most = 2 if is_target else COSTS.gather_distance
        indices, strides = [0] * len(self._ranges), set[int]()
        for numbers in product(*(range(len(self._ranges[slot].values)) for slot in self._folded)):
            for slot, i in zip(self._folded, numbers, strict=True):
                indices[slot] = i
            stride = self._form(indices).stride
            if stride is None or abs(stride) >= most or (is_target and stride < 0):
                return False
            if self._lane(indices) is not None:
                strides.add(stride)
        if strides:
            self.stride = strides.pop() if len(strides) == 1 else None
        return True

    def _lane(self, indices: list[int]) -> Var | None:
        for slot, (_, _, _, lanes) in enumerate(self._ranges):
            if lanes is not None:
                return lanes[indices[slot]]
        return None

    def is_linear(self, nest: Nest) -> bool:
        """True if all iterations of a nest add a constant to the offset."""
        return not self._folded or self._folded[-1] < nest.first

    def distances(self, nest: Nest) -> list[int]:
        """Return for each iteration of a nest what it adds to the offset of the first one.

        If that is no constant, return numbers that are equal for equal accesses.
        """
        if not self.is_linear(nest):
            slots = sorted({*self._folded, *(slot for slot, _ in self._added)})
            key = _chosen([slot - nest.first for slot in slots if slot >= nest.first])
            known: dict[object, int] = {}
            return [known.setdefault(key(numbers), len(known)) for numbers in nest.numbers]
        added, distances = dict(self._added), [0]
        for slot in range(nest.first, len(self._ranges)):
            steps = added.get(slot, [0] * len(self._ranges[slot].values))
            distances = [d + a - steps[0] for d in distances for a in steps]
        return distances

    def at(self, indices: list[int]) -> Access:
        """Return the access where each variable has the value with that number."""
        key = self._key(indices)
        access = self._known.get(key)
        if access is None:
            form, (start, const) = self._form(indices), self.start(indices)
            offset = start.after(const)
            affine = offset if not form.stride else form.whole.after(const)
            access = self._known[key] = Access(self.buffer, offset, form.stride, affine)
        return access

    def start(self, indices: list[int]) -> tuple[Affine, int]:
        """Return the offset where each variable has the value with that number, as a sum and what is added to it."""
        const = 0
        for slot, added in self._added:
            const += added[indices[slot]]
        return self._form(indices).offset, const

    def _form(self, indices: list[int]) -> Form:
        """Return the form for the values of the folded variables, and the lanes of the vector."""
        shape = self._shape(indices)
        form = self._forms.get(shape)
        if form is None:
            form = self._forms[shape] = self._new_form(indices)
        return form

    def _new_form(self, indices: list[int]) -> Form:
        values = {self._ranges[s].var: self._ranges[s].values[indices[s]] for s in self._folded}
        offset = normal(self._rest.expr(), values) if values else self._rest
        lane = self._lane(indices)
        if lane is None:
            return Form(offset, 0, offset)
        if any(not isinstance(x, Var) and lane in variables(x) for x in offset.terms):
            return Form(offset, None, offset)
        if self._vector is not None:
            stride = self._vector[1]
            return Form(offset, stride, Affine({**offset.terms, lane: stride}, offset.const))
        stride, rest = offset.terms.get(lane, 0), {x: c for x, c in offset.terms.items() if x != lane}
        return Form(Affine(rest, offset.const) if stride else offset, stride, offset)


def _chosen(slots: list[int]) -> Callable[[Sequence[int]], object]:
    """Return a key function: it selects the elements in `slots`."""
    return itemgetter(*slots) if slots else lambda indices: None


class Step(NamedTuple):
    """An iteration of a nest: its number, its lanes, and what it adds to the places of the first one's operands."""

    number: int
    lanes: int
    distances: tuple[int, ...]


class Nest:
    """A store in the loops that hold nothing else: those from number `first` on of `ranges`, all loops around it."""

    def __init__(self, store: Store, places: dict[tuple[int, int], AffineAccess], ranges: list[Range]) -> None:
        """`places`: the accesses of the store by the identities of buffer and index."""
        self.store, self.places, self.ranges, self.first = store, places, ranges, len(ranges)
        self._steps: dict[tuple[int, int | None], list[Step]] = {}

    @cached_property
    def numbers(self) -> list[tuple[int, ...]]:
        """For each iteration, the numbers of the values of its variables."""
        return list(product(*(range(len(r.values)) for r in self.ranges[self.first :])))

    @cached_property
    def lanes(self) -> list[Var | None] | None:
        """For each iteration, the variable of its lanes; None if the loop over vectors is outside."""
        for i, inner in enumerate(self.ranges[self.first :]):
            if inner.lanes is not None:
                return [inner.lanes[numbers[i]] for numbers in self.numbers]
        return None

    @cached_property
    def operands(self) -> tuple[AffineAccess, ...]:
        """Accesses of the target, and of the numbers of which a product is added or one is copied; () for others."""
        match self.store:
            case Store(buffer, _, Prim("mul", (Load() as x, Load() as w), dtype), "add") if dtype.is_float:
                loaded = (x, w)
            case Store(buffer, _, Load() as x, None):
                loaded = (x,)
            case Store(buffer, _, Const(), None):
                loaded = ()
            case _:
                return ()
        target, *sources = [self.places[id(x.buffer), id(x.index)] for x in (self.store, *loaded)]
        is_vector = any(r.lanes is not None and r.lanes[0] is not None for r in self.ranges)
        if self.store.value.dtype is not buffer.dtype.compute or target.stride != is_vector:
            return ()
        return (target, *sources) if all(x.stride in (0, 1) for x in sources) else ()

    def steps(self, outer: int, table: int | None) -> list[Step]:
        """Return the iterations that change the target.

        `outer`: the lanes of the loop over vectors outside. `table`: where the first factor's first number is in a
        table, whose zeros are structural; None if it is in none.
        """
        key = outer, table
        if key not in self._steps:
            lanes = [outer] * len(self.numbers) if self.lanes is None else map(width_of, self.lanes)
            distances = zip(*(x.distances(self) for x in self.operands), strict=True)
            steps = map(Step, range(len(self.numbers)), lanes, distances)
            if table is None:
                self._steps[key] = list(steps)
            else:
                numbers = self.operands[1].buffer.values
                self._steps[key] = [s for s in steps if not is_positive_zero(numbers[table + s.distances[1]])]
        return self._steps[key]


def is_positive_zero(value: float) -> bool:
    return not value and copysign(1, value) > 0


class Room(NamedTuple):
    """A temporary in registers, and what uses it."""

    buffer: Buffer
    body: tuple[Part, ...]


class Loop(NamedTuple):
    """A loop that is written out. `slot`: the number of such loops around it."""

    slot: int
    range: Range
    body: tuple[Part, ...]


Part = Nest | Room | Loop


class UnrolledStores:
    """Finds loops of stores, and prepares the accesses of each store."""

    def __init__(self, at: Addresses, packs: bool) -> None:
        """`packs`: bytes side by side are stored together, which is not done here."""
        self._at, self._packs = at, packs
        self._read: dict[int, tuple[For, tuple[Var, ...] | None]] = {}  # by identity of the loop; None: no such loop
        self._made: dict[tuple[int, ...], tuple[Part | None, list[Affine | None]]] = {}

    def find(self, loop: For) -> Part | None:
        """Return an unrolled loop with its accesses; None if it must be walked through."""
        if id(loop) not in self._read:
            self._read[id(loop)] = loop, tuple(_read_in(loop)) if _is_plain(loop, self._packs) else None
        read = self._read[id(loop)][1]
        if read is None:
            return None
        state = [self._at.env.get(v) for v in read]
        key = (id(loop), *map(id, state))
        if key not in self._made:
            saved = self._at.env
            parts = self._prepared((loop,), [])
            self._at.env = saved
            self._made[key] = None if parts is None else parts[0], state
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
                case For(var, inner, kind, width):
                    own = _range(var, width if kind is LoopKind.VECTOR else 0)
                    if var in env:
                        at.env = {v: a for v, a in env.items() if v != var}
                    parts = self._prepared(inner, [*ranges, own])
                    prepared = None if parts is None else [_around(parts, len(ranges), own)]
                case Alloc(buffer, inner):
                    written = frozenset(r.var for r in ranges)
                    parts = self._prepared(inner, ranges) if fits_registers(stmt, at, env, written) else None
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
        target = Load(stmt.buffer, stmt.index)
        accesses: dict[Load, AffineAccess] = {}  # equal loads may be several objects
        leaves: dict[tuple[int, int], AffineAccess] = {}
        for x in (target, *(e for e in walk(stmt.value) if isinstance(e, Load))):
            if x not in accesses:
                accesses[x] = AffineAccess(x.buffer, self._at.new_access(x.buffer, x.index).offset, ranges)
                if not accesses[x].are_near(x is target):
                    return None
            leaves[id(x.buffer), id(x.index)] = accesses[x]
        return [Nest(stmt, leaves, ranges)]


def _around(parts: list[Part], slot: int, values: Range) -> Loop | Nest:
    """Return a loop around parts: one nest gets one loop more."""
    if len(parts) == 1 and isinstance(parts[0], Nest):
        parts[0].first = slot
        return parts[0]
    return Loop(slot, values, tuple(parts))


@lru_cache(maxsize=1 << 12)
def _range(var: Var, width: int) -> Range:
    """`width`: the lanes of a vector, 0 for a loop without vectors."""
    if width:
        lanes, values = zip(*(lane_of(start, lanes) for start, lanes in vectors(var, width)), strict=True)
        return Range(var, values, tuple(v.const for v in values), lanes)
    assert isinstance(var.extent, int)
    numbers = tuple(range(var.low, var.extent))
    return Range(var, tuple(map(exactly, numbers)), numbers, None)


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


def _read_in(stmt: Stmt) -> set[Var]:
    """Return the variables that a statement reads."""
    read: set[Var] = set()
    for s in statements((stmt,)):
        match s:
            case Store(buffer, index, value):
                sizes = (n for x in (buffer, *(y.buffer for y in loads(value))) for n in sizes_of(x))
                read |= variables(*index, value, *sizes)
            case Let(_, value):
                read |= variables(value)
            case _:
                pass
    return read
