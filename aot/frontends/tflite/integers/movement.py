"""Operations that move quantised elements, pick them, or average them."""

from __future__ import annotations

from aot.frontends.tflite.arrays.shape import joined
from aot.frontends.tflite.integers.elementwise import fits, same
from aot.frontends.tflite.integers.fixed_point import saturated, scaled, shifted, whole
from aot.frontends.tflite.neural.pooling import windows
from aot.frontends.tflite.registry import TfliteNode, exact
from aot.ir.graph import OutPort
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType


@exact("CONCATENATION")
def concatenation(node: TfliteNode, *xs: OutPort) -> OutPort:
    """Stored numbers, where all parts have the scale of the output."""
    out = node.output_quantization()
    kept = all(same(node.quantization(i), out) for i in range(len(xs)))
    return joined(node, *xs) if kept and not node.integer("fused_activation_function", 0) else node.as_numbers(*xs)


@exact("REDUCE_MAX", "REDUCE_MIN")
def extreme(node: TfliteNode, x: OutPort, axes: OutPort) -> OutPort:
    if not same(node.quantization(0), node.output_quantization()):
        return node.as_numbers(x, axes)
    return node.tf("Max" if node.kind == "REDUCE_MAX" else "Min", x, axes, keep_dims=node.flag("keep_dims"))


@exact("MAX_POOL_2D")
def max_pool(node: TfliteNode, x: OutPort) -> OutPort:
    if not fits(node, x) or not same(node.quantization(0), node.output_quantization()):
        return node.as_numbers(x)
    y = node.to_channels_last(node.build.MaxPool(node.to_channels_first(node.image(x)), **windows(node)))
    return _activated(node, y)


def _activated(node: TfliteNode, y: OutPort) -> OutPort:
    """Stored numbers within the range of the fused activation."""
    if not node.integer("fused_activation_function", 0):
        return y
    return saturated(node, shifted(node, y, whole(node)), whole(node))


@exact("AVERAGE_POOL_2D")
def average_pool(node: TfliteNode, x: OutPort) -> OutPort:
    """The sum of a window divided by its number of elements, halves away from zero; stored numbers are averaged."""
    if not fits(node, x):
        return node.as_numbers(x)
    build, fields = node.build, windows(node)
    wide = node.to_channels_first(node.cast(node.image(x), DType.F32))
    mean = build.AvgPool(wide, exclude_pad=True, **fields)
    ones = build.Broadcast(build.const(1.0, DType.F32), node.dims(wide, [2, 3]))
    ones = build.Unsqueeze(ones, node.list([0, 1]))
    area = float(fields["kernel"][0] * fields["kernel"][1])
    count = build.Round(build.Multiply(build.AvgPool(ones, exclude_pad=False, **fields), area))
    total = build.Round(build.Multiply(mean, count))  # exact: AvgPool may multiply by a rounded reciprocal
    mean = build.Round(build.Divide(total, count), mode=Rounding.HALF_AWAY_FROM_ZERO)
    return _activated(node, node.to_channels_last(node.cast(mean, x.type.dtype)))


@exact("MEAN")
def mean(node: TfliteNode, x: OutPort, axes: OutPort) -> OutPort:
    """The sum times a factor that holds the number of elements, where that number is known."""
    q, out = node.quantization(0), whole(node)
    if not fits(node, x) or q is None or axes.value is None:
        return node.as_numbers(x, axes)
    count = 1
    for axis in {node.axis(a, x.type.rank) for a in node.ints(axes, "axis")}:
        size = x.shape[axis]
        if not isinstance(size, int):
            return node.as_numbers(x, axes)
        count *= size
    total = node.tf("Sum", shifted(node, x, q), axes, keep_dims=node.flag("keep_dims"))
    if not count:
        return node.as_numbers(x, axes)
    return saturated(node, scaled(node, total, [q.scales[0] / out.scales[0]], count=count), out)
