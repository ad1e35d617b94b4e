"""Forms of nodes in IR: a node without a form is replaced by nodes with one, or refused."""

from __future__ import annotations

from collections.abc import Iterator

from aot.frontends.unsupported import Problem, UnconvertedError, listing
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node
from aot.ir.op import DecomposedOp, Op
from aot.ir.registry import definition_of
from aot.opset.control.demands import InRange
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode
from aot.opset.elementwise.conversion import Convert, Rounded
from aot.opset.elementwise.quantization import FixedPointProduct
from aot.passes.middle.decompose import decompose_operation
from aot.passes.middle.fold_constants import FoldConstants
from aot.passes.rewrite import Replacement, RuleSet, rule
from aot.runtime.abi import DType

ADVICE = "IR cannot hold these layers: compile the model's own file, which needs no IR, or export it without them"
FOREIGN_TYPES = frozenset({DType.I2, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ})  # types that OpenVINO does not have
PRECISIONS = {  # names of element types at ports that are not the element types in capitals
    DType.F64: "FP64",
    DType.F32: "FP32",
    DType.F16: "FP16",
    DType.BOOL: "BOOL",
    DType.U1: "BIN",
}


def precision(dtype: DType) -> str:
    """Return the name of an element type at ports."""
    return PRECISIONS.get(dtype, dtype.value.upper())


@rule(DecomposedOp)
def give_form(node: Node, op: DecomposedOp, build: Builder) -> Replacement:
    """f(x, ..) -> f.decompose(x, ..), if IR has no form for f"""
    return decompose_operation.body(node, op, build) if _reason(node) else None


@rule(InRange)
def drop_check(node: Node, op: InRange, build: Builder) -> Replacement:
    """InRange(x, low, high, data) -> data, or x without data: operations of IR check their inputs themselves"""
    return node.source(3) if len(node.in_ports()) > 3 and not node.in_port(3).disconnected() else node.source(0)


@rule(Broadcast)
def drop_mapping(node: Node, op: Broadcast, build: Builder) -> Replacement:
    """Broadcast(x, shape, axes) -> Broadcast(x, shape), but in mode explicit: later definitions have no axes there"""
    has_axes = len(node.sources()) > 2 and node.sources()[2] is not None
    return build(op, *node.sources()[:2]) if has_axes and op.mode is not BroadcastMode.EXPLICIT else None


@rule(FixedPointProduct)
def write_product_out(node: Node, op: FixedPointProduct, build: Builder) -> Replacement:
    """FixedPointProduct(x, m, right) -> products, sums and shifts in i64"""
    x, m, right = (build.Convert(node.source(i), destination_type=DType.I64) for i in range(3))
    high = build.BitwiseRightShift(build.Add(build.Multiply(x, m), 1 << 30), 31)
    half = build.BitwiseRightShift(build.BitwiseLeftShift(build.const(1, DType.I64), right), 1)
    below = build.Multiply(build.BitwiseRightShift(high, 63), build.Minimum(right, 1))
    port = build.BitwiseRightShift(build.Add(build.Add(high, half), below), right)
    return build.Convert(port, destination_type=DType.I32)


RULES = (give_form, drop_check, drop_mapping, write_product_out)
give_forms = RuleSet("give_forms", RULES, phase="front", required=True)


def form(node: Node) -> Op:
    """Return the operation of a node's layer; for Rounded a Convert to its own type, which gets a mark."""
    return Convert(destination_type=node.out_port(0).type.dtype) if isinstance(node.op, Rounded) else node.op


def _has_no_form(node: Node) -> bool:
    return bool(_reason(node)) or node.op.own_layer is not None


fold_formless = FoldConstants("fold_formless", only=_has_no_form)  # an extension's operation may be its value


def formless(graph: Graph) -> Iterator[Problem]:
    """Yield the nodes of a graph, and of its bodies, without a form in IR, with the reasons."""
    for node in graph.order():
        if reason := _reason(node):
            yield Problem(node.origin.layers[0] if node.origin.layers else node.name, node.op.user_type, "", 0, reason)
        for body in node.regions.values():
            yield from formless(body)


def refuse_formless(graph: Graph) -> None:
    """Raise UnconvertedError if IR has no form for some nodes."""
    problems = list(formless(graph))
    if problems:
        lines = [f"{p.kind} in {p.node!r}: {p.reason}" for p in problems]
        raise UnconvertedError(listing(f"{graph.file or graph.name}: not in OpenVINO IR", lines), problems, ADVICE)


def _reason(node: Node) -> str:
    """Return the reason why IR has no form for a node; empty if it has one."""
    op = node.op
    if definition_of(form(node)) is None and op.own_layer is None:
        return op.ways or "no operation set has this operation with these attributes"
    connected = [port is not None for port in node.sources()]
    if connected != sorted(connected, reverse=True):
        return f"input {connected.index(False)} must be given where a later one is, got none"
    types = [value for value in vars(op).values() if isinstance(value, DType) and value in FOREIGN_TYPES]
    return f"element types must be OpenVINO's, got {types[0].value}" if types else ""
