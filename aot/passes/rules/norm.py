"""Normalisation written out becomes MVN or GroupNormalization; its scale and shift stay Multiply and Add."""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import Node, OutPort
from aot.opset.elementwise.binary import Add, Divide, Multiply, Power, SquaredDifference, Subtract
from aot.opset.elementwise.unary import Sqrt
from aot.opset.movement.shape import Reshape
from aot.opset.reduction.normalization import MVN, GroupNormalization, Inside
from aot.opset.reduction.reduction import ReduceMean
from aot.passes.match import constant, has_same_dims, source, uniform, with_constant
from aot.passes.rewrite import rule
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class Centered:
    """The difference x - mean(x) over `axes`."""

    x: OutPort
    mean: OutPort
    axes: tuple[int, ...]


@rule(Divide, Multiply)
def mean_variance_written_out(node: Node, op: Divide | Multiply, build: Builder) -> OutPort | None:
    """(x - mean x) / sqrt(mean((x - mean x)^2) + eps) -> MVN(x)"""
    pairs = [(node.source(0), node.source(1))]
    if isinstance(op, Multiply):
        pairs.append((node.source(1), node.source(0)))
    for gap, scale in pairs:
        centered = _centered(gap)
        deviation = scale if isinstance(op, Divide) else _inverted(scale)
        if centered is None or deviation is None:
            continue
        eps = _deviation_of(centered, gap, deviation)
        if eps is not None and has_same_dims(node.out_port(0).shape, centered.x.shape):
            axes = build.const(np.array(centered.axes), DType.I64)
            return build(MVN(True, eps[0], eps[1]), centered.x, axes)
    return None


def _inverted(port: OutPort) -> OutPort | None:
    """Match 1 / s; returns s."""
    quotient = source(port, Divide)
    return quotient.source(1) if quotient is not None and uniform(quotient.source(0)) == 1.0 else None


def _mean(port: OutPort) -> tuple[OutPort, tuple[int, ...]] | None:
    """Match a mean that keeps dimensions; returns x and the axes."""
    node = source(port, ReduceMean)
    axes = constant(node.source(1)) if node is not None else None
    if node is None or axes is None or not isinstance(node.op, ReduceMean) or not node.op.keep_dims or axes.size == 0:
        return None
    x = node.source(0)
    return x, tuple(sorted(axis_of(int(a), x.type.rank, "ReduceMean") for a in axes.reshape(-1)))


def _centered(port: OutPort) -> Centered | None:
    node = source(port, Subtract)
    mean = _mean(node.source(1)) if node is not None else None
    if node is None or mean is None or mean[0] is not node.source(0) or not mean[0].type.dtype.is_float:
        return None
    return Centered(mean[0], node.source(1), mean[1])


def _deviation_of(centered: Centered, gap: OutPort, port: OutPort) -> tuple[float, Inside] | None:
    """Return eps and its position if `port` is the standard deviation of x; `gap` is the centred x. Else None."""
    root, eps = source(port, Sqrt), 0.0
    if root is not None:
        inside = _plus_number(root.source(0))
        eps, variance = inside if inside is not None else (0.0, root.source(0))
        where = Inside.INSIDE_SQRT
    else:
        outside = _plus_number(port)
        root = source(outside[1], Sqrt) if outside is not None else None
        if outside is None or root is None:
            return None
        eps, variance, where = outside[0], root.source(0), Inside.OUTSIDE_SQRT
    mean = _mean(variance)
    return (
        (eps, where) if mean is not None and mean[1] == centered.axes and _is_square(mean[0], centered, gap) else None
    )


def _plus_number(port: OutPort) -> tuple[float, OutPort] | None:
    node = source(port, Add)
    operands = with_constant(node) if node is not None else None
    number = uniform(operands[1]) if operands is not None else None
    if operands is None or number is None or operands[1].type.rank > operands[0].type.rank:
        return None
    return number, operands[0]


def _is_square(port: OutPort, centered: Centered, gap: OutPort) -> bool:
    node = source(port, Multiply, Power, SquaredDifference)
    if node is None:
        return False
    first, second = node.source(0), node.source(1)
    if isinstance(node.op, SquaredDifference):
        return {first, second} == {centered.x, centered.mean}
    if _centered(first) != centered and first is not gap:
        return False
    return uniform(second) == 2.0 if isinstance(node.op, Power) else second is first


@rule(Reshape)
def group_norm_written_out(node: Node, op: Reshape, build: Builder) -> OutPort | None:
    """Reshape(MVN(Reshape(x, [N, G, ..]), 2), shape of x) -> GroupNormalization(x, 1, 0)"""
    norm = source(node.source(0), MVN)
    inner = source(norm.source(0), Reshape) if norm is not None else None
    if norm is None or inner is None or not isinstance(norm.op, MVN):
        return None
    x, axes, groups = inner.source(0), constant(norm.source(1)), inner.out_port(0).shape
    has_eps_inside = norm.op.normalize_variance and norm.op.eps_mode is Inside.INSIDE_SQRT
    if not has_eps_inside or axes is None or axes.size != 1 or len(groups) != 3 or x.type.rank < 3:
        return None
    channels, count = x.shape[1], groups[1]
    if not isinstance(channels, int) or not isinstance(count, int) or count < 1 or channels % count:
        return None
    same = has_same_dims(node.out_port(0).shape, x.shape) and has_same_dims(groups[:1], x.shape[:1])
    if not same or axis_of(int(axes.reshape(-1)[0]), 3, "MVN") != 2:
        return None
    one, zero = (build.const(np.full(channels, n), x.type.dtype) for n in (1, 0))
    return build(GroupNormalization(count, norm.op.eps), x, one, zero)


RULES = (mean_variance_written_out, group_norm_written_out)
