"""Explains why shapes do not agree: the shape function of a model only returns that they do not."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from aot.runtime.loading.manifest import Dim, RuleInfo, TensorInfo

Shape = tuple[int, ...]


def disagreement(infos: Sequence[TensorInfo], rules: Sequence[RuleInfo], shapes: Sequence[Shape]) -> str:
    """Return the first problem with the shapes of the inputs: the input, the dimension, and both values."""
    values: dict[str, int] = {}
    first: dict[str, str] = {}
    for info, shape in zip(infos, shapes, strict=True):
        for k, (dim, extent) in enumerate(zip(info.shape, shape, strict=True)):
            if not isinstance(dim, Dim) or not dim.text.replace(".", "_").isidentifier():
                continue
            here = f"dimension {k} of input '{info.name}'"
            if values.setdefault(dim.text, extent) != extent:
                return f"{here} must be {values[dim.text]}, as '{dim.text}' is in {first[dim.text]}, got {extent}"
            first.setdefault(dim.text, here)
    wrong = _wrong(rules, values)
    if wrong is not None:
        return wrong
    expected = ", ".join(f"'{info.name}' {info}" for info in infos)
    return f"dimensions must agree as in {expected}, got {', '.join(str(list(s)) for s in shapes)}"


def broken(rules: Sequence[RuleInfo], values: Mapping[str, int]) -> str:
    """Return the first rule that the sizes computed by an inference break."""
    wrong = _wrong(rules, values)
    sizes = ", ".join(f"{name} = {value}" for name, value in values.items())
    return wrong if wrong is not None else f"a size that the model has computed is outside its range, with {sizes}"


def sizes_of(infos: Sequence[TensorInfo], shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the varying sizes of inputs of these shapes by name, as `n`; expressions of others are left out."""
    pairs = [pair for info, shape in zip(infos, shapes, strict=True) for pair in zip(info.shape, shape, strict=True)]
    return {d.text: n for d, n in pairs if isinstance(d, Dim) and d.text.replace(".", "_").isidentifier()}


def size_at(size: object, values: Mapping[str, int]) -> int | None:
    """Return a size of the manifest, a number, symbol or expression, at these values; None if it needs others."""
    match size:
        case int():
            return size
        case {"symbol": str(text)} | {"expr": str(text)}:  # pyrefly: ignore[not-callable]  a pattern
            return evaluate(text, values)
        case _:
            return None


def _wrong(rules: Sequence[RuleInfo], values: Mapping[str, int]) -> str | None:
    for rule in rules:
        one, other = evaluate(rule.one, values), evaluate(rule.other, values)
        if one is not None and other is not None and (one != other or _is_too_large(rule, values)):
            names = _names(rule.one) | _names(rule.other)
            sizes = ", ".join(f"{name} = {value}" for name, value in values.items() if name in names)
            return f"{rule.text}, with {sizes}"
    return None


def _is_too_large(rule: RuleInfo, values: Mapping[str, int]) -> bool:
    """True if an intermediate of either size needs more than 64 bits; compiled code then reports the rule as broken."""
    parts = (n for text in (rule.one, rule.other) for n in ast.walk(ast.parse(text, mode="eval")))
    numbers = (_value(n, values) for n in parts if isinstance(n, ast.BinOp | ast.UnaryOp))
    return any(not -(1 << 63) <= n < 1 << 63 for n in numbers)


def _names(text: str) -> set[str]:
    nodes = ast.walk(ast.parse(text, mode="eval"))
    return {ast.unparse(n) for n in nodes if isinstance(n, ast.Name | ast.Attribute)}


def out_of_range(info: TensorInfo, shape: Shape) -> str | None:
    """Return the first dimension that is outside of its range; None if all are inside."""
    for k, (dim, extent) in enumerate(zip(info.shape, shape, strict=False)):
        if isinstance(dim, Dim) and (extent < dim.low or (dim.high is not None and extent > dim.high)):
            most = "or more" if dim.high is None else f"to {dim.high}"
            return f"input '{info.name}': dimension {k} '{dim.text}' must be {dim.low} {most}, got {extent}"
    return None


def evaluate(text: str, values: Mapping[str, int]) -> int | None:
    """Evaluate a size of the manifest, as `(n + 3) // 4`; None if the text is no expression."""
    try:
        return _value(_parsed(text), values)
    except (SyntaxError, KeyError, ZeroDivisionError, TypeError):
        return None


@lru_cache(maxsize=1 << 10)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            return values[name]
        case ast.Attribute():
            return values[ast.unparse(node)]
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, values)
        case ast.BinOp(left, operator, right):
            return _binary(operator, _value(left, values), _value(right, values))
        case ast.Compare(left, [operator], [right]):
            return _compared(operator, _value(left, values), _value(right, values))
        case ast.Call(ast.Name(name), args):
            return _apply(name, [_value(a, values) for a in args])
        case _:
            raise TypeError(ast.unparse(node))


def _binary(operator: ast.operator, a: int, b: int) -> int:
    match operator:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.FloorDiv():
            return a // b if b else 0
        case ast.Mod():
            return a % b if b else 0
        case ast.BitAnd():
            return a & b
        case ast.BitOr():
            return a | b
        case _:
            raise TypeError(type(operator).__name__)


def _compared(operator: ast.cmpop, a: int, b: int) -> int:
    match operator:
        case ast.Eq():
            return int(a == b)
        case ast.NotEq():
            return int(a != b)
        case ast.Lt():
            return int(a < b)
        case ast.LtE():
            return int(a <= b)
        case ast.Gt():
            return int(a > b)
        case ast.GtE():
            return int(a >= b)
        case _:
            raise TypeError(type(operator).__name__)


def _apply(name: str, args: list[int]) -> int:
    match name, args:
        case "min", [a, b]:
            return min(a, b)
        case "max", [a, b]:
            return max(a, b)
        case "select", [condition, a, b]:
            return a if condition else b
        case "neg", [a]:
            return -a
        case "not", [a]:
            return int(not a)
        case "cast", [a]:
            return a
        case _:
            raise TypeError(name)
