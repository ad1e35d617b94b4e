"""Statements -> blocks.

* a REGISTERS buffer is a table of values; a loop that stores to it carries its cells as phis         `serial`
* a horizontal reduction is an accumulating store whose target does not move with the lane            `store`
* the iterations of all parallel loops are numbered consecutively; begin..end selects those that run  `share`
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from aot.codegen.ir.index import Affine, bounds, decide, exactly
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Prefetch,
    Prim,
    Size,
    Space,
    Stmt,
    Store,
    TileOp,
    Var,
    While,
)
from aot.codegen.ir.numbers.normal_values import is_normal
from aot.codegen.ir.numbers.quantized import adds_product
from aot.codegen.ir.traverse import has_loops, has_parallel
from aot.codegen.llvm.emit.address import Access, reads_memory
from aot.codegen.llvm.emit.blocks import TileTransposer, vectors
from aot.codegen.llvm.emit.byte_stores import ByteStores
from aot.codegen.llvm.emit.carried_cells import CarriedCells, Snapshot
from aot.codegen.llvm.emit.dot_products import DotEmitter
from aot.codegen.llvm.emit.function_text import Block, Value, integer, lanes_of
from aot.codegen.llvm.emit.lane_index import lane_of
from aot.codegen.llvm.emit.registers import Cells, fits_registers
from aot.codegen.llvm.emit.replaced import replaced
from aot.codegen.llvm.emit.stacks import Stacks
from aot.codegen.llvm.emit.store_nests import StoreNests
from aot.codegen.llvm.emit.tile_registers import TileRegisters
from aot.codegen.llvm.emit.unrolled_stores import (
    MAX_LOOPS,
    Loop,
    Nest,
    Part,
    Room,
    UnrolledStores,
    is_positive_zero,
)
from aot.codegen.llvm.emit.values import ZERO, Values
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError


class StatementEmitter:
    """Emits statements at the current place of a function; composed of emitters for values, tiles and dot products."""

    def __init__(self, values: Values, stacks: Stacks) -> None:
        self.f, self.at, self.values, self.stacks = values.f, values.at, values, stacks
        self.tiles, self.dots, self.bytes = TileTransposer(values), DotEmitter(values), ByteStores(values)
        self.tile_registers, self.cells = TileRegisters(values), CarriedCells(values.f, values.registers)
        self.stores = UnrolledStores(values.at, values.abilities.packs_bytes)
        self.nests = StoreNests(values)
        self.units = integer(0)  # of the parallel loops so far

    def block(self, stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            match stmt:
                case Store():
                    self.store(stmt)
                case Let():
                    self.let(stmt)
                case For():
                    self.loop(stmt)
                case Alloc():
                    self.alloc(stmt)
                case If():
                    self.guard(stmt)
                case Prefetch():
                    self.prefetch(stmt)
                case While():
                    self.repeat(stmt)
                case TileOp():
                    self.tile_registers.emit(stmt)

    def loop(self, loop: For) -> None:
        var = loop.var
        match loop.kind:
            case LoopKind.VECTOR:
                self.vector(loop)
            case LoopKind.UNROLLED:
                self.unrolled(loop)
            case LoopKind.PARALLEL:
                self.share(loop)
            case LoopKind.SERIAL:
                self.serial(loop, integer(var.low), self.at.size(_extent(var)), self.is_certain(var))

    def let(self, let: Let) -> None:
        if self.at.lane is None and reads_memory(let.value):
            return self.named(let)
        saved = self.at.env.get(let.var)
        self.at.env[let.var] = self.at.normal(let.value)
        self.block(let.body)
        self.restore(let.var, saved)
        return None

    def restore(self, var: Var, saved: Affine | None) -> None:
        if saved is None:
            self.at.env.pop(var, None)
        else:
            self.at.env[var] = saved

    def named(self, let: Let) -> None:
        """Bind an index that reads memory: it is read once, here, and code that depends on it follows."""
        self.values.memo = {}
        value = self.values.expr(let.value)
        head, body = self.f.append("let"), self.f.append("body")
        self.f.branch(head)
        self.f.block = head
        self.f.branch(body)
        self.f.block = body
        saved = self.at.enter(let.var, value, head)
        self.block(let.body)
        self.at.leave(let.var, saved)
        self.values.forget()

    def alloc(self, alloc: Alloc) -> None:
        b = alloc.buffer
        if b.space is Space.TABLE:
            return self.block(alloc.body)
        lane = frozenset(() if self.at.lane is None else (self.at.lane,))
        in_registers = b.space is Space.REGISTERS and fits_registers(alloc, self.at, self.at.env, lane)
        with self.room(b, in_registers):
            self.block(alloc.body)
        return None

    @contextmanager
    def room(self, b: Buffer, in_registers: bool) -> Generator[None]:
        """Make room for a temporary, in registers or in memory."""
        cells, pointer = self.values.registers.pop(b.name, None), self.at.pointers.get(b.name)
        loaded = self.values.loaded.pop(b.name, None)
        if in_registers:
            self.values.registers[b.name] = Cells(self.values.register_type(b))
            yield
            del self.values.registers[b.name]
        else:
            with self.stacks.room(b) as address:
                self.at.pointers[b.name] = address
                yield
            self.at.pointers.pop(b.name)
        self.values.loaded.pop(b.name, None)
        if cells is not None:
            self.values.registers[b.name] = cells
        if pointer is not None:
            self.at.pointers[b.name] = pointer
        if loaded is not None:
            self.values.forget()

    # ---- loops

    def is_certain(self, var: Var) -> bool:
        """True if a loop over `var` runs at least once."""
        extent = _extent(var)
        low = extent if isinstance(extent, int) else bounds(self.at.normal(extent))[0]
        return low > var.low

    def unrolled(self, loop: For) -> None:
        var = loop.var
        if not isinstance(var.extent, int):
            raise InternalError(f"{var.name}: an unrolled loop has a static extent, got {var.extent}")
        if self.at.lane is None and self.values.inside is None and (stores := self.stores.find(loop)) is not None:
            return self.written_out((stores,), [0] * MAX_LOOPS)
        self.tiles.read_blocks(loop)
        outer = self.tiles.kept
        self.tiles.kept = {} if self.tiles.keeps_stores(loop) else None
        saved = self.at.env.get(var)
        for i in range(var.low, var.extent):
            self.at.env[var] = exactly(i)
            self.block(loop.body)
        self.restore(var, saved)
        kept, self.tiles.kept = self.tiles.kept, outer
        self.tiles.write_kept(kept or {})
        return None

    def written_out(self, parts: tuple[Part, ...], indices: list[int]) -> None:
        """Emit stores for all values of the variables of the loops around them; `indices`: the numbers of values."""
        for part in parts:
            match part:
                case Nest():
                    self.nest(part, indices)
                case Room(buffer, body):
                    with self.room(buffer, True):
                        self.written_out(body, indices)
                case Loop(slot, (_, values, _, lanes), body):
                    for i in range(len(values)):
                        indices[slot] = i
                        if lanes is not None:
                            self.at.lane = lanes[i]
                        self.written_out(body, indices)
                    if lanes is not None:
                        self.at.lane = None

    def nest(self, nest: Nest, indices: list[int]) -> None:
        """Emit a store for all iterations of the loops around it; most nests take a shorter way."""
        if self.nests.emit(nest, indices, self.rounds_normal(nest.store)):
            return
        at, outer = self.at, self.at.lane
        for i, numbers in enumerate(nest.numbers):
            indices[nest.first : nest.first + len(numbers)] = numbers
            if nest.lanes is not None:
                at.lane = nest.lanes[i]
            at.places, at.indices = nest.places, indices
            self.store(nest.store)
            at.places = None
        at.lane = outer

    def vector(self, loop: For) -> None:
        """Emit full vectors, then ever shorter ones; no masks."""
        var = loop.var
        if self.at.lane is not None or not isinstance(var.extent, int):
            raise InternalError(f"{var.name}: a vector loop has a static extent and is in no other, got {var.extent}")
        saved, kept = self.at.env.get(var), self.bytes.begin(loop)
        for start, lanes in vectors(var, loop.lanes):
            self.at.lane, self.at.env[var] = lane_of(start, lanes)
            self.block(loop.body)
        self.at.lane = None
        if kept:
            self.bytes.write()
        self.restore(var, saved)

    def share(self, loop: For) -> None:
        """Emit the part of a parallel loop in begin..end; its iterations are units `self.units`, `self.units` + 1, ...

        In nested parallel loops, units are the iterations of the innermost one, for each iteration of the others.
        """
        f, units, extent = self.f, self.units, self.at.size(_extent(loop.var))
        if has_parallel(loop.body):
            return self.serial(loop, integer(0), extent, True, units=True)
        first, last = f.binary("sub", Value("i64", "%begin"), units), f.binary("sub", Value("i64", "%end"), units)
        start = f.select(f.compare("icmp sgt", first, integer(0)), first, integer(0))
        stop = f.select(f.compare("icmp slt", last, extent), last, extent)
        following = f.binary("add", units, extent)
        self.serial(loop, start, stop, False)
        self.units = following
        return None

    def serial(self, loop: For, start: Value, stop: Value, is_certain: bool, units: bool = False) -> None:
        """Emit a bottom-tested loop, guarded if it may not run at all. `units`: it carries `self.units` along."""
        f = self.f
        if isinstance(loop.var.extent, int) and loop.var.extent <= loop.var.low:
            return
        before, skipped = f.block, self.cells.snapshot(loop.body)
        after = None
        if not is_certain:
            enter, after = f.append("enter"), f.append("after")
            f.branch_if(f.compare("icmp slt", start, stop), enter, after)
            f.block = enter
        preheader, head, body = f.block, f.append("loop"), f.append("body")
        f.branch(head)
        i, i_phi = f.phi(head, "i64", start, preheader)
        units_phi = None
        if units:
            self.units, units_phi = f.phi(head, "i64", self.units, preheader)
        carried = self.cells.carry(head, skipped, preheader)
        f.block = head
        f.branch(body)
        f.block = body
        self.values.forget()
        counts_alone = start == integer(0) and not has_loops(loop.body)
        saved = self.at.enter(loop.var, i, head, preheader if counts_alone else None)
        self.block(loop.body)
        self.at.advance()
        self.at.leave(loop.var, saved)
        self.values.forget()
        following = f.binary("add nuw nsw", i, integer(1))
        latch = f.block
        f.close(head, i_phi, following, latch)
        if units_phi is not None:
            f.close(head, units_phi, self.units, latch)
        self.cells.close(head, carried, latch)
        done = f.append("done")
        f.branch_if(f.compare("icmp slt", following, stop), head, done)
        f.block = done
        if after:
            f.branch(after)
            f.block = after
            self.cells.merge(after, [(before, skipped), (done, self.cells.snapshot(loop.body))])

    def repeat(self, loop: While) -> None:
        f, before = self.f, self.f.block
        head, body, after = f.append("while"), f.append("body"), f.append("after")
        f.branch(head)
        carried = self.cells.carry(head, self.cells.snapshot(loop.body), before)
        f.block = head
        self.values.forget()
        again = self.values.expr(loop.condition)
        inside = self.cells.snapshot(loop.body)
        f.branch_if(again, body, after)
        f.block = body
        self.values.forget()
        self.block(loop.body)
        f.branch(head)
        self.cells.close(head, carried, f.block)
        f.block = after
        self.values.forget()
        self.cells.restore(inside)

    # ---- branches

    def guard(self, stmt: If) -> None:
        known = decide(stmt.condition, self.at.env)
        if known is not None:
            return self.block(stmt.body if known else stmt.otherwise)
        self.values.memo = {}
        condition = self.values.expr(stmt.condition)
        if lanes_of(condition.type) > 1:
            return self.each_lane(stmt)
        f, both = self.f, (*stmt.body, *stmt.otherwise)
        before, start = self.cells.snapshot(both), f.block
        inside, after = f.append("inside"), f.append("after")
        outside = f.append("outside") if stmt.otherwise else after
        f.branch_if(condition, inside, outside)
        f.block = inside
        ways = [self.way(stmt.body, both, after)]
        self.cells.restore(before)
        if stmt.otherwise:
            f.block = outside
            ways.append(self.way(stmt.otherwise, both, after))
        else:
            ways.append((start, before))
        f.block = after
        self.values.forget()
        return self.cells.merge(after, ways)

    def way(self, stmts: tuple[Stmt, ...], both: tuple[Stmt, ...], after: Block) -> tuple[Block, Snapshot]:
        self.values.forget()
        self.block(stmts)
        self.f.branch(after)
        return self.f.block, self.cells.snapshot(both)

    def each_lane(self, stmt: Stmt) -> None:
        """Emit a statement separately for each lane."""
        lane, width = self.at.lane, self.values.width
        assert lane is not None
        for i in range(width):
            with self.values.fixed_lane(lane, i):
                self.block((stmt,))
        self.values.memo = {}

    # ---- memory

    def prefetch(self, stmt: Prefetch) -> None:
        f, pointer = self.f, self.at.pointer(self.at.access(stmt.buffer, stmt.index))
        if stmt.ahead:
            distance = integer(stmt.ahead * stmt.buffer.dtype.stored_bytes)
            if stmt.least:
                run = f.binary("sub", Value("i64", "%end"), Value("i64", "%begin"))
                distance = f.select(f.compare("icmp sge", run, integer(stmt.least)), distance, integer(0))
            pointer = f.gep("i8", pointer, distance)
        f.prefetch(pointer, stmt.level)

    def store(self, stmt: Store) -> None:
        self.values.memo = {}
        if stmt.accumulate == "add" and self.is_absent(stmt.value):
            return
        dtype = stmt.buffer.dtype.compute
        if stmt.value.dtype is not dtype:
            raise InternalError(f"store: {stmt.buffer.name} holds {dtype.value}, got {stmt.value.dtype.value}")
        target = self.at.access(stmt.buffer, stmt.index)
        if stmt.accumulate:
            with replaced(self.values, quantized=self.values.quantized and not adds_product(stmt)):
                self.accumulate(stmt, stmt.accumulate, target)
            return
        if self.bytes.keep(stmt, target):
            return
        value = self.values.expr(stmt.value)
        with replaced(self.values, is_normal=self.rounds_normal(stmt)):
            self.stored(target, value)

    def rounds_normal(self, stmt: Store) -> bool:
        """True if the target's instruction may round the stored value to bf16."""
        normal = self.values.normal
        return stmt.buffer.dtype is DType.BF16 and normal is not None and is_normal(stmt.value, normal)

    def stored(self, target: Access, value: Value) -> None:
        """Write a value, each lane to its element of `target`."""
        if self.at.lane is None or target.stride == 1:
            return self.values.write(target, self.values.wide(value, self.values.width), self.values.width)
        if target.stride == 0:
            return self.values.write(target, self.f.extract(value, self.values.width - 1), 1)
        if self.tiles.kept is not None and (target.stride is not None or self.at.is_strided(target)):
            return self.tiles.keep(target, self.values.wide(value, self.values.width))
        return self.scatter(target, value, lambda one, item: item)

    def scatter(self, target: Access, value: Value, combined: Callable[[Access, Value], Value]) -> None:
        """Write each lane of `value`, combined with the element of `target` that it goes to."""
        parts = [(self.at.in_lane(target, i), self.f.extract(value, i)) for i in range(self.values.width)]
        with replaced(self.at, lane=None):
            for one, item in parts:
                self.values.write(one, combined(one, item), 1)

    def accumulate(self, stmt: Store, fn: str, target: Access) -> None:
        dtype, width = stmt.buffer.dtype.compute, self.values.width

        def added(one: Access, item: Value) -> Value:
            return self.values.apply(fn, dtype, self.values.read(one, 1), item)

        if self.at.lane is None or target.stride == 1:
            return self.values.write(target, self.values.wide(self.combined(fn, stmt.value, target), width), width)
        value = self.values.wide(self.values.expr(stmt.value), width)
        if target.stride == 0:
            while (n := lanes_of(value.type)) > 1:
                value = self.values.apply(fn, dtype, self.f.part(value, 0, n // 2), self.f.part(value, n // 2, n // 2))
            return self.values.write(target, added(target, value), 1)
        return self.scatter(target, value, added)

    def combined(self, fn: str, value: Expr, target: Access) -> Value:
        """Return `target` combined with `value` by `fn`; a product is fused."""
        dtype, old = value.dtype, self.values.read(target, self.values.width)
        match fn, value:
            case "add", Prim("mul", (Prim("even" | "odd" as part, (Load() as x,)), Prim(other, (Load() as w,)))) if (
                part == other
                and (name := self.values.abilities.intrinsics.get(f"add_{part}", {}).get(lanes_of(old.type)))
            ):
                return self.dots.add_part(name, part == "odd", x, w, old)
            case "add", Prim("mul", (a, b)) if self.values.holds_half(target.buffer):
                return self.values.half_fma(self.values.expr(a), self.values.expr(b), old)
            case "add", Prim("mul", (a, b)) if dtype.is_float:
                return self.values.fma(dtype, self.values.expr(a), self.values.expr(b), old)
            case "add", Prim("dot", (x, w, Const(n), *rows)):
                return self.dots.dot(x, w, int(n), self.values.wide(old, self.values.width), rows)
            case "add", Prim("block_dot", (Load() as x, Load() as w, Const(half))):
                return self.dots.block_dot(x, w, int(half), old)
            case _:
                return self.values.apply(fn, dtype, old, self.values.expr(value))

    def is_absent(self, term: Expr) -> bool:
        """True if a term is a product with a structural zero."""
        factor = term.args[0] if isinstance(term, Prim) and term.fn == "mul" else None
        if not isinstance(factor, Load) or factor.buffer.space is not Space.TABLE:
            return False
        a = self.at.access(factor.buffer, factor.index)
        if a.stride == 0 and a.offset.is_const and factor.buffer.dtype.is_float:
            return is_positive_zero(a.buffer.values[a.offset.const])
        return self.values.expr(factor).name == ZERO


def _extent(var: Var) -> Size:
    if var.extent is None:
        raise InternalError(f"{var.name}: a loop has an extent")
    return var.extent
