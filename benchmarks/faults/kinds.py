"""Kinds of faults: each is a small change of the source text, as a slip of the hand would make it.

operator    + for -, * for +, < for <=, == for !=, `and` for `or`, min for max
bound       a whole number that is compared, added, sliced or given to `range` is one more
condition   what holds under a condition holds under its opposite
check       a check that raises an error is left out
axis        `axis=`, `axes=` or `dim=` is another number
attribute   an attribute of a layer that a conversion reads, or an argument by name, is ignored
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
AXES = ("axis", "axes", "dim")


@dataclass(frozen=True)
class Fault:
    """The text from `begin` to `end`, in bytes of the file, becomes `text`."""

    path: str
    line: int
    kind: str
    begin: int
    end: int
    old: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.old} -> {self.text}"

    def put(self, root: Path) -> bytes:
        """Put the fault into the file; return the file's bytes as they were."""
        file = root / self.path
        before = file.read_bytes()
        file.write_bytes(before[: self.begin] + self.text.encode() + before[self.end :])
        return before


def faults_in(root: Path, path: str) -> Iterator[Fault]:
    """Yield all faults that a file of Python can have, in the order of its lines."""
    source = (root / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        for kind, place, new in changes(node):
            assert place.end_lineno is not None and place.end_col_offset is not None
            begin, end = (
                starts[place.lineno - 1] + place.col_offset,
                starts[place.end_lineno - 1] + place.end_col_offset,
            )
            old = source[begin:end].decode()
            text = new if isinstance(new, str) else ast.unparse(new)
            yield Fault(path, place.lineno, kind, begin, end, old, f"({text})" if isinstance(new, ast.BoolOp) else text)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.AST | str]]:
    """Yield the kind of a fault, the node that changes, and what stands there instead."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS and not _is_text(node):
            yield "operator", node, f"({ast.unparse(left)}) {_sign(op)} ({ast.unparse(right)})"
        case ast.Compare(left, [op], [right]):
            if type(op) in OPERATORS:
                yield "operator", node, f"({ast.unparse(left)}) {_sign(op)} ({ast.unparse(right)})"
            if _is_number(right):
                yield "bound", right, str(ast.literal_eval(right) + 1)
        case ast.BoolOp(op, values):
            yield "operator", node, ast.BoolOp(OPERATORS[type(op)](), values)  # type: ignore[call-arg]
        case ast.Call(ast.Name(name), [_, *_]) if name in NAMES:
            yield "operator", node.func, NAMES[name]
        case ast.Call(ast.Name("range"), args) if not any(isinstance(a, ast.Starred) for a in args):
            yield "bound", args[-1], f"{ast.unparse(args[-1])} + 1"
        case ast.Slice(lower, upper) if _is_number(lower) or _is_number(upper):
            bound = lower if _is_number(lower) else upper
            assert bound is not None
            yield "bound", bound, str(ast.literal_eval(bound) + 1)
        case ast.If(test, [ast.Raise()], []):
            yield "check", test, "False"
        case ast.If(test) | ast.IfExp(test):
            yield "condition", test, f"(not ({ast.unparse(test)}))"
        case _:
            pass
    if isinstance(node, ast.Call):
        yield from _arguments(node)


def _arguments(call: ast.Call) -> Iterator[tuple[str, ast.expr, ast.AST | str]]:
    for keyword in call.keywords:
        if keyword.arg in AXES and _is_number(keyword.value):
            yield "axis", keyword.value, str(1 - ast.literal_eval(keyword.value))
        elif keyword.arg is not None and isinstance(keyword.value, ast.Constant | ast.Name | ast.Attribute):
            rest = [k for k in call.keywords if k is not keyword]
            yield "attribute", call, ast.Call(call.func, call.args, rest)


def _sign(op: ast.AST) -> str:
    """Return the operator that stands for another one, as text."""
    x = ast.Name("x")
    other = OPERATORS[type(op)]()
    whole = ast.BinOp(x, other, x) if isinstance(other, ast.operator) else ast.Compare(x, [other], [x])  # type: ignore[list-item]
    return ast.unparse(whole)[2:-2]


def _is_number(node: ast.AST | None) -> bool:
    value = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(value, ast.Constant) and type(value.value) is int


def _is_text(node: ast.BinOp) -> bool:
    """True for sums of texts, which are messages."""
    return any(isinstance(x, ast.JoinedStr | ast.Constant) and not _is_number(x) for x in (node.left, node.right))
