"""Values of a script: Python evaluates expressions over its own values, others become expressions of the loop IR."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Var, as_expr, cast, prim
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", lambda a, b: a + b),
    ast.Sub: ("sub", lambda a, b: a - b),
    ast.Mult: ("mul", lambda a, b: a * b),
    ast.Div: ("div", lambda a, b: a / b),
    ast.FloorDiv: ("floordiv", lambda a, b: a // b),
    ast.Mod: ("mod", lambda a, b: a % b),
    ast.Pow: ("pow", lambda a, b: a**b),
    ast.BitAnd: ("and", lambda a, b: a & b),
    ast.BitOr: ("or", lambda a, b: a | b),
    ast.BitXor: ("xor", lambda a, b: a ^ b),
    ast.LShift: ("shl", lambda a, b: a << b),
    ast.RShift: ("shr", lambda a, b: a >> b),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", lambda a, b: a == b),
    ast.NotEq: ("ne", lambda a, b: a != b),
    ast.Lt: ("lt", lambda a, b: a < b),
    ast.LtE: ("le", lambda a, b: a <= b),
    ast.Gt: ("gt", lambda a, b: a > b),
    ast.GtE: ("ge", lambda a, b: a >= b),
}
_BUILTIN: dict[Any, str] = {min: "min", max: "max", abs: "abs"}


class ScriptError(InternalError):
    """A @loops function has code that the loop IR cannot express."""


def is_expr(value: object) -> bool:
    return isinstance(value, Const | Var | Load | Prim | Reduce)


def match_integers(a: Any, b: Any) -> tuple[Any, Any]:
    """Convert integers of different types to i64; TypeError for other types, which must be cast explicitly."""
    if not (is_expr(a) and is_expr(b)) or a.dtype is b.dtype:
        return a, b
    if not (a.dtype.is_integer and b.dtype.is_integer):
        raise TypeError(f"cast one side: {a.dtype.value} and {b.dtype.value}")
    return cast(a, DType.I64), cast(b, DType.I64)


class Evaluator(ABC):
    """Evaluates expressions of a script; `lookup` returns the value of a name."""

    def __init__(self, file: str) -> None:
        self.file = file

    def error(self, node: ast.AST, message: str) -> ScriptError:
        return ScriptError(f"{self.file}:{getattr(node, 'lineno', 0)}: {message}")

    @abstractmethod
    def lookup(self, node: ast.Name) -> Any: ...

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression: a Python value or an Expr."""
        try:
            return self._value(node)
        except ScriptError:
            raise
        except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
            raise self.error(node, f"{ast.unparse(node)}: {error}") from error

    def _value(self, node: ast.expr) -> Any:
        rule = getattr(self, f"_{type(node).__name__}", None)
        if rule is None:
            raise self.error(node, f"{type(node).__name__} is not part of the language: {ast.unparse(node)}")
        return rule(node)

    # ---- one method for each kind of expression, named as in `ast`

    def _Constant(self, node: ast.Constant) -> Any:  # noqa: N802
        return node.value

    def _Name(self, node: ast.Name) -> Any:  # noqa: N802
        return self.lookup(node)

    def _Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        return getattr(self.value(node.value), node.attr)

    def _Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:  # noqa: N802
        return tuple(self._spread(node.elts))

    def _List(self, node: ast.List) -> list[Any]:  # noqa: N802
        return self._spread(node.elts)

    def _Slice(self, node: ast.Slice) -> slice:  # noqa: N802
        return slice(*(None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)))

    def _Subscript(self, node: ast.Subscript) -> Any:  # noqa: N802
        base = self.value(node.value)
        return base[self.index(node.slice)] if isinstance(base, Buffer) else base[self.value(node.slice)]

    def _BinOp(self, node: ast.BinOp) -> Any:  # noqa: N802
        return self.binary(node.op, self.value(node.left), self.value(node.right))

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        value = self.value(node.operand)
        match node.op, is_expr(value):
            case ast.USub(), known:
                return prim("neg", value) if known else -value
            case ast.Not() | ast.Invert(), True:
                return prim("not", value)
            case ast.Not(), _:
                return not value
            case _:
                raise self.error(node, f"{type(node.op).__name__} is not part of the language")

    def _BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        stop_at = isinstance(node.op, ast.Or)
        total: Any = not stop_at
        for part in node.values:
            if not is_expr(total) and bool(total) is stop_at:
                return total
            total = self.both(node.op, total, self.value(part))
        return total

    def _Compare(self, node: ast.Compare) -> Any:  # noqa: N802
        total: Any = True
        left = self.value(node.left)
        for compare, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            total = self.both(ast.And(), total, self._compare(compare, left, right))
            left = right
        return total

    def _IfExp(self, node: ast.IfExp) -> Any:  # noqa: N802
        test = self.value(node.test)
        if not is_expr(test):
            return self.value(node.body if test else node.orelse)
        return prim("select", test, *match_integers(self.value(node.body), self.value(node.orelse)))

    def _Call(self, node: ast.Call) -> Any:  # noqa: N802
        return self.call(self.value(node.func), *self.arguments(node))

    def _ListComp(self, node: ast.ListComp) -> list[Any]:  # noqa: N802
        return self._comprehension(node)

    def _GeneratorExp(self, node: ast.GeneratorExp) -> list[Any]:  # noqa: N802
        return self._comprehension(node)

    # ---- parts

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        if len(node.generators) != 1:
            raise self.error(node, "one `for` in a comprehension")
        (generator,) = node.generators
        env: dict[str, Any] = self.env
        items: list[Any] = []
        for item in self.value(generator.iter):
            self.env = {**env, **_unpacked(generator.target, item)}
            if all(self.value(test) for test in generator.ifs):
                items.append(self.value(node.elt))
        self.env = env
        return items

    env: dict[str, Any]

    def arguments(self, node: ast.Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
        keywords: dict[str, Any] = {}
        for k in node.keywords:
            keywords.update({k.arg: self.value(k.value)} if k.arg else self.value(k.value))
        return tuple(self._spread(node.args)), keywords

    def call(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if function in _BUILTIN and any(map(is_expr, args)):
            total = args[0]
            if len(args) == 1:
                return prim(_BUILTIN[function], total)
            for other in args[1:]:
                total = prim(_BUILTIN[function], *match_integers(total, other))
            return total
        return function(*args, **keywords)

    def index(self, node: ast.expr) -> tuple[Expr, ...]:
        """Return an index into a buffer: integers of any type, converted to i64."""
        value = self.value(node)
        parts: list[Any] = [*value] if isinstance(value, tuple) else [value]
        return tuple(cast(as_expr(p, DType.I64), DType.I64) for p in parts)

    def binary(self, op: ast.operator, a: Any, b: Any) -> Any:
        fn, python = _BINARY[type(op)]
        return prim(fn, *match_integers(a, b)) if is_expr(a) or is_expr(b) else python(a, b)

    def both(self, op: ast.boolop, a: Any, b: Any) -> Any:
        """Return `a and b` or `a or b`; either may be a Python value."""
        deciding = isinstance(op, ast.Or)
        if not is_expr(a):
            return b if bool(a) is not deciding else a
        if not is_expr(b):
            return a if bool(b) is not deciding else b
        return prim("or" if deciding else "and", a, b)

    def _compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        if type(op) in _COMPARE:
            fn, python = _COMPARE[type(op)]
            return prim(fn, *match_integers(a, b)) if is_expr(a) or is_expr(b) else python(a, b)
        match op:
            case ast.Is():
                return a is b
            case ast.IsNot():
                return a is not b
            case ast.In():
                return a in b
            case _:
                return a not in b

    def _spread(self, nodes: list[ast.expr]) -> list[Any]:
        items: list[Any] = []
        for n in nodes:
            items.extend(self.value(n.value) if isinstance(n, ast.Starred) else (self.value(n),))
        return items


def _unpacked(target: ast.expr, item: Any) -> dict[str, Any]:
    match target:
        case ast.Name(name):
            return {name: item}
        case ast.Tuple(parts):
            names: dict[str, Any] = {}
            for part, value in zip(parts, item, strict=True):
                names |= _unpacked(part, value)
            return names
        case _:
            raise TypeError(f"cannot assign to {ast.unparse(target)}")
