"""Why shapes do not agree, in words: the shape function of a model only says that they do not."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from runtime.manifest import Dim, RuleInfo, TensorInfo

Shape = tuple[int, ...]


def disagreement(infos: Sequence[TensorInfo], rules: Sequence[RuleInfo], shapes: Sequence[Shape]) -> str:
    """The first thing that is wrong with the shapes of the inputs: which input, which dimension, and both values."""
    values: dict[str, int] = {}
    places: dict[str, str] = {}
    for info, shape in zip(infos, shapes, strict=True):
        for k, (dim, extent) in enumerate(zip(info.shape, shape, strict=True)):
            if not isinstance(dim, Dim) or not dim.text.replace(".", "_").isidentifier():
                continue
            here = f"dimension {k} of input '{info.name}'"
            if values.setdefault(dim.text, extent) != extent:
                return f"{here} is '{dim.text}', {values[dim.text]} as {places[dim.text]}, got {extent}"
            places.setdefault(dim.text, here)
    for rule in rules:
        one, other = evaluate(rule.one, values), evaluate(rule.other, values)
        if one != other:
            sizes = ", ".join(f"{name} = {value}" for name, value in values.items())
            return f"{rule.text}, with {sizes}"
    expected = ", ".join(f"'{info.name}' {info}" for info in infos)
    return f"dimensions agree as in {expected}, got {', '.join(str(list(s)) for s in shapes)}"


def out_of_range(info: TensorInfo, shape: Shape) -> str | None:
    """The first dimension that its range does not allow; None if all do."""
    for k, (dim, extent) in enumerate(zip(info.shape, shape, strict=False)):
        if isinstance(dim, Dim) and (extent < dim.low or (dim.high is not None and extent > dim.high)):
            most = "or more" if dim.high is None else f"to {dim.high}"
            return f"input '{info.name}': dimension {k} '{dim.text}' is {dim.low} {most}, got {extent}"
    return None


def evaluate(text: str, values: Mapping[str, int]) -> int | None:
    """A size of the manifest, as `(n + 3) // 4`; None for what is not one."""
    try:
        return _value(ast.parse(text, mode="eval").body, values)
    except (SyntaxError, KeyError, ZeroDivisionError, TypeError):
        return None


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
        case ast.Call(ast.Name(("min" | "max") as name), args):
            found = [_value(a, values) for a in args]
            return min(found) if name == "min" else max(found)
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
            return a // b
        case ast.Mod():
            return a % b
        case _:
            raise TypeError(type(operator).__name__)
