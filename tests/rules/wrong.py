"""Rules with a fault, on patterns of the right ones: a prover that accepts one of them proves nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import Node, OutPort
from aot.opset.base.families import Reduction
from aot.opset.elementwise.activation import Clamp, Relu
from aot.opset.elementwise.binary import Add, Multiply, Subtract
from aot.opset.movement.movement import Concat, Transpose
from aot.opset.movement.padding import Pad
from aot.opset.movement.slicing import Slice
from aot.opset.products.convolution import Convolution
from aot.opset.products.matmul import MatMul
from aot.passes.match import constant, source, with_constant
from aot.passes.permutation import compose, order_of, transposed
from aot.passes.rewrite import Rule, rule
from aot.runtime.abi import DType
from tests.rules.proof import Entry, Pattern
from tests.rules.table import ENTRIES


@rule(Transpose)
def merge_transposes(node: Node, op: Transpose, build: Builder) -> OutPort | None:
    """Transpose(Transpose(x, p), q) -> Transpose(x, q then p)"""
    inner = source(node.source(0), Transpose)
    first, order = (order_of(inner) if inner is not None else None), order_of(node)
    if inner is None or first is None or order is None:
        return None
    return transposed(inner.source(0), compose(order, first), build)


@rule(Clamp)
def merge_clamps(node: Node, op: Clamp, build: Builder) -> OutPort | None:
    """Clamp(Clamp(x, a, b), c, d) -> Clamp(x, max(a, c), max(b, d))"""
    inner = source(node.source(0), Clamp)
    if inner is None or not isinstance(inner.op, Clamp):
        return None
    return build(Clamp(max(inner.op.min, op.min), max(inner.op.max, op.max)), inner.source(0))


@rule(Relu)
def drop_repeated_relu(node: Node, op: Relu, build: Builder) -> OutPort | None:
    """Relu(Clamp(x, a, b)) -> Clamp(x, a, b)"""
    return node.source(0) if source(node.source(0), Clamp) is not None else None


@rule(MatMul)
def transpose_into_product(node: Node, op: MatMul, build: Builder) -> OutPort | None:
    """MatMul(Transpose(a, 1 0), b) -> MatMul(a, b), of square matrices"""
    inner = source(node.source(0), Transpose)
    return None if inner is None else build(op, inner.source(0), node.source(1))


@rule(Reduction)
def reduce_before_transpose(node: Node, op: Reduction, build: Builder) -> OutPort | None:
    """Reduce(Transpose(x, p), axes) -> Reduce(x, p[axes]), also where the dimensions that stay change places"""
    inner, axes = source(node.source(0), Transpose), constant(node.source(1))
    order = order_of(inner) if inner is not None else None
    if inner is None or order is None or axes is None:
        return None
    dropped = [order[axis_of(int(a), len(order), op.type)] for a in axes.reshape(-1)]
    return build(op, inner.source(0), build.const(np.array(sorted(dropped), np.int64), DType.I64))


@rule(Multiply)
def scale_behind_shift(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """(y + b) c -> y c + b"""
    outer = with_constant(node)
    shift = source(outer[0], Add) if outer is not None else None
    inner = with_constant(shift) if shift is not None else None
    return build.Add(build.Multiply(inner[0], outer[1]), inner[1]) if inner is not None and outer is not None else None


@rule(Convolution)
def pad_into_windows(node: Node, op: Convolution, build: Builder) -> OutPort | None:
    """Conv(Pad(x, begin, end)) -> Conv(x) with `end` before x and `begin` after it"""
    pad = source(node.source(0), Pad)
    begin, end = (None, None) if pad is None else (constant(pad.source(1)), constant(pad.source(2)))
    if pad is None or begin is None or end is None:
        return None
    before = tuple(int(n) + m for n, m in zip(end[2:], op.pads_begin, strict=True))
    after = tuple(int(n) + m for n, m in zip(begin[2:], op.pads_end, strict=True))
    return build(replace(op, pads_begin=before, pads_end=after), pad.source(0), node.source(1))


@rule(Concat)
def merge_concats(node: Node, op: Concat, build: Builder) -> OutPort | None:
    """Concat(x, Concat(y, z)) -> Concat(y, z, x)"""
    ports = [port for port in node.sources() if port is not None]
    inner = next((port for port in ports if port.node.type == "Concat"), None)
    if inner is None:
        return None
    rest = [port for port in ports if port is not inner]
    return build(op, *inner.node.sources(), *rest)


@rule(Slice)
def slice_before_concat(node: Node, op: Slice, build: Builder) -> OutPort | None:
    """Concat(x, y)[a:b] -> Concat(y[a:b], x[a:b])"""
    inner = source(node.source(0), Concat)
    if inner is None:
        return None
    return build(inner.op, *(build(op, x, *node.sources()[1:]) for x in reversed(inner.sources())))


@rule(Subtract)
def subtract_constant(node: Node, op: Subtract, build: Builder) -> OutPort | None:
    """x - c -> x + c"""
    return build.Add(node.source(0), node.source(1)) if constant(node.source(1)) is not None else None


def _like(wrong: Rule, *patterns: Pattern) -> Entry:
    """Return the entry of the right rule of the same name with the wrong rule in it."""
    right = next(e for e in ENTRIES if e.rule.name == wrong.name)
    return Entry(wrong, patterns or right.patterns)


def _square(b: Builder, x: OutPort, y: OutPort) -> OutPort:
    return b.MatMul(b.Transpose(x, b.const([1, 0], DType.I64)), y)


def _padded(b: Builder, x: OutPort) -> OutPort:
    pads = [b.const(p, DType.I64) for p in ([0, 0, 1, 0], [0, 0, 0, 1])]
    fields = {"pads_begin": (0, 0), "pads_end": (0, 0), "strides": (1, 1), "dilations": (1, 1)}
    return b.Convolution(b.Pad(x, *pads), b.const([[[[1, 2], [3, 4]]]], DType.F32), **fields)


def _swapped(b: Builder, x: OutPort) -> OutPort:
    return b.ReduceSum(b.Transpose(x, b.const([2, 1, 0], DType.I64)), b.const([1], DType.I64))


WRONG = (
    _like(merge_transposes),
    _like(merge_clamps, Pattern(lambda b, x: b.Clamp(b.Clamp(x, min=0.0, max=1.0), min=0.5, max=3.0), ((3,),))),
    _like(drop_repeated_relu, Pattern(lambda b, x: b.Relu(b.Clamp(x, min=-1.0, max=1.0)), ((3,),))),
    _like(transpose_into_product, Pattern(_square, ((2, 2), (2, 2)))),
    _like(reduce_before_transpose, Pattern(_swapped, ((2, 2, 2),))),
    _like(scale_behind_shift),
    _like(pad_into_windows, Pattern(_padded, ((1, 1, 3, 3),))),
    _like(merge_concats),
    _like(slice_before_concat),
    _like(subtract_constant),
)
