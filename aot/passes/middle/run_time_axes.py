"""Dynamic axes: reductions one axis after another, cumulations reshaped to [before, axis, after]."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.opset.base.families import Reduction
from aot.opset.reduction.nonzero import PaddedNonZero
from aot.opset.reduction.scan import Cumulation
from aot.passes.rewrite import Replacement, rule
from aot.runtime.abi import DType


@rule(Reduction)
def reduce_one_by_one(node: Node, op: Reduction, build: Builder) -> Replacement:
    """reduce(x, axes) -> for each axis d: (reduce(x, d) | x)[from, to], where `axes` says which of the two"""
    x, axes = node.source(0), node.source(1)
    if axes.value is not None:
        return None
    rank = x.type.rank
    if not rank:  # a scalar has one axis, of one element
        named = prod(axes.type.static_shape)
        return build(op, x, _numbers(build, *[0] * min(named, 1)))
    axes = _checked(build, axes, rank, node.type)
    left = [_remaining_size(build, axes, d, rank) for d in range(rank)]
    for d, stays in enumerate(left):
        size = build.Gather(build.ShapeOf(x), _numbers(build, d), build.const(0, DType.I64))
        both = build.Concat(build(replace(op, keep_dims=True), x, _numbers(build, d)), x, axis=d)
        end = build.Add(_numbers(build, 1), build.Multiply(stays, size))
        x = build.Slice(both, stays, end, _numbers(build, 1), _numbers(build, d))
    if op.keep_dims:
        return x
    positions = build.node(PaddedNonZero(), build.Concat(*left, axis=0), outputs=2).out_port(0)
    count = node.out_port(0).type.rank
    remaining = build.Slice(positions, _numbers(build, 0, 0), _numbers(build, 1, count), _numbers(build, 1, 1))
    remaining = build.Reshape(remaining, _numbers(build, count))
    return build.Reshape(x, build.Gather(build.ShapeOf(x), remaining, build.const(0, DType.I64)))


@rule(Cumulation)
def cumulate_in_the_middle(node: Node, op: Cumulation, build: Builder) -> Replacement:
    """cumulate(x, axis) -> reshape(cumulate(reshape(x, [before, x.shape[axis], after]), 1), x.shape)"""
    x = node.source(0)
    if len(node.in_ports()) < 2 or node.in_port(1).disconnected() or node.source(1).value is not None:
        return None
    rank, sizes = x.type.rank, build.ShapeOf(x)
    axis_vector = build.Convert(build.Reshape(node.source(1), _numbers(build, 1)), destination_type=DType.I64)
    axis_vector = _checked(build, axis_vector, rank, node.type)
    axis = build.Select(build.Less(axis_vector, 0), build.Add(axis_vector, rank), axis_vector)
    axis_numbers, one = _numbers(build, *range(rank)), _numbers(build, 1)
    parts = [
        build.ReduceProd(build.Select(side(axis_numbers, axis), sizes, one), _numbers(build, 0), keep_dims=True)
        for side in (build.Less, build.Equal, build.Greater)
    ]
    return build.Reshape(build(op, build.Reshape(x, build.Concat(*parts, axis=0)), one), sizes)


def _checked(build: Builder, axes: OutPort, rank: int, operation: str) -> OutPort:
    rule = f"axes are {-rank} to {rank - 1}"
    return build.InRange(axes, -rank, rank - 1, operation=operation, rule=rule, different=rank)


def _remaining_size(build: Builder, axes: OutPort, d: int, rank: int) -> OutPort:
    """Build [1] if axis d stays, [0] if it is one of `axes`."""
    flat = build.Reshape(axes, _numbers(build, -1))
    named = build.LogicalOr(build.Equal(flat, d), build.Equal(flat, d - rank))
    port = build.ReduceLogicalOr(named, _numbers(build, 0), keep_dims=True)
    return build.Convert(build.LogicalNot(port), destination_type=DType.I64)


def _numbers(build: Builder, *values: int) -> OutPort:
    return build.const(np.array(values), DType.I64)
