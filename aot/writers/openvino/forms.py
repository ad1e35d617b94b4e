"""Which nodes IR has a form for; operations that are defined by simpler ones are replaced by these where it has none."""

from __future__ import annotations

from collections.abc import Iterator

from aot.frontends.unsupported import Problem, UnconvertedError
from aot.ir.graph import Graph, Node
from aot.ir.op import DecomposedOp, definition_of
from aot.opset.control_flow import If
from aot.passes.middle.decompose import decompose_operation
from aot.passes.rewrite import Replacement, RuleSet, rule
from aot.ir.build import Builder
from runtime.abi import DType

ADVICE = "IR cannot hold these layers: compile the model's own file, which needs no IR, or export it without them"
FOREIGN_TYPES = frozenset({DType.I2, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ})  # that OpenVINO does not have
PRECISIONS = {  # names of element types at ports, where these are not the element types in capitals
    DType.F64: "FP64", DType.F32: "FP32", DType.F16: "FP16", DType.BOOL: "BOOL", DType.U1: "BIN",
}  # fmt: skip


def precision(dtype: DType) -> str:
    """The name that an element type has at ports."""
    return PRECISIONS.get(dtype, dtype.value.upper())


@rule(DecomposedOp)
def give_form(node: Node, op: DecomposedOp, build: Builder) -> Replacement:
    """f(x, ..) -> f.decompose(x, ..), where IR has no form for f"""
    return decompose_operation.body(node, op, build) if _reason(node) else None


give_forms = RuleSet("give_forms", (give_form,), phase="front", required=True)


def formless(graph: Graph) -> Iterator[Problem]:
    """The nodes of a graph, and of its bodies, that IR has no form for, with the reasons."""
    for node in graph.order():
        if reason := _reason(node):
            yield Problem(node.origin.layers[0] if node.origin.layers else node.name, node.type, "", 0, reason)
        for body in node.regions.values():
            yield from formless(body)


def refuse_formless(graph: Graph) -> None:
    """UnconvertedError if IR has no form for some nodes."""
    problems = list(formless(graph))
    if problems:
        lines = [f"{p.kind} in {p.node!r}: {p.reason}" for p in problems]
        error = UnconvertedError("; ".join([f"{graph.file or graph.name}: not in OpenVINO IR", *lines]), problems)
        error.advice = ADVICE
        raise error


def _reason(node: Node) -> str:
    """Why IR has no form for a node; empty if it has one."""
    op = node.op
    if definition_of(op) is None:
        return "no operation set has this operation with these attributes"
    given = [port is not None for port in node.sources()]
    if given != sorted(given, reverse=True):
        return f"input {given.index(False)} must be given where a later one is, got none"
    if isinstance(op, If) and op.only:
        return f"both branches must fit, got only {op.only}"
    types = [value for value in vars(op).values() if isinstance(value, DType) and value in FOREIGN_TYPES]
    return f"element types must be OpenVINO's, got {types[0].value}" if types else ""
