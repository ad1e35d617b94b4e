"""LLVM functions as text: blocks of lines. Types and values are strings, so a nest of 30k instructions is cheap."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from math import copysign
from struct import pack, unpack
from typing import NamedTuple

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Size, Var


class Value(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(slots=True)
class Block:
    label: str
    phis: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    end: str = ""


@lru_cache(maxsize=1 << 12)
def vector(scalar: str, lanes: int) -> str:
    """Return the type of `lanes` scalars."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


@lru_cache(maxsize=1 << 12)
def lanes_of(type_: str) -> int:
    return int(type_[1:].split(" ", 1)[0]) if type_[0] == "<" else 1


@lru_cache(maxsize=1 << 12)
def scalar_of(type_: str) -> str:
    return type_[1:-1].split(" ")[2] if type_[0] == "<" else type_


@lru_cache(maxsize=1 << 12)
def integer(value: int, type_: str = "i64") -> Value:
    """Return an integer constant, the same in every lane."""
    return _splat(str(value), type_)


def truth(value: bool) -> Value:
    return Value("i1", "1" if value else "0")


def number(value: float, type_: str) -> Value:
    """Return a float constant, the same in every lane; in hexadecimal, which is exact."""
    return _number(value, copysign(1.0, value), type_)


@lru_cache(maxsize=1 << 12)
def _number(value: float, sign: float, type_: str) -> Value:
    """`sign` keeps 0.0 and -0.0, which are equal, apart in the cache."""
    if scalar_of(type_) == "float":
        try:
            value = unpack("<f", pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return _splat(f"0x{unpack('<Q', pack('<d', value))[0]:016X}", type_)


def constants(values: list[str], scalar: str) -> Value:
    """Return a vector of constants."""
    return Value(vector(scalar, len(values)), f"<{', '.join(f'{scalar} {v}' for v in values)}>")


def _splat(text: str, type_: str) -> Value:
    return Value(type_, text) if type_[0] != "<" else Value(type_, f"splat ({scalar_of(type_)} {text})")


def is_constant(v: Value) -> bool:
    return v.name[0] not in "%@"


def local(prefix: str, index: int, name: str) -> str:
    """Return a name for a parameter: legal, unique by its index, and readable."""
    return f"%{prefix}{index}.{re.sub(r'[^A-Za-z0-9_.]', '_', name)}"


def global_name(name: str) -> str:
    """Return `@name`, quoted if LLVM requires it."""
    if re.fullmatch(r"[A-Za-z_$.][A-Za-z0-9_$.]*", name):
        return f"@{name}"
    escaped = (chr(b) if b < 128 and chr(b).isalnum() else f"\\{b:02X}" for b in name.encode())
    return f'@"{"".join(escaped)}"'


@lru_cache(maxsize=1 << 12)
def _declaration(name: str, type_: str, *types: str) -> str:
    return f"declare {type_} @{name}({', '.join(types)})"


class Function:
    """A function. Instructions are appended to `block`, or to the block `at` (hoisting)."""

    def __init__(
        self, name: str, params: list[str], sizes: tuple[Var, ...] = (), fused: bool = False, keeps_nan: bool = False
    ) -> None:
        """`sizes`: dynamic sizes that the function is given; `fused`: multiply-adds round once.

        `keeps_nan`: see `Abilities`.
        """
        self.name = name
        self.head = f"define internal void {global_name(name)}({', '.join(params)}) nounwind"
        self.count = 0
        self.blocks: list[Block] = []
        self.declarations: set[str] = set()  # intrinsics
        self.globals: list[str] = []  # constant tables
        self.scratch_bytes: Size = 0  # over `sizes`
        self.sizes = sizes
        self.fused, self.keeps_nan = fused, keeps_nan
        self.block = self.append("entry")

    def append(self, name: str) -> Block:
        block = Block(f"{name}.{len(self.blocks)}" if self.blocks else name)
        self.blocks.append(block)
        return block

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, type_: str, text: str, at: Block | None = None) -> Value:
        name = self.fresh()
        (at or self.block).lines.append(f"  {name} = {text}")
        return Value(type_, name)

    def binary(self, op: str, a: Value, b: Value, at: Block | None = None) -> Value:
        return self.op(a.type, f"{op} {a.type} {a.name}, {b.name}", at)

    def compare(self, op: str, a: Value, b: Value, at: Block | None = None) -> Value:
        return self.op(vector("i1", lanes_of(a.type)), f"{op} {a.type} {a.name}, {b.name}", at)

    def select(self, c: Value, a: Value, b: Value, at: Block | None = None) -> Value:
        return self.op(a.type, f"select {c}, {a}, {b}", at)

    def cast(self, op: str, a: Value, scalar: str) -> Value:
        """Convert each lane to another scalar type."""
        type_ = vector(scalar, lanes_of(a.type))
        return self.op(type_, f"{op} {a} to {type_}")

    def call(self, name: str, type_: str, *args: Value, flags: str = "") -> Value:
        self.declarations.add(_declaration(name, type_, *[a.type for a in args]))
        return self.op(type_, f"call {flags}{type_} @{name}({', '.join([f'{type_} {name}' for type_, name in args])})")

    def intrinsic(self, name: str, *args: Value, flags: str = "") -> Value:
        """Call an intrinsic; its result and name follow the type of its first argument."""
        type_ = args[0].type
        return self.call(f"llvm.{name}.{suffix(type_)}", type_, *args, flags=flags)

    def gep(self, element: str, base: Value, offset: Value, at: Block | None = None) -> Value:
        # No `inbounds`: the sum of some terms of an address may lie outside of the buffer.
        return self.op("ptr", f"getelementptr {element}, {base.type} {base.name}, {offset.type} {offset.name}", at)

    def load(self, type_: str, pointer: Value, align: int) -> Value:
        return self.op(type_, f"load {type_}, {pointer.type} {pointer.name}, align {align}")

    def store(self, value: Value, pointer: Value, align: int) -> None:
        (type_, name), (kind, address) = value, pointer
        self.block.lines.append(f"  store {type_} {name}, {kind} {address}, align {align}")

    def run(self, name: str, *args: Value) -> None:
        """Call an intrinsic without a result; constants are immediate operands."""
        types = (f"{a.type} immarg" if a.type == "i8" and is_constant(a) else a.type for a in args)
        self.declarations.add(f"declare void @{name}({', '.join(types)})")
        self.block.lines.append(f"  call void @{name}({', '.join(map(str, args))})")

    def prefetch(self, pointer: Value, level: int) -> None:
        """Prefetch into the cache of a level, 1 or 2."""
        self.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        locality = 4 - level  # LLVM: 3 keeps the line in all caches, 0 in none
        self.block.lines.append(f"  call void @llvm.prefetch.p0({pointer}, i32 0, i32 {locality}, i32 1)")

    def splat(self, a: Value, lanes: int) -> Value:
        if is_constant(a):
            return _splat(a.name, vector(a.type, lanes))
        wide = vector(a.type, lanes)
        one = self.op(wide, f"insertelement {wide} poison, {a}, i64 0")
        return self.op(wide, f"shufflevector {one}, {wide} poison, <{lanes} x i32> zeroinitializer")

    def insert(self, v: Value, a: Value, lane: int) -> Value:
        return self.op(v.type, f"insertelement {v}, {a}, i64 {lane}")

    def extract(self, v: Value, lane: int) -> Value:
        return v if v.type[0] != "<" else self.op(scalar_of(v.type), f"extractelement {v}, i64 {lane}")

    def part(self, v: Value, start: int, lanes: int) -> Value:
        if lanes == 1:
            return self.extract(v, start)
        mask = ", ".join(f"i32 {i}" for i in range(start, start + lanes))
        type_ = vector(scalar_of(v.type), lanes)
        return self.op(type_, f"shufflevector {v}, {v.type} poison, <{lanes} x i32> <{mask}>")

    def phi(self, block: Block, type_: str, start: Value, before: Block) -> tuple[Value, int]:
        """Add a phi; `close` adds its other incoming values later."""
        name = self.fresh()
        block.phis.append(f"  {name} = phi {type_} [ {start.name}, %{before.label} ]")
        return Value(type_, name), len(block.phis) - 1

    def close(self, block: Block, phi: int, value: Value, latch: Block) -> None:
        block.phis[phi] += f", [ {value.name}, %{latch.label} ]"

    def branch(self, to: Block) -> None:
        self.block.end = f"  br label %{to.label}"

    def branch_if(self, c: Value, yes: Block, no: Block) -> None:
        self.block.end = f"  br {c}, label %{yes.label}, label %{no.label}"

    def all(self, truths: Value) -> Value:
        """Return an i1: true if `truths` holds in every lane."""
        if truths.type[0] != "<":
            return truths
        return self.call(f"llvm.vector.reduce.and.{suffix(truths.type)}", "i1", truths)

    def either(self, c: Value, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """Emit two branches; only the chosen one runs. Return its value."""
        ways, after = [self.append("yes"), self.append("no")], self.append("after")
        self.branch_if(c, *ways)
        branches: list[tuple[Value, Block]] = []
        for self.block, emit in zip(ways, (yes, no), strict=True):
            branches.append((emit(), self.block))
            self.branch(after)
        self.block = after
        (first, one), (second, other) = branches
        value, number = self.phi(after, first.type, first, one)
        self.close(after, number, second, other)
        return value

    def returning(self, result: Value, params: list[Value]) -> Value:
        """End the function, which is never inlined, with its result; return the result's type and the name."""
        name = global_name(self.name)
        self.head = f"define internal {result.type} {name}({', '.join(map(str, params))}) nounwind noinline"
        self.block.end = f"  ret {result}"
        return Value(result.type, name)

    def text(self) -> str:
        """Return the definition alone; a module adds `globals` and `declarations`."""
        lines = [self.head + " {"]
        for b in self.blocks:
            lines += [f"{b.label}:", *b.phis, *b.lines, b.end or "  ret void"]
        return "\n".join([*lines, "}", ""])


class Passage(NamedTuple):
    """Lines of a function, to be written again with other operands: `text` is a format over their names, then over
    those of the `count` results of the lines; the last of these is the value.
    """

    text: str
    count: int
    type: str

    def again(self, f: Function, operands: list[Value]) -> Value:
        """Append the lines with other operands; return their value."""
        first = f.count + 1
        f.count += self.count
        names = [f"%v{n}" for n in range(first, f.count + 1)]
        f.block.lines.append(self.text.format(*[v.name for v in operands], *names))
        return Value(self.type, names[-1])


def passage(f: Function, first: int, lines: list[str], operands: list[Value], value: Value) -> Passage | None:
    """Return lines that make the values after number `first`; None if they read anything else than `operands`."""
    count = f.count - first
    known = {v.name: f"{{{i}}}" for i, v in enumerate(operands)}
    if count != len(lines) or value.name != f"%v{f.count}" or len(known) < len(operands):
        return None
    if any(map(is_constant, operands)):
        return None
    known |= {f"%v{first + 1 + i}": f"{{{len(operands) + i}}}" for i in range(count)}
    text = "\n".join(lines).replace("{", "{{").replace("}", "}}")
    parts = re.split(r"(%[\w.]+)", text)
    if any(part not in known for part in parts[1::2]):
        return None
    return Passage("".join(known.get(part, part) for part in parts), count, value.type)


@lru_cache(maxsize=1 << 12)
def suffix(type_: str) -> str:
    """Return the spelling of a type in names of intrinsics."""
    lanes, scalar = lanes_of(type_), scalar_of(type_)
    return (f"v{lanes}" if lanes > 1 else "") + {"float": "f32", "double": "f64", "half": "f16"}.get(scalar, scalar)
