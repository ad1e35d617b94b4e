"""Equalities that make a graph larger: a port is replaced by a sub-graph that computes the same.

Three kinds: data that move there and back, numbers that change nothing, and rewrite rules of aot/passes/rules read
backwards. Each takes a port and gives another one, or None where it does not fit.
"""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import numpy_dtype
from aot.opset.control.control_flow import If, Loop, TensorIterator
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.opset.movement.movement import Split
from aot.opset.movement.shape import Reshape
from aot.runtime.abi import DType
from tests.fuzz.graphs.formulas import Equality, ints, number, rank_of, rule, size_of
from tests.properties.drawing import Draw

WIDER = {
    DType.F16: (DType.F32, DType.F64),
    DType.BF16: (DType.F32,),
    DType.F32: (DType.F64,),
    DType.I8: (DType.I16,),
    DType.U8: (DType.I32, DType.U16, DType.F32),
    DType.I16: (DType.I32,),
    DType.I32: (DType.I64, DType.F64),
    DType.BOOL: (DType.U8, DType.F32),
    DType.U16: (DType.U32,),
    DType.U32: (DType.I64,),
}


# data that move there and back


def transposed(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    order = d.subset(rank_of(x), rank_of(x))
    back = np.argsort(np.array(order, np.int64)) if order else ()
    return b.Transpose(b.Transpose(x, ints(b, *order)), ints(b, *map(int, back))) if order else None


def flattened(b: Builder, x: OutPort, d: Draw) -> OutPort:
    sizes = b.ShapeOf(x, output_type=d.pick([DType.I64, DType.I32]))
    return b(Reshape(special_zero=False), b.Reshape(x, ints(b, -1)), sizes)


def reshaped(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """Two neighbours become one and two again."""
    shape = [size_of(x, k) for k in range(rank_of(x))]
    if len(shape) < 2 or None in shape or 0 in shape:
        return None
    at = d.integer(0, len(shape) - 2)
    whole = [n for n in shape if n is not None]
    merged = [*whole[:at], whole[at] * whole[at + 1], *whole[at + 2 :]]
    return b.Reshape(b.Reshape(x, ints(b, *merged)), ints(b, *whole))


def split_joined(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if not rank_of(x):
        return None
    axis = d.integer(0, rank_of(x) - 1)
    n = size_of(x, axis)
    if n is None or not n:
        return None
    where = b.const(axis, DType.I64)
    if d.flag():
        parts = d.pick([p for p in range(1, n + 1) if not n % p])
        node = b.node(Split(parts), x, where, outputs=parts)
        return b.Concat(*node.out_ports().values(), axis=axis)
    cut = d.integer(0, n)
    node = b.VariadicSplit(x, where, ints(b, cut, n - cut), outputs=2).node
    return b.Concat(*node.out_ports().values(), axis=axis)


def cut_joined(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """x[:k] and x[k:], for sizes that vary, too."""
    if not rank_of(x):
        return None
    axis, at = d.integer(0, rank_of(x) - 1), d.integer(0, 3)
    one, where, far = ints(b, 1), ints(b, axis), ints(b, 2**40)
    head = b.Slice(x, ints(b, 0), ints(b, at), one, where)
    return b.Concat(head, b.Slice(x, ints(b, at), far, one, where), axis=axis)


def padded(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if not rank_of(x):
        return None
    axis, before, after = d.integer(0, rank_of(x) - 1), d.integer(0, 2), d.integer(1, 2)
    at = [0] * rank_of(x)
    ends = []
    for count in (before, after):
        at[axis] = count
        ends.append(ints(b, *at))
    wide = b.Pad(x, *ends)
    return b.Slice(wide, ints(b, before), ints(b, -after), ints(b, 1), ints(b, axis))


def doubled(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """Half of what holds everything twice."""
    if not rank_of(x):
        return None
    axis = d.integer(0, rank_of(x) - 1)
    node = b.node(Split(2), b.Concat(x, x, axis=axis), b.const(axis, DType.I64), outputs=2)
    return node.out_port(d.integer(0, 1))


def raised(b: Builder, x: OutPort, d: Draw) -> OutPort:
    axis = ints(b, d.integer(0, rank_of(x)))
    return b.Squeeze(b.Unsqueeze(x, axis), axis)


def reversed_twice(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if not rank_of(x):
        return None
    axis, far = ints(b, d.integer(0, rank_of(x) - 1)), ints(b, -(2**40))

    def turned(y: OutPort) -> OutPort:
        return b.Slice(y, ints(b, -1), far, ints(b, -1), axis)

    return turned(turned(x))


def rolled(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if not rank_of(x):
        return None
    axis, by = ints(b, d.integer(0, rank_of(x) - 1)), d.integer(1, 3)
    return b.Roll(b.Roll(x, ints(b, by), axis), ints(b, -by), axis)


def gathered(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """x[order][inverse of order]"""
    if not rank_of(x):
        return None
    axis = d.integer(0, rank_of(x) - 1)
    n = size_of(x, axis)
    if not n:
        return None
    order = d.generator().permutation(n)
    where = b.const(axis, DType.I64)
    return b.Gather(b.Gather(x, ints(b, *order), where), ints(b, *np.argsort(order)), where)


def broadcast(b: Builder, x: OutPort, d: Draw) -> OutPort:
    return b.Broadcast(x, b.ShapeOf(x, output_type=DType.I64))


def tiled(b: Builder, x: OutPort, d: Draw) -> OutPort:
    return b.Tile(x, ints(b, *[1] * rank_of(x)))


def selected(b: Builder, x: OutPort, d: Draw) -> OutPort:
    true = b.const(True, DType.BOOL)
    return b.Select(true, x, x) if d.flag() else b.Select(b.Equal(b.const(1, DType.I64), b.const(1, DType.I64)), x, x)


def _truth(b: Builder, x: OutPort, d: Draw) -> OutPort:
    """True, as a constant or found when it runs."""
    if d.flag() or not rank_of(x):
        return b.const(True, DType.BOOL)
    sizes = b.ShapeOf(x, output_type=DType.I64)
    return b.ReduceLogicalAnd(b.GreaterEqual(sizes, ints(b, 0)), ints(b, 0))


def chosen(b: Builder, x: OutPort, d: Draw) -> OutPort:
    """If(true): x, else something else."""
    graphs = dict[str, Graph]()
    for name in ("then", "else"):
        body = Graph(name)
        inner = Builder(body)
        y = inner(Parameter(x.type.dtype, x.type.shape), name="p")
        if name == "else" and x.type.dtype is not DType.BOOL:
            y = inner.Add(y, y)
        inner(Result(), y)
        graphs[name] = body
    maps, outs = (InputMap(1, 0),), (OutputMap(0, 0),)
    node = b.node(If(maps, outs, maps, outs), _truth(b, x, d), x)
    node.regions = graphs
    return node.out_port(0)


def looped(b: Builder, x: OutPort, d: Draw) -> OutPort:
    """A Loop of one iteration, or of several that change nothing."""
    body = Graph("body")
    inner = Builder(body)
    y = inner(Parameter(x.type.dtype, x.type.shape), name="p")
    inner(Result(), y)
    inner(Result(), inner.const(True, DType.BOOL))
    op = Loop((InputMap(2, 0),), (OutputMap(0, 0),), (BackEdge(0, 0),), -1, 1)
    node = b.node(op, b.const(d.pick([1, 1, 2]), DType.I64), b.const(True, DType.BOOL), x)
    node.regions = {"body": body}
    return node.out_port(0)


def iterated(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """Slices along an axis, one after the other, and joined again."""
    if not rank_of(x):
        return None
    axis = d.integer(0, rank_of(x) - 1)
    if not size_of(x, axis):
        return None
    shape = tuple(1 if k == axis else n for k, n in enumerate(x.type.shape))
    body = Graph("body")
    inner = Builder(body)
    inner(Result(), inner(Parameter(x.type.dtype, shape), name="p"))
    sign, ends = (1, (0, -1)) if d.flag() else (-1, (-1, 0))
    maps = (InputMap(0, 0, axis, *ends, sign),), (OutputMap(0, 0, axis, *ends, sign),)
    node = b.node(TensorIterator(*maps, ()), x)
    node.regions = {"body": body}
    return node.out_port(0)


def widened(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    wider = WIDER.get(x.type.dtype)
    if wider is None:
        return None
    return b.Convert(b.Convert(x, destination_type=d.pick(wider)), destination_type=x.type.dtype)


# numbers that change nothing


def shifted(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """x - 0, x * 1, x / 1: x + 0 would turn -0 into 0."""
    if x.type.dtype is DType.BOOL:
        return None
    kind = d.pick(["Subtract", "Multiply", "Divide"])
    return getattr(b, kind)(x, number(b, x, 0 if kind == "Subtract" else 1))


def negated(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if x.type.dtype is DType.BOOL:
        return b.LogicalNot(b.LogicalNot(x))
    return b.Negative(b.Negative(x)) if x.type.dtype.is_signed else None


def greater_self(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if x.type.dtype is DType.BOOL:
        return b.LogicalAnd(x, b.LogicalOr(x, x))
    return b.Maximum(x, x) if d.flag() else b.Minimum(x, b.Maximum(x, x))


def scaled(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    if not x.type.dtype.is_float:
        return None
    return b.Multiply(b.Multiply(x, number(b, x, 2)), number(b, x, 0.5))


def multiplied(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """A product with the identity, which is cut in two or not."""
    n = size_of(x, -1) if rank_of(x) > 1 else None
    if not n or n > 64 or x.type.dtype not in (DType.F32, DType.F64):
        return None
    eye = np.eye(n, dtype=numpy_dtype(x.type.dtype))
    if d.flag():
        return b.MatMul(x, b.const(eye, x.type.dtype))
    cut = d.integer(1, n)
    parts = [b.MatMul(x, b.const(p, x.type.dtype)) for p in (eye[:, :cut], eye[:, cut:]) if p.size]
    return b.Concat(*parts, axis=-1)


def distributed(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """3 x / 4 + x / 4"""
    if x.type.dtype not in (DType.F32, DType.F64):
        return None
    return b.Add(b.Multiply(x, number(b, x, 0.75)), b.Multiply(x, number(b, x, 0.25)))


MOVING: tuple[Equality, ...] = (
    transposed,
    flattened,
    reshaped,
    split_joined,
    cut_joined,
    padded,
    doubled,
    raised,
    reversed_twice,
    rolled,
    gathered,
    broadcast,
    tiled,
    selected,
    chosen,
    looped,
    iterated,
    widened,
)
COMPUTING: tuple[Equality, ...] = (
    shifted,
    negated,
    greater_self,
    scaled,
    multiplied,
    distributed,
    rule,
    rule,
    rule,
    rule,
)
