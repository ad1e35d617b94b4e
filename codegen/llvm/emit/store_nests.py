"""Stores in unrolled loops that hold nothing else: all iterations at once.

    unrolled p.t in 14:
      vector c.t in 32 by 16:
        acc[p.t, c.t] += x[p.t] * w[c.t]      28 times: registers are read, a product is added, a register is written

An iteration differs from the first one by distances, which are added to the places in registers and tables that the
first one accesses. The LLVM IR is the same as if every iteration were emitted by `StatementEmitter.store`.
"""

from __future__ import annotations

from aot.codegen.ir.loops import Const, Space
from aot.codegen.llvm.emit.address import Access
from aot.codegen.llvm.emit.arithmetic.convert import REGISTER, constant
from aot.codegen.llvm.emit.arithmetic.scalar import SCALAR
from aot.codegen.llvm.emit.function_text import Function, Value, number, vector
from aot.codegen.llvm.emit.registers import Cell
from aot.codegen.llvm.emit.unrolled_stores import AffineAccess, Nest
from aot.codegen.llvm.emit.values import MINUS_ONE, ONE, Values
from aot.runtime.abi import DType


class Operand:
    """An access of a nest. `known`: numbers in registers, or those that were read before, by place and lanes.

    `first`: the place of the first iteration, to which others add their distances. `is_simple`: all places are known.
    """

    def __init__(self, values: Values, nest: Nest, access: AffineAccess, indices: list[int]) -> None:
        """`indices`: the numbers of the first iteration; `at` sets those of another one."""
        self._values, self._nest, self._access, self._indices = values, nest, access, indices
        self.stride, self.buffer = access.stride, access.buffer
        cells = values.registers.get(access.buffer.name)
        self.in_registers, self.in_table = cells is not None, access.buffer.space is Space.TABLE
        self.known: dict[Cell, Value] = access.numbers if self.in_table else {} if cells is None else cells.values
        self._is_linear, self.first, self.is_simple = access.is_linear(nest), 0, True
        self._start, self._added = access.start(indices)
        if self.in_registers or self.in_table:
            self.is_simple = self._is_linear and not self._start.terms and not values.holds_half(access.buffer)
            self.first = self._start.const + self._added if self.is_simple else 0

    def at(self, iteration: int, distance: int) -> Access:
        """Return the access to the first lane of an iteration; `distance`: see `AffineAccess.distances`."""
        if self._is_linear:
            offset = self._start.after(self._added + distance)
        else:
            nest = self._nest
            self._indices[nest.first : len(nest.ranges)] = nest.numbers[iteration]
            offset = self._access.at(self._indices).offset
        return Access(self.buffer, offset, 0, offset)

    def read(self, iteration: int, distance: int, lanes: int) -> Value:
        """Return the number that an iteration reads, which is not in `known`."""
        value = self._values.read(self.at(iteration, distance), lanes)
        if not self.in_registers:
            self.known[self.first + distance, lanes] = value
        return value


class StoreNests:
    """Emits nests of stores that add a product of two floats to a register, or copy a number."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._adders: dict[tuple[DType, int], Adder] = {}

    def emit(self, nest: Nest, indices: list[int], is_normal: bool) -> bool:
        """Emit all stores of a nest; False, without any line, for what only `StatementEmitter.store` can.

        `indices`: the numbers of the variables' values; `is_normal`: no stored number is denormal.
        """
        values, name, accesses = self._values, nest.store.buffer.name, nest.operands
        if not accesses or name in values.at.indexing:
            return False
        indices[nest.first : len(nest.ranges)] = nest.numbers[0]
        target, *sources = operands = [Operand(values, nest, access, indices) for access in accesses]
        if not all(x.is_simple for x in operands):
            return False
        if nest.store.accumulate is None:
            if any(x.buffer.name == name for x in sources):
                return False
            values.memo = {}
            values.is_normal = is_normal
            self._copy(nest, target, *sources)
            values.is_normal = False
        elif target.in_registers:
            self._add_products(nest, target, *sources)
        else:
            return False
        values.loaded.pop(name, None)
        return True

    def _add_products(self, nest: Nest, target: Operand, x: Operand, w: Operand) -> None:
        values, dtype, sums = self._values, nest.store.buffer.dtype.compute, target.known
        for i, width, (to, from_x, from_w) in nest.steps(values.width, x.first if x.in_table else None):
            cell = target.first + to, width
            old = sums.get(cell)
            c = old or target.read(i, to, width)
            lanes = width if x.stride else 1
            a = x.known.get((x.first + from_x, lanes)) or x.read(i, from_x, lanes)
            lanes = width if w.stride else 1
            b = w.known.get((w.first + from_w, lanes)) or w.read(i, from_w, lanes)
            adder = self._adders.get((dtype, width))
            if adder is None:
                adder = self._adders[dtype, width] = Adder(values, dtype, width)
            total = adder.sum(a, b, c)
            if old is None:
                values.registers[target.buffer.name].write(values.f, *cell, total)
            else:
                sums[cell] = total

    def _copy(self, nest: Nest, target: Operand, source: Operand | None = None) -> None:
        values, cells = self._values, self._values.registers.get(target.buffer.name)
        item = constant(nest.store.value.value, nest.store.value.dtype) if isinstance(nest.store.value, Const) else None
        for i, width, (to, *distances) in nest.steps(values.width, None):
            if source is not None:
                (distance,), lanes = distances, width if source.stride else 1
                item = source.known.get((source.first + distance, lanes)) or source.read(i, distance, lanes)
            assert item is not None
            wide = values.wide(item, width)
            if cells is None:
                values.write(target.at(i, to), wide, width)
            else:
                cells.write(values.f, target.first + to, width, wide)


class Adder:
    """Adds products of `width` lanes as `Values.fma` does; its lines have few forms, and are written from formats."""

    def __init__(self, values: Values, dtype: DType, width: int) -> None:
        self._values, self._dtype, self._width = values, dtype, width
        self._type = vector(REGISTER[dtype], width)
        self._zero = number(0.0, self._type).name
        self._formats, self._constants = dict[str, str](), dict[str, str]()

    def sum(self, a: Value, b: Value, c: Value) -> Value:
        """Emit a * b + c."""
        type_, f = self._type, self._values.f
        if type_ not in (a.type, b.type):
            return self._values.wide(self._values.fma(self._dtype, a, b, c), self._width)
        if c.name == self._zero:
            if a.name == ONE:
                return b
            fn, names = "mul", (self._factor(a), self._factor(b))
        elif a.name in (ONE, MINUS_ONE):
            fn, names = "add" if a.name == ONE else "sub", (c.name, b.name)
        else:
            fn, names = "fma", (self._factor(a), self._factor(b), c.name)
        text = self._formats.get(fn) or self._format(fn)
        f.count += 1
        name = f"%v{f.count}"
        f.block.lines.append(text % (name, *names))
        return Value(type_, name)

    def _factor(self, v: Value) -> str:
        """Return the name of a factor in every lane."""
        if v.type == self._type:
            return v.name
        known = self._constants.get(v.name)
        if known is None:
            known = self._values.wide_factor(v, self._width).name
            if known[0] not in "%@":
                self._constants[v.name] = known
        return known

    def _format(self, fn: str) -> str:
        """Return the line of an instruction as a format over the names of its result and its operands."""
        f = Function("", [])
        result = SCALAR[fn](f, self._dtype, *[Value(self._type, "%s")] * (3 if fn == "fma" else 2))
        (line,) = f.block.lines
        self._values.f.declarations |= f.declarations
        text = self._formats[fn] = line.replace(result.name, "%s", 1)
        return text
