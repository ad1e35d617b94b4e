"""Numbers on a grid: FakeQuant*, QuantizeV2, Dequantize and their like."""

from __future__ import annotations

import numpy as np

from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@tf("FakeQuantWithMinMaxArgs")
def fake_quant_args(node: TfNode, x: OutPort) -> OutPort:
    limits = (node.like(node.number(n), x) for n in ("min", "max"))
    return _fake_quant(node, x, *limits)


@tf("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(node: TfNode, x: OutPort, low: OutPort, high: OutPort) -> OutPort:
    return _fake_quant(node, x, low, high)


def _fake_quant(node: TfNode, x: OutPort, low: OutPort, high: OutPort) -> OutPort:
    """Quantise to a grid with 0 as a point; limits move to make it one. Limits 0 and 0 give 0."""
    build, bits = node.build, node.integer("num_bits")
    if not 2 <= bits <= 16:
        raise ModelError(f"{node.kind}: num_bits must be 2 to 16, got {bits}")
    least, most = int(node.flag("narrow_range")), (1 << bits) - 1
    step = build.Divide(build.Subtract(high, low), float(most - least))
    zero = build.Subtract(node.like(least, low), build.Divide(low, step))
    zero = build.Clamp(build.Floor(build.Add(zero, 0.5)), min=float(least), max=float(most))
    ends = [build.Multiply(build.Subtract(node.like(n, zero), zero), step) for n in (least, most)]
    port = build.FakeQuantize(x, *ends, *ends, levels=most - least + 1)
    same = build.Equal(low, high)
    return port if same.value is not None and not np.any(same.value) else build.Select(same, node.like(0, x), port)


def _range_of(dtype: DType) -> tuple[int, int]:
    bits, signed = dtype.bits, dtype.is_signed
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _along(node: TfNode, x: OutPort, limit: OutPort, axis: int) -> OutPort:
    """Limits of an axis, in a shape that broadcasts."""
    if axis < 0 or not limit.type.rank:
        return limit
    return node.build.Unsqueeze(limit, node.list([a for a in range(x.type.rank) if a != axis]))


@tf("QuantizeV2")
def quantize(node: TfNode, x: OutPort, low: OutPort, high: OutPort) -> tuple[OutPort, ...]:
    """Bytes and the limits that they stand for."""
    build, dtype, axis = node.build, node.dtype("T"), node.integer("axis")
    mode = node.text("mode")
    node.refuse(mode not in ("SCALED", "MIN_FIRST", "MIN_COMBINED"), f"mode {mode} is not supported")
    low, high = _widened(node, low, high)
    least, most = _range_of(dtype)
    if mode == "SCALED":
        floor = least + 1 if node.flag("narrow_range") and dtype.is_signed else least
        reach = _scale(node, low, high, floor, most)
        how = {"HALF_TO_EVEN": Rounding.HALF_TO_EVEN}.get(node.text("round_mode"), Rounding.HALF_AWAY_FROM_ZERO)
        wide = build.Round(build.Multiply(x, _along(node, x, reach, axis)), mode=how)
        ends = [build.Divide(node.like(float(n), reach), reach) for n in (floor, most)]
        return node.cast(build.Clamp(wide, min=float(floor), max=float(most)), dtype), *ends
    bottom, top = (_along(node, x, p, axis) for p in (low, high))
    step = build.Divide(build.Subtract(top, bottom), float(most - least))
    if mode == "MIN_FIRST":
        at = build.Subtract(build.Round(build.Divide(x, step)), build.Round(build.Divide(bottom, step)))
        wide = build.Add(at, float(least))
    else:
        clipped = build.Minimum(build.Maximum(x, bottom), top)
        at = build.Divide(build.Subtract(clipped, bottom), step)
        wide = build.Round(build.Add(at, float(least)) if dtype.is_signed else at, mode=Rounding.HALF_AWAY_FROM_ZERO)
    return node.cast(build.Clamp(wide, min=float(least), max=float(most)), dtype), low, high


def _widened(node: TfNode, low: OutPort, high: OutPort) -> tuple[OutPort, OutPort]:
    """Limits that include 0 and differ, as QuantizeV2 makes them."""
    build, least = node.build, node.number("ensure_minimum_range")
    low = build.Minimum(low, 0.0)
    size = build.Maximum(build.Abs(low), build.Abs(high))
    gap = build.Multiply(build.Maximum(size, 1.0), least)
    return low, build.Maximum(build.Maximum(high, build.Add(low, gap)), 0.0)


def _scale(node: TfNode, low: OutPort, high: OutPort, least: int, most: int) -> OutPort:
    """Return the factor from numbers to bytes, which 0 divides: the smaller one of both ends."""
    build = node.build
    up = build.Divide(node.like(float(most), high), high)
    if least == 0:
        return up
    down = build.Divide(node.like(float(least), low), low)
    zero = node.like(0, low)
    up = build.Select(build.Greater(high, zero), up, node.like(np.inf, high))
    down = build.Select(build.Less(low, zero), down, node.like(np.inf, low))
    return build.Minimum(up, down)


@tf("Dequantize")
def dequantize(node: TfNode, x: OutPort, low: OutPort, high: OutPort) -> OutPort:
    build, axis, dtype = node.build, node.integer("axis"), x.type.dtype
    mode, to = node.text("mode"), node.dtype("dtype")
    node.refuse(mode not in ("SCALED", "MIN_FIRST", "MIN_COMBINED"), f"mode {mode} is not supported")
    least, most = _range_of(dtype)
    wide = node.cast(x, DType.F32)
    low, high = (_along(node, x, p, axis) for p in (low, high))
    if mode == "SCALED":
        floor = least + 1 if node.flag("narrow_range") and dtype.is_signed else least
        step = build.Divide(high, float(most))
        if floor:
            step = build.Maximum(step, build.Divide(low, float(floor)))
        return node.cast(build.Multiply(wide, step), to)
    step = build.Divide(build.Subtract(high, low), float(most - least))
    if mode == "MIN_FIRST":  # 0 stays on the grid
        low = build.Multiply(build.Round(build.Divide(low, step), mode=Rounding.HALF_AWAY_FROM_ZERO), step)
    return node.cast(build.Add(build.Multiply(build.Subtract(wide, float(least)), step), low), to)


@tf("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(
    node: TfNode, x: OutPort, low: OutPort | None = None, high: OutPort | None = None, bits: OutPort | None = None
) -> OutPort:
    """Rounded to a grid of `num_bits` bits that has 0 on it; the first version has neither axis nor narrow range."""
    build, axis = node.build, node.integer("axis", -1)
    count = node.integer("num_bits") if bits is None else node.ints(bits, "num_bits")[0]
    signed = node.flag("signed_input")
    node.refuse(not 2 <= count <= 24, f"num_bits must be 2 to 24, got {count}")
    if not node.flag("range_given"):
        over = node.list([a for a in range(x.type.rank) if a != axis])
        low, high = build.ReduceMin(x, over), build.ReduceMax(x, over)
    if low is None or high is None:
        low, high = (node.like(node.number(n), x) for n in ("input_min", "input_max"))
    narrow = int(node.flag("narrow_range"))
    least = -(1 << count - 1) + narrow if signed else narrow
    most = (1 << count - 1) - 1 if signed else (1 << count) - 1
    factor = _along(node, x, _scale(node, low, high, least, most), axis)
    even = node.text("round_mode", "HALF_TO_EVEN") == "HALF_TO_EVEN"
    scaled = build.Multiply(x, factor)
    wide = build.Round(scaled) if even else build.Floor(build.Add(scaled, 0.5))
    return build.Divide(build.Clamp(wide, min=float(least), max=float(most)), factor)
