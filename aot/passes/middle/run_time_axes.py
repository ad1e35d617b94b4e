"""Reductions along axes that only run time knows: one axis after the other, each reduced or left as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.opset.families import Reduction
from aot.opset.nonzero import NonZeroWithin
from aot.passes.rewrite import Replacement, rule
from runtime.abi import DType


@rule(Reduction)
def reduce_one_by_one(node: Node, op: Reduction, build: Builder) -> Replacement:
    """reduce(x, axes) -> for each axis d: (reduce(x, d) | x)[from, to], where `axes` says which of the two"""
    x, axes = node.source(0), node.source(1)
    if axes.value is not None:
        return None
    rank = x.type.rank
    left = [_left(build, axes, d, rank) for d in range(rank)]
    for d, stays in enumerate(left):
        size = build.Gather(build.ShapeOf(x), _numbers(build, d), build.const(0, DType.I64))
        both = build.Concat(build(replace(op, keep_dims=True), x, _numbers(build, d)), x, axis=d)
        end = build.Add(_numbers(build, 1), build.Multiply(stays, size))
        x = build.Slice(both, stays, end, _numbers(build, 1), _numbers(build, d))
    if op.keep_dims:
        return x
    places = build.node(NonZeroWithin(), build.Concat(*left, axis=0), outputs=2).out_port(0)
    count = node.out_port(0).type.rank
    kept = build.Slice(places, _numbers(build, 0, 0), _numbers(build, 1, count), _numbers(build, 1, 1))
    kept = build.Reshape(kept, _numbers(build, count))
    return build.Reshape(x, build.Gather(build.ShapeOf(x), kept, build.const(0, DType.I64)))


def _left(build: Builder, axes: OutPort, d: int, rank: int) -> OutPort:
    """[1] where axis d stays, [0] where it is one of `axes`."""
    flat = build.Reshape(axes, _numbers(build, -1))
    named = build.LogicalOr(build.Equal(flat, d), build.Equal(flat, d - rank))
    found = build.ReduceLogicalOr(named, _numbers(build, 0), keep_dims=True)
    return build.Convert(build.LogicalNot(found), destination_type=DType.I64)


def _numbers(build: Builder, *values: int) -> OutPort:
    return build.const(np.array(values), DType.I64)
