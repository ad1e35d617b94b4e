"""Sizes that must agree at run time, where inference could not compare them: rules that the shape function checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.ir.types import Dim, Shape, dim_text, simplify
from aot.opset.activation import PRelu
from aot.opset.elementwise_binary import AutoBroadcast
from aot.opset.families import Elementwise, may_stretch
from aot.opset.matmul import MatMul
from codegen.loops import Const, Expr
from codegen.program import Rule


def rules(node: Node) -> list[Rule]:
    """What must hold for the shapes of a node to be what inference says."""
    sources = [p for p in node.sources() if p is not None]
    op: Op = node.op
    aligned = getattr(op, "auto_broadcast", AutoBroadcast.NUMPY) is AutoBroadcast.NUMPY and not isinstance(op, PRelu)
    if isinstance(op, Elementwise) and aligned:
        return _broadcast(node, sources, node.out_port(0).shape, 0)
    if isinstance(op, MatMul) and len(sources) == 2:
        found = _broadcast(node, sources, node.out_port(0).shape, 2) if min(s.type.rank for s in sources) > 1 else []
        a, b = sources[0].shape, sources[1].shape
        inner = a[-2 if op.transpose_a and len(a) > 1 else -1], b[-1 if op.transpose_b or len(b) == 1 else -2]
        return found + _equal(node, "inner dimensions", *inner)
    return []


def _broadcast(node: Node, sources: Sequence[OutPort], out: Shape, skipped: int) -> list[Rule]:
    found: list[Rule] = []
    for source in sources:
        dims = source.shape[: source.type.rank - skipped]
        for back, (n, m) in enumerate(zip_longest(reversed(dims), reversed(out[: len(out) - skipped]))):
            if n is None or n in (1, m) or (isinstance(n, int) and isinstance(m, int)):
                continue
            what = f"dimension {len(out) - skipped - 1 - back}"
            if may_stretch(n, m):
                text = f"{node.type} {node.name!r}: {what} of an input is {dim_text(m)} or 1, got {dim_text(n)}"
                found.append(Rule(_expr(simplify((_expr(n) - m) * (_expr(n) - 1))), 0, text))
            else:
                found += _equal(node, what, n, m)
    return found


def _equal(node: Node, what: str, a: Dim, b: Dim) -> list[Rule]:
    if a == b or (isinstance(a, int) and isinstance(b, int)):
        return []
    text = f"{node.type} {node.name!r}: {what} of its inputs must be equal, got {dim_text(a)} and {dim_text(b)}"
    return [Rule(a, b, text)]


def _expr(n: Dim) -> Expr:
    return n if isinstance(n, Expr) else Const(n)
