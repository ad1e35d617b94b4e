"""Runs statements, definitions and groups in Python, element by element: with no code generator in it.

Each expression and statement becomes a function once, which is then called for each element.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
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
Value = Callable[[], Any]  # computes an expression: a Python integer of I64, a NumPy scalar of all other types
Action = Callable[[], None]

# What Python's operators compute as NumPy does, but faster. Integers of Python are cut to 64 bits afterwards.
_FAST: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_FAST_INTEGERS: dict[str, Callable[[Any, Any], Any]] = _FAST | {
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
}


class Interpreter:
    """`memory` holds the elements of each buffer by name; reading one that nobody wrote is an error."""

    def __init__(self, sizes: dict[str, int] | None = None, **memory: Memory) -> None:
        self.memory = memory
        self.sizes = sizes or {}
        self._places: dict[Var, int] = {}  # of variables in `_numbers`
        self._numbers: list[int | None] = []
        self._known: dict[int, tuple[Expr, Value]] = {}  # by the identity of the expression, which is kept

    def work(self, works: Iterable[Work]) -> None:
        with np.errstate(all="ignore"):
            self._works(works, frozenset())()

    def run(self, stmts: tuple[Stmt, ...]) -> None:
        with np.errstate(all="ignore"):
            self._block(stmts)()

    def value(self, e: Expr) -> Any:
        with np.errstate(all="ignore"):
            return _scalar(self._value(e)(), e.dtype)

    def _works(self, works: Iterable[Work], bound: frozenset[Var]) -> Action:
        return _in_turn([self._work(work, bound) for work in works])

    def _work(self, work: Work, bound: frozenset[Var]) -> Action:
        match work:
            case Definition():
                return self._definition(work, bound)
            case Group(_, axes, _, members):
                return self._each([a for a in axes if a not in bound], self._works(members, bound | set(axes)))
            case _:
                return self._block(work)

    def _definition(self, d: Definition, bound: frozenset[Var]) -> Action:
        limits = [(self._value(i), self._size(n)) for i, n in d.where]
        store = self._store(Store(d.out, d.target, d.value))

        def element() -> None:
            if all(0 <= int(i()) < n() for i, n in limits):
                store()

        return self._each([a for a in d.axes if a not in bound], element)

    def _each(self, axes: Sequence[Var], body: Action) -> Action:
        points = self._points(axes)

        def action() -> None:
            for _ in points():
                body()

        return action

    def _points(self, axes: Sequence[Var]) -> Callable[[], Iterator[None]]:
        places, numbers = [self._place(a) for a in axes], self._numbers
        ranges = [(a.low, self._size(a.extent)) for a in axes]

        def points() -> Iterator[None]:
            for point in itertools.product(*(range(low, extent()) for low, extent in ranges)):
                for place, number in zip(places, point, strict=True):
                    numbers[place] = number
                yield
            for place in places:
                numbers[place] = None

        return points

    def _place(self, var: Var) -> int:
        if var not in self._places:
            self._places[var] = len(self._numbers)
            self._numbers.append(None)
        return self._places[var]

    def _block(self, stmts: tuple[Stmt, ...]) -> Action:
        return _in_turn([self._statement(s) for s in stmts if not isinstance(s, Prefetch)])

    def _statement(self, stmt: Stmt) -> Action:
        match stmt:
            case Store():
                return self._store(stmt)
            case For(var, body):
                return self._each([var], self._block(body))
            case While(condition, body):
                return self._while(self._value(condition), self._block(body))
            case Let(var, value, body):
                return self._let(self._place(var), self._value(value), self._block(body))
            case Alloc(buffer, body):
                return self._alloc(buffer.name, self._block(body))
            case If(condition, body, otherwise):
                return self._if(self._value(condition), self._block(body), self._block(otherwise))
            case _:
                raise NotImplementedError(stmt)

    def _while(self, condition: Value, body: Action) -> Action:
        def action() -> None:
            while condition():
                body()

        return action

    def _let(self, place: int, value: Value, body: Action) -> Action:
        def action() -> None:
            self._numbers[place] = int(value())
            body()

        return action

    def _alloc(self, name: str, body: Action) -> Action:
        def action() -> None:
            self.memory[name] = {}
            body()
            del self.memory[name]

        return action

    def _if(self, condition: Value, body: Action, otherwise: Action) -> Action:
        return lambda: body() if condition() else otherwise()

    def _size(self, size: Size | None) -> Callable[[], int]:
        assert size is not None, "a loop has an extent"
        return (lambda: size) if isinstance(size, int) else self._value(size)

    def _index(self, index: tuple[Expr, ...]) -> Callable[[], tuple[int, ...]]:
        parts = [self._value(i) for i in index]
        return lambda: tuple([int(i()) for i in parts])

    def _store(self, s: Store) -> Action:
        buffer, index, value = s.buffer, self._index(s.index), self._value(s.value)
        if s.accumulate:
            value = _folded(s.accumulate, s.value.dtype, self._value(Load(buffer, s.index)), value)
        extents, stored = [self._size(n) for n in buffer.shape], numpy_dtype(buffer.dtype)
        same = s.value.dtype is buffer.dtype

        def action() -> None:
            at, new = index(), value()
            for i, n in zip(at, extents, strict=True):
                assert 0 <= i < n(), f"{buffer.name}{at} is outside {[n() for n in extents]}"
            self.memory.setdefault(buffer.name, {})[at] = new if same else np.asarray(new).astype(stored)[()]

        return action

    def _value(self, e: Expr) -> Value:
        if id(e) not in self._known:
            self._known[id(e)] = e, self._new_value(e)
        return self._known[id(e)][1]

    def _new_value(self, e: Expr) -> Value:
        match e:
            case Const(value, dtype):
                known = _plain(np.asarray(value).astype(numpy_dtype(dtype)), dtype)
                return lambda: known
            case Var():
                return self._variable(e)
            case Load(buffer, index):
                element, at = self._element(buffer), self._index(index)
                return lambda: element(at())
            case Reduce():
                return self._reduce(e)
            case Prim():
                return self._primitive(e)

    def _variable(self, e: Var) -> Value:
        numbers, place = self._numbers, self._place(e)

        def value() -> int:
            number = numbers[place]
            return self.sizes[e.name] if number is None else number

        return value

    def _element(self, buffer: Buffer) -> Callable[[tuple[int, ...]], Any]:
        """Return a function of an index that gives the element in the compute type."""
        dtype = buffer.dtype.compute
        if buffer.space is Space.TABLE:
            values = [_plain(np.asarray(x).astype(numpy_dtype(dtype)), dtype) for x in buffer.values]
            strides = [int(n) for n in buffer.strides]  # type: ignore[arg-type]
            return lambda at: values[sum(i * n for i, n in zip(at, strides, strict=True))]
        memory, name, type_ = self.memory, buffer.name, numpy_dtype(dtype)
        if dtype is DType.I64:
            return lambda at: int(memory[name][at])
        if dtype is buffer.dtype:
            return lambda at: memory[name][at]
        return lambda at: np.asarray(memory[name][at]).astype(type_)[()]

    def _primitive(self, e: Prim) -> Value:
        match e:
            case Prim("cast" | "bits", (x,), dtype):
                return self._converted(e.fn, self._value(x), x.dtype, dtype)
            case Prim("lookup", (Load(table), q)):
                element, place = self._element(table), self._value(q)
                return lambda: element((int(place()),))
            case Prim("select", (condition, yes, no)):
                holds, a, b = map(self._value, (condition, yes, no))
                return lambda: a() if holds() else b()
            case Prim("within", (i, n, value, fill)):
                at, extent, inside, outside = map(self._value, (i, n, value, fill))
                return lambda: inside() if 0 <= at() < extent() else outside()
            case Prim("dot", (Load() as x, Load() as w, Const(n), first, *others)):
                rows = [self._value(r) for r in (w, *(e for e in (first, *others) if isinstance(e, Load)))]
                four = self._following(x, int(n))
                return lambda: np.int32(sum(int(a) * int(b()) for a, b in zip(four(), rows, strict=True)))
            case Prim("dot", (Load() as x, w, Const(n))):
                return self._dot(x, w, int(n))
            case _:
                return self._computed(e)

    def _converted(self, kind: str, value: Value, dtype: DType, to: DType) -> Value:
        type_ = numpy_dtype(to)
        if kind == "bits":
            return lambda: _plain(_scalar(value(), dtype).view(type_), to)
        return lambda: _plain(converted(np.asarray(_scalar(value(), dtype)), to), to)

    def _dot(self, x: Load, w: Expr, n: int) -> Value:
        few = packed_field_of(w)
        load, shift, mask = (w, Const(0), -1) if few is None else (few.load, few.shift, few.mask)
        assert isinstance(load, Load)
        a, b, low = self._following(x, n), self._following(load, n), self._value(shift)
        return lambda: np.int32(sum(int(p) * (int(q) >> int(low()) & mask) for p, q in zip(a(), b(), strict=True)))

    def _computed(self, e: Prim) -> Value:
        kind, args = e.args[-1].dtype, [self._value(a) for a in e.args]
        assert len({a.dtype for a in e.args}) == 1, f"{e.fn} of {[a.dtype.value for a in e.args]}"
        function, dtype = (FLOAT if kind.is_float else INTEGER)[e.fn], e.dtype
        fast = _FAST_INTEGERS if kind is DType.I64 else _FAST if kind.is_float else {}
        if e.fn in fast:
            return _called(fast[e.fn], *args, dtype)
        return lambda: _plain(function(*(_scalar(a(), kind) for a in args)), dtype)

    def _following(self, e: Load, n: int) -> Callable[[], list[Any]]:
        """Return a function that gives `n` elements from one on: the last index counts fastest."""
        index, extents, name = self._index(e.index), [self._size(extent) for extent in e.buffer.shape], e.buffer.name

        def elements() -> list[Any]:
            shape = tuple(extent() for extent in extents)
            first = int(np.ravel_multi_index(index(), shape))
            places = (np.unravel_index(place, shape) for place in range(first, first + n))
            return [self.memory[name][tuple(map(int, place))] for place in places]

        return elements

    def _reduce(self, e: Reduce) -> Value:
        first = self._value(e.init if e.init is not None else identity(e.fn, e.dtype))
        points, total = self._points(e.axes), [first]
        step = _folded(e.fn, e.dtype, lambda: total[0], self._value(e.body))

        def value() -> Any:
            before, total[0] = total[0], first()
            for _ in points():
                total[0] = step()
            found, total[0] = total[0], before
            return found

        return value


def _in_turn(actions: Sequence[Action]) -> Action:
    if len(actions) == 1:
        return actions[0]

    def action() -> None:
        for each in actions:
            each()

    return action


def _scalar(x: Any, dtype: DType) -> Any:
    """Return a value as a NumPy scalar of its type."""
    return np.int64(x) if dtype is DType.I64 else x


def _plain(x: Any, dtype: DType) -> Any:
    """Return a NumPy value as `Value` gives it."""
    return int(x) if dtype is DType.I64 else np.asarray(x)[()]


def _called(function: Callable[[Any, Any], Any], a: Value, b: Value, dtype: DType) -> Value:
    """Return a function that calls an operator of Python; integers of 64 bits wrap around."""
    if dtype is DType.I64:
        return lambda: ((function(a(), b()) + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
    return lambda: function(a(), b())


def _folded(fn: str, dtype: DType, a: Value, b: Value) -> Value:
    """Return a function that combines two values as a reduction does."""
    fast = _FAST_INTEGERS if dtype is DType.I64 else _FAST if dtype.is_float else {}
    if fn in fast:
        return _called(fast[fn], a, b, dtype)
    function, type_ = REDUCE[fn], numpy_dtype(dtype)
    return lambda: _plain(np.asarray(function(_scalar(a(), dtype), _scalar(b(), dtype))).astype(type_), dtype)


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
