"""Code between calls: sizes that calls have computed, checks of them, jumps.

@run_all   run_calls(0, 3)  ->  @set_0: v0 = load, sizes made of v0, plan, capacity  ->  run_calls(3, 5)
                                  | error code                  @when_1: whether a jump is taken
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from aot.codegen.ir.loops import Expr, Size, Var
from aot.codegen.ir.program import Bind, Check, Jump, Label, Let, Program, SizeConstraint
from aot.codegen.llvm.driver.places import address
from aot.codegen.llvm.driver.plan import plan_rows
from aot.codegen.llvm.driver.shape_functions import depends, function_text, late_symbols_of, symbol_code
from aot.codegen.llvm.driver.size_code import CheckedSizeCode
from aot.runtime import abi

Setting = Bind | Let | Check
MANY_PLACES = 16  # of the plan, from which on one value is stored by a loop over a table

_FILL = """\
br label %next
next:
%i = phi i64 [ 0, %entry ], [ %i.next, %next ]
%place.at = getelementptr i32, ptr %places, i64 %i
%place.short = load i32, ptr %place.at, align 4
%place = zext i32 %place.short to i64
%to = getelementptr i64, ptr %plan, i64 %place
store i64 %value, ptr %to, align 8
%i.next = add i64 %i, 1
%more = icmp ult i64 %i.next, %count
br i1 %more, label %next, label %done
done:"""
_FILL_HEAD = "define internal void @fill(ptr %plan, ptr %places, i64 %count, i64 %value) nounwind noinline {\nentry:"


def control_functions(program: Program, tag: str) -> list[str]:
    """Return @run_all, which runs the calls as control directs, and the functions that it calls, as LLVM text."""
    driver, parts, dependents = _Driver(program), list[str](), _Dependents(program)
    for (setting, at), entries in groupby(program.control, key=lambda c: (isinstance(c, Setting), c.at)):
        group = list(entries)
        driver.run_to(at)
        if setting:
            settings = [c for c in group if isinstance(c, Setting)]
            parts.append(_Settings(program, tag, dependents).function(f"set_{len(parts)}", settings))
            driver.set(len(parts) - 1)
            continue
        for command in group:
            if isinstance(command, Label):
                driver.label(command)
            elif isinstance(command, Jump):
                parts.append(_condition(program, command, f"when_{len(parts)}"))
                driver.jump(command, len(parts) - 1)
    driver.run_to(len(program.calls))
    fill = [function_text(_FILL_HEAD, _FILL.splitlines(), "ret void")] if any("@fill(" in p for p in parts) else []
    return [*fill, *parts, driver.text()]


class _Driver:
    """Text of @run_all: code is in the order of the calls, so a jump is a branch."""

    def __init__(self, program: Program) -> None:
        self.at = 0
        self.passed = set[str]()  # labels
        self.lines = [
            "%turn.at = getelementptr %job, ptr %job, i64 0, i32 8",
            "%request = load ptr, ptr %job, align 8",
            "%plan.at = getelementptr %job, ptr %job, i64 0, i32 1",
            "%plan = load ptr, ptr %plan.at, align 8",
            "%symbols.at = getelementptr %request, ptr %request, i64 0, i32 2",
            "%symbols = load ptr, ptr %symbols.at, align 8",
        ]
        for i, _ in enumerate(program.late, len(program.symbols)):
            self.lines.append(f"%late{i} = getelementptr i64, ptr %symbols, i64 {i}")
            self.lines.append(f"store i64 0, ptr %late{i}, align 8")
        if program.is_cancellable:
            self.lines += [
                f"%cancel = getelementptr i64, ptr %symbols, i64 {len(program.stored)}",
                "%clock = alloca [3 x i64], align 8",
                "store [3 x i64] zeroinitializer, ptr %clock, align 8",
                "%turn.first = load i64, ptr %turn.at, align 8",
                "store i64 %turn.first, ptr %clock, align 8",
            ]

    def run_to(self, at: int) -> None:
        if at > self.at:
            self.lines.append(f"call void @run_calls(ptr %job, i64 {self.at}, i64 {at})")
            self.at = at

    def set(self, n: int) -> None:
        self.lines += [
            f"%code{n} = call i32 @set_{n}(ptr %request, ptr %symbols, ptr %plan)",
            f"%good{n} = icmp eq i32 %code{n}, 0",
            f"br i1 %good{n}, label %on{n}, label %end{n}",
            f"end{n}:",
            f"ret i32 %code{n}",
            f"on{n}:",
        ]

    def label(self, label: Label) -> None:
        self.passed.add(label.name)
        self.lines += [f'br label %"to {label.name}"', f'"to {label.name}":']

    def jump(self, jump: Jump, n: int) -> None:
        if jump.to in self.passed:  # the next iteration goes through large weights the other way
            self.lines += [
                f"%turn{n} = load i64, ptr %turn.at, align 8",
                f"%turned{n} = add i64 %turn{n}, 1",
                f"store i64 %turned{n}, ptr %turn.at, align 8",
            ]
        if jump.asks:
            self.lines += [
                f"%next{n} = load i64, ptr %clock, align 8",
                f"%ahead{n} = sub i64 %turned{n}, %next{n}",
                f"%due{n} = icmp sge i64 %ahead{n}, 0",
                f"br i1 %due{n}, label %asks{n}, label %goes{n}",
                f"asks{n}:",
                f"%halt{n} = call i1 @cancelled(ptr %cancel, ptr %clock, i64 %turned{n})",
                f"br i1 %halt{n}, label %halted{n}, label %goes{n}",
                f"halted{n}:",
                f"ret i32 {abi.ERROR_CANCELLED}",
                f"goes{n}:",
            ]
        self.lines += [
            f"%when{n} = call i1 @when_{n}(ptr %symbols)",
            f'br i1 %when{n}, label %"to {jump.to}", label %on{n}',
            f"on{n}:",
        ]

    def text(self) -> str:
        return function_text("define internal i32 @run_all(ptr %job) nounwind {\nentry:", self.lines, "ret i32 0")


def _condition(program: Program, jump: Jump, name: str) -> str:
    code = symbol_code(program, [jump.when])
    taken = code.truth(jump.when)
    return function_text(f"define internal i1 @{name}(ptr %symbols) nounwind {{", code.lines, f"ret i1 {taken}")


class _Dependents:
    """Sizes that depend on each late symbol, found once for all settings. `rows`: sizes of the plan, in order."""

    def __init__(self, program: Program) -> None:
        symbols = depends(program)
        self.computed = program.computed
        self.rows: list[Size] = [size for row in plan_rows(program) for size in row]
        self._rows = _by_symbol(late_symbols_of(size, symbols) for size in self.rows)
        self._computed = _by_symbol(symbols[size.name] for size, _ in program.computed)

    def rows_of(self, symbols: Iterable[str]) -> list[tuple[int, Size]]:
        """Return the sizes of the plan that depend on one of these symbols, with their indices."""
        return [(i, self.rows[i]) for i in sorted({i for s in symbols for i in self._rows.get(s, ())})]

    def computed_of(self, symbols: Iterable[str]) -> list[tuple[Var, Expr]]:
        """Return the named sizes that depend on one of these symbols, with the expressions that define them."""
        return [self.computed[i] for i in sorted({i for s in symbols for i in self._computed.get(s, ())})]


def _by_symbol(read: Iterable[frozenset[str]]) -> dict[str, list[int]]:
    indices: dict[str, list[int]] = {}
    for i, symbols in enumerate(read):
        for name in symbols:
            indices.setdefault(name, []).append(i)
    return indices


class _Settings:
    """A function that sets symbols and the sizes that depend on them, checks them, and returns an error code."""

    def __init__(self, program: Program, tag: str, dependents: _Dependents) -> None:
        self.program, self.tag, self.dependents = program, tag, dependents
        self.capacity = {x.symbol.name: x.capacity for x in program.late if x.capacity is not None}
        self.places = program.places
        self.wrong: list[tuple[str, int]] = []  # conditions that must not hold, error codes
        self.room: list[tuple[str, int]] = []
        self.raised: list[tuple[str, str, str]] = []  # capacities: name, value now, value that the inference needs
        self.stale: set[str] = set()
        self.code = CheckedSizeCode({})

    def function(self, name: str, entries: Sequence[Setting]) -> str:
        changed = {e.symbol.name for e in entries if not isinstance(e, Check)}
        symbol_code(self.program, self._used(entries, changed), self.code)
        for kind, same in groupby(entries, key=type):
            rows = list(same)
            if kind is not Bind:
                self._refresh()
            for setting in rows:
                if isinstance(setting, Check):
                    self._check(setting.rule)
            for symbol, value in [(e.symbol, self._value(e)) for e in rows if not isinstance(e, Check)]:
                self._set(symbol, value)
        self._refresh()
        tables = self._plan(name, changed)
        code = "0"
        for wrong, number in reversed([*self.wrong, *self.room]):
            code = self.code.add(f"select i1 {wrong}, i32 {number}, i32 {code}")
        self._raise(code)
        head = f"define internal i32 @{name}(ptr %request, ptr %symbols, ptr %plan) nounwind {{"
        return "\n".join([*tables, function_text(head, self.code.lines, f"ret i32 {code}")])

    def _used(self, entries: Sequence[Setting], changed: set[str]) -> list[Size]:
        used: list[Size] = [size for _, size in self.dependents.rows_of(changed)]
        used += [meaning for _, meaning in self.dependents.computed_of(changed)]
        for setting in entries:
            match setting:
                case Bind(_, _, place):
                    used.append(place.offset)
                case Let(_, _, value):
                    used.append(value)
                case Check(_, rule):
                    used += [rule.one, rule.other]
        return [*used, *(self.capacity[name] for name in sorted(changed & set(self.capacity)))]

    def _check(self, rule: SizeConstraint) -> None:
        """Check a rule. Overflow in one of its sizes is an error, too: the wrapped number could be anything."""
        self.code.watch()
        unequal = self.code.add(f"icmp ne i64 {self.code.operand(rule.one)}, {self.code.operand(rule.other)}")
        over = self.code.add(f"xor i1 {self.code.fits}, true")
        self.wrong.append((self.code.add(f"or i1 {unequal}, {over}"), abi.ERROR_VALUE))

    def _value(self, setting: Bind | Let) -> str:
        return self._read(setting) if isinstance(setting, Bind) else self.code.operand(setting.value)

    def _read(self, bind: Bind) -> str:
        pointer = address(f"a{len(self.code.lines)}", bind.place, self.code, self.tag)
        bits, extend = bind.dtype.stored_bytes * 8, "sext" if bind.dtype.is_signed else "zext"
        value = self.code.add(f"load i{bits}, ptr {pointer}, align {bits // 8}")
        return value if bits == 64 else self.code.add(f"{extend} i{bits} {value} to i64")

    def _set(self, symbol: Var, value: str) -> None:
        self._store(symbol.name, value)
        self.stale.add(symbol.name)
        low = self.code.add(f"icmp slt i64 {value}, {symbol.low}") if symbol.low else None
        high = self.code.add(f"icmp sge i64 {value}, {symbol.extent}") if isinstance(symbol.extent, int) else None
        self.wrong += [(x, abi.ERROR_VALUE) for x in (low, high) if x is not None]
        if symbol.name in self.capacity:
            self._hold(self.capacity[symbol.name], value)

    def _hold(self, capacity: Var, value: str) -> None:
        """Raise a capacity that is too small to the next power of two, for the next inference."""
        add, capacity_operand = self.code.add, self.code.operand(capacity)
        negative = add(f"sub i64 0, {value}")
        size = add(f"call i64 @llvm.smax.i64(i64 {value}, i64 {negative})")
        over, huge = add(f"icmp ugt i64 {size}, {capacity_operand}"), add(f"icmp ugt i64 {size}, {abi.MAX_CAPACITY}")
        below = add(f"sub i64 {size}, 1")
        zeros = add(f"call i64 @llvm.ctlz.i64(i64 {below}, i1 false)")
        bits = add(f"sub i64 64, {zeros}")
        doubled = add(f"shl i64 1, {bits}")
        keep = add(f"xor i1 {over}, true")
        kept = add(f"or i1 {keep}, {huge}")
        self.raised.append(
            (capacity.name, capacity_operand, add(f"select i1 {kept}, i64 {capacity_operand}, i64 {doubled}"))
        )
        self.room += [(huge, abi.ERROR_SIZE), (over, abi.ERROR_CAPACITY)]

    def _raise(self, code: str) -> None:
        """Store raised capacities only if the code is ERROR_CAPACITY, which tells the caller to take more memory."""
        if not self.raised:
            return
        is_capacity = self.code.add(f"icmp eq i32 {code}, {abi.ERROR_CAPACITY}")
        for name, held, required in self.raised:
            self._store(name, self.code.add(f"select i1 {is_capacity}, i64 {required}, i64 {held}"), known=False)

    def _refresh(self) -> None:
        """Recompute the sizes that depend on changed symbols."""
        for size, meaning in self.dependents.computed_of(self.stale):
            self._store(size.name, self.code.operand(meaning))
        self.stale = set()

    def _plan(self, name: str, changed: set[str]) -> list[str]:
        """Store the sizes of the plan that depend on changed symbols; return tables of the places of equal ones."""
        by_size, tables, rows = dict[Size, list[int]](), list[str](), self.dependents.rows_of(changed)
        for i, size in rows:
            by_size.setdefault(size, []).append(i)
        for i, size in rows:
            at, value = by_size[size], self.code.operand(size)
            if len(at) < MANY_PLACES:
                self.code.lines.append(f"%p{i} = getelementptr i64, ptr %plan, i64 {i}")
                self.code.lines.append(f"store i64 {value}, ptr %p{i}, align 8")
            elif i == at[0]:
                table = f"@{name}.places.{len(tables)}"
                tables.append(f"{table} = internal constant [{len(at)} x i32] [{', '.join(f'i32 {n}' for n in at)}]")
                self.code.lines.append(f"call void @fill(ptr %plan, ptr {table}, i64 {len(at)}, i64 {value})")
        return tables

    def _store(self, name: str, value: str, known: bool = True) -> None:
        at = self.code.add(f"getelementptr i64, ptr %symbols, i64 {self.places[name]}")
        self.code.lines.append(f"store i64 {value}, ptr {at}, align 8")
        if known:
            self.code.change(name, value)
