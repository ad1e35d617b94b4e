"""Irregular algorithms written as Python functions and turned into statements of the loop IR.

    @loops
    def cumulate(x, y, rows, length):              for i in parallel 8:
        for i in parallel(rows):                     alloc total: f32[] @registers
            total = var(0.0, DType.F32)              total[] = 0.0
            for j in range(length):            ->    for j in 16:
                total += x[i, j]                       total[] = total[] + x[i, j]
                y[i, j] = total                        y[i, j] = total[]

    cumulate(x, y, rows=8, length=16) -> tuple[Stmt, ...]

Code over Python values runs when the function is called: conditions on Python booleans, loops over tuples, calls of
other functions. Code over an Expr becomes statements. `and` / `or` in the condition of `if` and `while` read no memory
after an operand that decides the result; everywhere else, as in `a if c else b`, both sides are evaluated.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Prim,
    Reduce,
    Space,
    Stmt,
    Store,
    Var,
    While,
    cast,
    dense,
    prim,
    select,
)
from aot.codegen.script.declarations import (
    MAX_LANES,
    Cell,
    NewArray,
    NewScalar,
    Range,
    array,
    lanes,
    parallel,
    range_of,
    trips,
    unrolled,
    var,
)
from aot.codegen.script.script_values import Evaluator, ScriptError, is_expr
from aot.codegen.script.size_names import size_names
from aot.codegen.script.statements import Item, Statements
from aot.runtime.abi import DType

__all__ = [
    "Script",
    "ScriptError",
    "Scripted",
    "array",
    "cast",
    "lanes",
    "loops",
    "parallel",
    "select",
    "unrolled",
    "var",
]

Scripted = Any  # an argument of a script: a buffer that is assigned to, an expression that is compared
MIN_INDEX = -(1 << 62)  # lower bound of an index that may be negative


class Script:
    """A Python function that generates statements."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.file = function.__code__.co_filename
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._body: list[ast.stmt] | None = None

    def __call__(self, *args: Any, **keywords: Any) -> tuple[Stmt, ...]:
        out = Statements(sizes=size_names(args, keywords))
        self.inline(out, args, keywords)
        return out.close(out.blocks.pop())

    def inline(self, out: Statements, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Append the statements to `out`; return the value that the function returns."""
        bound = inspect.signature(self.function).bind(*args, **keywords)
        bound.apply_defaults()
        closure = inspect.getclosurevars(self.function)
        out.sizes |= size_names(closure.nonlocals)
        outer = {**vars(builtins), **self.function.__globals__, **closure.nonlocals}
        walk = _Walk(self.file, out, outer, dict(bound.arguments))
        walk.block(self.body())
        return walk.result

    def body(self) -> list[ast.stmt]:
        if self._body is None:
            tree = ast.parse(textwrap.dedent(inspect.getsource(self.function)))
            ast.increment_lineno(tree, self.function.__code__.co_firstlineno - 1)
            definition = tree.body[0]
            assert isinstance(definition, ast.FunctionDef), self.file
            self._body = definition.body
        return self._body


def loops(function: Callable[..., Any]) -> Scripted:
    """Decorate a function as a Script: calling it returns the statements of its body."""
    return Script(function)


class _Walk(Evaluator):
    """Walks the body of one call of a function."""

    def __init__(self, file: str, out: Statements, outer: dict[str, Any], env: dict[str, Any]) -> None:
        super().__init__(file)
        self.out, self.outer, self.env = out, outer, env
        self.depth = dict.fromkeys(env, 0)  # nesting level of run-time blocks at which each name was bound
        self.level = 0
        self.result: Any = None

    # ---- names

    def lookup(self, node: ast.Name) -> Any:
        if node.id not in self.env and node.id not in self.outer:
            raise self.error(node, f"no {node.id!r} here; names bound inside a run-time block end with it")
        value = self.env[node.id] if node.id in self.env else self.outer[node.id]
        return value.buffer[()] if isinstance(value, Cell) else value

    def call(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if isinstance(function, Script):
            return function.inline(self.out, args, keywords)
        return super().call(function, args, keywords)

    def bind(self, node: ast.AST, name: str, value: Any) -> None:
        if name in self.env and self.depth[name] < self.level:
            raise self.error(node, f"{name!r} is not a var(), so a run-time block cannot change it")
        if (
            isinstance(value, Load | Prim)
            and value.dtype is not DType.I64
            and loads(value)
            and self._varies_by_lane(value)
        ):
            raise self.error(node, f"values that differ between lanes are in arrays, got the name {name!r}")
        self.env[name], self.depth[name] = self._named(name, value), self.level

    def _varies_by_lane(self, value: Expr) -> bool:
        """True if a value differs between the lanes of a loop around it."""
        return not variables(value).isdisjoint(self.out.in_lanes)

    def _named(self, name: str, value: Any) -> Any:
        match value:
            case NewScalar(start, dtype):
                return self.out.cell(name, dtype, start)
            case NewArray(shape, dtype):
                buffer = dense(self.out.name(name), *shape, space=Space.REGISTERS, dtype=dtype)
                self.out.emit(lambda body: Alloc(buffer, body))
                return buffer
            case Load() | Prim() | Reduce() if value.dtype is DType.I64:
                index = Var(self.out.name(name), low=_lower_bound(value))
                self.out.in_lanes |= {index} if self._varies_by_lane(value) else set()
                self.out.emit(lambda body: Let(index, value, body))
                return index
            case Load() | Prim() if loads(value):  # its memory may change before the name is read
                return self.out.cell(name, value.dtype, value).buffer[()]
            case _:
                return value

    # ---- statements

    def block(self, body: list[ast.stmt]) -> bool:
        """Append statements; False if a return ended the block."""
        return all(self.statement(s) for s in body)

    def statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign([target], value):
                self.assign(target, self.value(value))
            case ast.AnnAssign(target, _, ast.expr() as value):
                self.assign(target, self.value(value))
            case ast.AugAssign(target, operator, value):
                self.assign(target, self.binary(operator, self.value(_as_load(target)), self.value(value)))
            case ast.For(target, iterable, body, []):
                return self.for_loop(target, iterable, body)
            case ast.While(test, body, []):
                self.while_loop(test, body)
            case ast.If(test, body, otherwise):
                return self.branch(test, body, otherwise)
            case ast.Expr(value):
                self.value(value)
            case ast.Pass():
                pass
            case ast.Return(value):
                if self.level:
                    raise self.error(node, "return inside a run-time block")
                self.result = self.value(value) if value else None
                return False
            case _:
                raise self.error(node, f"{type(node).__name__} is not part of the language")
        return True

    def assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(name):
                bound_value = self.env.get(name)
                if isinstance(bound_value, Cell) and not isinstance(value, NewScalar | NewArray):
                    self.out.store(bound_value.buffer, (), value)
                else:
                    self.bind(target, name, value)
            case ast.Subscript(base, index):
                buffer = self.value(base)
                if not isinstance(buffer, Buffer):
                    raise self.error(target, f"only elements of buffers can be assigned, got {type(buffer).__name__}")
                self.out.store(buffer, buffer[self.index(index)].index, value)
            case ast.Tuple(parts):
                for part, v in zip(parts, tuple(value), strict=True):
                    self.assign(part, v)
            case _:
                raise self.error(target, f"cannot assign to {ast.unparse(target)}")

    @contextmanager
    def runtime_block(self) -> Generator[list[Item], None, None]:
        """Collect statements in a block of their own; names bound in it go out of scope at its end."""
        env, depth = dict(self.env), dict(self.depth)
        self.level += 1
        block: list[Item] = []
        self.out.blocks.append(block)
        try:
            yield block
        finally:
            self.out.blocks.pop()
            self.level -= 1
            self.env, self.depth = env, depth

    def for_loop(self, target: ast.expr, iterable: ast.expr, body: list[ast.stmt]) -> bool:
        over = self._iterable(iterable)
        if not isinstance(over, Range):
            for item in over:
                self.assign(target, item)
                if not self.block(body):
                    return False
            return True
        if not isinstance(target, ast.Name):
            raise self.error(target, "a loop counts one name")
        count = trips(over)
        if isinstance(count, int) and count <= 0:
            return True
        # Read once: memory may change, and the extent is part of a variable's identity.
        if isinstance(count, Expr) and loads(count):
            count = self._named(f"{target.id}.n", cast(count, DType.I64))
        counts_from_zero = over.step == 1 and isinstance(over.start, int) and over.start == 0
        counter = Var(self.out.name(target.id if counts_from_zero else f"{target.id}.t"), count)
        self.out.in_lanes |= {counter} if over.kind is LoopKind.VECTOR else set()
        with self.runtime_block() as block:
            self.env.pop(target.id, None)
            self.bind(target, target.id, counter if counts_from_zero else over.start + counter * over.step)
            self.block(body)
        width = MAX_LANES if over.kind is LoopKind.VECTOR else 1
        self.out.emit(For(counter, self.out.close(block), over.kind, width))
        return True

    def _iterable(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and self.value(node.func) is range:
            return range_of(LoopKind.SERIAL, self.arguments(node)[0])
        return self.value(node)

    def branch(self, test: ast.expr, body: list[ast.stmt], otherwise: list[ast.stmt]) -> bool:
        condition = self.condition(test)
        if not is_expr(condition):
            return self.block(body if condition else otherwise)
        with self.runtime_block() as yes:
            self.block(body)
        with self.runtime_block() as no:
            self.block(otherwise)
        self.out.emit(If(condition, self.out.close(yes), self.out.close(no)))
        return True

    def while_loop(self, test: ast.expr, body: list[ast.stmt]) -> None:
        with self.runtime_block() as before:
            condition = self.condition(test)
        if not is_expr(condition):
            if condition:
                raise self.error(test, "this loop never ends")
            return
        flag = None
        if before:  # the condition needs statements: run them before the loop and at the end of each iteration
            flag = self.out.cell("go", DType.BOOL, False).buffer
            self.out.store(flag, (), self.condition(test))
            condition = flag[()]
        with self.runtime_block() as block:
            self.block(body)
            if flag is not None:
                self.out.store(flag, (), self.condition(test))
        self.out.emit(While(condition, self.out.close(block)))

    def condition(self, test: ast.expr) -> Any:
        """Return the value of a condition; no memory is read after an operand of `and` / `or` that decides it."""
        if not isinstance(test, ast.BoolOp):
            return self.value(test)
        stop_at = isinstance(test.op, ast.Or)
        total: Any = not stop_at
        for part in test.values:
            if not is_expr(total) and total is stop_at:
                return total
            with self.runtime_block() as block:
                value = self.condition(part)
            if not is_expr(total) or not is_expr(value) or not (block or _reads_memory(value)):
                self.out.blocks[-1].extend(block)
                total = self.both(test.op, total, value)
                continue
            flag = self.out.cell("holds", DType.BOOL, total)
            block.append(Store(flag.buffer, (), value))
            so_far = flag.buffer[()]
            self.out.emit(If(prim("not", so_far) if stop_at else so_far, self.out.close(block)))
            total = so_far
        return total


def _lower_bound(index: Expr) -> int:
    """Return a lower bound of an index: 0 if it cannot be negative, else `MIN_INDEX`."""
    return 0 if bounds(normal(index, {}))[0] >= 0 else MIN_INDEX


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Subscript(base, index):
            return ast.copy_location(ast.Subscript(base, index, ast.Load()), target)
        case _:
            return target


def _reads_memory(value: Expr) -> bool:
    return any(load.index for load in loads(value))
