"""Rules on sizes that inference could not compare: the shape function, or a Check step, checks them at run time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Const, Expr, Prim, as_expr, prim, select
from aot.codegen.ir.program import SizeConstraint
from aot.ir.graph import Node
from aot.ir.operand import Operand
from aot.ir.types import Dim, Shape, dim_text, simplify
from aot.opset.base.families import Elementwise, can_stretch
from aot.opset.control.control_flow import If
from aot.opset.elementwise.activation import PRelu, WithScalars
from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.comparison import Select
from aot.opset.products.matmul import MatMul
from aot.runtime.abi import DType


def rules(node: Node) -> list[SizeConstraint]:
    """Return the rules under which a node has the shapes that inference found."""
    stated = [*_conditions(node), *_branches(node)]
    return stated if has_static_types(node) else [*_inputs(node), *stated, *_outputs(node)]


def has_static_types(node: Node) -> bool:
    """True if no dimension of the inputs and outputs is left to compare."""
    for port in node.inputs():
        if port.source is not None and not port.source.type.is_static:
            return False
    return all(operand.type.is_static for operand in node.operands())


def _layer(node: Node) -> str:
    """Return the name of the layer in the user's model."""
    return node.origin.layers[0] if node.origin.layers else node.name


def _name_in_model(node: Node) -> str:
    """Return the names of the operation and the layer in the user's model."""
    return f"{node.op.user_type} {_layer(node)!r}"


def _branches(node: Node) -> list[SizeConstraint]:
    if not isinstance(node.op, If) or not (name := node.op.required(node.regions)):
        return []
    why = "its branches give different ranks, and what follows fits the other one only"
    if node.op.only:
        why = "neither what it reads nor what follows fits the branch that its condition chooses"
    holds, truth = prim("ne", _expr(node.op.chosen(node.input(0))), 0), int(name == "then")
    return [SizeConstraint(select(holds, 1, 0), truth, f"If {_layer(node)!r}: {why}")]


def _conditions(node: Node) -> list[SizeConstraint]:
    """Return the rules that the operation itself states."""
    return [r for a, b, rule in node.op.conditions(*_operands(node)) for r in _equal(node, rule, a, b)]


def _operands(node: Node) -> list[Operand | None]:
    return [None if p is None else Operand(p.type, p.symbolic_value) for p in node.sources()]


def _not_negative(one: Dim, other: Dim) -> list[Dim]:
    """Return the size that a condition `at_least` keeps from being negative; none for other conditions."""
    bound = isinstance(other, int) and other >= 0
    if not bound or not isinstance(one, Prim) or one.fn != "min" or one.args[1] != as_expr(other, DType.I64):
        return []
    return [simplify(one.args[0])]


def _outputs(node: Node) -> list[SizeConstraint]:
    """Return rules against dimensions that data or small inputs could make negative, unless a condition excludes it."""
    negative: list[tuple[int, Expr]] = []
    for port in node.out_ports().values():
        negative += [(k, n) for k, n in enumerate(port.shape) if isinstance(n, Expr) and bounds(normal(n, {}))[0] < 0]
    if not negative:
        return []
    known = {n for p in node.sources() if p is not None for n in p.shape}
    known |= {n for a, b, _ in node.op.conditions(*_operands(node)) for n in _not_negative(a, b)}
    name = _name_in_model(node)
    texts = ((k, n, f"{name}: dimension {k} must not be negative, got {dim_text(n)}") for k, n in negative)
    return [SizeConstraint(prim("max", n, 0), n, text) for _, n, text in texts if n not in known]


def _inputs(node: Node) -> list[SizeConstraint]:
    """Return the rules of broadcasting, for elementwise operations and products."""
    shapes = [p.shape for p in node.sources() if p is not None]
    op, out = node.op, node.out_port(0)
    if isinstance(op, Elementwise) and not isinstance(op, PRelu | WithScalars):
        mode = getattr(op, "auto_broadcast", AutoBroadcast.NUMPY)
        if mode is AutoBroadcast.NUMPY:
            return _broadcast(node, shapes, out.shape, 0)
        return _as_large(node, shapes, mode)
    if isinstance(op, MatMul) and len(shapes) == 2:
        a, b = shapes
        constraints = _broadcast(node, shapes, out.shape, 2) if min(len(a), len(b)) > 1 else []
        inner = a[-2 if op.transpose_a and len(a) > 1 else -1], b[-1 if op.transpose_b or len(b) == 1 else -2]
        return constraints + _equal(node, "inner dimensions of its inputs must be equal", *inner)
    return []


def _as_large(node: Node, shapes: Sequence[Shape], mode: AutoBroadcast) -> list[SizeConstraint]:
    """Require that every input has the shape of the result; with PDPD, all but the data broadcast at `start_axis`."""
    out = node.out_port(0).shape
    data = 1 if isinstance(node.op, Select) else 0
    rest = [s for k, s in enumerate(shapes) if k != data]
    full_shapes = shapes if mode is not AutoBroadcast.PDPD else [shapes[data]]
    rule = "dimension {} of its inputs must be equal"
    pairs = [(k, n, m) for s in full_shapes for k, (n, m) in enumerate(zip(s, out, strict=True))]
    constraints = [r for k, n, m in pairs for r in _equal(node, rule.format(k), n, m)]
    if mode is AutoBroadcast.PDPD:
        start = getattr(node.op, "start_axis", -1)
        constraints += _broadcast(node, [mode.aligned(out, s, start) for s in rest], out, 0)
    return constraints


def _broadcast(node: Node, shapes: Sequence[Shape], out: Shape, skipped: int) -> list[SizeConstraint]:
    broadcast: list[SizeConstraint] = []
    for shape in shapes:
        dims = shape[: len(shape) - skipped]
        for back, (n, m) in enumerate(zip_longest(reversed(dims), reversed(out[: len(out) - skipped]))):
            if n is None or n in (1, m) or (isinstance(n, int) and isinstance(m, int)):
                continue
            what = f"dimension {len(out) - skipped - 1 - back}"
            if can_stretch(n, m):
                text = f"{_name_in_model(node)}: {what} of an input is {dim_text(m)} or 1, got {dim_text(n)}"
                broadcast.append(SizeConstraint(_expr(simplify((_expr(n) - m) * (_expr(n) - 1))), 0, text))
            else:
                text = (
                    f"{_name_in_model(node)}: {what} of its inputs must be equal, got {dim_text(n)} and {dim_text(m)}"
                )
                broadcast.append(SizeConstraint(n, m, text))
    return broadcast


def _equal(node: Node, rule: str, a: Dim, b: Dim) -> list[SizeConstraint]:
    if a == b or (isinstance(a, int) and isinstance(b, int)):
        return []
    got = " and ".join(dim_text(n) for n in _compared(a, b))
    text = f"{_name_in_model(node)}: {rule}, got {got}"
    return [SizeConstraint(a, b, text)]


def _compared(a: Dim, b: Dim) -> list[Dim]:
    """Return the sizes that an error shows: x for the rule x = max(low, min(x, high)), x and y for x = min(x, y)."""
    for one, other in ((a, b), (b, a)):
        parts = _parts(other)
        if len(parts) > 1 and one in parts:
            shown = [one, *(p for p in parts if p != one)] if len(parts) == 2 else [one]
            return [n for n in shown if not isinstance(n, int | Const)]
    return [a] if b == 0 else [a, b]


def _parts(n: Dim) -> list[Dim]:
    """Return the operands of a minimum, a maximum or a choice."""
    match n:
        case Prim("min" | "max", args) | Prim("select", (_, *args)):
            return list(dict.fromkeys(p for a in args for p in _parts(a)))
        case Const(value):
            return [int(value)]
        case _:
            return [n]


def _expr(n: Dim) -> Expr:
    return n if isinstance(n, Expr) else Const(n)
