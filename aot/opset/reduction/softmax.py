"""Softmax and its logarithm, with the maximum subtracted first so that no exponential overflows."""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements
from aot.ir.operand import Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, TensorType
from aot.opset.base.decomposition import narrowed, numbers, wide, widened


@dataclass(frozen=True)
class AlongAxis(DecomposedOp):
    """An operation along one axis that keeps the shape."""

    elements = Elements.FLOAT

    axis: int = 1

    def infer(self, x: Operand) -> TensorType:
        axis_of(self.axis, x.rank, self.type)
        return x.type


def exponentials(build: Builder, x: OutPort, axis: int) -> tuple[OutPort, OutPort]:
    """Build x - max(x) and its exponentials."""
    gap = build.Subtract(x, build.ReduceMax(x, numbers(build, (axis,)), keep_dims=True))
    return gap, build.Exp(gap)


def _most(x: Array, axis: int) -> Array:
    """Return the maximum along an axis, which may have no elements."""
    maximum: Array = x.max(axis, keepdims=True, initial=-np.inf)
    return maximum


@op("opset8", "opset1", xml="SoftMax")
class Softmax(AlongAxis):
    """exp(x) / sum(exp(x)) along `axis`, counted from the end if negative."""

    axis: int = attr(1, since="opset8", before=range(64))

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        if x.type.rank == 0:
            return build.Divide(x, x)
        _, powers = exponentials(build, widened(build, x), self.axis)
        total = build.ReduceSum(powers, numbers(build, (self.axis,)), keep_dims=True)
        share = build.Divide(build.const(1.0, total.type.dtype), total)  # one division per row
        return narrowed(build, build.Multiply(powers, share), x.type.dtype)

    def reference(self, x: Array) -> Array:
        powers = np.exp(wide(x) - _most(wide(x), self.axis))
        return (powers / powers.sum(self.axis, keepdims=True)).astype(x.dtype)


@op("opset5")
class LogSoftmax(AlongAxis):
    """x - max - log(sum(exp(x - max))) along `axis`."""

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        gap, powers = exponentials(build, widened(build, x), self.axis)
        total = build.ReduceSum(powers, numbers(build, (self.axis,)), keep_dims=True)
        return narrowed(build, build.Subtract(gap, build.Log(total)), x.type.dtype)

    def reference(self, x: Array) -> Array:
        gap = wide(x) - _most(wide(x), self.axis)
        return (gap - np.log(np.exp(gap).sum(self.axis, keepdims=True))).astype(x.dtype)
