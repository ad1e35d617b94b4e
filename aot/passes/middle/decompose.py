"""Decomposition: operations that are defined by simpler ones are replaced by these."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from aot.ir.build import Builder, FoldingBuilder
from aot.ir.graph import Node, OutPort
from aot.ir.op import DecomposedOp, LoopOp
from aot.opset.base.decomposition import narrowed
from aot.opset.control.demands import InRange
from aot.opset.control.generators import Sequence
from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.quantization import FakeQuantize, steps_of
from aot.opset.reduction.segments import SegmentMax
from aot.passes.match import constant
from aot.passes.middle.run_time_axes import cumulate_in_the_middle, reduce_one_by_one
from aot.passes.rewrite import Replacement, RuleSet, rule
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, ShapeError

MAX_LEVEL = 255  # a byte


@rule(DecomposedOp)
def decompose_operation(node: Node, op: DecomposedOp, build: Builder) -> Replacement:
    """f(x, ..) -> f.decompose(x, ..)"""
    try:
        folding = FoldingBuilder(build.graph, build.origin)  # arithmetic on attributes and constants
        results: OutPort | tuple[OutPort, ...] = op.decompose(folding, *node.sources())
        ports = [*results] if isinstance(results, tuple) else [results]
        for port in ports:
            _ = port.type  # infers the types of the whole decomposition
    except ModelError as error:
        raise ShapeError(f"{node.type}: {error}") from error
    return tuple(ports) if len(node.out_ports()) > 1 else ports[0]


@rule(LoopOp)
def compute_in_single(node: Node, op: LoopOp, build: Builder) -> Replacement:
    """f(x, ..) -> double(f(single(x), ..)), where x is f64 and f computes in f32"""
    ports = node.sources()
    if not op.single or not any(map(_double, ports)):
        return None
    inputs = [p and narrowed(build, p, DType.F32 if _double(p) else p.type.dtype) for p in ports]
    outs = [node.out_port(n) for n in range(len(node.out_ports()))]
    new_node = build.node(op, *inputs, outputs=len(outs))
    results: tuple[OutPort, ...] = tuple(
        narrowed(build, new_node.out_port(n), DType.F64) if _double(out) else new_node.out_port(n)
        for n, out in enumerate(outs)
    )
    return results if len(outs) > 1 else results[0]


def _double(port: OutPort | None) -> bool:
    return port is not None and port.type.dtype is DType.F64


@rule(Sequence)
def count_range(node: Node, op: Sequence, build: Builder) -> Replacement:
    """Range(a, b, s) of floats known at run time -> a + s * Range(0, ceil((b - a) / s), 1)"""
    ports = [node.source(i) for i in range(3)]
    if all(p.value is not None for p in ports) or not any(p.type.dtype.is_float for p in ports):
        return None
    out = node.out_port(0).type.dtype
    first, last, by = (single(build, p, out.compute) for p in ports)
    zero, one = build.const(0, DType.I64), build.const(1, DType.I64)
    floats = [single(build, p, p.type.dtype.compute) for p in ports if p.type.dtype.is_float]
    sound = reduce(build.LogicalAnd, map(build.IsFinite, floats), build.NotEqual(by, 0))
    step = build.Select(sound, by, build.const(1, out.compute))
    steps = build.Ceiling(build.Divide(build.Subtract(last, first), step))
    count = build.Convert(steps, destination_type=DType.I64)
    demand = InRange(operation=node.type, rule="start, stop and step must be finite, and step not 0")
    count = build(demand, build.Convert(sound, destination_type=DType.I64), one, one, count)
    positions = build.Range(zero, count, one, output_type=DType.I64)
    port = build.Add(first, build.Multiply(build.Convert(positions, destination_type=out.compute), by))
    return port if out.compute is out else build.Convert(port, destination_type=out)


@rule(SegmentMax)
def count_segments(node: Node, op: SegmentMax, build: Builder) -> Replacement:
    """SegmentMax(x, ids) -> SegmentMax(x, ids, max(ids) + 1), where ids are known at run time"""
    data, ids = node.source(0), node.source(1)
    if ids.value is not None or (len(node.in_ports()) > 2 and not node.in_port(2).disconnected()):
        return None
    wide = build.Convert(ids, destination_type=DType.I64)
    last = build.ReduceMax(wide, build.const([0], DType.I64))
    return build(op, data, ids, build.Add(build.Maximum(last, -1), 1))


@rule(FakeQuantize)
def quantize_in_steps(node: Node, op: FakeQuantize, build: Builder) -> Replacement:
    """FakeQuantize(x, il, ih, ol, oh) -> (Clamp(Round((x - il) / s), 0, levels - 1) - z) t, where -z t = ol

    s = (ih - il) / (levels - 1), t = (oh - ol) / (levels - 1). For constants with il < ih; where ol is no whole number
    of steps, it is added instead. Up to 256 levels are bytes.
    """
    x, limits = node.source(0), [constant(node.source(i)) for i in range(1, 5)]
    bounds = [a.astype(np.float64) for a in limits if a is not None and a.ndim <= x.type.rank]
    if len(bounds) < len(limits) or x.type.dtype is not DType.F32 or op.auto_broadcast is AutoBroadcast.PDPD:
        return None
    low, high, out_low, out_high = bounds
    steps = op.levels - 1
    if not all(np.isfinite(a).all() for a in bounds) or not ((low < high).all() and (out_low < out_high).all()):
        return None

    def number(a: NDArray[np.float64]) -> OutPort:
        return build.const(a.reshape(()) if a.size == 1 else a, DType.F32)

    shifted = build.Subtract(x, number(low)) if low.any() else x
    level = build.Clamp(build.Round(build.Divide(shifted, number((high - low) / steps))), min=0.0, max=float(steps))
    if steps <= MAX_LEVEL:
        level = build.Convert(build.Convert(level, destination_type=DType.U8), destination_type=DType.F32)
    step, zero = steps_of(out_low, out_high, op.levels)
    if not np.isnan(zero).any():
        from_zero = build.Subtract(level, number(zero)) if zero.any() else level
        return build.Multiply(from_zero, number(step))
    return build.Add(build.Multiply(level, number(step)), number(out_low))


def single(build: Builder, port: OutPort, dtype: DType) -> OutPort:
    """Build the only number of a tensor as a scalar of another type."""
    number = port if port.type.rank == 0 else build.Reshape(port, build.const(np.zeros(0), DType.I64))
    return number if number.type.dtype is dtype else build.Convert(number, destination_type=dtype)


RULES = (
    quantize_in_steps,
    decompose_operation,
    compute_in_single,
    count_range,
    count_segments,
    reduce_one_by_one,
    cumulate_in_the_middle,
)
decompose = RuleSet("decompose", RULES, required=True)
