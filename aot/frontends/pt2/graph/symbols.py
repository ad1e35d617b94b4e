"""Sizes that vary: symbols with their ranges, and the expressions of them that archives have as text.

Mul(Integer(2), Symbol('s40', positive=True, integer=True))     ->     s40*2,  s40 in 1..64
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from operator import floordiv, mod
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.pt2.files.schema import Table, union, whole
from aot.ir.types import Dim, simplify
from aot.runtime.errors import CorruptError, UnsupportedError

MAX_EXPRESSION = 4096  # characters
UNBOUNDED = 1 << 62  # numbers from here on stand for infinity


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or not 0 <= exponent <= 8:
        raise UnsupportedError("a size is a power of another one with exponent 0 to 8, got another exponent")
    return _product(*[base] * exponent)


def _product(*factors: Dim) -> Dim:
    product: Dim = 1
    for factor in factors:
        product = product * factor
    return product


def _sum(*terms: Dim) -> Dim:
    result: Dim = 0
    for term in terms:
        result = result + term
    return result


FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "Add": _sum,
    "Mul": _product,
    "Pow": _power,
    "FloorDiv": floordiv,
    "CleanDiv": floordiv,
    "IntTrueDiv": floordiv,
    "Mod": mod,
    "PythonMod": mod,
}


@dataclass(slots=True)
class Symbols:
    """The symbols of a file. `ranges`: least and greatest value, None for no bound."""

    file: str
    ranges: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])

    def symbol(self, name: str) -> Var:
        low, high = self.ranges.get(name, (0, None))
        return Var(name, None if high is None else high + 1, low)

    def dim(self, value: Any, where: str) -> Dim:
        """Return a size that is given as a union, `as_int` or `as_expr`."""
        tag, found = union(value, where)
        if tag == "as_int":
            return whole(found, where)
        if tag != "as_expr":
            raise CorruptError(f"{where}: a size must be as_int or as_expr, got {tag}")
        return self.parsed(Table(found, where).text("expr_str"), where)

    def parsed(self, text: str, where: str) -> Dim:
        """Return the size that an expression of SymPy stands for."""
        if len(text) > MAX_EXPRESSION:
            raise CorruptError(f"{where}: expressions can have at most {MAX_EXPRESSION} characters, got {len(text)}")
        try:
            return simplify(self._value(ast.parse(text, mode="eval").body))
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, ArithmeticError) as error:
            raise CorruptError(f"{where}: no expression of sizes: {text!r}") from error

    def _value(self, node: ast.expr) -> Dim:
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return self.symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return 0 - self._value(inner)
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))]):
                return self.symbol(name)
            case ast.Call(func=ast.Name(id="Integer"), args=[inner]):
                return self._value(inner)
            case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
                return FUNCTIONS[name](*map(self._value, args))
            case _:
                raise UnsupportedError(
                    f"sizes of an input are symbols, sums, products and quotients, got {ast.dump(node)}"
                )


def read_symbols(program: Table, file: str) -> Symbols:
    """Return the symbols of a program with the ranges that it has for them. CorruptError for an empty range."""
    symbols = Symbols(file)
    if "range_constraints" not in program:
        return symbols
    for name, bounds in program.table("range_constraints").items():
        if not name.isidentifier():
            continue  # the range of an expression, which follows from those of its symbols
        low = bounds.whole("min_val") if "min_val" in bounds else 0
        high = bounds.whole("max_val") if "max_val" in bounds else None
        high = None if high is None or high >= UNBOUNDED else high
        if high is not None and high < max(low, 0):
            raise CorruptError(f"{bounds.where}: a range must have numbers, got {low}..{high}")
        symbols.ranges[name] = (max(low, 0), high)
    return symbols
