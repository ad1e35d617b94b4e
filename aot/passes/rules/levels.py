"""Levels of quantised networks: tensors of bytes q, whose numbers are (q - z) s.

levels of x:    Convert(Clamp(Round(x / s) + z)) to u8 or i8
numbers of q:   (Convert(q) - z) s
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import ViewOp
from aot.opset.control.infrastructure import Parameter
from aot.opset.elementwise.activation import Clamp
from aot.opset.elementwise.binary import Add, Binary, Divide, Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from aot.opset.elementwise.unary import Round, Rounding
from aot.opset.movement.movement import Concat
from aot.opset.products.pooling import DilatedMaxPool, MaxPool
from aot.passes.match import broadcasts, constant, has_one_consumer, source, uniform
from aot.passes.rewrite import rule
from runtime.abi import DType

BYTES = (DType.U8, DType.I8)
RANGES = {DType.U8: (0.0, 255.0), DType.I8: (-128.0, 127.0)}
SCALES = 1e-30, 1e30  # between these, (q - z) s / s is q - z up to rounding


@dataclass(frozen=True, slots=True)
class _Levels:
    """The levels of `x`, or the numbers of the levels `x`: scale, zero point, and the nodes, last one first."""

    x: OutPort
    scale: float
    zero: float
    nodes: tuple[Node, ...]


def _operand(port: OutPort, kind: type[Binary]) -> tuple[Node, OutPort, float] | None:
    """Match x op number; return the node, x and the number."""
    node = source(port, kind)
    number = uniform(node.source(1)) if node is not None and broadcasts(node.op) else None
    return None if node is None or number is None else (node, node.source(0), number)


def _levels(node: Node) -> _Levels | None:
    """Match the levels of a tensor of f32, whose last operation is `node`."""
    op = node.op
    if not isinstance(op, Convert) or op.destination_type not in BYTES:
        return None
    clamp = source(node.source(0), Clamp)
    if clamp is None or not isinstance(clamp.op, Clamp):
        return None
    if (clamp.op.min, clamp.op.max) != RANGES[op.destination_type] or clamp.source(0).type.dtype is not DType.F32:
        return None
    levels = _rounded(clamp)
    return None if levels is None else replace(levels, nodes=(node, *levels.nodes))


def _rounded(clamp: Node) -> _Levels | None:
    """Match the levels of a tensor, in its type, whose last operation is `clamp`."""
    moved = _operand(clamp.source(0), Add)
    port = clamp.source(0) if moved is None else moved[1]
    rounded = source(port, Round)
    divided = _operand(rounded.source(0), Divide) if rounded is not None else None
    if rounded is None or divided is None or rounded.op != Round(mode=Rounding.HALF_TO_EVEN):
        return None
    zero = 0.0 if moved is None else moved[2]
    nodes = (clamp, *(() if moved is None else (moved[0],)), rounded, divided[0])
    return _Levels(divided[1], divided[2], zero, nodes)


def _numbers(port: OutPort) -> _Levels | None:
    """Match the numbers of a tensor of bytes, in f32."""
    scaled = _operand(port, Multiply)
    if scaled is None or port.type.dtype is not DType.F32:
        return None
    nodes, x, zero = [scaled[0]], scaled[1], 0.0
    while x.type.dtype not in BYTES:
        moved = _operand(x, Subtract)
        widened = source(x, Convert)
        if moved is not None and not zero:
            nodes, x, zero = [*nodes, moved[0]], moved[1], moved[2]
        elif widened is not None and x.type.dtype in (DType.F32, DType.I32):
            nodes, x = [*nodes, widened], widened.source(0)
        else:
            return None
    return _Levels(x, scaled[2], zero, tuple(nodes))


def _is_view(node: Node) -> bool:
    """True if a node only moves elements of its first input, as constants say."""
    others = node.sources()[1:]
    return (
        isinstance(node.op, ViewOp) and not isinstance(node.op, Concat) and all(constant(p) is not None for p in others)
    )


def _again(build: Builder, nodes: Sequence[Node], x: OutPort) -> OutPort:
    """Add the operations of `nodes`, the last one first in them, on another tensor."""
    for n in reversed(nodes):
        x = build(n.op, x, *n.sources()[1:])
    return x


@rule(Convert)
def drop_levels_of_levels(node: Node, op: Convert, build: Builder) -> OutPort | None:
    """levels of view(numbers of q) -> view(q), with one scale and one zero point"""
    levels = _levels(node)
    if levels is None:
        return None
    x, views = levels.x, list[Node]()
    while _is_view(x.node) and has_one_consumer(x):
        views.append(x.node)
        x = x.node.source(0)
    numbers = _numbers(x)
    if numbers is None or numbers.x.type.dtype is not op.destination_type:
        return None
    same = (levels.scale, levels.zero) == (numbers.scale, numbers.zero)
    return _again(build, views, numbers.x) if same and SCALES[0] < levels.scale < SCALES[1] else None


@rule(Convert)
def levels_before_concat(node: Node, op: Convert, build: Builder) -> OutPort | None:
    """levels of Concat(x, y) -> Concat(levels of x, levels of y)

    Bytes are written where the whole lies, instead of numbers that are read once more.
    """
    levels = _levels(node)
    joined = source(levels.x, Concat) if levels is not None else None
    if (
        levels is None
        or joined is None
        or not all(has_one_consumer(n.out_port(0)) for n in (joined, *levels.nodes[1:]))
    ):
        return None
    return build(joined.op, *(_again(build, levels.nodes, x) for x in joined.sources() if x is not None))


@rule(MaxPool, DilatedMaxPool)
def pool_levels(node: Node, op: MaxPool | DilatedMaxPool, build: Builder) -> OutPort | None:
    """MaxPool(numbers of q) -> numbers of MaxPool(q), where every window has an element"""
    numbers = _numbers(node.source(0))
    if numbers is None or numbers.scale <= 0:
        return None
    windows = op.windows(node.source(0).shape)
    sides = zip((*windows.before, *windows.after), 2 * tuple(windows.kernel), strict=True)
    if not all(isinstance(pad, int) and isinstance(size, int) and pad < size for pad, size in sides):
        return None
    return _again(build, numbers.nodes, build(op, numbers.x))


@rule(Clamp)
def levels_before_pool(node: Node, op: Clamp, build: Builder) -> OutPort | None:
    """Clamp(Round(MaxPool(x) / s) + z) to a byte -> MaxPool(the same of x, in bytes), in f32: s > 0

    The operation that computes x writes bytes, and the window reads a quarter of the memory.
    """
    dtype = next((t for t in BYTES if (op.min, op.max) == RANGES[t]), None)
    found = _rounded(node)
    if dtype is None or found is None or found.scale <= 0 or found.x.type.dtype is not DType.F32:
        return None
    pool = found.x.node
    if not isinstance(pool.op, MaxPool):
        return None
    ports = (*(n.out_port(0) for n in (pool, *found.nodes[1:])), pool.source(0))
    alone = not isinstance(ports[-1].node.op, Parameter) and all(map(has_one_consumer, ports))
    if not alone:
        return None
    levels = build.Convert(_again(build, found.nodes, pool.source(0)), destination_type=dtype)
    return build.Convert(build(pool.op, levels), destination_type=DType.F32)


RULES = (drop_levels_of_levels, levels_before_concat, pool_levels, levels_before_pool)
