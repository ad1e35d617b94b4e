"""Why a rule did not fire: the part that fits at each node, and the first difference.

A rule with a pattern says it itself. The body of another rule is followed line by line: the condition under which it
returned None is taken from its source, and the part of it that was true is told with the values in it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.passes.pattern import PatternRule, layer_of
from aot.passes.rewrite import Replacement, Rule, RuleSet
from aot.runtime.errors import AotError

MAX_VALUE_CHARACTERS = 60  # characters of a value in a report
CHAIN = 4  # names whose values are reported
ARGUMENTS = ("node", "op", "build")  # parameters of every rule


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a rule at a node: `reached` of `size` operations matched or, for rules without pattern, lines."""

    rule: str
    layer: str
    fired: bool
    reached: int
    size: int
    reason: str
    unit: str = "operations"

    def __str__(self) -> str:
        if self.fired:
            return f"{self.layer}: {self.rule} fired"
        if self.unit == "lines":
            return f"{self.layer}: {self.rule} ended in line {self.reached} of {self.size}: {self.reason}"
        return f"{self.layer}: {self.rule}, {self.reached} of {self.size} {self.unit} fit: {self.reason}"


Record = Callable[[Attempt], None]


def rule_names(passes: tuple[object, ...]) -> list[str]:
    """Return the names of all rules and sets of rules among passes."""
    sets = [one for one in passes if isinstance(one, RuleSet)]
    return sorted({one.name for one in sets} | {rule.name for one in sets for rule in one.rules})


def watched(passes: tuple[Any, ...], name: str, record: Record) -> tuple[Any, ...]:
    """Return `passes` with rules that record their attempts: the rules of a name, or of the set of that name."""
    return tuple(_watched(one, name, record) if isinstance(one, RuleSet) else one for one in passes)


def _watched(rules: RuleSet, name: str, record: Record) -> RuleSet:
    is_selected = [name in (rule.name, rules.name) for rule in rules.rules]
    if not any(is_selected):
        return rules
    pairs = zip(rules.rules, is_selected, strict=True)
    return replace(rules, rules=tuple(_watch(rule, record) if picked else rule for rule, picked in pairs))


def _watch(rule: Rule, record: Record) -> Rule:
    def body(node: Node, op: Any, build: Builder) -> Replacement:
        result, attempt = explain(rule, node, build)
        record(attempt)
        return result

    return Rule(rule.name, rule.anchors, body, rule.equation)


def explain(rule: Rule, node: Node, build: Builder) -> tuple[Replacement, Attempt]:
    """Apply a rule at a node; return its result, and the attempt."""
    if isinstance(rule, PatternRule):
        match, stop = rule.attempt(node)
        result = rule(node, build)
        reason = stop.reason if match is None else "the function returned None"
        reached = stop.matched if match is None else rule.size
        return result, Attempt(rule.name, layer_of(node), result is not None, reached, rule.size, reason)
    result, line, reason = _followed(rule, node, build)
    lines = _length(rule.body)
    return result, Attempt(rule.name, layer_of(node), result is not None, min(line + 1, lines), lines, reason, "lines")


def _length(body: Callable[..., Any]) -> int:
    return len(inspect.getsourcelines(body)[0])


def _followed(rule: Rule, node: Node, build: Builder) -> tuple[Replacement, int, str]:
    """Call the body of a rule; return its result, the line of it that returned, and why it returned None."""
    code = getattr(inspect.unwrap(rule.body), "__code__", None)
    last: list[tuple[int, str]] = []

    def inside(frame: FrameType, event: str, value: Any) -> Any:
        if event == "return" and value is None:
            last.append((frame.f_lineno - frame.f_code.co_firstlineno, _reason(frame)))
        return inside

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        return inside if frame.f_code is code else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        result = rule(node, build)
    finally:
        sys.settrace(before)
    line, reason = last[-1] if last else (0, "")
    return result, line, reason


def _reason(frame: FrameType) -> str:
    """Return the condition under which a function returns None at its present line, with the values in it."""
    test = _condition(frame.f_code, frame.f_lineno)
    if test is None:
        return f"none of its cases (line {frame.f_lineno} of {Path(frame.f_code.co_filename).name})"
    truth, node = test
    for part in _parts(node, truth):
        if bool(_evaluated(part, frame)) == truth:
            return f"{ast.unparse(part)}{' is false' if not truth else ''}{_values(part, frame)}"
    return ast.unparse(node)


def _parts(test: ast.expr, truth: bool) -> list[ast.expr]:
    """Return the parts of a condition that decide alone: of `or` for a true one, of `and` for a false one."""
    joint = ast.Or if truth else ast.And
    return list(test.values) if isinstance(test, ast.BoolOp) and isinstance(test.op, joint) else [test]


def _values(part: ast.expr, frame: FrameType) -> str:
    """Return the values of the names in a condition; of one that is None, how it came about."""
    tree, before = _tree(frame.f_code)
    lines: list[str] = []
    names = _names(part, frame)
    while names and len(lines) < CHAIN:
        name = names.pop(0)
        value = frame.f_locals[name]
        assigned = _assigned(tree, name, frame.f_lineno - before) if value is None else None
        if assigned is None:
            lines.append(f"{name} = {_shown(value)}")
            continue
        lines.append(f"{name} = {ast.unparse(assigned)}")
        names = [n for n in _names(assigned, frame) if f"{n} =" not in " ".join(lines)] + names
        lines += _ports(assigned, frame)
    return f": {'; '.join(dict.fromkeys(lines))}" if lines else ""


def _names(part: ast.expr, frame: FrameType) -> list[str]:
    names = dict.fromkeys(n.id for n in ast.walk(part) if isinstance(n, ast.Name) and n.id in frame.f_locals)
    return [name for name in names if name not in ARGUMENTS]


def _ports(part: ast.expr, frame: FrameType) -> list[str]:
    """Return the tensors that calls in an expression give, in words: `node.source(0) is output 0 of Relu 'r'`."""
    calls = [n for n in ast.walk(part) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    ports: list[str] = []
    for call in calls:
        value = _evaluated(call, frame)
        if isinstance(value, OutPort | Node):
            ports.append(f"{ast.unparse(call)} is {_shown(value)}")
    return ports


def _evaluated(part: ast.expr, frame: FrameType) -> Any:
    """Return the value of an expression; None if it cannot be evaluated, because a condition guards it."""
    try:
        return eval(compile(ast.Expression(part), "<condition>", "eval"), frame.f_globals, dict(frame.f_locals))
    except (AttributeError, TypeError, ValueError, LookupError, NameError, AssertionError, AotError):
        return None


def _assigned(tree: ast.AST | None, name: str, line: int) -> ast.expr | None:
    """Return the last value assigned to a name before a line, alone or among several names."""
    result: ast.expr | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Assign) or node.lineno > line:
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                result = node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                result = next((v for t, v in pairs if isinstance(t, ast.Name) and t.id == name), result)
    return result


def _shown(value: Any) -> str:
    if isinstance(value, OutPort):
        return f"output {value.idx} of {value.node.type} {layer_of(value.node)!r}"
    if isinstance(value, Node):
        return f"{value.type} {layer_of(value)!r}"
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[: MAX_VALUE_CHARACTERS - 2] + ".."


@cache
def _tree(code: CodeType) -> tuple[ast.AST | None, int]:
    """Return the syntax tree of a function, and the offset of its lines in the file."""
    try:
        lines, first = inspect.getsourcelines(code)
        return ast.parse(textwrap.dedent("".join(lines))), first - 1
    except (OSError, TypeError, SyntaxError):
        return None, 0


def _condition(code: CodeType, line: int) -> tuple[bool, ast.expr] | None:
    """Return the condition that leads to a `return` in a line, and whether it was true; None without one."""
    tree, before = _tree(code)
    condition: tuple[bool, ast.expr] | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.If) and any(_covers(one, line - before) for one in node.body):
            condition = True, node.test
        elif isinstance(node, ast.If) and any(_covers(one, line - before) for one in node.orelse):
            condition = False, node.test
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.IfExp) and _covers(node, line - before):
            empty = isinstance(node.value.body, ast.Constant) and node.value.body.value is None
            return empty, node.value.test
    return condition


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
