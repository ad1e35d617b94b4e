"""Levels of quantised networks: tensors of bytes q that stand for the numbers (q - z) s.

levels of x:    Convert(Clamp(Round(x / s) + z)) to u8 or i8
numbers of q:   (Convert(q) - z) s
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import ViewOp
from aot.opset.elementwise.activation import Clamp
from aot.opset.elementwise.binary import Add, Binary, Divide, Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from aot.opset.elementwise.unary import Round, Rounding
from aot.opset.image.resize import Interpolation
from aot.opset.image.resize_weights import Mode
from aot.opset.movement.movement import Concat
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.products.pooling import DilatedMaxPool, MaxPool, Pool
from aot.passes.match import broadcasts, constant, has_one_consumer, source, uniform
from aot.passes.rewrite import rule
from aot.runtime.abi import DType

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

    def of(self, build: Builder, x: OutPort) -> OutPort:
        """Return the levels or numbers of another tensor."""
        return again(build, [n.out_port(0) for n in self.nodes], x)


def _operand(port: OutPort, kind: type[Binary]) -> tuple[Node, OutPort, float] | None:
    """Match x op number; return the node, x and the number."""
    node = source(port, kind)
    number = uniform(node.source(1)) if node is not None and broadcasts(node.op) else None
    return None if node is None or number is None else (node, node.source(0), number)


def _levels(node: Node) -> _Levels | None:
    """Match the levels of a tensor of f32; `node` is the last operation."""
    op = node.op
    if not isinstance(op, Convert) or op.destination_type not in BYTES:
        return None
    clamp = source(node.source(0), Clamp)
    if clamp is None or not isinstance(clamp.op, Clamp):
        return None
    if (clamp.op.min, clamp.op.max) != RANGES[op.destination_type] or clamp.source(0).type.dtype is not DType.F32:
        return None
    moved = _operand(clamp.source(0), Add)
    port = clamp.source(0) if moved is None else moved[1]
    rounded = source(port, Round)
    divided = _operand(rounded.source(0), Divide) if rounded is not None else None
    if rounded is None or divided is None or rounded.op != Round(mode=Rounding.HALF_TO_EVEN):
        return None
    zero = 0.0 if moved is None else moved[2]
    nodes = (node, clamp, *(() if moved is None else (moved[0],)), rounded, divided[0])
    return _Levels(divided[1], divided[2], zero, nodes)


def _numbers(port: OutPort) -> _Levels | None:
    """Match the numbers of a tensor of bytes, in f32."""
    scaled = _operand(port, Multiply)
    if scaled is None or port.type.dtype is not DType.F32:
        return None
    nodes, x, zero = [scaled[0]], scaled[1], 0.0
    while x.type.dtype not in BYTES:
        moved = _operand(x, Subtract) or _operand(x, Add)
        widened = source(x, Convert)
        if moved is not None and not zero:
            zero = moved[2] if isinstance(moved[0].op, Subtract) else -moved[2]
            nodes, x = [*nodes, moved[0]], moved[1]
        elif widened is not None and x.type.dtype in (DType.F32, DType.I32):
            nodes, x = [*nodes, widened], widened.source(0)
        else:
            return None
    return _Levels(x, scaled[2], zero, tuple(nodes))


def views_of(port: OutPort) -> tuple[list[OutPort], OutPort]:
    """Return the views that lead to a port, the last one first, and what they see; other consumers end them."""
    views = list[OutPort]()
    while is_view(port.node) and has_one_consumer(port):
        views.append(port)
        port = port.node.source(0)
    return views, port


def is_view(node: Node) -> bool:
    """True if a node only moves elements of its first input, as constants say."""
    match node.op:
        case Pad(pad_mode=mode):
            moves = mode is not PadMode.CONSTANT
        case Interpolation(mode=mode, pads_begin=before, pads_end=after):
            moves = mode is Mode.NEAREST and not any((*before, *after))
        case op:
            moves = isinstance(op, ViewOp) and not isinstance(op, Concat)
    return moves and all(constant(p) is not None for p in node.sources()[1:] if p is not None)


def again(build: Builder, ports: Sequence[OutPort], x: OutPort) -> OutPort:
    """Add the operations that produce `ports`, last first, on another tensor."""
    for p in reversed(ports):
        outputs = len(p.node.out_ports())
        x = build.node(p.node.op, x, *p.node.sources()[1:], outputs=outputs).out_port(p.idx)
    return x


def has_whole_windows(op: Pool, x: OutPort) -> bool:
    """True if each window of a pooling has an element of its input: taps that lie apart may step over all of it."""
    windows = op.windows(x.shape)
    sides = zip((*windows.before, *windows.after), 2 * tuple(windows.kernel), strict=True)
    dense = zip(windows.before, windows.after, windows.dilations, strict=True)
    inside = all(isinstance(pad, int) and isinstance(size, int) and pad < size for pad, size in sides)
    return inside and all(step == 1 or 0 in (before, after) for before, after, step in dense)


@rule(Convert)
def drop_levels_of_levels(node: Node, op: Convert, build: Builder) -> OutPort | None:
    """levels of view(numbers of q) -> view(q), with one scale and one zero point"""
    levels = _levels(node)
    if levels is None:
        return None
    views, x = views_of(levels.x)
    numbers = _numbers(x)
    if numbers is None or numbers.x.type.dtype is not op.destination_type:
        return None
    same = (levels.scale, levels.zero) == (numbers.scale, numbers.zero)
    return again(build, views, numbers.x) if same and SCALES[0] < levels.scale < SCALES[1] else None


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
    return build(joined.op, *(levels.of(build, x) for x in joined.sources() if x is not None))


@rule(MaxPool, DilatedMaxPool)
def pool_levels(node: Node, op: MaxPool | DilatedMaxPool, build: Builder) -> OutPort | None:
    """MaxPool(view(numbers of q)) -> numbers of MaxPool(view(q)), where every window has an element"""
    views, x = views_of(node.source(0))
    numbers = _numbers(x)
    if numbers is None or numbers.scale <= 0 or not has_whole_windows(op, node.source(0)):
        return None
    return numbers.of(build, build(op, again(build, views, numbers.x)))


@rule(Concat)
def join_levels(node: Node, op: Concat, build: Builder) -> OutPort | None:
    """Concat(view(numbers of p), numbers of q) -> numbers of Concat(view(p), q), with one scale and one zero point"""
    seen = [views_of(x) for x in node.sources() if x is not None]
    levels = [(views, _numbers(x)) for views, x in seen]
    parts = [(views, numbers) for views, numbers in levels if numbers is not None]
    forms = {(numbers.scale, numbers.zero, numbers.x.type.dtype) for _, numbers in parts}
    if len(parts) < len(levels) or len(forms) != 1:
        return None
    return parts[0][1].of(build, build(op, *(again(build, views, numbers.x) for views, numbers in parts)))


RULES = (drop_levels_of_levels, levels_before_concat, pool_levels, join_levels)
