"""Rewrite rules of aot/passes/rules read backwards: an operation becomes the formula that a rule would find in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from tests.properties.drawing import Draw

Equality = Callable[[Builder, OutPort, Draw], OutPort | None]


def ints(b: Builder, *values: int) -> OutPort:
    return b.const(np.array(values, np.int64), DType.I64)


def number(b: Builder, x: OutPort, value: float) -> OutPort:
    return b.const(value, x.type.dtype)


def rank_of(x: OutPort) -> int:
    return x.type.rank


def size_of(x: OutPort, axis: int) -> int | None:
    n = x.type.shape[axis]
    return n if isinstance(n, int) else None


def rule(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """The formula of the operation, where a rule knows it."""
    node = x.node
    if node.type not in FORMULAS or not all(p is not None for p in node.sources()):
        return None
    return FORMULAS[node.type](b, x, d)


def _gelu(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    y = x.node.source(0)
    whole = b.Add(b.Erf(b.Divide(y, number(b, y, 2**0.5))), number(b, y, 1))
    exact = str(getattr(x.node.op, "approximation_mode", "erf")) in ("erf", "ERF")
    return b.Multiply(b.Multiply(y, whole), number(b, y, 0.5)) if exact else None


def _swish(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    y = x.node.source(0)
    if len(x.node.sources()) > 1:
        return None
    if d.flag():
        return b.Divide(y, b.Add(b.Exp(b.Negative(y)), number(b, y, 1)))
    return b.Multiply(y, b.Sigmoid(y))


def _sigmoid(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y = x.node.source(0)
    return b.Divide(number(b, y, 1), b.Add(b.Exp(b.Negative(y)), number(b, y, 1)))


def _gate(b: Builder, y: OutPort) -> OutPort:
    return b.Divide(b.Clamp(b.Add(y, number(b, y, 3)), min=0.0, max=6.0), number(b, y, 6))


def _hsigmoid(b: Builder, x: OutPort, d: Draw) -> OutPort:
    return _gate(b, x.node.source(0))


def _hswish(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y = x.node.source(0)
    return b.Multiply(y, b.HSigmoid(y) if d.flag() else _gate(b, y))


def _softplus(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y = x.node.source(0)
    return b.Log(b.Add(b.Exp(y), number(b, y, 1)))


def _mish(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y = x.node.source(0)
    return b.Multiply(y, b.Tanh(b.SoftPlus(y)))


def _relu(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y = x.node.source(0)
    return b.Maximum(y, number(b, y, 0)) if d.flag() else b.Relu(b.Relu(y))


def _mvn(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    y, axes = x.node.source(0), x.node.source(1)
    op = x.node.op
    if not getattr(op, "normalize_variance", True) or str(getattr(op, "eps_mode", "")) != "inside_sqrt":
        return None
    gap = b.Subtract(y, b.ReduceMean(y, axes, keep_dims=True))
    square = b.Power(gap, number(b, y, 2)) if d.flag() else b.Multiply(gap, gap)
    spread = b.Add(b.ReduceMean(square, axes, keep_dims=True), number(b, y, float(getattr(op, "eps", 0))))
    return b.Divide(gap, b.Sqrt(spread))


def _matmul(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """The second operand transposed, and said to be."""
    a, c = x.node.source(0), x.node.source(1)
    ta, tb = (bool(getattr(x.node.op, f"transpose_{k}")) for k in "ab")
    rank = rank_of(c)
    if rank < 2:
        return None
    order = [*range(rank - 2), rank - 1, rank - 2]
    return b.MatMul(a, b.Transpose(c, ints(b, *order)), transpose_a=ta, transpose_b=not tb)


def _reduced(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """Reduce the tensor before its transpose, over the axes in their former order."""
    y, axes = x.node.source(0), x.node.constant(1)
    if axes is None or getattr(x.node.op, "keep_dims", False):
        return None
    rank = rank_of(y)
    over = sorted({int(a) % rank for a in axes.reshape(-1)})
    kept = [k for k in range(rank) if k not in over]
    order = list(over)
    for k in kept:  # what stays keeps its sequence
        order.insert(d.integer(order.index(kept[kept.index(k) - 1]) + 1 if k != kept[0] else 0, len(order)), k)
    places = [order.index(a) for a in over]
    return b(x.node.op, b.Transpose(y, ints(b, *order)), ints(b, *places)) if rank else None


def _concat(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """Concat(Concat(first ones), rest)"""
    ports = [p for p in x.node.sources() if p is not None]
    axis = int(getattr(x.node.op, "axis", 0))
    if len(ports) < 2:
        return None
    cut = d.integer(1, len(ports) - 1)
    return b.Concat(b.Concat(*ports[:cut], axis=axis), *ports[cut:], axis=axis)


def _softmax(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y, axis = x.node.source(0), ints(b, int(getattr(x.node.op, "axis", 1)))
    up = b.Exp(b.Subtract(y, b.ReduceMax(y, axis, keep_dims=True)))
    return b.Divide(up, b.ReduceSum(up, axis, keep_dims=True))


def _log_softmax(b: Builder, x: OutPort, d: Draw) -> OutPort:
    y, axis = x.node.source(0), ints(b, int(getattr(x.node.op, "axis", 1)))
    gap = b.Subtract(y, b.ReduceMax(y, axis, keep_dims=True))
    return b.Subtract(gap, b.Log(b.ReduceSum(b.Exp(gap), axis, keep_dims=True)))


def _by_rows(b: Builder, x: OutPort, d: Draw) -> OutPort | None:
    """The operation on the first rows and on the others: of a convolution, pool or activation each row is alone."""
    y = x.node.source(0)
    if not rank_of(y) or (size_of(y, 0) or 0) < 2:
        return None
    cut = d.integer(1, (size_of(y, 0) or 0) - 1)
    halves = b.VariadicSplit(y, b.const(0, DType.I64), ints(b, cut, -1), outputs=2).node
    rest = [p for p in x.node.sources()[1:] if p is not None]
    return b.Concat(*(b(x.node.op, h, *rest) for h in halves.out_ports().values()), axis=0)


FORMULAS: dict[str, Equality] = {
    "Gelu": _gelu,
    "Swish": _swish,
    "Sigmoid": _sigmoid,
    "HSigmoid": _hsigmoid,
    "HSwish": _hswish,
    "Mish": _mish,
    "SoftPlus": _softplus,
    "Relu": _relu,
    "MVN": _mvn,
    "MatMul": _matmul,
    "ReduceSum": _reduced,
    "ReduceMax": _reduced,
    "ReduceMean": _reduced,
    "ReduceMin": _reduced,
    "ReduceL2": _reduced,
    "Concat": _concat,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "Convolution": _by_rows,
    "MaxPool": _by_rows,
    "AvgPool": _by_rows,
    "Tanh": _by_rows,
}
