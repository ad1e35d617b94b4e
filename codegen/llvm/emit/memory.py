"""Loads and stores of scalars and vectors, and the known contents of memory and registers.

Rules, each in one place:
  * how far an access moves per lane decides its instruction: 0 scalar + splat, 1 vector, else           `load`
    shuffled vectors where the lanes are near each other, or scalars whose addresses are vectors          `gather`
  * where memory may not be read, the address of zeros replaces its own                                   `raw`
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import Affine, exactly, normal
from aot.codegen.ir.loops import Buffer, Expr, Load, Space, Var
from aot.codegen.ir.numbers.dot_forms import elements_per_dot
from aot.codegen.llvm.emit.address import Access, Addresses, fixed, moved, reads_memory
from aot.codegen.llvm.emit.arithmetic.convert import MEMORY, REGISTER, constant, from_memory, to_memory
from aot.codegen.llvm.emit.arithmetic.lookup import (
    bytes_looked_up,
    is_short_table,
    looked_up,
    looks_up_bytes,
    without_mask,
)
from aot.codegen.llvm.emit.arithmetic.shuffle import aligned, are_near, shuffled, spread
from aot.codegen.llvm.emit.constant_lanes import ConstantLanes
from aot.codegen.llvm.emit.function_text import (
    Function,
    Passage,
    Value,
    constants,
    integer,
    is_constant,
    lanes_of,
    suffix,
    vector,
)
from aot.codegen.llvm.emit.lane_index import NARROW, Lanes
from aot.codegen.llvm.emit.registers import Cells
from aot.codegen.llvm.emit.replaced import replaced
from aot.codegen.machines import Abilities
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

MASKED = ("float", "double", "i32", "i64")
Key = tuple[Expr, str]
K = TypeVar("K")


class Memory(Lanes):
    """Reads and writes memory and registers at the current place of a function.

    `normal`: buffers without denormal numbers (`codegen/ir/numbers/normal_values.py`), None if the target does not
    round normal numbers to bf16 itself; `is_normal`: a value without them is being stored. `quantized`: products and
    sums are not fused (`codegen/ir/numbers/quantized.py`).
    """

    def __init__(
        self,
        function: Function,
        sizes: dict[Var, Value],
        pointers: dict[str, Value],
        abilities: Abilities,
        normal: frozenset[str] | None = None,
        *,
        quantized: bool = False,
    ) -> None:
        """`sizes` and `pointers`: the values of the kernel's sizes and buffers."""
        self.f = function
        self.at = Addresses(function, sizes, pointers, self.expr)
        self.abilities = abilities
        self.normal, self.is_normal = normal, False
        self.quantized = quantized
        self.factors: ConstantLanes | None = None
        if abilities.multiplies_lanes:
            self.factors = ConstantLanes(function, self.global_name)
        self.registers: dict[str, Cells] = {}
        self.loaded: dict[str, dict[tuple[object, str], Value]] = {}  # by buffer, of the current straight-line code
        self.splats: dict[object, Value] = {}
        self.memo: dict[Key, Value] = {}  # of one statement
        self.passages: dict[tuple[str, ...], Passage] = {}  # by function and types of operands
        self.calls_functions = False  # functions of numbers are called, not written out at each place
        self.functions: dict[tuple[str, ...], Value] = {}  # that are called: result and name, as `passages`
        self.condition: Value | None = None
        self.zeros: Value | None = None
        self.outer: dict[str, str] = {}  # guard of each `within` -> the guard that encloses it

    def forget(self) -> None:
        """Forget the values of the last basic block, which do not dominate the next one."""
        self.loaded = {}
        self.splats = {}
        self.memo = {}
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
    def is_mixed(self) -> bool:
        """True if memory is read in some lanes only."""
        return self.condition is not None and lanes_of(self.condition.type) > 1

    # ---- memory

    def read(self, a: Access, lanes: int) -> Value:
        """Return `lanes` consecutive elements, as numbers."""
        if a.buffer.space is Space.TABLE:
            return self.table(a, lanes)
        if a.buffer.name in self.registers:
            value = self.registers[a.buffer.name].read(self.f, cell(a), lanes)
            return self.f.cast("fpext", value, "float") if self.holds_half(a.buffer) else value
        key = (id(a.buffer.dtype), a.offset.key, lanes)  # an identity has its hash at once
        value = self.known(a.buffer, key)
        if value is None:
            # `raw` may read an index from the same buffer.
            value = from_memory(self.f, a.buffer.dtype, self.raw(a, lanes, self.inside), self.abilities.converts)
            self.loaded.setdefault(a.buffer.name, {})[key, self.at.guard] = value
        return value

    def holds_half(self, b: Buffer) -> bool:
        """True if registers hold a buffer as f16."""
        return b.dtype is DType.F16 and b.name in self.registers and self.abilities.sums_half

    def register_type(self, b: Buffer) -> str:
        """Return the type of an element of a buffer in registers."""
        return "half" if b.dtype is DType.F16 and self.abilities.sums_half else REGISTER[b.dtype.compute]

    def half(self, v: Value) -> Value:
        """Round f32 to f16; numbers that were f16 before are not converted."""
        key = ("half", v.type, v.name)
        if key not in self.splats:
            self.splats[key] = self.f.cast("fptrunc", v, "half")
        return self.splats[key]

    def known(self, buffer: Buffer, key: object) -> Value | None:
        """Return a value read from a buffer before, under the same guards or fewer; None if there is none."""
        loads = self.loaded.get(buffer.name)
        return self.behind(key, loads) if loads else None

    def behind(self, key: K, loads: dict[tuple[K, str], Value]) -> Value | None:
        """Return the value computed for `key` under the enclosing guards, or under a prefix of them."""
        name = self.at.guard
        while name:
            if (key, name) in loads:
                return loads[key, name]
            name = self.outer.get(name, "")
        return loads.get((key, ""))

    def raw(self, a: Access, lanes: int, inside: Value | None) -> Value:
        type_ = vector(MEMORY[a.buffer.dtype], lanes)
        pointer, align = self.at.pointer(a), self.at.align(a)
        if inside is not None:
            pointer = self.f.select(inside, pointer, self.nothing())
        return self.f.load(type_, pointer, align)

    def word_part(self, odd: bool, x: Load) -> Value:
        """Return one of the two bf16 numbers of the word that begins at `x`, in every lane."""
        both = self.word(x)
        high = self.f.binary("and", both, integer(-1 << 16, both.type)) if odd else None
        return self.f.cast("bitcast", high or self.f.binary("shl", both, integer(16, both.type)), "float")

    def word(self, x: Load, spread: bool = True) -> Value:
        """Return the word that begins at `x`, in every lane; those of lanes that move lie side by side.

        Without `spread`, one word is a number.
        """
        a = self.at.access(x.buffer, x.index)
        lanes = {0: 1, elements_per_dot(x.buffer.dtype): self.width}.get(-1 if a.stride is None else a.stride)
        if lanes is None or self.is_mixed:
            raise InternalError(f"word: words lie side by side, got {x.buffer.name} by {a.stride}")
        width = self.width if spread else lanes
        key = ("word", a.offset.key, lanes, width)
        result = self.known(x.buffer, key)
        if result is None:
            pointer = self.at.pointer(a)
            if self.inside is not None:
                pointer = self.f.select(self.inside, pointer, self.nothing())
            result = self.wide(self.f.load(vector("i32", lanes), pointer, self.at.align(a)), width)
            self.loaded.setdefault(x.buffer.name, {})[key, self.at.guard] = result
        return result

    def row_words(self, x: Load, n: int) -> Value:
        """Return a word for each lane: the `n` bytes from `x` on, then zeros. Nothing after them is read."""
        a, f, size = self.at.access(x.buffer, x.index), self.f, elements_per_dot(x.buffer.dtype)
        pointer = self.at.pointer(a)
        if self.inside is not None:
            pointer = f.select(self.inside, pointer, self.nothing())
        if n == size * self.width:
            return f.load(vector("i32", self.width), pointer, 1)
        words = Value(vector("i32", self.width), "zeroinitializer")
        for lane in range(n // size):
            words = f.insert(words, f.load("i32", f.gep("i8", pointer, integer(4 * lane)), 1), lane)
        rest = Value("i32", "0")
        for k in range(n % size):
            one = f.load("i8", f.gep("i8", pointer, integer(n // size * size + k)), 1)
            rest = f.binary("or", rest, f.binary("shl", f.cast("zext", one, "i32"), integer(8 * k, "i32")))
        return f.insert(words, rest, n // size) if n % size else words

    def nothing(self) -> Value:
        """Return the address of 64 zeros of any type, which may always be read."""
        if self.zeros is None:
            entry_block = self.f.blocks[0]
            self.zeros = self.f.op("ptr", "alloca [512 x i8], align 64", entry_block)
            entry_block.lines.append(f"  store [512 x i8] zeroinitializer, {self.zeros}, align 64")
        return self.zeros

    def table(self, a: Access, lanes: int) -> Value:
        """Return constants of a table; a dynamic index reads them from memory."""
        type_ = REGISTER[a.buffer.dtype]
        if a.offset.is_const:
            numbers = [constant(v, a.buffer.dtype) for v in a.buffer.values[a.offset.const : a.offset.const + lanes]]
            return numbers[0] if lanes == 1 else constants([v.name for v in numbers], type_)
        name = self.table_name(a.buffer)
        self.at.pointers[name] = Value("ptr", name)
        dtype = a.buffer.dtype.compute
        stored = replace(a.buffer, name=name, dtype=DType.U8 if dtype is DType.BOOL else dtype)
        value = self.raw(a._replace(buffer=stored), lanes, self.inside)
        return from_memory(self.f, dtype, value, self.abilities.converts)

    def table_name(self, buffer: Buffer) -> str:
        dtype = buffer.dtype.compute
        scalar = MEMORY[dtype]
        items = [f"{scalar} {constant(v, DType.U8 if dtype is DType.BOOL else dtype).name}" for v in buffer.values]
        return self.global_name(f"[{len(items)} x {scalar}] [{', '.join(items)}]")

    def constant_bytes(self, data: bytes) -> str:
        """Return the name of a constant that holds `data`, aligned to 64 bytes."""
        return self.global_name(f"[{len(data)} x i8] [{', '.join(f'i8 {b}' for b in data)}]")

    def byte_of(self, table: Buffer, index: Value) -> Value:
        """Return the byte of a table of 256 for each index, a u8."""
        data, lanes = bytes(int(v) & 0xFF for v in table.values), lanes_of(index.type)
        if looks_up_bytes(lanes, self.abilities):
            return bytes_looked_up(self.f, data, index, self.abilities)
        base = Value("ptr", self.constant_bytes(data))
        byte = Value(vector("i8", lanes), "poison")
        for i in range(lanes):
            offset = self.f.cast("zext", self.f.extract(index, i), "i64")
            one = self.f.load("i8", self.f.gep("i8", base, offset), 1)
            byte = one if lanes == 1 else self.f.insert(byte, one, i)
        return byte

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
        if a.stride in (0, 1) and (not self.is_mixed or a.buffer.name in self.registers):
            return self.read(a, self.width if a.stride else 1)
        shared = self.shared(load, a) if a.stride is None else None
        return self.gather(a) if shared is None else shared

    def shared(self, load: Load, a: Access) -> Value | None:
        """Take the lanes from one vector, which other loads share; None if they are not known to be in one."""
        size = self.width
        part = self.block(load, a, size)
        if part is None:
            return None
        start, positions = part
        with replaced(self.at, lane=None):
            block = self.read(start, size)
        return spread(self.f, block, positions)

    def block(self, load: Load, a: Access, size: int) -> tuple[Access, list[int]] | None:
        """Return a block of `size` elements that holds those of all lanes, and their places in it.

        It begins at a multiple of its size in a dimension, so that loads near each other have the same block. None if
        the elements are not known to be in one.
        """
        lane, index = self.at.lane, [self.at.normal(i) for i in load.index]
        moving = [k for k, i in enumerate(index) if lane in variables(*i.terms)]
        if len(moving) != 1 or load.buffer.strides[moving[0]] != 1 or self.is_mixed or a.buffer.space is not Space.ARG:
            return None
        (k,), room = moving, load.buffer.shape[moving[0]]
        distances = self.places(index[k])
        if distances is None or lane is None or not isinstance(room, int):
            return None
        before = aligned(distances, normal(index[k].expr(), {lane: exactly(0)}), room, size)
        if before is None:
            return None
        return moved(self.at.in_lane(a, 0), -before), [p + before for p in distances]

    def gather(self, a: Access) -> Value:
        """Load a number for each lane, from any address."""
        key = ("gather", a.buffer.dtype, a.whole.key, self.at.lane)
        if (value := self.known(a.buffer, key)) is not None:
            return value
        if self.abilities.permutes and is_short_table(a.buffer):
            index = self.numbers(self.at.normal(without_mask(a.whole.expr())), NARROW)
            value = looked_up(self.f, a.buffer.values, self.wide(index, self.width), self.abilities)
        elif a.buffer.name in self.registers or a.buffer.space is Space.TABLE:
            value = Value(vector(REGISTER[a.buffer.dtype], self.width), "poison")
            for i in range(self.width):
                part = self.at.in_lane(a, i)
                with self.one_lane(i):
                    one = self.read(part, 1)
                value = self.f.insert(value, one, i)
        else:
            value = from_memory(self.f, a.buffer.dtype, self.elements(a), self.abilities.converts)
        self.loaded.setdefault(a.buffer.name, {})[key, self.at.guard] = value
        return value

    def elements(self, a: Access) -> Value:
        """Load elements as they are stored, one for each lane."""
        scalar, inside = MEMORY[a.buffer.dtype], self.inside
        distances = self.places(a.whole)
        if distances is not None and not self.is_mixed and are_near(distances):
            first = self.at.in_lane(a, 0)

            def row(start: int, lanes: int) -> Value:
                with replaced(self.at, lane=None):
                    return self.raw(moved(first, start), lanes, inside)

            return shuffled(self.f, distances, row)
        if inside is None and (moves := self.at.optional_step(a)) is not None:
            return self.row_or_one(a, moves)
        if self.is_mixed and self.abilities.masks and distances == list(range(self.width)) and scalar in MASKED:
            return self.masked(a)
        value = Value(vector(scalar, self.width), "poison")
        for i, pointer in enumerate(self.each_pointer(a, distances)):
            one = self.f.load(scalar, pointer, a.buffer.dtype.stored_bytes)
            value = self.f.insert(value, one, i)
        return value

    def row_or_one(self, a: Access, moves: Affine) -> Value:
        """Load a row if `moves` is 1. If it is 0, load one element for all lanes: those after it may not be read."""
        scalar, size, pointer = MEMORY[a.buffer.dtype], a.buffer.dtype.stored_bytes, self.first(a)
        is_row = self.f.compare("icmp ne", self.at.linear(moves), integer(0))
        row = self.f.load(vector(scalar, self.width), self.f.select(is_row, pointer, self.nothing()), size)
        return self.f.select(is_row, row, self.f.splat(self.f.load(scalar, pointer, size), self.width))

    def masked(self, a: Access) -> Value:
        """Load consecutive elements, only those that may be read."""
        assert self.inside is not None
        type_ = vector(MEMORY[a.buffer.dtype], self.width)
        size, rest = Value("i32", str(a.buffer.dtype.stored_bytes)), Value(type_, "zeroinitializer")
        return self.f.call(f"llvm.masked.load.{suffix(type_)}.p0", type_, self.first(a), size, self.inside, rest)

    def first(self, a: Access) -> Value:
        """Return the address of the first lane. An index in memory is read if any lane is read."""
        inside, first = self.inside, self.at.in_lane(a, 0)
        if inside is not None and self.is_mixed and any(map(reads_memory, a.whole.terms)):
            inside = self.f.call(f"llvm.vector.reduce.or.{suffix(inside.type)}", "i1", inside)
        with replaced(self.at, lane=None), replaced(self, inside=inside):
            return self.at.pointer(first)

    def each_pointer(self, a: Access, distances: list[int] | None) -> Iterator[Value]:
        """Yield the address of each lane; the address of zeros if the lane may not be read."""
        if distances is not None and self.inside is None:
            parts = [self.at.in_lane(a, i) for i in range(self.width)]
            with replaced(self.at, lane=None):
                pointers = [self.at.pointer(part) for part in parts]
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
            item = self.half(value) if self.holds_half(a.buffer) else value
            self.registers[name].write(self.f, cell(a), lanes, item)
            if name in self.loaded:
                del self.loaded[name]
            return
        pointer, align = self.at.pointer(a), self.at.align(a)
        native = self.abilities.converts | {DType.BF16} if self.is_normal else self.abilities.converts
        self.f.store(to_memory(self.f, a.buffer.dtype, value, native), pointer, align)
        self.loaded.pop(name, None)
        self.at.forget()

    @contextmanager
    def one_lane(self, i: int) -> Generator[None]:
        """Emit scalar code for one lane of the vector."""
        inside = self.inside
        if inside is not None and lanes_of(inside.type) > 1:
            inside = self.f.extract(inside, i)
        with replaced(self.at, lane=None), replaced(self, inside=inside, memo={}):
            yield

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

    @contextmanager
    def fixed_lane(self, lane: Var, i: int) -> Generator[None]:
        """Emit scalar code for one lane of the vector loop; the loop's axis is a constant in it."""
        self.memo = {}
        with replaced(self.at, env=fixed(self.at.env, lane, i), lane=None):
            yield


def cell(a: Access) -> int:
    """Return the place in a register buffer."""
    if a.offset.terms:
        raise InternalError(f"{a.buffer.name}: a register index is constant, got {a.offset}")
    return a.offset.const
