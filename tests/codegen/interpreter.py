"""Runs statements, definitions and groups in Python, element by element: slow, and with no code generator in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from aot.codegen.ir.definition import Definition, Group, identity
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    Prim,
    Reduce,
    Size,
    Space,
    Stmt,
    Store,
    Var,
    While,
)
from aot.codegen.ir.numbers.dot_forms import packed_field_of
from aot.ir.op import Work
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType
from tests.evaluate import FLOAT, INTEGER, REDUCE, converted

Memory = dict[tuple[int, ...], Any]


class Interpreter:
    """`memory` holds the elements of each buffer by name; reading one that nobody wrote is an error."""

    def __init__(self, sizes: dict[str, int] | None = None, **memory: Memory) -> None:
        self.memory = memory
        self.sizes = sizes or {}
        self.env: dict[Var, int] = {}

    def work(self, works: Iterable[Work]) -> None:
        for work in works:
            match work:
                case Definition():
                    self.definition(work)
                case Group(_, axes, _, members):
                    free = [a for a in axes if a not in self.env]
                    for _ in self.points(free):
                        self.work(members)
                    self.forget(free)
                case _:
                    self.run(work)

    def definition(self, d: Definition) -> None:
        free = [a for a in d.axes if a not in self.env]
        for _ in self.points(free):
            if all(0 <= int(self.value(i)) < self.size(n) for i, n in d.where):
                self.store(d.out, d.target, self.value(d.value))
        self.forget(free)

    def points(self, axes: list[Var]) -> Iterable[None]:
        for point in itertools.product(*(range(a.low, self.size(a.extent)) for a in axes)):
            self.env |= zip(axes, point, strict=True)
            yield

    def forget(self, axes: Iterable[Var]) -> None:
        for a in axes:
            self.env.pop(a, None)

    def run(self, stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Store(buffer, index, value, accumulate):
                new = self.value(value)
                if accumulate:
                    new = REDUCE[accumulate](self.value(Load(buffer, index)), new)
                self.store(buffer, index, new)
            case Prefetch():
                pass
            case For(var, body):
                for i in range(var.low, self.size(var.extent)):
                    self.env[var] = i
                    self.run(body)
                self.env.pop(var, None)
            case While(condition, body):
                while self.value(condition):
                    self.run(body)
            case Let(var, value, body):
                self.env[var] = int(self.value(value))
                self.run(body)
            case Alloc(buffer, body):
                self.memory[buffer.name] = {}
                self.run(body)
                del self.memory[buffer.name]
            case If(condition, body, otherwise):
                self.run(body if self.value(condition) else otherwise)

    def size(self, size: Size | None) -> int:
        assert size is not None, "a loop has an extent"
        return size if isinstance(size, int) else int(self.value(size))

    def store(self, buffer: Buffer, index: tuple[Expr, ...], value: Any) -> None:
        at = tuple(int(self.value(i)) for i in index)
        extents = [self.size(n) for n in buffer.shape]
        assert all(0 <= i < n for i, n in zip(at, extents, strict=True)), f"{buffer.name}{at} is outside {extents}"
        self.memory.setdefault(buffer.name, {})[at] = np.asarray(value).astype(numpy_dtype(buffer.dtype))

    def value(self, e: Expr) -> Any:
        match e:
            case Const(value, dtype):
                return np.asarray(value).astype(numpy_dtype(dtype))
            case Var():
                return np.asarray(self.env[e] if e in self.env else self.sizes[e.name])
            case Load(buffer, index):
                at = tuple(int(self.value(i)) for i in index)
                if buffer.space is Space.TABLE:
                    place = sum(i * int(n) for i, n in zip(at, buffer.strides, strict=True))  # type: ignore[arg-type]
                    return np.asarray(buffer.values[place]).astype(numpy_dtype(buffer.dtype.compute))
                return np.asarray(self.memory[buffer.name][at]).astype(numpy_dtype(buffer.dtype.compute))
            case Reduce():
                return self.reduce(e)
            case Prim():
                return self.primitive(e)

    def primitive(self, e: Prim) -> Any:
        match e:
            case Prim("cast", (x,), dtype):
                return converted(self.value(x), dtype)
            case Prim("bits", (x,), dtype):
                return self.value(x).view(numpy_dtype(dtype))
            case Prim("lookup", (Load(table), q)):
                return self.value(table[Const(int(self.value(q)))])
            case Prim("select", (condition, yes, no)):
                return self.value(yes if self.value(condition) else no)
            case Prim("within", (i, n, value, fill)):
                return self.value(value if 0 <= self.value(i) < self.value(n) else fill)
            case Prim("dot", (Load() as x, Load() as w, Const(n), first, *others)):
                rows = [w, *(e for e in (first, *others) if isinstance(e, Load))]
                pairs = zip(self.following(x, int(n)), map(self.value, rows), strict=True)
                return np.int32(sum(int(a) * int(b) for a, b in pairs))
            case Prim("dot", (Load() as x, w, Const(n))):
                few = packed_field_of(w)
                load, shift, mask = (w, 0, -1) if few is None else (few.load, int(self.value(few.shift)), few.mask)
                assert isinstance(load, Load)
                pairs = zip(self.following(x, int(n)), self.following(load, int(n)), strict=True)
                return np.int32(sum(int(a) * (int(b) >> shift & mask) for a, b in pairs))
            case Prim(fn, args):
                table = FLOAT if args[-1].dtype.is_float else INTEGER
                assert len({a.dtype for a in args}) == 1, f"{fn} of {[a.dtype.value for a in args]}"
                with np.errstate(all="ignore"):
                    return np.asarray(table[fn](*(self.value(a) for a in args)))

    def following(self, e: Load, n: int) -> Iterator[Any]:
        """An element and those that lie behind it, `n` in all: the last index counts fastest."""
        at = tuple(int(self.value(i)) for i in e.index)
        shape = tuple(self.size(extent) for extent in e.buffer.shape)
        first = int(np.ravel_multi_index(at, shape))
        for place in range(first, first + n):
            index = tuple(map(int, np.unravel_index(place, shape)))
            yield self.memory[e.buffer.name][index]

    def reduce(self, e: Reduce) -> Any:
        dtype = numpy_dtype(e.dtype)
        total = self.value(e.init) if e.init is not None else self.value(identity(e.fn, e.dtype))
        for _ in self.points(list(e.axes)):
            total = np.asarray(REDUCE[e.fn](total, self.value(e.body))).astype(dtype)
        self.forget(e.axes)
        return total


def cells(array: Array) -> Memory:
    """The elements of an array, by their index."""
    return {index: array[index] for index in np.ndindex(array.shape)}


def filled(memory: Memory, shape: tuple[int, ...], dtype: DType) -> Array:
    """The array with these elements; an AssertionError names one that is missing."""
    out = np.empty(shape, numpy_dtype(dtype))
    for index in np.ndindex(shape):
        assert index in memory, f"element {index} was never written"
        out[index] = memory[index]
    return out
