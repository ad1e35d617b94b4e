"""Convolutions and products: sums in i32 (i64 for data of 16 bits), requantised by a factor of each output channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from aot.frontends.tflite.integers.fixed_point import multiplier, of_input, saturated, scaled, shifted, single, whole
from aot.frontends.tflite.math.products import rows, with_axes
from aot.frontends.tflite.neural.convolution import convolved, convolved_by_channel, transposed, with_bias
from aot.frontends.tflite.registry import TfliteNode, exact
from aot.frontends.tflite.tensors import COMPUTED
from aot.ir.graph import OutPort
from aot.ir.types import Dim
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

MAX_TAPS = 1 << 8  # products of 16 and 8 bits whose sum, with a bias, fits 32 bits for certain
MAX_EXACT = 1 << 8  # products of 8 bits whose sum is below 2^24: exact in f32, whose products are faster than of i32
REDUCED = 15  # bits of the factor for data of 16 bits


def factors(node: TfliteNode, x: int, w: int) -> list[float]:
    """scale of the data * scale of the weights / scale of the output, for each channel."""
    data, weights, out = of_input(node, x), of_input(node, w), whole(node)
    if len(weights.scales) == 1 and node.kind == "FULLY_CONNECTED":
        return [single(data.scales[0] * weights.scales[0]) / out.scales[0]]
    return [data.scales[0] * s / out.scales[0] for s in weights.scales]


def requantized(node: TfliteNode, total: OutPort, multipliers: list[float], shape: list[int], narrow: bool) -> OutPort:
    """Sums, times factors, in the output's type. `narrow`: factors have all of their bits."""
    if narrow:
        return saturated(node, scaled(node, total, multipliers, shape), whole(node))
    build = node.build
    pairs = [multiplier(f) for f in multipliers]
    reduced = [min((m + (1 << 15)) >> 16, 0x7FFF) for m, _ in pairs]
    shifts = [REDUCED - s for _, s in pairs]
    spread = list[int]() if len(pairs) == 1 else shape

    def constant(values: list[int]) -> OutPort:
        first = build.const(values if spread else values[0], DType.I64)
        return build.Reshape(first, node.list(spread)) if spread else first

    wide = build.Multiply(node.cast(total, DType.I64), constant(reduced))
    wide = build.Add(wide, constant([1 << (s - 1) for s in shifts]))
    return saturated(node, node.cast(build.BitwiseRightShift(wide, constant(shifts)), DType.I32), whole(node))


def _is_plain(node: TfliteNode, x: OutPort, w: OutPort, i: int = 0) -> bool:
    """True if data and weights are stored as integers that LiteRT's kernels for integers take."""
    types = (DType.I8, DType.U8, DType.I16)
    return (
        x.type.dtype in types and w.type.dtype in (*COMPUTED, DType.I8, DType.U8) and node.quantization(i) is not None
    )


def _operands(node: TfliteNode, x: OutPort, w: OutPort, taps: Sequence[Dim]) -> tuple[OutPort, OutPort]:
    """Data and weights without their zero points; in i64 if sums of that many products may need it."""
    integers, weights = shifted(node, x, of_input(node, 0)), shifted(node, w, of_input(node, 1))
    count = prod(n for n in taps if isinstance(n, int))
    if x.type.dtype is DType.I16 and count >= MAX_TAPS:
        integers, weights = node.cast(integers, DType.I64), node.cast(weights, DType.I64)
    elif node.kind == "DEPTHWISE_CONV_2D" and x.type.dtype is not DType.I16 and count < MAX_EXACT:
        integers, weights = node.cast(integers, DType.F32), node.cast(weights, DType.F32)
    return integers, weights


def _summed(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None, run: Callable[..., OutPort]) -> OutPort:
    narrow = x.type.dtype is not DType.I16
    taps = w.shape[1:-1] if node.kind == "DEPTHWISE_CONV_2D" else w.shape[1:]
    total = run(node, *_operands(node, x, w, taps))
    total = node.cast(total, DType.I32 if narrow else DType.I64)
    multipliers = factors(node, 0, 1)
    channels = [len(multipliers), *[1] * (total.type.rank - 2)]
    return node.to_channels_last(requantized(node, with_bias(node, total, bias), multipliers, channels, narrow))


@exact("CONV_2D")
def conv_2d(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    return _summed(node, x, w, bias, convolved) if _is_plain(node, x, w) else node.as_numbers(x, w, bias)


@exact("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    return _summed(node, x, w, bias, convolved_by_channel) if _is_plain(node, x, w) else node.as_numbers(x, w, bias)


@exact("FULLY_CONNECTED")
def fully_connected(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    if not _is_plain(node, x, w):
        return node.as_numbers(x, w, bias)
    build = node.build
    node.refuse(node.integer("weights_format", 0) != 0, "shuffled weights are not supported")
    if w.type.rank != 2:
        raise ModelError(f"{node.kind}: weights must be [outputs, inputs], got {w.type}")
    narrow = x.type.dtype is not DType.I16
    integers, weights = _operands(node, x, w, w.shape[1:])
    total = build.MatMul(rows(node, integers, w), weights, transpose_b=True)
    total = total if narrow else node.cast(total, DType.I64)
    if bias is not None:
        total = build.Add(total, node.cast(bias, total.type.dtype))
    multipliers = factors(node, 0, 1)
    return with_axes(node, requantized(node, total, multipliers, [len(multipliers)], True), x)


@exact("TRANSPOSE_CONV")
def transpose_conv(node: TfliteNode, sizes: OutPort, w: OutPort, x: OutPort, bias: OutPort | None = None) -> OutPort:
    if not _is_plain(node, x, w, 2) or x.type.dtype is DType.I16:
        return node.as_numbers(sizes, w, x, bias)
    total = transposed(node, sizes, shifted(node, w, of_input(node, 1)), shifted(node, x, of_input(node, 2)))
    total = total if bias is None else node.build.Add(total, node.cast(bias, DType.I32))
    multipliers = factors(node, 2, 1)
    return requantized(node, total, multipliers, [len(multipliers)], True)


@exact("BATCH_MATMUL")
def batch_matmul(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    if a.type.dtype is not DType.I8 or b.type.dtype is not DType.I8:
        return node.as_numbers(a, b)
    integers = [shifted(node, p, of_input(node, i)) for i, p in enumerate((a, b))]
    total = node.build.MatMul(*integers, transpose_a=node.flag("adj_x"), transpose_b=node.flag("adj_y"))
    multipliers = [single(of_input(node, 0).scales[0] * of_input(node, 1).scales[0]) / whole(node).scales[0]]
    return saturated(node, scaled(node, total, multipliers), whole(node))
