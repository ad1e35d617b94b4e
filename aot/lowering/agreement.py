"""Sizes that must agree at run time, where inference could not compare them: rules that the shape function checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from aot.ir.dims import may_be_negative
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op, Operand
from aot.ir.types import Dim, Shape, dim_text, simplify
from aot.opset.activation import PRelu, WithScalars
from aot.opset.control_flow import If
from aot.opset.elementwise_binary import AutoBroadcast
from aot.opset.families import Elementwise, may_stretch
from aot.opset.matmul import MatMul
from codegen.loops import Const, Expr, Prim, prim, select
from codegen.program import Rule


def rules(node: Node) -> list[Rule]:
    """What must hold for the shapes of a node to be what inference says."""
    return [*_inputs(node), *_conditions(node), *_branches(node), *_outputs(node)]


def _layer(node: Node) -> str:
    """The user's name for it."""
    return node.origin.layers[0] if node.origin.layers else node.name


def _named(node: Node) -> str:
    """The operation and the layer, as the user's model has them."""
    return f"{node.op.user_type} {_layer(node)!r}"


def _branches(node: Node) -> list[Rule]:
    if not isinstance(node.op, If) or not node.op.must_hold(node.regions):
        return []
    text = f"If {_layer(node)!r}: its branches give different ranks, and what follows fits the other one only"
    return [Rule(select(prim("ne", _expr(node.op.chosen(node.input(0))), 0), 1, 0), 1, text)]


def _conditions(node: Node) -> list[Rule]:
    """What the operation itself says."""
    operands = [None if p is None else Operand(p.type, p.seen) for p in node.sources()]
    return [r for a, b, rule in node.op.conditions(*operands) for r in _equal(node, rule, a, b)]


def _outputs(node: Node) -> list[Rule]:
    """Dimensions that data might make negative."""
    known = {n for p in node.sources() if p is not None for n in p.shape}
    found: list[Rule] = []
    for port in node.out_ports().values():
        for k, n in enumerate(port.shape):
            if isinstance(n, int) or n in known:
                continue
            if may_be_negative(n):
                text = f"{_named(node)}: dimension {k} must not be negative, got {dim_text(n)}"
                found.append(Rule(prim("max", n, 0), n, text))
    return found


def _inputs(node: Node) -> list[Rule]:
    """What elementwise operations and products want."""
    sources = [p for p in node.sources() if p is not None]
    op: Op = node.op
    aligned = getattr(op, "auto_broadcast", AutoBroadcast.NUMPY) is AutoBroadcast.NUMPY
    aligned &= not isinstance(op, PRelu | WithScalars)
    if isinstance(op, Elementwise) and aligned:
        return _broadcast(node, sources, node.out_port(0).shape, 0)
    if isinstance(op, MatMul) and len(sources) == 2:
        found = _broadcast(node, sources, node.out_port(0).shape, 2) if min(s.type.rank for s in sources) > 1 else []
        a, b = sources[0].shape, sources[1].shape
        inner = a[-2 if op.transpose_a and len(a) > 1 else -1], b[-1 if op.transpose_b or len(b) == 1 else -2]
        return found + _equal(node, "inner dimensions of its inputs must be equal", *inner)
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
                text = f"{_named(node)}: {what} of an input is {dim_text(m)} or 1, got {dim_text(n)}"
                found.append(Rule(_expr(simplify((_expr(n) - m) * (_expr(n) - 1))), 0, text))
            else:
                found += _equal(node, f"{what} of its inputs must be equal", n, m)
    return found


def _equal(node: Node, rule: str, a: Dim, b: Dim) -> list[Rule]:
    if a == b or (isinstance(a, int) and isinstance(b, int)):
        return []
    got = " and ".join(dim_text(n) for n in _compared(a, b))
    text = f"{_named(node)}: {rule}, got {got}"
    return [Rule(a, b, text)]


def _compared(a: Dim, b: Dim) -> list[Dim]:
    """What to show of two sizes: of x = max(low, min(x, high)) it is x, of x = min(x, y) both of them."""
    for one, other in ((a, b), (b, a)):
        parts = _parts(other)
        if len(parts) > 1 and one in parts:
            shown = [one, *(p for p in parts if p != one)] if len(parts) == 2 else [one]
            return [n for n in shown if not isinstance(n, int | Const)]
    return [a] if b == 0 else [a, b]


def _parts(n: Dim) -> list[Dim]:
    """What a minimum, maximum or choice is made of."""
    match n:
        case Prim("min" | "max", args) | Prim("select", (_, *args)):
            return list(dict.fromkeys(p for a in args for p in _parts(a)))
        case Const(value):
            return [int(value)]
        case _:
            return [n]


def _expr(n: Dim) -> Expr:
    return n if isinstance(n, Expr) else Const(n)
