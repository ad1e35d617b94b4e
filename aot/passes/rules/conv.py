"""Per-channel scales and shifts move into the weights of the adjacent convolution or product.

Normal form: weights absorb all scales; shifts become one Add of a constant after it, which lowering fuses.
    Multiply(Add(Multiply(Conv(x, w), a), b), c)  ->  Add(Conv(x, w * a * c), b * c)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.types import Array, Shape
from aot.opset.control.infrastructure import Parameter
from aot.opset.elementwise.binary import Add, Binary, Divide, Multiply, Subtract
from aot.opset.movement.gather import Gather
from aot.opset.movement.movement import Transpose
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.products.convolution import Convolution, GroupConvolution, Windowed
from aot.opset.products.deconvolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from aot.opset.products.matmul import MatMul
from aot.opset.products.pool_windows import AutoPad
from aot.passes.match import (
    broadcasts,
    can_broadcast_to,
    channel_vector,
    constant,
    has_one_consumer,
    source,
    uniform,
    with_constant,
)
from aot.passes.rewrite import rule
from aot.runtime.abi import DType

MERGED_TYPES = (DType.F32, DType.F64)  # types in which constants are merged: shorter floats would round twice
CONVOLUTIONS = (Convolution, GroupConvolution, ConvolutionBackpropData, GroupConvolutionBackpropData)


@rule(Divide)
def divide_by_constant(node: Node, op: Divide, build: Builder) -> OutPort | None:
    """x / c -> x * (1 / c) where c is a power of two, or where x takes scales into its weights

    Elsewhere it stays: 41 / 41 is 1, but 41 * (1 / 41) is a little less, and its floor is 0.
    """
    x, c = node.source(0), constant(node.source(1))
    if c is None or x.type.dtype not in MERGED_TYPES or not broadcasts(op) or not _is_normal(c):
        return None
    if not (np.abs(np.frexp(c)[0]) == 0.5).all() and not _takes_scales(x):
        return None
    inverse = np.reciprocal(c)
    return build.Multiply(x, build.const(inverse, x.type.dtype)) if _is_normal(inverse) else None


def _takes_scales(port: OutPort) -> bool:
    """True for a convolution or product with constant weights, followed only by scales and shifts."""
    node = port.node
    while has_one_consumer(port) and isinstance(node.op, Add | Subtract | Multiply | Divide):
        constants = [i for i in (0, 1) if constant(node.source(i)) is not None]
        if len(constants) != 1 or (isinstance(node.op, Divide) and constants == [0]):
            return False
        port = node.source(1 - constants[0])
        node = port.node
    return (
        isinstance(node.op, (*CONVOLUTIONS, MatMul)) and has_one_consumer(port) and constant(node.source(1)) is not None
    )


def _is_normal(value: Array) -> bool:
    """True if there are no zeros, infinities or subnormal numbers."""
    size = np.abs(value)
    return bool(np.isfinite(value).all() and (size >= _smallest(value)).all())


def _smallest(value: Array) -> float:
    """Return the least normal number of a value's type."""
    return float(np.finfo(value.dtype.name).tiny)


@rule(Subtract)
def subtract_constant(node: Node, op: Subtract, build: Builder) -> OutPort | None:
    """x - c -> x + (-c)"""
    x, c = node.source(0), constant(node.source(1))
    if c is None or x.type.dtype not in MERGED_TYPES or not broadcasts(op):
        return None
    return build.Add(x, build.const(np.negative(c), x.type.dtype))


@rule(Add, Multiply)
def merge_constants(node: Node, op: Binary, build: Builder) -> OutPort | None:
    """(x + c1) + c2 -> x + (c1 + c2);  (x * c1) * c2 -> x * (c1 * c2)"""
    outer = with_constant(node)
    inner_node = source(outer[0], type(op)) if outer else None
    inner = with_constant(inner_node) if inner_node is not None else None
    if (
        outer is None
        or inner is None
        or not has_one_consumer(outer[0])
        or node.out_port(0).type.dtype not in MERGED_TYPES
    ):
        return None
    first, second = constant(inner[1]), constant(outer[1])
    assert first is not None
    assert second is not None
    with np.errstate(all="ignore"):
        merged = np.asarray(op.reference(first, second))
    if not np.isfinite(merged).all() or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    if merged.size > max(first.size, second.size):
        return None
    if isinstance(op, Multiply) and (_underflows(merged) or _underflows(first) or _underflows(second)):
        return None
    return build(op, inner[0], build.const(merged, inner[0].type.dtype))


def _underflows(value: Array) -> bool:
    size = np.abs(value)
    return bool(((size > 0) & (size < _smallest(value))).any())


@rule(Multiply)
def scale_behind_shift(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """(f(x, w) + b) * c -> f(x, w) * c + b * c, where f takes scales into its weights"""
    outer = with_constant(node)
    shift = source(outer[0], Add) if outer else None
    inner = with_constant(shift) if shift is not None else None
    if outer is None or inner is None or not has_one_consumer(outer[0]) or not has_one_consumer(inner[0]):
        return None
    scale, offset = constant(outer[1]), constant(inner[1])
    assert scale is not None
    assert offset is not None
    if _weight_factors(inner[0].node, scale) is None or not can_broadcast_to(offset.shape, inner[0].shape):
        return None
    product = np.multiply(offset, scale)
    if not np.isfinite(product).all():
        return None
    return build.Add(build.Multiply(inner[0], outer[1]), build.const(product, inner[0].type.dtype))


@rule(Multiply)
def scale_into_weights(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """f(x, w) * c -> f(x, w * c) for a convolution or product f and a factor for each channel of its output"""
    operands = with_constant(node)
    if operands is None or not has_one_consumer(operands[0]):
        return None
    scale = constant(operands[1])
    scaled = operands[0].node
    factors = None if scale is None else _weight_factors(scaled, scale)
    weights = None if factors is None else constant(scaled.source(1))
    if weights is None or factors is None:
        return None
    inputs = scaled.sources()
    inputs[1] = build.const(np.multiply(weights, factors), scaled.out_port(0).type.dtype, is_new=True)
    return build(scaled.op, *inputs)


def _weight_factors(node: Node, scale: Array) -> Array | None:
    """Return factors of the weights that make a convolution or product give `scale` times its result; None without."""
    if node.out_port(0).type.dtype not in MERGED_TYPES or not np.isfinite(scale).all():
        return None
    if isinstance(node.op, MatMul):
        return _matrix_factors(node, node.op, scale)
    weights = constant(node.source(1)) if isinstance(node.op, CONVOLUTIONS) else None
    if weights is None or not can_broadcast_to(scale.shape, node.out_port(0).shape):
        return None
    out = node.out_port(0).type
    by_channel = channel_vector(scale, out.rank, 1, out.shape[1])
    return None if by_channel is None else _along_outputs(node.op, by_channel, weights)


def _along_outputs(op: object, vector: Array, weights: Array) -> Array:
    """Reshape `vector` to multiply the output channels of weights [G,] O, I, ... or [G,] I, O, ..."""
    grouped = isinstance(op, GroupConvolution | GroupConvolutionBackpropData)
    backward = isinstance(op, ConvolutionBackpropData | GroupConvolutionBackpropData)
    axis = int(grouped) + int(backward)
    shape = [1] * weights.ndim
    if grouped:
        shape[0] = weights.shape[0]
    shape[axis] = weights.shape[axis]
    return vector.reshape(shape)


def _matrix_factors(node: Node, op: MatMul, scale: Array) -> Array | None:
    a, b = node.source(0), node.source(1)
    out = node.out_port(0).type
    weights = constant(b)
    if weights is None or constant(a) is not None or weights.ndim < 2 or out.rank < 1:
        return None
    by_column = channel_vector(scale, out.rank, out.rank - 1, out.shape[-1])
    if by_column is None:
        return None
    return by_column[:, None] if op.transpose_b else by_column


@rule(*CONVOLUTIONS)
def scale_before_into_weights(node: Node, op: Windowed, build: Builder) -> OutPort | None:
    """f(x * c, w) -> f(x, w * c) for a factor for each channel of the input; padding stays zero"""
    scaled, weights = source(node.source(0), Multiply), constant(node.source(1))
    operands = with_constant(scaled) if scaled is not None else None
    x = node.source(0)
    if operands is None or weights is None or not has_one_consumer(x) or x.type.dtype not in MERGED_TYPES:
        return None
    scale = constant(operands[1])
    assert scale is not None
    by_channel = channel_vector(scale, x.type.rank, 1, x.shape[1])
    if by_channel is None or not can_broadcast_to(scale.shape, operands[0].shape) or not np.isfinite(scale).all():
        return None
    inputs = node.sources()
    inputs[0] = operands[0]
    scaled = np.multiply(weights, _along_inputs(op, by_channel, weights))
    inputs[1] = build.const(scaled, x.type.dtype, is_new=True)
    return build(op, *inputs)


def _along_inputs(op: Windowed, vector: Array, weights: Array) -> Array:
    """Reshape `vector` to multiply the input channels of weights [G,] O, I, ... or [G,] I, O, ..."""
    grouped = isinstance(op, GroupConvolution | GroupConvolutionBackpropData)
    backward = isinstance(op, ConvolutionBackpropData | GroupConvolutionBackpropData)
    axis = int(grouped) + int(not backward)
    shape = [1] * weights.ndim
    if grouped:
        shape[0] = weights.shape[0]
    shape[axis] = weights.shape[axis]
    return vector.reshape(shape)


@rule(Convolution, GroupConvolution)
def pad_into_windows(node: Node, op: Windowed, build: Builder) -> OutPort | None:
    """Conv(Pad(x, begin, end)) -> Conv(x) whose windows begin so much before x and end so much after it"""
    pad = source(node.source(0), Pad)
    if pad is None or not isinstance(pad.op, Pad) or pad.op.pad_mode is not PadMode.CONSTANT:
        return None
    if len(pad.in_ports()) > 3 and pad.sources()[3] is not None and uniform(pad.source(3)) != 0:
        return None
    x, weights = node.source(0), node.source(1)
    windows = op.windows(x.shape[2:], weights.shape[weights.type.rank - x.type.rank + 2 :])
    begin = _with_more(windows.before, constant(pad.source(1)))
    end = _with_more(windows.after, constant(pad.source(2)))
    if begin is None or end is None:
        return None
    windowed = replace(op, pads_begin=begin, pads_end=end, auto_pad=AutoPad.EXPLICIT)
    return build(windowed, pad.source(0), weights)


def _with_more(padding: Shape, added: Array | None) -> tuple[int, ...] | None:
    """Return the padding including a Pad's; None if it is not known, crops, or concerns batch and channels."""
    numbers = [n for n in padding if isinstance(n, int)]
    if added is None or (added < 0).any() or added[:2].any() or len(numbers) < len(padding):
        return None
    return tuple(n + int(more) for n, more in zip(numbers, added[2:], strict=True))


@rule(Convolution, GroupConvolution)
def shift_before_into_bias(node: Node, op: Windowed, build: Builder) -> OutPort | None:
    """f(x + c, w) -> f(x, w) + b for an input x of the network, where no padding is read: it has no c

    Elsewhere lowering fuses the shift with the producer of x.
    """
    shifted, weights = source(node.source(0), Add), constant(node.source(1))
    addition = with_constant(shifted) if shifted is not None else None
    x = node.source(0)
    if (
        addition is None
        or weights is None
        or _is_padded(op)
        or not _is_input(addition[0])
        or not has_one_consumer(x)
        or x.type.dtype not in MERGED_TYPES
    ):
        return None
    shift = constant(addition[1])
    assert shift is not None
    by_channel = channel_vector(shift, x.type.rank, 1, x.shape[1])
    if by_channel is None or not can_broadcast_to(shift.shape, addition[0].shape):
        return None
    terms = np.multiply(weights.astype(np.float64), _along_inputs(op, by_channel, weights))
    outputs = 2 if isinstance(op, GroupConvolution) else 1  # dimensions of weights that tell outputs apart
    bias = terms.sum(tuple(range(outputs, weights.ndim))).reshape(1, -1, *[1] * (x.type.rank - 2))
    if not np.isfinite(bias).all():
        return None
    return build.Add(build(op, addition[0], *node.sources()[1:]), build.const(bias.astype(weights.dtype), x.type.dtype))


def _is_input(port: OutPort) -> bool:
    """True for an input of the network, also in another order of dimensions or channels."""
    node = port.node
    while isinstance(node.op, Transpose | Gather):
        node = node.source(0).node
    return isinstance(node.op, Parameter)


def _is_padded(op: Windowed) -> bool:
    if op.auto_pad is AutoPad.EXPLICIT:
        return any((*op.pads_begin, *op.pads_end))
    return op.auto_pad is not AutoPad.VALID


@rule(Convolution)
def channel_order_into_weights(node: Node, op: Convolution, build: Builder) -> OutPort | None:
    """f(Gather(x, order), w) -> f(x, Gather(w, order)) for channels in another order, each of them once"""
    moved, weights = source(node.source(0), Gather), constant(node.source(1))
    x = node.source(0)
    if moved is None or weights is None or not has_one_consumer(x):
        return None
    order, axis = (constant(moved.source(i)) for i in (1, 2))
    if order is None or axis is None or int(axis.reshape(-1)[0]) % x.type.rank != 1:
        return None
    positions = np.where(order < 0, order + weights.shape[1], order).reshape(-1)
    count = weights.shape[1]
    if order.ndim != 1 or moved.source(0).shape[1] != count or sorted(positions) != list(range(count)):
        return None
    inputs = node.sources()
    ordered = build.const(weights[:, np.argsort(positions)], x.type.dtype, is_new=True)
    inputs[0], inputs[1] = moved.source(0), ordered
    return build(op, *inputs)


@rule(Add)
def constant_second(node: Node, op: Add, build: Builder) -> OutPort | None:
    """c + x -> x + c: constants are second, where lowering looks for a bias"""
    operands = with_constant(node)
    if operands is None or node.source(1) is operands[1]:
        return None
    return build(op, *operands)


RULES = (
    divide_by_constant,
    subtract_constant,
    merge_constants,
    constant_second,
    scale_into_weights,
    scale_behind_shift,
    scale_before_into_weights,
    pad_into_windows,
    channel_order_into_weights,
    shift_before_into_bias,
)
