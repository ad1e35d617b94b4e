"""Operations of a framework: the conversion of its nodes, and the problems of those that have none."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.by_identity import by_identity
from aot.frontends.conversion.node_context import Conversion, NodeContext
from aot.frontends.conversion.table import Table
from aot.frontends.unsupported import Problem
from aot.ir.graph import Graph, Node
from aot.ir.op import Foreign

Facts = dict[str, Any]  # the attributes of a foreign node; those of the reader are among them


@dataclass(frozen=True, slots=True)
class Dialect:
    """The operations of a framework: `name` stands in their nodes, `framework` in errors."""

    name: str
    framework: str
    table: Table
    view: type[NodeContext]  # of a node, which its conversion gets

    def conversion(self, kind: str, attrs: Facts) -> Conversion | None:
        """Return the conversion of an operation; None if there is none."""
        del attrs
        return self.table.of(kind)

    def context(self, attrs: Facts, *parts: Any) -> NodeContext:
        """Return the view of a node."""
        del attrs
        return self.view(*parts)

    def problem(self, node: str, kind: str, attrs: Facts, reason: str) -> Problem:
        """Return why a node cannot be converted."""
        del attrs
        return Problem(node, kind, "", 0, reason)

    def check(self, graph: Graph) -> None:
        """Raise UnconvertedError for a graph that cannot be converted at all."""


Dialects = Mapping[str, Dialect]


def foreign(node: Node, dialects: Dialects) -> Foreign | None:
    """Return the operation of a node if it is of one of the dialects."""
    return node.op if isinstance(node.op, Foreign) and node.op.dialect in dialects else None


def input_problem(node: Node, dialects: Dialects) -> str:
    """Return the rule that the inputs of a foreign node break; empty if its conversion takes them, or there is none."""
    op = foreign(node, dialects)
    function = None if op is None else dialects[op.dialect].conversion(op.kind, dict(op.attrs))
    if op is None or function is None:
        return ""
    return rule_of_inputs(function, node, connected_inputs(node.sources(), dict(op.attrs)))


def connected_inputs(inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
    """Return the inputs of a node itself, without those of its regions, up to the last one that is connected."""
    operands = list(inputs[: attrs.get("inputs", len(inputs))])
    while operands and operands[-1] is None:
        operands.pop()
    return operands


def rule_of_inputs(function: Conversion, context: Any, operands: Sequence[Any]) -> str:
    """Return the rule that too few or too many inputs break, or one left out that the operation needs."""
    signature = _signature(function)
    if signature is None:
        return ""
    try:
        bound = signature.bind(context, *operands)
    except TypeError as error:
        return f"{len(operands)} inputs do not fit it ({error})"
    for name, value in bound.arguments.items():
        annotation = str(signature.parameters[name].annotation)
        if value is None and "None" not in annotation and "Value" not in annotation:
            return f"input {name} must be given, got none"
    return ""


@by_identity(1 << 10, "known_signature")  # networks have many nodes of one kind; a callable object may have no hash
def _signature(function: Conversion) -> inspect.Signature | None:
    """Return the signature of a conversion; None for one that takes any inputs."""
    signature = inspect.signature(function)
    kinds = [p.kind for p in signature.parameters.values()]
    return None if kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL] else signature
