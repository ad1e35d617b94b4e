"""Expressions -> values, and the known contents of memory and registers.

Rules, each in one place:
  * how far an access moves per lane decides its instruction: 0 scalar + splat, 1 vector, else           `load`
    shuffled vectors where the lanes are near each other, or scalars whose addresses are vectors          `gather`
  * inside `within` no address outside is read: it is replaced by that of some zeros                      `raw`
  * a product with a structural zero, or with one, costs nothing                                         `fma`
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from codegen.ir.clamps import clamp_of, rounded_of, without_inner_bounds
from codegen.ir.expressions import variables
from codegen.ir.index import Affine, decide, exactly, is_index, normal
from codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Space, Var
from codegen.llvm.emit.address import Access, Addresses, fixed, reads_memory
from codegen.llvm.emit.convert import MEMORY, REGISTER, bits, cast, clamped, constant, from_memory, rounded, to_memory
from codegen.llvm.emit.function_text import (
    Function,
    Value,
    constants,
    integer,
    is_constant,
    lanes_of,
    number,
    suffix,
    vector,
)
from codegen.llvm.emit.lane_index import NARROW, Lanes, fits
from codegen.llvm.emit.lookup import is_short_table, looked_up, without_mask
from codegen.llvm.emit.mathlib import MATHLIB, template
from codegen.llvm.emit.quotients import reciprocal
from codegen.llvm.emit.registers import Cells
from codegen.llvm.emit.scalar import SCALAR
from codegen.llvm.emit.shuffle import aligned, near, shuffled, spread
from runtime.abi import DType
from runtime.errors import InternalError

ZERO, ONE, MINUS_ONE = "0x0000000000000000", "0x3FF0000000000000", "0xBFF0000000000000"
MASKED = ("float", "double", "i32", "i64")
Key = tuple[Expr, str]
K = TypeVar("K")


class Values(Lanes):
    """Emits expressions at the current place of a function.

    `native`: the short types that the target converts itself; `masks`: it has masked loads; `permutes`: floats among
    which an instruction chooses by lane.
    """

    def __init__(
        self,
        function: Function,
        sizes: dict[Var, Value],
        pointers: dict[str, Value],
        native: frozenset[DType],
        masks: bool,
        permutes: int = 0,
    ) -> None:
        """`sizes` and `pointers`: the values of the kernel's sizes and buffers."""
        self.f = function
        self.at = Addresses(function, sizes, pointers, self.expr)
        self.native = native
        self.masks = masks
        self.permutes = permutes
        self.registers: dict[str, Cells] = {}
        self.loaded: dict[str, dict[tuple[object, str], Value]] = {}  # by buffer, of the current straight-line code
        self.splats: dict[object, Value] = {}
        self.memo: dict[Key, Value] = {}  # of one statement
        self.condition: Value | None = None
        self.zeros: Value | None = None
        self.outer: dict[str, str] = {}  # guard of each `within` -> the guard that encloses it

    def forget(self) -> None:
        """Forget computed values: a block begins in which those of the last one may not be used."""
        self.loaded, self.splats, self.memo = {}, {}, {}
        self.at.forget()

    @property
    def inside(self) -> Value | None:
        """Guard: where it does not hold, no memory may be read, and values have no meaning."""
        return self.condition

    @inside.setter
    def inside(self, condition: Value | None) -> None:
        self.condition = condition
        self.at.guard = condition.name if condition is not None else ""

    @property
    def mixed(self) -> bool:
        """True if memory is read in some lanes only."""
        return self.condition is not None and lanes_of(self.condition.type) > 1

    # ---- memory

    def read(self, a: Access, lanes: int) -> Value:
        """Return `lanes` consecutive elements, as numbers."""
        if a.buffer.space is Space.TABLE:
            return self.table(a, lanes)
        if a.buffer.name in self.registers:
            return self.registers[a.buffer.name].read(self.f, cell(a), lanes)
        key = (a.buffer.dtype, a.offset.key, lanes)
        value = self.known(a.buffer, key)
        if value is None:
            # `raw` may read an index from the same buffer.
            value = from_memory(self.f, a.buffer.dtype, self.raw(a, lanes, self.inside), self.native)
            self.loaded.setdefault(a.buffer.name, {})[key, self.at.guard] = value
        return value

    def known(self, buffer: Buffer, key: object) -> Value | None:
        """Return a value read from a buffer before, under the same guards or fewer; None if there is none."""
        found = self.loaded.get(buffer.name)
        return self.behind(key, found) if found else None

    def behind(self, key: K, found: dict[tuple[K, str], Value]) -> Value | None:
        """Return the value made for `key` under the guards of the enclosing `within`, or under some of them."""
        name = self.at.guard
        while name:
            if (key, name) in found:
                return found[key, name]
            name = self.outer.get(name, "")
        return found.get((key, ""))

    def raw(self, a: Access, lanes: int, inside: Value | None) -> Value:
        type_ = vector(MEMORY[a.buffer.dtype], lanes)
        pointer, align = self.at.pointer(a), self.at.align(a)
        if inside is not None:
            pointer = self.f.select(inside, pointer, self.nothing())
        return self.f.load(type_, pointer, align)

    def word_part(self, odd: bool, x: Load) -> Value:
        """Return one of the two bf16 numbers of the word that begins at `x`, in every lane."""
        a = self.at.access(x.buffer, x.index)
        lanes = {0: 1, 2: self.width}.get(-1 if a.step is None else a.step)
        if lanes is None or self.mixed:
            raise InternalError(f"word: bf16 numbers lie side by side, got {x.buffer.name} by {a.step}")
        key = ("word", a.offset.key, lanes, self.width)
        word = self.known(x.buffer, key)
        if word is None:
            pointer = self.at.pointer(a)
            if self.inside is not None:
                pointer = self.f.select(self.inside, pointer, self.nothing())
            word = self.wide(self.f.load(vector("i32", lanes), pointer, self.at.align(a)), self.width)
            self.loaded.setdefault(x.buffer.name, {})[key, self.at.guard] = word
        high = self.f.binary("and", word, integer(-1 << 16, word.type)) if odd else None
        return self.f.cast("bitcast", high or self.f.binary("shl", word, integer(16, word.type)), "float")

    def nothing(self) -> Value:
        """Return the address of 64 zeros of any type, which may always be read."""
        if self.zeros is None:
            entry = self.f.blocks[0]
            self.zeros = self.f.op("ptr", "alloca [512 x i8], align 64", entry)
            entry.lines.append(f"  store [512 x i8] zeroinitializer, {self.zeros}, align 64")
        return self.zeros

    def table(self, a: Access, lanes: int) -> Value:
        """Return constants of a table; a dynamic index reads them from memory."""
        type_ = REGISTER[a.buffer.dtype]
        if a.offset.is_const:
            found = [constant(v, a.buffer.dtype) for v in a.buffer.values[a.offset.const : a.offset.const + lanes]]
            return found[0] if lanes == 1 else constants([v.name for v in found], type_)
        name = self.table_name(a.buffer)
        self.at.pointers[name] = Value("ptr", name)
        dtype = a.buffer.dtype.compute
        stored = replace(a.buffer, name=name, dtype=DType.U8 if dtype is DType.BOOL else dtype)
        value = self.raw(replace(a, buffer=stored), lanes, self.inside)
        return from_memory(self.f, dtype, value, self.native)

    def table_name(self, buffer: Buffer) -> str:
        dtype = buffer.dtype.compute
        scalar = MEMORY[dtype]
        items = [f"{scalar} {constant(v, DType.U8 if dtype is DType.BOOL else dtype).name}" for v in buffer.values]
        return self.global_name(f"[{len(items)} x {scalar}] [{', '.join(items)}]")

    def constant_bytes(self, data: bytes) -> str:
        """Return the name of a constant that holds `data`, aligned to 64 bytes."""
        return self.global_name(f"[{len(data)} x i8] [{', '.join(f'i8 {b}' for b in data)}]")

    def global_name(self, initializer: str) -> str:
        """Return the name of the function's constant with this type and value, which is made if there is none."""
        body = f" = private unnamed_addr constant {initializer}, align 64"
        for line in self.f.globals:
            if line.endswith(body):
                return line.split(" ", 1)[0]
        quoted = self.f.head.split("@", 1)[1]
        stem = quoted.split('"')[1] if quoted[0] == '"' else quoted.split("(", 1)[0]
        name = f'@"{stem}.table{len(self.f.globals)}"'
        self.f.globals.append(name + body)
        return name

    def load(self, load: Load) -> Value:
        a = self.at.access(load.buffer, load.index)
        if a.step in (0, 1) and (not self.mixed or a.buffer.name in self.registers):
            return self.read(a, self.width if a.step else 1)
        shared = self.shared(load, a) if a.step is None else None
        return self.gather(a) if shared is None else shared

    def shared(self, load: Load, a: Access) -> Value | None:
        """Take the lanes from one vector, which other loads share; None if they are not known to be in one."""
        lane, index = self.at.lane, [self.at.normal(i) for i in load.index]
        moving = [k for k, i in enumerate(index) if lane in variables(*i.terms)]
        if len(moving) != 1 or load.buffer.strides[moving[0]] != 1 or self.mixed or a.buffer.space is not Space.ARG:
            return None
        (k,), room = moving, load.buffer.shape[moving[0]]
        places = self.places(index[k])
        if places is None or lane is None or not isinstance(room, int):
            return None
        found = aligned(places, normal(index[k].expr(), {lane: exactly(0)}), room)
        if found is None:
            return None
        before, size = found
        start = self.at.in_lane(a, 0)
        offset = start.offset.plus(Affine({}, -before))
        self.at.lane = None
        block = self.read(replace(start, offset=offset, whole=offset), size)
        self.at.lane = lane
        return spread(self.f, block, [p + before for p in places])

    def gather(self, a: Access) -> Value:
        """Load a number for each lane, from any address."""
        key = ("gather", a.buffer.dtype, a.whole.key, self.at.lane)
        if (value := self.known(a.buffer, key)) is not None:
            return value
        if self.permutes and is_short_table(a.buffer):
            index = self.numbers(self.at.normal(without_mask(a.whole.expr())), NARROW)
            value = looked_up(self.f, a.buffer.values, self.wide(index, self.width), self.permutes)
        elif a.buffer.name in self.registers or a.buffer.space is Space.TABLE:
            value = Value(vector(REGISTER[a.buffer.dtype], self.width), "poison")
            for i in range(self.width):
                part = self.at.in_lane(a, i)
                with self.one_lane(i):
                    one = self.read(part, 1)
                value = self.f.insert(value, one, i)
        else:
            value = from_memory(self.f, a.buffer.dtype, self.elements(a), self.native)
        self.loaded.setdefault(a.buffer.name, {})[key, self.at.guard] = value
        return value

    def elements(self, a: Access) -> Value:
        """Load elements as they are stored, one for each lane."""
        scalar, lane, inside = MEMORY[a.buffer.dtype], self.at.lane, self.inside
        places = self.places(a.whole)
        if places is not None and not self.mixed and near(places):
            first = self.at.in_lane(a, 0)

            def row(start: int, lanes: int) -> Value:
                offset = first.offset.plus(Affine({}, start))
                self.at.lane = None
                found = self.raw(replace(first, offset=offset, whole=offset), lanes, inside)
                self.at.lane = lane
                return found

            return shuffled(self.f, places, row)
        if inside is None and (moves := self.at.optional_step(a)) is not None:
            return self.row_or_one(a, moves)
        if self.mixed and self.masks and places == list(range(self.width)) and scalar in MASKED:
            return self.masked(a)
        value = Value(vector(scalar, self.width), "poison")
        for i, pointer in enumerate(self.each_pointer(a, places)):
            one = self.f.load(scalar, pointer, a.buffer.dtype.stored_bytes)
            value = self.f.insert(value, one, i)
        return value

    def row_or_one(self, a: Access, moves: Affine) -> Value:
        """Load a row if `moves` is 1. If it is 0, load one element for all lanes: those behind it may not be read."""
        scalar, size, pointer = MEMORY[a.buffer.dtype], a.buffer.dtype.stored_bytes, self.first(a)
        many = self.f.compare("icmp ne", self.at.linear(moves), integer(0))
        row = self.f.load(vector(scalar, self.width), self.f.select(many, pointer, self.nothing()), size)
        return self.f.select(many, row, self.f.splat(self.f.load(scalar, pointer, size), self.width))

    def masked(self, a: Access) -> Value:
        """Load consecutive elements, only those that may be read."""
        assert self.inside is not None
        type_ = vector(MEMORY[a.buffer.dtype], self.width)
        size, rest = Value("i32", str(a.buffer.dtype.stored_bytes)), Value(type_, "zeroinitializer")
        return self.f.call(f"llvm.masked.load.{suffix(type_)}.p0", type_, self.first(a), size, self.inside, rest)

    def first(self, a: Access) -> Value:
        """Return the address of the first lane. An index in memory is read if any lane is read."""
        lane, inside, first = self.at.lane, self.inside, self.at.in_lane(a, 0)
        if inside is not None and self.mixed and any(map(reads_memory, a.whole.terms)):
            self.inside = self.f.call(f"llvm.vector.reduce.or.{suffix(inside.type)}", "i1", inside)
        self.at.lane = None
        pointer, self.at.lane, self.inside = self.at.pointer(first), lane, inside
        return pointer

    def each_pointer(self, a: Access, places: list[int] | None) -> Iterator[Value]:
        """Yield the address of each lane; the address of zeros if the lane may not be read."""
        lane = self.at.lane
        if places is not None and self.inside is None:
            parts = [self.at.in_lane(a, i) for i in range(self.width)]
            self.at.lane = None
            pointers = [self.at.pointer(part) for part in parts]
            self.at.lane = lane
            yield from pointers
            return
        base, offsets = self.offsets(a)
        scalar, inside = MEMORY[a.buffer.dtype], self.inside
        if inside is None:
            yield from (self.f.gep(scalar, base, self.f.extract(offsets, i)) for i in range(self.width))
            return
        each = self.f.op(vector("ptr", self.width), f"getelementptr {scalar}, {base}, {offsets}")
        safe = self.f.select(self.wide(inside, self.width), each, self.f.splat(self.nothing(), self.width))
        yield from (self.f.extract(safe, i) for i in range(self.width))

    def write(self, a: Access, value: Value, lanes: int) -> None:
        """Store `lanes` consecutive numbers."""
        name = a.buffer.name
        if name in self.at.indexing:  # addresses depend on this buffer: known values are stale
            self.loaded = {}
            self.at.forget()
        if name in self.registers:
            self.registers[name].write(self.f, cell(a), lanes, value)
            if name in self.loaded:
                del self.loaded[name]
            return
        pointer, align = self.at.pointer(a), self.at.align(a)
        self.f.store(to_memory(self.f, a.buffer.dtype, value, self.native), pointer, align)
        self.loaded.pop(name, None)
        self.at.forget()

    @contextmanager
    def one_lane(self, i: int) -> Generator[None]:
        """Emit scalar code for one lane of the vector."""
        lane, inside, memo = self.at.lane, self.inside, self.memo
        self.at.lane, self.memo = None, {}
        if inside is not None and lanes_of(inside.type) > 1:
            self.inside = self.f.extract(inside, i)
        yield
        self.at.lane, self.inside, self.memo = lane, inside, memo

    # ---- values

    def expr(self, expr: Expr) -> Value:
        """Return the value of an expression; equal sub-expressions are emitted once per statement."""
        value = self.behind(expr, self.memo)
        if value is None:
            value = self.memo[expr, self.at.guard] = self._expr(expr)
        return value

    def _expr(self, expr: Expr) -> Value:
        if isinstance(expr, Load):
            return self.load(expr)
        if isinstance(expr, Prim):
            return self.index(expr) if expr.dtype is DType.I64 and is_index(expr) else self.primitive(expr)
        if isinstance(expr, Const):
            return constant(expr.value, expr.dtype)
        if isinstance(expr, Var):
            return self.index(expr)
        raise InternalError("emit: a reduction must be turned into loops first")

    def primitive(self, expr: Prim) -> Value:
        fn, args, dtype = expr.fn, expr.args, expr.dtype
        match fn, args:
            case "add", (Prim("mul", (a, b)), c) | (c, Prim("mul", (a, b))) if dtype.is_float:
                return self.fma(dtype, self.expr(a), self.expr(b), self.expr(c))
            case "within", (index, bound, value, *other):
                return self.within(index, bound, value, other[0] if other else Const(0, value.dtype))
            case "select", (condition, yes, no):
                return self.select(condition, yes, no)
            case "cast", (a,) if self.moves(a) and is_index(a) and fits(self.at.normal(a)):
                return cast(self.f, NARROW, dtype.compute, self.numbers(self.at.normal(a), NARROW))
            case "cast", (a,) if (found := clamp_of(expr) or clamp_of(a)) is not None:
                value, low, high = found
                value = without_inner_bounds(value, low, high)
                if (whole := rounded_of(value)) is not None and low.is_integer() and high.is_integer():
                    level = rounded(self.f, self.to_round(whole[0]), whole[1], int(low), int(high))
                else:
                    level = clamped(self.f, self.expr(value), low, high)
                return cast(self.f, DType.I32, dtype.compute, level)
            case "cast", (a,):
                return cast(self.f, a.dtype, dtype.compute, self.expr(a))
            case (("even" | "odd"), (Load() as x,)):
                return self.word_part(fn == "odd", x)
            case "bits", (a,):
                return bits(self.f, a.dtype, dtype, self.expr(a))
            case _ if dtype is DType.BOOL and (known := decide(expr, self.at.env)) is not None:
                return constant(known, DType.BOOL)
            case _ if (fn, args[0].dtype) in MATHLIB:
                return self.function(fn, args)
            case _:
                operand = self.to_round if fn == "round_even" else self.expr
                return self.apply(fn, args[0].dtype, *[operand(a) for a in args])

    def to_round(self, expr: Expr) -> Value:
        """Return the value of an expression that is rounded to a whole number: near zero it need not be exact."""
        match expr:
            case Prim("div", (a, Const(divisor)), DType.F32) if self.f.fused and (found := reciprocal(divisor)):
                value = self.expr(a)
                high, low = (number(factor, value.type) for factor in found)
                return self.f.intrinsic("fma", value, high, self.f.binary("fmul", value, low))
            case _:
                return self.expr(expr)

    def function(self, fn: str, args: tuple[Expr, ...]) -> Value:
        """Emit a function of `codegen.llvm.emit.mathlib`: its expression, with the arguments for its parameters."""
        params, body = template(fn, args[0].dtype)
        values = [self.expr(a) for a in args]
        saved, self.memo = self.memo, {(p, self.at.guard): v for p, v in zip(params, values, strict=True)}
        result = self.expr(body)
        self.memo = saved
        return result

    def index(self, expr: Expr) -> Value:
        """Emit index arithmetic as a number: a vector if it varies by lane."""
        a, lane = self.at.normal(expr), self.at.lane
        if lane is None:
            return self.at.linear(a)
        places = None if any(map(reads_memory, a.terms)) else self.places(a)
        if places is None:
            return self.numbers(a)
        first = normal(a.expr(), {lane: Affine({})})
        if not any(places):
            return self.at.linear(first)
        ramp = constants([str(first.const + p) for p in places], "i64")
        rest = self.at.linear(Affine(first.terms))
        return self.f.binary("add", self.wide(rest, self.width), ramp) if first.terms else ramp

    def within(self, index: Expr, bound: Expr, value: Expr, other: Expr) -> Value:
        low = decide(Prim("ge", (index, Const(0)), DType.BOOL), self.at.env)
        high = decide(Prim("lt", (index, bound), DType.BOOL), self.at.env)
        if low and high:
            return self.expr(value)
        if low is False or high is False:
            return self.expr(other)
        inside = self.apply("lt", DType.U64, self.expr(index), self.expr(bound))
        outer = self.inside
        self.inside = self.apply("and", DType.BOOL, outer, inside) if outer else inside
        self.outer[self.at.guard] = outer.name if outer else ""
        some = self.expr(value)
        self.inside = outer
        return self.choose(inside, some, self.expr(other))

    def select(self, condition: Expr, yes: Expr, no: Expr) -> Value:
        known = decide(condition, self.at.env)
        if known is not None:
            return self.expr(yes if known else no)
        return self.choose(self.expr(condition), self.expr(yes), self.expr(no))

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        """Select one of two values; a scalar condition may select whole vectors."""
        lanes = max(lanes_of(v.type) for v in (condition, yes, no))
        if lanes_of(condition.type) > 1:
            condition = self.wide(condition, lanes)
        return self.f.select(condition, self.wide(yes, lanes), self.wide(no, lanes))

    def apply(self, fn: str, dtype: DType, *args: Value) -> Value:
        """Emit a scalar primitive on operands of type `dtype`."""
        if fn not in SCALAR:
            raise InternalError(f"emit: no rule for {fn} of {dtype.value}")
        lanes = max([lanes_of(a.type) for a in args])
        return SCALAR[fn](self.f, dtype, *[self.wide(a, lanes) for a in args])

    def fma(self, dtype: DType, a: Value, b: Value, c: Value) -> Value:
        """Emit a * b + c, or less if the factor `a` is the constant 1 or -1, or `c` the constant zero."""
        if c.name == ZERO or (c.name.startswith("splat") and c.name == number(0.0, c.type).name):
            return b if a.name == ONE else self.apply("mul", dtype, a, b)
        if a.name in (ONE, MINUS_ONE):
            return self.apply("add" if a.name == ONE else "sub", dtype, c, b)
        return self.apply("fma", dtype, a, b, c)

    def wide(self, v: Value, lanes: int) -> Value:
        """Copy a scalar to every lane."""
        if lanes == 1 or v.type[0] == "<":
            return v
        if is_constant(v):
            return self.f.splat(v, lanes)
        key = (v.name, lanes)
        if key not in self.splats:
            self.splats[key] = self.f.splat(v, lanes)
        return self.splats[key]

    def fixed_lane(self, lane: Var, i: int) -> dict[Var, Affine]:
        """Enter one lane of the vector loop; return the environment to restore."""
        saved = self.at.env
        self.at.env, self.at.lane, self.memo = fixed(saved, lane, i), None, {}
        return saved


def cell(a: Access) -> int:
    """Return the place in a register buffer."""
    if not a.offset.is_const:
        raise InternalError(f"{a.buffer.name}: a register index is constant, got {a.offset}")
    return a.offset.const
